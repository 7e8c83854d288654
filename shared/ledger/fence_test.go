package ledger_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

func (w *world) put(it store.Item) {
	w.t.Helper()
	if _, err := w.engine.Table(memory.Main).Put(context.Background(), store.Put{Item: it}); err != nil {
		w.t.Fatal(err)
	}
}

// A slot lets a start through where it is empty or this nonce's, in each of
// these by itself.
func TestStartAgainstTheSlot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		there map[string]store.Value
		code  execution.Code
	}{
		"only a callback":      {map[string]store.Value{journal.SlotCallback: store.B([]byte("c"))}, ""},
		"a nonce":              {map[string]store.Value{journal.SlotNonce: store.B([]byte("another"))}, execution.OperationMismatch},
		"started":              {map[string]store.Value{journal.SlotStarted: store.N(5)}, execution.OperationMismatch},
		"in progress":          {map[string]store.Value{journal.SlotOutcome: store.S("in_progress")}, execution.LeaseLost},
		"another generation's": {map[string]store.Value{journal.SlotGeneration: store.N(5)}, execution.LeaseLost},
		"of a newer version's": {map[string]store.Value{journal.SlotOutcome: store.S("teleported")}, execution.LeaseLost},
	} {
		w := newWorld(t)
		fence := w.claimed("e").Fence
		op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
		k := journal.SlotKey("bank#e", op, 1)
		it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.SlotGeneration: store.N(w.where("e").Generation)}
		maps.Copy(it, tt.there)
		w.put(it)
		if _, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n")); execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
	}
}

// Given up between the read and the transaction: the status and the fence on the
// head are what they were, only the owner is gone.
func TestStartBehindAContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fence := w.claimed("e").Fence
	op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
	other := w.process()
	b := &storetest.BeforeTransact{Table: w.Journal.Table}
	b.What = func() {
		s := w.where("e")
		r := &api.ApplyRequest{Common: w.common(), Changes: api.Changes{Execution: "e", ExpectedVersion: s.Version, Fence: s.Fence}, Then: &api.Then{Continue: &api.Continue{}}}
		if _, err := other.Checkpoint.Apply(t.Context(), identified(r)); err != nil {
			t.Error(err)
		}
	}
	w.Journal.Table = b
	if _, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n")); execution.CodeOf(err) != execution.LeaseLost {
		t.Fatalf("%v", err)
	}
	if slots, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op); err != nil || slots[1] != nil {
		t.Fatalf("%+v %v", slots[1], err)
	}
}

// When a start comes too late, and where none may be.
func TestStartStanding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(w *world, op execution.OperationID)
		code   execution.Code
	}{
		"in time":  {func(w *world, _ execution.OperationID) { w.advance(60*time.Second - 3*time.Millisecond) }, ""},
		"too late": {func(w *world, _ execution.OperationID) { w.advance(60 * time.Second) }, execution.LeaseLost},
		"halted": {func(w *world, _ execution.OperationID) {
			if _, err := w.Recovery.Halt(context.Background(), identified(&api.HaltRequest{Common: w.common(), Execution: "e", Reason: "stop"})); err != nil {
				w.t.Fatal(err)
			}
		}, execution.Halted},
		"waiting": {func(w *world, _ execution.OperationID) {
			s := w.where("e")
			if _, err := w.Checkpoint.Suspend(context.Background(), identified(&api.SuspendRequest{Common: w.common(), Changes: api.Changes{Execution: "e", ExpectedVersion: s.Version, Fence: s.Fence}, Wait: &api.Wait{Until: api.TimeOrNil(w.engine.Now().UnixMilli() + 5000)}})); err != nil {
				w.t.Fatal(err)
			}
		}, execution.LeaseLost},
	} {
		w := newWorld(t)
		fence := w.claimed("e").Fence
		op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close, ValidSeconds: 60}).Operation
		tt.before(w, op)
		if _, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n")); execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
	}
}

