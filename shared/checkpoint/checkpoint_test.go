package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/telemetry"
)

func TestCreateDefaultsComeFromTheWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Catalog.SetWorkflow(t.Context(), tenant, &api.Workflow{Name: "wf", Schema: &api.Schema{Name: "s", Version: 4}, DefaultPolicy: "short"}); err != nil {
		t.Fatal(err)
	}
	w.create("e", nil)
	g := w.get("e")
	if g.Policy != "short" || g.Schema == nil || *g.Schema != (api.Schema{Name: "s", Version: 4}) || g.KeptForever {
		t.Errorf("policy %q, schema %v, kept for ever %v", g.Policy, g.Schema, g.KeptForever)
	}
	w.create("own", func(r *api.CreateRequest) { r.Policy, r.Schema = "mine", &api.Schema{Name: "s", Version: 2} })
	if g := w.get("own"); g.Policy != "mine" || g.Schema.Version != 2 {
		t.Errorf("policy %q, schema %v", g.Policy, g.Schema)
	}
}

func TestCreateDerivesTheSameIdForTheSameRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	make := func(request string) *api.CreateReply {
		r := &api.CreateRequest{Common: api.Common{Tenant: tenant, RequestID: request}, Workflow: "wf"}
		api.Identify(r)
		out, err := w.Checkpoint.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b, c := make("x"), make("x"), make("y")
	if a.Execution != b.Execution || !b.Replayed || a.Execution == c.Execution {
		t.Errorf("ids %s, %s (replayed %v), %s", a.Execution, b.Execution, b.Replayed, c.Execution)
	}
	r := &api.CreateRequest{Common: api.Common{Tenant: tenant}, Workflow: "wf"}
	api.Identify(r)
	_, err := w.Checkpoint.Create(t.Context(), r)
	if e := wantCode(t, err, execution.InvalidRequest); e.Facts["field"] != "request_id" {
		t.Errorf("facts %v", e.Facts)
	}
}

// A warm apply is one request; a refusal is decided on a fresh read.
func TestApplyCountsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.create("e", func(r *api.CreateRequest) { r.State = js(`{"l":[]}`) }).Version
	for n := range 5 {
		w.e.Mark()
		v = w.apply("e", v, func(r *api.ApplyRequest) { r.Patch = js(`[{"op":"add","path":"/l/-","value":%d}]`, n) }).Version
		if calls := w.e.Log(); len(calls) != 1 || calls[0].Call != "put" || calls[0].WriteUnits != 1 {
			t.Fatalf("step %d: %+v", n, calls)
		}
	}
	w.e.Mark()
	v = w.apply("e", v, func(r *api.ApplyRequest) { r.Operations = []api.OperationDeclaration{{Name: "pay", Args: js(`1`)}} }).Version
	if calls := w.e.Log(); len(calls) != 1 || calls[0].Call != "put" {
		t.Errorf("a declaration: %+v", calls)
	}
	w.restart()
	w.get("e") // the new process has the tenant's key now
	w.Journal.Forget(tenant, "e")
	w.e.Mark()
	v = w.apply("e", v, func(r *api.ApplyRequest) { r.Merge = js(`{"x":1}`) }).Version
	if calls := w.e.Log(); len(calls) != 2 {
		t.Errorf("cold: %+v", calls)
	}
	w.e.Mark()
	_, _, err := w.step("e", v-1, func(r *api.ApplyRequest) { r.Merge = js(`{"x":2}`) })
	e := wantCode(t, err, execution.VersionConflict)
	if e.Facts["version"] != v || len(w.e.Log()) != 1 {
		t.Errorf("facts %v, calls %+v", e.Facts, w.e.Log())
	}
}

func TestEndingsSetWhatIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claim := func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 7200} }
	head := func(id string) *journal.Head {
		h, _, err := w.Journal.ReadHead(t.Context(), tenant, execution.ExecutionID(id))
		if err != nil || h == nil {
			t.Fatalf("head of %s: %v", id, err)
		}
		return h
	}
	now := w.e.Now().UnixMilli()
	until := api.Time(now + 5000)
	for id, c := range map[string]struct {
		then   *api.Then
		status execution.Status
		due    int64
		kind   string
		timer  string
	}{
		"goes-on":   {nil, execution.StatusRunning, now + 7_200_000, journal.DueLease, "lease"},
		"waits":     {&api.Then{Suspend: &api.Wait{}}, execution.StatusWaiting, now + 60_000, journal.DueWake, ""},
		"until":     {&api.Then{Suspend: &api.Wait{Until: &until}}, execution.StatusWaiting, now + 5000, journal.DueWake, ""},
		"continues": {&api.Then{Continue: &api.Continue{AfterSeconds: 7200}}, execution.StatusRunning, now + 7_200_000, journal.DueContinue, "lease"},
		"completes": {&api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted}}, execution.StatusCompleted, 0, "", ""},
	} {
		k := w.create(id, claim)
		_, request, err := w.step(id, k.Version, func(r *api.ApplyRequest) { r.Fence, r.Then = k.Fence, c.then })
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.Checkpoint.Apply(t.Context(), request); err != nil || !again.Replayed {
			t.Errorf("%s, once more: %+v, %v", id, again, err)
		}
		h := head(id)
		if h.Status != c.status || h.DueAt != c.due || h.DueKind != c.kind {
			t.Errorf("%s: %s due %d (%s), want %s due %d (%s)", id, h.Status, h.DueAt, h.DueKind, c.status, c.due, c.kind)
		}
		if (c.then == nil) != (h.Owner == "w") {
			t.Errorf("%s: owner %q", id, h.Owner)
		}
		if c.timer != "" {
			it, _, err := w.e.Table(memory.Main).Get(t.Context(), store.Get{Key: journal.TimerKey(h.PK(), c.timer), Consistent: true})
			if err != nil || it == nil || it.Int("ttl") < 1e9 || it.Int("ttl") > 1e11 {
				t.Errorf("%s: timer %v, %v", id, it, err)
			}
		}
	}
}

