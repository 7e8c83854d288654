package journal

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// What the fold forgets stands in its slot first; what stands there already
// stays.
func TestForgottenOperationsStandInTheirSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, forgotten := range []int{3, 30} {
		w := newWorld(t)
		j := w.process()
		j.SnapshotBytes = 1 << 30
		h := w.create(j, "e", `{"text":"`+noise(rand.New(rand.NewPCG(1, 1)), 250<<10)+`"}`, "w1")
		c := change(h, "many", `{"n":-1}`)
		for i := range execution.MaxSettledMemory + forgotten {
			c.Operations = append(c.Operations, execution.Declaration{Name: "op", Key: fmt.Sprint(i), Args: value(`7`)})
		}
		got, err := j.step(ctx, "e", c)
		if err != nil {
			t.Fatal(err)
		}
		ops := got.Handle.State.OperationsInOrder()
		c = change(got.Handle, "settled", `{"n":0}`)
		for _, op := range ops {
			c.Outcomes = append(c.Outcomes, execution.Settlement{Operation: op.ID, Outcome: execution.OutcomeFailed, Result: value(`null`), ProviderRef: "p"})
		}
		if got, err = j.step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.FillSlot(ctx, h.State.Ref, &Slot{Operation: ops[1].ID, Attempt: 1, Generation: h.State.Generation, Outcome: execution.OutcomeSucceeded, At: 3}, FillOptions{}); err != nil {
			t.Fatal(err)
		}
		j.SnapshotBytes = 1
		h = w.apply(j, got.Handle, "forgets", `{"n":1}`)
		same(t, w.open(w.process(), "e"), h)
		if len(h.State.Settled) != execution.MaxSettledMemory || len(h.State.Forgotten) != 8*forgotten {
			t.Fatalf("%d remembered, %d forgotten", len(h.State.Settled), len(h.State.Forgotten)/8)
		}
		slots, err := j.ReadAllSlots(ctx, h.State.Ref)
		if err != nil || len(slots) != forgotten {
			t.Fatalf("%d slots, %v", len(slots), err)
		}
		for i, op := range ops[:forgotten] {
			want := execution.OutcomeFailed
			if i == 1 {
				want = execution.OutcomeSucceeded
			}
			if s := slots[op.ID][1]; s.Outcome != want || i != 1 && (s.Result == nil || s.ProviderRef != "p" || string(s.Args) != string(op.ArgsDigest[:])) || !h.State.MayBeForgotten(op.ID) {
				t.Errorf("%d: %+v", i, s)
			}
		}
	}
}

