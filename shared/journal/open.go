package journal

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// OpenOptions say what an Open must read.
type OpenOptions struct {
	// Head also reads the head (lease, holds, what is due).
	Head bool
	// Slots reads the slots of open operations too, in one request with the head,
	// after the tail: for views. A lease is judged by a head that was read before
	// the tail, so claims do not use it. It needs Head.
	Slots bool
	// Warm allows a handle without any read.
	Warm bool
	// AtLeast is a version that the caller has seen: a tip below it means that
	// the journal's tail was cut (Integrity). 0: none.
	AtLeast int64
}

// firstPage is the limit of a cold open's first query: a young journal and a
// usual chain fit; a longer chain says itself how long it is.
const firstPage = 32

// Open reads an execution's journal. Errors: NotFound; Deleted (with the
// receipt's facts) also while a deletion is under way; Integrity; SchemaTooNew;
// KeyUnavailable, Throttled, Unavailable. Never an empty state.
func (j *Journal) Open(ctx context.Context, t execution.TenantID, e execution.ExecutionID, o OpenOptions) (*Handle, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	if h := j.warm.get(ref.PK()); h != nil && o.Warm && !o.Head && j.usable(h) && h.State.Version >= o.AtLeast {
		return h, nil
	}
	h, err := j.open(ctx, ref, o)
	if err != nil {
		j.warm.drop(ref.PK())
		return nil, err
	}
	if h.State.Status == execution.StatusDeleting {
		j.warm.drop(ref.PK())
		return nil, execution.Errorf(execution.Deleted, "the execution is being deleted").With("execution", string(e)).With("in_progress", true)
	}
	if h.State.Version < o.AtLeast {
		return nil, integrity(ref, h.State.Version, "the journal ends before a version that was acknowledged")
	}
	j.warm.put(ref.PK(), h)
	return h, nil
}

func (j *Journal) open(ctx context.Context, ref execution.Ref, o OpenOptions) (*Handle, error) {
	if o.Head && o.Slots {
		if h, ok, err := j.openWithSlots(ctx, ref); ok || err != nil {
			return h, err
		}
	}
	// The head first: the tail read after it is at least as new.
	var head *Head
	if o.Head {
		var err error
		if head, _, err = j.ReadHead(ctx, ref.Tenant, ref.Execution); err != nil {
			return nil, err
		}
		if head == nil {
			return nil, j.gone(ctx, ref)
		}
	}
	for try := 0; ; try++ {
		h, err := j.tail(ctx, ref)
		if err == nil && (head == nil || head.Generation == h.State.Generation) {
			h.Head = head
			return h, nil
		}
		if err != nil && execution.CodeOf(err) != execution.Integrity {
			return nil, err
		}
		// A missing body or a gap: the journal may just be closing, or may have been
		// pruned under the reader. The head tells; only then it is Integrity.
		now, _, herr := j.ReadHead(ctx, ref.Tenant, ref.Execution)
		switch {
		case herr != nil:
			return nil, herr
		case now == nil:
			return nil, j.gone(ctx, ref)
		case now.Status == execution.StatusDeleting:
			return nil, deleting(now)
		case try == 0:
			j.warm.drop(ref.PK())
			if o.Head {
				head = now
			}
			continue
		case err == nil:
			return nil, integrity(ref, h.State.Version, "the head and the journal belong to different generations")
		}
		return nil, err
	}
}

// openWithSlots reads the tail, then head and slots together. ok false: what it
// read does not belong together; the head says why.
func (j *Journal) openWithSlots(ctx context.Context, ref execution.Ref) (h *Handle, ok bool, err error) {
	if h, err = j.tail(ctx, ref); err != nil {
		if execution.CodeOf(err) == execution.Integrity {
			return nil, false, nil
		}
		return nil, false, err
	}
	open := h.State.OpenOperations()
	keys := make([]store.Key, 1, 1+len(open))
	keys[0] = HeadKey(ref.PK())
	for _, op := range open {
		keys = append(keys, SlotKey(ref.PK(), op.ID, op.Attempt))
	}
	h.Slots = map[execution.OperationID]*Slot{}
	err = j.batch(ctx, h.State.Ref, keys, func(it store.Item) error {
		if it.Key().SK != SKHead {
			return j.takeSlot(ctx, h.State.Ref, it, h.Slots)
		}
		if h.Head, ok = ParseHead(it); !ok {
			return integrity(ref, 0, "the head is no head")
		}
		return nil
	})
	if err != nil || !ok || h.Head.Generation != h.State.Generation || h.Head.Status == execution.StatusDeleting {
		return nil, false, err
	}
	return h, true, j.bind(ctx, h.Head, j.Now(h))
}

