package model

import (
	"fmt"

	"github.com/cairnstate/cairn/shared/execution"
)

// One request that spends 1, sent again and again because its answers are lost,
// while another process writes so much that requests are forgotten
// (shared/journal: Write, writeEntry; execution: Propose). It is identified by an
// id and a version, by its content at a version, or by an id alone.
func init() {
	protocols = append(protocols, protocolOf("requests", requests,
		removal{saysFirst, "G4"}, removal{remembers, "G4"}, removal{forgets, "G4"}, removal{slotIsFree, "G7"}, removal{freshRefusal, "G4"}, removal{staysPut, "G4"}))
}

const (
	saysFirst    guard = "a moved request says where it was first aimed"
	remembers    guard = "the fold remembers requests"
	forgets      guard = "a request that may have been forgotten is refused"
	slotIsFree   guard = "an entry's put demands that its slot is free"
	freshRefusal guard = "a refusal is computed on a fresh read"
	staysPut     guard = "a request without an id is not moved while its outcome is unknown"
)

// How a request is identified.
const (
	idAndVersion int8 = iota
	contentAtVersion
	idAlone
)

// What the caller was told last.
const (
	nothing int8 = iota
	unknown
	done
	conflict
	forgotten
	nonsense
)

type requestWorld struct {
	kind            int8
	tip             journal
	warm            journal    // what the request's process remembers
	read            journal    // what it decides on now; 0: it is not at work
	fresh           bool       // read comes from the store
	flying          [2]journal // puts on their way: the journals they extend; 0: none
	expected, first int16
	told            int8
	stopped         bool // the caller asks no more
	sends           int8
	singles, bulks  int8 // what the other process may still write
	acknowledged    int16
}

type requestModel struct {
	without guard
	book    *book
	ref     execution.Ref
}

func requests(without guard, large bool) model[requestWorld] {
	m := &requestModel{without, newBook(), execution.Ref{Tenant: "t", Execution: "e", Generation: 1}}
	first := m.book.create(m.ref, &execution.Change{Kind: execution.KindCreated, Created: &execution.Creation{Workflow: "w", Budgets: map[string]string{"b": "9"}}})
	var begin []requestWorld
	for kind := idAndVersion; kind <= idAlone; kind++ {
		s := requestWorld{kind: kind, tip: first, warm: first, expected: 1, first: 1, sends: 3, singles: 2, bulks: 1, acknowledged: 1}
		if large {
			s.sends, s.singles = 4, 3
		}
		begin = append(begin, s)
	}
	return model[requestWorld]{begin: begin, next: m.next, wrong: m.wrong,
		ended: func(s requestWorld) bool { return s.stopped || s.sends == 0 && s.read == 0 }}
}

func (m *requestModel) has(g guard) bool { return m.without != g }

func (m *requestModel) spent(j journal) string { return m.book.at(j).Budgets["b"].Spent }

func (m *requestModel) wrong(s requestWorld) string {
	spent, tip := m.spent(s.tip), m.book.at(s.tip)
	// Who names no version cannot be told that he is forgotten.
	window := s.kind == idAlone && tip.RequestFloor > 2
	switch {
	case spent != "0" && spent != "1" && !window:
		return "G4: a repeated request was applied twice"
	case s.told == done && spent == "0":
		return "G4: a request was reported as done that is not"
	case s.told == conflict && spent != "0":
		return "G4: a request was reported as a conflict with itself"
	case s.told == forgotten && tip.RequestFloor <= int64(s.first)+1:
		return "G4: a request was reported as forgotten that is remembered"
	case s.told == nonsense:
		return "G4: a refusal rests on memory that is older than what was acknowledged"
	case tip.Version < int64(s.acknowledged):
		return "G7: an acknowledged entry is gone"
	}
	return ""
}

// change is the request as it stands.
func (m *requestModel) change(s requestWorld) *execution.Change {
	c := &execution.Change{Kind: execution.KindCheckpoint, Request: named("the request"), Spend: map[string]string{"b": "1"}}
	if s.kind != idAlone {
		c.Expected = int64(s.expected)
	}
	if s.kind == contentAtVersion {
		c.Request.Hash = execution.RequestHash{}
	}
	if s.kind == idAndVersion && s.first != s.expected && m.has(saysFirst) {
		c.First = int64(s.first)
	}
	return c
}

func (m *requestModel) next(s requestWorld, emit func(string, requestWorld)) {
	m.other(s, emit)
	for i, base := range s.flying {
		if base == 0 {
			continue
		}
		t := s
		t.flying[i] = 0
		emit("a late put is lost", t)
		if s.tip == base || !m.has(slotIsFree) {
			t.tip = m.landed(s, base)
			emit("a late put lands", t)
		}
	}
	switch {
	case s.read != 0:
		m.serve(s, emit)
	case s.stopped || s.sends == 0:
	default:
		t := s
		t.sends--
		t.read, t.fresh = s.warm, false
		emit("sent: the process decides on what it remembers", t)
		t.read, t.fresh = s.tip, true
		emit("sent: the process reads", t)
		if moved := m.book.version(s.tip) != int64(s.expected); moved && s.kind != idAlone && m.mayMove(s) {
			t.expected = int16(m.book.version(s.tip))
			emit("sent again at another version", t)
		}
		if s.told != nothing && s.told != unknown {
			t = s
			t.stopped = true
			emit("the caller has its answer", t)
		}
	}
}

