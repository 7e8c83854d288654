package client_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// op is an operation without arguments.
func op(name string, how execution.OnUncertain) api.OperationDeclaration {
	return api.OperationDeclaration{Name: name, Args: jsonx.MustParse(`{}`), OnUncertain: how}
}

// leapingClock is the machine's clock, moved forward by hand.
type leapingClock struct {
	client.Clock
	ahead atomic.Int64
}

func (c *leapingClock) leap(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *leapingClock) Wall() time.Time      { return c.Clock.Wall().Add(time.Duration(c.ahead.Load())) }
func (c *leapingClock) Monotonic() time.Duration {
	return c.Clock.Monotonic() + time.Duration(c.ahead.Load())
}

func (w *world) withClock() (*client.Client, *leapingClock) {
	clock := &leapingClock{Clock: quickClock{client.HostClock()}}
	return client.New(client.Options{Door: client.HTTP{URL: w.url}, Tenant: "acme", Clock: clock, Attempts: 4}), clock
}

// An effect that takes days: its outcome comes by a callback, and the wait for it
// ends.
func TestPendingOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	var callback string
	calls := 0
	body := func(ctx context.Context, run *client.Run) (client.End, error) {
		out, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("transfer", execution.Ask)}, func(_ context.Context, e client.Effect) (client.Outcome, error) {
			callback = e.Callback
			calls++
			return client.Pending("ref-1"), nil
		})
		if err != nil {
			return client.End{}, err
		}
		if out[0].Outcome == execution.OutcomeInProgress {
			return client.WaitFor(api.Wait{Operations: []execution.OperationID{out[0].Operation}}), nil
		}
		if !out[0].Succeeded() || !out[0].Recorded {
			t.Errorf("%+v", out[0])
		}
		return client.Done(out[0].Result), nil
	}
	if r := driveWith(t, w, "e", client.DriveOptions{}, body); r.Ending != client.Waiting {
		t.Fatalf("%+v", r)
	}
	if _, err := w.client().RecordOutcome(t.Context(), &api.RecordOutcomeRequest{Callback: callback, Outcome: execution.OutcomeSucceeded, Result: jsonx.MustParse(`{"paid":10.00}`)}); err != nil {
		t.Fatal(err)
	}
	if r := driveWith(t, w, "e", client.DriveOptions{}, body); r.Ending != client.Finished || calls != 1 {
		t.Fatalf("%+v after %d calls", r, calls)
	}
	if got := w.get("e"); got.Result.String() != `{"paid":10.00}` {
		t.Errorf("result %s", got.Result)
	}
}

// Ownership is lost while an effect runs: its outcome is delivered all the same,
// no other effect begins, and nothing is written by the loser.
func TestLostDuringEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	c, clock := w.withClock()
	made := map[string]int{}
	body := func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("first", execution.Close), op("second", execution.Close)}, func(ctx context.Context, e client.Effect) (client.Outcome, error) {
			if made[e.Name]++; len(made) == 1 {
				clock.leap(time.Hour)
				w.advance(time.Hour)
				<-ctx.Done() // the keeper looks once a second
			}
			return client.Success(nil, ""), nil
		})
		return client.End{}, err
	}
	r, err := c.Drive(t.Context(), "e", client.DriveOptions{Parallel: 1}, body)
	if err != nil || r.Ending != client.Lost || !errors.Is(r.Cause, client.ErrUnproved) {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(made) != 1 {
		t.Fatalf("made %v", made)
	}
	r = driveWith(t, w, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("first", execution.Close), op("second", execution.Close)}, func(_ context.Context, e client.Effect) (client.Outcome, error) {
			made[e.Name]++
			return client.Success(nil, ""), nil
		})
		return client.Done(nil), err
	})
	if r.Ending != client.Finished || made["first"] != 1 || made["second"] != 1 {
		t.Errorf("%+v, %v", r, made)
	}
}

