package journal

import (
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

// What is kept in memory: the newest of a generation, never another's.
func TestWarm(t *testing.T) {
	t.Parallel()
	at := func(generation, version int64) *Handle {
		return &Handle{State: &execution.State{Ref: execution.Ref{Generation: generation}, Version: version}}
	}
	var w warm
	w.limit = 2
	for _, tt := range []struct {
		put, want *Handle
	}{{at(1, 5), at(1, 5)}, {at(1, 4), at(1, 5)}, {at(1, 5), at(1, 5)}, {at(1, 6), at(1, 6)}, {at(2, 1), at(2, 1)}} {
		w.put("a", tt.put)
		if got := w.get("a").State; got.Version != tt.want.State.Version || got.Generation != tt.want.State.Generation {
			t.Errorf("version %d of %d", got.Version, got.Generation)
		}
	}
	same := at(2, 1)
	same.validated = same.validated.Add(1)
	if w.put("a", same); w.get("a").validated != same.validated {
		t.Error("a later validation of the same version is dropped")
	}
	w.put("b", at(1, 1))
	w.get("a")
	w.put("c", at(1, 1))
	if w.get("a") == nil || w.get("b") != nil || w.get("c") == nil {
		t.Error("not the least recently used one left")
	}
	w.drop("a")
	w.drop("a")
	if w.get("a") != nil || w.order.Len() != 1 {
		t.Error("dropped, but there")
	}
	var none warm
	none.limit = -1
	if none.put("a", at(1, 1)); none.get("a") != nil {
		t.Error("kept in spite of the limit")
	}
}

// Writes whose answer never went out: taken once, by their own request only.
func TestUnsentAreTakenOnce(t *testing.T) {
	t.Parallel()
	var u unsent
	a, b := request("a").Hash, request("b").Hash
	for i, k := range []unsentKey{{pk: "p", hash: a, fence: 1}, {pk: "p", hash: b, fence: 1}, {pk: "q", hash: a, fence: 1}, {pk: "p", hash: a, fence: 2}} {
		k.entry[0] = byte(i)
		u.add(k)
	}
	if got := u.take("p", a, 2); len(got) != 1 || got[0][0] != 3 {
		t.Errorf("%v", got)
	}
	if got := u.take("p", a, 1); len(got) != 0 || len(u.list) != 2 {
		t.Errorf("%v, %d left: one of an older fence is nobody's", got, len(u.list))
	}
	if got := u.take("q", a, 1); len(got) != 1 || got[0][0] != 2 {
		t.Errorf("%v", got)
	}
	for range maxUnsent {
		u.add(unsentKey{pk: "r"})
	}
	if len(u.list) != maxUnsent || u.list[0].pk != "r" {
		t.Errorf("%d remembered", len(u.list))
	}
}

// The lease on a head counts for the fence that stands there, and no lease is
// less than over.
func TestLeaseRemaining(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	if got := j.LeaseRemaining(h); got != 60_000 {
		t.Errorf("%d ms without the head", got)
	}
	h.Head = &Head{LeaseExpiresAt: h.State.TipAt + 90_000}
	h.Head.Fence = h.State.Fence
	if got := j.LeaseRemaining(h); got != 90_000 {
		t.Errorf("%d ms", got)
	}
	h.Head.Fence++
	if got := j.LeaseRemaining(h); got != 60_000 {
		t.Errorf("%d ms by another's lease", got)
	}
	w.advance(100_000_000_000)
	h = w.open(w.process(), "e")
	if got := j.LeaseRemaining(h); got != 0 {
		t.Errorf("%d ms after its end", got)
	}
}