// What came before the ending is named, whoever was first (M).
func TestSuspendNamesWhatItMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	a := w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence = k.Fence
		r.Operations = []api.OperationDeclaration{{Name: "pay", Args: js(`{"n":1}`)}, {Name: "mail", Args: js(`{"n":2}`)}}
	})
	pay, mail := a.Operations[0], a.Operations[1]
	if pay.Disposition != api.Go || pay.Callback == "" || pay.ProviderKey == "" || pay.Operation == mail.Operation {
		t.Fatalf("operations %+v", a.Operations)
	}
	o := &api.RecordOutcomeRequest{Common: w.common(), Execution: "e", Operation: pay.Operation, Outcome: execution.OutcomeSucceeded}
	api.Identify(o)
	if _, err := w.Ledger.RecordOutcome(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	sig := &api.SignalRequest{Common: w.common(), Execution: "e", Name: "upload", Key: "1", Body: js(`{"f":1}`)}
	api.Identify(sig)
	if _, err := w.Ledger.Signal(t.Context(), sig); err != nil {
		t.Fatal(err)
	}
	s, request, err := w.step("e", a.Version, func(r *api.ApplyRequest) {
		r.Fence = k.Fence
		r.Then = &api.Then{Suspend: &api.Wait{Operations: []execution.OperationID{pay.Operation, mail.Operation}, Signals: []string{"upload", "other"}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missed == nil || !slices.Equal(s.Missed.Operations, []execution.OperationID{pay.Operation}) || !slices.Equal(s.Missed.Signals, []api.SignalRef{{Name: "upload", Key: "1"}}) {
		t.Fatalf("missed %+v", s.Missed)
	}
	h, _, _ := w.Journal.ReadHead(t.Context(), tenant, "e")
	if h.DueAt > w.e.Now().UnixMilli() {
		t.Errorf("due at %d, want now", h.DueAt)
	}
	repeated := 0.0
	w.Checkpoint.Count = func(name string, v float64) {
		if name == telemetry.RepeatedRequests {
			repeated += v
		}
	}
	again, err := w.Checkpoint.Apply(t.Context(), request)
	if err != nil || !again.Replayed || again.Missed == nil || repeated != 1 {
		t.Errorf("repeated: %+v, %v, counted %v", again, err, repeated)
	}
}

// Dispositions of a repeated request are computed at the tip, never replayed
// (M), also when the task has changed since.
func TestReplayedDispositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	a, request, err := w.step("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence = k.Fence
		r.Operations = []api.OperationDeclaration{{Name: "pay", Args: js(`1`)}, {Name: "read", Args: js(`1`), OnUncertain: execution.Always}, {Name: "slot", Args: js(`1`), OnUncertain: execution.Close}}
	})
	if err != nil {
		t.Fatal(err)
	}
	v := w.apply("e", a.Version, func(r *api.ApplyRequest) { r.Fence, r.Task = k.Fence, "later" }).Version
	again, err := w.Checkpoint.Apply(t.Context(), request)
	if err != nil || !again.Replayed || again.Version != a.Version || again.Tip == nil || again.Tip.Version != v {
		t.Fatalf("repeated: %+v, %v", again, err)
	}
	for i, want := range []api.Disposition{api.Uncertain, api.Go, api.Start} {
		if o := again.Operations[i]; o.Operation != a.Operations[i].Operation || o.Disposition != want {
			t.Errorf("operation %d: %s %s, want %s %s", i, o.Operation, o.Disposition, a.Operations[i].Operation, want)
		}
	}
}

// Whose answer never went out is told the first disposition only of what that
// very request gave out: an operation that an earlier request was told to do, and
// the second of two declarations of one operation, do not go (M).
func TestUnansweredGivesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	pay, ship := api.OperationDeclaration{Name: "pay", Args: js(`1`)}, api.OperationDeclaration{Name: "ship", Args: js(`1`)}
	first := w.apply("e", k.Version, func(r *api.ApplyRequest) { r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{pay} })
	if first.Operations[0].Disposition != api.Go {
		t.Fatalf("%+v", first.Operations)
	}
	if err := w.e.SetFaults([]memory.Fault{{On: "*", Effect: "landed", Count: 99}}); err != nil {
		t.Fatal(err)
	}
	_, request, err := w.step("e", first.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{pay, ship, ship}
	})
	wantCode(t, err, execution.Unavailable)
	if err := w.e.SetFaults(nil); err != nil {
		t.Fatal(err)
	}
	for round, want := range [][]api.Disposition{{api.Uncertain, api.Go, api.Uncertain}, {api.Uncertain, api.Uncertain, api.Uncertain}} {
		again, err := w.Checkpoint.Apply(t.Context(), request)
		if err != nil || !again.Replayed || len(again.Operations) != len(want) {
			t.Fatalf("round %d: %+v, %v", round, again, err)
		}
		for i, d := range want {
			if again.Operations[i].Disposition != d {
				t.Errorf("round %d, operation %d: %s, want %s", round, i, again.Operations[i].Disposition, d)
			}
		}
	}
}

func TestListByEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 23 {
		w.create(fmt.Sprintf("e%02d", n), func(r *api.CreateRequest) {
			r.Thread, r.Labels = "th", map[string]string{"kind": fmt.Sprint(n % 2)}
			r.Subjects = []string{"person-" + fmt.Sprint(n%3)}
		})
		w.e.Advance(time.Millisecond)
	}
	for name, c := range map[string]struct {
		ask  func(*api.ListRequest)
		want int
	}{
		"thread":   {func(r *api.ListRequest) { r.Thread = "th" }, 23},
		"workflow": {func(r *api.ListRequest) { r.Workflow = "wf" }, 23},
		"status":   {func(r *api.ListRequest) { r.Status = execution.StatusCreated }, 23},
		"label":    {func(r *api.ListRequest) { r.Label = map[string]string{"kind": "1"} }, 11},
		"subject":  {func(r *api.ListRequest) { r.Subject = "person-0" }, 8},
		"idle":     {func(r *api.ListRequest) { r.Thread, r.IdleSeconds = "th", 3600 }, 0},
		"none":     {func(r *api.ListRequest) { r.Thread = "other" }, 0},
	} {
		ids, pages := w.list(func(r *api.ListRequest) { c.ask(r); r.Limit = 5 })
		sorted := slices.Sorted(slices.Values(ids))
		if len(ids) != c.want || len(slices.Compact(sorted)) != c.want {
			t.Errorf("%s: %d executions %v, want %d", name, len(ids), ids, c.want)
		}
		if want := max(1, (c.want+4)/5); pages != want {
			t.Errorf("%s: %d pages, want %d", name, pages, want)
		}
	}
	for _, bad := range []func(*api.ListRequest){func(*api.ListRequest) {}, func(r *api.ListRequest) { r.Thread, r.Workflow = "a", "b" }, func(r *api.ListRequest) { r.Thread, r.Cursor = "th", "zzz" }} {
		r := &api.ListRequest{Common: api.Common{Tenant: tenant}}
		bad(r)
		_, err := w.Checkpoint.List(t.Context(), r)
		wantCode(t, err, execution.InvalidRequest)
	}
}

