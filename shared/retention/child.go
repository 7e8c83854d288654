package retention

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// receiptParent notes on a receipt what the deleted child was to its parent.
const receiptParent = "parent"

// lost is what a child's removal is for its parent's operation.
type lost struct {
	Parent  execution.Parent  `json:"parent"`
	Outcome execution.Outcome `json:"outcome"`
	Reason  string            `json:"reason,omitempty"`
}

// childhood reads, before an execution is closed, whether it is the effect of
// another's operation, or carries on one that is, and how it ended; "" when it is
// nobody's child or when that cannot be read (no key): then the parent, when it
// asks, finds nobody and parks.
func (s *Service) childhood(ctx context.Context, h *journal.Head) string {
	if s.Ledger == nil || !slices.ContainsFunc(h.LabelTokens, func(t string) bool { return strings.HasPrefix(t, "~") }) {
		return ""
	}
	opened, err := s.Journal.Open(ctx, h.Tenant, h.Execution, journal.OpenOptions{})
	if err != nil || opened.State.Status == execution.StatusMoved { // its fork speaks for it
		return ""
	}
	st := opened.State
	parent, err := s.Ledger.EffectOf(ctx, st)
	if err != nil || parent == nil {
		return ""
	}
	l := lost{Parent: *parent}
	status := st.Status
	if status == execution.StatusArchived {
		status = st.Before
	}
	switch status {
	case execution.StatusCompleted:
		l.Outcome = execution.OutcomeSucceeded
	case execution.StatusFailed, execution.StatusCancelled:
		l.Outcome, l.Reason = execution.OutcomeFailed, "the child execution ended as "+string(status)
	default:
		l.Outcome, l.Reason = execution.OutcomeFailed, "the child execution was deleted before it ended"
	}
	text, _ := json.Marshal(l) // plain texts and numbers
	return string(text)
}

// tellParent fills the slot of the operation whose effect the deleted execution
// was, as evidence: an outcome that stands there already stays. A parent that is
// gone, or a key that is away, stops no deletion.
//
// A crash after it repeats the same evidence.
func (s *Service) tellParent(ctx context.Context, ref execution.Ref, receipt store.Item) error {
	text := receipt.Str(receiptParent)
	if text == "" || s.Ledger == nil {
		return nil
	}
	var l lost
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return execution.Errorf(execution.Integrity, "a receipt cannot be read").With("execution", string(ref.Execution))
	}
	r := &api.RecordOutcomeRequest{Execution: l.Parent.Execution, Operation: l.Parent.Operation, Attempt: l.Parent.Attempt, Outcome: l.Outcome, Reason: l.Reason}
	r.Tenant, r.Actor = ref.Tenant, &api.Actor{Kind: "system", ID: "retention"}
	api.Identify(r)
	_, err := s.Ledger.RecordOutcome(ctx, r)
	if code := execution.CodeOf(err); err != nil && (!code.Retryable() || code == execution.KeyUnavailable) {
		return nil
	}
	return err
}