// A callback speaks of one life of an execution, and may be named with what it
// is for.
func TestCallbackOfAnotherLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{})
	old := w.where("e").Ref
	old.Generation--
	cb, err := w.Ledger.Callback(t.Context(), old, op.Operation, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Ledger.RecordOutcome(t.Context(), identified(&api.RecordOutcomeRequest{Common: w.common(), Callback: cb, Outcome: execution.OutcomeSucceeded}))
	refused(t, err, execution.Deleted, "")
	s := w.signal("", "answer", "k", `1`)
	s.Callback = cb
	_, err = w.Ledger.Signal(t.Context(), identified(s))
	refused(t, err, execution.Deleted, "")
	if slots, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op.Operation); err != nil || len(slots) != 0 {
		t.Errorf("%v %v", slots, err)
	}
	r := &api.RecordOutcomeRequest{Common: w.common(), Callback: op.Callback, Outcome: execution.OutcomeSucceeded, Execution: "e", Operation: op.Operation, Attempt: 1}
	if out, err := w.Ledger.RecordOutcome(t.Context(), identified(r)); err != nil || !out.Recorded {
		t.Errorf("named: %+v %v", out, err)
	}
	two := w.declare("e", api.OperationDeclaration{Key: "two"})
	s = w.signal("e", "answer", "k", `1`)
	s.Callback = two.Callback
	if out, err := w.Ledger.Signal(t.Context(), identified(s)); err != nil || !out.Recorded {
		t.Errorf("named: %+v %v", out, err)
	}
	s = w.signal("f", "answer", "k", `1`)
	s.Callback = two.Callback
	_, err = w.Ledger.Signal(t.Context(), identified(s))
	refused(t, err, execution.InvalidRequest, "execution")
}

// The move comes between the evidence's reading and its writing: the fork has
// the last word.
func TestRecordBehindAMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	p := w.process()
	p.Journal.Table = &storetest.BeforeUpdate{Table: p.Journal.Table, What: func() { w.carry("e", "f") }}
	got, err := p.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, `1`))
	if err != nil || got.Execution != "f" || !got.Recorded {
		t.Errorf("%+v %v", got, err)
	}
	if got := w.get("f", op); got.Status != "succeeded" {
		t.Errorf("%+v", got)
	}
}

// Evidence is passed on to the fork that was made, not to what took its id
// since.
func TestEvidenceForAnotherFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{})
	w.carry("e", "f")
	page, _, err := w.engine.Table(memory.Main).Query(t.Context(), store.Query{PK: "bank#f", Consistent: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range page.Items {
		if _, _, err := w.engine.Table(memory.Main).Delete(t.Context(), store.Delete{Key: it.Key()}); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.claimed("f")
	_, err = w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op.Operation, execution.OutcomeSucceeded, `1`))
	refused(t, err, execution.Integrity, "")
	s := w.signal("", "answer", "k", `1`)
	s.Callback = op.Callback
	_, err = w.Ledger.Signal(t.Context(), identified(s))
	refused(t, err, execution.Integrity, "")
}

