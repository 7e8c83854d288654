package model

import (
	"fmt"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/retention"
)

// Archive and restore against retention: two sweeps that judge by the plan
// (archive, trim, prune, remove), an operator who restores, a hold that comes and
// goes (shared/retention: judge, archive, bundle, trim, prune, close, Restore).
// Time goes by in steps of a day and an hour; what was read before such a step
// justifies no write any more, but a removal by key goes on.
func init() {
	protocols = append(protocols, protocolOf("archive", archives,
		removal{archiveNotHeld, "G21"}, removal{pruneNotHeld, "G21"}, removal{bundleKeepsOld, "G26"},
		removal{bundleFromBase, "G26"}, removal{trimOnlyBundled, "G26"}, removal{pruneKeepsBase, "G26"}, removal{deleteTakesArchive, "G22"}, removal{finalSweepOfBucket, "G22"}, removal{gapLooksAgain, "G18"}))
}

const (
	archiveNotHeld     guard = "the transaction of an archiving demands that nothing holds it"
	pruneNotHeld       guard = "the transaction that moves the floor demands that nothing holds it"
	bundleKeepsOld     guard = "a bundle takes over what an earlier one holds"
	bundleFromBase     guard = "a bundle begins with the entry that the oldest kept version is folded from"
	trimOnlyBundled    guard = "a trim removes only what the bundle holds"
	pruneKeepsBase     guard = "a pruning leaves the snapshot that the floor is folded from"
	deleteTakesArchive guard = "a deletion removes the archive too"
	finalSweepOfBucket guard = "the final sweep covers the bucket"
	gapLooksAgain      guard = "an archiving that finds a gap looks whether the head has moved on"
)

// tick is the time between two moments of the model, in milliseconds.
const tick = 25 * 60 * 60 * 1000

// What a sweep has in hand, and how far it is.
const (
	actNone int8 = iota
	actArchive
	actTrim
	actPrune
	actRemove
)

type retainer struct {
	act, at int8
	tip     journal
	files   int16 // what the bundle that it wrote holds
	bundled int8  // as it read the head, or as its bundle has it
	floor   int8  // as it read the head
}

type archiveWorld struct {
	now     int8
	tip     journal
	table   int16    // versions whose entries are in the table
	written [11]int8 // when each was
	files   int16    // versions in the archive, whoever names them
	held    bool
	holds   int8 // that may still come
	calls   int8 // of an operator who archives, whatever the policy says
	// The head.
	head                            int8
	bundled, floor                  int8
	named                           int16 // what the bundle that the tip names holds
	untrimmed                       bool
	archivedAt, restoredAt, pruneAt int8 // 0: never
	sweeps                          [2]retainer
	restores                        int8 // that may still come
	restore                         journal
	gone                            int8 // since the deletion: 0 no, 1 root removed, 2 swept
	broke                           string
}

type archiveModel struct {
	without guard
	large   bool
	book    *book
	ref     execution.Ref
	policy  *api.Policy
}

func archives(without guard, large bool) model[archiveWorld] {
	days := int64(3)
	if large {
		days = 5
	}
	m := &archiveModel{without, large, newBook(), execution.Ref{Tenant: "t", Execution: "e", Generation: 1},
		&api.Policy{Name: "p", CompletedDays: &days, Archive: &api.ArchiveRule{Enabled: true}, History: &api.HistoryRule{Keep: "versions", N: 2}}}
	tip := m.book.create(m.ref, &execution.Change{Kind: execution.KindCreated, Created: &execution.Creation{Workflow: "w", Policy: "p"}})
	for i, c := range []*execution.Change{{Kind: execution.KindCheckpoint}, {Kind: execution.KindCompleted, Complete: &execution.Completion{Outcome: execution.StatusCompleted}}} {
		next, _, err := m.book.propose(tip, fmt.Sprint("step ", i), m.ref, c, int64(i+1)*tick)
		if err != nil {
			panic(err)
		}
		tip = next
	}
	s := archiveWorld{now: 2, tip: tip, table: 0b1110, written: [11]int8{1: 1, 2: 1, 3: 2}, head: live, floor: 1, holds: 1, calls: 1, restores: 1}
	return model[archiveWorld]{begin: []archiveWorld{s}, next: m.next, wrong: m.wrong, ended: func(s archiveWorld) bool { return s.gone == 2 || s.now == m.last() }}
}

func (m *archiveModel) has(g guard) bool { return m.without != g }

func (m *archiveModel) last() int8 {
	if m.large {
		return 8
	}
	return 6
}

func (m *archiveModel) version(s archiveWorld) int8 { return int8(m.book.version(s.tip)) }

// base is the version that a version is folded from: archiving and restoring
// write snapshots, the first three are one chain.
func base(v int8) int8 {
	if v <= 3 {
		return 1
	}
	return v
}

func upTo(v int8) int16 { return int16(1)<<(v+1) - 2 }

