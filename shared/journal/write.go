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

// Step is what one transition writes besides its entry.
type Step struct {
	Proposal *execution.Proposal
	// Head carries the new status to the head in the same transaction; nil: a
	// plain conditional put of the entry.
	Head *HeadChange
	// With are more parts of the transaction, on other items; they need Head.
	With []store.Write
	// Before is done after every rule has passed and before the entry is written;
	// it must be safe to repeat. Slots of outcomes are written here (M).
	Before func(ctx context.Context) error
	// Refused looks at a transaction in which another part than the entry was
	// refused (0 is the entry, 1 the head, then the timer if any, then With); nil
	// or a nil answer: the head is read and the step computed anew.
	Refused func(c *store.Cancelled) error
}

// HeadChange carries the fold's standing to the head.
type HeadChange struct {
	// Due is what happens next; the zero Due: nothing.
	Due Due
	// LeaseExpires is the end of the owner's lease, in milliseconds.
	LeaseExpires int64
	// Conditions hold besides generation, status and fence as the fold had them.
	Conditions []store.Cond
	// Actions are made besides status, owner, fence, lease and due.
	Actions []store.Action
	// Timer is the kind of timer that rings at Due; "": none.
	Timer string
}

// RetainAt sets when retention looks at the execution next, in milliseconds (0:
// never), unless a deletion that waits for holds has set it: h is the head as read,
// nil when it was not.
func (hc *HeadChange) RetainAt(e execution.ExecutionID, h *Head, at int64) {
	hc.Conditions = append(hc.Conditions, AskedAsRead(h))
	if !h.Asked() {
		hc.Actions = append(hc.Actions, RetainActions(e, at)...)
	}
}

// WriteOptions say how a transition begins.
type WriteOptions struct {
	// Head: the step needs the head (leases, holds). Without it a step has it all the
	// same once the head was not as its conditions want it.
	Head bool
	// AtLeast as in OpenOptions.
	AtLeast int64
}

// Written is what a transition did.
type Written struct {
	// Handle is the journal after it; after a replay, as it was found.
	Handle   *Handle
	Proposal *execution.Proposal
	// Replay: the request had been done before, at that version.
	Replay *execution.RequestMemory
	// Unsent: the first writing of a replayed request was this very process's own
	// put, whose answer never went out, under the current fence.
	Unsent bool
}

// maxRounds bounds how often a system transition is computed anew because
// somebody else was faster. A caller's request has its expected version and
// ends in the second round.
const maxRounds = 10

// Write adds one entry. propose computes it from the journal as read; it is
// called again whenever the journal turns out to be newer, and every refusal is
// computed on a fresh read before it is returned, so it must not keep anything.
//
// The outcome of the write is certain when Write returns without error or with
// any code but Unavailable. Unavailable means: it may have been written or may
// still be (until store.Window after its validation); the same request repeated
// finds out.
func (j *Journal) Write(ctx context.Context, t execution.TenantID, e execution.ExecutionID, o WriteOptions, propose func(ctx context.Context, h *Handle) (*Step, error)) (*Written, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	warm, withHead := true, o.Head
	for round := 0; round < maxRounds; round++ {
		h, err := j.Open(ctx, t, e, OpenOptions{Head: withHead, Warm: warm, AtLeast: 0})
		if err != nil {
			return nil, err
		}
		if h.State.Version < o.AtLeast && h.Fresh {
			return nil, integrity(ref, h.State.Version, "the journal ends before a version that was acknowledged").At(h.State)
		}
		step, err := propose(ctx, h)
		if err != nil {
			if !h.Fresh { // decide on what stands in the store, never on memory
				warm = false
				continue
			}
			if errors.Is(err, errTaken) { // what it staged was validated too long ago
				if err := j.again(ctx, ref, err, round); err != nil {
					return nil, err
				}
				continue
			}
			return nil, j.conflict(err, h)
		}
		p := step.Proposal
		if p.Replay != nil {
			if !h.Fresh { // where the execution stands now, only the store knows
				warm = false
				continue
			}
			unsent, err := j.answerUnsent(ctx, h, p.Replay)
			if err != nil {
				return nil, err
			}
			return &Written{Handle: h, Proposal: p, Replay: p.Replay, Unsent: unsent}, nil
		}
		next, err := j.commit(ctx, h, step)
		switch {
		case err == nil:
			j.warm.put(ref.PK(), next)
			if r := p.Entry.Request; r != (execution.RequestHash{}) {
				j.unsent.take(ref.PK(), r, p.Entry.Fence) // answered now
			}
			return &Written{Handle: next, Proposal: p}, nil
		case errors.Is(err, errTaken), errors.Is(err, errHead):
			// Somebody's entry stands at n+1, or the head moved: reload. Nothing of this
			// round was written but objects and slots, which a repeat finds again.
			warm, withHead = false, withHead || errors.Is(err, errHead)
			if err := j.again(ctx, ref, err, round); err != nil {
				return nil, err
			}
			continue
		}
		j.warm.drop(ref.PK())
		return nil, err
	}
	return nil, execution.Errorf(execution.Unavailable, "the execution is changed by many at once: repeat the same request").With("execution", string(e))
}

