package execution

import (
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
	// NeedsSlot: the outcome counts only once it stands in the attempt's slot.
	NeedsSlot bool
	// Keep is evidence that settles nothing but must be remembered.
	Keep []Evidence
	// Contradiction: a final outcome came that differs from the settled one.
	Contradiction bool
}

// Judge is the evidence table: what a round of evidence says about an
// operation. It is pure; the order of evs and repeats among them change
// nothing; nothing that the journal has settled is unsettled, but by a verdict.
//
// not_executed comes only from a closed slot, a fenced system, a verdict, or a
// not_found asked after the effect became impossible (M).
func Judge(op *Operation, evs []Evidence, now int64) Judgement {
	var j Judgement
	var settle *Evidence
	conflict := false
	var proof *Evidence // of absence
	for i := range evs {
		ev := &evs[i]
		if ev.Operation != op.ID {
			continue
		}
		switch {
		case ev.Finding == Decided:
			if ev.Attempt == op.Attempt {
				j.Settle = settlement(op, ev, now)
				j.NeedsSlot = slotBound(ev.Outcome)
				return j
			}
		case ev.Attempt != op.Attempt:
			j.past(op, ev)
		case op.Final():
			j.afterFinal(op, ev)
		case ev.Finding == Several || ev.Finding == Found && ev.Count > 1:
			several := *ev
			several.Finding = Several
			j.Keep = append(j.Keep, several)
			conflict = true
		case ev.Finding == Found && finding(op, evs, ev):
			if settle != nil && settle.Outcome != ev.Outcome {
				conflict = true
			}
			if settle == nil || rank(ev) < rank(settle) {
				settle = ev
			}
		case ev.Finding == NotFoundFinding && (ev.Fenced || absent(op, ev)):
			if proof == nil || ev.AskedAt < proof.AskedAt {
				proof = ev
			}
		case ev.Finding == Found || ev.Finding == RejectedDuplicate || ev.Outcome == OutcomeUnknown:
			j.Keep = append(j.Keep, *ev)
		}
	}
	switch {
	case op.Final():
	case conflict:
		for i := range evs {
			if ev := &evs[i]; ev.Operation == op.ID && ev.Attempt == op.Attempt && ev.Finding == Found && ev.Outcome.Final() && ev.Count <= 1 {
				j.Keep = append(j.Keep, *ev)
			}
		}
	case op.NeedsReview: // only a verdict leads out
	case settle != nil:
		j.Settle = settlement(op, settle, now)
		j.NeedsSlot = slotBound(settle.Outcome) && settle.Source != FromLedger && settle.Source != FromSlot
	case proof != nil:
		ev := *proof
		ev.Outcome = OutcomeNotExecuted
		if ev.Reason == "" {
			ev.Reason = "not found after the effect had become impossible"
			if ev.Fenced {
				ev.Reason = "not found by a system that refuses older fences"
			}
		}
		j.Settle = settlement(op, &ev, now)
		j.NeedsSlot = true
	}
	return j
}

// finding reports whether a `found` settles the attempt: a rejection does so
// only for an attempt that went exactly once and of which nobody reported
// `unknown` (M: with same_key the first sending may still land); absence comes
// only from the ledger, where it was proved before it was written.
func finding(op *Operation, evs []Evidence, ev *Evidence) bool {
	switch ev.Outcome {
	case OutcomeSucceeded, OutcomeFailed:
		return true
	case OutcomeRejected:
		if op.Sends != 1 && op.OnUncertain != Close || op.SawUnknown {
			return false
		}
		for i := range evs {
			if e := &evs[i]; e.Operation == op.ID && e.Attempt == op.Attempt && (e.Outcome == OutcomeUnknown || e.Finding == RejectedDuplicate) {
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
	return limit > 0 && ev.AskedAt > 0 && ev.AskedAt >= limit+validation.Milliseconds()
}

// slotBound outcomes count only when they stand in the attempt's slot.
func slotBound(o Outcome) bool { return o == OutcomeNotExecuted || o == OutcomeAbandoned }

// rank orders agreeing evidence, so that which of it is kept does not depend on
// the order of arrival: the ledger first, then what names a provider reference.
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
	same := ev.Outcome == op.Outcome && (ev.Result == nil || op.Result == nil || jsonx.Equal(ev.Result, op.Result))
	if !same {
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
	j.Contradiction = true
	j.Settle = &Settlement{Operation: op.ID, Attempt: ev.Attempt, Outcome: ev.Outcome, Source: ev.Source, ProviderRef: ev.ProviderRef}
	if ev.Attempt == op.Attempt && j.Settle.Source == FromVerdict {
		j.Settle.Source = FromCaller
	}
}

func settlement(op *Operation, ev *Evidence, now int64) *Settlement {
	t := &Settlement{Operation: op.ID, Attempt: op.Attempt, Outcome: ev.Outcome, Source: ev.Source, Reason: ev.Reason, ProviderRef: ev.ProviderRef, Result: ev.Result, ResultRef: ev.ResultRef}
	if ev.Finding == Decided {
		t.Source = FromVerdict
		t.Verdict = &Verdict{Actor: ev.Actor, Reason: ev.Reason, Reference: ev.Reference, Force: ev.Force, At: now}
	}
	return t
}
