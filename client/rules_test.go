package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// A change that says only what a step is need not be sent; any content must be.
func TestEmptyChange(t *testing.T) {
	t.Parallel()
	v := jsonx.MustParse(`{}`)
	if c := (api.Changes{Task: "t", Note: "n"}); !empty(&c) {
		t.Error("a task and a note are content")
	}
	for name, c := range map[string]api.Changes{
		"state": {State: v}, "patch": {Patch: v}, "merge": {Merge: v}, "outcomes": {Outcomes: []api.OutcomeReport{{}}}, "absorb": {Absorb: []api.SignalRef{{}}}, "artifacts": {Artifacts: []api.ArtifactRef{{}}},
		"spend": {Spend: map[string]api.Decimal{"usd": "1"}}, "labels": {Labels: map[string]string{}}, "subjects": {Subjects: []string{}}, "permissions": {Permissions: &api.Permissions{}},
	} {
		if empty(&c) {
			t.Errorf("%s is no content", name)
		}
	}
}

// What a plan settles for good: never what may still go again, lies elsewhere,
// or is contradicted by evidence.
func TestCompletePlan(t *testing.T) {
	t.Parallel()
	v := jsonx.MustParse(`{}`)
	op := func(id execution.OperationID, o execution.Outcome, f func(v *api.OperationView)) api.OperationView {
		out := api.OperationView{Operation: id, Outcome: o}
		if f != nil {
			f(&out)
		}
		return out
	}
	plan := &api.ResumeReply{View: api.View{State: v, Operations: []api.OperationView{
		op("succeeded", execution.OutcomeSucceeded, nil), op("failed", execution.OutcomeFailed, nil), op("abandoned", execution.OutcomeAbandoned, nil),
		op("rejected", execution.OutcomeRejected, nil), op("not executed", execution.OutcomeNotExecuted, nil), op("open", "", nil),
		op("elsewhere", execution.OutcomeSucceeded, func(v *api.OperationView) { v.ResultRef = &api.Ref{} }),
		op("evidence", execution.OutcomeSucceeded, func(v *api.OperationView) { v.Evidence = &api.SlotView{} }),
	}}}
	r := newRun(New(Options{}), "e", DriveOptions{}, plan, nil, Moment{})
	if err := r.completePlan(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []execution.OperationID{"succeeded", "failed", "abandoned"} {
		if _, ok := r.settled[id]; !ok {
			t.Errorf("%s is not settled", id)
		}
	}
	if len(r.settled) != 3 {
		t.Errorf("%v", r.settled)
	}
}

// A replayed claim's tip counts only under this run's own fence.
func TestRunVersion(t *testing.T) {
	t.Parallel()
	for tip, want := range map[*api.Tip]int64{nil: 5, {Version: 9, Fence: 3}: 9, {Version: 9, Fence: 4}: 5, {Version: 4, Fence: 3}: 5} {
		p := &api.ResumeReply{}
		p.Version, p.Fence, p.Tip = 5, 3, tip
		if r := newRun(New(Options{}), "e", DriveOptions{}, p, nil, Moment{}); r.version != want {
			t.Errorf("%+v: version %d, want %d", tip, r.version, want)
		}
	}
}

// An attempt that this process made is made again only where that is harmless.
func TestMayMake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		begun, made bool
		how         execution.OnUncertain
		want        bool
	}{{false, false, execution.Ask, true}, {true, false, execution.Ask, true}, {true, true, execution.Ask, false}, {true, true, execution.Close, false}, {true, true, "", false},
		{true, true, execution.SameKey, true}, {true, true, execution.Always, true}} {
		r := &Run{effects: map[attemptID]*effect{{"other", 1}: {made: true}, {"op", 2}: {made: true}}}
		if tt.begun {
			r.effects[attemptID{"op", 1}] = &effect{made: tt.made}
		}
		if got := r.mayMake(&api.OperationReply{Operation: "op", Attempt: 1}, &api.OperationDeclaration{OnUncertain: tt.how}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// The service's refusals before any function ran; what may have come after it is
// an unknown outcome.
func TestStatusError(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]execution.Code{413: execution.TooLarge, 429: execution.Throttled, 404: execution.InvalidRequest, 403: execution.InvalidRequest, 302: execution.InvalidRequest,
		499: execution.InvalidRequest, 500: execution.Unavailable, 502: execution.Unavailable, 204: execution.Unavailable} {
		if got := asAnswer(statusError(status)).Code; got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// What ends a worker's part quietly, and when it may try again.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for c, want := range endings {
		result, err := quiet(&Result{Version: 3}, code(c).With("version", int64(7)).With("retry_after_ms", int64(50)))
		if err != nil || result.Ending != want || result.Version != 7 || (result.RetryAfter > 0) != (want == Held) {
			t.Errorf("%s: %+v %v", c, result, err)
		}
	}
	for _, err := range []error{code(execution.Integrity), io.EOF} {
		if result, got := quiet(&Result{}, err); got != err || result.Ending != "" {
			t.Errorf("%v: %+v %v", err, result, got)
		}
	}
}

// Evidence of a final outcome that does not reach the ledger rides on the next
// entry; what is said about an attempt that goes on has no entry to ride on.
func TestUndeliveredEvidence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome execution.Outcome
		refusal execution.Code
		rides   bool
	}{{execution.OutcomeSucceeded, execution.Unavailable, true}, {execution.OutcomeSucceeded, execution.Deleted, false},
		{execution.OutcomeUnknown, execution.Unavailable, false}, {execution.OutcomeInProgress, execution.Unavailable, false}, {execution.OutcomeUnknown, execution.Deleted, false}} {
		door := &fakeDoor{t: t, answer: func(int, call) (any, error) { return nil, code(tt.refusal) }}
		r := &Run{client: New(Options{Tenant: "t", Door: door, Clock: &noWait{fakeClock: newFakeClock()}}), id: "e", settled: map[execution.OperationID]Outcome{}}
		_, err := r.record(context.Background(), &api.OperationReply{Operation: "op", Attempt: 1}, Outcome{Outcome: tt.outcome}, false)
		if tt.rides != (err == nil) || tt.rides != (len(r.outcomes) == 1) || !tt.rides && execution.CodeOf(err) != tt.refusal {
			t.Errorf("%+v: %v, %d ride", tt, err, len(r.outcomes))
		}
	}
}

