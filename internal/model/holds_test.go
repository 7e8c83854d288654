package model

import (
	"fmt"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/retention"
)

// Two executions of one thread, the second created in the middle; holds on the
// thread and on the first; the retention sweep, a deletion by thread and a purge
// of the tenant (shared/retention: judge, close, finish, Hold, purge.go; journal:
// Create), each storage call a step of its own.
func init() {
	protocols = append(protocols, protocolOf("holds", holds,
		removal{closingChecksOwn, "G21"}, removal{closingChecksSets, "G21"}, removal{holdNeedsLive, "G21"}, removal{holdNeedsNoPurge, "G21"},
		removal{createNeedsNoPurge, "G22"}, removal{purgeLooksForHolds, "G21"}, removal{purgeLooksForHeads, "G21"}, removal{closingTakesTip, "G1"}))
}

const (
	closingChecksOwn   guard = "the closing transaction demands that the head has no holds"
	closingChecksSets  guard = "the closing transaction checks the holds on the thread"
	closingTakesTip    guard = "the closing entry takes the slot after the tip"
	holdNeedsLive      guard = "a hold's transaction demands a head that is not deleting"
	holdNeedsNoPurge   guard = "a thread's hold demands that no purge has begun"
	createNeedsNoPurge guard = "a creation demands that no purge has begun"
	purgeLooksForHolds guard = "a purge looks for holds on threads before it goes on"
	purgeLooksForHeads guard = "a purge looks for executions that are left before it goes on"
)

// What a head says, and how far a purge is.
const (
	none int8 = iota
	live
	deleting
)

const (
	notPurged int8 = iota
	purgeClosing
	purgeWaiting
	purgeWiping
	purgeResting
	purged
)

type heldExecution struct {
	head             int8
	own              bool // a hold on it
	stuff, row, open bool // entries and more; registry row; a receipt that says deleting
	tip              int8
}

// closer is somebody in the middle of closing one execution after the other.
type closer struct {
	at, target, tip int8
	todo            int8 // set of executions
	rounds          int8 // it may still begin
}

type holdsWorld struct {
	exec            [2]heldExecution
	thread          bool // holds on the thread are in force
	phase           int8
	sweep, del, pur closer
	// Somebody between the read and the transaction of a hold or a creation: 0 not
	// begun, 1 has read, 2 done or refused.
	holdThread, holdOwn, create int8
	releases, entries, crashes  int8
	broke                       string
}

// Steps of a closer.
const (
	idle int8 = iota
	pick
	readTip
	readHead
	readHolds
	transact
	removeContent
	removeRoot
	lookForHeads
	lookForHolds
)

type holdsModel struct {
	without guard
	large   bool
}

func holds(without guard, large bool) model[holdsWorld] {
	m := holdsModel{without, large}
	s := holdsWorld{exec: [2]heldExecution{{head: live, stuff: true, row: true, tip: 1}, {}}, entries: 1, releases: 1}
	// Small: the sweep or a deletion beside the purge. Large: both, and a crash.
	bySweep, byThread := s, s
	bySweep.sweep.rounds, byThread.del.rounds = 1, 1
	begin := []holdsWorld{bySweep, byThread}
	if large {
		s.sweep.rounds, s.del.rounds, s.crashes = 1, 1, 1
		begin = []holdsWorld{s}
	}
	return model[holdsWorld]{begin: begin, next: m.next, wrong: func(s holdsWorld) string { return s.broke },
		// Every purge can come to its end, once holds are released.
		ended: func(s holdsWorld) bool { return s.phase == purged || s.phase == notPurged }}
}

func (m holdsModel) has(g guard) bool { return m.without != g }

