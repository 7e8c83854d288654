package main

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// docs/STACK.md says what the template holds now.
func TestDocumentIsCurrent(t *testing.T) {
	want, err := document("../../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/STACK.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	is, should := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range should {
		if i >= len(is) || is[i] != should[i] {
			t.Fatalf("docs/STACK.md is not what the stack is now (make stack-doc); first at line %d:\n%s", i+1, should[i])
		}
	}
	t.Fatal("docs/STACK.md has more than the stack (make stack-doc)")
}