// Labels that are added later find the execution, and its lease is not cut.
func TestLabelsAddedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 5} })
	if _, err := w.Journal.Renew(t.Context(), tenant, "e", "w", k.Fence, 600); err != nil {
		t.Fatal(err)
	}
	w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Labels, r.Subjects = k.Fence, map[string]string{"case": "7"}, []string{"anna"}
	})
	if ids, _ := w.list(func(r *api.ListRequest) { r.Label = map[string]string{"case": "7"} }); !slices.Equal(ids, []string{"e"}) {
		t.Errorf("by label: %v", ids)
	}
	if ids, _ := w.list(func(r *api.ListRequest) { r.Subject = "anna" }); !slices.Equal(ids, []string{"e"}) {
		t.Errorf("by subject: %v", ids)
	}
	h, _, _ := w.Journal.ReadHead(t.Context(), tenant, "e")
	if left := h.LeaseExpiresAt - w.e.Now().UnixMilli(); left != 600_000 || h.DueAt != h.LeaseExpiresAt {
		t.Errorf("lease %d ms, due in %d", left, h.DueAt-w.e.Now().UnixMilli())
	}
}

func TestForkWithoutOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) {
		r.State, r.Claim, r.Thread = js(`{"n":1}`), &api.CreateClaim{Owner: "w", LeaseSeconds: 60}, "th"
		r.Budgets = map[string]api.BudgetLimit{"money": {Limit: "10.5"}}
	})
	a := w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Merge, r.Spend = k.Fence, js(`{"n":2}`), map[string]api.Decimal{"money": "4"}
	})
	b := w.apply("e", a.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{{Name: "pay", Args: js(`1`)}}
	})
	fork := func(version int64) (*api.ForkReply, error) {
		r := &api.ForkRequest{Common: api.Common{Tenant: tenant, RequestID: "fork"}, Execution: "e", AtVersion: version}
		api.Identify(r)
		return w.Checkpoint.Fork(t.Context(), r)
	}
	_, err := fork(b.Version)
	if e := wantCode(t, err, execution.OperationsOpen); len(e.Facts["operations"].([]string)) != 1 {
		t.Errorf("facts %v", e.Facts)
	}
	f, err := fork(a.Version)
	if err != nil || f.Parent == nil || f.Parent.Execution != "e" || f.Parent.Version != a.Version {
		t.Fatalf("fork: %+v, %v", f, err)
	}
	again, err := fork(a.Version)
	if err != nil || again.Execution != f.Execution || !again.Replayed {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	g := w.get(string(f.Execution))
	if g.State.String() != `{"n":2}` || g.Thread != "th" || len(g.Operations) != 0 || g.Budgets["money"] != (api.Budget{Limit: "10.5", Spent: "0"}) {
		t.Errorf("child %s, operations %d, budgets %v", g.State, len(g.Operations), g.Budgets)
	}
}

func TestOneChildPerAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	op := w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{{Name: "sub", Args: js(`1`)}}
	}).Operations[0].Operation
	child := func(request string) (*api.CreateReply, error) {
		r := &api.CreateRequest{Common: api.Common{Tenant: tenant, RequestID: request}, Workflow: "sub", Parent: &api.ParentRef{Execution: "e", Operation: op}}
		api.Identify(r)
		return w.Checkpoint.Create(t.Context(), r)
	}
	c, err := child("a")
	if err != nil || c.Parent == nil || c.Parent.Operation != op {
		t.Fatalf("child: %+v, %v", c, err)
	}
	if again, err := child("a"); err != nil || again.Execution != c.Execution || !again.Replayed {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	_, err = child("b")
	if e := wantCode(t, err, execution.AlreadyExists); e.Facts["execution"] != string(c.Execution) {
		t.Errorf("facts %v", e.Facts)
	}
	w.apply(string(c.Execution), c.Version, func(r *api.ApplyRequest) {
		r.Then = &api.Then{Complete: &api.Completion{Outcome: execution.StatusFailed}}
	})
	slots, err := w.Journal.ReadSlots(t.Context(), execution.Ref{Tenant: tenant, Execution: "e", Generation: k.Generation}, op)
	if err != nil || slots[1] == nil || slots[1].Outcome != execution.OutcomeFailed {
		t.Errorf("the parent's slot: %+v, %v", slots[1], err)
	}
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.create("e", nil).Version
	for n := range 11 {
		v = w.apply("e", v, func(r *api.ApplyRequest) { r.Merge, r.Note = js(`{"n":%d}`, n), fmt.Sprint("step ", n) }).Version
	}
	for _, newest := range []bool{false, true} {
		var got []int64
		r := &api.HistoryRequest{Common: api.Common{Tenant: tenant}, Execution: "e", Limit: 5, NewestFirst: newest}
		for pages := 1; ; pages++ {
			out, err := w.Checkpoint.History(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range out.Entries {
				got = append(got, e.Version)
			}
			if out.Cursor == "" {
				if pages != 3 {
					t.Errorf("%d pages", pages)
				}
				break
			}
			r.Cursor = out.Cursor
		}
		if newest {
			slices.Reverse(got)
		}
		if len(got) != 12 || got[0] != 1 || got[11] != 12 || !slices.IsSorted(got) {
			t.Errorf("newest first %v: versions %v", newest, got)
		}
	}
}

// Case X6: what looks like a live credential is refused with its path, never
// its value.
func TestSecretsAreRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"action":"create","tenant":"t","execution":"e","workflow":"wf","request_id":"r","state":{"auth":{"password":"canary-7f3a-hunter2"}}}`
	_, err := w.Functions()[api.Checkpoint](t.Context(), []byte(body))
	if err == nil || !strings.Contains(err.Error(), "/state/auth/password") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// Evidence that contradicts itself is for a person: taking "what the ledger
// has" settles nothing.
func TestContradictedEvidenceIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	a := w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{{Name: "pay", Args: js(`1`)}}
	})
	op := a.Operations[0].Operation
	for _, outcome := range []execution.Outcome{execution.OutcomeSucceeded, execution.OutcomeFailed} {
		o := &api.RecordOutcomeRequest{Common: w.common(), Execution: "e", Operation: op, Outcome: outcome}
		api.Identify(o)
		if _, err := w.Ledger.RecordOutcome(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := w.step("e", a.Version, func(r *api.ApplyRequest) { r.Fence, r.Outcomes = k.Fence, []api.OutcomeReport{{Operation: op}} })
	if e := wantCode(t, err, execution.InvalidRequest); e.Facts["field"] != "outcomes[0].outcome" {
		t.Errorf("facts %v", e.Facts)
	}
	if v := w.get("e").Version; v != a.Version {
		t.Errorf("version %d", v)
	}
}

// Get costs at most three requests, open operations or not.
func TestGetCountsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	a := w.apply("e", k.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = k.Fence, []api.OperationDeclaration{{Name: "pay", Args: js(`1`)}, {Name: "pay", Args: js(`2`)}}
	})
	o := &api.RecordOutcomeRequest{Common: w.common(), Execution: "e", Operation: a.Operations[1].Operation, Outcome: execution.OutcomeSucceeded, Result: js(`{"x":1}`)}
	api.Identify(o)
	if _, err := w.Ledger.RecordOutcome(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, cold := range []bool{false, true} {
		if cold {
			w.Journal.Forget(tenant, "e")
		}
		w.e.Mark()
		g := w.get("e")
		if calls := w.e.Log(); len(calls) > 3 {
			t.Errorf("cold %v: %+v", cold, calls)
		}
		if g.Operations[0].Evidence != nil || g.Operations[1].Evidence == nil || g.Operations[1].Evidence.Outcome != execution.OutcomeSucceeded {
			t.Errorf("evidence %+v, %+v", g.Operations[0].Evidence, g.Operations[1].Evidence)
		}
		if g.LeaseRemainingMS == nil || *g.LeaseRemainingMS != 60_000 {
			t.Errorf("lease %v", g.LeaseRemainingMS)
		}
	}
}
