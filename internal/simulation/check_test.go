package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// truth is what the world knows and the product must agree with.
type truth struct {
	w     *world
	known map[execution.ExecutionID]*known
	order []execution.ExecutionID
	kinds map[execution.OperationID]string
	tools map[execution.OperationID]bool
	begun map[execution.OperationID]bool // there is a slot
	// children that somebody may have made.
	children map[execution.OperationID][]execution.ExecutionID
}

// known is what is known about an execution.
type known struct {
	program  *program
	begun    int // the last step of it that somebody began
	tip      int64
	fence    int64
	gen      int64
	status   execution.Status
	owner    string
	holds    int
	told     int64  // its version when somebody last sent all signals
	deleted  bool   // closed by a deletion
	closer   int    // the actor that closed it
	again    bool   // recreated after a deletion
	asked    bool   // somebody asked for its deletion
	expires  bool   // may be deleted by a policy
	policy   string // is created under it
	made     int64  // the generation that its maker was told
	born     int64  // the same, also of forks and children
	under    int64  // its parent's generation then; 0: not sure
	subject  string
	label    string
	parent   execution.ExecutionID
	budget   bool
	spent    map[int64]int64  // by generation, acknowledged
	maybe    map[int64]int64  // and in requests of which nobody knows
	accepted map[string]int64 // artifacts that were acknowledged, by digest: the generation
	staged   map[string]int64 // artifacts that somebody put
	times    map[int64]int64  // of entries
	acks     map[string]ack   // by request
	signals  map[string]bool  // acknowledged: name/key
	outcomes map[string]execution.Outcome
	head     store.Item

	entryGen, entryFence int64
}

// ack is a version as it was acknowledged.
type ack struct{ version, gen int64 }

func newTruth(w *world) truth {
	return truth{w: w, known: map[execution.ExecutionID]*known{}, kinds: map[execution.OperationID]string{}, tools: map[execution.OperationID]bool{}, begun: map[execution.OperationID]bool{}, children: map[execution.OperationID][]execution.ExecutionID{}}
}

func (t *truth) of(e execution.ExecutionID) *known {
	k := t.known[e]
	if k == nil {
		k = &known{acks: map[string]ack{}, signals: map[string]bool{}, outcomes: map[string]execution.Outcome{}, spent: map[int64]int64{}, maybe: map[int64]int64{}, accepted: map[string]int64{}, staged: map[string]int64{}, times: map[int64]int64{}}
		t.known[e] = k
		t.order = append(t.order, e)
	}
	return k
}

// childEnded is what a person finds who asks how the effect of an operation ended
// that is an execution, when one that leads to it was deleted; "": it says so itself,
// or has not ended.
func (t *truth) childEnded(op execution.OperationID) (out execution.Outcome) {
	gone := false
	for _, id := range t.children[op] {
		switch k := t.known[id]; {
		case k == nil || k.tip == 0:
		case k.deleted:
			gone = true
		case k.status == execution.StatusMoved:
		case !k.ended():
			return ""
		default:
			out = execution.OutcomeSucceeded
		}
	}
	if !gone {
		return ""
	}
	return cmp.Or(out, execution.OutcomeFailed)
}

func (k *known) ended() bool {
	return k.deleted || k.status.Ended() || k.status == execution.StatusDeleting
}

func (t *truth) allEnded() bool {
	for _, k := range t.known {
		if !k.ended() {
			return false
		}
	}
	return len(t.known) > 0 && len(t.w.queue) == 0
}

// effects holds the heart: at most one effect of a logical operation, unless its
// provider was declared harmless to repeat.
func (t *truth) effects(op execution.OperationID, kind string) {
	if n := len(t.w.biz.effects[op]); n > 1 && kind != always {
		t.w.fail("operation %s (%s) had %d effects", op, kind, n)
	}
}

// rings are the alarms of heads that the mapping of recovery's function lets
// through (store.Mappings). Of the other records some come all the same: they
// must change nothing.
var rings = map[string]bool{"continue": true, "operation": true, "signal": true, "unhalt": true, "verdict": true}

