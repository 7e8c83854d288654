package checkpoint_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/checkpoint"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

// An operation that was settled so long ago that the fold dropped it is answered
// from its slot, in its place among the others, and never given again.
func TestForgottenOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	write := func(f func(c *execution.Change, s *execution.State)) {
		t.Helper()
		_, err := w.Journal.Write(t.Context(), tenant, "e", journal.WriteOptions{}, func(_ context.Context, h *journal.Handle) (*journal.Step, error) {
			c := execution.Change{Kind: execution.KindCheckpoint, Expected: h.State.Version, Fence: h.State.Fence, HasFence: true}
			f(&c, h.State)
			p, err := execution.Propose(h.State, h.State.Ref, &c, execution.Environment{Now: w.Journal.Now(h)})
			return &journal.Step{Proposal: p}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Journal.SnapshotBytes = 1 << 30
	op := func(key, args string) api.OperationDeclaration {
		return api.OperationDeclaration{Name: "op", Key: key, Args: js("%s", args)}
	}
	_, asked, err := w.step("e", 1, func(r *api.ApplyRequest) {
		r.Fence, r.Operations = owner.Fence, []api.OperationDeclaration{op("0", "7")}
	})
	if err != nil {
		t.Fatal(err)
	}
	write(func(c *execution.Change, _ *execution.State) {
		for i := range execution.MaxSettledMemory + 2 {
			c.Operations = append(c.Operations, execution.Declaration{Name: "op", Key: fmt.Sprint(i + 1), Args: js(`7`)})
		}
	})
	var ids []execution.OperationID
	write(func(c *execution.Change, s *execution.State) {
		ids = nil
		for _, op := range s.OperationsInOrder() {
			ids = append(ids, op.ID)
			c.Outcomes = append(c.Outcomes, execution.Settlement{Operation: op.ID, Outcome: execution.OutcomeSucceeded, ProviderRef: "p"})
		}
	})
	w.Journal.SnapshotBytes = 1
	write(func(*execution.Change, *execution.State) {})
	declare := func(ops ...api.OperationDeclaration) (*api.ApplyReply, error) {
		out, _, err := w.step("e", w.get("e").Version, func(r *api.ApplyRequest) { r.Fence, r.Operations = owner.Fence, ops })
		return out, err
	}
	if s := w.open("e"); len(s.Forgotten) != 3*8 || s.Operation(ids[0]) != nil || s.Operation(ids[3]) == nil {
		t.Fatalf("%d bytes of forgotten ones", len(s.Forgotten))
	}
	w.e.Mark()
	out, err := declare(op("new", "1"), op("1", "7"), op("5", "7"), op("0", "7.0"))
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, c := range w.e.Log() {
		if c.Call == "query" && strings.Contains(c.Key, "/"+journal.SlotPrefix) {
			looked++
		}
	}
	if looked != 2 {
		t.Errorf("the slots of %d operations were read, two may be forgotten", looked)
	}
	for i, want := range []struct {
		id   execution.OperationID
		disp api.Disposition
	}{{"", api.Go}, {ids[1], api.Settled}, {ids[5], api.Settled}, {ids[0], api.Settled}} {
		if got := out.Operations[i]; got.Disposition != want.disp || want.id != "" && (got.Operation != want.id || got.Outcome != execution.OutcomeSucceeded) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if r, err := w.Checkpoint.Apply(t.Context(), asked); err != nil || !r.Replayed || r.Operations[0].Disposition != api.Settled || r.Operations[0].Outcome != execution.OutcomeSucceeded {
		t.Errorf("the request that declared the first one, once more: %+v, %v", r, err)
	}
	_, err = declare(op("new", "1"), op("2", "8"))
	if e := wantCode(t, err, execution.OperationMismatch); e.Facts["field"] != "operations[1].args" || e.Facts["operation"] != string(ids[2]) {
		t.Errorf("%v", e.Facts)
	}
	// An equal prefix only: nothing stands in its slot, or nothing final.
	k := journal.SlotKey("t#e", ids[2], 1)
	for _, there := range []bool{true, false} {
		if _, _, err := w.e.Table(memory.Main).Delete(t.Context(), store.Delete{Key: k}); err != nil {
			t.Fatal(err)
		}
		if there {
			it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.SlotGeneration: store.N(w.open("e").Generation), journal.SlotStarted: store.N(5)}
			if _, err := w.e.Table(memory.Main).Put(t.Context(), store.Put{Item: it}); err != nil {
				t.Fatal(err)
			}
			continue // started, without an outcome
		}
		if out, err := declare(op("2", "7")); err != nil || out.Operations[0].Disposition != api.Go {
			t.Errorf("%+v %v", out, err)
		}
	}
}

func (w *world) open(id string) *execution.State {
	w.Helper()
	h, err := w.Journal.Open(w.Context(), tenant, execution.ExecutionID(id), journal.OpenOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return h.State
}

// An outcome that the owner leaves to the ledger must be there, and be final.
func TestOutcomeOfTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
	a := w.apply("e", 1, func(r *api.ApplyRequest) { r.Fence, r.Operations = c.Fence, []api.OperationDeclaration{{Name: "pay"}} })
	id := a.Operations[0].Operation
	take := func(op execution.OperationID) (*api.ApplyReply, error) {
		out, _, err := w.step("e", w.get("e").Version, func(r *api.ApplyRequest) { r.Fence, r.Outcomes = c.Fence, []api.OutcomeReport{{Operation: op}} })
		return out, err
	}
	record := func(o execution.Outcome) {
		t.Helper()
		r := &api.RecordOutcomeRequest{Common: w.common(), Execution: "e", Operation: id, Outcome: o}
		api.Identify(r)
		if _, err := w.Ledger.RecordOutcome(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	_, err := take(id)
	if e := wantCode(t, err, execution.InvalidRequest); e.Facts["field"] != "outcomes[0].outcome" {
		t.Errorf("nothing there: %v", e.Facts)
	}
	record(execution.OutcomeInProgress)
	_, err = take(id)
	wantCode(t, err, execution.InvalidRequest)
	record(execution.OutcomeFailed)
	_, err = take("nope")
	wantCode(t, err, execution.InvalidRequest)
	if _, err := take(id); err != nil {
		t.Fatal(err)
	}
	if op := w.open("e").Operation(id); op.Outcome != execution.OutcomeFailed || op.Source != execution.FromLedger {
		t.Errorf("%+v", op)
	}
}

// What create, fork and the readers refuse before anything is written.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", nil)
	w.apply("e", 1, func(r *api.ApplyRequest) { r.Operations = []api.OperationDeclaration{{Name: "pay"}} })
	op := w.open("e").OperationsInOrder()[0].ID
	refuse := func(code execution.Code, field string, err error) {
		t.Helper()
		if e := wantCode(t, err, code); field != "" && e.Facts["field"] != field {
			t.Errorf("%v", e.Facts)
		}
	}
	create := func(f func(r *api.CreateRequest)) error {
		r := &api.CreateRequest{Common: w.common(), Workflow: "wf"}
		f(r)
		api.Identify(r)
		_, err := w.Checkpoint.Create(t.Context(), r)
		return err
	}
	refuse(execution.InvalidRequest, "execution", create(func(r *api.CreateRequest) {
		r.Execution, r.Parent = "mine", &api.ParentRef{Execution: "e", Operation: op}
	}))
	refuse(execution.InvalidRequest, "parent.operation", create(func(r *api.CreateRequest) { r.Parent = &api.ParentRef{Execution: "e", Operation: "nope"} }))
	refuse(execution.InvalidRequest, "request_id", create(func(r *api.CreateRequest) { r.RequestID = "" }))
	fork := &api.ForkRequest{Common: api.Common{Tenant: tenant}, Execution: "e", AtVersion: 1, NewExecution: "f"}
	_, err := w.Checkpoint.Fork(t.Context(), fork)
	refuse(execution.InvalidRequest, "request_id", err)
	fork.RequestID, fork.Operations = "r", "carry"
	w.Checkpoint.Carry = nil
	_, err = w.Checkpoint.Fork(t.Context(), fork)
	refuse(execution.InvalidRequest, "operations", err)
	_, err = w.Checkpoint.GetWorkflow(t.Context(), &api.GetWorkflowRequest{Common: api.Common{Tenant: tenant}, Workflow: "none"})
	refuse(execution.NotFound, "", err)
	for field, f := range map[string]func(r *api.GetRequest){
		"operations_cursor": func(r *api.GetRequest) { r.OperationsCursor = api.Cursor("operations", "x") },
		"artifacts_cursor":  func(r *api.GetRequest) { r.ArtifactsCursor = api.Cursor("artifacts", "-1") },
	} {
		r := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: "e"}
		f(r)
		_, err = w.Checkpoint.Get(t.Context(), r)
		refuse(execution.InvalidRequest, field, err)
	}
	r := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: "e", ArtifactsCursor: api.Cursor("artifacts", "x")}
	_, err = w.Checkpoint.Get(t.Context(), r)
	refuse(execution.InvalidRequest, "artifacts_cursor", err)
	r.ArtifactsCursor = api.Cursor("artifacts", "9")
	if out, err := w.Checkpoint.Get(t.Context(), r); err != nil || len(out.Artifacts) != 0 {
		t.Errorf("%+v %v", out, err)
	}
}

// A listing leaves out what is being deleted, and what was touched too recently.
func TestListLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		w.create(id, nil)
	}
	if err := w.e.Advance(1e10); err != nil {
		t.Fatal(err)
	}
	w.apply("b", 1, func(r *api.ApplyRequest) {
		r.Then = &api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted}} // touches the head
	})
	if ids, _ := w.list(func(r *api.ListRequest) { r.Workflow, r.IdleSeconds = "wf", 10 }); fmt.Sprint(ids) != "[a c]" && fmt.Sprint(ids) != "[c a]" {
		t.Errorf("%v", ids)
	}
	it, _, err := w.e.Table(memory.Main).Get(t.Context(), store.Get{Key: journal.HeadKey("t#a"), Consistent: true})
	if err != nil {
		t.Fatal(err)
	}
	it[journal.HeadStatus] = store.S(string(execution.StatusDeleting))
	if _, err := w.e.Table(memory.Main).Put(t.Context(), store.Put{Item: it}); err != nil {
		t.Fatal(err)
	}
	if ids, _ := w.list(func(r *api.ListRequest) { r.Workflow = "wf" }); len(ids) != 2 {
		t.Errorf("%v", ids)
	}
}

