package journal

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// A slot moves to the child as it was read, in each of these by itself, or not
// at all.
func TestMoveSlot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	op := &execution.Operation{ID: "0123456789abcdef0123456789abcdef", Attempt: 2}
	unknown, progress := store.S(string(execution.OutcomeUnknown)), store.S(string(execution.OutcomeInProgress))
	tests := []struct {
		name      string
		read, now map[string]store.Value // besides the generation; nil: there is no slot
		moves     bool
	}{
		{"none", nil, nil, true},
		{"none, now one that only remembers a callback", nil, map[string]store.Value{SlotCallback: store.B([]byte("c"))}, true},
		{"none, now an outcome", nil, map[string]store.Value{SlotOutcome: progress}, false},
		{"none, now started", nil, map[string]store.Value{SlotStarted: store.N(7)}, false},
		{"none, now a nonce", nil, map[string]store.Value{SlotNonce: store.B([]byte("n"))}, false},
		{"none, now another generation's", nil, map[string]store.Value{SlotGeneration: store.N(5)}, false},
		{"empty", map[string]store.Value{}, map[string]store.Value{}, true},
		{"empty, now an outcome", map[string]store.Value{}, map[string]store.Value{SlotOutcome: progress}, false},
		{"started", map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n"))}, map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n"))}, true},
		{"started, now by another", map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n"))}, map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("m"))}, false},
		{"started, now with an outcome", map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n"))}, map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n")), SlotOutcome: progress}, false},
		{"started, now another generation's", map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n"))}, map[string]store.Value{SlotStarted: store.N(7), SlotNonce: store.B([]byte("n")), SlotGeneration: store.N(5)}, false},
		{"unknown", map[string]store.Value{SlotOutcome: unknown, SlotUnknown: store.Bool(true)}, map[string]store.Value{SlotOutcome: unknown}, true},
		{"unknown, now in progress", map[string]store.Value{SlotOutcome: unknown}, map[string]store.Value{SlotOutcome: progress}, false},
		{"unknown, now started", map[string]store.Value{SlotOutcome: unknown}, map[string]store.Value{SlotOutcome: unknown, SlotNonce: store.B([]byte("n"))}, false},
	}
	for _, tt := range tests {
		w := newWorld(t)
		j := w.process()
		parent := w.create(j, "e", `{}`, "").State.Ref
		child := execution.Ref{Tenant: tenant, Execution: "child", Generation: parent.Generation + 1}
		item := func(attrs map[string]store.Value) store.Item {
			k := SlotKey(parent.PK(), op.ID, op.Attempt)
			it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(parent.Generation)}
			maps.Copy(it, attrs)
			return it
		}
		var read *Slot
		if tt.read != nil {
			read, _ = parseSlot(item(tt.read))
		}
		if tt.now != nil {
			w.put(item(tt.now))
		}
		in, err := j.moveSlot(ctx, parent, child, op, read, execution.OutcomeAbandoned)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.engine.Table(memory.Main).Transact(ctx, store.Transact{Token: "t", Writes: in})
		if (err == nil) != tt.moves {
			t.Errorf("%s: moved %v: %v", tt.name, err == nil, err)
		}
		if err != nil {
			continue
		}
		k := SlotKey(parent.PK(), op.ID, op.Attempt)
		if got := w.items(parent.PK())[k.SK].Str(SlotOutcome); got != string(execution.OutcomeAbandoned) {
			t.Errorf("%s: the parent's slot says %q", tt.name, got)
		}
		got := w.items(child.PK())[k.SK]
		if moved := read != nil && (read.Started() || read.Outcome != ""); moved != (got != nil) {
			t.Errorf("%s: the child has %v", tt.name, got)
		} else if moved {
			if s, err := j.openSlot(ctx, child, got, "slot"); err != nil || s.Outcome != read.Outcome || s.Generation != child.Generation || !bytes.Equal(s.Nonce, read.Nonce) || s.StartedAt != read.StartedAt || s.SawUnknown != read.SawUnknown {
				t.Errorf("%s: the child has %+v, %v", tt.name, s, err)
			}
		}
		if moved := len(in) == 2; moved { // a child that has one already is another
			_, err = w.engine.Table(memory.Main).Transact(ctx, store.Transact{Token: "t2", Writes: in[:1]})
			if err == nil {
				t.Errorf("%s: over another's slot", tt.name)
			}
		}
	}
	// A final outcome stays what it is, and is copied.
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "").State.Ref
	in, err := j.moveSlot(ctx, ref, execution.Ref{Tenant: tenant, Execution: "child", Generation: 9}, op, &Slot{Operation: op.ID, Attempt: 2, Outcome: execution.OutcomeSucceeded}, execution.OutcomeAbandoned)
	if err != nil || len(in) != 1 || in[0].Put == nil {
		t.Errorf("%+v %v", in, err)
	}
}

// A child is made within the bounds of one transaction, never over another, and
// not in a tenant that is being purged.
func TestCarryRefusals(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	w.inline = 300
	j := w.process()
	w.create(j, "e", `{}`, "w1")
	carry := func(child execution.ExecutionID, labels int) (*Written, error) {
		return j.Carry(ctx, tenant, "e", func(_ context.Context, h *Handle) (*execution.Proposal, *Fork, error) {
			c := execution.Change{Kind: execution.KindMoved, System: true, MovedTo: child, Expected: h.State.Version, Request: request("move")}
			p, err := execution.Propose(h.State, h.State.Ref, &c, execution.Environment{Now: j.Now(h)})
			f := &Fork{Creation: creation(child, `{"a":"`+noise(rand.New(rand.NewPCG(1, 1)), 600)+`"}`, "")}
			for i := range labels {
				f.LabelTokens = append(f.LabelTokens, fmt.Sprint("more", i))
			}
			return p, f, err
		})
	}
	// Two of the parent, head, entry, registry, closing mark, three tokens and the thread's.
	_, err := carry("child", store.MaxTransactItems-9)
	wantCode(t, err, execution.TooLarge, "limit")
	w.create(j, "taken", `{}`, "")
	_, err = carry("taken", 0)
	wantCode(t, err, execution.AlreadyExists)
	k := ClosingKey(tenant)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK)})
	_, err = carry("child", 0)
	wantCode(t, err, execution.Deleted, "in_progress")
	w.remove(k.PK, k.SK)
	// What is staged after a pause was validated too long ago: all begins anew.
	j = w.process()
	j.Bucket = &slowBucket{Bucket: j.Bucket, before: sync.OnceFunc(func() { w.advance(store.Window + time.Second) })}
	if _, err = carry("child", store.MaxTransactItems-10); err != nil {
		t.Fatal(err)
	}
	if h := w.open(w.process(), "child"); h.State.Data.Size() < 600 {
		t.Errorf("%s", h.State.Data)
	}
	if s := w.open(w.process(), "e").State; s.Status != execution.StatusMoved || s.MovedTo != "child" {
		t.Errorf("%+v", s)
	}
}
