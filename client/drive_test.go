package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// memo is the state of the agent below.
type memo struct {
	Step    int      `json:"step"`
	Results []string `json:"results"`
	Uploads []string `json:"uploads"`
}

// agent is a body with every kind of call: effects of all four ways, a commit, a
// wait for two signals, an artifact, an ending.
func agent(m *mortal, b *business) client.Body {
	effect := func(_ context.Context, e client.Effect) (client.Outcome, error) {
		if err := m.point(); err != nil {
			return client.Outcome{}, err
		}
		o := b.run(e)
		return o, m.point()
	}
	return func(ctx context.Context, run *client.Run) (client.End, error) {
		var s memo
		if err := run.Load(&s); err != nil {
			return client.End{}, err
		}
		if s.Step == 0 {
			outcomes, err := run.Do(ctx, api.Changes{Task: "order"}, []api.OperationDeclaration{
				{Name: "charge", Args: jsonx.MustParse(`{"amount":10.00}`), Key: "c1", OnUncertain: execution.Ask},
				{Name: "reserve", Args: jsonx.MustParse(`{"seat":"4A"}`), Key: "r1", OnUncertain: execution.Close},
				{Name: "mail", Args: jsonx.MustParse(`{"to":"x"}`), Key: "m1", OnUncertain: execution.SameKey, DedupSeconds: 86400 * 7},
			}, effect)
			if err != nil {
				return client.End{}, err
			}
			for _, o := range outcomes {
				s.Results = append(s.Results, o.Result.Get("done").String())
			}
			s.Step = 1
			if err := run.Commit(ctx, api.Changes{State: client.JSON(s), Note: "ordered"}); err != nil {
				return client.End{}, err
			}
		}
		if s.Step == 1 {
			for _, u := range run.Take("upload") {
				s.Uploads = append(s.Uploads, u.Key+"="+u.Body.String())
			}
			end := client.WaitFor(api.Wait{Signals: []string{"upload"}})
			if len(s.Uploads) < 2 {
				return end.With(api.Changes{State: client.JSON(s)}), nil
			}
			if _, err := run.Put(ctx, "report.txt", "text/plain", []byte("all documents are there")); err != nil {
				return client.End{}, err
			}
			s.Step = 2
			if err := run.Commit(ctx, api.Changes{State: client.JSON(s)}); err != nil {
				return client.End{}, err
			}
		}
		outcomes, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{{Name: "reserve", Args: jsonx.MustParse(`{"seat":"9C"}`), Key: "r2", OnUncertain: execution.Close}}, effect)
		if err != nil {
			return client.End{}, err
		}
		return client.Done(outcomes[0].Result), nil
	}
}

const wantState = `{"step":2,"results":["\"charge/c1\"","\"reserve/r1\"","\"mail/m1\""],"uploads":["a=1","b=2"]}`

// live drives an execution to its end: incarnations of a worker, the customer's
// two uploads, an operator who looks at the business system when it parks.
func live(t *testing.T, w *world, b *business, id execution.ExecutionID, next func() *mortal) (crashes, verdicts int) {
	t.Helper()
	uploads := []string{"a", "b"}
	process := next()
	for range 60 {
		c := w.through(mortalDoor{process, client.HTTP{URL: w.url}})
		result, err := c.Drive(t.Context(), id, client.DriveOptions{Lease: 30 * time.Second, Parallel: 1}, agent(process, b))
		if process.dead {
			crashes++
			process = next()
			w.advance(31 * time.Second)
			continue
		}
		if err != nil {
			t.Fatalf("a worker that lives: %v", err)
		}
		switch result.Ending {
		case client.Finished:
			return crashes, verdicts
		case client.Waiting:
			if len(uploads) == 0 {
				t.Fatal("waits for nothing")
			}
			w.signal(id, "upload", uploads[0], fmt.Sprint(3-len(uploads)))
			uploads = uploads[1:]
		case client.Parked:
			verdicts += decide(t, w, b, id, result.Reasons)
		case client.Closed:
			if w.get(id).Status == execution.StatusCompleted {
				return crashes, verdicts // the ending had landed before the crash
			}
			t.Fatal(result)
		default:
			t.Fatalf("ended %v: %v", result, result.Cause)
		}
	}
	t.Fatal("never ends")
	return 0, 0
}

