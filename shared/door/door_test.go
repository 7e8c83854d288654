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
		Event: func(_ context.Context, p []byte) ([]byte, bool, error) {
			if strings.Contains(string(p), "Records") {
				events++
				return []byte(`{}`), true, nil
			}
			return nil, false, nil
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
		{"an event", "", `{"Records":[]}`, "", 0, 1},
		{"an event through an alias", "t-a", `{"Records":[]}`, execution.InvalidRequest, 0, 0},
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
