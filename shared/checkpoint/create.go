package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Create starts an execution: one transaction. Errors: AlreadyExists,
// RequestMismatch, Deleted, InvalidRequest, TooLarge, and what the store
// answers.
func (s *Service) Create(ctx context.Context, r *api.CreateRequest) (*api.CreateReply, error) {
	c := &execution.Change{Kind: execution.KindCreated, Actor: r.Actor.Execution(), Request: request(&r.Common), State: r.State, Labels: r.Labels, Subjects: r.Subjects,
		Permissions: r.Permissions.Execution(), Redacted: r.Redacted,
		Created: &execution.Creation{Thread: r.Thread, Workflow: r.Workflow, Input: r.Input, Policy: r.Policy}}
	if r.Schema != nil {
		c.Created.Schema = execution.Schema(*r.Schema)
	}
	if r.Claim != nil {
		c.Claim = &execution.ClaimRequest{Owner: r.Claim.Owner, LeaseSeconds: r.Claim.LeaseSeconds}
	}
	var err error
	if c.Created.Budgets, err = limits(r.Budgets); err != nil {
		return nil, err
	}
	in := journal.Creation{Tenant: r.Tenant, Execution: r.Execution, Change: c, Reuse: r.Reuse == "new_generation"}
	switch {
	case r.Parent != nil:
		if err := s.child(ctx, r, &in); err != nil {
			return nil, err
		}
	case r.Execution == "":
		if r.RequestID == "" {
			return nil, execution.Invalid("request_id", "is required where execution is left out")
		}
		in.Execution = derive("create", string(r.Tenant), r.RequestID)
	}
	if err := s.defaults(ctx, r.Tenant, c.Created); err != nil {
		return nil, err
	}
	in.Prepare = s.prepare(ctx)
	h, replayed, err := s.Journal.Create(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.created(h, replayed), nil
}

// created is the reply of create and fork.
func (s *Service) created(h *journal.Handle, replayed bool) *api.CreateReply {
	out := &api.CreateReply{Standing: s.Views.Standing(h), Generation: h.State.Generation}
	if p := h.State.Parent; p != nil {
		out.Parent = &api.Parent{Execution: p.Execution, Generation: p.Generation, Operation: p.Operation, Attempt: p.Attempt}
	} else if f := h.State.ForkedFrom; f != nil {
		out.Parent = &api.Parent{Execution: f.Execution, Generation: f.Generation, Version: f.Version, Carry: f.Carry}
	}
	if replayed {
		out.Replayed, out.Tip = true, &api.Tip{Version: h.State.Version, Fence: h.State.Fence}
		if h.Head != nil {
			out.Version = h.Head.FirstVersion
			if h.State.ClaimVersion == out.Version {
				out.Fence = h.State.Fence
			}
		}
		s.count(telemetry.RepeatedRequests, 1)
	}
	return out
}

// defaults fills in what the workflow declares for its executions.
func (s *Service) defaults(ctx context.Context, t execution.TenantID, c *execution.Creation) error {
	w, err := s.Catalog.Workflow(ctx, t, c.Workflow)
	if err != nil {
		return err
	}
	if w != nil {
		if c.Policy == "" {
			c.Policy = w.DefaultPolicy
		}
		if c.Schema.Version == 0 && w.Schema != nil {
			c.Schema = execution.Schema(*w.Schema)
		}
	}
	return nil
}

// prepare makes what belongs to the moment of a creation: when retention looks at
// it first, and the tokens by which it is found. Tokens that were made before the
// time that the write is held to could be of a key that a purge has shredded since:
// nobody would find the execution by them.
func (s *Service) prepare(ctx context.Context) func(*journal.Creation, execution.Ref, int64) error {
	return func(in *journal.Creation, ref execution.Ref, now int64) (err error) {
		c := in.Change
		if c.Created.Policy != "" {
			_, in.RetainAt, err = s.lifetime(ctx, &execution.State{Ref: ref, Status: execution.StatusCreated, Policy: c.Created.Policy, CreatedAt: now, TipAt: now})
			if err != nil {
				return err
			}
		}
		in.LabelTokens, in.SubjectTokens, err = s.tokens(ctx, ref.Tenant, c.Labels, c.Subjects)
		return err
	}
}

func limits(b map[string]api.BudgetLimit) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(b))
	for name, l := range b {
		text, err := execution.ParseDecimal("budgets."+name+".limit", string(l.Limit), true)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// derive makes an id from parts; the same parts give the same id.
func derive(domain string, parts ...string) execution.ExecutionID {
	h := sha256.New()
	h.Write([]byte("cairn id 1\x00" + domain))
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return execution.ExecutionID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// child makes the execution the effect of an operation of its parent: its id
// follows from the attempt, and the creation fills the attempt's slot in the
// same transaction, so that no second child can exist (M).
func (s *Service) child(ctx context.Context, r *api.CreateRequest, in *journal.Creation) error {
	if r.Execution != "" {
		return execution.Invalid("execution", "is derived from the parent: leave it out")
	}
	p, err := s.Journal.Open(ctx, r.Tenant, r.Parent.Execution, journal.OpenOptions{Head: true})
	if err != nil {
		return err
	}
	op := p.State.Operation(r.Parent.Operation)
	switch {
	case op == nil:
		return execution.Invalid("parent.operation", "no such operation").With("operation", string(r.Parent.Operation))
	case p.State.Status.Ended():
		return execution.Errorf(execution.ExecutionClosed, "the parent has ended").At(p.State)
	}
	ref := p.State.Ref
	in.Execution = ChildID(ref, op)
	if op.Final() { // whatever settled it without a slot: only a child that is there already is answered
		if head, _, err := s.Journal.ReadHead(ctx, r.Tenant, in.Execution); err != nil {
			return err
		} else if head == nil {
			return started(in.Execution, op.ID)
		}
	}
	in.Change.Created.Parent = &execution.Parent{Execution: ref.Execution, Generation: ref.Generation, Operation: op.ID, Attempt: op.Attempt}
	key := journal.SlotKey(ref.PK(), op.ID, op.Attempt)
	now := s.Journal.Now(p)
	in.With = []store.Write{
		{Update: &store.Update{Key: key, Cond: store.NotThere(), Actions: []store.Action{
			store.Set{Attr: journal.SlotGeneration, Value: store.N(ref.Generation)}, store.Set{Attr: journal.SlotStarted, Value: store.N(now)},
			store.Set{Attr: journal.SlotFence, Value: store.N(p.State.Fence)}}}},
		{Check: &store.Check{Key: journal.HeadKey(ref.PK()), Cond: store.All{store.Eq(journal.HeadGeneration, store.N(ref.Generation)),
			store.Compare{Attr: journal.HeadStatus, Op: store.NE, Value: store.S(string(execution.StatusDeleting))},
			store.Compare{Attr: journal.HeadStatus, Op: store.NE, Value: store.S(string(execution.StatusHalted))}}}},
	}
	in.Refused = func(i int, old store.Item) error {
		switch {
		case i == 0:
			return started(in.Execution, op.ID)
		case old.Int(journal.HeadGeneration) == ref.Generation && old.Str(journal.HeadStatus) == string(execution.StatusHalted):
			return halted(ref)
		}
		return execution.Errorf(execution.Deleted, "the parent is being deleted").With("execution", string(ref.Execution))
	}
	return nil
}

func halted(parent execution.Ref) error {
	return execution.Errorf(execution.Halted, "the parent is halted").With("execution", string(parent.Execution))
}

func started(child execution.ExecutionID, op execution.OperationID) error {
	return execution.Errorf(execution.ExecutionClosed, "the attempt was started or settled without a child").With("operation", string(op)).With("execution", string(child))
}

// ChildID names the execution that is the effect of an operation's current
// attempt: hash(parent, generation, operation, attempt).
func ChildID(ref execution.Ref, op *execution.Operation) execution.ExecutionID {
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(ref.Generation))
	binary.BigEndian.PutUint64(n[8:], uint64(op.Attempt))
	return derive("child", string(ref.Tenant), string(ref.Execution), string(n[:]), string(op.ID))
}
