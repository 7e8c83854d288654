package recovery

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// askChild asks the execution that is an attempt's effect how it ended; someone
// false: there is none. Only a child whose parent is this very attempt counts.
func (s *Service) askChild(ctx context.Context, h *journal.Handle, op *execution.Operation) (ev execution.Evidence, why string, someone bool) {
	if s.ChildID == nil {
		return ev, "", false
	}
	ref := h.State.Ref
	ev = execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}
	id := s.ChildID(ref, op)
	head, _, err := s.Journal.ReadHead(ctx, ref.Tenant, id)
	if err != nil {
		return ev, "the child could not be read", true
	}
	if head == nil {
		return ev, "", false
	}
	child, err := s.Journal.Open(ctx, ref.Tenant, id, journal.OpenOptions{})
	if err != nil {
		return ev, "the child could not be read", true
	}
	st := child.State
	p := st.Parent
	if p == nil || p.Execution != ref.Execution || p.Generation != ref.Generation || p.Operation != op.ID || p.Attempt != op.Attempt {
		return ev, "", false
	}
	ev.Finding = execution.InProgress
	if outcome, reason, ended := childOutcome(st); ended {
		ev.Finding, ev.Outcome, ev.Reason = execution.Found, outcome, reason
		if c := st.Completion; c != nil && c.Result != nil {
			if ev.Result, ev.ResultRef, err = s.Ledger.Shrink(ctx, ref, c.Result); err != nil {
				return execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}, "the child's result could not be kept", true
			}
		}
	}
	return ev, "", true
}

// childOutcome says what a child's end is for its parent's operation.
func childOutcome(st *execution.State) (o execution.Outcome, reason string, ended bool) {
	status := st.Status
	if status == execution.StatusArchived {
		status = st.Before
	}
	switch status {
	case execution.StatusCompleted:
		return execution.OutcomeSucceeded, "", true
	case execution.StatusFailed, execution.StatusCancelled:
		return execution.OutcomeFailed, "the child execution ended as " + string(status), true
	}
	return "", "", false
}

// ChildEnded brings the end of a child to its parent's operation, as evidence. A
// parent that is gone or closing, or whose operation has an outcome, changes
// nothing: the child has ended all the same.
//
// Lost, or a crash before it: the parent asks the child by itself.
func (s *Service) ChildEnded(ctx context.Context, st *execution.State) error {
	outcome, reason, ended := childOutcome(st)
	if st.Parent == nil || !ended {
		return nil
	}
	r := &api.RecordOutcomeRequest{Execution: st.Parent.Execution, Operation: st.Parent.Operation, Attempt: st.Parent.Attempt, Outcome: outcome, Reason: reason}
	r.Tenant, r.Actor = st.Tenant, &api.Actor{Kind: "system", ID: "recover"}
	if st.Completion != nil {
		r.Result = st.Completion.Result
	}
	api.Identify(r)
	_, err := s.Ledger.RecordOutcome(ctx, r)
	if code := execution.CodeOf(err); err != nil && !code.Retryable() {
		return nil
	}
	return err
}