// mayMove: content alone is an identity at one version only, so a caller moves
// such a request only when it knows that it was not done.
func (m *requestModel) mayMove(s requestWorld) bool {
	switch s.told {
	case conflict:
		return true
	case unknown:
		return s.kind == idAndVersion || !m.has(staysPut)
	}
	return false
}

// other writes as another process does, in one step each.
func (m *requestModel) other(s requestWorld, emit func(string, requestWorld)) {
	write := func(s requestWorld, n int) requestWorld {
		for range n {
			name := fmt.Sprintf("other %d", m.book.version(s.tip))
			next, _, err := m.book.propose(s.tip, name, m.ref, &execution.Change{Kind: execution.KindCheckpoint, Request: named(name), Expected: m.book.version(s.tip)}, 1)
			if err != nil {
				panic(err) // nothing is in its way
			}
			s.tip = next
		}
		s.acknowledged = int16(m.book.version(s.tip))
		return s
	}
	if s.singles > 0 {
		t := write(s, 1)
		t.singles--
		emit("another process writes", t)
	}
	if s.bulks > 0 {
		t := write(s, execution.MaxRequestMemory-1)
		t.bulks--
		emit("another process writes much", t)
	}
}

// serve is one step of the process that has the request.
func (m *requestModel) serve(s requestWorld, emit func(string, requestWorld)) {
	answer := func(step string, told int8, t requestWorld) {
		t.read = 0
		t.told = told
		emit(step+", answered", t)
		t.told = unknown
		emit(step+", the answer is lost", t)
	}
	next, p, err := m.propose(s)
	if (err != nil || p.Replay != nil) && !s.fresh && m.has(freshRefusal) {
		t := s
		t.read, t.warm, t.fresh = s.tip, s.tip, true
		emit("reads to be sure", t)
		return
	}
	switch {
	case err != nil:
		told := map[execution.Code]int8{execution.VersionConflict: conflict, execution.RequestForgotten: forgotten}[execution.CodeOf(err)]
		if told == nothing {
			told = nonsense
		}
		answer("refused: "+string(execution.CodeOf(err)), told, s)
	case p.Replay != nil:
		answer("found to be done", done, s)
	default:
		t := s
		t.read, t.told = 0, unknown
		emit("put is lost, nobody knows", t)
		for i := range s.flying {
			if s.flying[i] == 0 {
				t.flying[i] = s.read
				emit("put is on its way, nobody knows", t)
				break
			}
		}
		if s.tip != s.read && m.has(slotIsFree) {
			t = s
			t.read, t.warm, t.fresh = s.tip, s.tip, true
			emit("put is refused: reads anew", t)
			return
		}
		t = s
		t.tip, t.warm = next, next
		if m.has(slotIsFree) || s.tip == s.read {
			t.acknowledged = int16(m.book.version(next))
		}
		answer("put lands", done, t)
	}
}

// propose asks the rules, of which some may be missing.
func (m *requestModel) propose(s requestWorld) (journal, *execution.Proposal, error) {
	if m.has(remembers) && m.has(forgets) {
		return m.book.propose(s.read, fmt.Sprintf("request of kind %d at %d, first %d", s.kind, s.expected, s.first), m.ref, m.change(s), 1)
	}
	blind := *m.book.at(s.read)
	blind.RequestFloor = 0
	if !m.has(remembers) {
		blind.Requests = nil
	}
	if p, err := execution.Propose(&blind, m.ref, m.change(s), execution.Environment{Now: 1}); err != nil || p.Replay != nil {
		return 0, p, err
	}
	return m.landed(s, s.read), &execution.Proposal{}, nil
}

// landed is a journal with the request's entry behind it.
func (m *requestModel) landed(s requestWorld, base journal) journal {
	key := fmt.Sprintf("%d lands %d", base, s.kind)
	if a, ok := m.book.asked[key]; ok {
		return a.next
	}
	c := m.change(s)
	e := &execution.Entry{Version: m.book.version(base) + 1, Kind: c.Kind, Generation: 1, Request: c.Request.Hash, Content: c.Request.Digest, At: 1, Body: execution.Body{Spent: c.Spend}}
	fold, err := execution.Fold(m.book.at(base), e)
	if err != nil {
		panic(err)
	}
	j := m.book.add(fold)
	m.book.asked[key] = answer{next: j}
	return j
}