// The wait before another attempt: at least what the function said, and never
// for ever.
func TestPause(t *testing.T) {
	t.Parallel()
	c := New(Options{Rand: strings.NewReader("")})
	plain := c.pause(1, code(execution.Throttled))
	if plain <= 0 || plain > maxPause {
		t.Errorf("%v", plain)
	}
	for ms, want := range map[int64]time.Duration{-5: plain, 0: plain, 60_000: time.Minute, 1 << 60: time.Hour} {
		if got := c.pause(1, code(execution.Throttled).With("retry_after_ms", ms)); got != want {
			t.Errorf("after %d ms: %v, want %v", ms, got, want)
		}
	}
}

// The run's copy of the state follows what it sent, and is read anew where it
// cannot.
func TestFoldState(t *testing.T) {
	t.Parallel()
	door := &fakeDoor{t: t, answer: func(int, call) (any, error) {
		return &api.GetReply{View: api.View{State: jsonx.MustParse(`{"read":1}`)}}, nil
	}}
	for _, tt := range []struct {
		change api.Changes
		want   string
		reads  int
	}{
		{api.Changes{}, `{"a":1}`, 0}, {api.Changes{State: jsonx.MustParse(`{"b":2}`)}, `{"b":2}`, 0}, {api.Changes{Merge: jsonx.MustParse(`{"a":null,"c":3}`)}, `{"c":3}`, 0},
		{api.Changes{Patch: jsonx.MustParse(`[{"op":"add","path":"/d","value":4}]`)}, `{"a":1,"d":4}`, 0}, {api.Changes{Patch: jsonx.MustParse(`[{"op":"remove","path":"/zz"}]`)}, `{"read":1}`, 1},
	} {
		door.calls = nil
		r := &Run{client: New(Options{Tenant: "t", Door: door}), id: "e", state: jsonx.MustParse(`{"a":1}`)}
		if err := r.foldState(context.Background(), &tt.change); err != nil || r.state.String() != tt.want || len(door.seen()) != tt.reads {
			t.Errorf("%+v: %s after %d reads, %v", tt.change, r.state, len(door.seen()), err)
		}
	}
}

// Content that comes by a URL is held against its digest; what the URL refuses
// is no content.
func TestArtifactByURL(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, "content"
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got = r.Header
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	defer srv.Close()
	sum := sha256.Sum256([]byte("content"))
	door := &fakeDoor{t: t, answer: func(int, call) (any, error) {
		return &api.GetArtifactReply{Artifact: api.Artifact{Digest: hex.EncodeToString(sum[:]), Bytes: 7}, URL: srv.URL}, nil
	}}
	c := New(Options{Tenant: "t", Door: door})
	for _, tt := range []struct {
		status int
		body   string
		code   execution.Code
	}{{200, "content", ""}, {200, "contenT", execution.Integrity}, {200, "content and more", execution.Integrity}, {200, "", execution.Integrity}, {403, "content", execution.Unavailable}} {
		status, body = tt.status, tt.body
		content, _, err := c.ReadArtifact(context.Background(), &api.GetArtifactRequest{Execution: "e", Name: "n"})
		if execution.CodeOf(err) != tt.code || err == nil && string(content) != "content" {
			t.Errorf("%+v: %q %v", tt, content, err)
		}
	}
	for s, ok := range map[int]bool{200: true, 204: true, 412: true, 403: false, 500: false} {
		status, body = s, ""
		err := c.upload(context.Background(), srv.URL, map[string]string{"host": "elsewhere", "Content-Length": "99", "If-None-Match": "*"}, []byte("content"))
		if (err == nil) != ok || got.Get("If-None-Match") != "*" || got.Get("Content-Length") != "7" {
			t.Errorf("%d: %v, headers %v", s, err, got)
		}
	}
}