// Slots: first final write wins, whoever writes.
func TestSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	const op = execution.OperationID("0123456789abcdef0123456789abcdef")
	slot := func(o execution.Outcome, n int) *Slot {
		return &Slot{Operation: op, Attempt: n, Generation: ref.Generation, Outcome: o, At: 5, Result: value(`{"n":null}`), ProviderRef: "p"}
	}
	fill := func(s *Slot, o FillOptions, stands execution.Outcome, filled bool) {
		t.Helper()
		now, did, err := j.FillSlot(ctx, ref, s, o)
		if err != nil || now.Outcome != stands || did != filled {
			t.Errorf("fill %s: stands %+v filled %v %v", s.Outcome, now, did, err)
		}
	}
	fill(slot(execution.OutcomeUnknown, 1), FillOptions{}, execution.OutcomeUnknown, true)
	fill(slot(execution.OutcomeInProgress, 1), FillOptions{}, execution.OutcomeInProgress, true)
	fill(slot(execution.OutcomeNotExecuted, 1), FillOptions{OnlyEmpty: true}, execution.OutcomeInProgress, false)
	fill(slot(execution.OutcomeSucceeded, 1), FillOptions{}, execution.OutcomeSucceeded, true)
	fill(slot(execution.OutcomeSucceeded, 1), FillOptions{}, execution.OutcomeSucceeded, true)
	fill(slot(execution.OutcomeFailed, 1), FillOptions{}, execution.OutcomeSucceeded, false)
	fill(slot(execution.OutcomeUnknown, 1), FillOptions{}, execution.OutcomeSucceeded, false)
	other := slot(execution.OutcomeSucceeded, 1)
	other.Result = value(`{"n":1}`)
	fill(other, FillOptions{}, execution.OutcomeSucceeded, false)
	got, err := j.ReadSlots(ctx, ref, op)
	if s := got[1]; err != nil || !s.SawUnknown || s.Result.String() != `{"n":null}` || s.ProviderRef != "p" {
		t.Errorf("%+v %v", got, err)
	}
	// A started slot is not empty, and only its outcome finishes it.
	k := SlotKey(ref.PK(), op, 2)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(ref.Generation), SlotNonce: store.B([]byte("n")), SlotStarted: store.N(3), SlotFence: store.N(1)})
	fill(slot(execution.OutcomeNotExecuted, 2), FillOptions{OnlyEmpty: true}, execution.OutcomeNone, false)
	fill(slot(execution.OutcomeRejected, 2), FillOptions{}, execution.OutcomeRejected, true)
	// An outcome of a newer version is open, and nobody writes over it.
	k = SlotKey(ref.PK(), op, 3)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(ref.Generation), SlotOutcome: store.S("teleported"), SlotBody: store.B([]byte("?"))})
	fill(slot(execution.OutcomeSucceeded, 3), FillOptions{}, "teleported", false)
	// Another generation's.
	k = SlotKey(ref.PK(), op, 4)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(1)})
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 4), FillOptions{})
	wantCode(t, err, execution.Deleted)
	// A callback is good for one content.
	fill(slot(execution.OutcomeInProgress, 5), FillOptions{Callback: []byte("a")}, execution.OutcomeInProgress, true)
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 5), FillOptions{Callback: []byte("b")})
	wantCode(t, err, execution.RequestMismatch)
	fill(slot(execution.OutcomeSucceeded, 5), FillOptions{}, execution.OutcomeSucceeded, true)
	// A recorded null is not absent.
	null := slot(execution.OutcomeSucceeded, 6)
	null.Result = value(`null`)
	fill(null, FillOptions{}, execution.OutcomeSucceeded, true)
	none := slot(execution.OutcomeSucceeded, 7)
	none.Result, none.Reason = nil, `"r":null`
	fill(none, FillOptions{}, execution.OutcomeSucceeded, true)
	got, err = j.ReadSlots(ctx, ref, op)
	if err != nil || got[6].Result == nil || got[7].Result != nil {
		t.Errorf("%+v %v", got, err)
	}
	// Contradictions are kept once each, beside the first outcome.
	for n, first := range []bool{true, false} {
		did, err := j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 1), []byte{1}, FillOptions{})
		if err != nil || did != first {
			t.Errorf("contradiction %d: first %v, %v", n, did, err)
		}
	}
	if did, err := j.Contradict(ctx, ref, slot(execution.OutcomeRejected, 1), []byte{2}, FillOptions{}); err != nil || !did {
		t.Errorf("another contradiction: %v %v", did, err)
	}
	got, err = j.ReadSlots(ctx, ref, op)
	if s := got[1]; err != nil || s.Outcome != execution.OutcomeSucceeded || !s.Contradicted || len(s.Contradictions) != 2 || s.Contradictions[0].Outcome != execution.OutcomeFailed {
		t.Errorf("%+v %v", got[1], err)
	}
	_, err = j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 4), []byte{1}, FillOptions{}) // another generation's slot
	wantCode(t, err, execution.Deleted)
	_, err = j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 4), []byte{1}, FillOptions{Callback: []byte("a")})
	wantCode(t, err, execution.Deleted)
	use := func(n int, content string) error {
		_, err := w.engine.Table(memory.Main).Transact(ctx, store.Transact{Token: fmt.Sprint("use", n, content), Writes: []store.Write{UseCallback(ref, op, n, []byte(content))}})
		return err
	}
	for _, u := range []struct {
		n       int
		content string
		ok      bool
	}{{4, "a", false}, {5, "b", false}, {5, "a", true}, {1, "a", true}, {1, "b", false}, {10, "a", true}, {10, "a", true}} {
		if err := use(u.n, u.content); (err == nil) != u.ok {
			t.Errorf("the callback of %d for %s: %v", u.n, u.content, err)
		}
	}
	_, err = j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 5), []byte{1}, FillOptions{Callback: []byte("b")})
	wantCode(t, err, execution.RequestMismatch)
	// Too late a validation is refused.
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 8), FillOptions{ValidatedAt: w.engine.Now().Add(-store.Window - time.Second)})
	wantCode(t, err, execution.Unavailable)
	// Batches that come back in part.
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 2})
	many, err := j.GetSlots(ctx, ref, []*execution.Operation{{ID: op, Attempt: 6}, {ID: "none", Attempt: 1}})
	if err != nil || len(many) != 1 {
		t.Errorf("%v %v", many, err)
	}
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 20})
	_, err = j.GetSlots(ctx, ref, []*execution.Operation{{ID: op, Attempt: 6}})
	wantCode(t, err, execution.Throttled)
}

