package model

import (
	"fmt"

	"github.com/cairnstate/cairn/shared/execution"
)

// A fork that carries the right to act, against the parent's worker, its business
// tool, late evidence, and the deletion of the parent with its sweeps
// (shared/recovery: Carry; journal: Carry, moveSlot; ledger: record, start, tool;
// retention: close, content). There is one logical effect; its operation is `ask`
// or `close`, and declared before the fork, while it is made, or by the child
// alone.
func init() {
	protocols = append(protocols, protocolOf("carry", carries,
		removal{moveTakesTip, "G11"}, removal{moveTakesSlotAsRead, "G11"}, removal{moveClosesSlot, "G8"},
		removal{noForeignFence, "G8"}, removal{evidencePassedOn, "G11"}, removal{moveNeedsLive, "G22"}, removal{closedSlotsStay, "G8"}))
}

const (
	moveTakesTip        guard = "the move takes the slot after the parent's tip"
	moveNeedsLive       guard = "the move demands the parent's head as the fold has it"
	moveTakesSlotAsRead guard = "the move demands the operation's slot as it was read"
	moveClosesSlot      guard = "the move closes the operation's slot at the parent"
	noForeignFence      guard = "a fence proves nothing about what another execution had sent"
	evidencePassedOn    guard = "evidence that reaches the parent is passed on"
	closedSlotsStay     guard = "a deletion leaves filled slots taken for an hour"
)

// What an attempt's slot holds.
const (
	empty int8 = iota
	started
	happened
	closed // moved, or not_executed
)

type carryWorld struct {
	close                 bool // the operation's kind
	p, c                  journal
	head                  int8 // of the parent
	pSlot, cSlot          int8
	given, begun          bool // attempt 1 by the parent's worker: declared; started (close)
	sent                  bool // the parent's worker or tool has made it happen
	tool                  bool // the tool's transaction is on its way
	carrier               int8 // 0 at rest, 1 has read
	carryTip              journal
	carrySlot             int8
	carryTries            int8
	evidence              int8 // about attempt 1: 0 none yet, 1 at the parent, 2 written there, 3 at the child, 4 acknowledged, 5 refused
	deletion              int8
	deletionTip           journal
	childGo, childSent    bool
	childClaimed, crossed bool // crossed: the move and the closing both happened
	effects               int8
}

type carryModel struct {
	without guard
	book    *book
	parent  execution.Ref
	child   execution.Ref
}

func carries(without guard, large bool) model[carryWorld] {
	m := &carryModel{without: without, book: newBook(), parent: execution.Ref{Tenant: "t", Execution: "p", Generation: 1}, child: execution.Ref{Tenant: "t", Execution: "c", Generation: 2}}
	first := m.book.create(m.parent, &execution.Change{Kind: execution.KindCreated, Created: &execution.Creation{Workflow: "w"}, Claim: &execution.ClaimRequest{Owner: "worker", LeaseSeconds: 60}})
	s := carryWorld{p: first, head: live, carryTries: 2}
	if large {
		s.carryTries = 4
	}
	closing := s
	closing.close = true
	return model[carryWorld]{begin: []carryWorld{s, closing}, next: m.next, wrong: m.wrong}
}

func (m *carryModel) has(g guard) bool { return m.without != g }

func (m *carryModel) moved(s carryWorld) bool {
	return s.p != 0 && m.book.at(s.p).Status == execution.StatusMoved
}

func (m *carryModel) wrong(s carryWorld) string {
	// What a closed slot refuses is kept beside it as a contradiction.
	known := s.cSlot == happened || s.cSlot == closed || s.c != 0 && m.settled(s.c, execution.OutcomeSucceeded)
	if !m.moved(s) {
		known = s.pSlot == happened || s.head != live
	}
	switch {
	case s.effects > 1:
		return "G8: an effect happened twice"
	case s.evidence == 4 && !known:
		return "G11: acknowledged evidence is lost"
	case s.crossed:
		return "G22: a fork was made of what had been closed for its deletion"
	}
	return ""
}

func (m *carryModel) settled(j journal, o execution.Outcome) bool {
	for _, op := range m.book.at(j).Operations {
		if op.Outcome == o {
			return true
		}
	}
	return false
}

// declaration is the operation as everybody declares it.
func declaration(s carryWorld) []execution.Declaration {
	how := execution.Ask
	if s.close {
		how = execution.Close
	}
	return []execution.Declaration{{Name: "pay", Key: "k", Args: emptyState, OnUncertain: how}}
}

func (m *carryModel) next(s carryWorld, emit func(string, carryWorld)) {
	m.parentWorks(s, emit)
	m.evidenceComes(s, emit)
	m.carrying(s, emit)
	m.parentDeleted(s, emit)
	if s.c != 0 {
		m.childWorks(s, emit)
	}
}

