package checkpoint

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// Suspend is apply with its ending at the top level.
func (s *Service) Suspend(ctx context.Context, r *api.SuspendRequest) (*api.ApplyReply, error) {
	return s.Apply(ctx, r.Apply())
}

// Complete is apply with its ending at the top level.
func (s *Service) Complete(ctx context.Context, r *api.CompleteRequest) (*api.ApplyReply, error) {
	return s.Apply(ctx, r.Apply())
}

// Fork starts a new execution from a version of another. Without carry the
// child starts without operations, its effects are its own, and a version at
// which one was open is refused; with carry the right to act moves.
func (s *Service) Fork(ctx context.Context, r *api.ForkRequest) (*api.ForkReply, error) {
	if r.RequestID == "" {
		return nil, execution.Invalid("request_id", "is required")
	}
	if r.NewExecution == "" {
		r.NewExecution = derive("fork", string(r.Tenant), string(r.Execution), r.RequestID)
	}
	if r.Operations == "carry" {
		if s.Carry == nil {
			return nil, execution.Invalid("operations", "carry is not served here")
		}
		return s.Carry(ctx, r)
	}
	h, err := s.open(ctx, r.Tenant, r.Execution, r.AtVersion, false)
	if err != nil {
		return nil, err
	}
	p := h.State
	if p.Open > 0 {
		ids := []string{}
		for _, op := range p.OpenOperations() {
			ids = append(ids, string(op.ID))
		}
		return nil, execution.Errorf(execution.OperationsOpen, "operations were open at that version: carry them, or fork where none is open").With("operations", ids).At(p)
	}
	c := &execution.Change{Kind: execution.KindCreated, Actor: r.Actor.Execution(), Request: request(&r.Common), State: p.Data, Labels: p.Labels, Subjects: p.Subjects,
		Permissions: p.Permissions, Task: p.Task,
		Created: &execution.Creation{Thread: p.Thread, Workflow: p.Workflow, Schema: p.Schema, Input: p.Input, Policy: p.Policy, Budgets: remaining(p.Budgets),
			ForkedFrom: &execution.ForkPoint{Execution: p.Execution, Generation: p.Generation, Version: p.Version}}}
	in := journal.Creation{Tenant: r.Tenant, Execution: r.NewExecution, Change: c}
	prepare := s.prepare(ctx)
	in.Prepare = func(in *journal.Creation, ref execution.Ref, now int64) error {
		if err := prepare(in, ref, now); err != nil {
			return err
		}
		// A fork has copies of its own: artifacts belong to one execution. A crash
		// here leaves staged copies for the orphan sweep.
		c.Artifacts, err = s.Artifacts.CopyAll(ctx, p.Ref, ref, p.Artifacts)
		return err
	}
	child, replayed, err := s.Journal.Create(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.created(child, replayed), nil
}

// remaining starts a fork's budgets with what its origin was given.
func remaining(b map[string]execution.Budget) map[string]string {
	if len(b) == 0 {
		return nil
	}
	out := make(map[string]string, len(b))
	for name, bu := range b {
		out[name] = bu.Limit
	}
	return out
}