// What the journal settled goes into the slot of the attempt that it settled,
// and nothing else does.
func TestKeepOutcome(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	past := []execution.PastAttempt{{Attempt: 1, Outcome: execution.OutcomeRejected, Reason: "r1"}, {Attempt: 2, Outcome: execution.OutcomeNotExecuted, Reason: "r2"}}
	open := &execution.Operation{ID: "0123456789abcdef0123456789abcdef", Attempt: 3, Past: past}
	final := &execution.Operation{ID: "1123456789abcdef0123456789abcdef", Attempt: 3, Past: past, Outcome: execution.OutcomeFailed}
	for _, op := range []*execution.Operation{open, final} {
		for _, n := range []int{1, 2, 3, 4} {
			if err := j.KeepOutcome(ctx, ref, op, n, 5, w.engine.Now()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := j.ReadSlots(ctx, ref, op.ID)
		want := map[int]execution.Outcome{1: execution.OutcomeRejected, 2: execution.OutcomeNotExecuted}
		if op.Final() {
			want[3] = execution.OutcomeFailed
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v %v", got, err)
		}
		for n, o := range want {
			if s := got[n]; s.Outcome != o || n < 3 && s.Reason != fmt.Sprint("r", n) {
				t.Errorf("attempt %d: %+v", n, s)
			}
		}
	}
}

// Results that the ledger keeps as artifacts, contradictions included; those of
// another generation are not this one's.
func TestResultRefs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	slot := func(n int, o execution.Outcome, digest string) *Slot {
		return &Slot{Operation: "0123456789abcdef0123456789abcdef", Attempt: n, Generation: ref.Generation, Outcome: o, At: 5, ResultRef: &execution.Artifact{Digest: digest}}
	}
	if _, _, err := j.FillSlot(ctx, ref, slot(1, execution.OutcomeSucceeded, "first"), FillOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Contradict(ctx, ref, slot(1, execution.OutcomeFailed, "other"), []byte{1}, FillOptions{}); err != nil {
		t.Fatal(err)
	}
	old := slot(2, execution.OutcomeSucceeded, "old")
	old.Generation--
	if _, _, err := j.FillSlot(ctx, ref, old, FillOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := j.ResultRefs(ctx, ref)
	if _, a := got["first"]; err != nil || len(got) != 2 || !a {
		t.Errorf("%v %v", got, err)
	}
}

// A slot is closed only where nothing was begun, in each of these by itself.
func TestFillOnlyEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	for i, tt := range []struct {
		name   string
		there  map[string]store.Value
		filled bool
		code   execution.Code
	}{
		{"nothing", nil, true, ""},
		{"a callback only", map[string]store.Value{SlotCallback: store.B([]byte("c"))}, true, ""},
		{"started", map[string]store.Value{SlotStarted: store.N(3)}, false, ""},
		{"a nonce", map[string]store.Value{SlotNonce: store.B([]byte("n"))}, false, ""},
		{"another generation's", map[string]store.Value{SlotGeneration: store.N(5)}, false, execution.Deleted},
	} {
		s := &Slot{Operation: "0123456789abcdef0123456789abcdef", Attempt: i + 1, Generation: ref.Generation, Outcome: execution.OutcomeNotExecuted, At: 5}
		if tt.there != nil {
			k := SlotKey(ref.PK(), s.Operation, s.Attempt)
			it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(ref.Generation)}
			maps.Copy(it, tt.there)
			w.put(it)
		}
		if _, filled, err := j.FillSlot(context.Background(), ref, s, FillOptions{OnlyEmpty: true}); filled != tt.filled || execution.CodeOf(err) != tt.code {
			t.Errorf("%s: filled %v, %v", tt.name, filled, err)
		}
	}
}

// When two slots say the same: outcome aside, reference and result.
func TestSameResult(t *testing.T) {
	t.Parallel()
	ref := func(d string) *execution.Artifact { return &execution.Artifact{Digest: d} }
	for name, tt := range map[string]struct {
		a, b Slot
		want bool
	}{
		"nothing":             {Slot{}, Slot{}, true},
		"references":          {Slot{ProviderRef: "p"}, Slot{ProviderRef: "q"}, false},
		"results":             {Slot{Result: value(`{"a":1}`)}, Slot{Result: value(`{"a":1}`)}, true},
		"other results":       {Slot{Result: value(`1`)}, Slot{Result: value(`2`)}, false},
		"one result":          {Slot{Result: value(`1`)}, Slot{}, false},
		"large results":       {Slot{ResultRef: ref("a")}, Slot{ResultRef: ref("a")}, true},
		"other large results": {Slot{ResultRef: ref("a")}, Slot{ResultRef: ref("b")}, false},
		"one large result":    {Slot{ResultRef: ref("a")}, Slot{}, false},
	} {
		if sameResult(&tt.a, &tt.b) != tt.want || sameResult(&tt.b, &tt.a) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// A ledger of many pages is read whole, and every outcome comes back token by
// token.
func TestManySlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	const op = execution.OperationID("0123456789abcdef0123456789abcdef")
	text := `{"<a>":"&` + noise(rand.New(rand.NewPCG(1, 1)), 40<<10) + `"}`
	const n = 60 // more than two pages of a query
	slots := make([]*Slot, n)
	for i := range slots {
		slots[i] = &Slot{Operation: op, Attempt: i + 1, Generation: ref.Generation, Outcome: execution.OutcomeSucceeded, At: 5, Result: value(text), ResultRef: &execution.Artifact{Digest: fmt.Sprint(i)}}
		if _, _, err := j.FillSlot(ctx, ref, slots[i], FillOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	last := *slots[n-1]
	last.Outcome = execution.OutcomeFailed
	if _, err := j.Contradict(ctx, ref, &last, []byte{1}, FillOptions{}); err != nil {
		t.Fatal(err)
	}
	w.calls()
	got, err := j.ReadSlots(ctx, ref, op)
	if pages := len(w.calls()); err != nil || len(got) != n || pages < 2 {
		t.Fatalf("%d slots in %d pages, %v", len(got), pages, err)
	}
	if got[1].Result.String() != text || len(got[n].Contradictions) != 1 || got[n].Outcome != execution.OutcomeSucceeded {
		t.Errorf("%+v", got[n].Contradictions)
	}
	if refs, err := j.ResultRefs(ctx, ref); err != nil || len(refs) != n {
		t.Errorf("%d results, %v", len(refs), err)
	}
	// What contradicts is shown also where the slot itself is gone.
	k := SlotKey(ref.PK(), op, n)
	w.remove(k.PK, k.SK)
	if got, err = j.ReadSlots(ctx, ref, op); err != nil || got[n] == nil || got[n].Outcome != execution.OutcomeNone || len(got[n].Contradictions) != 1 || got[n].Contradictions[0].Outcome != execution.OutcomeFailed {
		t.Errorf("%+v %v", got[n], err)
	}
}