// The machine stood still between two effects, and no timer has rung yet: the
// second one does not begin.
func TestFrozenBetweenEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	c, clock := w.withClock()
	made := 0
	r, err := c.Drive(t.Context(), "e", client.DriveOptions{Parallel: 1, Lease: time.Hour}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("first", execution.Ask), op("second", execution.Ask)}, func(context.Context, client.Effect) (client.Outcome, error) {
			made++
			clock.leap(2 * time.Hour)
			return client.Success(nil, ""), nil
		})
		return client.End{}, err
	})
	if err != nil || r.Ending != client.Lost || made != 1 {
		t.Errorf("%+v, %v: %d made", r, err, made)
	}
}

// After send_by nothing is started, also where the machine only knows how long it
// has worked.
func TestSendBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	c, clock := w.withClock()
	var mu sync.Mutex
	made := 0
	timed := func(key string) api.OperationDeclaration {
		o := op("order", execution.Ask)
		o.Key, o.ValidSeconds = key, 60
		return o
	}
	r, err := c.Drive(t.Context(), "e", client.DriveOptions{Parallel: 1, Lease: 24 * time.Hour, StuckAfter: 24 * time.Hour}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{timed("a"), timed("b")}, func(context.Context, client.Effect) (client.Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			made++
			clock.leap(61 * time.Second)
			return client.Success(nil, ""), nil
		})
		return client.End{}, err
	})
	if err != nil || r.Ending != client.Uncertain || made != 1 {
		t.Errorf("%+v, %v: %d made", r, err, made)
	}
}

// startless drops the answers of start_operation until it is healed.
type startless struct {
	client.Door
	ill atomic.Bool
}

func (d *startless) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	reply, err := d.Door.Invoke(ctx, function, payload)
	if d.ill.Load() && bytes.HasPrefix(payload, []byte(`{"action":"start_operation"`)) {
		return nil, errors.New("reset")
	}
	return reply, err
}

// The slot was filled, and nobody heard so: the same process, and only it, may
// still make the effect.
func TestStartWithoutAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	door := &startless{Door: client.HTTP{URL: w.url}}
	door.ill.Store(true)
	made := 0
	f := func(context.Context, client.Effect) (client.Outcome, error) {
		made++
		return client.Success(nil, ""), nil
	}
	ops := []api.OperationDeclaration{op("reserve", execution.Close)}
	r, err := w.through(door).Drive(t.Context(), "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		if _, err := run.Do(ctx, api.Changes{}, ops, f); !errors.Is(err, execution.Unavailable) {
			t.Errorf("without an answer: %v", err)
		}
		door.ill.Store(false)
		_, err := run.Do(ctx, api.Changes{}, ops, f)
		return client.Done(nil), err
	})
	if err != nil || r.Ending != client.Finished || made != 1 {
		t.Errorf("%+v, %v: %d made", r, err, made)
	}
}

// Another final outcome stands in the ledger: evidence contradicts itself, and
// the agent goes on with neither.
func TestContradictionIsUncertain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	r := driveWith(t, w, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("charge", execution.Ask)}, func(ctx context.Context, e client.Effect) (client.Outcome, error) {
			_, err := w.client().RecordOutcome(ctx, &api.RecordOutcomeRequest{Execution: "e", Operation: e.Operation, Attempt: e.Attempt, Outcome: execution.OutcomeFailed, Reason: "bounced"})
			return client.Success(nil, ""), err
		})
		var uncertain *client.UncertainError
		if !errors.As(err, &uncertain) || len(uncertain.Operations) != 1 {
			t.Errorf("%v", err)
		}
		return client.Continue(0), nil
	})
	if r.Ending != client.Continued {
		t.Fatalf("%+v: %v", r, r.Cause)
	}
	got := w.get("e").Operations[0]
	if got.Outcome != execution.OutcomeNone || got.Evidence == nil || got.Evidence.Outcome != execution.OutcomeFailed {
		t.Errorf("%+v", got)
	}
}

