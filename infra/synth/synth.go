package synth

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Context takes the context values of a cdk.json. Without the CDK's command line
// nobody else reads them, and the feature flags among them decide what the CDK
// makes.
func Context(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w (run it from the directory of cdk.json)", err)
	}
	var config struct {
		Context map[string]any `json:"context"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config.Context, nil
}

// Placeholders makes dir a directory of functions that stand for the built ones
// where only the template matters.
func Placeholders(dir string, functions ...string) error {
	for _, name := range functions {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name, "bootstrap"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Result is what came of a stack: its template and the CDK's annotations,
// each "LEVEL: path: text".
type Result struct {
	Template
	Messages []string
}

// Stack makes a stack named Cairn in a new app with the given context and lets
// build fill it. outdir receives the CDK's files. With validate the CDK checks the
// template against its schemas and rules too, which takes seconds; it panics with
// a report where they do not hold.
func Stack(context map[string]any, outdir string, validate bool, build func(awscdk.App, awscdk.Stack)) (Result, error) {
	app := awscdk.NewApp(&awscdk.AppProps{
		Context: &context, Outdir: &outdir,
		AnalyticsReporting:              jsii.Bool(false),
		BuiltinCloudFormationValidation: &validate,
	})
	stack := awscdk.NewStack(app, jsii.String("Cairn"), nil)
	build(app, stack)
	artifact := app.Synth(nil).GetStackByName(jsii.String("Cairn"))
	text, err := os.ReadFile(*artifact.TemplateFullPath())
	if err != nil {
		return Result{}, err
	}
	result := Result{}
	if err := json.Unmarshal(text, &result.Template); err != nil {
		return Result{}, err
	}
	for _, m := range *artifact.Messages() {
		result.Messages = append(result.Messages, fmt.Sprintf("%s: %s: %v", m.Level, *m.Id, m.Entry.Data))
	}
	return result, nil
}