func (m *archiveModel) wrong(s archiveWorld) string {
	if s.broke != "" || s.head != live {
		return s.broke
	}
	for v := s.floor; v <= m.version(s); v++ {
		for e := base(v); e <= v; e++ {
			if s.table>>e&1 == 0 && (s.named&s.files)>>e&1 == 0 {
				return "G26: a kept version can be read neither from the table nor from the archive"
			}
		}
	}
	return ""
}

// facts are what retention makes of the head.
func (m *archiveModel) facts(s archiveWorld) retention.Facts {
	at := func(t int8) int64 { return int64(t) * tick }
	st := m.book.at(s.tip)
	f := retention.Facts{Status: st.Status, Outcome: execution.StatusCompleted, CreatedAt: tick, EndedAt: 2 * tick, RestoredAt: at(s.restoredAt), ArchivedAt: at(s.archivedAt), PrunedAt: at(s.pruneAt),
		PolicyName: "p", Policy: m.policy, Untrimmed: s.untrimmed}
	if s.held {
		f.Holds = []string{"h"}
	}
	return f
}

func (m *archiveModel) next(s archiveWorld, emit func(string, archiveWorld)) {
	if s.now < m.last() {
		t := s
		t.now++
		t.restore = 0
		for i := range t.sweeps {
			if r := &t.sweeps[i]; r.act == actArchive || r.act == actPrune && r.at < 3 || r.act == actRemove && r.at < 3 {
				*r = retainer{}
			}
		}
		emit("a day goes by", t)
	}
	if s.head == live {
		m.people(s, emit)
	}
	for i := range s.sweeps {
		m.sweep(s, i, emit)
	}
	if s.gone == 1 {
		m.finalSweep(s, emit)
	}
}

func (m *archiveModel) finalSweep(s archiveWorld, emit func(string, archiveWorld)) {
	for _, r := range s.sweeps {
		if r.act == actArchive {
			return // an hour has gone by: what it read justifies nothing any more
		}
	}
	t := s
	if t.gone = 2; m.has(finalSweepOfBucket) {
		t.files = 0
	}
	if t.table = 0; t.files != 0 {
		t.broke = "G22: a deletion is over and something is left in the bucket"
	}
	emit("the final sweep", t)
}

// people hold, release and restore.
func (m *archiveModel) people(s archiveWorld, emit func(string, archiveWorld)) {
	t := s
	switch {
	case s.held:
		t.held = false
		emit("the hold is released", t)
	case s.holds > 0:
		t.held, t.holds = true, s.holds-1
		emit("a hold is placed", t)
	}
	t = s
	switch {
	case s.restore == 0 && s.restores > 0 && m.book.at(s.tip).Status == execution.StatusArchived:
		t.restore, t.restores = s.tip, s.restores-1
		emit("restore: reads the bundle", t)
	case s.restore != 0:
		if t.restore = 0; s.tip == s.restore {
			c := &execution.Change{Kind: execution.KindRestored, System: true, Bundle: m.book.at(s.tip).Bundle}
			m.write(&t, "restored", c)
			t.restoredAt = s.now
		}
		emit("restore: transaction", t)
	}
}

// write adds an entry by the product's rules.
func (m *archiveModel) write(t *archiveWorld, what string, c *execution.Change) {
	next, p, err := m.book.propose(t.tip, what, m.ref, c, int64(t.now)*tick)
	if err != nil || p.Replay != nil {
		return
	}
	t.tip = next
	v := m.version(*t)
	t.table |= 1 << v
	t.written[v] = t.now
}

func (m *archiveModel) sweep(s archiveWorld, i int, emit func(string, archiveWorld)) {
	r, t := s.sweeps[i], s
	k := &t.sweeps[i]
	name := [2]string{"one sweep: ", "other sweep: "}[i]
	if r.act == actNone {
		if s.head != live {
			return
		}
		d := retention.Plan(m.facts(s), int64(s.now)*tick)
		acts := map[retention.Act]int8{retention.Archive: actArchive, retention.Trim: actTrim, retention.Prune: actPrune, retention.Remove: actRemove}
		if act := acts[d.Do]; act != actNone {
			*k = retainer{act: act, at: 1, bundled: s.bundled, floor: s.floor}
			emit(name+"judges: "+string(d.Do), t)
		}
		if s.calls > 0 {
			t.calls--
			*k = retainer{act: actArchive, at: 1, bundled: s.bundled, floor: s.floor}
			emit(name+"is told to archive", t)
		}
		return
	}
	switch r.act {
	case actArchive:
		m.archive(s, t, i, name, emit)
	case actTrim:
		if below := r.bundled; s.head == live || s.gone > 0 {
			if !m.has(trimOnlyBundled) {
				below = m.version(s) - 1
			}
			t.table = m.drop(s, below+1)
			if left := t.table & upTo(r.bundled); left == 0 && s.head == live && s.bundled == r.bundled {
				t.untrimmed = false
			}
		}
		*k = retainer{}
		emit(name+"trims", t)
	case actPrune:
		m.prune(s, t, i, name, emit)
	case actRemove:
		m.remove(s, t, i, name, emit)
	}
}

