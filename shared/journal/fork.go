package journal

import (
	"context"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Fork is a creation that takes the right to act over from another execution.
type Fork struct {
	// Creation is the child's; With and Refused are set here.
	Creation
	// Open are the parent's open operations, Slots what their slots hold (GetSlots).
	Open  []*execution.Operation
	Slots map[execution.OperationID]*Slot
	// Closed is the outcome that closes a slot for the move.
	Closed execution.Outcome
	// ParentRetainAt is when retention looks at the parent next, in milliseconds; 0:
	// never.
	ParentRetainAt int64
}

// Carry ends a parent as `moved` and creates its child in one transaction, in
// which every open operation's slot moves too: an empty one is closed, one that
// holds anything is copied to the child, and closed unless it is final (M). build
// proposes the parent's entry and the child; it may be called again and must not
// keep anything.
//
// Lost: the parent acts as before, and staged objects wait for the orphan sweep.
// Landed, reply lost: the parent's entry is recognised by its bytes, a repeat of
// the request by its memory. A crash right after: the child is whole.
//
// Errors: AlreadyExists, Deleted, TooLarge {limit} when the transaction would
// have too many parts, and Write's.
func (j *Journal) Carry(ctx context.Context, t execution.TenantID, e execution.ExecutionID, build func(ctx context.Context, h *Handle) (*execution.Proposal, *Fork, error)) (*Written, error) {
	return j.Write(ctx, t, e, WriteOptions{Head: true}, func(ctx context.Context, h *Handle) (*Step, error) {
		p, f, err := build(ctx, h)
		if err != nil || p.Replay != nil {
			return &Step{Proposal: p}, err
		}
		with, err := j.carried(ctx, h, f)
		if err != nil {
			return nil, err
		}
		// The parent's own parts are its entry and its head.
		if n := len(with) + 2; n > store.MaxTransactItems {
			return nil, execution.Errorf(execution.TooLarge, "too many open operations, labels and subjects to move at once").With("limit", store.MaxTransactItems).At(h.State)
		}
		hc := &HeadChange{}
		hc.RetainAt(h.State.Execution, h.Head, f.ParentRetainAt)
		return &Step{Proposal: p, Head: hc, With: with, Refused: func(c *store.Cancelled) error {
			const child, closing = 2, 5 // creation's head and closing mark, behind the parent's two
			switch {
			case c.Reasons[child] == store.ReasonCondition:
				return execution.Errorf(execution.AlreadyExists, "the id is in use").With("execution", string(f.Execution))
			case c.Reasons[closing] == store.ReasonCondition:
				return execution.Errorf(execution.Deleted, "the tenant is being purged").With("execution", string(f.Execution)).With("in_progress", true)
			}
			return nil // a slot or the head moved: all is computed anew
		}}, nil
	})
}

// carried are the parts that create the child and move the slots.
func (j *Journal) carried(ctx context.Context, h *Handle, f *Fork) ([]store.Write, error) {
	ref := execution.Ref{Tenant: f.Tenant, Execution: f.Execution}
	clock, err := j.generation(ctx, &ref, &f.Creation)
	if err != nil {
		return nil, err
	}
	now := j.NowOf(clock)
	if f.Prepare != nil {
		if err := f.Prepare(&f.Creation, ref, now); err != nil {
			return nil, err
		}
	}
	p, err := execution.Propose(nil, ref, f.Change, execution.Environment{Now: now, Epoch: j.Epoch})
	if err != nil {
		return nil, err
	}
	empty := &Handle{State: &execution.State{Ref: ref}, validated: clock.date, clock: clock}
	s, sealed, err := j.seal(ctx, empty, p.Entry)
	if err != nil {
		return nil, err
	}
	if s.object != nil {
		if err := j.putBody(ctx, empty, s, sealed); err != nil {
			return nil, err
		}
	}
	in, err := j.creation(ref, &f.Creation, p, s.toItem(ref.PK()), clock)
	if err != nil {
		return nil, err
	}
	for _, op := range f.Open {
		moved, err := j.moveSlot(ctx, h.State.Ref, ref, op, f.Slots[op.ID], f.Closed)
		if err != nil {
			return nil, err
		}
		in.Writes = append(in.Writes, moved...)
	}
	return in.Writes, nil
}

// moveSlot moves the slot of an operation's current attempt, as it was read.
func (j *Journal) moveSlot(ctx context.Context, parent, child execution.Ref, op *execution.Operation, s *Slot, closed execution.Outcome) ([]store.Write, error) {
	mine := store.Eq(SlotGeneration, store.N(parent.Generation))
	close := &store.Update{Key: SlotKey(parent.PK(), op.ID, op.Attempt),
		Actions: []store.Action{store.Set{Attr: SlotGeneration, Value: store.N(parent.Generation)}, store.Set{Attr: SlotOutcome, Value: store.S(string(closed))}}}
	if s == nil || s.Outcome == "" && !s.Started() {
		close.Cond = store.Any{store.NotThere(), store.All{mine, store.Absent{Attr: SlotOutcome}, store.Absent{Attr: SlotStarted}, store.Absent{Attr: SlotNonce}}}
		return []store.Write{{Update: close}}, nil
	}
	copied, err := j.slotItem(ctx, child, s)
	if err != nil {
		return nil, err
	}
	out := []store.Write{{Put: &store.Put{Item: copied, Cond: store.NotThere()}}}
	if s.Outcome.Final() {
		return out, nil // first final write wins: it stays what it is
	}
	close.Cond = store.All{mine, asRead(SlotOutcome, s.Outcome != "", store.S(string(s.Outcome))), asRead(SlotNonce, s.Nonce != nil, store.B(s.Nonce))}
	return append(out, store.Write{Update: close}), nil
}

func asRead(attr string, there bool, v store.Value) store.Cond {
	if !there {
		return store.Absent{Attr: attr}
	}
	return store.Eq(attr, v)
}

// slotItem is a slot as an item of another execution.
func (j *Journal) slotItem(ctx context.Context, ref execution.Ref, s *Slot) (store.Item, error) {
	c := *s
	c.Generation = ref.Generation
	k := SlotKey(ref.PK(), c.Operation, c.Attempt)
	it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(c.Generation)}
	for attr, n := range map[string]int64{SlotFence: c.Fence, SlotStarted: c.StartedAt, SlotAt: c.At} {
		if n != 0 {
			it[attr] = store.N(n)
		}
	}
	for attr, b := range map[string][]byte{SlotArgs: c.Args, SlotNonce: c.Nonce} {
		if b != nil {
			it[attr] = store.B(b)
		}
	}
	if c.SawUnknown {
		it[SlotUnknown] = store.Bool(true)
	}
	if c.Outcome == "" {
		return it, nil
	}
	body, err := j.sealSlot(ctx, ref, &c, "slot")
	if err != nil {
		return nil, err
	}
	it[SlotOutcome], it[SlotBody] = store.S(string(c.Outcome)), store.B(body)
	return it, nil
}
