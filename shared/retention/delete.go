package retention

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// finish carries a closed deletion to its end and gives the receipt as it then
// stands. It may be called by anybody, at any point, any number of times; NotFound
// when others ended it and not even the receipt is left.
func (s *Service) finish(ctx context.Context, ref execution.Ref, receipt store.Item) (store.Item, error) {
	if receipt.Str(journal.ReceiptState) == journal.ReceiptDeleted {
		return receipt, nil
	}
	last := receipt.Int(journal.ReceiptLast)
	if err := s.tellParent(ctx, ref, receipt); err != nil {
		return nil, err
	}
	if !receipt.Has(receiptCounts) {
		if err := s.keepCensus(ctx, ref, receipt); err != nil {
			return nil, err
		}
	}
	if err := s.content(ctx, ref, last, false); err != nil {
		return nil, err
	}
	receipt, err := s.root(ctx, ref)
	if err != nil {
		return nil, err
	}
	return receipt, s.keepReceipt(ctx, ref, receipt)
}

// keepCensus writes what will be removed onto the receipt, once: the first
// census saw everything.
func (s *Service) keepCensus(ctx context.Context, ref execution.Ref, receipt store.Item) error {
	counts, digest, err := s.census(ctx, ref)
	if err != nil {
		return err
	}
	numbers := map[string]store.Value{}
	for name, n := range counts {
		numbers[name] = store.N(n)
	}
	digests := map[string]store.Value{"content": store.S(digest)}
	for name, v := range receipt[receiptDigests].M {
		digests[name] = v
	}
	_, err = s.update(ctx, ref, store.Update{Key: receipt.Key(), Cond: store.All{store.Eq(journal.ReceiptState, store.S(receiptDeleting)), store.Absent{Attr: receiptCounts}},
		Actions: []store.Action{store.Set{Attr: receiptCounts, Value: store.Value{Kind: store.KindM, M: numbers}}, store.Set{Attr: receiptDigests, Value: store.Value{Kind: store.KindM, M: digests}}}})
	return err
}

// root is the last transaction of a deletion: the head goes and the receipt says
// deleted. From then on the id may be used again.
//
// Lost: the head still says deleting, anybody repeats. Landed, reply lost: the
// receipt says deleted. A crash right after: the final sweep does the rest.
func (s *Service) root(ctx context.Context, ref execution.Ref) (store.Item, error) {
	for try := 0; try < retries; try++ {
		head, clock, err := s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
		if err != nil {
			return nil, err
		}
		receipt, err := s.receipt(ctx, ref)
		if err != nil {
			return nil, err
		}
		if receipt == nil {
			return nil, s.finished(ctx, ref)
		}
		if receipt.Str(journal.ReceiptState) == journal.ReceiptDeleted {
			return receipt, nil
		}
		now := s.Journal.NowOf(clock)
		expires := now + receipt.Int(receiptDays)*day
		acts := []store.Action{store.Set{Attr: journal.ReceiptState, Value: store.S(journal.ReceiptDeleted)}, store.Set{Attr: receiptGoneAt, Value: store.N(now)},
			store.Set{Attr: receiptBackups, Value: store.N(now + s.backupDays()*day)}, store.Set{Attr: journal.HeadExpires, Value: store.N(expires)}}
		acts = append(acts, journal.RetainActions(ref.Execution, now+execution.StubSafety.Milliseconds())...)
		in := store.Transact{ValidatedAt: clock.Date(), Writes: []store.Write{
			{Update: &store.Update{Key: journal.ReceiptKey(ref.PK(), ref.Generation), Cond: store.Eq(journal.ReceiptState, store.S(receiptDeleting)), Actions: acts}}}}
		if head != nil && head.Generation == ref.Generation {
			in.Writes = append(in.Writes, store.Write{Delete: &store.Delete{Key: journal.HeadKey(ref.PK()),
				Cond: store.All{store.Eq(journal.HeadGeneration, store.N(ref.Generation)), store.Eq(journal.HeadStatus, store.S(string(execution.StatusDeleting)))}}})
		}
		if err := s.transact(ctx, ref, in); err != nil && !refused(err) {
			return nil, err
		}
	}
	return nil, busy(ref)
}

// finished tells why a deletion under way has no receipt: others ended it long
// ago, and the receipt's own time was over or the tenant was purged (NotFound).
// The receipt goes after the head, so a head that is still there is damage.
func (s *Service) finished(ctx context.Context, ref execution.Ref) error {
	head, _, err := s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil {
		return err
	}
	if head == nil || head.Generation != ref.Generation {
		return journal.NotFound(ref.Execution)
	}
	return execution.Errorf(execution.Integrity, "a closed execution has no receipt").With("execution", string(ref.Execution))
}

func (s *Service) backupDays() int64 {
	if s.BackupDays == 0 {
		return 35
	}
	return s.BackupDays
}