// Emptying touches absorbed signals of this life that are full, and nothing
// else.
func TestEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	w.send(w.signal("e", "a", "k", `1`))
	ref := w.where("e").Ref
	item := func(key string) store.Item {
		it, _, err := w.engine.Table(memory.Main).Get(t.Context(), store.Get{Key: journal.SignalItemKey("bank#e", ref.Generation, "a", key), Consistent: true})
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	refs := []execution.SignalRef{{Name: "a", Key: "k"}, {Name: "a", Key: "none"}}
	empty := func(ref execution.Ref) {
		t.Helper()
		if err := w.Ledger.Empty(t.Context(), ref, refs); err != nil {
			t.Fatal(err)
		}
	}
	old := ref
	old.Generation--
	k := journal.SignalItemKey("bank#e", old.Generation, "a", "k")
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "b": store.B([]byte("left over"))})
	empty(old)
	if it, _, err := w.engine.Table(memory.Main).Get(t.Context(), store.Get{Key: k, Consistent: true}); err != nil || !it.Has("b") {
		t.Errorf("of an earlier life: %v %v", it, err)
	}
	nobody := ref
	nobody.Execution = "nobody"
	empty(nobody)
	if it := item("k"); !it.Has("b") || it.Has(store.AttrTTL) {
		t.Errorf("by another life: %v", it)
	}
	empty(ref)
	first := item("k")
	if first.Has("b") || !first.Has(store.AttrTTL) || item("none") != nil {
		t.Errorf("%v, %v", first, item("none"))
	}
	w.advance(time.Hour)
	empty(ref)
	if item("k").Int(store.AttrTTL) != first.Int(store.AttrTTL) {
		t.Error("an empty one was given more time")
	}
	_, err := w.Ledger.Signals(t.Context(), w.where("e"), refs[:1])
	refused(t, err, execution.InvalidRequest, "absorb[0]")
	w.faults(memory.Fault{On: "update", Effect: "unavailable", Count: 99})
	if err := w.Ledger.Empty(t.Context(), ref, refs); execution.CodeOf(err) != execution.Unavailable {
		t.Error(err)
	}
	w.faults(memory.Fault{On: "get", Effect: "unavailable", Count: 99})
	if err := w.Ledger.Empty(t.Context(), ref, refs); execution.CodeOf(err) != execution.Unavailable {
		t.Error(err)
	}
	w.faults()
	w.send(w.signal("e", "a", "batch", `1`))
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 99})
	if _, err := w.Ledger.Signals(t.Context(), w.where("e"), []execution.SignalRef{{Name: "a", Key: "batch"}}); execution.CodeOf(err) != execution.Throttled {
		t.Error(err)
	}
}

// A body of the very limit is taken, and a result of the very limit stays in its
// slot.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	text := func(n int) string { return `"` + string(filler(n-2)) + `"` }
	const most = 256 << 10
	for n, code := range map[int]execution.Code{most: "", most + 1: execution.TooLarge} {
		if _, err := w.Ledger.Signal(t.Context(), w.signal("e", "a", string(rune('a'+n%2)), text(n))); execution.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for n, inline := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		v, a, err := w.Ledger.Shrink(t.Context(), w.where("e").Ref, jsonx.MustParse(text(n)))
		if err != nil || (v != nil) != inline || (a == nil) != inline {
			t.Errorf("%d bytes: %v %v", n, a, err)
		}
	}
	if v, err := w.Ledger.Expand(t.Context(), w.where("e").Ref, nil); v != nil || err != nil {
		t.Errorf("%v %v", v, err)
	}
}

func filler(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// What was absorbed and could not be emptied stays known as such, and is not
// absorbed again.
func TestAbsorbedButFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	w.send(w.signal("e", "a", "k", `1`))
	w.send(w.signal("e", "a", "other", `1`))
	w.faults(memory.Fault{On: "update", Effect: "unavailable", Count: 99})
	w.apply("e", func(r *api.ApplyRequest) { r.Absorb = []api.SignalRef{{Name: "a", Key: "k"}} })
	w.faults()
	s := w.where("e")
	inbox, err := w.Ledger.Inbox(t.Context(), s)
	if err != nil || len(inbox.StillFull) != 1 || inbox.StillFull[0].Key != "k" || len(inbox.Empty) != 0 || len(inbox.Open) != 1 || inbox.Open[0].Key != "other" {
		t.Fatalf("%+v %v", inbox, err)
	}
	_, err = w.Ledger.Signals(t.Context(), s, []execution.SignalRef{{Name: "a", Key: "other"}, {Name: "a", Key: "k"}})
	refused(t, err, execution.InvalidRequest, "absorb[1]")
	if err := w.Ledger.Empty(t.Context(), s.Ref, inbox.StillFull); err != nil {
		t.Fatal(err)
	}
	if inbox, err = w.Ledger.Inbox(t.Context(), s); err != nil || len(inbox.StillFull) != 0 || len(inbox.Empty) != 1 || len(inbox.Open) != 1 {
		t.Errorf("%+v %v", inbox, err)
	}
}

