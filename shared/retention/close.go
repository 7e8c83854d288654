package retention

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// why is who wants a deletion and for what reason.
type why struct {
	reason, rule string
	actor        *api.Actor
	request      string
	hash         execution.RequestHash
	parent       string // see childhood
	// still must hold for the head, besides generation and holds: the expiry as it
	// was judged.
	still store.Cond
}

// unheld is Held naming the holds that are in force, nil when there are none.
func (s *Service) unheld(ctx context.Context, h *journal.Head) error {
	holds, err := s.Journal.HoldsOn(ctx, h)
	if err != nil || len(holds) == 0 {
		return err
	}
	return execution.Errorf(execution.Held, "holds are in force").With("execution", string(h.Execution)).With("holds", holds).With("status", string(h.Status))
}

// errMoved: the head is no longer as it was judged; judge again.
var errMoved = errors.New("retention: the head has changed")

// close is the choke point of every deletion: one transaction that closes the
// journal after its tip, provided that no hold is in force and the generation is
// the one that was meant. It returns the receipt's item. Errors: Held; errMoved
// when want.still no longer holds; what the store answers.
//
// The tip is read before the head, so the head's subjects are at least as new;
// whoever adds a subject, status or anything else after that does it by an entry
// in the slot that the closing entry takes.
//
// Lost: nothing happened. Landed, reply lost: the receipt is found and the
// deletion goes on. A crash right after: the receipt is in the retain index, a
// sweep goes on; readers and writers get Deleted.
func (s *Service) close(ctx context.Context, ref execution.Ref, want why) (store.Item, error) {
	for try := 0; try < closeTries; try++ {
		tip, clock, err := s.Journal.ReadTip(ctx, ref)
		if err != nil {
			return nil, err
		}
		h, _, err := s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
		if err != nil {
			return nil, err
		}
		if h == nil || h.Generation != ref.Generation || h.Status == execution.StatusDeleting {
			return s.receipt(ctx, ref)
		}
		if err := s.unheld(ctx, h); err != nil {
			return nil, err
		}
		if tip.Generation != ref.Generation {
			// A journal without entries of its own: damaged, but it can be deleted.
			tip = journal.EntryFacts{Version: max(tip.Version, h.FirstVersion-1), Generation: ref.Generation}
		}
		now := s.Journal.NowOf(clock)
		days, err := s.receiptDays(ctx, h)
		if err != nil {
			return nil, err
		}
		receipt := newReceipt(h, tip, now, days, want)
		err = s.transact(ctx, ref, store.Transact{ValidatedAt: clock.Date(), Writes: append([]store.Write{
			{Update: &store.Update{Key: journal.HeadKey(ref.PK()), Cond: closable(h, want), Actions: closedHead}},
			{Put: &store.Put{Item: journal.ClosingEntry(ref, tip, now), Cond: store.NotThere()}},
			{Put: &store.Put{Item: receipt, Cond: store.NotThere()}},
		}, journal.HoldChecks(h)...)})
		if err == nil {
			s.Journal.Forget(ref.Tenant, ref.Execution)
			return receipt, nil
		}
		if !refused(err) {
			return nil, err
		}
		if want.still != nil {
			// Somebody wrote since the judgement: it must be made again.
			if now, _, err := s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution); err != nil || now != nil && now.Status != execution.StatusDeleting && (now.Status != h.Status || now.ExpiresAt != h.ExpiresAt) {
				return nil, errors.Join(errMoved, err)
			}
		}
		if err := s.pause(ctx, min(try, 2), ref); err != nil {
			return nil, err
		}
	}
	return nil, busy(ref)
}

// closeTries bounds how often a closing meets a worker that writes one entry
// after the other.
const closeTries = 40

// closable is the condition on the head of a closing transaction.
func closable(h *journal.Head, want why) store.Cond {
	c := store.All{live(h), store.Absent{Attr: journal.HeadHolds}, journal.SubjectsAsRead(h)}
	if want.still != nil {
		c = append(c, want.still)
	}
	return c
}

// closedHead makes a head deleting: nobody owns it, nothing is due, no listing
// shows it. What the deletion still needs stays: thread, subjects and labels.
var closedHead = []store.Action{
	store.Set{Attr: journal.HeadStatus, Value: store.S(string(execution.StatusDeleting))},
	store.Remove{Attr: journal.HeadOwner}, store.Remove{Attr: journal.HeadLeaseExpires}, store.Remove{Attr: journal.HeadLeaseSeconds},
	store.Remove{Attr: journal.HeadDue}, store.Remove{Attr: journal.HeadDueKind}, store.Remove{Attr: journal.HeadDueShard},
	store.Remove{Attr: journal.HeadRetainDue}, store.Remove{Attr: journal.HeadRetainShard},
	store.Remove{Attr: "xs"}, store.Remove{Attr: "xu"}, store.Remove{Attr: "xw"},
}

func (s *Service) receiptDays(ctx context.Context, h *journal.Head) (int64, error) {
	if h.Policy == "" {
		return execution.DefaultReceiptDays, nil
	}
	p, err := s.Catalog.Policy(ctx, h.Tenant, h.Policy)
	if execution.CodeOf(err) == execution.Integrity || err == nil && (p == nil || p.ReceiptDays == nil) {
		return execution.DefaultReceiptDays, nil
	}
	if err != nil {
		return 0, err
	}
	return max(*p.ReceiptDays, execution.MinReceiptDays), nil
}

// continueAfter is when a sweep looks at a deletion that nobody has finished.
const continueAfter = 60_000

func newReceipt(h *journal.Head, tip journal.EntryFacts, now, days int64, want why) store.Item {
	k := journal.ReceiptKey(h.PK(), h.Generation)
	it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.HeadGeneration: store.N(h.Generation), journal.ReceiptState: store.S(receiptDeleting),
		journal.ReceiptLast: store.N(tip.Version), receiptClosed: store.N(now), receiptDays: store.N(days)}
	if tip.Digest != [32]byte{} {
		it[receiptDigests] = store.Value{Kind: store.KindM, M: map[string]store.Value{"journal": store.S(hex.EncodeToString(tip.Digest[:]))}}
	}
	for name, text := range map[string]string{receiptReason: want.reason, receiptRule: want.rule, receiptRequest: want.request, receiptParent: want.parent} {
		if text != "" {
			it[name] = store.S(text)
		}
	}
	if want.actor != nil {
		it[receiptActor] = store.S(encodeActor(want.actor))
	}
	if want.hash != (execution.RequestHash{}) {
		it[receiptHash] = store.B(want.hash[:])
	}
	for _, name := range []string{journal.HeadCreateRequest, journal.HeadCreateContent} {
		if v := h.Item[name]; v.Kind != store.KindInvalid {
			it[name] = v
		}
	}
	setRetain(it, h.Execution, now+continueAfter)
	return it
}

// setRetain puts an item into the retain index.
func setRetain(it store.Item, e execution.ExecutionID, at int64) {
	for _, a := range journal.RetainActions(e, at) {
		if set, ok := a.(store.Set); ok {
			it[set.Attr] = set.Value
		}
	}
}

// receipt reads the receipt of a generation, nil when there is none.
func (s *Service) receipt(ctx context.Context, ref execution.Ref) (store.Item, error) {
	it, _, err := s.Table.Get(ctx, store.Get{Key: journal.ReceiptKey(ref.PK(), ref.Generation), Consistent: true})
	return it, journal.Fail(err, ref)
}