// parentWorks are the steps of the parent's worker, who may be a zombie, and of
// its tool. He writes on what he wrote last, so any entry of another's stops him.
func (m *carryModel) parentWorks(s carryWorld, emit func(string, carryWorld)) {
	if !s.given && s.head == live {
		fold := m.book.at(s.p)
		c := &execution.Change{Kind: execution.KindCheckpoint, Fence: fold.Fence, HasFence: true, Expected: fold.Version, Request: named("declare"), Operations: declaration(s)}
		if next, p, err := m.book.propose(s.p, fmt.Sprint("declare ", s.close), m.parent, c, 1); err == nil && p.Replay == nil {
			t := s
			t.p, t.given = next, true
			emit("parent: declares, and is given "+string(p.Given[0].Disposition), t)
		}
	}
	if s.given && s.close && !s.begun && !s.tool && !s.sent {
		t := s
		if s.pSlot == empty && s.head == live && !m.moved(s) {
			t.pSlot, t.begun = started, true
			emit("parent: starts the operation", t)
		}
		t = s
		t.tool = true
		emit("parent: its tool begins a transaction", t)
	}
	if s.tool {
		t := s
		t.tool = false
		if s.pSlot == empty || s.pSlot == started {
			t.pSlot, t.sent, t.effects = happened, true, s.effects+1
			emit("parent: the tool commits effect and evidence", t)
		} else {
			emit("parent: the tool is refused", t)
		}
	}
	if s.given && !s.sent && (!s.close || s.begun) {
		t := s
		t.sent, t.effects = true, s.effects+1
		t.evidence = max(s.evidence, 1)
		emit("parent: makes the effect happen", t)
	}
}

// evidenceComes is record_outcome about the first attempt (record.go: once).
func (m *carryModel) evidenceComes(s carryWorld, emit func(string, carryWorld)) {
	t := s
	switch s.evidence {
	case 1: // reads the head
		switch {
		case s.head != live:
			t.evidence = 5
			emit("evidence: the parent is gone", t)
		case m.moved(s):
			m.passOn(s, emit)
		default:
			if t.evidence = 2; s.pSlot == empty || s.pSlot == started {
				t.pSlot = happened
			}
			emit("evidence: fills the parent's slot", t)
			// The head was read, the move may come before the slot is filled.
			t.pSlot = s.pSlot
			t.evidence = 6
			emit("evidence: has read the parent's head", t)
		}
	case 6:
		if t.evidence = 2; s.pSlot == empty || s.pSlot == started {
			t.pSlot = happened
		}
		emit("evidence: fills the parent's slot late", t)
	case 2: // reads the head again
		switch {
		case s.head != live:
			t.evidence = 5
			emit("evidence: the parent is gone by now", t)
		case m.moved(s):
			m.passOn(s, emit)
		default:
			t.evidence = 4
			emit("evidence: acknowledged", t)
		}
	case 3:
		if t.evidence = 4; s.cSlot == empty || s.cSlot == started {
			t.cSlot = happened
		}
		emit("evidence: acknowledged at the child", t)
	}
}

func (m *carryModel) passOn(s carryWorld, emit func(string, carryWorld)) {
	t := s
	if t.evidence = 3; !m.has(evidencePassedOn) {
		t.evidence = 4
	}
	emit("evidence: the parent has moved", t)
}

// carrying is the fork: a read of the parent and its slot, and one transaction.
func (m *carryModel) carrying(s carryWorld, emit func(string, carryWorld)) {
	if s.carrier == 0 {
		if s.carryTries > 0 && s.head == live && !m.moved(s) {
			t := s
			t.carrier, t.carryTries, t.carryTip, t.carrySlot = 1, s.carryTries-1, s.p, s.pSlot
			emit("fork: reads the parent and its slot", t)
		}
		return
	}
	t := s
	t.carrier, t.carryTip, t.carrySlot = 0, 0, 0
	from := m.book.at(s.carryTip)
	open := len(from.OpenOperations()) > 0
	if m.has(moveTakesTip) && s.p != s.carryTip || m.has(moveNeedsLive) && s.head != live || open && m.has(moveTakesSlotAsRead) && s.pSlot != s.carrySlot || s.c != 0 {
		emit("fork: refused", t)
		return
	}
	next, p, err := m.book.propose(s.carryTip, "moved", m.parent, &execution.Change{Kind: execution.KindMoved, System: true, MovedTo: m.child.Execution}, 1)
	if err != nil || p.Replay != nil {
		emit("fork: refused by the rules", t)
		return
	}
	t.p, t.c, t.crossed = next, m.heir(s.carryTip), s.head != live
	if open {
		if s.carrySlot != empty {
			t.cSlot = s.carrySlot
		}
		if s.carrySlot != happened && m.has(moveClosesSlot) {
			t.pSlot = closed
		}
	}
	emit("fork: moves the right to act", t)
}

