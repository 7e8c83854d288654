package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// outcomes completes what the owner reports: without an outcome the ledger's is
// taken, large results go to the bucket.
func (s *Service) outcomes(ctx context.Context, h *journal.Handle, reports []api.OutcomeReport) ([]execution.Settlement, error) {
	out := make([]execution.Settlement, 0, len(reports))
	for i, o := range reports {
		t := execution.Settlement{Operation: o.Operation, Attempt: o.Attempt, Outcome: o.Outcome, Reason: o.Reason, ProviderRef: o.ProviderRef, Result: o.Result}
		op := h.State.Operation(o.Operation)
		if o.Outcome == "" && op != nil {
			slots, err := s.Journal.GetSlots(ctx, h.State.Ref, []*execution.Operation{op})
			if err != nil {
				return nil, err
			}
			slot := slots[op.ID]
			if slot == nil || !slot.Outcome.Final() {
				return nil, execution.Invalid(fmt.Sprintf("outcomes[%d].outcome", i), "the ledger has no final outcome of this operation").With("operation", string(op.ID))
			}
			if slot.Contradicted {
				return nil, execution.Invalid(fmt.Sprintf("outcomes[%d].outcome", i), "the ledger's evidence contradicts itself: reconcile, and decide").With("operation", string(op.ID))
			}
			t = execution.Settlement{Operation: op.ID, Attempt: slot.Attempt, Outcome: slot.Outcome, Reason: slot.Reason, ProviderRef: slot.ProviderRef, Result: slot.Result,
				ResultRef: slot.ResultRef, Source: execution.FromLedger}
		} else if op != nil && t.Result != nil {
			var err error
			if t.Result, t.ResultRef, err = s.Ledger.Shrink(ctx, h.State.Ref, t.Result); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// against is what the ledger says about operations of which, as the owner itself
// reports, nothing came, or that it declares again because of that. A webhook may
// have been faster than the owner and know better; what would follow from the
// owner's word alone is a second effect, so where the two disagree a person
// decides. Other outcomes are taken without a read: nothing goes again because of
// them, and get_operation shows what differs.
func (s *Service) against(ctx context.Context, h *journal.Handle, r *api.ApplyRequest) ([]execution.Evidence, error) {
	st := h.State
	var open, settled []*execution.Operation
	for _, o := range r.Outcomes {
		if op := st.Operation(o.Operation); op != nil && !op.Final() && o.Outcome.Effectless() && (o.Attempt == 0 || o.Attempt == op.Attempt) && !slices.Contains(open, op) {
			open = append(open, op)
		}
	}
	for _, d := range r.Operations {
		op := st.Operation(st.OperationID(taskOf(st, r.Task), &execution.Declaration{Name: d.Name, Key: d.Key, Args: d.Args}))
		if op != nil && op.Outcome.Effectless() && op.Source != execution.FromVerdict && !slices.Contains(settled, op) {
			settled = append(settled, op)
		}
	}
	said, err := s.Ledger.Evidence(ctx, st, open)
	if err != nil {
		return nil, err
	}
	late, err := s.Ledger.AllEvidence(ctx, st, settled)
	return append(said, late...), err
}
