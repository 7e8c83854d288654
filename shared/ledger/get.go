package ledger

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// GetOperation answers get_operation: the intent, every attempt, the evidence in
// the ledger and what it amounts to, whether or not an owner has taken it in.
// An operation that left the fold is answered from its slots.
func (l *Ledger) GetOperation(ctx context.Context, r *api.GetOperationRequest) (*api.GetOperationReply, error) {
	h, err := l.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{Head: true})
	if err != nil {
		return nil, err
	}
	if err := l.Journal.Readable(h); err != nil {
		return nil, err
	}
	s, now := h.State, l.Journal.Now(h)
	none := execution.Errorf(execution.NotFound, "no such operation").With("operation", string(r.Operation)).With("field", "operation").At(s)
	op := s.Operation(r.Operation)
	if op == nil && !s.MayBeForgotten(r.Operation) {
		return nil, none
	}
	slots, err := l.Journal.ReadSlots(ctx, s.Ref, r.Operation)
	if err != nil {
		return nil, err
	}
	status := ""
	if op == nil {
		if op, err = fromSlots(r.Operation, slots, none); err != nil {
			return nil, err
		}
		status = string(op.Outcome)
	} else {
		var evs []execution.Evidence
		if slot := slots[op.Attempt]; slot != nil {
			evs = slotEvidence(slot)
		}
		seen := Project(s, evs, now)
		op = seen.Operation(op.ID)
		status = op.ViewStatus(seen, now)
	}
	out := &api.GetOperationReply{Status: status, ExecutionStatus: s.Status,
		Standing: api.Standing{Execution: s.Execution, Version: s.Version, Fence: s.Fence, Owner: s.Owner}}
	if !h.Head.Status.Known() {
		out.ExecutionStatus = h.Head.Status
	}
	limit := api.InlineLimit(r.MaxInlineBytes)
	if out.OperationDetail, err = l.detail(ctx, s, op, slots, limit); err != nil {
		return nil, err
	}
	return out, api.FitOperation(out, limit, func(_ string, value *jsonx.Value) (*api.Ref, error) {
		return l.Artifacts.PutView(ctx, s.Ref, s.Version, value.Bytes())
	})
}

// Unabsorbed shows what the ledger holds about the current attempts of open
// operations; those of which it holds nothing are left out. Results that are
// kept in the bucket are left out too: get_operation gives them.
//
// The handle's slots are used where it has them.
func (l *Ledger) Unabsorbed(ctx context.Context, h *journal.Handle) (map[execution.OperationID]*api.SlotView, error) {
	s, slots := h.State, h.Slots
	if open := s.OpenOperations(); slots == nil && len(open) > 0 {
		var err error
		if slots, err = l.Journal.GetSlots(ctx, s.Ref, open); err != nil {
			return nil, err
		}
	}
	out := make(map[execution.OperationID]*api.SlotView, len(slots))
	for id, slot := range slots {
		short := *slot
		short.ResultRef = nil
		v, err := l.slotView(ctx, s.Ref, &short, nil)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[id] = v
		}
	}
	return out, nil
}

