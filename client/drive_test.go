package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

func driveWith(t *testing.T, w *world, id execution.ExecutionID, o client.DriveOptions, body client.Body) *client.Result {
	t.Helper()
	result, err := w.client().Drive(t.Context(), id, o, body)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func mustNotRun(t *testing.T) client.Body {
	return func(context.Context, *client.Run) (client.End, error) {
		t.Error("the body ran")
		return client.End{}, errors.New("ran")
	}
}

func TestQuietEndings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	claim := func(id execution.ExecutionID) {
		t.Helper()
		w.create(id, `{}`)
		if _, err := c.Claim(t.Context(), &api.ClaimRequest{Claiming: api.Claiming{Execution: id, Owner: "other", LeaseSeconds: 60}}); err != nil {
			t.Fatal(err)
		}
	}
	claim("held")
	if r := driveWith(t, w, "held", client.DriveOptions{}, mustNotRun(t)); r.Ending != client.Held || r.RetryAfter <= 0 || r.RetryAfter > time.Minute || !errors.Is(r.Cause, execution.LeaseHeld) {
		t.Errorf("held: %+v", r)
	}
	w.create("overtaken", `{}`)
	if _, err := c.Apply(t.Context(), &api.ApplyRequest{Changes: api.Changes{Execution: "overtaken", ExpectedVersion: 1, Note: "on"}}); err != nil {
		t.Fatal(err)
	}
	if r := driveWith(t, w, "overtaken", client.DriveOptions{ExpectedVersion: 1}, mustNotRun(t)); r.Ending != client.Overtaken || r.Version != 2 {
		t.Errorf("overtaken: %+v", r)
	}
	w.create("closed", `{}`)
	done := func(context.Context, *client.Run) (client.End, error) { return client.Done(nil), nil }
	if r := driveWith(t, w, "closed", client.DriveOptions{}, done); r.Ending != client.Finished || r.Status != execution.StatusCompleted {
		t.Errorf("finished: %+v", r)
	}
	if r := driveWith(t, w, "closed", client.DriveOptions{}, mustNotRun(t)); r.Ending != client.Closed {
		t.Errorf("closed: %+v", r)
	}
	w.create("halted", `{}`)
	if _, err := c.Halt(t.Context(), &api.HaltRequest{Execution: "halted", Reason: "stop"}); err != nil {
		t.Fatal(err)
	}
	if r := driveWith(t, w, "halted", client.DriveOptions{}, mustNotRun(t)); r.Ending != client.Halted {
		t.Errorf("halted: %+v", r)
	}
	if _, err := c.Drive(t.Context(), "none", client.DriveOptions{}, mustNotRun(t)); !errors.Is(err, execution.NotFound) {
		t.Errorf("not found: %v", err)
	}
}