// observe checks every change of the table since the last look, as the stream
// tells it, and keeps the records for the stream's functions.
func (w *world) observe() {
	for _, r := range w.engine.TakeRecords(0) {
		w.expired(r)
		if r.Key.PK == tenant && strings.HasPrefix(r.Key.SK, journal.HoldsetPrefix) {
			w.holds[r.Key.SK] = r.New[journal.HeadHolds].SS
			w.held++
		}
		t, e, ok := execution.ParsePartitionKey(r.Key.PK)
		if !ok || t != tenant {
			continue
		}
		k := w.truth.of(e)
		switch sk := r.Key.SK; {
		case sk == journal.SKHead:
			w.truth.head(e, k, r)
			if r.New != nil && rings[r.New.Str(journal.HeadDueKind)] || w.rng.IntN(10) == 0 {
				w.records = append(w.records, r)
			}
		case strings.HasPrefix(sk, journal.EntryPrefix):
			w.truth.entry(e, k, r)
		case strings.HasPrefix(sk, journal.SlotPrefix) && !strings.Contains(sk, "#x#"):
			w.truth.slot(e, k, r)
		case strings.HasPrefix(sk, journal.SignalPrefix):
			if r.New == nil && r.Old.Has("b") && !k.closed() && strings.HasPrefix(sk, fmt.Sprintf("%s%d#", journal.SignalPrefix, k.gen)) {
				w.fail("the signal %s of %s went before it was taken in", sk, e)
			}
		case strings.HasPrefix(sk, journal.TimerPrefix):
			if r.New == nil || w.rng.IntN(10) == 0 {
				w.records = append(w.records, r)
			}
		}
	}
}

// head holds: fences only grow, a hold stops a deletion, nothing waits without
// an alarm or lives on without a date for its history rule.
func (t *truth) head(e execution.ExecutionID, k *known, r memory.Record) {
	if r.New == nil {
		if k.status != execution.StatusDeleting {
			t.w.fail("the head of %s went while it was %s", e, k.status)
		}
		k.deleted = true
		return
	}
	status, fence, gen := execution.Status(r.New.Str(journal.HeadStatus)), r.New.Int(journal.HeadFence), r.New.Int(journal.HeadGeneration)
	if gen != k.gen && k.gen != 0 && !k.deleted {
		t.w.fail("%s has another generation without having been deleted", e)
	}
	if gen < k.gen {
		t.w.fail("the generation of %s goes back", e)
	}
	if gen == k.gen && fence < k.fence {
		t.w.fail("the fence of %s goes back from %d to %d", e, k.fence, fence)
	}
	if gen != k.gen && k.gen != 0 {
		k.deleted, k.fence, k.again, k.status = false, 0, true, ""
	}
	if status == execution.StatusDeleting && k.status != execution.StatusDeleting && t.held(r.Old) {
		t.w.fail("%s was closed while held", e)
	}
	if status == execution.StatusDeleting && k.status != execution.StatusDeleting && !t.askedFor(k) && t.w.engine.Now().UnixMilli() < r.Old.Int(journal.HeadEnded)+24*60*60*1000 {
		t.w.fail("%s was closed before its time was over", e)
	}
	if r.New.Int(journal.HeadFloor) > r.Old.Int(journal.HeadFloor) && r.Old != nil && gen == k.gen && t.held(r.Old) {
		t.w.fail("the floor of %s was raised while it was held", e)
	}
	if floor := r.New.Int(journal.HeadFloor); t.w.keeps > 0 && floor > r.Old.Int(journal.HeadFloor) && floor > max(1, r.New.Int(journal.HeadFirst), k.tip-t.w.keeps+1) {
		t.w.fail("the floor of %s is %d, its tip %d, and %d versions are to be kept", e, floor, k.tip, t.w.keeps)
	}
	if len(r.New[journal.HeadHolds].SS) != k.holds {
		t.w.held++
	}
	if status == execution.StatusDeleting && k.status != status {
		k.closer = t.w.acting
	}
	if status != k.status {
		t.w.tally["status "+string(status)]++
	}
	if k.status == execution.StatusDeleting && status != k.status && gen == k.gen {
		t.w.fail("%s is %s after it was closed", e, status)
	}
	if gen == k.gen && k.status.Terminal() && !slices.Contains([]execution.Status{execution.StatusArchived, execution.StatusDeleting, k.status}, status) {
		t.w.fail("%s is %s after it was %s", e, status, k.status)
	}
	if gen == k.gen && k.status == execution.StatusMoved && status != k.status && status != execution.StatusDeleting {
		t.w.fail("%s is %s after it was moved", e, status)
	}
	if due := r.New.Int(journal.HeadDue); due == 0 && (status == execution.StatusRunning || status == execution.StatusWaiting || status == execution.StatusParked) {
		t.w.fail("%s is %s without an alarm", e, status)
	}
	if p := t.w.rules; p != nil && p.History != nil && k.policy == p.Name && slices.Contains(living, status) && r.New.Int(journal.HeadRetainDue) == 0 {
		t.w.fail("%s is %s under a history rule, and retention never looks at it", e, status)
	}
	if (status == execution.StatusRunning) == false && r.New.Str(journal.HeadOwner) != "" {
		t.w.fail("%s is %s and owned", e, status)
	}
	k.gen, k.fence, k.status, k.owner, k.holds, k.head = gen, fence, status, r.New.Str(journal.HeadOwner), len(r.New[journal.HeadHolds].SS), r.New
}

