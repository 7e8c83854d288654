package journal

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Receipt states (attribute ReceiptState of a receipt item).
const (
	ReceiptState   = "state" // deleting or deleted
	ReceiptLast    = "last"  // tip before the closing entry
	ReceiptDeleted = "deleted"
)

// Creation asks for a new execution.
type Creation struct {
	Tenant    execution.TenantID
	Execution execution.ExecutionID
	// Change is of KindCreated; its FirstVersion is set here.
	Change *execution.Change
	// Reuse: a deleted id may start again as a new generation.
	Reuse bool
	// LabelTokens and SubjectTokens stand on the head; a selector row is written
	// for each.
	LabelTokens, SubjectTokens []string
	// With are more parts of the transaction.
	With []store.Write
	// Refused explains a refusal of a part of With: i counts from 0 in With.
	Refused func(i int, old store.Item) error
	// RetainAt is when retention looks at it first, in milliseconds; 0: never.
	RetainAt int64
	// Prepare, when set, is called with the generation that was chosen, after the
	// time that the write is held to was read, and may adjust anything of the
	// creation; perhaps more than once.
	Prepare func(c *Creation, ref execution.Ref, now int64) error
}

// Create writes head, first entry, registry row and selector rows in one
// transaction. Replayed: the same request made it before.
//
// Errors: AlreadyExists, RequestMismatch, Deleted (the receipt lives, or the
// tenant is being purged), and what Propose refuses.
func (j *Journal) Create(ctx context.Context, c Creation) (h *Handle, replayed bool, err error) {
	ref := execution.Ref{Tenant: c.Tenant, Execution: c.Execution}
	for round := 0; round < 3; round++ {
		clock, err := j.generation(ctx, &ref, &c)
		if err != nil {
			return nil, false, err
		}
		now := j.NowOf(clock)
		if c.Prepare != nil {
			if err := c.Prepare(&c, ref, now); err != nil {
				return nil, false, err
			}
		}
		p, err := execution.Propose(nil, ref, c.Change, execution.Environment{Now: now, Epoch: j.Epoch})
		if err != nil {
			return nil, false, err
		}
		h, err := j.create(ctx, ref, &c, p, clock)
		var old *existing
		switch {
		case err == nil:
			j.warm.put(ref.PK(), h)
			return h, false, nil
		case errors.As(err, &old):
			h, err := j.recognise(ctx, ref, old.head, c.Change.Request, now)
			return h, err == nil, err
		case store.KindOf(err) == store.TooLate, errors.Is(err, errTaken): // begin anew
			continue
		}
		return nil, false, err
	}
	return nil, false, unknown(ref, nil)
}

// existing carries the head that stood in the way.
type existing struct{ head store.Item }

func (*existing) Error() string { return "journal: the execution exists" }

// generation chooses the generation and the first version, from the store's
// clock and the newest receipt.
func (j *Journal) generation(ctx context.Context, ref *execution.Ref, c *Creation) (Clock, error) {
	before := j.Elapsed()
	page, meta, err := j.Table.Query(ctx, store.Query{PK: ref.PK(), Prefix: ReceiptPrefix, Descending: true, Consistent: true})
	if err != nil {
		return Clock{}, Fail(err, *ref)
	}
	clock, err := j.clock(meta, before)
	if err != nil {
		return Clock{}, err
	}
	ref.Generation, c.Change.FirstVersion = meta.Date.UnixMilli(), 1
	for _, r := range page.Items {
		if x := r.Int(HeadExpires); x > 0 && meta.Date.UnixMilli() >= x && r.Str(ReceiptState) == ReceiptDeleted {
			continue
		}
		gone := execution.Errorf(execution.Deleted, "this id was deleted").With("execution", string(ref.Execution)).With("generation", r.Int(HeadGeneration))
		again := c.Change.Request.Hash != (execution.RequestHash{}) && bytes.Equal(r.Bytes(HeadCreateRequest), c.Change.Request.Hash[:])
		switch {
		case r.Str(ReceiptState) != ReceiptDeleted:
			return Clock{}, gone.With("in_progress", true)
		case again, !c.Reuse:
			return Clock{}, gone
		default:
			// Nobody may write into a slot that a late writer of the old generation could
			// still aim at (architecture, idea 11): versions go on at last + 2.
			ref.Generation = max(r.Int(HeadGeneration)+1, ref.Generation)
			c.Change.FirstVersion = max(c.Change.FirstVersion, r.Int(ReceiptLast)+2)
		}
	}
	return clock, nil
}

// create is the transaction.
func (j *Journal) create(ctx context.Context, ref execution.Ref, c *Creation, p *execution.Proposal, clock Clock) (*Handle, error) {
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
	item := s.toItem(ref.PK())
	s.item = item.Size()
	in, err := j.creation(ref, c, p, item, clock)
	if err != nil {
		return nil, err
	}
	sent := false // an earlier try may have landed, or may still
	for try := 0; ; try++ {
		before := j.Elapsed()
		meta, err := j.Table.Transact(ctx, in)
		if err == nil {
			h := &Handle{State: p.State, Fresh: true, validated: clock.date, clock: clock}
			if !meta.Date.IsZero() {
				h.clock, h.validated = j.acknowledged(meta, before), meta.Date
			}
			h.count(s, ref)
			h.note(infoOf(&s.entry))
			return h, nil
		}
		var no *store.Cancelled
		if errors.As(err, &no) {
			if done := j.refused(ref, c, no, item); done != nil {
				return nil, done
			}
			// Our own earlier try had landed: the entry is ours byte for byte.
			h := &Handle{State: p.State, Fresh: true, validated: clock.date, clock: clock}
			h.count(s, ref)
			h.note(infoOf(&s.entry))
			return h, nil
		}
		if !store.Ambiguous(err) {
			switch {
			case store.KindOf(err) == store.TooLate: // begin anew; what landed is found by its request
				return nil, err
			case sent:
				return nil, unknown(ref, err)
			}
			return nil, Fail(err, ref)
		}
		sent = true
		// Lost or landed: the same transaction again under the same token; the
		// conditions recognise our own entry. A crash here leaves either nothing or a
		// whole execution, and at most an orphan object.
		if try == 3 || ctx.Err() != nil || j.Sleep(ctx, time.Duration(try+1)*10*time.Millisecond) != nil {
			return nil, unknown(ref, err)
		}
	}
}

