package view

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/store"
)

// Builder makes views. Safe for concurrent use.
type Builder struct {
	Journal   *journal.Journal
	Ledger    *ledger.Ledger
	Artifacts *artifact.Store
}

// Options say what a view shows.
type Options struct {
	// Inbox reads the signals that are not absorbed: one more request.
	Inbox bool
	// Evidence shows what the ledger holds about open operations: one more request
	// for each hundred of them.
	Evidence bool
	// Owner shows the claim's resume value.
	Owner bool
	// Dispositions are shown with the operations (resume's plan).
	Dispositions bool
}

// Standing says where an execution stands. With a head it also knows the
// remaining lease, and shows a status that this version does not know as it is.
func (b *Builder) Standing(h *journal.Handle) api.Standing {
	s := h.State
	out := api.Standing{Execution: s.Execution, Version: s.Version, Status: s.Status, Fence: s.Fence, Owner: s.Owner}
	if h.Head != nil && !h.Head.Status.Known() {
		out.Status = h.Head.Status
	}
	if s.Owner != "" && (h.Head != nil || s.TipByOwner) {
		left := b.Journal.LeaseRemaining(h)
		out.LeaseRemainingMS = &left
	}
	return out
}

// View builds the folded view of a handle that was opened with its head.
func (b *Builder) View(ctx context.Context, h *journal.Handle, o Options) (*api.View, error) {
	s, now := h.State, b.Journal.Now(h)
	v := &api.View{Generation: s.Generation, Thread: s.Thread, Workflow: s.Workflow, Task: s.Task, CreatedAt: api.TimeOrNil(s.CreatedAt), UpdatedAt: api.TimeOrNil(s.TipAt),
		EndedAt: api.TimeOrNil(s.EndedAt), State: s.Data, Labels: s.Labels, Subjects: s.Subjects, HaltReason: s.HaltReason, Policy: s.Policy, KeptForever: s.Policy == "",
		MovedTo: s.MovedTo, Input: s.Input,
		// Lists are there when they are empty: a state machine's path into a missing one fails.
		Operations: []api.OperationView{}, Artifacts: []api.Artifact{}}
	if s.Schema.Version != 0 {
		sc := api.Schema(s.Schema)
		v.Schema = &sc
	}
	var evidence map[execution.OperationID]*api.SlotView
	if o.Evidence {
		var err error
		if evidence, err = b.Ledger.Unabsorbed(ctx, h); err != nil {
			return nil, err
		}
	}
	for _, op := range s.OperationsInOrder() {
		ov, err := b.operation(ctx, s, op, now)
		if err != nil {
			return nil, err
		}
		if o.Dispositions {
			ov.Disposition = api.Disposition(execution.Replayed(op, s.Fence, now, 0))
		}
		ov.Evidence = evidence[op.ID]
		v.Operations = append(v.Operations, ov)
	}
	if o.Inbox {
		inbox, err := b.Ledger.Inbox(ctx, s)
		if err != nil {
			return nil, err
		}
		v.Inbox = []api.InboxEntry{}
		for _, it := range inbox.Open {
			v.Inbox = append(v.Inbox, api.InboxEntry{Name: it.Name, Key: it.Key, Body: it.Body, At: api.TimeOrNil(it.At), Actor: (*api.Actor)(it.Actor)})
		}
	}
	for _, a := range s.Artifacts {
		v.Artifacts = append(v.Artifacts, api.Artifact(a))
	}
	if len(s.Budgets) > 0 {
		v.Budgets = map[string]api.Budget{}
		for name, bu := range s.Budgets {
			v.Budgets[name] = api.Budget{Limit: api.Decimal(bu.Limit), Spent: api.Decimal(bu.Spent)}
		}
	}
	b.standings(v, h, now, o)
	return v, nil
}