// A child is made for an attempt of which nothing was begun, by a parent that is
// there: in each of these by itself no child, and nothing of one.
func TestNoChild(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, between func(w *world, op execution.OperationID)
		code            execution.Code
	}{
		"nothing in the way": {nil, nil, ""},
		"evidence": {func(w *world, op execution.OperationID) {
			r := &api.RecordOutcomeRequest{Common: w.common(), Execution: "e", Operation: op, Outcome: execution.OutcomeInProgress}
			api.Identify(r)
			if _, err := w.Ledger.RecordOutcome(w.Context(), r); err != nil {
				w.Fatal(err)
			}
		}, nil, execution.ExecutionClosed},
		"settled": {func(w *world, op execution.OperationID) { w.settle(op, nil) }, nil, execution.ExecutionClosed},
		"the parent has ended": {func(w *world, op execution.OperationID) {
			w.settle(op, &api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted}})
		}, nil, execution.ExecutionClosed},
		"begun meanwhile": {nil, func(w *world, op execution.OperationID) {
			k := journal.SlotKey("t#e", op, 1)
			w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.SlotGeneration: store.N(w.open("e").Generation), journal.SlotStarted: store.N(5)})
		}, execution.ExecutionClosed},
		"being deleted": {nil, func(w *world, _ execution.OperationID) {
			it := w.head("e")
			it[journal.HeadStatus] = store.S(string(execution.StatusDeleting))
			w.put(it)
		}, execution.Deleted},
		"halted": {func(w *world, _ execution.OperationID) { w.halt("e") }, nil, execution.Halted},
		"halted meanwhile": {nil, func(w *world, _ execution.OperationID) {
			it := w.head("e")
			it[journal.HeadStatus] = store.S(string(execution.StatusHalted))
			w.put(it)
		}, execution.Halted},
		"another life, halted": {nil, func(w *world, _ execution.OperationID) {
			it := w.head("e")
			it[journal.HeadGeneration], it[journal.HeadStatus] = store.N(5), store.S(string(execution.StatusHalted))
			w.put(it)
		}, execution.Deleted},
		"another life": {nil, func(w *world, _ execution.OperationID) {
			it := w.head("e")
			it[journal.HeadGeneration] = store.N(5)
			w.put(it)
		}, execution.Deleted},
	} {
		w := newWorld(t)
		c := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
		op := w.apply("e", 1, func(r *api.ApplyRequest) { r.Fence, r.Operations = c.Fence, []api.OperationDeclaration{{Name: "sub"}} }).Operations[0].Operation
		if tt.before != nil {
			tt.before(w, op)
		}
		if tt.between != nil {
			w.Journal.Table = &storetest.BeforeTransact{Table: w.Journal.Table, What: func() { tt.between(w, op) }}
		}
		r := &api.CreateRequest{Common: w.common(), Workflow: "sub", Parent: &api.ParentRef{Execution: "e", Operation: op}}
		api.Identify(r)
		out, err := w.Checkpoint.Create(t.Context(), r)
		if execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %+v %v, want %q", name, out, err, tt.code)
		}
		id := checkpoint.ChildID(execution.Ref{Tenant: tenant, Execution: "e", Generation: c.Generation}, &execution.Operation{ID: op, Attempt: 1})
		if there := w.head(string(id)) != nil; there != (tt.code == "") {
			t.Errorf("%s: there is a child: %v", name, there)
		}
	}
	// One that was made is answered, also under a halted parent and once its end has
	// settled the operation.
	for name, then := range map[string]func(w *world, op execution.OperationID){
		"halted":  func(w *world, _ execution.OperationID) { w.halt("e") },
		"settled": func(w *world, op execution.OperationID) { w.settle(op, nil) },
	} {
		w := newWorld(t)
		c := w.create("e", func(r *api.CreateRequest) { r.Claim = &api.CreateClaim{Owner: "w", LeaseSeconds: 60} })
		op := w.apply("e", 1, func(r *api.ApplyRequest) { r.Fence, r.Operations = c.Fence, []api.OperationDeclaration{{Name: "sub"}} }).Operations[0].Operation
		r := &api.CreateRequest{Common: w.common(), Workflow: "sub", Parent: &api.ParentRef{Execution: "e", Operation: op}}
		api.Identify(r)
		first, err := w.Checkpoint.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		then(w, op)
		if again, err := w.Checkpoint.Create(t.Context(), r); err != nil || !again.Replayed || again.Execution != first.Execution {
			t.Errorf("%s: %+v %v", name, again, err)
		}
	}
}

func (w *world) halt(e execution.ExecutionID) {
	w.Helper()
	r := &api.HaltRequest{Common: w.common(), Execution: e, Reason: "look"}
	api.Identify(r)
	if _, err := w.Recovery.Halt(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

func (w *world) settle(op execution.OperationID, then *api.Then) {
	w.Helper()
	s := w.open("e")
	w.apply("e", s.Version, func(r *api.ApplyRequest) {
		r.Fence, r.Outcomes, r.Then = s.Fence, []api.OutcomeReport{{Operation: op, Outcome: execution.OutcomeSucceeded}}, then
	})
}

func (w *world) head(id string) store.Item {
	w.Helper()
	it, _, err := w.e.Table(memory.Main).Get(w.Context(), store.Get{Key: journal.HeadKey("t#" + id), Consistent: true})
	if err != nil {
		w.Fatal(err)
	}
	return it
}

func (w *world) put(it store.Item) {
	w.Helper()
	if _, err := w.e.Table(memory.Main).Put(w.Context(), store.Put{Item: it}); err != nil {
		w.Fatal(err)
	}
}
