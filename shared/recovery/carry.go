package recovery

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Carry forks an execution with the right to act: the child goes on with the
// operations of the parent's tip, under their identities and provider keys, and
// with the state of r.AtVersion; the parent is closed as moved. r.NewExecution
// is set.
//
// A carried operation is uncertain for the child's first owner, as after any
// change of owners. Signals that the parent did not absorb stay with it.
//
// Errors: ExecutionClosed, Halted, OperationsOpen {limit} above MaxCarried open
// operations, TooLarge where the parent's settled operations left its fold, and
// journal.Carry's.
func (s *Service) Carry(ctx context.Context, r *api.ForkRequest) (*api.ForkReply, error) {
	w, err := s.Journal.Carry(ctx, r.Tenant, r.Execution, func(ctx context.Context, h *journal.Handle) (*execution.Proposal, *journal.Fork, error) {
		p, err := s.moving(h, r)
		if err != nil || p.Replay != nil {
			return p, nil, err
		}
		f, err := s.heir(ctx, h, r)
		return p, f, err
	})
	if err != nil {
		return nil, err
	}
	child, err := s.Journal.Open(ctx, r.Tenant, w.Handle.State.MovedTo, journal.OpenOptions{Head: true})
	if err != nil {
		return nil, err
	}
	f := child.State.ForkedFrom
	reply := &api.ForkReply{Standing: s.standing(&journal.Written{Handle: child}), Generation: child.State.Generation}
	if f != nil {
		reply.Parent = &api.Parent{Execution: f.Execution, Generation: f.Generation, Version: f.Version, Carry: f.Carry}
	}
	if w.Replay != nil {
		s.count(telemetry.RepeatedRequests, 1)
		reply.Replayed, reply.Tip = true, &api.Tip{Version: reply.Version, Fence: reply.Fence}
		reply.Version = child.Head.FirstVersion
	}
	return reply, nil
}

// moving proposes the parent's last entry.
func (s *Service) moving(h *journal.Handle, r *api.ForkRequest) (*execution.Proposal, error) {
	if err := s.usable(h); err != nil {
		return nil, err
	}
	p, err := s.propose(h, &execution.Change{Kind: execution.KindMoved, System: true, Actor: r.Actor.Execution(), Request: request(&r.Common, 0), MovedTo: r.NewExecution})
	if err != nil || p.Replay != nil {
		return p, err
	}
	st := h.State
	if err := closed(st); err != nil {
		return nil, err
	}
	if err := halted(st); err != nil {
		return nil, err
	}
	switch {
	case st.Open > execution.MaxCarried:
		return nil, execution.Errorf(execution.OperationsOpen, "too many operations are open to carry them").With("limit", execution.MaxCarried).With("open", st.Open).At(st)
	case len(st.Forgotten) > 0:
		// Their outcomes stand in slots of the parent, where the child would not find
		// them.
		return nil, execution.Errorf(execution.TooLarge, "an execution with so many settled operations cannot be carried").With("limit", execution.MaxSettledMemory).At(st)
	}
	return p, nil
}

// heir is the child as a creation.
func (s *Service) heir(ctx context.Context, h *journal.Handle, r *api.ForkRequest) (*journal.Fork, error) {
	tip := h.State
	at := h
	if r.AtVersion != tip.Version {
		var err error
		if at, err = s.Journal.At(ctx, r.Tenant, r.Execution, r.AtVersion); err != nil {
			return nil, err
		}
	}
	open := tip.OpenOperations()
	slots, err := s.Journal.GetSlots(ctx, tip.Ref, open)
	if err != nil {
		return nil, err
	}
	from := at.State
	root := tip.IdentityRoot
	created := &execution.Creation{Thread: tip.Thread, Workflow: tip.Workflow, Schema: from.Schema, Input: tip.Input, Policy: tip.Policy, IdentityRoot: &root,
		ForkedFrom: &execution.ForkPoint{Execution: tip.Execution, Generation: tip.Generation, Version: r.AtVersion, Carry: true}}
	if len(tip.Budgets) > 0 {
		created.Budgets = map[string]string{}
		for name, b := range tip.Budgets {
			created.Budgets[name] = b.Limit
		}
	}
	files := append([]execution.Artifact(nil), from.Artifacts...)
	for _, op := range tip.OperationsInOrder() {
		c := *op
		c.Fence = noFence
		created.Operations = append(created.Operations, &c)
		if op.ResultRef != nil {
			files = append(files, *op.ResultRef)
		}
	}
	for _, slot := range slots {
		if slot.ResultRef != nil {
			files = append(files, *slot.ResultRef)
		}
	}
	change := &execution.Change{Kind: execution.KindCreated, Actor: r.Actor.Execution(), Request: request(&r.Common, 0), State: from.Data, Labels: tip.Labels, Subjects: tip.Subjects,
		Permissions: tip.Permissions, Task: from.Task, Created: created}
	f := &journal.Fork{Open: open, Slots: slots, Closed: ledger.SlotMoved,
		Creation: journal.Creation{Tenant: r.Tenant, Execution: r.NewExecution, Change: change, LabelTokens: h.Head.LabelTokens, SubjectTokens: h.Head.SubjectTokens}}
	f.Prepare = func(c *journal.Creation, ref execution.Ref, now int64) (err error) {
		if s.Lifetime != nil {
			_, c.RetainAt, err = s.Lifetime(ctx, &execution.State{Ref: ref, Status: execution.StatusCreated, Policy: tip.Policy, CreatedAt: now, TipAt: now})
			if err != nil {
				return err
			}
			moved := *tip
			moved.Status, moved.EndedAt, moved.TipAt = execution.StatusMoved, now, now
			if _, f.ParentRetainAt, err = s.Lifetime(ctx, &moved); err != nil {
				return err
			}
		}
		copied, err := s.Ledger.Artifacts.CopyAll(ctx, tip.Ref, ref, files)
		if err == nil {
			change.Artifacts = copied[:len(from.Artifacts)]
		}
		return err
	}
	return f, nil
}

// noFence is no owner's: a carried operation was given out by none of the child's.
const noFence = -1