// heir is the child's creation, with the operations of the parent's fold
// (recovery: heir).
func (m *carryModel) heir(from journal) journal {
	fold := m.book.at(from)
	root := fold.IdentityRoot
	created := &execution.Creation{Workflow: "w", IdentityRoot: &root, ForkedFrom: &execution.ForkPoint{Execution: "p", Generation: 1, Version: fold.Version, Carry: true}}
	for _, op := range fold.OperationsInOrder() {
		c := *op
		if c.Fence = -1; !m.has(noForeignFence) {
			c.Fence = op.Fence
		}
		created.Operations = append(created.Operations, &c)
	}
	j, _, err := m.book.propose(0, fmt.Sprintf("heir of %d", from), m.child, &execution.Change{Kind: execution.KindCreated, Created: created}, 1)
	if err != nil {
		panic(err)
	}
	return j
}

// parentDeleted is a deletion of the parent and its final sweep, an hour later:
// whatever was on its way then is refused.
func (m *carryModel) parentDeleted(s carryWorld, emit func(string, carryWorld)) {
	t := s
	switch {
	case s.deletion == 0 && s.head == live:
		t.deletion, t.deletionTip = 1, s.p
		emit("delete: reads the parent", t)
	case s.deletion == 1 && s.p != s.deletionTip:
		t.deletion, t.deletionTip = 0, 0
		emit("delete: refused, reads anew", t)
	case s.deletion == 1:
		t.deletion, t.head = 2, deleting
		emit("delete: closes the parent", t)
	case s.deletion == 2:
		t.deletion, t.head = 3, none
		if t.pSlot = closed; s.pSlot == empty || s.pSlot == started || !m.has(closedSlotsStay) {
			t.pSlot = empty
		}
		emit("delete: removes content and root", t)
	case s.deletion == 3:
		t.deletion, t.pSlot, t.tool = 4, empty, false
		t.given = s.given && s.begun // nothing that was not begun begins any more
		emit("delete: the final sweep", t)
	}
}

// childWorks are the steps of the child's owner: claim, reconcile, declare,
// effect.
func (m *carryModel) childWorks(s carryWorld, emit func(string, carryWorld)) {
	fold := m.book.at(s.c)
	if !s.childClaimed {
		t := s
		next, _, err := m.book.propose(s.c, "claim", m.child, &execution.Change{Kind: execution.KindClaimed, Claim: &execution.ClaimRequest{Owner: "heir", LeaseSeconds: 60}, Request: named("claim")}, 2)
		if err == nil {
			t.c, t.childClaimed = next, true
			emit("child: claimed", t)
		}
		return
	}
	for _, op := range fold.OpenOperations() {
		m.reconcile(s, fold, op, emit)
	}
	if !s.childGo {
		c := &execution.Change{Kind: execution.KindCheckpoint, Fence: fold.Fence, HasFence: true, Expected: fold.Version, Request: named("declare"), Operations: declaration(s)}
		if next, p, err := m.book.propose(s.c, fmt.Sprint("declare ", s.close), m.child, c, 3); err == nil && p.Replay == nil {
			if d := p.Given[0].Disposition; d == execution.Go || d == execution.StartFirst {
				t := s
				t.c, t.childGo = next, true
				emit("child: declares, and is given "+string(d), t)
			}
		}
	}
	if s.childGo && !s.childSent {
		t := s
		t.childSent, t.effects = true, s.effects+1
		emit("child: makes the effect happen", t)
	}
}

// reconcile asks the slot, then the provider (which refuses the older fences of
// the execution that asks, and knows nothing of another's).
func (m *carryModel) reconcile(s carryWorld, fold *execution.State, op *execution.Operation, emit func(string, carryWorld)) {
	ev := execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Finding: execution.Found, Source: execution.FromSlot}
	slot, what := s.cSlot, ""
	switch {
	case op.Attempt > 1:
		return
	case slot == happened:
		ev.Outcome, what = execution.OutcomeSucceeded, "the slot says that it happened"
	case slot == closed || slot == empty && s.close:
		slot, ev.Outcome, what = closed, execution.OutcomeNotExecuted, "closes the slot"
	case s.effects > 0:
		ev.Source, ev.Outcome, what = execution.FromResolver, execution.OutcomeSucceeded, "the provider has it"
	default:
		ev.Source, ev.Finding, ev.Fenced, ev.AskedAt, what = execution.FromResolver, execution.NotFoundFinding, true, 2, "the provider has nothing, and refuses older fences"
	}
	c := &execution.Change{Kind: execution.KindReconciled, Fence: fold.Fence, HasFence: true, Evidence: []execution.Evidence{ev}}
	next, p, err := m.book.propose(s.c, "reconcile "+what, m.child, c, 3)
	if err != nil || p.Replay != nil || len(p.State.OpenOperations()) == len(fold.OpenOperations()) {
		return
	}
	t := s
	if t.c, t.cSlot = next, slot; len(p.Slots) > 0 {
		t.cSlot = closed
	}
	emit("child: reconciles, "+what, t)
}
