package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// drain lets everybody go on without faults until nobody can.
func (w *world) drain() {
	for range 200_000 {
		ready := w.ready()
		if len(ready) == 0 || w.failed != nil {
			return
		}
		w.pick(ready[0], "")
	}
	w.fail("it never comes to rest")
}

// heal ends all faults and lets time pass until everything has come to rest;
// people send what is waited for and decide what nobody can know. What was begun
// is finished, and nothing new is begun: without faults it finds little.
func (w *world) heal() {
	w.note("faults end")
	w.healing, w.keyOutage, w.biz.deaf = true, false, false
	for _, k := range w.truth.known {
		if k.program != nil && k.begun+1 < len(k.program.steps) {
			k.program.steps = k.program.steps[:k.begun+1]
		}
	}
	for round := range 80 {
		w.arrive()
		w.drain()
		for len(w.records) > 0 && w.failed == nil {
			w.deliverRecords()
			w.drain()
		}
		for len(w.queue) > 0 && w.failed == nil {
			w.takeUp()
			w.drain()
		}
		if w.failed != nil || w.rested() && len(w.queue) == 0 {
			break
		}
		if round%2 == 0 {
			w.sweep("recover")
		}
		if round%4 == 1 {
			w.sweep("retention")
		}
		w.drain()
		if round > 1 {
			w.attend(round%3 == 0)
		}
		w.advance(time.Duration(1+round) * time.Minute)
	}
	// What deletions left for later, also that of an execution whose time came only
	// now, or whose hold ended with nobody left to wake it: it is looked at within
	// six hours.
	for last, round := -1, 0; w.failed == nil && (round < 1 || last != w.gone() || round < 7 && w.overdue()); round++ {
		last = w.gone()
		w.retain(70 * time.Minute)
	}
}

// retain lets time pass and then retention look.
func (w *world) retain(d time.Duration) {
	w.advance(d)
	w.sweep("retention")
	w.drain()
}

// overdue reports an execution whose time is over and that nothing keeps.
func (w *world) overdue() bool {
	now := w.engine.Now().UnixMilli()
	for _, k := range w.truth.known {
		if at := k.head.Int(journal.HeadExpires); at > 0 && at <= now && !k.closed() && !w.truth.held(k.head) {
			return true
		}
	}
	return false
}

// gone counts the executions that were deleted.
func (w *world) gone() (n int) {
	for _, k := range w.truth.known {
		if k.deleted {
			n++
		}
	}
	return n
}

// arrive lets everything arrive that is on its way.
func (w *world) arrive() {
	for _, a := range w.actors {
		a.until = time.Time{}
	}
	for len(w.delayed) > 0 {
		land := w.delayed[0]
		w.delayed = w.delayed[1:]
		w.acting = 0
		land()
		w.observe()
	}
	for len(w.biz.flights) > 0 {
		w.biz.deliver(0)
	}
}

// rested: everything has ended, or never began.
func (w *world) rested() bool {
	for _, k := range w.truth.known {
		if k.tip == 0 && k.gen == 0 { // never created
			continue
		}
		if !k.ended() || k.status == execution.StatusDeleting && !k.deleted {
			return false
		}
	}
	return true
}

// expire lets days pass: what a policy or somebody wanted gone is gone, and
// nothing else.
func (w *world) expire() {
	for _, e := range w.truth.order {
		if k := w.truth.known[e]; !k.deleted && k.holds > 0 && w.rng.IntN(2) == 0 {
			w.spawn("operator", func(a *actor) { a.release(e, "h0"); a.release(e, "h1") })
		}
	}
	w.spawn("operator", func(a *actor) { a.releaseThread(); a.releaseSubjects() })
	w.drain()
	for range 3 {
		w.retain(18 * time.Hour)
	}
	for last := -1; last != w.gone() && w.failed == nil; {
		last = w.gone()
		w.retain(70 * time.Minute)
	}
	w.days = true
	for _, e := range w.truth.order {
		k := w.truth.known[e]
		switch {
		case k.tip == 0:
		case !k.deleted && k.head.Has(journal.HeadAsked) && !w.truth.held(k.head):
			w.fail("a deletion of %s waited for holds, there is none, and it is %s", e, k.status)
		case k.deleted && !w.truth.wanted(k):
			w.fail("%s was deleted, and nobody asked for it", e)
		case !k.deleted && k.expires && k.gen == k.made && k.status == execution.StatusCompleted && k.holds == 0:
			w.fail("%s outlives its policy", e)
		case w.rules != nil && k.policy == w.rules.Name && k.status == execution.StatusCompleted && !w.truth.held(k.head):
			w.kept(e, k)
		}
	}
}

// forget lets months pass: of what was deleted not even the receipt is left, and
// what moved is gone too when nothing that descends from it is left.
func (w *world) forget() {
	var gone []execution.Ref
	for _, e := range w.truth.order {
		if k := w.truth.known[e]; k.deleted {
			gone = append(gone, execution.Ref{Tenant: tenant, Execution: e, Generation: k.gen})
		}
	}
	w.advance(91 * 24 * time.Hour)
	for range 6 {
		w.sweep("retention")
		w.drain()
		w.advance(25 * time.Hour)
	}
	for _, ref := range gone {
		page, _, err := w.engine.Table(memory.Main).Query(context.Background(), store.Query{PK: ref.PK(), Consistent: true})
		row, _, err2 := w.engine.Table(memory.Main).Get(context.Background(), store.Get{Key: journal.RegistryKey(ref), Consistent: true})
		if err != nil || err2 != nil || len(page.Items) > 0 || row != nil {
			w.fail("of %s, deleted months ago, %d items are left, and its row: %v (%v, %v)", ref.Execution, len(page.Items), row != nil, err, err2)
		}
	}
	for _, e := range w.truth.order {
		if k := w.truth.known[e]; k.expires && k.status == execution.StatusMoved && !k.deleted && !w.truth.held(k.head) && !w.truth.hasHeirs(e) {
			w.fail("%s moved, nothing descends from it, and it outlives its policy", e)
		}
	}
}

// kept holds: days after its end an execution is archived and its history is as
// short as its policy has them.
func (w *world) kept(e execution.ExecutionID, k *known) {
	switch h := w.rules.History; {
	case w.rules.Archive != nil && !k.head.Has("restored_at"):
		w.fail("%s is not archived", e)
	case h != nil && h.Keep == "versions" && max(1, k.head.Int(journal.HeadFloor)) < k.tip-h.N+1:
		w.fail("the floor of %s is %d, its tip %d, and no more than %d versions are to be kept", e, k.head.Int(journal.HeadFloor), k.tip, h.N)
	}
}

// attend is what people do about executions that need them; also about those
// that wait.
func (w *world) attend(also bool) {
	for _, e := range w.truth.order {
		k := w.truth.known[e]
		switch k.status {
		case execution.StatusCreated:
			w.queue = append(w.queue, start{e, 0})
		case execution.StatusHalted:
			w.spawn("operator", func(a *actor) { a.unhalt(e) })
		case execution.StatusWaiting:
			if k.program != nil {
				for i := range k.program.steps {
					if k.program.steps[i].after == "signal" && k.told != k.tip {
						w.signal(e, fmt.Sprint("sig", i), fmt.Sprint("last", w.steps))
					}
				}
				k.told = k.tip
			}
			if also {
				w.spawn("operator", func(a *actor) { a.verdicts(e) })
			}
		case execution.StatusParked:
			w.spawn("operator", func(a *actor) { a.verdicts(e) })
		}
		w.drain()
	}
}
