// Command infra is the CDK app: one stack with one Cairn in it. It is what
// `cdk synth` and `cdk deploy` run, and works without the CDK's command line too
// (`go run ./infra` from the directory of cdk.json writes cdk.out).
//
// Settings are context values, in cdk.json or as `-c cairn:<name>=<value>`;
// settings.go lists them. To put Cairn into an app of your own use the construct
// in package cairncdk instead.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/examplecdk"
	"github.com/cairnstate/cairn/infra/synth"
)

func main() {
	defer jsii.Close()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		jsii.Close()
		os.Exit(1)
	}
}

func run() error {
	context, err := synth.Context("cdk.json")
	if err != nil {
		return err
	}
	props := &awscdk.AppProps{Context: &context, AnalyticsReporting: jsii.Bool(false)}
	if os.Getenv("CDK_OUTDIR") == "" {
		props.Outdir = jsii.String("cdk.out")
	}
	app := awscdk.NewApp(props)
	// What the command line gives with -c outranks the file, so ask the app.
	merged, _ := app.Node().GetAllContext(nil).(map[string]any)
	settings, err := parseSettings(merged)
	if err != nil {
		return err
	}
	stack := awscdk.NewStack(app, jsii.String(settings.stackName), &awscdk.StackProps{
		Description: jsii.String("Cairn: durable state for agent executions"),
		Env:         environment(settings),
	})
	cairnProps := settings.props(stack)
	if settings.examples {
		addExamples(stack, settings, cairnProps)
	} else {
		cairncdk.NewCairn(stack, "Cairn", cairnProps)
	}
	app.Synth(nil)
	return nil
}

// demoLease is short, so that nobody who looks on waits for a dead worker's.
const demoLease = 15

// addExamples makes Cairn and the examples that it may start.
func addExamples(stack awscdk.Stack, s settings, props *cairncdk.Props) {
	prefix := "cairn-"
	if props.FunctionPrefix != nil {
		prefix = *props.FunctionPrefix
	}
	targets := examplecdk.Targets(stack, prefix)
	props.Targets.StateMachines = append(props.Targets.StateMachines, targets.StateMachines...)
	props.Targets.Functions = append(props.Targets.Functions, targets.Functions...)
	cairn := cairncdk.NewCairn(stack, "Cairn", props)
	lease := 0
	if s.fused {
		lease = demoLease
	}
	examplecdk.New(stack, "Example", cairn, examplecdk.Props{
		Dist: props.Dist, Architecture: props.Architecture, Prefix: prefix, Fuse: s.fused, LeaseSeconds: lease, RemovalPolicy: props.RemovalPolicy,
	})
}

// environment is the account and region of the command line, needed to look a
// network up; without one the template fits every account and region.
func environment(s settings) *awscdk.Environment {
	account, region := os.Getenv("CDK_DEFAULT_ACCOUNT"), os.Getenv("CDK_DEFAULT_REGION")
	if s.vpcID == "" || account == "" || region == "" {
		return nil
	}
	return &awscdk.Environment{Account: &account, Region: &region}
}
