package model

// A purge of a tenant against what is on its way when it begins: a creation,
// evidence, an entry, an upload by URL, an ordinary deletion with its sweeps
// (shared/retention: purge.go, sweepReceipt; journal: Create, evidence; store:
// Window). Time goes by in steps of the window; the other times keep their order.
func init() {
	protocols = append(protocols, protocolOf("purge", purges,
		removal{window, "G22"}, removal{purgeWaits, "G22"}, removal{creationMeetsMark, "G22"}, removal{rowStays, "G22"},
		removal{urlsAreShort, "G22"}, removal{wholePrefix, "G22"}))
}

const (
	window            guard = "what was validated too long ago is refused"
	purgeWaits        guard = "a purge waits after everything is closed"
	creationMeetsMark guard = "a creation checks the purge's mark in its transaction"
	rowStays          guard = "a registry row stays as long as its receipt"
	urlsAreShort      guard = "a URL for an upload ends before a purge goes on"
	wholePrefix       guard = "a purge empties the tenant's whole prefix at its end"
)

// Times, in windows.
const (
	windowTicks = 1
	urlTicks    = 2
	quietTicks  = 3
	sweepTicks  = 2 // from a deletion to its final sweep
)

// Something between its read and its write: when it read, or one of these.
const (
	notBegun int8 = -1
	over     int8 = -2
)

type purgeWorld struct {
	now                             int8
	head                            int8
	items, slot, objects, row       bool // slot: the one after the tip is taken
	receipt                         int8 // none, deleting (1), deleted (2)
	sweepAt                         int8 // of the receipt
	second                          bool // another execution
	secondRow                       bool
	phase, at, until                int8
	seen                            int8 // rows that the purge's pass has read
	create, evidence, upload, entry int8
	delete                          int8 // an ordinary deletion: 0 not begun
	broke                           string
}

type purgeModel struct {
	without guard
	last    int8 // the clock's end
}

func purges(without guard, large bool) model[purgeWorld] {
	m := purgeModel{without, 5}
	s := purgeWorld{head: live, items: true, row: true, create: notBegun, evidence: notBegun, upload: notBegun, entry: notBegun}
	// Small: two of the writers at a time. Large: all, and more time.
	one, other := s, s
	one.create, one.entry, other.evidence, other.upload = over, over, over, over
	begin := []purgeWorld{one, other}
	if large {
		m.last, begin = 7, []purgeWorld{s}
	}
	return model[purgeWorld]{begin: begin, next: m.next, wrong: func(s purgeWorld) string { return s.broke },
		ended: func(s purgeWorld) bool { return s.phase == purged || s.now == m.last }}
}

func (m purgeModel) has(g guard) bool { return m.without != g }

// inTime reports whether what read at a time may still write.
func (m purgeModel) inTime(s purgeWorld, read, ticks int8) bool {
	return s.now-read <= ticks || !m.has(window)
}

func (m purgeModel) next(s purgeWorld, emit func(string, purgeWorld)) {
	if s.now < m.last {
		t := s
		t.now++
		emit("time goes by", t)
	}
	m.writers(s, emit)
	m.deletion(s, emit)
	m.purge(s, emit)
}

// late marks what comes to a tenant that is gone.
func late(s purgeWorld, what string) purgeWorld {
	if s.phase == purged {
		s.broke = "G22: " + what + " came after the purge was done"
	}
	return s
}

func (m purgeModel) writers(s purgeWorld, emit func(string, purgeWorld)) {
	for _, w := range []struct {
		name  string
		of    func(*purgeWorld) *int8
		ticks int8
		may   bool
		land  func(*purgeWorld)
	}{
		{"evidence", func(s *purgeWorld) *int8 { return &s.evidence }, windowTicks, s.head == live, func(t *purgeWorld) { t.items = true; *t = late(*t, "evidence") }},
		{"upload", func(s *purgeWorld) *int8 { return &s.upload }, m.urlTime(), s.head == live, func(t *purgeWorld) { t.objects = true; *t = late(*t, "an object") }},
		{"entry", func(s *purgeWorld) *int8 { return &s.entry }, windowTicks, s.head == live, func(t *purgeWorld) {
			if !t.slot {
				t.slot, t.items = true, true
				*t = late(*t, "an entry")
			}
		}},
		{"create", func(s *purgeWorld) *int8 { return &s.create }, windowTicks, s.phase != purged, func(t *purgeWorld) {
			if t.phase == notPurged || t.phase != purged && !m.has(creationMeetsMark) { // behind it, another life begins
				t.second, t.secondRow = true, true
			}
		}},
	} {
		at := *w.of(&s)
		t := s
		switch {
		case at == notBegun && w.may:
			*w.of(&t) = s.now
			emit(w.name+": reads", t)
		case at >= 0:
			*w.of(&t) = over
			if m.inTime(s, at, w.ticks) {
				w.land(&t)
				emit(w.name+": lands", t)
			} else {
				emit(w.name+": is too late", t)
			}
		}
	}
}

