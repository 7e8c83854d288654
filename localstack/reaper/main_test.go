package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

var stack bool

func TestMain(m *testing.M) {
	var err error
	if stack, err = deployed.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A timer whose time has come is removed, the stream tells the recover function,
// and that starts a machine; one that is not due stays.
func TestTimersRing(t *testing.T) {
	if !stack {
		t.Skip("SKIP: no CAIRN_STACK (make stack-test)")
	}
	ctx := t.Context()
	bank, err := stepfunctions.Open(ctx, os.Getenv, execution.TenantID("reaped-"+strconv.FormatUint(rand.Uint64(), 36)))
	if err != nil {
		t.Fatal(err)
	}
	const id = execution.ExecutionID("case-1")
	made, err := bank.Create(ctx, &api.CreateRequest{Execution: id, Workflow: stepfunctions.Workflow, Claim: &api.CreateClaim{Owner: "w", LeaseSeconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	until := api.Time(time.Now().Add(2 * time.Second).UnixMilli())
	if _, err := bank.Suspend(ctx, &api.SuspendRequest{Changes: api.Changes{Execution: id, ExpectedVersion: made.Version, Fence: made.Fence}, Wait: &api.Wait{Until: &until}}); err != nil {
		t.Fatal(err)
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := &reaper{dynamodb.NewFromConfig(cfg), os.Getenv("CAIRN_TABLE")}
	now := time.Now()
	pk := execution.PartitionKey(bank.Tenant(), id)
	for name, at := range map[string]time.Time{"wake": now, "reconcile": now.Add(time.Hour)} {
		it := journal.TimerItem(execution.Ref{Tenant: bank.Tenant(), Execution: id, Generation: made.Generation}, name, at.UnixMilli())
		if _, err := r.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &r.table, Item: attributes(it)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Until(now.Add(3 * time.Second)))
	if n, err := r.reap(ctx, time.Now()); err != nil || n < 1 {
		t.Fatalf("%d, %v", n, err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		machines, err := bank.Machines(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if len(machines) > 0 {
			if machines[0].Input.Cause != "until" {
				t.Errorf("cause %s", machines[0].Input.Cause)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody was started")
		}
	}
	out, err := r.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: attributes(store.Item{store.AttrPK: store.S(pk), store.AttrSK: store.S("timer#reconcile")})})
	if err != nil || out.Item == nil {
		t.Errorf("what is not due yet: %v, %v", out, err)
	}
}

func attributes(it store.Item) map[string]types.AttributeValue {
	out := map[string]types.AttributeValue{}
	for name, v := range it {
		if v.Kind == store.KindN {
			out[name] = &types.AttributeValueMemberN{Value: v.S}
		} else {
			out[name] = &types.AttributeValueMemberS{Value: v.S}
		}
	}
	return out
}
