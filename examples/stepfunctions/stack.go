package stepfunctions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// Variables that say where a deployed example is (localstack/deploy.sh writes
// them to .local/stack.env).
const (
	VarMachine = "CAIRN_EXAMPLE_MACHINE" // the state machine's ARN
	VarLetters = "CAIRN_EXAMPLE_LETTERS" // the outbox's table
	VarFuse    = "CAIRN_EXAMPLE_FUSE"    // of the desk: not empty lets fuses kill it
)

// Workflow is the name of the case's workflow.
const Workflow = "document-case"

// Fuse is the sort key of a fuse in the outbox.
const Fuse = "#fuse"

// LettersOf is the outbox's partition of a case.
func LettersOf(t execution.TenantID, e execution.ExecutionID) string {
	return string(t) + "#" + string(e)
}

// FunctionNames are the deployed names of Cairn's functions.
func FunctionNames(getenv func(string) string) map[string]string {
	names := map[string]string{}
	for function, variable := range map[string]string{api.Checkpoint: "CAIRN_CHECKPOINT", api.Recover: "CAIRN_RECOVER", api.Retention: "CAIRN_RETENTION"} {
		if name := getenv(variable); name != "" {
			names[function] = name
		}
	}
	return names
}

// Bank is a tenant of a deployed example: what its front office can do.
type Bank struct {
	*client.Client
	door             *awslambda.Door
	machines         *sfn.Client
	db               *dynamodb.Client
	machine, letters string
}

// Open finds the deployed example by the environment and registers the machine
// as the resume target of the tenant's cases.
func Open(ctx context.Context, getenv func(string) string, tenant execution.TenantID) (*Bank, error) {
	b := &Bank{machine: getenv(VarMachine), letters: getenv(VarLetters)}
	if b.machine == "" || b.letters == "" {
		return nil, fmt.Errorf("%s or %s is not set: make local-deploy", VarMachine, VarLetters)
	}
	var opts []func(*awsconfig.LoadOptions) error
	if endpoint := getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		opts = append(opts, awsconfig.WithBaseEndpoint(endpoint))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, err
	}
	functions, err := invoke.New(ctx, invoke.Options{Endpoint: getenv("AWS_ENDPOINT_URL"), Getenv: getenv})
	if err != nil {
		return nil, err
	}
	b.machines, b.db = sfn.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	b.door = &awslambda.Door{Lambda: functions, Names: FunctionNames(getenv)}
	b.Client = client.New(client.Options{Door: b.door, Tenant: tenant, Actor: &api.Actor{Kind: "system", ID: "front-office"}})
	_, err = b.SetWorkflow(ctx, &api.SetWorkflowRequest{Workflow: api.Workflow{Name: Workflow, Schema: &api.Schema{Name: Workflow, Version: 1},
		ResumeTarget: &api.ResumeTarget{Kind: "state_machine", ARN: b.machine}}})
	return b, err
}

// Case is what a customer is asked for.
type Case struct {
	Customer           string   `json:"customer"`
	Email              string   `json:"email"`
	Wanted             []string `json:"wanted"`
	RemindAfterSeconds int      `json:"remind_after_seconds"`
}

// Start starts a machine for a new case and gives its ARN.
func (b *Bank) Start(ctx context.Context, id execution.ExecutionID, c Case) (string, error) {
	input, err := json.Marshal(map[string]any{"tenant": b.Tenant(), "execution": id, "case": c})
	if err != nil {
		return "", err
	}
	out, err := b.machines.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &b.machine, Input: aws.String(string(input))})
	if err != nil {
		return "", err
	}
	return *out.ExecutionArn, nil
}

// Stop stops a machine, as an operator would.
func (b *Bank) Stop(ctx context.Context, machine string) error {
	_, err := b.machines.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &machine})
	return err
}

// Upload is the customer's: a document of so many pages has come.
func (b *Bank) Upload(ctx context.Context, id execution.ExecutionID, document string, pages int) error {
	_, err := b.Signal(ctx, &api.SignalRequest{Execution: id, Name: "upload", Key: document, Body: client.JSON(map[string]int{"pages": pages})})
	return err
}

// Sweep looks at what is due of the tenant's, as the schedule does every minute
// for all.
func (b *Bank) Sweep(ctx context.Context) error {
	request, err := json.Marshal(map[string]any{"action": "sweep", "tenant": b.Tenant()})
	if err == nil {
		_, err = b.door.Invoke(ctx, api.Recover, request)
	}
	return err
}

