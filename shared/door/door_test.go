package door_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func invoked(qualifier string) context.Context {
	arn := "arn:aws:lambda:us-east-1:000000000000:function:recover"
	if qualifier != "" {
		arn += ":" + qualifier
	}
	return lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{InvokedFunctionArn: arn})
}

const halt = `{"action":"halt","tenant":"a.b","execution":"e1","reason":"r"}`

func TestDoor(t *testing.T) {
	t.Parallel()
	engine := memory.New(memory.Options{})
	table := store.Metered(engine.Table(memory.Main))
	var log strings.Builder
	calls := 0
	answer := func(ctx context.Context, r *api.HaltRequest) (*api.HaltReply, error) {
		calls++
		if r.Reason == "panic" {
			panic("secret-value")
		}
		if _, _, err := table.Get(ctx, store.Get{Key: store.Key{PK: "x", SK: "y"}, Consistent: true}); err != nil {
			return nil, err
		}
		switch r.Reason {
		case "held":
			return nil, execution.Errorf(execution.LeaseHeld, "held").With("retry_after_ms", 7)
		case "strange":
			return nil, errors.New("secret-value")
		}
		return &api.HaltReply{Standing: api.Standing{Execution: r.Execution, Status: execution.StatusHalted}}, nil
	}
	events := 0
	h := door.Invoke(api.Recover, door.Verbs{"halt": door.Verb(answer)}, door.Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Stream: func(_ context.Context, records []json.RawMessage) api.BatchReply {
			events++
			out := api.BatchReply{Failures: []api.BatchFailure{}}
			for _, r := range records {
				out.Failures = append(out.Failures, api.BatchFailure{Item: string(r)})
			}
			return out
		},
		Sweep: func(_ context.Context, r *api.SweepRequest) (*api.SweepReply, error) {
			if events++; r.Limit != execution.MaxListLimit || r.Tenant != "" {
				t.Errorf("the schedule's sweep: %+v", r)
			}
			return &api.SweepReply{HandedOver: 3}, nil
		}})
	for _, c := range []struct {
		name, qualifier, payload string
		code                     execution.Code
		calls, events            int
	}{
		{"plain name", "", halt, "", 1, 0},
		{"its own alias", "t-a_2eb", halt, "", 1, 0},
		{"another's alias", "t-a", halt, execution.InvalidRequest, 0, 0},
		{"an alias that is no tenant's", "live", halt, "", 1, 0},
		{"a sweep of all tenants through an alias", "t-a", `{"action":"sweep"}`, execution.InvalidRequest, 0, 0},
		{"no JSON", "", `nope`, execution.InvalidRequest, 0, 0},
		{"an action that is not served", "", `{"action":"sweep"}`, execution.InvalidRequest, 0, 0},
		{"a refusal", "", strings.Replace(halt, `"r"`, `"held"`, 1), execution.LeaseHeld, 1, 0},
		{"an error without a code", "", strings.Replace(halt, `"r"`, `"strange"`, 1), execution.Internal, 1, 0},
		{"a panic", "", strings.Replace(halt, `"r"`, `"panic"`, 1), execution.Internal, 1, 0},
		{"a batch", "", `{"Records":[]}`, "", 0, 1},
		{"a batch through an alias", "t-a", `{"Records":[]}`, execution.InvalidRequest, 0, 0},
		{"the schedule", "", `{"source":"cairn.schedule"}`, "", 0, 1},
		{"the schedule's default event", "", `{"source":"aws.events","detail-type":"Scheduled Event"}`, "", 0, 1},
		{"the schedule through an alias", "t-a", `{"source":"cairn.schedule"}`, execution.InvalidRequest, 0, 0},
		{"another event", "", `{"source":"aws.s3"}`, execution.InvalidRequest, 0, 0},
		{"a request with a source", "", strings.Replace(halt, "{", `{"source":"cairn.schedule",`, 1), execution.InvalidRequest, 0, 0},
	} {
		calls, events = 0, 0
		reply, err := h(invoked(c.qualifier), []byte(c.payload))
		if calls != c.calls || events != c.events {
			t.Errorf("%s: %d calls, %d events", c.name, calls, events)
		}
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if c.events == 0 && !strings.Contains(string(reply), `"reads":1`) {
				t.Errorf("%s: no cost: %s", c.name, reply)
			}
			continue
		}
		le, ok := err.(messages.InvokeResponse_Error)
		var facts map[string]any
		if !ok || le.Type != string(c.code) || json.Unmarshal([]byte(le.Message), &facts) != nil || facts["code"] != string(c.code) || facts["cost"] == nil {
			t.Errorf("%s: %#v", c.name, err)
		}
		if strings.Contains(le.Message, "secret-value") {
			t.Errorf("%s: shows the cause", c.name)
		}
	}
	if strings.Contains(log.String(), "secret-value") || !strings.Contains(log.String(), "door_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

// What a function does not take is no event there, and what is answered is what
// Lambda and the schedule expect.
func TestEvents(t *testing.T) {
	t.Parallel()
	stream := func(context.Context, []json.RawMessage) api.BatchReply {
		return api.BatchReply{Failures: []api.BatchFailure{{Item: "7"}}}
	}
	sweep := func(context.Context, *api.SweepRequest) (*api.SweepReply, error) {
		return nil, execution.Errorf(execution.Throttled, "slow")
	}
	for name, c := range map[string]struct {
		options door.Options
		payload string
		reply   string
		code    execution.Code
	}{
		"a batch":              {door.Options{Stream: stream}, `{"Records":[{}]}`, `{"batchItemFailures":[{"itemIdentifier":"7"}]}`, ""},
		"no batches here":      {door.Options{Sweep: sweep}, `{"Records":[{}]}`, "", execution.InvalidRequest},
		"a sweep that fails":   {door.Options{Sweep: sweep}, `{"source":"aws.scheduler"}`, "", execution.Throttled},
		"no sweeps here":       {door.Options{Stream: stream}, `{"source":"aws.scheduler"}`, "", execution.InvalidRequest},
		"records that are not": {door.Options{Stream: stream}, `{"Records":7}`, "", execution.InvalidRequest},
	} {
		reply, err := door.Invoke(api.Recover, door.Verbs{}, c.options)(invoked(""), []byte(c.payload))
		var le messages.InvokeResponse_Error
		if errors.As(err, &le); string(reply) != c.reply || le.Type != string(c.code) {
			t.Errorf("%s: %s, %v", name, reply, err)
		}
	}
}