// Another worker takes over in the middle of the body.
func TestFencedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{"n":0}`)
	r := driveWith(t, w, "e", client.DriveOptions{Lease: 30 * time.Second}, func(ctx context.Context, run *client.Run) (client.End, error) {
		w.advance(31 * time.Second)
		other := driveWith(t, w, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
			return client.Continue(0).With(api.Changes{Merge: jsonx.MustParse(`{"n":1}`)}), nil
		})
		if other.Ending != client.Continued {
			t.Errorf("the other: %+v", other)
		}
		err := run.Commit(ctx, api.Changes{Merge: jsonx.MustParse(`{"n":99}`)})
		if !errors.Is(err, execution.LeaseLost) {
			t.Errorf("the zombie's commit: %v", err)
		}
		return client.End{}, fmt.Errorf("wrapped: %w", err)
	})
	if r.Ending != client.Lost || !errors.Is(r.Cause, execution.LeaseLost) {
		t.Errorf("%+v", r)
	}
	if got := w.get("e"); got.State.String() != `{"n":1}` {
		t.Errorf("state %s", got.State)
	}
}

// A body that fails gives the execution up; its error comes back and what it
// committed stays. Errors about other executions end nothing by themselves.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	cause := fmt.Errorf("elsewhere: %w", execution.Errorf(execution.VersionConflict, "of another execution"))
	r, err := w.client().Drive(t.Context(), "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		if err := run.Commit(ctx, api.Changes{Merge: jsonx.MustParse(`{"a":1}`)}); err != nil {
			return client.End{}, err
		}
		return client.End{}, cause
	})
	if !errors.Is(err, cause) || r.Ending != client.Broken {
		t.Fatalf("%+v, %v", r, err)
	}
	got := w.get("e")
	if got.Owner != "" || got.Status != execution.StatusRunning || got.State.String() != `{"a":1}` {
		t.Errorf("%+v", got.Standing)
	}
	if r, err := w.client().Drive(t.Context(), "e", client.DriveOptions{}, func(context.Context, *client.Run) (client.End, error) { return client.End{}, nil }); err == nil || r.Ending != client.Broken {
		t.Errorf("no ending: %+v, %v", r, err)
	}
}

// A caller that shuts down gives the lease back.
func TestShutdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.client().Drive(ctx, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		cancel()
		<-ctx.Done()
		return client.End{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := w.get("e"); got.Owner != "" {
		t.Errorf("still owned by %s", got.Owner)
	}
}

// An effect whose outcome nobody knows is never made again: not in the same run,
// not by the next one.
func TestUncertain(t *testing.T) {
	t.Parallel()
	for _, how := range []execution.OnUncertain{execution.Ask, execution.Close} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create("e", `{}`)
			calls := 0
			body := func(ctx context.Context, run *client.Run) (client.End, error) {
				ops := []api.OperationDeclaration{{Name: "charge", Args: jsonx.MustParse(`{}`), OnUncertain: how}}
				f := func(context.Context, client.Effect) (client.Outcome, error) {
					calls++
					return client.Outcome{}, errors.New("timeout")
				}
				if _, err := run.Do(ctx, api.Changes{}, ops, f); err == nil {
					t.Error("no error")
				}
				_, err := run.Do(ctx, api.Changes{}, ops, f)
				return client.End{}, err
			}
			r := driveWith(t, w, "e", client.DriveOptions{}, body)
			var uncertain *client.UncertainError
			if r.Ending != client.Uncertain || !errors.As(r.Cause, &uncertain) || len(uncertain.Operations) != 1 {
				t.Errorf("%+v", r)
			}
			r = driveWith(t, w, "e", client.DriveOptions{}, mustNotRun(t))
			if r.Ending != client.Parked || len(r.Reasons) != 1 || r.Reasons[0].Operation != uncertain.Operations[0] {
				t.Errorf("%+v", r)
			}
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// Settled operations are answered without a request; the same operation twice in
// one Do is one effect.
func TestRecordedResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	b := newBusiness()
	ops := []api.OperationDeclaration{
		{Name: "charge", Args: jsonx.MustParse(`{"n":1}`)}, {Name: "charge", Args: jsonx.MustParse(`{"n":1.0}`)}, {Name: "charge", Args: jsonx.MustParse(`{"n":2}`), Key: "two"},
	}
	body := func(ctx context.Context, run *client.Run) (client.End, error) {
		var version int64
		for round := range 2 {
			out, err := run.Do(ctx, api.Changes{}, ops, func(_ context.Context, e client.Effect) (client.Outcome, error) { return b.run(e), nil })
			if err != nil {
				return client.End{}, err
			}
			if out[0].Operation != out[1].Operation || out[0].Operation == out[2].Operation || out[2].Result.String() != `{"done":"charge/two","amount":1.50}` {
				t.Errorf("outcomes %+v", out)
			}
			if round == 0 && run.Version() > run.Plan().Version+1 {
				t.Error("more than one entry was written")
			}
			if round == 1 && run.Version() != version {
				t.Error("an entry was written for nothing")
			}
			version = run.Version()
		}
		return client.Continue(0), nil
	}
	for range 2 {
		if r := driveWith(t, w, "e", client.DriveOptions{}, body); r.Ending != client.Continued {
			t.Fatalf("%+v", r)
		}
	}
	if b.executed["charge/"] != 1 || b.executed["charge/two"] != 1 {
		t.Error(b.executed)
	}
}

// A refusal may be attempted again, under another provider key.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{}`)
	keys := map[string]bool{}
	r := driveWith(t, w, "e", client.DriveOptions{OutcomesRide: true}, func(ctx context.Context, run *client.Run) (client.End, error) {
		ops := []api.OperationDeclaration{{Name: "charge", Args: jsonx.MustParse(`{}`)}}
		for n := 1; ; n++ {
			out, err := run.Do(ctx, api.Changes{}, ops, func(_ context.Context, e client.Effect) (client.Outcome, error) {
				keys[e.ProviderKey] = true
				if e.Attempt != n {
					t.Errorf("attempt %d, want %d", e.Attempt, n)
				}
				if n < 3 {
					return client.Refused("card declined"), nil
				}
				return client.Success(nil, ""), nil
			})
			if err != nil || out[0].Succeeded() {
				return client.Done(nil), err
			}
			if out[0].Outcome != execution.OutcomeRejected || out[0].Reason != "card declined" {
				t.Errorf("%+v", out[0])
			}
		}
	})
	if r.Ending != client.Finished || len(keys) != 3 {
		t.Errorf("%+v, %d keys", r, len(keys))
	}
}