// LayFuse has the desk die once, right after it sent a letter of the case.
func (b *Bank) LayFuse(ctx context.Context, id execution.ExecutionID) error {
	_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.letters, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: LettersOf(b.Tenant(), id)}, "sk": &types.AttributeValueMemberS{Value: Fuse}}})
	return err
}

// Letters counts what was really sent for a case, by kind and subject.
func (b *Bank) Letters(ctx context.Context, id execution.ExecutionID) (map[string]int, error) {
	sent := map[string]int{}
	pages := dynamodb.NewQueryPaginator(b.db, &dynamodb.QueryInput{TableName: &b.letters, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :c"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": &types.AttributeValueMemberS{Value: LettersOf(b.Tenant(), id)}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			kind, _ := it["kind"].(*types.AttributeValueMemberS)
			about, _ := it["about"].(*types.AttributeValueMemberS)
			if kind != nil && about != nil {
				sent[kind.Value+" "+about.Value]++
			}
		}
	}
	return sent, nil
}

// Machine is one execution of the state machine.
type Machine struct {
	ARN, Name, Status, Output string
	Started                   time.Time
	Input                     struct {
		Tenant    execution.TenantID    `json:"tenant"`
		Execution execution.ExecutionID `json:"execution"`
		Cause     string                `json:"cause"`
		Version   int64                 `json:"version"`
	}
}

// Ended reports that a machine does nothing more.
func (m *Machine) Ended() bool { return m.Status != string(sfntypes.ExecutionStatusRunning) }

// Machines are those that ever ran for a case, oldest first.
func (b *Bank) Machines(ctx context.Context, id execution.ExecutionID) ([]*Machine, error) {
	var all []*Machine
	pages := sfn.NewListExecutionsPaginator(b.machines, &sfn.ListExecutionsInput{StateMachineArn: &b.machine})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Executions {
			m, err := b.Machine(ctx, *e.ExecutionArn)
			if err != nil {
				return nil, err
			}
			if m.Input.Tenant == b.Tenant() && m.Input.Execution == id {
				all = append([]*Machine{m}, all...)
			}
		}
	}
	return all, nil
}

// Machine describes one.
func (b *Bank) Machine(ctx context.Context, arn string) (*Machine, error) {
	d, err := b.machines.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		return nil, err
	}
	m := &Machine{ARN: arn, Name: aws.ToString(d.Name), Status: string(d.Status), Output: aws.ToString(d.Output), Started: aws.ToTime(d.StartDate)}
	if err := json.Unmarshal([]byte(aws.ToString(d.Input)), &m.Input); err != nil {
		return nil, fmt.Errorf("machine %s: input: %w", m.Name, err)
	}
	return m, nil
}

// Event is one thing that a machine did.
type Event struct {
	At    time.Time
	Type  string
	State string // entered or left; "": the event is none of that
	Error string // of a task that failed, by name
	Bytes int    // of the event's input or output
}

// Events are a machine's history, oldest first.
func (b *Bank) Events(ctx context.Context, machine string) ([]Event, error) {
	var all []Event
	pages := sfn.NewGetExecutionHistoryPaginator(b.machines, &sfn.GetExecutionHistoryInput{ExecutionArn: &machine, IncludeExecutionData: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			all = append(all, eventOf(e))
		}
	}
	return all, nil
}

func eventOf(e sfntypes.HistoryEvent) Event {
	out := Event{At: aws.ToTime(e.Timestamp), Type: string(e.Type)}
	switch {
	case e.StateEnteredEventDetails != nil:
		out.State, out.Bytes = aws.ToString(e.StateEnteredEventDetails.Name), len(aws.ToString(e.StateEnteredEventDetails.Input))
	case e.StateExitedEventDetails != nil:
		out.State, out.Bytes = aws.ToString(e.StateExitedEventDetails.Name), len(aws.ToString(e.StateExitedEventDetails.Output))
	case e.TaskSucceededEventDetails != nil:
		out.Bytes = len(aws.ToString(e.TaskSucceededEventDetails.Output))
	case e.TaskFailedEventDetails != nil:
		out.Error = aws.ToString(e.TaskFailedEventDetails.Error)
	}
	return out
}