func deleting(h *Head) error {
	return execution.Errorf(execution.Deleted, "the execution is being deleted").With("execution", string(h.Execution)).With("in_progress", true)
}

// tail reads the journal's end: what came after a handle in memory, or back to
// the newest snapshot.
func (j *Journal) tail(ctx context.Context, ref execution.Ref) (*Handle, error) {
	if h := j.warm.get(ref.PK()); h != nil {
		next, ok, err := j.catchUp(ctx, h)
		if err != nil || ok {
			return next, err
		}
	}
	return j.cold(ctx, ref, nil)
}

// catchUp reads from the tip of a handle on. Its tip must still stand there
// byte for byte; false otherwise (pruned, deleted, recreated), and where so much
// was written since that a newer snapshot is the shorter way.
func (j *Journal) catchUp(ctx context.Context, h *Handle) (*Handle, bool, error) {
	ref := h.State.Ref
	from := EntryKey(ref.PK(), h.State.Version).SK
	q := store.Query{PK: ref.PK(), From: from, To: EntryPrefix + "99999999999999999999", Consistent: true}
	before := j.Elapsed()
	page, meta, err := j.Table.Query(ctx, q)
	if err != nil {
		return nil, false, Fail(err, ref)
	}
	clock, err := j.clock(meta, before)
	if err != nil || page.Next != nil {
		return nil, false, err
	}
	var found []*stored
	for _, it := range page.Items {
		s, ok := fromItem(it)
		if !ok || s.entry.Generation != ref.Generation {
			return nil, false, nil
		}
		found = append(found, s)
	}
	if len(found) == 0 || found[0].entry.Version != h.State.Version || found[0].digest(ref) != h.tip {
		return nil, false, nil
	}
	next := *h
	next.Fresh, next.Head, next.clock, next.validated = true, nil, clock, clock.date
	if err := j.extend(ctx, &next, found[1:]); err != nil {
		return nil, false, err
	}
	return &next, true, nil
}

// extend folds stored entries onto a handle.
func (j *Journal) extend(ctx context.Context, h *Handle, found []*stored) error {
	if len(found) == 0 {
		return nil
	}
	ref := h.State.Ref
	entries, recent := make([]*execution.Entry, 0, len(found)), make([]EntryInfo, 0, len(found))
	for _, s := range found {
		if s.prev != h.tip {
			return integrity(ref, s.entry.Version, "an entry does not name the one before it")
		}
		if err := j.body(ctx, ref, s); err != nil {
			return err
		}
		entries, recent = append(entries, &s.entry), append(recent, infoOf(&s.entry))
		h.count(s, ref)
	}
	h.note(recent...)
	state, err := execution.Fold(h.State, entries...)
	if err != nil {
		return execution.AsError(err).With("execution", string(ref.Execution))
	}
	h.State = state
	return nil
}

// count keeps the book about snapshots and the chain of digests, not about what is
// recent (note).
func (h *Handle) count(s *stored, ref execution.Ref) {
	n := int64(s.item) + s.bytes
	h.tip = s.digest(ref)
	h.chain = s.chain
	if s.chain == 0 {
		h.snapBytes, h.chainBytes = n, 0
	} else {
		h.chainBytes += n
	}
}

// cold reads back to the newest snapshot at or below a version (nil: from the
// tip) and folds from there.
func (j *Journal) cold(ctx context.Context, ref execution.Ref, at *int64) (*Handle, error) {
	q := store.Query{PK: ref.PK(), From: EntryPrefix, To: EntryPrefix + "99999999999999999999", Descending: true, Consistent: true, Limit: firstPage}
	if at != nil {
		q.To = EntryKey(ref.PK(), *at).SK
	}
	var found []*stored
	var clock Clock
	for first := true; len(found) == 0 || found[len(found)-1].chain != 0; first = false {
		before := j.Elapsed()
		page, meta, err := j.Table.Query(ctx, q)
		if err != nil {
			return nil, Fail(err, ref)
		}
		if first {
			if clock, err = j.clock(meta, before); err != nil {
				return nil, err
			}
		}
		for _, it := range page.Items {
			if isStub(it) {
				// Closed or removed: the head tells (open).
				return nil, integrity(ref, 0, "the journal is closed")
			}
			s, ok := fromItem(it)
			if !ok {
				return nil, integrity(ref, 0, "an item is no entry: "+it.Key().SK)
			}
			if len(found) > 0 && s.entry.Version != found[len(found)-1].entry.Version-1 {
				return nil, integrity(ref, s.entry.Version, "the journal has a gap")
			}
			found = append(found, s)
			if s.chain == 0 {
				break
			}
		}
		if page.Next == nil {
			break
		}
		q.Start, q.Limit = page.Next, 0
		if len(found) > 0 {
			q.Limit = int(max(1, min(found[len(found)-1].chain, 10_000)))
		}
	}
	if len(found) == 0 {
		return nil, j.gone(ctx, ref)
	}
	if found[len(found)-1].chain != 0 {
		return nil, integrity(ref, found[len(found)-1].entry.Version, "the journal has no snapshot to begin with")
	}
	slices.Reverse(found)
	return j.foldFrom(ctx, ref, found, clock)
}

