package recovery

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// askChild asks the execution that is an attempt's effect how it ended; someone
// false: there is none. Only a child whose parent is this very attempt counts.
func (s *Service) askChild(ctx context.Context, h *journal.Handle, op *execution.Operation) (ev execution.Evidence, why string, someone bool) {
	ev = execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}
	if s.ChildID == nil {
		return ev, "", false
	}
	for _, parent := range bearers(h.State) {
		child, err := s.child(ctx, parent, op)
		if err != nil {
			return ev, "the child could not be read", true
		}
		if child == nil {
			continue
		}
		outcome, reason, ended := childOutcome(child)
		if !ended {
			ev.Finding = execution.InProgress
			return ev, "", true
		}
		if c := child.Completion; c != nil && c.Result != nil {
			if ev.Result, ev.ResultRef, err = s.Ledger.Shrink(ctx, h.State.Ref, c.Result); err != nil {
				return execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}, "the child's result could not be kept", true
			}
		}
		ev.Finding, ev.Outcome, ev.Reason = execution.Found, outcome, reason
		return ev, "", true
	}
	return ev, "", false
}

// bearers are the executions under whose name an operation's child may have been
// made: the execution itself, and those whose right to act it carries on.
func bearers(st *execution.State) []execution.Ref {
	out := []execution.Ref{st.Ref}
	if f := st.ForkedFrom; f != nil && f.Carry {
		out = append(out, execution.Ref{Tenant: st.Tenant, Execution: f.Execution, Generation: f.Generation})
	}
	if !slices.Contains(out, st.IdentityRoot) {
		out = append(out, st.IdentityRoot)
	}
	return out
}

// child is the fold of the child of an attempt, or of what carries it on; nil when
// there is none.
func (s *Service) child(ctx context.Context, parent execution.Ref, op *execution.Operation) (*execution.State, error) {
	id := s.ChildID(parent, op)
	head, _, err := s.Journal.ReadHead(ctx, parent.Tenant, id)
	if err != nil || head == nil {
		return nil, err
	}
	h, err := s.Journal.Open(ctx, parent.Tenant, id, journal.OpenOptions{})
	if err != nil {
		return nil, err
	}
	p := h.State.Parent
	if p == nil || p.Execution != parent.Execution || p.Generation != parent.Generation || p.Operation != op.ID || p.Attempt != op.Attempt {
		return nil, nil
	}
	return s.Ledger.CarriedOnBy(ctx, h.State)
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

// ChildEnded brings the end of a child, or of what carries one on, to its parent's
// operation, as evidence. A parent that is gone or closing, or whose operation has an
// outcome, changes nothing: the child has ended all the same.
//
// Lost, or a crash before it: the parent asks the child by itself.
func (s *Service) ChildEnded(ctx context.Context, st *execution.State) error {
	outcome, reason, ended := childOutcome(st)
	if !ended {
		return nil
	}
	parent, err := s.Ledger.EffectOf(ctx, st)
	if err == nil && parent != nil {
		r := &api.RecordOutcomeRequest{Execution: parent.Execution, Operation: parent.Operation, Attempt: parent.Attempt, Outcome: outcome, Reason: reason}
		r.Tenant, r.Actor = st.Tenant, &api.Actor{Kind: "system", ID: "recover"}
		if st.Completion != nil {
			r.Result = st.Completion.Result
		}
		api.Identify(r)
		_, err = s.Ledger.RecordOutcome(ctx, r)
	}
	if code := execution.CodeOf(err); err != nil && !code.Retryable() {
		return nil
	}
	return err
}
