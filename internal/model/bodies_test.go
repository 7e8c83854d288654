package model

import (
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Entries whose bodies are objects: two writers, who may freeze, crash and write
// again; the orphan sweep; the history rule that prunes entries and their bodies
// (shared/journal: putBody, writeEntry; retention: judge, unnamed, drop,
// dropBodies). Every writing has an object of its own, by its digest.
func init() {
	protocols = append(protocols, protocolOf("bodies", bodies,
		removal{bodyFirst, "G7"}, removal{entryInTime, "G7"}, removal{onlyOfAge, "G7"}, removal{judgedOfAge, "G7"}, removal{successorIsOld, "G2"}, removal{orphansGo, "something can never end"}))
}

const (
	bodyFirst      guard = "the body is put before its entry"
	entryInTime    guard = "an entry's put is refused when what justified it is too old"
	onlyOfAge      guard = "an object is judged only when it is older than the grace"
	judgedOfAge    guard = "what a body is judged on is read when it is of age"
	successorIsOld guard = "an entry stays until its successor is old"
	orphansGo      guard = "the orphan sweep removes bodies that no entry names"
)

// Ages, in steps of half the window, as far as they matter: the window is far
// below the others, whose order is the product's (TestTimesOfModels).
const (
	windowAge  = 2
	successAge = 4
	graceAge   = 5
	oldest     = 6
)

// TestTimesOfModels: the models' times are in the order of the product's.
func TestTimesOfModels(t *testing.T) {
	if 2*store.Window >= execution.StubSafety || execution.StubSafety >= execution.PruneSafety || execution.PruneSafety >= execution.ArtifactGrace+execution.ArtifactMargin {
		t.Error("the window, a stub's hour, the safety of pruning and the grace of objects are no longer in this order")
	}
}

// Versions up to 3; 1 stands at the beginning, its body in the item.
const lastVersion = 3

// writing is one attempt of a writer.
type writing struct {
	at      int8 // 0 at rest, 1 has read, 2 the first part is put, 3 the entry is on its way and nobody knows
	age     int8 // of what it read
	version int8
	body    int8 // its object's place
}

type body struct {
	there   bool
	age     int8
	version int8 // of its key
}

type version struct {
	there bool
	body  int8 // 0: in the item
	age   int8
}

type bodyWorld struct {
	entries      [lastVersion + 1]version
	floor        int8
	bodies       [4]body // places 1 to 3
	writers      [2]writing
	left         int8 // writings that may still begin
	acknowledged int8
	seen         int8 // the object that the orphan sweep has in hand; 0: none
	named        bool // what its read said
	prune        int8 // 0 at rest, 1 the floor has moved, 2 entries are gone
	cut          int8
	broke        string
}

type bodyModel struct{ without guard }

func bodies(without guard, large bool) model[bodyWorld] {
	m := bodyModel{without}
	s := bodyWorld{floor: 1, acknowledged: 1, left: 2}
	if large {
		s.left = 3
	}
	s.entries[1].there = true
	// And one writer on his way to a version that another has written meanwhile.
	late := s
	late.entries[2].there, late.acknowledged, late.left = true, 2, 1
	late.bodies[1], late.writers[0] = body{there: true, version: 2}, writing{at: 2, version: 2, body: 1}
	return model[bodyWorld]{begin: []bodyWorld{s, late}, next: m.next, wrong: m.wrong, ended: func(s bodyWorld) bool {
		for place := range s.bodies {
			if s.bodies[place].there && !m.isNamed(s, int8(place)) {
				return false
			}
		}
		return true
	}}
}

func (m bodyModel) has(g guard) bool { return m.without != g }

func (m bodyModel) isNamed(s bodyWorld, place int8) bool {
	v := s.bodies[place].version
	return s.entries[v].there && s.entries[v].body == place
}

func (m bodyModel) tip(s bodyWorld) int8 {
	for v := int8(lastVersion); v > 0; v-- {
		if s.entries[v].there {
			return v
		}
	}
	return 0
}

func (m bodyModel) wrong(s bodyWorld) string {
	for v := s.floor; v <= s.acknowledged; v++ {
		if e := s.entries[v]; !e.there || e.body != 0 && !s.bodies[e.body].there {
			return "G7: an acknowledged version cannot be read"
		}
	}
	return s.broke
}

func (m bodyModel) next(s bodyWorld, emit func(string, bodyWorld)) {
	emit("time goes by", m.older(s))
	for i := range s.writers {
		m.writes(s, i, emit)
	}
	m.sweeps(s, emit)
	m.prunes(s, emit)
}

func (m bodyModel) older(s bodyWorld) bodyWorld {
	for i := range s.entries {
		if s.entries[i].there {
			s.entries[i].age = min(s.entries[i].age+1, oldest)
		}
	}
	for i := range s.bodies {
		if s.bodies[i].there {
			s.bodies[i].age = min(s.bodies[i].age+1, oldest)
		}
	}
	for i := range s.writers {
		if s.writers[i].at != 0 {
			s.writers[i].age = min(s.writers[i].age+1, oldest)
		}
	}
	return s
}

// place is one that nothing refers to; 0: none.
func (m bodyModel) place(s bodyWorld) int8 {
	for p := int8(1); int(p) < len(s.bodies); p++ {
		free := !s.bodies[p].there
		for _, e := range s.entries {
			free = free && (!e.there || e.body != p)
		}
		for _, w := range s.writers {
			free = free && (w.at == 0 || w.body != p)
		}
		if free && s.seen != p {
			return p
		}
	}
	return 0
}

func (m bodyModel) writes(s bodyWorld, i int, emit func(string, bodyWorld)) {
	w, name, t := s.writers[i], [2]string{"one: ", "other: "}[i], s
	if w.at != 0 {
		t.writers[i] = writing{}
		emit(name+"crashes, or its entry is lost", t)
	}
	t = s
	switch {
	case w.at == 0:
		if tip, place := m.tip(s), m.place(s); tip < lastVersion && place != 0 && s.left > 0 {
			t.left--
			t.writers[i] = writing{at: 1, version: tip + 1, body: place}
			emit(name+"reads the tip", t)
		}
	case w.at == 1 && m.has(bodyFirst), w.at == 2 && !m.has(bodyFirst):
		if m.inTime(w) {
			t.bodies[w.body] = body{there: true, version: w.version}
			if t.writers[i].at = 2; w.at == 2 {
				t.writers[i] = writing{}
			}
			emit(name+"puts the body", t)
		}
	case w.at == 1:
		t.writers[i].at = 2
		m.putEntry(t, i, name, false, emit)
	default:
		if w.at == 2 {
			t.writers[i].at = 3
			emit(name+"the entry is on its way, nobody knows", t)
		}
		m.putEntry(s, i, name, true, emit)
	}
}

func (m bodyModel) inTime(w writing) bool { return w.age <= windowAge || !m.has(entryInTime) }

// putEntry is the conditional put of the entry, which lands or is refused.
func (m bodyModel) putEntry(t bodyWorld, i int, name string, last bool, emit func(string, bodyWorld)) {
	w := t.writers[i]
	if last {
		t.writers[i] = writing{}
	}
	if !m.inTime(w) || t.entries[w.version].there {
		t.writers[i] = writing{}
		emit(name+"the entry is refused", t)
		return
	}
	if m.tip(t) >= w.version {
		t.broke = "G2: a version was written a second time"
	}
	t.entries[w.version] = version{there: true, body: w.body}
	t.acknowledged = max(t.acknowledged, w.version)
	emit(name+"the entry stands", t)
}

// sweeps is the orphan sweep: a listing shows an object, a read tells whether the
// entry of its version names it, and it goes by its version id.
func (m bodyModel) sweeps(s bodyWorld, emit func(string, bodyWorld)) {
	if s.seen != 0 {
		t := s
		t.seen, t.named = 0, false
		if ofAge := s.bodies[s.seen].age >= graceAge || !m.has(onlyOfAge); !s.named && ofAge && m.has(orphansGo) {
			t.bodies[s.seen] = body{}
			emit("sweep: removes an orphan", t)
		} else {
			emit("sweep: leaves it", t)
		}
		return
	}
	for p := int8(1); int(p) < len(s.bodies); p++ {
		if s.bodies[p].there && (s.bodies[p].age >= graceAge || !m.has(onlyOfAge) || !m.has(judgedOfAge)) {
			t := s
			t.seen, t.named = p, m.isNamed(s, p)
			emit("sweep: lists an object and reads its version", t)
		}
	}
}

// prunes is the history rule that keeps the newest version: the floor, then
// entries whose successor is old, then old bodies below them.
func (m bodyModel) prunes(s bodyWorld, emit func(string, bodyWorld)) {
	t := s
	switch s.prune {
	case 0:
		if tip := m.tip(s); tip > s.floor {
			t.floor, t.prune = tip, 1
			emit("prune: moves the floor", t)
		}
	case 1:
		for v := int8(1); v < s.floor; v++ {
			if next := s.entries[v+1]; next.there && (next.age >= successAge || !m.has(successorIsOld)) {
				t.entries[v], t.cut = version{}, v+1
			}
		}
		t.prune = 2
		emit("prune: removes entries", t)
	case 2:
		for p := range s.bodies {
			if b := s.bodies[p]; b.there && b.version < s.cut && b.age >= successAge {
				t.bodies[p] = body{}
			}
		}
		t.prune, t.cut = 0, 0
		emit("prune: removes bodies", t)
	}
}