// foldFrom folds a chain that begins with a snapshot or the creation.
func (j *Journal) foldFrom(ctx context.Context, ref execution.Ref, found []*stored, clock Clock) (*Handle, error) {
	first := found[0]
	ref.Generation = first.entry.Generation
	if err := j.body(ctx, ref, first); err != nil {
		return nil, err
	}
	if snap := first.entry.Body.Snapshot; snap != nil && snap.Ref != ref {
		return nil, integrity(ref, first.entry.Version, "a snapshot belongs to another execution")
	}
	base, err := execution.Fold(&execution.State{Ref: ref}, &first.entry)
	if err != nil {
		return nil, execution.AsError(err).With("execution", string(ref.Execution))
	}
	h := &Handle{State: base, Fresh: true, clock: clock, validated: clock.date}
	h.count(first, ref)
	h.note(infoOf(&first.entry))
	if err := j.extend(ctx, h, found[1:]); err != nil {
		return nil, err
	}
	return h, nil
}

// ReadHead reads an execution's head consistently; nil when there is none. The
// second value is a reading of the store's clock.
func (j *Journal) ReadHead(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (*Head, Clock, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	before := j.Elapsed()
	it, meta, err := j.Table.Get(ctx, store.Get{Key: HeadKey(ref.PK()), Consistent: true})
	if err != nil {
		return nil, Clock{}, Fail(err, ref)
	}
	c, err := j.clock(meta, before)
	if err != nil || it == nil {
		return nil, c, err
	}
	h, ok := ParseHead(it)
	if !ok {
		return nil, c, integrity(ref, 0, "the head is no head")
	}
	return h, c, j.bind(ctx, h, j.NowOf(c))
}

// bind reads which holds keep an execution whose time is over.
func (j *Journal) bind(ctx context.Context, h *Head, now int64) (err error) {
	if h.Expired(now) {
		h.Bound, err = j.HoldsOn(ctx, h)
	}
	return err
}

// gone says why there is nothing: Deleted while a receipt lives, else NotFound.
func (j *Journal) gone(ctx context.Context, ref execution.Ref) error {
	r, err := j.LastReceipt(ctx, ref.Tenant, ref.Execution)
	if err != nil {
		return err
	}
	if r == nil {
		return NotFound(ref.Execution)
	}
	return deleted(ref.Execution, r.Int(HeadGeneration))
}

func deleted(e execution.ExecutionID, generation int64) error {
	return execution.Errorf(execution.Deleted, "the execution was deleted").With("execution", string(e)).With("generation", generation)
}

// LastReceipt is the newest receipt of an execution's deletions, nil if none
// lives. Receipts have a ttl; one that is past it counts as gone.
func (j *Journal) LastReceipt(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (store.Item, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	page, meta, err := j.Table.Query(ctx, store.Query{PK: ref.PK(), Prefix: ReceiptPrefix, Descending: true, Limit: 1, Consistent: true})
	if err != nil {
		return nil, Fail(err, ref)
	}
	if len(page.Items) == 0 {
		return nil, nil
	}
	it := page.Items[0]
	if x := it.Int(HeadExpires); x > 0 && !meta.Date.IsZero() && meta.Date.UnixMilli() >= x {
		return nil, nil
	}
	return it, nil
}

// NotFound is the answer for an id that does not exist, and for any id of
// another tenant: the same text, the same facts.
func NotFound(e execution.ExecutionID) error {
	return execution.Errorf(execution.NotFound, "no such execution").With("execution", string(e))
}
