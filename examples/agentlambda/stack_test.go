package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

var stack bool

// The stack is deployed once for all tests (make stack-test); each has a tenant
// of its own.
func TestMain(m *testing.M) {
	var err error
	if stack, err = deployed.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type office struct {
	*client.Client
	t         *testing.T
	functions *invoke.Client
	db        *dynamodb.Client
	tenant    execution.TenantID
	account   string
}

const id = execution.ExecutionID("complaint-1")

func newOffice(t *testing.T) *office {
	t.Helper()
	if !stack {
		t.Skip("SKIP: no CAIRN_STACK (make stack-test)")
	}
	t.Parallel()
	random := strconv.FormatUint(rand.Uint64(), 36)
	o := &office{t: t, tenant: execution.TenantID("shop-" + random), account: "account-" + random}
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err == nil {
		o.functions, err = invoke.New(t.Context(), invoke.Options{Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Getenv: os.Getenv})
	}
	if err != nil {
		t.Fatal(err)
	}
	o.db = dynamodb.NewFromConfig(cfg)
	o.Client = client.New(client.Options{Door: &awslambda.Door{Lambda: o.functions}, Tenant: o.tenant, Actor: &api.Actor{Kind: "system", ID: "front-office"}})
	agent := os.Getenv("CAIRN_EXAMPLE_AGENT")
	_, err = o.SetWorkflow(t.Context(), &api.SetWorkflowRequest{Workflow: api.Workflow{Name: "complaints", Schema: &api.Schema{Name: "complaint", Version: 1},
		ResumeTarget: &api.ResumeTarget{Kind: "lambda", ARN: "arn:aws:lambda:us-east-1:000000000000:function:" + agent}}})
	if err == nil {
		_, err = o.Create(t.Context(), &api.CreateRequest{Execution: id, Workflow: "complaints",
			State: client.JSON(memory{Complaint: complaint{Customer: "customer-" + random, Account: o.account, Cents: 1250}})})
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// agent invokes the agent's function once and waits for its answer.
func (o *office) agent(e event) (*report, error) {
	o.t.Helper()
	e.Tenant, e.Execution = o.tenant, id
	request, err := json.Marshal(e)
	if err != nil {
		o.t.Fatal(err)
	}
	answer, err := o.functions.Invoke(o.t.Context(), os.Getenv("CAIRN_EXAMPLE_AGENT"), "", request)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(answer, &r); err != nil {
		o.t.Fatalf("%s: %v", answer, err)
	}
	return &r, nil
}

// effects counts what really happened: the balance, the bookings and the notes.
func (o *office) effects() (cents string, bookings, notes int) {
	o.t.Helper()
	for _, pk := range []string{o.account, strings.Replace(o.account, "account", "customer", 1)} {
		out, err := o.db.Query(o.t.Context(), &dynamodb.QueryInput{TableName: aws.String(os.Getenv("CAIRN_EXAMPLE_ACCOUNTS")), ConsistentRead: aws.Bool(true),
			KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: map[string]types.AttributeValue{":p": text(pk)}})
		if err != nil {
			o.t.Fatal(err)
		}
		for _, it := range out.Items {
			switch sk := it["sk"].(*types.AttributeValueMemberS).Value; {
			case sk == "account":
				cents = it["cents"].(*types.AttributeValueMemberN).Value
			case strings.HasPrefix(sk, "booking#"):
				bookings++
			default:
				notes++
			}
		}
	}
	return cents, bookings, notes
}

// done checks the end: answered, and each effect exactly once.
func (o *office) done() {
	o.t.Helper()
	got, err := o.Get(o.t.Context(), &api.GetRequest{Execution: id})
	if err != nil {
		o.t.Fatal(err)
	}
	if got.Status != execution.StatusCompleted || string(got.Result.Bytes()) != `{"answer":"refunded"}` {
		o.t.Errorf("status %s, result %s", got.Status, got.Result)
	}
	if cents, bookings, notes := o.effects(); cents != "1250" || bookings != 1 || notes != 1 {
		o.t.Errorf("%s cents in %d bookings, %d notes", cents, bookings, notes)
	}
	for _, op := range got.Operations {
		if op.Outcome != execution.OutcomeSucceeded {
			o.t.Errorf("%s: %s", op.Name, op.Status)
		}
	}
}

func TestAgent(t *testing.T) {
	o := newOffice(t)
	r, err := o.agent(event{})
	if err != nil || r.Ending != client.Finished {
		t.Fatalf("%+v, %v", r, err)
	}
	o.done()
	if again, err := o.agent(event{}); err != nil || again.Ending != client.Closed {
		t.Errorf("again: %+v, %v", again, err)
	}
	o.done()
}

// The agent's process is killed at the worst moments. Its lease lapses, Cairn
// invokes the function again, and every effect is there once.
func TestAgentKilled(t *testing.T) {
	for _, moment := range []string{beforeCredit, afterCredit, afterNote} {
		t.Run(moment, func(t *testing.T) {
			o := newOffice(t)
			_, err := o.agent(event{DieAt: moment})
			var died *invoke.FunctionError
			if !errors.As(err, &died) || died.Refused() {
				t.Fatalf("it did not die: %v", err)
			}
			o.until(2*time.Minute, execution.StatusCompleted)
			o.done()
		})
	}
}

// until looks at what is due, as the schedule does every minute, until the
// execution has the status.
func (o *office) until(limit time.Duration, want execution.Status) {
	o.t.Helper()
	sweep := fmt.Sprintf(`{"action":"sweep","tenant":%q}`, o.tenant)
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		if _, err := o.functions.Invoke(o.t.Context(), api.Recover, "", []byte(sweep)); err != nil {
			o.t.Fatal(err)
		}
		got, err := o.Get(context.Background(), &api.GetRequest{Execution: id, Include: []string{}})
		if err != nil {
			o.t.Fatal(err)
		}
		if got.Status == want {
			return
		}
		if time.Now().After(end) {
			o.t.Fatalf("%s, not %s", got.Status, want)
		}
	}
}

// What the model wants is declared by kind: only effects are operations, and
// money moves only with its evidence.
func TestDeclare(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]execution.OnUncertain{creditAccount: execution.Close, sendNote: execution.SameKey} {
		if d := declare(call{Tool: tool, Args: json.RawMessage(`{}`)}); d == nil || d.OnUncertain != want {
			t.Errorf("%s: %+v", tool, d)
		}
	}
	for _, tool := range []string{checkAccount, "invented"} {
		if d := declare(call{Tool: tool, Args: json.RawMessage(`{}`)}); d != nil {
			t.Errorf("%s: %+v", tool, d)
		}
	}
}