// sweepReceipt does what is due on a receipt: goes on with a deletion that
// nobody finished, takes the stubs and whatever late writers left an hour after
// it, and in the end the receipt itself. It reports whether anything went.
func (s *Service) sweepReceipt(ctx context.Context, ref execution.Ref, now int64) (bool, error) {
	receipt, err := s.receipt(ctx, ref)
	if err != nil || receipt == nil || receipt.Int(journal.HeadRetainDue) > now {
		return false, err
	}
	if receipt.Str(journal.ReceiptState) != journal.ReceiptDeleted {
		_, err := s.finish(ctx, ref, receipt)
		if execution.CodeOf(err) == execution.NotFound {
			err = nil
		}
		return true, err
	}
	if err := s.content(ctx, ref, receipt.Int(journal.ReceiptLast), true); err != nil {
		return false, err
	}
	if err := s.keepReceipt(ctx, ref, receipt); err != nil {
		return false, err
	}
	deleted := store.Eq(journal.ReceiptState, store.S(journal.ReceiptDeleted))
	expires := receipt.Int(journal.HeadExpires)
	if now < expires {
		_, err := s.update(ctx, ref, store.Update{Key: receipt.Key(), Cond: deleted, Actions: append([]store.Action{store.Set{Attr: receiptSwept, Value: store.N(now)}}, journal.RetainActions(ref.Execution, expires)...)})
		return true, err
	}
	// The registry's row goes with the receipt and not before: by the row a purge
	// finds what is left of an execution, and that is the receipt.
	//
	// Lost, or a crash before: both stay, the next sweep repeats. Landed, reply lost:
	// the repeat's condition fails, and that is the end.
	err = s.transact(ctx, ref, store.Transact{Writes: []store.Write{
		{Delete: &store.Delete{Key: receipt.Key(), Cond: deleted}},
		{Delete: &store.Delete{Key: journal.RegistryKey(ref)}},
	}})
	if refused(err) {
		return true, nil
	}
	return true, err
}

// Delete removes one execution, or everything of a thread, subject or label with
// its forks and children. Errors for one execution: NotFound, Held {holds}
// unless when_released. A repeat of a finished one answers its receipt.
func (s *Service) Delete(ctx context.Context, r *api.DeleteRequest) (*api.DeleteReply, error) {
	if err := selected(r.Selector, len(r.Label) > 0); err != nil {
		return nil, err
	}
	if len(r.Label) > 1 {
		return nil, execution.Invalid("label", "must name exactly one label")
	}
	want := why{reason: r.Reason, actor: r.Actor, request: r.RequestID, hash: r.Hash}
	if r.Execution != "" {
		return s.deleteOne(ctx, r, want)
	}
	if r.Generation != 0 {
		return nil, execution.Invalid("generation", "belongs to one execution")
	}
	return s.deleteMany(ctx, r, want)
}

func newDeleteReply() *api.DeleteReply {
	return &api.DeleteReply{Counts: map[string]int64{}, Deferred: []api.Deferred{}}
}

func (s *Service) deleteOne(ctx context.Context, r *api.DeleteRequest, want why) (*api.DeleteReply, error) {
	out := newDeleteReply()
	out.Execution = r.Execution
	h, _, err := s.Journal.ReadHead(ctx, r.Tenant, r.Execution)
	if err != nil {
		return nil, err
	}
	other := h != nil && r.Generation != 0 && h.Generation != r.Generation
	if h == nil || other {
		it, err := s.Journal.LastReceipt(ctx, r.Tenant, r.Execution)
		if other && err == nil {
			it, err = s.receipt(ctx, execution.Ref{Tenant: r.Tenant, Execution: r.Execution, Generation: r.Generation})
		}
		if err != nil {
			return nil, err
		}
		if it == nil {
			return nil, journal.NotFound(r.Execution)
		}
		out.Replayed = true
		return s.deleted(out, it), nil
	}
	it, err := s.deleteHead(ctx, h, want)
	if execution.CodeOf(err) == execution.Held && r.WhenReleased {
		holds, err := s.remember(ctx, h, want)
		if err != nil {
			return nil, err
		}
		out.Deferred = append(out.Deferred, api.Deferred{Execution: h.Execution, Holds: holds})
		out.Standing = standing(h)
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	return s.deleted(out, it), nil
}

func (s *Service) deleted(out *api.DeleteReply, it store.Item) *api.DeleteReply {
	out.Receipt = receiptOf(it)
	out.Done = out.Receipt.State == journal.ReceiptDeleted
	for name, n := range out.Receipt.Counts {
		out.Counts[name] += n
	}
	return out
}

// deleteHead closes one execution and removes it.
func (s *Service) deleteHead(ctx context.Context, h *journal.Head, want why) (store.Item, error) {
	want.parent = s.childhood(ctx, h)
	receipt, err := s.close(ctx, h.Ref, want)
	if err != nil {
		return nil, err
	}
	if receipt == nil {
		return nil, journal.NotFound(h.Execution)
	}
	return s.finish(ctx, h.Ref, receipt)
}

// remember notes on a held execution that it is to be deleted when its holds
// are released.
func (s *Service) remember(ctx context.Context, h *journal.Head, want why) (holds []string, err error) {
	acts := []store.Action{store.Set{Attr: journal.HeadAsked, Value: store.S(want.reason)}}
	if want.actor != nil {
		acts = append(acts, store.Set{Attr: headAskedBy, Value: store.S(encodeActor(want.actor))})
	}
	_, clock, err := s.Journal.ReadHead(ctx, h.Tenant, h.Execution)
	if err != nil {
		return nil, err
	}
	// Lost: the caller asks again. Landed, reply lost: the same words again. Between
	// the refusal and this the holds may have gone: a sweep finds it due then.
	now := s.Journal.NowOf(clock)
	acts = append(acts, journal.RetainActions(h.Execution, now+heldPoll)...)
	changed, err := s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: live(h), Actions: acts, ValidatedAt: clock.Date()})
	if err != nil {
		return nil, err
	}
	if !changed {
		return nil, closing(h)
	}
	if holds, err = s.Journal.HoldsOn(ctx, h); err != nil || len(holds) > 0 {
		return holds, err
	}
	_, err = s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: live(h), Actions: journal.RetainActions(h.Execution, now)})
	return []string{}, err
}