// detail shows an operation with the evidence that its slots hold.
func (l *Ledger) detail(ctx context.Context, s *execution.State, op *execution.Operation, slots map[int]*journal.Slot, limit int) (api.OperationDetail, error) {
	d := api.OperationDetail{Operation: op.ID, Attempt: op.Attempt, ProviderKey: op.ProviderKey(s.IdentityRoot), SendBy: api.TimeOrNil(op.SendBy()), NextCheckAt: api.TimeOrNil(op.NextCheck),
		Outcome: op.Outcome, Source: op.Source, Reason: op.Reason, ProviderRef: op.ProviderRef, Result: op.Result,
		Intent: api.Intent{Name: op.Name, OldNames: op.OldNames, Key: op.Key, Task: op.Task, Args: op.Args, OnUncertain: op.OnUncertain, DedupSeconds: op.DedupSeconds,
			ValidSeconds: op.ValidSeconds, DeadlineSeconds: op.DeadlineSeconds, Resolver: op.Resolver, Version: op.IntentAt, Fence: op.Fence, DeclaredAt: api.TimeOrNil(op.Intent)}}
	for _, p := range op.Past {
		d.Attempts = append(d.Attempts, api.AttemptView{Attempt: p.Attempt, Outcome: p.Outcome, Reason: p.Reason, Source: p.Source})
	}
	d.Attempts = append(d.Attempts, api.AttemptView{Attempt: op.Attempt, Outcome: op.Outcome, Reason: op.Reason, Source: op.Source})
	if v := op.Verdict; v != nil {
		d.Verdict = &api.VerdictView{Actor: (*api.Actor)(v.Actor), Reason: v.Reason, Reference: v.Reference, Force: v.Force, At: api.TimeOrNil(v.At)}
	}
	urls := map[string]*api.Ref{}
	var err error
	if a := op.ResultRef; a != nil && a.Bytes <= int64(limit/2) {
		d.Result, err = l.Expand(ctx, s.Ref, a)
	} else if a != nil {
		d.ResultRef, err = l.refTo(ctx, s.Ref, a, urls)
	}
	if err != nil {
		return d, err
	}
	others := slices.Clone(op.Contradictions)
	attempts := make([]int, 0, len(slots))
	for n := range slots {
		attempts = append(attempts, n)
	}
	slices.Sort(attempts)
	for _, n := range attempts {
		v, err := l.slotView(ctx, s.Ref, slots[n], urls)
		if err != nil {
			return d, err
		}
		if v != nil {
			d.Evidence = append(d.Evidence, *v)
		}
		others = append(others, slots[n].Contradictions...)
		if differs(op, slots[n]) {
			others = append(others, execution.Contradiction{Attempt: n, Outcome: slots[n].Outcome, ProviderRef: slots[n].ProviderRef, Source: execution.FromLedger, At: slots[n].At})
		}
	}
	d.Contradictions = contradictions(others)
	return d, nil
}

// differs reports a final outcome in the ledger that is another one than the
// journal took from the owner, without reading, or from anybody but a person.
func differs(op *execution.Operation, s *journal.Slot) bool {
	if !s.Outcome.Final() {
		return false
	}
	if s.Attempt == op.Attempt {
		return op.Final() && op.Source != execution.FromVerdict && s.Outcome != op.Outcome
	}
	return slices.ContainsFunc(op.Past, func(p execution.PastAttempt) bool {
		return p.Attempt == s.Attempt && p.Source != execution.FromVerdict && p.Outcome.Final() && p.Outcome != s.Outcome
	})
}

// contradictions shows each once: those that the journal took in stand in the
// ledger too.
func contradictions(list []execution.Contradiction) []api.Contradiction {
	var out []api.Contradiction
	for _, c := range list {
		v := api.Contradiction{Attempt: c.Attempt, Outcome: c.Outcome, ProviderRef: c.ProviderRef, Source: c.Source, At: api.TimeOrNil(c.At)}
		same := func(o api.Contradiction) bool {
			return o.Attempt == v.Attempt && o.Outcome == v.Outcome && o.ProviderRef == v.ProviderRef
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, v)
		}
	}
	return out
}

// slotView shows a slot; nil for one that holds nothing yet. urls remembers the
// references made so far; nil: none.
func (l *Ledger) slotView(ctx context.Context, ref execution.Ref, s *journal.Slot, urls map[string]*api.Ref) (*api.SlotView, error) {
	if !s.Started() && s.Outcome == execution.OutcomeNone {
		return nil, nil
	}
	v := &api.SlotView{Attempt: s.Attempt, Started: s.Started(), Outcome: s.Outcome, Reason: s.Reason, ProviderRef: s.ProviderRef, Result: s.Result, At: api.TimeOrNil(s.At),
		Actor: (*api.Actor)(s.Actor), Contradictions: contradictions(s.Contradictions)}
	if s.Outcome == execution.OutcomeNone {
		v.At = api.TimeOrNil(s.StartedAt)
	}
	var err error
	if s.ResultRef != nil {
		v.ResultRef, err = l.refTo(ctx, ref, s.ResultRef, urls)
	}
	return v, err
}

func (l *Ledger) refTo(ctx context.Context, ref execution.Ref, a *execution.Artifact, urls map[string]*api.Ref) (*api.Ref, error) {
	if r := urls[a.Digest]; r != nil {
		return r, nil
	}
	r, err := l.Artifacts.RefTo(ctx, ref, a)
	if err == nil && urls != nil {
		urls[a.Digest] = r
	}
	return r, err
}
