package execution

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// validation is how far asked_at must lie past the limit: writes justified up
// to that long before may still land (api.md, "Details settled").
const validation = 5 * time.Minute

// Judgement is what evidence amounts to for one operation.
type Judgement struct {
	// Settle is the final outcome, nil while it stays open.
	Settle *Settlement
	// NeedsSlot: Settle counts only once it stands in the attempt's slot.
	NeedsSlot bool
	// Keep is evidence that settles nothing but must be remembered.
	Keep []Evidence
	// Contradictions are final outcomes that differ from the settled one (Settle,
	// or what the journal had), of this attempt or an earlier one; each once. They
	// are taken in after Settle.
	Contradictions []Settlement
}

// Judge is the evidence table: what a round of evidence says about an
// operation. It is pure; the order of evs and repeats among them change
// nothing; nothing that the journal has settled is unsettled, but by a verdict.
// Of several verdicts the caller gives only one.
//
// not_executed comes only from a closed slot, a fenced system, a verdict, or a
// not_found asked after the effect became impossible (M).
func Judge(op *Operation, evs []Evidence, now int64) Judgement {
	evs = mine(op, evs)
	for i := range evs {
		if ev := &evs[i]; ev.Finding == Decided && ev.Attempt == op.Attempt {
			return Judgement{Settle: settlement(op, ev, now), NeedsSlot: slotBound(ev.Outcome)}
		}
	}
	var j Judgement
	var found []*Evidence // what may settle the attempt, best first
	var proof *Evidence   // of absence
	several := false
	for i := range evs {
		switch ev := &evs[i]; {
		case ev.Attempt != op.Attempt:
			j.past(op, ev)
		case op.Final():
			j.afterFinal(op, ev)
		case ev.Finding == Several || ev.Finding == Found && ev.Count > 1:
			kept := *ev
			kept.Finding = Several
			j.Keep = append(j.Keep, kept)
			several = true
		case ev.Finding == Found && settles(op, evs, ev):
			found = append(found, ev)
		case ev.Finding == NotFoundFinding && (ev.Fenced || absent(op, ev)):
			if proof == nil {
				proof = ev
			}
		case ev.Finding == Found || ev.Finding == RejectedDuplicate || ev.Outcome == OutcomeUnknown:
			j.Keep = append(j.Keep, *ev)
		}
	}
	switch {
	case op.Final(), op.NeedsReview: // only a verdict leads out
	case several || disagree(found):
		for _, ev := range found {
			kept := *ev
			kept.Finding = Several
			j.Keep = append(j.Keep, kept)
		}
	case len(found) > 0:
		j.Settle = settlement(op, found[0], now) // one that is bound to its slot was found there
	case proof != nil:
		j.Settle, j.NeedsSlot = settlement(op, absence(proof), now), true
	}
	if j.Settle != nil { // what was too weak to settle it, but says otherwise
		for i := range evs {
			if ev := &evs[i]; ev.Attempt == op.Attempt && ev.Finding == Found && ev.Outcome.Final() && (ev.Outcome != j.Settle.Outcome || !sameResult(ev.Result, j.Settle.Result)) {
				j.contradict(op, ev)
			}
		}
	}
	return j
}

// mine picks the evidence about an operation, each piece once, in an order that
// does not depend on that of arrival: the ledger first, then what says most.
func mine(op *Operation, evs []Evidence) []Evidence {
	out := make([]Evidence, 0, len(evs))
	for i := range evs {
		if evs[i].Operation == op.ID {
			out = append(out, evs[i])
		}
	}
	if len(out) < 2 {
		return out
	}
	slices.SortStableFunc(out, func(a, b Evidence) int { return compareEvidence(&a, &b) })
	return slices.CompactFunc(out, func(a, b Evidence) bool { return compareEvidence(&a, &b) == 0 })
}

func compareEvidence(a, b *Evidence) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Finding, b.Finding), cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.AskedAt, b.AskedAt), cmp.Compare(a.Source, b.Source), cmp.Compare(a.ProviderRef, b.ProviderRef), cmp.Compare(a.Count, b.Count),
		bytes.Compare(digestForm(a.Result), digestForm(b.Result)), cmp.Compare(refDigest(a.ResultRef), refDigest(b.ResultRef)),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Reference, b.Reference), boolOrder(a.Fenced, b.Fenced), boolOrder(a.Force, b.Force))
}

func digestForm(v *jsonx.Value) []byte {
	if v == nil {
		return nil
	}
	return jsonx.AppendDigestForm(nil, v)
}

