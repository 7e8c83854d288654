package aws

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
)

// Kinds of resume targets.
const (
	StateMachine = "state_machine"
	Lambda       = "lambda"
	EventBus     = "event_bus"
)

// Source and DetailType are of the event that an event bus gets.
const (
	Source     = "cairn"
	DetailType = "cairn.handover"
)

// Functions calls Lambda functions and waits for their answer. Safe for
// concurrent use.
type Functions struct{ client *lambda.Client }

// NewFunctions makes the caller; it makes no call.
func NewFunctions(cfg aws.Config) *Functions { return &Functions{lambda.NewFromConfig(cfg)} }

var (
	_ recovery.Resolver = (*Functions)(nil)
	_ recovery.Migrator = (*Functions)(nil)
	_ recovery.Target   = (*Targets)(nil)
)

// Ask implements recovery.Resolver: the question is the payload, the answer the
// function's reply.
func (f *Functions) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	body, err := q.JSON()
	if err != nil {
		return recovery.Answer{}, err
	}
	out, err := f.call(ctx, q.Config.Target, body)
	return recovery.Answer{JSON: out}, err
}

// Migrate implements recovery.Migrator.
func (f *Functions) Migrate(ctx context.Context, function string, question []byte) ([]byte, error) {
	return f.call(ctx, function, question)
}

func (f *Functions) call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	out, err := f.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, Payload: payload})
	if err != nil {
		return nil, failed(ctx, "lambda", err)
	}
	if out.FunctionError != nil {
		return nil, errors.New("aws: the function failed")
	}
	return out.Payload, nil
}

// Targets starts resume targets. Safe for concurrent use.
type Targets struct {
	machines  *sfn.Client
	functions *lambda.Client
	buses     *eventbridge.Client
}

// NewTargets makes the starter; it makes no call.
func NewTargets(cfg aws.Config) *Targets {
	return &Targets{sfn.NewFromConfig(cfg), lambda.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg)}
}

// Start implements recovery.Target.
func (t *Targets) Start(ctx context.Context, h recovery.Handover) (recovery.StartOutcome, error) {
	input := string(h.Input)
	switch h.Kind {
	case StateMachine:
		_, err := t.machines.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &h.ARN, Name: &h.Name, Input: &input})
		var exists *sfntypes.ExecutionAlreadyExists
		if errors.As(err, &exists) {
			return recovery.Existed, nil
		}
		return started(ctx, "states", err)
	case Lambda:
		_, err := t.functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &h.ARN, InvocationType: types.InvocationTypeEvent, Payload: h.Input})
		return started(ctx, "lambda", err)
	case EventBus:
		source, detailType := Source, DetailType
		out, err := t.buses.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{EventBusName: &h.ARN, Source: &source, DetailType: &detailType, Detail: &input}}})
		if err == nil && out.FailedEntryCount > 0 {
			return "", errors.New("aws: the event bus refused the event")
		}
		return started(ctx, "events", err)
	}
	return "", fmt.Errorf("aws: no resume target of kind %s can be reached from here", h.Kind)
}

// AnswerToken implements recovery.Target.
func (t *Targets) AnswerToken(ctx context.Context, token string, input []byte) (recovery.StartOutcome, error) {
	output := string(input)
	_, err := t.machines.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: &output})
	var (
		gone    *sfntypes.TaskDoesNotExist
		late    *sfntypes.TaskTimedOut
		unknown *sfntypes.InvalidToken
	)
	if errors.As(err, &gone) || errors.As(err, &late) || errors.As(err, &unknown) {
		return recovery.Gone, nil
	}
	return started(ctx, "states", err)
}

func started(ctx context.Context, service string, err error) (recovery.StartOutcome, error) {
	if err != nil {
		return "", failed(ctx, service, err)
	}
	return recovery.Started, nil
}

// failed says which service failed how, by its code: an SDK error's own text may
// hold the request.
func failed(ctx context.Context, service string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api smithy.APIError
	code := "no answer"
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return fmt.Errorf("aws: %s: %s", service, code)
}

// Publish gives a function that publishes events to operators on a bus (name or
// ARN).
func Publish(cfg aws.Config, bus string) func(ctx context.Context, detailType string, detail []byte) error {
	client := eventbridge.NewFromConfig(cfg)
	return func(ctx context.Context, detailType string, detail []byte) error {
		source, text := Source, string(detail)
		out, err := client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{EventBusName: &bus, Source: &source, DetailType: &detailType, Detail: &text}}})
		if err != nil {
			return failed(ctx, "events", err)
		}
		if out.FailedEntryCount > 0 {
			return execution.Errorf(execution.Unavailable, "the event bus refused the event")
		}
		return nil
	}
}