// answerUnsent reports whether the entry of a replayed request is this process's
// own write whose answer never went out, and counts it as answered.
func (j *Journal) answerUnsent(ctx context.Context, h *Handle, r *execution.RequestMemory) (bool, error) {
	ref := h.State.Ref
	sent := j.unsent.take(ref.PK(), r.Hash, h.State.Fence)
	if r.Hash == (execution.RequestHash{}) || len(sent) == 0 {
		return false, nil
	}
	it, err := j.readBack(ctx, EntryKey(ref.PK(), r.Version))
	if err != nil {
		return false, Fail(err, ref)
	}
	s, ok := fromItem(it)
	return ok && slices.Contains(sent, s.digest(ref)), nil
}

// conflict adds to a VersionConflict what happened since the expected version,
// as far as the fold remembers.
func (j *Journal) conflict(err error, h *Handle) error {
	e := execution.AsError(err)
	if e.Code != execution.VersionConflict {
		return e
	}
	expected, _ := e.Facts["expected_version"].(int64)
	changes := make([]map[string]any, 0, len(h.Recent))
	for _, r := range h.Recent {
		if r.Version <= expected {
			continue
		}
		c := map[string]any{"version": r.Version, "kind": string(r.Kind)}
		if r.Actor != nil {
			c["actor"] = map[string]any{"kind": r.Actor.Kind, "id": r.Actor.ID}
		}
		changes = append(changes, c)
	}
	e = e.With("changes", changes)
	if expected > 0 && int64(len(changes)) < h.State.Version-expected {
		e = e.With("truncated", true)
	}
	return e
}

// errTaken: n+1 is another's. errHead: the head is not as the fold had it.
var (
	errTaken = errors.New("journal: the next version is taken")
	errHead  = errors.New("journal: the head is not as the fold has it")
)

// again prepares another round: it says at once when no round can help, and
// lets others finish.
func (j *Journal) again(ctx context.Context, ref execution.Ref, why error, round int) error {
	if errors.Is(why, errHead) {
		head, _, err := j.ReadHead(ctx, ref.Tenant, ref.Execution)
		switch {
		case err != nil:
			return err
		case head == nil:
			return j.gone(ctx, ref)
		case head.Status == execution.StatusDeleting:
			return deleting(head)
		case !head.Status.Known():
			return execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").With("execution", string(ref.Execution)).With("status", head.RawStatus)
		case round == maxRounds/2:
			if err := j.agree(ctx, ref, head); err != nil {
				return err
			}
		}
	}
	if round == 0 {
		return nil
	}
	if err := j.Sleep(ctx, time.Duration(min(round, 5))*2*time.Millisecond); err != nil {
		return Fail(err, ref)
	}
	return nil
}

// agree tells a head that others keep changing from one that does not belong to
// its journal: between two equal readings of the head the journal must say the
// same.
func (j *Journal) agree(ctx context.Context, ref execution.Ref, head *Head) error {
	h, err := j.Open(ctx, ref.Tenant, ref.Execution, OpenOptions{})
	if err != nil {
		return err
	}
	now, _, err := j.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil || now == nil || now.Status != head.Status || now.Fence != head.Fence || now.Generation != head.Generation {
		return err // the next round sees
	}
	if s := h.State; s.Status != now.Status || s.Fence != now.Fence || s.Generation != now.Generation {
		return integrity(ref, s.Version, "the head and the journal do not agree")
	}
	return nil
}

// commit writes the entry of a step whose rules have all passed on h.
func (j *Journal) commit(ctx context.Context, h *Handle, step *Step) (*Handle, error) {
	ref := h.State.Ref
	if err := j.riding(ctx, h, step); err != nil {
		return nil, err
	}
	s, sealed, err := j.seal(ctx, h, step.Proposal.Entry)
	if err != nil {
		return nil, err
	}
	if step.Before != nil {
		if err := step.Before(ctx); err != nil {
			return nil, err
		}
	}
	if s.object != nil {
		if err := j.putBody(ctx, h, s, sealed); err != nil {
			return nil, err
		}
	}
	item := s.toItem(ref.PK())
	s.item = item.Size()
	put := &store.Put{Item: item, Cond: store.NotThere(), ValidatedAt: h.validated}
	clock, err := j.writeEntry(ctx, h, put, step, s.digest(ref))
	if err != nil {
		return nil, err
	}
	next := *h
	next.State, next.Head, next.Fresh = step.Proposal.State, nil, true
	next.validated = h.validated
	if !clock.date.IsZero() {
		next.clock, next.validated = clock, clock.date
	}
	next.count(s, ref)
	next.note(infoOf(&s.entry))
	return &next, nil
}

