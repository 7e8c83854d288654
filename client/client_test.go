package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// noWait lets backoff take no time and notes it.
type noWait struct {
	*fakeClock
	waits []time.Duration
}

func (c *noWait) Sleep(ctx context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	return ctx.Err()
}

// A repeat is the very same bytes, whatever made it necessary, and happens for
// what heals by itself only.
func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		name   string
		fails  []error
		calls  int
		result error
	}{
		{"no failure", nil, 1, nil},
		{"transport", []error{errors.New("reset"), io.ErrUnexpectedEOF}, 3, nil},
		{"throttled", []error{code(execution.Throttled)}, 2, nil},
		{"unavailable", []error{code(execution.Unavailable), code(execution.Unavailable)}, 3, nil},
		{"key unavailable", []error{code(execution.KeyUnavailable)}, 2, nil},
		{"internal", []error{code(execution.Internal)}, 2, nil},
		{"for ever", repeat(code(execution.Unavailable), 99), 8, execution.Unavailable},
		{"transport for ever", repeat(errors.New("reset"), 99), 8, execution.Unavailable},
		{"another worker", []error{code(execution.LeaseHeld)}, 1, execution.LeaseHeld},
		{"conflict", []error{code(execution.VersionConflict)}, 1, execution.VersionConflict},
		{"conflict after unknown", []error{errors.New("reset"), code(execution.VersionConflict)}, 2, execution.VersionConflict},
		{"invalid", []error{code(execution.InvalidRequest)}, 1, execution.InvalidRequest},
		{"a code of a newer version", []error{code("Novel")}, 1, execution.Code("Novel")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			door := &fakeDoor{t: t, answer: func(n int, _ call) (any, error) {
				if n <= len(c.fails) {
					return nil, c.fails[n-1]
				}
				return &api.ClaimReply{}, nil
			}}
			cl := New(Options{Door: door, Tenant: "t", Rand: seeded(1), Clock: &noWait{fakeClock: newFakeClock()}})
			_, err := cl.Claim(t.Context(), &api.ClaimRequest{Claiming: api.Claiming{Execution: "e", Owner: "w", LeaseSeconds: 30}})
			if !errors.Is(err, c.result) {
				t.Fatalf("got %v, want %v", err, c.result)
			}
			var e *execution.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%v is no *execution.Error", err)
			}
			calls := door.seen()
			if len(calls) != c.calls {
				t.Fatalf("%d calls, want %d", len(calls), c.calls)
			}
			for _, other := range calls {
				if !bytes.Equal(other.payload, calls[0].payload) {
					t.Errorf("a repeat has other bytes: %s, %s", calls[0].payload, other.payload)
				}
			}
			if r := calls[0].request.(*api.ClaimRequest); r.Nonce == "" || r.Tenant != "t" {
				t.Errorf("sent %s", calls[0].payload)
			}
		})
	}
}

func repeat(err error, n int) []error {
	list := make([]error, n)
	for i := range list {
		list[i] = err
	}
	return list
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	clock := &noWait{fakeClock: newFakeClock()}
	door := &fakeDoor{t: t, answer: func(n int, _ call) (any, error) {
		if n == 3 {
			return nil, code(execution.Throttled).With("retry_after_ms", int64(7000))
		}
		return nil, code(execution.Throttled)
	}}
	cl := New(Options{Door: door, Tenant: "t", Rand: seeded(2), Clock: clock, Attempts: 12})
	if _, err := cl.Keys(t.Context(), &api.KeysRequest{}); !errors.Is(err, execution.Throttled) {
		t.Fatal(err)
	}
	if len(clock.waits) != 11 {
		t.Fatalf("%d waits", len(clock.waits))
	}
	for i, d := range clock.waits {
		full := min(firstPause<<i, maxPause)
		if i == 2 {
			if d != 7*time.Second {
				t.Errorf("wait %d is %v: retry_after_ms not honoured", i, d)
			}
		} else if d < full/2 || d > full {
			t.Errorf("wait %d is %v, not within (%v, %v)", i, d, full/2, full)
		}
	}
}

