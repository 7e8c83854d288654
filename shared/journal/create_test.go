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