// writeEntry is the commit point: one conditional put, or one transaction with
// the head. It returns a reading of the store's clock at the acknowledgement
// (zero when only a read-back told).
func (j *Journal) writeEntry(ctx context.Context, h *Handle, put *store.Put, step *Step, digest [32]byte) (Clock, error) {
	ref := h.State.Ref
	e := step.Proposal.Entry
	write, err := j.writer(h, put, step)
	if err != nil {
		return Clock{}, err
	}
	sent := false // an earlier try may have landed, or may still
	for try := 0; ; try++ {
		before := j.Elapsed()
		meta, err := write(ctx)
		if err == nil {
			// A missing Date only costs the next caller a read.
			return j.acknowledged(meta, before), nil
		}
		// Lost: nothing is there, the loop or the caller writes it again.
		// Landed, reply lost: the condition fails on our own entry, recognised by its
		// sealed bytes (random salt: nobody else can have written them).
		// A crash right after: the entry stands; the next owner folds it.
		if mine, there := ownWrite(err, put.Item); there {
			if mine {
				return Clock{}, nil
			}
			return Clock{}, errTaken
		}
		var cancelled *store.Cancelled
		switch {
		case errors.As(err, &cancelled):
			if step.Refused != nil {
				if err := step.Refused(cancelled); err != nil {
					return Clock{}, err
				}
			}
			return Clock{}, errHead
		case store.KindOf(err) == store.TooLate:
			// The validation is too old; an earlier try may still have landed. A reload
			// tells, by the request or by the tip.
			return Clock{}, errTaken
		case !store.Ambiguous(err) && sent:
			return Clock{}, unknown(ref, err)
		case !store.Ambiguous(err):
			return Clock{}, Fail(err, ref)
		}
		if !sent && e.Request != (execution.RequestHash{}) {
			j.unsent.add(unsentKey{ref.PK(), e.Request, e.Fence, digest})
		}
		sent = true
		got, readErr := j.readBack(ctx, put.Item.Key())
		switch {
		case readErr == nil && got != nil && sameBody(got, put.Item):
			return Clock{}, nil
		case readErr == nil && got != nil:
			return Clock{}, errTaken
		}
		// Absent does not mean that it did not land: put again, the same bytes under
		// the same pin, as long as there is time.
		if try == 3 || ctx.Err() != nil || j.Sleep(ctx, time.Duration(try+1)*10*time.Millisecond) != nil {
			return Clock{}, unknown(ref, err)
		}
	}
}

// writer is the write of a step: a put, or a transaction whose token stays the
// same over all tries of this one attempt.
func (j *Journal) writer(h *Handle, put *store.Put, step *Step) (func(context.Context) (store.Meta, error), error) {
	if step.Head == nil {
		return func(ctx context.Context) (store.Meta, error) { return j.Table.Put(ctx, *put) }, nil
	}
	token, err := j.token()
	if err != nil {
		return nil, err
	}
	s, hc := step.Proposal.State, step.Head
	cond := append(store.All{HeadIs(h.State)}, hc.Conditions...)
	acts := append(statusActions(s, hc.LeaseExpires, hc.Due), hc.Actions...)
	in := store.Transact{Token: token, ValidatedAt: h.validated, Writes: []store.Write{
		{Put: put},
		{Update: &store.Update{Key: HeadKey(s.PK()), Cond: cond, Actions: acts}},
	}}
	if hc.Timer != "" && worthRinging(hc.Due.At-step.Proposal.Entry.At) {
		in.Writes = append(in.Writes, store.Write{Put: &store.Put{Item: TimerItem(s.Ref, hc.Timer, hc.Due.At)}})
	}
	in.Writes = append(in.Writes, step.With...)
	return func(ctx context.Context) (store.Meta, error) { return j.Table.Transact(ctx, in) }, nil
}

// HeadIs is the condition that the head stands as a fold has it: generation,
// status and fence.
func HeadIs(s *execution.State) store.Cond {
	c := store.All{store.Eq(HeadGeneration, store.N(s.Generation)), store.Eq(HeadStatus, store.S(string(s.Status)))}
	if s.Fence > 0 {
		return append(c, store.Eq(HeadFence, store.N(s.Fence)))
	}
	return append(c, store.Absent{Attr: HeadFence})
}

// ownWrite looks at the item that a failed condition returned: there says that
// the entry's slot is taken, mine that it holds this very write.
func ownWrite(err error, item store.Item) (mine, there bool) {
	var cf *store.ConditionFailed
	if errors.As(err, &cf) {
		return sameBody(cf.Old, item), true
	}
	var c *store.Cancelled
	if errors.As(err, &c) && len(c.Reasons) > 0 && c.Reasons[0] == store.ReasonCondition {
		return len(c.Old) > 0 && sameBody(c.Old[0], item), true
	}
	return false, false
}

// sameBody reports whether two entry items are the same write: sealed bytes
// carry a random salt.
func sameBody(a, b store.Item) bool {
	if a == nil || a.Int(attrGeneration) != b.Int(attrGeneration) {
		return false
	}
	if o := b.Bytes(attrObject); o != nil {
		return bytes.Equal(a.Bytes(attrObject), o)
	}
	return bytes.Equal(a.Bytes(attrBody), b.Bytes(attrBody))
}

func (j *Journal) readBack(ctx context.Context, k store.Key) (store.Item, error) {
	it, _, err := j.Table.Get(ctx, store.Get{Key: k, Consistent: true})
	return it, err
}
