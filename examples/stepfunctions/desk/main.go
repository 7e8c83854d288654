// Command desk is the worker of the document case: the Lambda function that the
// state machine calls to do what can be done now.
//
// It owns nothing: the machine took the case over and shows its fence. A call
// that is repeated, after a crash or beside another one, reads the case, finds
// what was done, and does the rest; letters that were sent are known by their
// provider key and not sent again.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

func main() {
	handle, err := open(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "desk:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// open reads the environment; it makes no call.
func open(ctx context.Context) (func(context.Context, json.RawMessage) (*answer, error), error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	functions, err := invoke.New(ctx, invoke.Options{Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	table := os.Getenv(stepfunctions.VarLetters)
	if table == "" {
		return nil, fmt.Errorf("%s is not set", stepfunctions.VarLetters)
	}
	door := &awslambda.Door{Lambda: functions, Names: stepfunctions.FunctionNames(os.Getenv)}
	outbox := &outbox{db: dynamodb.NewFromConfig(cfg), table: table, fused: os.Getenv(stepfunctions.VarFuse) != ""}
	return func(ctx context.Context, payload json.RawMessage) (*answer, error) {
		var o order
		if err := json.Unmarshal(payload, &o); err != nil || o.Tenant == "" || o.Execution == "" || o.Fence <= 0 {
			return nil, api.LambdaError(execution.Invalid("order", "needs tenant, execution and fence"), nil)
		}
		d := &desk{outbox: outbox, order: o,
			client: client.New(client.Options{Door: door, Tenant: o.Tenant, Actor: &api.Actor{Kind: "worker", ID: "desk"}})}
		a, err := d.work(ctx)
		if err != nil {
			// Step Functions retries and catches by this error's name.
			return nil, api.LambdaError(execution.AsError(err), nil)
		}
		return a, nil
	}, nil
}