var living = []execution.Status{execution.StatusCreated, execution.StatusRunning, execution.StatusWaiting, execution.StatusParked, execution.StatusHalted}

// entry holds: a version is written once, without a gap, under a fence that does
// not go back.
func (t *truth) entry(e execution.ExecutionID, k *known, r memory.Record) {
	v, _ := journal.EntryVersion(r.Key.SK)
	switch {
	case r.New == nil:
		if r.Old.Str("k") != journal.KindStub && r.Old.Int("g") == k.gen {
			t.pruned(e, k, v)
		}
		return
	case r.New.Str("k") == journal.KindStub:
		if k.status != execution.StatusDeleting && !k.deleted {
			t.w.fail("entry %d of %s became a stub while it was %s", v, e, k.status)
		}
		return
	case r.Old != nil:
		t.w.fail("entry %d of %s was overwritten", v, e)
		return
	}
	gen, fence := r.New.Int("g"), r.New.Int("f")
	switch {
	case v != k.tip+1 && (v != 1 || gen == k.entryGen):
		t.w.fail("entry %d of %s after %d", v, e, k.tip)
	case gen < k.entryGen:
		t.w.fail("entry %d of %s is of generation %d after %d", v, e, gen, k.entryGen)
	case gen == k.entryGen && fence < k.entryFence && r.New.Str("k") != string(execution.KindDeleted): // nothing follows that one
		t.w.fail("entry %d (%s) of %s under fence %d after %d", v, r.New.Str("k"), e, fence, k.entryFence)
	}
	k.tip, k.entryGen, k.entryFence, k.times[v] = v, gen, fence, r.New.Int("t")
	t.w.tally["entry "+r.New.Str("k")]++
}

// closed: a deletion has begun; anything of it may go.
func (k *known) closed() bool { return k.deleted || k.status == execution.StatusDeleting }

// held: a hold is in force on an execution, its thread or a subject.
func (t *truth) held(head store.Item) bool {
	if len(head[journal.HeadHolds].SS) > 0 {
		return true
	}
	if th := head.Str(journal.HeadThread); th != "" && len(t.w.holds[journal.ThreadHoldset(tenant, execution.ThreadID(th)).SK]) > 0 {
		return true
	}
	return slices.ContainsFunc(head[journal.HeadSubjects].SS, func(token string) bool { return len(t.w.holds[journal.SubjectHoldset(tenant, token).SK]) > 0 })
}

