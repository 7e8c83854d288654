package client_test

import (
	"context"
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