func (m purgeModel) urlTime() int8 {
	if !m.has(urlsAreShort) {
		return 2 * quietTicks
	}
	return urlTicks
}

// deletion is an ordinary one, of the first execution, with its sweeps.
func (m purgeModel) deletion(s purgeWorld, emit func(string, purgeWorld)) {
	t := s
	switch {
	case s.delete == 0 && s.head == live:
		t.delete, t.head, t.receipt, t.slot = 1, deleting, 1, true
		emit("delete: closes", t)
	case s.delete == 1 && s.head == deleting:
		t.delete, t.items, t.objects = 2, false, false
		emit("delete: removes content", t)
	case s.delete == 2 && s.head == deleting:
		t.delete, t.head, t.receipt, t.sweepAt = 3, none, 2, s.now+sweepTicks
		emit("delete: removes the root", t)
	case s.delete == 3 && s.receipt == 2 && s.now >= s.sweepAt:
		t.delete, t.items, t.objects, t.slot = 4, false, false, false
		if !m.has(rowStays) {
			t.row = false
		}
		emit("delete: the final sweep", t)
	}
}

// purge is a step of PurgeTenant; at counts what a call has in hand.
func (m purgeModel) purge(s purgeWorld, emit func(string, purgeWorld)) {
	t := s
	if s.at != 0 && s.phase < purgeResting { // a call dies, another one goes on by the mark
		d := s
		d.at, d.seen = 0, 0
		emit("purge: a crash", d)
	}
	switch s.phase {
	case notPurged:
		t.phase = purgeClosing
		emit("purge: sets the mark", t)
	case purgeClosing:
		m.closePass(s, emit)
	case purgeWaiting:
		if s.now >= s.until {
			t.phase, t.at = purgeWiping, 0
			emit("purge: has waited", t)
		}
	case purgeWiping:
		m.wipePass(s, emit)
	case purgeResting:
		switch s.at {
		case 0:
			t.at = 1
			if m.has(wholePrefix) {
				t.objects = false
			}
			emit("purge: empties the bucket", t)
		case 1:
			t.phase = purged
			if s.items || s.slot || s.receipt != 0 || s.row || s.objects || s.second || s.secondRow || s.head != none {
				t.broke = "G22: a purge is done and something is left"
			}
			emit("purge: is done", t)
		}
	}
}

func (m purgeModel) closePass(s purgeWorld, emit func(string, purgeWorld)) {
	t := s
	switch {
	case s.at == 0:
		t.at, t.seen = 1, 0
		if s.row {
			t.seen |= 1
		}
		if s.secondRow {
			t.seen |= 2
		}
		emit("purge: reads the registry", t)
	case s.at == 1 && s.seen&1 != 0:
		switch {
		case s.head == live:
			t.head, t.receipt, t.slot, t.delete = deleting, 1, true, over
			emit("purge: closes the first", t)
		case s.head == deleting && s.items:
			t.items, t.objects = false, false
			emit("purge: removes its content", t)
		default:
			if s.head == deleting {
				t.head, t.receipt, t.delete = none, 2, over
			}
			t.seen &^= 1
			emit("purge: removes its root", t)
		}
	case s.at == 1 && s.seen&2 != 0:
		t.second, t.seen = false, s.seen&^2
		emit("purge: deletes the second", t)
	case s.at == 1:
		if s.head != none && s.row || s.second && s.secondRow {
			t.at = 0
			emit("purge: finds executions left", t)
			return
		}
		t.phase, t.at, t.until = purgeWaiting, 0, s.now
		if m.has(purgeWaits) {
			t.until = s.now + quietTicks
		}
		emit("purge: waits", t)
	}
}

// wipePass wipes every partition that has a row, proves each to be empty, and
// takes its row.
func (m purgeModel) wipePass(s purgeWorld, emit func(string, purgeWorld)) {
	t := s
	switch {
	case s.at == 0:
		if s.row {
			t.items, t.slot, t.receipt = false, false, 0
		}
		if t.at = 1; s.second {
			t.second, t.broke = false, "G22: an execution was wiped that nobody had closed"
		}
		emit("purge: wipes", t)
	case s.at == 1:
		if s.row && (s.items || s.slot || s.receipt != 0) {
			t.at = 0
			emit("purge: finds something and wipes again", t)
			return
		}
		t.row, t.secondRow, t.phase, t.at = false, false, purgeResting, 0
		emit("purge: proves and takes the rows", t)
	}
}