// decide is a person's verdict after a look at the business system.
func decide(t *testing.T, w *world, b *business, id execution.ExecutionID, reasons []api.Reason) int {
	t.Helper()
	c := w.client()
	for _, r := range reasons {
		op, err := c.GetOperation(t.Context(), &api.GetOperationRequest{Execution: id, Operation: r.Operation})
		if err != nil {
			t.Fatal(err)
		}
		ev := api.Evidence{Operation: r.Operation, Attempt: op.Attempt, Finding: execution.Decided, Reason: "looked it up", Outcome: execution.OutcomeNotExecuted, Force: true}
		if b.happened(op.Intent.Name, op.Intent.Key) > 0 {
			ev.Outcome = execution.OutcomeSucceeded
			ev.Result = jsonx.MustParse(fmt.Sprintf(`{"done":%q,"amount":1.50}`, op.Intent.Name+"/"+op.Intent.Key))
		}
		if _, err := c.Reconcile(t.Context(), &api.ReconcileRequest{Execution: id, Evidence: []api.Evidence{ev}}); err != nil {
			t.Fatal(err)
		}
	}
	return len(reasons)
}

// A worker dies before and after each call and each effect: whoever drives the
// execution then brings it to the same end, and no effect happens twice.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	points, verdicts := 0, 0
	for n := 1; ; n++ {
		id := execution.ExecutionID(fmt.Sprintf("e%d", n))
		w.create(id, `{"step":0,"results":[],"uploads":[]}`)
		b, lives := newBusiness(), []int{n}
		crashes, v := live(t, w, b, id, func() *mortal {
			if len(lives) == 0 {
				return &mortal{}
			}
			lives = nil
			return &mortal{left: n}
		})
		verdicts += v
		check(t, w, b, id, fmt.Sprintf("killed at point %d", n))
		if t.Failed() {
			return
		}
		if crashes == 0 {
			points = n - 1
			break
		}
	}
	// resume, declare, two effects' calls ...: far fewer would mean that the points
	// are not where they should be.
	if points < 30 {
		t.Errorf("only %d points", points)
	}
	if verdicts == 0 {
		t.Error("no crash left an operation for a person to decide")
	}
	t.Logf("%d points, %d verdicts", points, verdicts)
}

// Worker after worker dies somewhere.
func TestCrashAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for seed := range uint64(40) {
		id := execution.ExecutionID(fmt.Sprintf("s%d", seed))
		w.create(id, `{"step":0,"results":[],"uploads":[]}`)
		b, random := newBusiness(), rand.New(rand.NewPCG(seed, 1))
		lives := 8
		crashes, _ := live(t, w, b, id, func() *mortal {
			if lives--; lives < 0 {
				return &mortal{}
			}
			return &mortal{left: 1 + random.IntN(16)}
		})
		check(t, w, b, id, fmt.Sprintf("seed %d", seed))
		if crashes < 3 || t.Failed() {
			t.Fatalf("seed %d: %d crashes", seed, crashes)
		}
	}
}

func check(t *testing.T, w *world, b *business, id execution.ExecutionID, what string) {
	t.Helper()
	got := w.get(id)
	if got.Status != execution.StatusCompleted || got.State.String() != wantState || got.Result.String() != `{"done":"reserve/r2","amount":1.50}` {
		t.Errorf("%s: %s %s %s", what, got.Status, got.State, got.Result)
	}
	for _, op := range []string{"charge/c1", "reserve/r1", "mail/m1", "reserve/r2"} {
		if n := b.executed[op]; n != 1 {
			t.Errorf("%s: %s happened %d times", what, op, n)
		}
	}
	if len(got.Artifacts) != 1 || got.Artifacts[0].Name != "report.txt" {
		t.Errorf("%s: artifacts %v", what, got.Artifacts)
	}
	var last int64
	for e, err := range w.client().Entries(t.Context(), &api.HistoryRequest{Execution: id}) {
		if err != nil || e.Version != last+1 {
			t.Errorf("%s: history %v after %d: %v", what, e.Version, last, err)
			return
		}
		last = e.Version
	}
}

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