func (m holdsModel) next(s holdsWorld, emit func(string, holdsWorld)) {
	m.holders(s, emit)
	if s.create == 0 {
		t := s
		t.create = 1
		emit("create: reads receipts and the clock", t)
	}
	if s.create == 1 {
		t := s
		t.create = 2
		if s.exec[1].head == none && !s.exec[1].open && (!m.has(createNeedsNoPurge) || s.phase == notPurged || s.phase == purged) {
			t.exec[1] = heldExecution{head: live, stuff: true, row: true, tip: 1}
		}
		emit("create: transaction", t)
	}
	if s.entries > 0 && s.exec[0].head == live {
		t := s
		t.entries--
		t.exec[0].tip++
		emit("worker: entry acknowledged", t)
	}
	for i, c := range []struct {
		name string
		of   func(*holdsWorld) *closer
	}{{"sweep", func(s *holdsWorld) *closer { return &s.sweep }}, {"delete", func(s *holdsWorld) *closer { return &s.del }}, {"purge", func(s *holdsWorld) *closer { return &s.pur }}} {
		m.closing(s, c.name, c.of, i == 2, emit)
		if at := c.of(&s).at; s.crashes > 0 && at != idle {
			t := s
			t.crashes--
			*c.of(&t) = closer{rounds: c.of(&s).rounds}
			emit(c.name+": crashes", t)
		}
	}
}

// holders place and release holds (Hold, ReleaseHold).
func (m holdsModel) holders(s holdsWorld, emit func(string, holdsWorld)) {
	t := s
	switch {
	case s.holdThread == 0:
		t.holdThread = 1
		emit("hold thread: reads the set", t)
	case s.holdThread == 1:
		t.holdThread = 2
		if !m.has(holdNeedsNoPurge) || s.phase == notPurged || s.phase == purged {
			t.thread = true
		}
		emit("hold thread: transaction", t)
	}
	t = s
	switch {
	case s.holdOwn == 0 && s.exec[0].head == live:
		t.holdOwn = 1
		emit("hold first: reads the head", t)
	case s.holdOwn == 1:
		t.holdOwn = 2
		if s.exec[0].head == live || !m.has(holdNeedsLive) && s.exec[0].head == deleting {
			t.exec[0].own = true
		}
		emit("hold first: transaction", t)
	}
	if s.thread && s.releases > 0 {
		t = s
		t.thread, t.releases = false, s.releases-1
		emit("release thread", t)
	}
	if s.exec[0].own && s.exec[0].head == live {
		t = s
		t.exec[0].own = false
		emit("release first", t)
	}
}

// closing is one step of somebody who closes executions: retention's close and
// finish, with judge, deleteMany or a purge's passes around them.
func (m holdsModel) closing(s holdsWorld, name string, of func(*holdsWorld) *closer, purge bool, emit func(string, holdsWorld)) {
	c := *of(&s)
	to := func(step string, at int8, change func(t *holdsWorld, c *closer)) {
		t := s
		k := of(&t)
		k.at = at
		if change != nil {
			change(&t, k)
		}
		emit(fmt.Sprintf("%s: %s", name, step), t)
	}
	e := s.exec[c.target]
	switch c.at {
	case idle:
		if purge {
			m.purge(s, to)
		} else if c.rounds > 0 {
			m.list(s, name == "sweep", to)
		}
	case pick:
		if c.todo == 0 {
			if purge {
				to("pass is over", lookForHeads, nil)
			} else {
				to("is done", idle, func(_ *holdsWorld, c *closer) { *c = closer{rounds: c.rounds} })
			}
			return
		}
		for i := int8(0); i < 2; i++ {
			if c.todo&(1<<i) != 0 {
				to(fmt.Sprintf("takes %d", i), readTip, func(_ *holdsWorld, c *closer) { c.target = i })
				return
			}
		}
	case readTip:
		to("reads the tip", readHead, func(_ *holdsWorld, c *closer) { c.tip = e.tip })
	case readHead:
		switch {
		case e.head != live && e.open:
			to("finds it closed", removeContent, nil)
		case e.head != live, e.own:
			to("finds none, or held", pick, func(_ *holdsWorld, c *closer) { c.todo &^= 1 << c.target })
		default:
			to("reads the head", readHolds, nil)
		}
	case readHolds:
		if s.thread {
			to("finds the thread held", pick, func(_ *holdsWorld, c *closer) { c.todo &^= 1 << c.target })
		} else {
			to("reads the thread's holds", transact, nil)
		}
	case transact:
		refused := e.head != live || m.has(closingChecksOwn) && e.own || m.has(closingChecksSets) && s.thread || m.has(closingTakesTip) && e.tip != c.tip
		if refused {
			to("closing is refused", readTip, nil)
			return
		}
		to("closes", removeContent, func(t *holdsWorld, _ *closer) {
			switch {
			case e.own || s.thread:
				t.broke = "G21: something was closed while a hold was in force"
			case e.tip != c.tip:
				t.broke = "G1: the closing took the place of an entry that was acknowledged"
			}
			t.exec[c.target].head, t.exec[c.target].open = deleting, true
		})
	case removeContent:
		to("removes content", removeRoot, func(t *holdsWorld, _ *closer) {
			if e.own && e.head == deleting {
				t.broke = "G21: content was removed while an acknowledged hold was in force"
			}
			t.exec[c.target].stuff = false
		})
	case removeRoot:
		to("removes the root", pick, func(t *holdsWorld, c *closer) {
			if e.open {
				t.exec[c.target].head, t.exec[c.target].open = none, false
			}
			c.todo &^= 1 << c.target
		})
	case lookForHeads:
		if m.has(purgeLooksForHeads) && (s.exec[0].row && s.exec[0].head != none || s.exec[1].row && s.exec[1].head != none) {
			to("finds executions left", idle, func(_ *holdsWorld, c *closer) { *c = closer{rounds: c.rounds} })
		} else {
			to("finds no execution", lookForHolds, nil)
		}
	case lookForHolds:
		if m.has(purgeLooksForHolds) && s.thread {
			to("finds the thread held", idle, nil)
		} else {
			to("waits", idle, func(t *holdsWorld, _ *closer) { t.phase = max(t.phase, purgeWaiting) })
		}
	}
}