func refDigest(a *Artifact) string {
	if a == nil {
		return ""
	}
	return a.Digest
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rank orders agreeing evidence: the ledger first, then what has a result, then
// what names a provider reference.
func rank(ev *Evidence) int {
	n := 0
	if ev.Source != FromLedger && ev.Source != FromSlot {
		n += 4
	}
	if ev.Result == nil && ev.ResultRef == nil {
		n += 2
	}
	if ev.ProviderRef == "" {
		n++
	}
	return n
}

// disagree reports whether findings cannot all be about one effect: other
// outcomes, other results, other provider references.
func disagree(found []*Evidence) bool {
	for i, a := range found {
		for _, b := range found[:i] {
			if a.Outcome != b.Outcome || a.ProviderRef != "" && b.ProviderRef != "" && a.ProviderRef != b.ProviderRef || !sameResult(a.Result, b.Result) {
				return true
			}
		}
	}
	return false
}

// sameResult reports whether two results may be one; an absent one says nothing.
func sameResult(a, b *jsonx.Value) bool { return a == nil || b == nil || jsonx.Equal(a, b) }

// settles reports whether a `found` settles the attempt: a rejection does so
// only for an attempt that went exactly once and of which nobody reported
// `unknown` (M: with same_key the first sending may still land); absence comes
// only from the ledger, where it was proved before it was written.
func settles(op *Operation, evs []Evidence, ev *Evidence) bool {
	switch ev.Outcome {
	case OutcomeSucceeded, OutcomeFailed:
		return true
	case OutcomeRejected:
		if op.Sends != 1 && op.OnUncertain != Close || op.SawUnknown {
			return false
		}
		for i := range evs {
			if e := &evs[i]; e.Attempt == op.Attempt && (e.Outcome == OutcomeUnknown || e.Finding == RejectedDuplicate) {
				return false
			}
		}
		return true
	case OutcomeNotExecuted, OutcomeAbandoned:
		return ev.Source == FromLedger || ev.Source == FromSlot
	}
	return false
}

// absent reports whether a not_found proves absence: the effect was impossible
// when the question was asked, with the validation window as margin.
func absent(op *Operation, ev *Evidence) bool {
	limit := op.ImpossibleAfter()
	return limit > 0 && ev.AskedAt >= limit+validation.Milliseconds()
}

// absence is a proof in the words of an outcome.
func absence(proof *Evidence) *Evidence {
	ev := *proof
	ev.Outcome = OutcomeNotExecuted
	switch {
	case ev.Reason != "":
	case ev.Fenced:
		ev.Reason = "not found by a system that refuses older fences"
	default:
		ev.Reason = "not found after the effect had become impossible"
	}
	return &ev
}

// slotBound outcomes count only when they stand in the attempt's slot.
func slotBound(o Outcome) bool { return o == OutcomeNotExecuted || o == OutcomeAbandoned }

func (j *Judgement) past(op *Operation, ev *Evidence) {
	if ev.Finding != Found || !ev.Outcome.Final() {
		return
	}
	for _, p := range op.Past {
		if p.Attempt == ev.Attempt && p.Outcome != ev.Outcome {
			j.contradict(op, ev)
		}
	}
}

func (j *Judgement) afterFinal(op *Operation, ev *Evidence) {
	if ev.Finding != Found || !ev.Outcome.Final() {
		return
	}
	if ev.Outcome != op.Outcome || !sameResult(ev.Result, op.Result) {
		j.contradict(op, ev)
	}
}

// contradict records a contradiction once.
func (j *Judgement) contradict(op *Operation, ev *Evidence) {
	for _, c := range op.Contradictions {
		if c.Attempt == ev.Attempt && c.Outcome == ev.Outcome && c.ProviderRef == ev.ProviderRef {
			return
		}
	}
	for _, c := range j.Contradictions {
		if c.Attempt == ev.Attempt && c.Outcome == ev.Outcome && c.ProviderRef == ev.ProviderRef {
			return
		}
	}
	t := Settlement{Operation: op.ID, Attempt: ev.Attempt, Outcome: ev.Outcome, Source: ev.Source, ProviderRef: ev.ProviderRef}
	if t.Source == FromVerdict { // only `decided` is a verdict: this must not unsettle anything
		t.Source = FromCaller
	}
	j.Contradictions = append(j.Contradictions, t)
}

func settlement(op *Operation, ev *Evidence, now int64) *Settlement {
	t := &Settlement{Operation: op.ID, Attempt: op.Attempt, Outcome: ev.Outcome, Source: ev.Source, Reason: ev.Reason, ProviderRef: ev.ProviderRef, Result: ev.Result, ResultRef: ev.ResultRef}
	if ev.Finding == Decided {
		t.Source = FromVerdict
		t.Verdict = &Verdict{Actor: ev.Actor, Reason: ev.Reason, Reference: ev.Reference, Force: ev.Force, At: now}
	}
	return t
}