// A wait for what has come already goes on at once.
func TestMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", `{"seen":false}`)
	runs := 0
	r := driveWith(t, w, "e", client.DriveOptions{}, func(ctx context.Context, run *client.Run) (client.End, error) {
		runs++
		if len(run.Take("upload")) > 0 {
			return client.Done(nil).With(api.Changes{Merge: jsonx.MustParse(`{"seen":true}`)}), nil
		}
		w.signal("e", "upload", "k", `1`) // between the plan and the wait
		return client.WaitFor(api.Wait{Signals: []string{"upload"}}), nil
	})
	if r.Ending != client.Finished || runs != 2 {
		t.Errorf("%+v after %d runs", r, runs)
	}
}

// A result that is too long for a reply, a state at the limit, a long inbox and
// many operations come whole.
func TestLargePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := make([]byte, 0, 4<<20)
	state = append(state, `{"text":"`...)
	for len(state) < 4<<20 {
		state = append(state, 'a'+byte(len(state)%26))
	}
	state = append(state, `"}`...)
	w.create("e", string(state))
	for i := range 300 {
		w.signal("e", "note", fmt.Sprintf("k%03d", i), fmt.Sprintf(`"%01000d"`, i))
	}
	long := client.JSON(string(state[20:200000]))
	body := func(ctx context.Context, run *client.Run) (client.End, error) {
		if run.State().Size() != len(state) || run.State().String() != string(state) {
			t.Error("another state")
		}
		if n := len(run.Inbox()); n != 300 {
			t.Errorf("%d signals", n)
		}
		out, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{{Name: "read", Args: jsonx.MustParse(`{}`)}},
			func(context.Context, client.Effect) (client.Outcome, error) { return client.Success(long, ""), nil })
		if err != nil {
			return client.End{}, err
		}
		if !jsonx.Equal(out[0].Result, long) {
			t.Error("another result")
		}
		return client.Continue(0), nil
	}
	for range 2 {
		if r := driveWith(t, w, "e", client.DriveOptions{}, body); r.Ending != client.Continued {
			t.Fatalf("%+v", r)
		}
	}
}

// A dead worker is handed over by itself; of two that are started for it one
// goes on and the other ends quietly.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client().SetWorkflow(t.Context(), &api.SetWorkflowRequest{Workflow: api.Workflow{Name: "case", Schema: &api.Schema{Name: "s", Version: 1},
		ResumeTarget: &api.ResumeTarget{Kind: "sandbox", ARN: "workers"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.create("e", `{"n":0}`)
	if _, err := w.client().Claim(t.Context(), &api.ClaimRequest{Claiming: api.Claiming{Execution: "e", Owner: "dies", LeaseSeconds: 30}}); err != nil {
		t.Fatal(err)
	}
	w.advance(31 * time.Second)
	w.run()
	resp, err := http.Get(w.url + "/sandbox/dump")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var started struct {
		Handovers []struct {
			Input struct {
				Version int64  `json:"version"`
				Cause   string `json:"cause"`
			} `json:"input"`
		} `json:"handovers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&started); err != nil || len(started.Handovers) != 1 || started.Handovers[0].Input.Cause != "lease" {
		t.Fatalf("handed over: %+v, %v", started, err)
	}
	endings := make(chan client.Ending, 2)
	for range 2 {
		go func() {
			r, err := w.client().Drive(t.Context(), "e", client.DriveOptions{ExpectedVersion: started.Handovers[0].Input.Version}, func(context.Context, *client.Run) (client.End, error) {
				return client.Continue(time.Hour).With(api.Changes{Merge: jsonx.MustParse(`{"n":1}`)}), nil
			})
			if err != nil {
				t.Error(err)
			}
			endings <- r.Ending
		}()
	}
	got := map[client.Ending]int{<-endings: 1}
	got[<-endings]++
	if got[client.Continued] != 1 || got[client.Overtaken]+got[client.Held] != 1 {
		t.Errorf("ended %v", got)
	}
}
