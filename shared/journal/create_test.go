package journal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{"n":0}`, "w1")
	if h.State.Version != 1 || h.State.Fence != 1 || h.State.Status != execution.StatusRunning || h.State.Generation != w.start.UnixMilli() {
		t.Fatalf("%+v", h.State)
	}
	head := w.open(w.process(), "e").Head
	if head.Owner != "w1" || head.LeaseExpiresAt != h.State.TipAt+60_000 || head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease || head.Thread != "case-1" || len(head.SubjectTokens) != 2 {
		t.Errorf("%+v", head)
	}
	h2, replayed, err := w.process().Create(ctx, creation("e", `{"n":0}`, "w1"))
	if err != nil || !replayed || h2.State.Version != 1 {
		t.Errorf("%v %v", replayed, err)
	}
	w.apply(j, h, "later", `{"n":1}`)
	h2, replayed, err = w.process().Create(ctx, creation("e", `{"n":0}`, "w1"))
	if err != nil || !replayed || h2.State.Version != 2 {
		t.Errorf("after a step: %v %v", replayed, err)
	}
	other := creation("e", `{"n":0}`, "w1")
	other.Change.Request = requestWith("create e", "other")
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.RequestMismatch)
	other.Change.Request = request("another")
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.AlreadyExists)
	other.Change.Request = execution.RequestID{}
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.AlreadyExists)
	// Rows by which it is found.
	for _, k := range []store.Key{RegistryKey(h.State.Ref), SelectorKey(h.State.Ref, "lt1"), SelectorKey(h.State.Ref, "st1"), SelectorKey(h.State.Ref, "st2")} {
		if it := w.items(k.PK)[k.SK]; it.Int(HeadGeneration) != h.State.Generation {
			t.Errorf("%v: %v", k, it)
		}
	}
	// A tenant that is being purged takes nothing in.
	k := ClosingKey(tenant)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK)})
	_, _, err = j.Create(ctx, creation("closing", `{}`, ""))
	wantCode(t, err, execution.Deleted, "in_progress")
	w.remove(k.PK, k.SK)
	// Parts of others: refused with their own words.
	with := creation("with", `{}`, "")
	with.With = []store.Write{{Check: &store.Check{Key: store.Key{PK: "acme#e", SK: "nothing"}, Cond: store.There()}}}
	with.Refused = func(i int, old store.Item) error { return fmt.Errorf("part %d: %w", i, execution.Held) }
	if _, _, err = j.Create(ctx, with); !errors.Is(err, execution.Held) {
		t.Errorf("%v", err)
	}
	if len(w.items("acme#with")) != 0 {
		t.Error("half of it was written")
	}
	// Past its time: gone for create too.
	hd := w.items("acme#e")[SKHead]
	hd[HeadExpires] = store.N(w.engine.Now().UnixMilli())
	w.put(hd)
	_, _, err = j.Create(ctx, creation("e", `{"n":0}`, "w1"))
	wantCode(t, err, execution.Deleted, "expired")
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.Deleted, "expired")
	_, err = j.Renew(ctx, tenant, "e", "w1", 1, 60)
	wantCode(t, err, execution.Deleted, "expired")
}

// Two creations of one id at once.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.between("transact", func() { w.create(w.process(), "e", `{"n":0}`, "") })
	if _, replayed, err := j.Create(ctx, creation("e", `{"n":0}`, "")); err != nil || !replayed {
		t.Errorf("%v %v", replayed, err)
	}
	j = w.between("transact", func() { w.create(w.process(), "f", `{"n":0}`, "") })
	c := creation("f", `{"n":1}`, "")
	c.Change.Request = request("mine")
	_, _, err := j.Create(ctx, c)
	wantCode(t, err, execution.AlreadyExists)
}

// What a deletion left decides whether, and where, an id begins again.
func TestCreateAfterDeletion(t *testing.T) {
	t.Parallel()
	type receipt struct {
		generation, last, expires int64 // relative to now; expires 0: kept for ever
		state                     string
		request                   bool // the creation's own
	}
	const kept = ReceiptDeleted
	tests := []struct {
		name       string
		receipts   []receipt
		reuse      bool
		code       execution.Code
		fact       string
		generation int64 // relative to now
		first      int64
	}{
		{"deleted", []receipt{{-9, 5, 0, kept, false}}, false, execution.Deleted, "generation", 0, 0},
		{"deleted, reuse", []receipt{{-9, 5, 0, kept, false}}, true, "", "", 0, 7},
		{"deleted, the receipt lives", []receipt{{-9, 5, 1, kept, false}}, false, execution.Deleted, "generation", 0, 0},
		{"deleted, the receipt is over", []receipt{{-9, 5, -1, kept, false}}, false, "", "", 0, 1},
		{"deleted, the receipt is over this moment", []receipt{{-9, 5, 0, "now", false}}, false, "", "", 0, 1},
		{"being deleted", []receipt{{-9, 5, 0, "deleting", false}}, true, execution.Deleted, "in_progress", 0, 0},
		{"being deleted for long", []receipt{{-9, 5, -1, "deleting", false}}, true, execution.Deleted, "in_progress", 0, 0},
		{"this very creation was deleted", []receipt{{-9, 5, 0, kept, true}}, true, execution.Deleted, "generation", 0, 0},
		{"two", []receipt{{-9, 5, 0, kept, false}, {-5, 3, 0, kept, false}}, true, "", "", 0, 7},
		{"two, the newer with more", []receipt{{-9, 3, 0, kept, false}, {-5, 8, 0, kept, false}}, true, "", "", 0, 10},
		{"a clock that went back", []receipt{{5, 3, 0, kept, false}}, true, "", "", 6, 5},
	}
	for _, tt := range tests {
		w := newWorld(t)
		now := w.engine.Now().UnixMilli()
		c := creation("e", `{}`, "")
		c.Reuse = tt.reuse
		for _, r := range tt.receipts {
			k := ReceiptKey(execution.PartitionKey(tenant, "e"), now+r.generation)
			it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadGeneration: store.N(now + r.generation), ReceiptLast: store.N(r.last), ReceiptState: store.S(r.state)}
			switch {
			case r.state == "now":
				it[ReceiptState], it[HeadExpires] = store.S(kept), store.N(now)
			case r.expires != 0:
				it[HeadExpires] = store.N(now + r.expires)
			}
			if r.request {
				it[HeadCreateRequest] = store.B(c.Change.Request.Hash[:])
			}
			w.put(it)
		}
		h, _, err := w.process().Create(context.Background(), c)
		if execution.CodeOf(err) != tt.code || err != nil && execution.AsError(err).Facts[tt.fact] == nil {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
		if err == nil && (h.State.Generation != now+tt.generation || h.State.Version != tt.first) {
			t.Errorf("%s: generation %+d, version %d", tt.name, h.State.Generation-now, h.State.Version)
		}
	}
}

// A creation that meets a deletion, and one whose timer is worth its write.
func TestCreateBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "")
	hd := w.items("acme#e")[SKHead]
	hd[HeadStatus] = store.S(string(execution.StatusDeleting))
	w.put(hd)
	c := creation("e", `{}`, "")
	c.Change.Request = request("another")
	_, _, err := j.Create(context.Background(), c)
	wantCode(t, err, execution.Deleted, "in_progress")

	timer := TimerKey("acme#t", "lease").SK
	c = creation("t", `{}`, "w1")
	c.Change.Claim.LeaseSeconds = 3600
	if _, _, err := j.Create(context.Background(), c); err != nil || w.items("acme#t")[timer] == nil {
		t.Errorf("no timer for an hour: %v", err)
	}
	for e, lease := range map[execution.ExecutionID]int64{"short": 3599, "nobody": 0} {
		c = creation(e, `{}`, "w1")
		if c.Change.Claim.LeaseSeconds = lease; lease == 0 {
			c.Change.Claim = nil
		}
		if _, _, err := j.Create(context.Background(), c); err != nil || w.items("acme#" + string(e))[timer] != nil {
			t.Errorf("%s: a timer: %v", e, err)
		}
	}
	// A child and a fork are found from where they come.
	for e, made := range map[execution.ExecutionID]*execution.Creation{
		"child": {Workflow: "wf", Parent: &execution.Parent{Execution: "p", Generation: 7}}, "fork": {Workflow: "wf", ForkedFrom: &execution.ForkPoint{Execution: "p", Generation: 7}}} {
		c = creation(e, `{}`, "")
		c.Change.Created = made
		h, _, err := j.Create(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		k := SelectorKey(h.State.Ref, DescendantsToken(execution.Ref{Tenant: tenant, Execution: "p", Generation: 7}))
		if w.items(k.PK)[k.SK] == nil {
			t.Errorf("%s is not listed under its parent", e)
		}
	}
}