// creation lays out the transaction: head, entry, registry, closing mark, then
// selectors, then the caller's parts.
func (j *Journal) creation(ref execution.Ref, c *Creation, p *execution.Proposal, item store.Item, clock Clock) (store.Transact, error) {
	token, err := j.token()
	if err != nil {
		return store.Transact{}, err
	}
	lease := p.Entry.At + p.State.LeaseSeconds*1000
	head := newHead(p.State, p.Entry, lease)
	labels := slices.Clone(c.LabelTokens)
	for _, t := range ownTokens(ref, c.Change.Created) {
		if !slices.Contains(labels, t) { // a carrying fork takes its parent's tokens along
			labels = append(labels, t)
		}
	}
	if len(labels) > 0 {
		head[HeadLabels] = store.SS(labels...)
	}
	if len(c.SubjectTokens) > 0 {
		head[HeadSubjects] = store.SS(c.SubjectTokens...)
	}
	for _, a := range RetainActions(ref.Execution, c.RetainAt) {
		if set, ok := a.(store.Set); ok {
			head[set.Attr] = set.Value
		}
	}
	row := RegistryKey(ref)
	in := store.Transact{Token: token, ValidatedAt: clock.date, Writes: []store.Write{
		{Put: &store.Put{Item: head, Cond: store.NotThere()}},
		{Put: &store.Put{Item: item, Cond: store.NotThere()}},
		{Put: &store.Put{Item: store.Item{store.AttrPK: store.S(row.PK), store.AttrSK: store.S(row.SK), HeadGeneration: store.N(ref.Generation)}}},
		{Check: &store.Check{Key: ClosingKey(ref.Tenant), Cond: store.NotThere()}},
	}}
	if p.State.Owner != "" && worthRinging(lease-p.Entry.At) {
		in.Writes = append(in.Writes, store.Write{Put: &store.Put{Item: TimerItem(ref, "lease", lease)}})
	}
	in.Writes = append(in.Writes, SelectorWrites(ref, labels)...)
	in.Writes = append(in.Writes, SelectorWrites(ref, c.SubjectTokens)...)
	in.Writes = append(in.Writes, c.With...)
	return in, nil
}

// SelectorWrites are the rows by which an execution is found under tokens.
func SelectorWrites(ref execution.Ref, tokens []string) []store.Write {
	out := make([]store.Write, 0, len(tokens))
	for _, t := range tokens {
		k := SelectorKey(ref, t)
		out = append(out, store.Write{Put: &store.Put{Item: store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadGeneration: store.N(ref.Generation)}}})
	}
	return out
}

// refused explains a cancelled creation; nil when what stood in the way is this
// very write.
func (j *Journal) refused(ref execution.Ref, c *Creation, no *store.Cancelled, item store.Item) error {
	if no.Reasons[1] == store.ReasonCondition && sameBody(no.Old[1], item) {
		return nil
	}
	if no.Reasons[0] == store.ReasonCondition && no.Old[0] != nil {
		return &existing{head: no.Old[0]}
	}
	if no.Reasons[3] == store.ReasonCondition {
		return execution.Errorf(execution.Deleted, "the tenant is being purged").With("execution", string(ref.Execution)).With("in_progress", true)
	}
	if first := len(no.Reasons) - len(c.With); c.Refused != nil {
		for i := range c.With {
			if no.Reasons[first+i] == store.ReasonCondition {
				if err := c.Refused(i, no.Old[first+i]); err != nil {
					return err
				}
			}
		}
	}
	return execution.Errorf(execution.AlreadyExists, "the id is in use").With("execution", string(ref.Execution))
}

// recognise answers a creation whose id exists: the same request is a replay.
func (j *Journal) recognise(ctx context.Context, ref execution.Ref, item store.Item, r execution.RequestID, now int64) (*Handle, error) {
	head, ok := ParseHead(item)
	if !ok {
		return nil, integrity(ref, 0, "the head is no head")
	}
	if head.Status == execution.StatusDeleting {
		return nil, deleting(head)
	}
	if err := j.Gone(ctx, head, now); err != nil {
		return nil, err
	}
	if r.Hash == (execution.RequestHash{}) || !bytes.Equal(item.Bytes(HeadCreateRequest), r.Hash[:]) {
		return nil, execution.Errorf(execution.AlreadyExists, "the id is in use").With("execution", string(ref.Execution)).With("status", string(head.Status))
	}
	if !bytes.Equal(item.Bytes(HeadCreateContent), r.Digest[:]) {
		return nil, execution.Errorf(execution.RequestMismatch, "this request_id was used with other content").With("execution", string(ref.Execution))
	}
	return j.Open(ctx, ref.Tenant, ref.Execution, OpenOptions{Head: true})
}