// drop removes entries below a version whose successor is old enough.
func (m *archiveModel) drop(s archiveWorld, below int8) int16 {
	table := s.table
	for v := int8(1); v < below && v < m.version(s); v++ {
		if s.table>>(v+1)&1 != 0 && s.written[v+1] < s.now {
			table &^= 1 << v
		}
	}
	return table
}

func (m *archiveModel) archive(s, t archiveWorld, i int, name string, emit func(string, archiveWorld)) {
	r, k := s.sweeps[i], &t.sweeps[i]
	switch r.at {
	case 1:
		if st := m.book.at(s.tip); s.head != live || s.held || st.Status == execution.StatusArchived {
			*k = retainer{}
			emit(name+"finds nothing to archive", t)
			return
		}
		k.at, k.tip, k.floor = 2, s.tip, s.floor
		emit(name+"opens the journal", t)
	case 2:
		from, old := base(r.floor), int16(0)
		if !m.has(bundleFromBase) {
			from = r.floor
		}
		st := m.book.at(r.tip)
		if st.Bundle != nil {
			from = int8(st.Bundle.Version) + 1
			if old = s.named; !m.has(bundleKeepsOld) {
				old = 0
			}
		}
		tip := int8(m.book.version(r.tip))
		fresh := upTo(tip) &^ upTo(from-1)
		if s.table&fresh != fresh { // somebody has removed them meanwhile
			if *k = (retainer{}); !m.has(gapLooksAgain) || s.head == live && s.floor == r.floor && s.tip == r.tip {
				t.broke = "G18: a sound journal is reported as damaged"
			}
			emit(name+"finds that the journal is not whole", t)
			return
		}
		k.at, k.files, k.bundled = 3, old|fresh, tip
		emit(name+"reads the entries", t)
	case 3:
		t.files |= r.files
		k.at = 4
		emit(name+"writes the bundle", t)
	case 4:
		*k = retainer{}
		if s.head != live || m.has(archiveNotHeld) && s.held || s.tip != r.tip || !m.book.at(s.tip).Status.Ended() {
			emit(name+"the archiving is refused", t)
			return
		}
		if s.held {
			t.broke = "G21: an execution was archived while a hold was in force"
		}
		c := &execution.Change{Kind: execution.KindArchived, System: true, Bundle: &execution.Bundle{Key: "k", Version: int64(r.bundled)}}
		m.write(&t, fmt.Sprint("archived ", r.bundled), c)
		t.archivedAt, t.untrimmed, t.bundled, t.named = s.now, true, r.bundled, r.files
		emit(name+"archives", t)
	}
}

func (m *archiveModel) prune(s, t archiveWorld, i int, name string, emit func(string, archiveWorld)) {
	r, k := s.sweeps[i], &t.sweeps[i]
	switch r.at {
	case 1:
		k.at, k.tip = 2, s.tip
		emit(name+"reads the tip", t)
	case 2:
		floor := max(r.floor, int8(m.book.version(r.tip)-m.policy.History.N+1))
		k.at = 3
		if floor > r.floor {
			if s.head != live || m.has(pruneNotHeld) && s.held || s.floor != r.floor {
				*k = retainer{}
				emit(name+"moving the floor is refused", t)
				return
			}
			if s.held {
				t.broke = "G21: a history was pruned while a hold was in force"
			}
			t.floor = floor
		}
		k.floor = floor
		emit(name+"moves the floor", t)
	case 3:
		if r.floor > r.bundled && s.table>>r.floor&1 != 0 {
			below := base(r.floor)
			if !m.has(pruneKeepsBase) {
				below = r.floor
			}
			t.table = m.drop(s, below)
		}
		if s.head == live {
			t.pruneAt = s.now
		}
		*k = retainer{}
		emit(name+"removes what is below it", t)
	}
}

func (m *archiveModel) remove(s, t archiveWorld, i int, name string, emit func(string, archiveWorld)) {
	r, k := s.sweeps[i], &t.sweeps[i]
	switch r.at {
	case 1:
		k.at, k.tip = 2, s.tip
		emit(name+"reads tip and head", t)
	case 2:
		if s.head != live || s.held || s.tip != r.tip {
			*k = retainer{}
			emit(name+"the closing is refused", t)
			return
		}
		t.head, k.at = deleting, 3
		emit(name+"closes", t)
	case 3:
		t.table, k.at = 0, 4
		if m.has(deleteTakesArchive) {
			t.files = 0
		}
		emit(name+"removes content", t)
	case 4:
		t.gone, t.head, *k = 1, none, retainer{}
		if !m.has(deleteTakesArchive) && t.files != 0 {
			t.broke = "G22: a deletion is over and the archive is left"
		}
		emit(name+"removes the root", t)
	}
}