// list begins a round: the sweep judges the first execution by the plan, a
// deletion by thread sees what an index shows, which may lag.
func (m holdsModel) list(s holdsWorld, sweep bool, to func(string, int8, func(*holdsWorld, *closer))) {
	if sweep {
		f := retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, EndedAt: 1, PolicyName: "p", Policy: &api.Policy{Name: "p", CompletedDays: new(int64)}}
		if s.exec[0].own || s.thread {
			f.Holds = []string{"h"}
		}
		if s.exec[0].head == live && retention.Plan(f, 2).Do == retention.Remove {
			to("judges that its time is over", pick, func(_ *holdsWorld, c *closer) { c.todo, c.rounds = 1, c.rounds-1 })
		}
		return
	}
	for set := int8(1); set < 4; set++ {
		if set&1 != 0 && s.exec[0].head == none || set&2 != 0 && s.exec[1].head == none {
			continue
		}
		to(fmt.Sprintf("lists %b", set), pick, func(_ *holdsWorld, c *closer) { c.todo, c.rounds = set, c.rounds-1 })
	}
}

// purge is a purge between two passes.
func (m holdsModel) purge(s holdsWorld, to func(string, int8, func(*holdsWorld, *closer))) {
	rows := int8(0)
	for i, e := range s.exec {
		if e.row {
			rows |= 1 << i
		}
	}
	switch s.phase {
	case notPurged:
		to("sets the mark", idle, func(t *holdsWorld, _ *closer) { t.phase = purgeClosing })
	case purgeClosing:
		to("reads the registry", pick, func(_ *holdsWorld, c *closer) { c.todo = rows })
	case purgeWaiting:
		to("has waited: nobody can write on what he read before", idle, func(t *holdsWorld, _ *closer) {
			t.phase = purgeWiping
			for _, p := range []*int8{&t.holdThread, &t.holdOwn, &t.create} {
				if *p == 1 {
					*p = 2 // refused: too late
				}
			}
		})
	case purgeWiping:
		to("wipes every partition of the registry and takes its row", idle, func(t *holdsWorld, _ *closer) {
			for i := range t.exec {
				if e := &t.exec[i]; e.row {
					switch {
					case e.own && e.head == live:
						t.broke = "G21: a held execution was wiped"
					case e.head == live:
						t.broke = "G22: an execution was wiped that nobody had closed"
					}
					*e = heldExecution{}
				}
			}
			t.phase = purgeResting
		})
	case purgeResting:
		if rows != 0 {
			to("finds a row", idle, func(t *holdsWorld, _ *closer) { t.phase = purgeWiping })
			return
		}
		to("wipes the tenant's records and is done", idle, func(t *holdsWorld, _ *closer) {
			switch {
			case s.thread:
				t.broke = "G21: a hold on a thread was wiped"
			case s.exec != [2]heldExecution{}:
				t.broke = "G22: a purge is done and something is left"
			}
			t.phase = purged
		})
	}
}
