package ledger

import (
	"context"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// Evidence turns the slots of operations' current attempts into evidence for
// execution.Judge: final outcomes, open ones, that it was started, and what
// contradicts it. An outcome that this version does not know counts as unknown.
// Operations whose slot is empty have none.
func (l *Ledger) Evidence(ctx context.Context, s *execution.State, ops []*execution.Operation) ([]execution.Evidence, error) {
	slots, err := l.Journal.GetSlots(ctx, s.Ref, ops)
	if err != nil {
		return nil, err
	}
	var out []execution.Evidence
	for _, op := range ops {
		slot := slots[op.ID]
		if slot == nil {
			continue
		}
		if slot.Contradicted {
			// Rare: one more read for the outcomes beside it.
			all, err := l.Journal.ReadSlots(ctx, s.Ref, op.ID)
			if err != nil {
				return nil, err
			}
			if again := all[op.Attempt]; again != nil {
				slot = again
			}
		}
		out = append(out, slotEvidence(slot)...)
	}
	return out, nil
}

// AllEvidence is Evidence about every attempt of the operations: one request more
// for each that has more than one.
func (l *Ledger) AllEvidence(ctx context.Context, s *execution.State, ops []*execution.Operation) ([]execution.Evidence, error) {
	var out []execution.Evidence
	var once []*execution.Operation
	for _, op := range ops {
		if op.Attempt == 1 {
			once = append(once, op)
			continue
		}
		slots, err := l.Journal.ReadSlots(ctx, s.Ref, op.ID)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			out = append(out, slotEvidence(slot)...)
		}
	}
	evs, err := l.Evidence(ctx, s, once)
	return append(out, evs...), err
}

// slotEvidence is what one slot says.
func slotEvidence(s *journal.Slot) []execution.Evidence {
	ev := execution.Evidence{Operation: s.Operation, Attempt: s.Attempt, Source: execution.FromLedger, AskedAt: s.At, Started: s.Started(), Actor: s.Actor}
	var out []execution.Evidence
	if s.SawUnknown || !s.Outcome.Known() {
		unknown := ev
		unknown.Finding, unknown.Outcome = execution.QueryFailed, execution.OutcomeUnknown
		out = append(out, unknown)
	}
	switch {
	case s.Outcome.Final():
		ev.Finding, ev.Outcome, ev.Reason, ev.ProviderRef, ev.Result, ev.ResultRef = execution.Found, s.Outcome, s.Reason, s.ProviderRef, s.Result, s.ResultRef
		out = append(out, ev)
	case s.Outcome == execution.OutcomeInProgress, s.Outcome == execution.OutcomeNone && s.Started():
		ev.Finding, ev.Outcome, ev.Reason = execution.InProgress, s.Outcome, s.Reason
		out = append(out, ev)
	}
	for _, c := range s.Contradictions {
		other := execution.Evidence{Operation: s.Operation, Attempt: s.Attempt, Source: execution.FromLedger, AskedAt: c.At, Finding: execution.Found, Outcome: c.Outcome, ProviderRef: c.ProviderRef}
		if c.Outcome == s.Outcome {
			// The same outcome with another result: a second effect, for all we know.
			other.Finding, other.Outcome, other.Count = execution.Several, "", 2
		}
		out = append(out, other)
	}
	return out
}

// Project gives a state as it would be with evidence taken in: what views show
// of the ledger before an owner absorbs it. s is not changed.
func Project(s *execution.State, evs []execution.Evidence, now int64) *execution.State {
	var body execution.Body
	seen := map[execution.OperationID]bool{}
	for _, ev := range evs {
		op := s.Operation(ev.Operation)
		if op == nil || seen[op.ID] {
			continue
		}
		seen[op.ID] = true
		j := execution.Judge(op, evs, now)
		if j.Settle != nil {
			body.Outcomes = append(body.Outcomes, *j.Settle)
		}
		body.Evidence = append(body.Evidence, j.Keep...)
	}
	if len(body.Outcomes)+len(body.Evidence) == 0 {
		return s
	}
	out, err := execution.Fold(s, &execution.Entry{Version: s.Version + 1, Kind: execution.KindReconciled, Generation: s.Generation, Fence: s.Fence, At: max(now, s.TipAt), Body: body})
	if err != nil {
		return s // only a gap or another generation can be refused, and this is the next of this one
	}
	return out
}

// Settle writes settlements of not_executed and abandoned into their attempts'
// slots before they count (M); others are returned as they are. An outcome found
// there wins and is returned instead, from the ledger. A settlement from an
// empty slot (FromSlot) needs the slot to be empty: one that was started
// meanwhile, or whose outcome this version does not know, settles nothing and
// is left out.
//
// Lost: nothing counts yet. Landed, reply lost: the repeat finds the same. A
// crash right after: the slot is closed, which the next round reads as evidence.
//
// Errors: ExecutionClosed when the operation has moved to a fork, and the
// store's.
func (l *Ledger) Settle(ctx context.Context, h *journal.Handle, ts []execution.Settlement) ([]execution.Settlement, error) {
	ref := h.State.Ref
	// Two sets of slots: those that must be empty, and those that may be open.
	slots := map[bool][]*journal.Slot{}
	at := map[bool][]int{}
	out := make([]execution.Settlement, 0, len(ts))
	for i := range ts {
		t := &ts[i]
		if t.Outcome != execution.OutcomeNotExecuted && t.Outcome != execution.OutcomeAbandoned {
			out = append(out, *t)
			continue
		}
		slot := journal.SlotOfSettlement(ref, t, l.Journal.Now(h))
		if op := h.State.Operation(t.Operation); op != nil {
			slot.Args = op.ArgsDigest[:]
		}
		empty := t.Source == execution.FromSlot
		slots[empty], at[empty] = append(slots[empty], slot), append(at[empty], i)
	}
	for empty, list := range slots {
		got, err := l.Journal.FillSlots(ctx, ref, list, journal.FillOptions{OnlyEmpty: empty, ValidatedAt: h.ValidatedAt()})
		if err != nil {
			return nil, err
		}
		for n, f := range got {
			t := ts[at[empty][n]]
			switch now := f.Now; {
			case f.Filled, now.Outcome == t.Outcome:
				out = append(out, t)
			case now.Outcome == SlotMoved:
				return nil, execution.Errorf(execution.ExecutionClosed, "the operation has moved to a fork").With("operation", string(t.Operation)).At(h.State)
			case now.Outcome.Final():
				out = append(out, execution.Settlement{Operation: t.Operation, Attempt: t.Attempt, Outcome: now.Outcome, Source: execution.FromLedger, Reason: now.Reason,
					ProviderRef: now.ProviderRef, Result: now.Result, ResultRef: now.ResultRef})
			}
		}
	}
	return out, nil
}