// pruned holds: of an execution that lives an entry goes only when the archive
// holds it or the floor is above it, and when its successor is a day old.
func (t *truth) pruned(e execution.ExecutionID, k *known, v int64) {
	if k.closed() {
		return
	}
	switch next := k.times[v+1]; {
	case v >= max(k.head.Int(journal.HeadFloor), k.head.Int("bundled")+1):
		t.w.fail("entry %d of %s went, and its floor is %d", v, e, k.head.Int(journal.HeadFloor))
	case next == 0 || t.w.engine.Now().UnixMilli() < next+execution.PruneSafety.Milliseconds():
		t.w.fail("entry %d of %s went before its successor was old enough", v, e)
	}
	t.w.tally["removal entry"]++
}

// expired holds: only what may go is taken by its time to live, and not before.
func (w *world) expired(r memory.Record) {
	if !r.ByTTL {
		return
	}
	kind, _, _ := strings.Cut(r.Key.SK, "#")
	w.tally["removal ttl of "+kind]++
	stub := r.Old.Str("k") == journal.KindStub || r.Old.Str(journal.SlotOutcome) == "deleted"
	if r.Old.Int(store.AttrTTL) > w.engine.Now().Unix() || kind != "timer" && kind != "sig" && !stub {
		w.fail("the time to live took %s of %s", r.Key.SK, r.Key.PK)
	}
}

// wanted: somebody or something may have it deleted: itself, its subject or
// label, or what it descends from.
func (t *truth) wanted(k *known) bool {
	for x := k; x != nil; x = t.known[x.parent] {
		if x.expires {
			return true
		}
	}
	return t.askedFor(k)
}

// hasHeirs: something that descends from it is there.
func (t *truth) hasHeirs(e execution.ExecutionID) bool {
	for _, k := range t.known {
		if k.parent == e && k.tip > 0 && !k.deleted {
			return true
		}
	}
	return false
}

// askedFor: somebody did.
func (t *truth) askedFor(k *known) bool {
	for ; k != nil; k = t.known[k.parent] {
		if k.asked || t.w.asked[k.subject] || t.w.asked[k.label] || t.w.purged {
			return true
		}
	}
	return false
}

// slot holds: the first final outcome stands.
func (t *truth) slot(e execution.ExecutionID, k *known, r memory.Record) {
	if r.New == nil {
		if !k.closed() && r.Old.Int(journal.SlotGeneration) == k.gen {
			t.w.fail("the slot %s of %s went while it was %s", r.Key.SK, e, k.status)
		}
		return
	}
	was, is := execution.Outcome(r.Old.Str(journal.SlotOutcome)), execution.Outcome(r.New.Str(journal.SlotOutcome))
	if is == "deleted" && k.closed() {
		return // a stub
	}
	if was.Final() && is != was && r.Old.Int(journal.SlotGeneration) == r.New.Int(journal.SlotGeneration) {
		t.w.fail("the slot %s of %s changes from %s to %s", r.Key.SK, e, was, is)
	}
	var attempt int
	id, number, _ := strings.Cut(strings.TrimPrefix(r.Key.SK, journal.SlotPrefix), "#")
	_, _ = fmt.Sscanf(number, "%d", &attempt)
	op := execution.OperationID(id)
	if r.New.Int(journal.SlotStarted) != 0 {
		t.begun[op] = true
	}
	if !was.Final() && is == execution.OutcomeSucceeded && t.tools[op] && !t.copied(k, op, attempt) {
		t.w.biz.settledBy(op, attempt, is)
		t.effects(op, tool)
	}
	if is == execution.OutcomeNotExecuted && was != is {
		for _, x := range t.w.biz.effects[op] {
			if x.attempt == attempt && t.kinds[op] != always {
				t.w.fail("attempt %d of %s (%s) of %s counts as not executed, and happened at %v", attempt, op, t.kinds[op], e, x.at.Sub(t.w.start))
			}
		}
	}
}

// copied: the slot came along with the right to act, the effect is counted.
func (t *truth) copied(k *known, op execution.OperationID, attempt int) bool {
	return k.program != nil && k.program.carried && k.fence == 0 &&
		slices.ContainsFunc(t.w.biz.effects[op], func(x effect) bool { return x.attempt == attempt })
}