// Evidence wakes who waits or is parked, and leaves alone what meanwhile goes on.
func TestWakeBehindAClaim(t *testing.T) {
	t.Parallel()
	suspend := func(w *world) {
		s := w.where("e")
		if _, err := w.Checkpoint.Suspend(t.Context(), identified(&api.SuspendRequest{Common: w.common(), Changes: api.Changes{Execution: "e", ExpectedVersion: s.Version, Fence: s.Fence}, Wait: &api.Wait{Signals: []string{"a"}}})); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		before, between func(w *world)
		due             string
	}{
		"waiting": {suspend, nil, journal.DueSignal},
		"running": {func(*world) {}, nil, journal.DueLease},
		"parked": {func(w *world) {
			suspend(w)
			it := w.head("e")
			it[journal.HeadStatus] = store.S("parked")
			w.put(it)
		}, nil, journal.DueSignal},
		"claimed meanwhile": {suspend, func(w *world) { takeOver(w, "", 0) }, journal.DueLease},
	} {
		w := newWorld(t)
		w.claimed("e")
		tt.before(w)
		p := w.process()
		if tt.between != nil {
			p.Journal.Table = &storetest.BeforeUpdate{Table: p.Journal.Table, What: func() { tt.between(w) }}
		}
		if _, err := p.Ledger.Signal(t.Context(), w.signal("e", "a", "k", `1`)); err != nil {
			t.Fatal(err)
		}
		if got := w.head("e").Str(journal.HeadDueKind); got != tt.due {
			t.Errorf("%s: due for %q, want %q", name, got, tt.due)
		}
	}
}

// Evidence that is written while its execution is deleted and made again is refused
// as Deleted, and does not wake the one that has the id now.
func TestEvidenceOfAnotherLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	again := func() {
		if _, err := w.Retention.Delete(t.Context(), identified(&api.DeleteRequest{Common: w.common(), Selector: api.Selector{Execution: "e"}, Reason: "r"})); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Checkpoint.Create(t.Context(), identified(&api.CreateRequest{Common: w.common(), Execution: "e", Workflow: "wf", Reuse: "new_generation", Claim: &api.CreateClaim{Owner: "w", LeaseSeconds: 3600}})); err != nil {
			t.Fatal(err)
		}
		s := w.where("e")
		if _, err := w.Checkpoint.Suspend(t.Context(), identified(&api.SuspendRequest{Common: w.common(), Changes: api.Changes{Execution: "e", ExpectedVersion: s.Version, Fence: s.Fence}, Wait: &api.Wait{Signals: []string{"a"}}})); err != nil {
			t.Fatal(err)
		}
	}
	p := w.process()
	p.Journal.Table = &storetest.BeforeUpdate{Table: p.Journal.Table, What: again}
	_, err := p.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, `1`))
	refused(t, err, execution.Deleted, "")
	if got := w.head("e").Str(journal.HeadDueKind); got == journal.DueEvidence {
		t.Errorf("the new one is due for %q", got)
	}
	if got, err := w.Ledger.GetOperation(t.Context(), &api.GetOperationRequest{Common: w.common(), Execution: "e", Operation: op}); execution.CodeOf(err) != execution.NotFound {
		t.Errorf("%+v %v", got, err)
	}
}

// An operation that never was is not found.
func TestGetNoOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	_, err := w.Ledger.GetOperation(t.Context(), &api.GetOperationRequest{Common: w.common(), Execution: "e", Operation: "0123456789abcdef0123456789abcdef"})
	refused(t, err, execution.NotFound, "operation")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	it := w.head("e")
	it[journal.HeadStatus] = store.S("dreaming")
	w.put(it)
	if got := w.get("e", op); got.ExecutionStatus != "dreaming" {
		t.Errorf("%+v", got)
	}
}