func TestContextEndsRepeats(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	door := &fakeDoor{t: t, answer: func(n int, _ call) (any, error) {
		if n == 2 {
			cancel()
		}
		return nil, errors.New("reset")
	}}
	cl := New(Options{Door: door, Tenant: "t", Clock: &noWait{fakeClock: newFakeClock()}})
	_, err := cl.Get(ctx, &api.GetRequest{Execution: "e"})
	if !errors.Is(err, execution.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := len(door.seen()); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// Every writing verb is recognisable when it is repeated, and two logical calls
// are never the same request.
func TestIdentities(t *testing.T) {
	t.Parallel()
	cl := New(Options{Door: Functions{}, Tenant: "t", Actor: &api.Actor{Kind: "worker", ID: "w"}})
	natural := map[string]bool{"renew": true, "signal": true, "record_outcome": true}
	for _, v := range api.Verbs {
		req := v.New()
		if err := cl.complete(v.Function, req); err != nil {
			t.Fatal(err)
		}
		c := api.CommonOf(req)
		if c.Tenant != "t" {
			t.Errorf("%s: no tenant", v.Action)
		}
		if (c.Actor == nil) != v.ReadOnly {
			t.Errorf("%s: actor %v", v.Action, c.Actor)
		}
		nonce := reflect.ValueOf(req).Elem().FieldByName("Nonce")
		id := c.RequestID
		if nonce.IsValid() {
			id = nonce.String()
		}
		if (id == "") != (v.ReadOnly || natural[v.Action]) {
			t.Errorf("%s: identity %q", v.Action, id)
		}
		other := v.New()
		if err := cl.complete(v.Function, other); err != nil {
			t.Fatal(err)
		}
		if id != "" && reflect.DeepEqual(req, other) {
			t.Errorf("%s: two calls have one identity", v.Action)
		}
	}
	owned := &api.ApplyRequest{Changes: api.Changes{Execution: "e", ExpectedVersion: 1, Fence: 1}}
	if err := cl.complete(api.Checkpoint, owned); err != nil || owned.RequestID != "" {
		t.Errorf("a step under a fence: request_id %q, %v", owned.RequestID, err)
	}
}

func TestRequestStaysTheCallers(t *testing.T) {
	t.Parallel()
	door := &fakeDoor{t: t, answer: func(int, call) (any, error) { return &api.CreateReply{Generation: 5}, nil }}
	req := &api.CreateRequest{Execution: "e", Workflow: "w"}
	got, err := New(Options{Door: door, Tenant: "t"}).Create(t.Context(), req)
	if err != nil || got.Generation != 5 {
		t.Fatal(got, err)
	}
	if req.RequestID != "" || req.Tenant != "" {
		t.Error("the caller's request was changed")
	}
}

func TestHTTPDoor(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		failed  bool
		body    string
		code    execution.Code
		unknown bool
	}{
		{"reply", 200, false, `{"version":4}`, "", false},
		{"refusal", 200, true, `{"errorType":"LeaseLost","errorMessage":"{\"code\":\"LeaseLost\",\"message\":\"m\",\"retryable\":false,\"fence\":12}"}`, execution.LeaseLost, false},
		{"crash", 200, true, `{"errorType":"Runtime.ExitError","errorMessage":"RequestId: 1 Error"}`, execution.Unavailable, false},
		{"nonsense as an error", 200, true, `<html>`, execution.Unavailable, false},
		{"no function", 404, false, `{}`, execution.InvalidRequest, false},
		{"forbidden", 403, false, `{}`, execution.InvalidRequest, false},
		{"too large", 413, false, `{}`, execution.TooLarge, false},
		{"throttled", 429, false, `{}`, execution.Throttled, false},
		{"trouble", 502, false, `bad gateway`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.String() != "/2015-03-31/functions/checkpoint/invocations?Qualifier=t-a" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				if c.failed {
					w.Header().Set("X-Amz-Function-Error", "Unhandled")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			body, err := HTTP{URL: server.URL + "/", Alias: "t-a"}.Invoke(t.Context(), api.Checkpoint, []byte(`{}`))
			var e *execution.Error
			switch known := errors.As(err, &e); {
			case c.unknown:
				if err == nil || known {
					t.Errorf("got %v", err)
				}
			case c.code == "":
				if err != nil || string(body) != c.body {
					t.Errorf("got %s, %v", body, err)
				}
			case !known || e.Code != c.code:
				t.Errorf("got %v", err)
			case c.code == execution.LeaseLost && e.Facts["fence"] != int64(12):
				t.Errorf("facts %v", e.Facts)
			}
		})
	}
}

// A handler's error reads as over the wire.
func TestFunctionsDoor(t *testing.T) {
	t.Parallel()
	door := Functions{"checkpoint": func(context.Context, []byte) ([]byte, error) {
		v := api.LambdaError(execution.Errorf(execution.Held, "m").With("holds", []string{"h1"}), nil)
		return nil, v
	}}
	_, err := door.Invoke(t.Context(), "checkpoint", nil)
	var e *execution.Error
	if !errors.As(err, &e) || e.Code != execution.Held || !reflect.DeepEqual(e.Facts["holds"], []any{"h1"}) {
		t.Errorf("%#v", err)
	}
	if errors.As(err, new(messages.InvokeResponse_Error)) {
		t.Error("Lambda's form came through")
	}
	if _, err := door.Invoke(t.Context(), "nothing", nil); !errors.Is(err, execution.InvalidRequest) {
		t.Error(err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	door := &fakeDoor{t: t, answer: func(n int, c call) (any, error) {
		r := c.request.(*api.HistoryRequest)
		if want := []string{"", "c1", "c2"}[n-1]; r.Cursor != want {
			t.Errorf("call %d with cursor %q", n, r.Cursor)
		}
		if n == 3 {
			return nil, code(execution.Integrity)
		}
		return &api.HistoryReply{Entries: []api.HistoryEntry{{Version: int64(n)}}, Cursor: "c" + string(rune('0'+n))}, nil
	}}
	cl := New(Options{Door: door, Tenant: "t"})
	var versions []int64
	var last error
	for e, err := range cl.Entries(t.Context(), &api.HistoryRequest{Execution: "e"}) {
		if last = err; err == nil {
			versions = append(versions, e.Version)
		}
	}
	if !reflect.DeepEqual(versions, []int64{1, 2}) || !errors.Is(last, execution.Integrity) {
		t.Error(versions, last)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	if got := JSON(map[string]string{"a": "<b>&"}).String(); got != `{"a":"<b>&"}` {
		t.Error(got)
	}
	defer func() {
		if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "client: ") {
			t.Errorf("recovered %v", p)
		}
	}()
	JSON(func() {})
}
