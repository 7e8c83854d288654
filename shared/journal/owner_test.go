package journal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	_, err := j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld, "retry_after_ms", "owner")
	// A renewal holds it longer, progress too.
	w.advance(50 * time.Second)
	if r, err := j.Renew(ctx, tenant, "e", "w1", h.State.Fence, 60); err != nil || r.RemainingMS != 60_000 {
		t.Fatalf("%v", err)
	}
	w.advance(59 * time.Second)
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	if ms := execution.AsError(err).Facts["retry_after_ms"]; ms != int64(1000) {
		t.Errorf("retry after %v ms", ms)
	}
	h = w.apply(j, h, "a", `{"n":1}`)
	w.advance(59 * time.Second)
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// A renewal between reading and claiming is not run over.
	w.advance(time.Second)
	k := w.between("transact", func() {
		if _, err := w.process().Renew(ctx, tenant, "e", "w1", h.State.Fence, 60); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// Nor is progress.
	w.advance(61 * time.Second)
	k = w.between("transact", func() { h = w.apply(w.process(), h, "b", `{"n":2}`) })
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// Of two claimers exactly one.
	w.advance(61 * time.Second)
	k = w.between("transact", func() {
		if _, err := w.process().Claim(ctx, tenant, "e", claiming("w3", "n3"), nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", "n2"), nil)
	wantCode(t, err, execution.LeaseHeld)
	got, err := w.process().Claim(ctx, tenant, "e", claiming("w3", "n3"), nil)
	if err != nil || got.Replay == nil || got.Handle.State.Owner != "w3" {
		t.Fatalf("%+v %v", got, err)
	}
	head := w.open(j, "e").Head
	if s := got.Handle.State; head.Fence != s.Fence || head.Owner != "w3" || head.LeaseExpiresAt != s.ClaimedAt+60_000 || head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease || head.Status != execution.StatusRunning {
		t.Errorf("%+v", head)
	}
	// The nonce of a claim that is over is LeaseLost, not a second owner.
	w.advance(61 * time.Second)
	if _, err := j.Claim(ctx, tenant, "e", claiming("w4", "n4"), nil); err != nil {
		t.Fatal(err)
	}
	_, err = j.Claim(ctx, tenant, "e", claiming("w3", "n3"), nil)
	wantCode(t, err, execution.LeaseLost, "owner")
	c := execution.Change{Kind: execution.KindContinued, Continue: &execution.Continue{}, Fence: w.open(j, "e").State.Fence, HasFence: true}
	if _, err := j.step(ctx, "e", c); err != nil {
		t.Fatal(err)
	}
	_, err = j.Claim(ctx, tenant, "e", claiming("w4", "n4"), nil)
	wantCode(t, err, execution.LeaseLost)
	// What nobody owns anybody may have; what prepare refuses stays refused.
	_, err = j.Claim(ctx, tenant, "e", claiming("w5", ""), func(*Handle) error { return execution.Errorf(execution.SchemaTooNew, "no") })
	wantCode(t, err, execution.SchemaTooNew)
}

// The hand-overs on the head are counted by the claim and gone from the head.
func TestClaimTakesHandovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "w1")
	w.advance(61 * time.Second)
	hd := w.items("acme#e")[SKHead]
	hd[HeadHandover], hd[HeadQuarantine] = store.N(3), store.S("x")
	w.put(hd)
	got, err := j.Claim(context.Background(), tenant, "e", claiming("w2", ""), nil)
	if err != nil || got.Handle.State.Handovers != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	if h := w.open(j, "e").Head; h.Handover != 0 || h.Quarantine != "" {
		t.Errorf("%+v", h)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	f := h.State.Fence
	// Not later: success, unchanged, no write.
	w.calls()
	r, err := j.Renew(ctx, tenant, "e", "w1", f, 30)
	if err != nil || r.RemainingMS != 60_000 || names(w.calls()) != "get" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = j.Renew(ctx, tenant, "e", "w1", f, 60); err != nil || r.RemainingMS != 60_000 || names(w.calls()) != "get" {
		t.Errorf("the same end: %+v %v", r, err)
	}
	_, err = j.Renew(ctx, tenant, "e", "w2", f, 90)
	wantCode(t, err, execution.LeaseLost, "owner", "fence")
	_, err = j.Renew(ctx, tenant, "e", "w1", f+1, 90)
	wantCode(t, err, execution.LeaseLost)
	_, err = j.Renew(ctx, tenant, "nope", "w1", f, 90)
	wantCode(t, err, execution.NotFound)
	// After its own end, as long as nobody else has claimed.
	w.advance(2 * time.Minute)
	if r, err = j.Renew(ctx, tenant, "e", "w1", f, 60); err != nil || r.RemainingMS != 60_000 {
		t.Errorf("%+v %v", r, err)
	}
	if head := w.open(j, "e").Head; head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease {
		t.Errorf("%+v", head)
	}
	// A claim between its read and its write wins.
	w.advance(2 * time.Minute)
	k := w.between("update", func() {
		if _, err := w.process().Claim(ctx, tenant, "e", claiming("w2", ""), nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Renew(ctx, tenant, "e", "w1", f, 60)
	wantCode(t, err, execution.LeaseLost, "owner")
	// So does an ending, and an older renewal never shortens a newer one.
	s := w.open(j, "e").State
	k = w.between("update", func() {
		if _, err := w.process().Renew(ctx, tenant, "e", "w2", s.Fence, 600); err != nil {
			t.Fatal(err)
		}
	})
	if r, err = k.Renew(ctx, tenant, "e", "w2", s.Fence, 300); err != nil || r.RemainingMS != 600_000 {
		t.Errorf("%+v %v", r, err)
	}
	k = w.between("update", func() {
		c := execution.Change{Kind: execution.KindSuspended, Wait: &execution.Wait{}, Fence: s.Fence, HasFence: true}
		if _, err := w.process().step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Renew(ctx, tenant, "e", "w2", s.Fence, 900)
	wantCode(t, err, execution.LeaseLost)
	if head := w.open(j, "e").Head; head.LeaseExpiresAt != 0 || head.Owner != "" || head.DueKind != DueWake {
		t.Errorf("%+v", head)
	}
	// A status that this version does not know: nothing.
	hd := w.items("acme#e")[SKHead]
	hd[HeadStatus] = store.S("dreaming")
	w.put(hd)
	_, err = j.Renew(ctx, tenant, "e", "w2", s.Fence, 60)
	wantCode(t, err, execution.Integrity)
	_, err = j.Claim(ctx, tenant, "e", claiming("w5", ""), nil)
	wantCode(t, err, execution.Integrity)
	_, err = j.step(ctx, "e", execution.Change{Kind: execution.KindHalted, System: true})
	wantCode(t, err, execution.Integrity)
}

// A renewal holds only for the head as it was read, in each of these by itself.
func TestRenewAgainstTheHeadAsRead(t *testing.T) {
	t.Parallel()
	for attr, v := range map[string]store.Value{HeadStatus: store.S("halted"), HeadOwner: store.S("w9"), HeadFence: store.N(9)} {
		w := newWorld(t)
		h := w.create(w.process(), "e", `{}`, "w1")
		w.advance(10 * time.Second)
		j := w.between("update", func() {
			hd := w.items("acme#e")[SKHead]
			hd[attr] = v
			w.put(hd)
		})
		_, err := j.Renew(context.Background(), tenant, "e", "w1", h.State.Fence, 60)
		wantCode(t, err, execution.LeaseLost)
		if got := w.items("acme#e")[SKHead].Int(HeadLeaseExpires); got != h.State.TipAt+60_000 {
			t.Errorf("%s: the lease was moved", attr)
		}
	}
	// An earlier self of the same name, superseded between its read and its write.
	w := newWorld(t)
	h := w.create(w.process(), "e", `{}`, "w1")
	j := w.between("update", func() {
		c := claiming("w1", "n2")
		c.Claim.Supersede = true
		if _, err := w.process().Claim(context.Background(), tenant, "e", c, nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err := j.Renew(context.Background(), tenant, "e", "w1", h.State.Fence, 600)
	wantCode(t, err, execution.LeaseLost)
}

// A head that does not belong to its journal is damage, not a race.
func TestHeadAgainstJournal(t *testing.T) {
	t.Parallel()
	for attr, v := range map[string]store.Value{HeadStatus: store.S("parked"), HeadFence: store.N(77), HeadGeneration: store.N(5), "nobody's " + HeadFence: store.N(1)} {
		w := newWorld(t)
		j := w.process()
		owner := "w1"
		if strings.HasPrefix(attr, "nobody's ") {
			owner, attr = "", HeadFence
		}
		h := w.create(j, "e", `{}`, owner)
		hd := w.items("acme#e")[SKHead]
		hd[attr] = v
		w.put(hd)
		c := change(h, "r", `{}`)
		c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
		_, err := j.step(context.Background(), "e", c)
		wantCode(t, err, execution.Integrity)
		if n := len(w.items("acme#e")); n > 3 {
			t.Errorf("%s: %d items", attr, n)
		}
	}
	// The lease on a head of another fence says nothing about this owner.
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "w1")
	w.advance(61 * time.Second)
	hd := w.items("acme#e")[SKHead]
	hd[HeadFence], hd[HeadLeaseExpires] = store.N(77), store.N(w.engine.Now().Add(time.Hour).UnixMilli())
	w.put(hd)
	_, err := j.Claim(context.Background(), tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.Integrity)
}