// deleteMany removes a page of a thread's, subject's or label's executions,
// each with its forks and children first. A crash anywhere leaves the rest of
// the page in place for the same cursor.
func (s *Service) deleteMany(ctx context.Context, r *api.DeleteRequest, want why) (*api.DeleteReply, error) {
	w := &walk{s: s, tenant: r.Tenant, sel: r.Selector, label: r.Label}
	kind := api.Listing("delete", r.Tenant, r.Selector, r.Label)
	if r.Cursor != "" {
		p, err := api.ParseCursor("cursor", kind, r.Cursor, 1)
		if err != nil {
			return nil, err
		}
		w.after = p[0]
	}
	out := newDeleteReply()
	heads, more, err := w.next(ctx, api.ListLimit(r.Limit))
	if err != nil {
		return nil, err
	}
	many := &deletion{s: s, r: r, want: want, out: out, token: w.token, seen: map[execution.Ref]bool{}}
	for _, h := range heads {
		if err := many.family(ctx, h); err != nil {
			return nil, err
		}
	}
	out.Done = !more
	if more {
		out.Cursor = api.Cursor(kind, w.after)
	}
	return out, nil
}

// deletion is one call over several executions.
type deletion struct {
	s     *Service
	r     *api.DeleteRequest
	want  why
	out   *api.DeleteReply
	token string // what the request names is found by it
	seen  map[execution.Ref]bool
}

// family removes an execution after its forks and children, theirs first. The
// rows that lead to them stay until they are gone, so a repeat finds the rest.
func (d *deletion) family(ctx context.Context, h *journal.Head) error {
	if d.seen[h.Ref] {
		return nil
	}
	d.seen[h.Ref] = true
	w := &walk{s: d.s, tenant: h.Tenant, token: journal.DescendantsToken(h.Ref)}
	for {
		heads, more, err := w.next(ctx, 100)
		if err != nil {
			return err
		}
		for _, child := range heads {
			if err := d.family(ctx, child); err != nil {
				return err
			}
		}
		if !more {
			return d.one(ctx, h)
		}
	}
}

func (d *deletion) one(ctx context.Context, h *journal.Head) error {
	it, err := d.s.deleteHead(ctx, h, d.want)
	switch execution.CodeOf(err) {
	case "":
		r := receiptOf(it)
		d.out.Receipts = append(d.out.Receipts, *r)
		d.out.Counts["executions"]++
		for name, n := range r.Counts {
			d.out.Counts[name] += n
		}
		return nil
	case execution.NotFound: // an index that lagged, or somebody else was faster
		return nil
	case execution.Held:
		holds, _ := execution.AsError(err).Facts["holds"].([]string)
		if d.r.WhenReleased {
			if holds, err = d.s.remember(ctx, h, d.want); err != nil && execution.CodeOf(err) != execution.Deleted {
				return err
			}
		} else if err := d.lead(ctx, h); err != nil {
			return err
		}
		d.out.Deferred = append(d.out.Deferred, api.Deferred{Execution: h.Execution, Holds: holds})
		return nil
	}
	return err
}

// lead has a held descendant found by what the request names: the parent, by which
// it was found, goes now, and the same request must reach it once it is released.
//
// Lost: the call ends before the parent goes. Landed, reply lost: the same again. A
// crash right after: one more row leads to it.
func (d *deletion) lead(ctx context.Context, h *journal.Head) error {
	if h.Marked(d.token) {
		return nil
	}
	err := d.s.transact(ctx, h.Ref, store.Transact{Writes: append(journal.SelectorWrites(h.Ref, []string{d.token}),
		store.Write{Update: &store.Update{Key: journal.HeadKey(h.PK()), Cond: live(h), Actions: []store.Action{store.AddToSet{Attr: journal.HeadLabels, Values: []string{d.token}}}}})})
	if refused(err) { // somebody else deletes it
		return nil
	}
	return err
}
