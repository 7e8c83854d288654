package examplecdk_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/examplecdk"
	"github.com/cairnstate/cairn/infra/synth"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// The examples call Cairn by its functions' ARNs, Cairn may start exactly them,
// and nothing depends on itself.
func TestExamples(t *testing.T) {
	context, err := synth.Context("../../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	if err := synth.Placeholders(dist, slices.Concat(cairncdk.Functions, examplecdk.Functions)...); err != nil {
		t.Fatal(err)
	}
	result, err := synth.Stack(context, t.TempDir(), false, func(_ awscdk.App, stack awscdk.Stack) {
		cairn := cairncdk.NewCairn(stack, "Cairn", &cairncdk.Props{Dist: dist, Targets: examplecdk.Targets(stack, "x-")})
		examplecdk.New(stack, "Example", cairn, examplecdk.Props{Dist: dist, Prefix: "x-"})
	})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(result.RoleStatements("RecoverRole"))
	for _, target := range []string{":stateMachine:x-document-case", ":function:x-agent"} {
		if !strings.Contains(text, target) {
			t.Errorf("recover may not start %s", target)
		}
	}
	machines := result.OfType("AWS::StepFunctions::StateMachine")
	if len(machines) != 1 {
		t.Fatalf("machines %v", machines)
	}
	definition := synth.Text(result.Resources[machines[0]].Properties["DefinitionString"])
	for _, name := range []string{"${Checkpoint.Arn}", "${Recover.Arn}", "JSONata", ".waitForTaskToken"} {
		if !strings.Contains(definition, name) {
			t.Errorf("the definition has no %s", name)
		}
	}
	for _, name := range result.OfType("AWS::Lambda::Function") {
		if strings.Contains(synth.Text(result.Resources[name].Properties["Environment"]), "CAIRN_EXAMPLE_FUSE") {
			t.Error("a fuse is laid without being asked for")
		}
	}
}