// A tool that fills the slot in its own transaction: nobody else starts the
// operation, and its outcome is the ledger's.
func TestFilledByTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	tool := w.client()
	r := driveWith(t, w, "e", client.DriveOptions{FilledByTool: []string{"book"}}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("book", execution.Close)}, func(ctx context.Context, e client.Effect) (client.Outcome, error) {
			// Its nonce is its own: it would be refused had the run started it.
			if _, err := tool.StartOperation(ctx, &api.StartOperationRequest{Execution: "e", Operation: e.Operation, Attempt: e.Attempt, Fence: e.Fence}); err != nil {
				return client.Outcome{}, err
			}
			_, err := tool.RecordOutcome(ctx, &api.RecordOutcomeRequest{Execution: "e", Operation: e.Operation, Attempt: e.Attempt, Outcome: execution.OutcomeSucceeded, Result: jsonx.MustParse(`"row 7"`)})
			return client.Success(nil, ""), err
		})
		return client.Done(nil), err
	})
	if r.Ending != client.Finished {
		t.Fatalf("%+v: %v", r, r.Cause)
	}
	if got := w.get("e"); got.Operations[0].Result.String() != `"row 7"` || len(got.Operations[0].Contradictions) != 0 {
		t.Errorf("%+v", got.Operations[0])
	}
}

// Above what a request takes an artifact goes by URL, both ways.
func TestLargeArtifact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	large := bytes.Repeat([]byte("0123456789abcdef"), 6<<16) // 6 MB
	r := driveWith(t, w, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		a, err := run.Put(ctx, "scan.bin", "application/octet-stream", large)
		if err != nil {
			return client.End{}, err
		}
		if a.Bytes != int64(len(large)) || a.Name != "scan.bin" {
			t.Errorf("%+v", a)
		}
		if _, err := run.Put(ctx, "empty", "text/plain", nil); err != nil {
			return client.End{}, err
		}
		if err := run.Commit(ctx, api.Changes{Note: "scanned"}); err != nil {
			return client.End{}, err
		}
		got, _, err := run.Artifact(ctx, "scan.bin")
		if err == nil && !bytes.Equal(got, large) {
			t.Error("other content")
		}
		return client.Done(nil), err
	})
	if r.Ending != client.Finished {
		t.Fatalf("%+v: %v", r, r.Cause)
	}
	if _, _, err := w.client().ReadArtifact(t.Context(), &api.GetArtifactRequest{Execution: "e", Name: "none"}); !errors.Is(err, execution.NotFound) {
		t.Error(err)
	}
}

// A body's mistake is an error, never a guess.
func TestNoOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	r, err := w.client().Drive(t.Context(), "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		_, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{op("x", execution.Ask)}, func(context.Context, client.Effect) (client.Outcome, error) { return client.Outcome{}, nil })
		return client.Done(nil), err
	})
	if err == nil || r.Ending != client.Broken {
		t.Errorf("%+v, %v", r, err)
	}
}

// Poll sees what came during the run; what was taken stays taken.
func TestPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	w.signal("e", "note", "a", `1`)
	r := driveWith(t, w, "e", client.DriveOptions{Resume: jsonx.MustParse(`{"why":"test"}`)}, func(ctx context.Context, run *client.Run) (client.End, error) {
		if len(run.Take("note")) != 1 || len(run.Inbox()) != 0 {
			t.Error("the first signal")
		}
		w.signal("e", "note", "b", `2`)
		if err := run.Poll(ctx); err != nil {
			return client.End{}, err
		}
		if in := run.Inbox(); len(in) != 1 || in[0].Key != "b" {
			t.Errorf("inbox %+v", in)
		}
		if run.Resume().String() != `{"why":"test"}` {
			t.Errorf("resume value %s", run.Resume())
		}
		return client.Done(nil), nil
	})
	if r.Ending != client.Finished {
		t.Errorf("%+v", r)
	}
}
