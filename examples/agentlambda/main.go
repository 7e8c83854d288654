package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
	"github.com/cairnstate/cairn/shared/seal"
)

// Variables of the function besides Cairn's own (package shared/config).
const (
	varAccounts = "CAIRN_EXAMPLE_ACCOUNTS" // the bank's table
	varFuse     = "CAIRN_EXAMPLE_FUSE"     // not empty: an event may have the process die
)

// event is a hand-over of Cairn's, or a first start without version and cause.
type event struct {
	Tenant    execution.TenantID    `json:"tenant"`
	Execution execution.ExecutionID `json:"execution"`
	Version   int64                 `json:"version"`
	Cause     string                `json:"cause"`
	DieAt     string                `json:"die_at"` // demonstrations only
}

// report is what the function answers.
type report struct {
	Ending  client.Ending    `json:"ending"`
	Version int64            `json:"version"`
	Status  execution.Status `json:"status"`
}

// lease is how long a dead agent keeps others waiting. Progress renews it.
const lease = 10 * time.Second

func main() {
	handle, err := open(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// open reads the environment; it makes no call.
func open(ctx context.Context) (func(context.Context, json.RawMessage) (*report, error), error) {
	c, err := config.Load(os.Getenv)
	if err != nil {
		return nil, err
	}
	accounts := os.Getenv(varAccounts)
	if accounts == "" {
		return nil, fmt.Errorf("%s is not set", varAccounts)
	}
	cfg := c.Lambda(os.Getenv)
	stores := c.Stores(cfg)
	functions, err := invoke.New(ctx, invoke.Options{Endpoint: c.Endpoint, Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	door := &awslambda.Door{Lambda: functions, Names: map[string]string{api.Checkpoint: os.Getenv("CAIRN_CHECKPOINT"), api.Recover: os.Getenv("CAIRN_RECOVER")}}
	business := bank{db: dynamodb.NewFromConfig(cfg), table: accounts, cairn: c.Table,
		sealer: seal.New(seal.Options{Keys: stores.Keys, KMS: stores.KMS, KeyID: c.DataKey, Now: time.Now})}
	fused := os.Getenv(varFuse) != ""
	return func(ctx context.Context, payload json.RawMessage) (*report, error) {
		var e event
		if err := json.Unmarshal(payload, &e); err != nil || e.Tenant == "" || e.Execution == "" {
			return nil, api.LambdaError(execution.Invalid("event", "needs tenant and execution"), nil)
		}
		b := business
		if fused {
			b.dieAt = e.DieAt
		}
		a := &agent{model: script, bank: &b}
		cl := client.New(client.Options{Door: door, Tenant: e.Tenant, Actor: &api.Actor{Kind: "worker", ID: "complaints"}})
		result, err := cl.Drive(ctx, e.Execution, client.DriveOptions{Lease: lease, ExpectedVersion: e.Version, FilledByTool: []string{creditAccount}}, a.work)
		if err != nil {
			return nil, api.LambdaError(execution.AsError(err), nil)
		}
		return &report{Ending: result.Ending, Version: result.Version, Status: result.Status}, nil
	}, nil
}