// standings fills in what depends on where the execution stands.
func (b *Builder) standings(v *api.View, h *journal.Handle, now int64, o Options) {
	s := h.State
	if h.Head != nil {
		v.Holds = h.Head.Holds
		v.ExpiresAt = api.TimeOrNil(h.Head.ExpiresAt)
	}
	if s.Wait != nil {
		v.Wait = &api.WaitView{Operations: s.Wait.Operations, Signals: s.Wait.Signals, Until: api.TimeOrNil(s.Wait.Until), WaitingFor: s.Wait.WaitingFor}
		if h.Head != nil {
			v.Wait.DueAt = api.TimeOrNil(h.Head.DueAt)
		}
	}
	for _, r := range s.Parked {
		v.ParkedReasons = append(v.ParkedReasons, api.Reason(r))
	}
	switch {
	case s.Parent != nil:
		v.Parent = &api.Parent{Execution: s.Parent.Execution, Generation: s.Parent.Generation, Operation: s.Parent.Operation, Attempt: s.Parent.Attempt}
	case s.ForkedFrom != nil:
		v.Parent = &api.Parent{Execution: s.ForkedFrom.Execution, Generation: s.ForkedFrom.Generation, Version: s.ForkedFrom.Version, Carry: s.ForkedFrom.Carry}
	}
	if p := s.Permissions; p != nil {
		v.Permissions = &api.Permissions{Principal: p.Principal, Scopes: p.Scopes, ExpiresAt: api.TimeOrNil(p.ExpiresAt), Ref: p.Ref}
		v.PermissionsExpired = p.ExpiresAt > 0 && now >= p.ExpiresAt
	}
	if o.Owner {
		v.Resume = s.Resume
	}
	if c := s.Completion; c != nil {
		v.Result, v.Error = c.Result, c.Error
	}
}

func (b *Builder) operation(ctx context.Context, s *execution.State, op *execution.Operation, now int64) (api.OperationView, error) {
	v := api.OperationView{Operation: op.ID, Name: op.Name, Key: op.Key, Task: op.Task, Attempt: op.Attempt, Status: op.ViewStatus(s, now), OnUncertain: op.OnUncertain,
		ProviderKey: op.ProviderKey(s.IdentityRoot), SendBy: api.TimeOrNil(op.SendBy()), DeclaredAt: api.TimeOrNil(op.Intent), NextCheckAt: api.TimeOrNil(op.NextCheck),
		Outcome: op.Outcome, Reason: op.Reason, ProviderRef: op.ProviderRef, Result: op.Result, Seq: op.Seq}
	for _, c := range op.Contradictions {
		v.Contradictions = append(v.Contradictions, api.Contradiction{Attempt: c.Attempt, Outcome: c.Outcome, ProviderRef: c.ProviderRef, Source: c.Source, At: api.TimeOrNil(c.At)})
	}
	if op.ResultRef != nil {
		ref, err := b.Artifacts.RefTo(ctx, s.Ref, op.ResultRef)
		if err != nil {
			return v, err
		}
		v.ResultRef = ref
	}
	return v, nil
}

// References gives a function that writes a value too long for a reply where
// its reader finds it (state_ref): an object of its own that is gone after a
// day and is reached by deletion.
func (b *Builder) References(ctx context.Context, h *journal.Handle) api.RefFunc {
	return func(_ string, value *jsonx.Value) (*api.Ref, error) {
		return b.Artifacts.PutView(ctx, h.State.Ref, h.State.Version, value.Bytes())
	}
}

// Header shows an execution in a listing, from its head alone.
func Header(h *journal.Head) api.Header {
	out := api.Header{Execution: h.Execution, Generation: h.Generation, Status: h.Status, Fence: h.Fence, Owner: h.Owner, Thread: h.Thread, Workflow: h.Workflow, Policy: h.Policy,
		Holds: slices.Clone(h.Holds), CreatedAt: api.TimeOrNil(h.CreatedAt), UpdatedAt: api.TimeOrNil(h.UpdatedAt), DueAt: api.TimeOrNil(h.DueAt), ExpiresAt: api.TimeOrNil(h.ExpiresAt)}
	if h.Schema.Version != 0 {
		sc := api.Schema(h.Schema)
		out.Schema = &sc
	}
	return out
}

// Cost is a request's cost as its reply shows it.
func Cost(ctx context.Context) *api.Cost {
	c := api.Cost(store.CostOf(ctx))
	return &c
}
