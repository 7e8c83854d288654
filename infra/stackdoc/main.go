// Command stackdoc writes docs/STACK.md, the template in words, so that a change
// of the stack is read as sentences in review:
//
//	go run ./infra/stackdoc > docs/STACK.md
//
// It describes what the CDK makes of the default settings, and the roles once
// more with the tenant role on. Whatever it has no words for it lists as it is;
// nothing in the template is left out.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
)

func main() {
	defer jsii.Close()
	text, err := document("cdk.json")
	if err != nil {
		fmt.Fprintln(os.Stderr, "stackdoc:", err)
		jsii.Close()
		os.Exit(1)
	}
	fmt.Print(text)
}

// document makes the stack twice and describes it.
func document(cdkJSON string) (string, error) {
	context, err := synth.Context(cdkJSON)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "stackdoc-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	// Only the template matters, and it does not depend on the functions' code.
	dist := filepath.Join(dir, "dist")
	if err := synth.Placeholders(dist, cairncdk.Functions...); err != nil {
		return "", err
	}
	make := func(name string, props cairncdk.Props) (synth.Template, error) {
		props.Dist = dist
		result, err := synth.Stack(context, filepath.Join(dir, name), false, func(_ awscdk.App, stack awscdk.Stack) {
			cairncdk.NewCairn(stack, "Cairn", &props)
		})
		return result.Template, err
	}
	standard, err := make("standard", cairncdk.Props{})
	if err != nil {
		return "", err
	}
	walled, err := make("walled", cairncdk.Props{TenantRole: true})
	if err != nil {
		return "", err
	}
	return describe(standard, walled), nil
}
