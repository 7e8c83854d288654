package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// content removes everything of a closed generation but head, receipt and
// registry row: objects, entries (young ones leave stubs), ledger (filled slots
// leave stubs), signals, timers, holds, selector rows. It does not return before a look finds nothing.
// Memory is bounded by a page; a crash or error anywhere leaves less to do.
// final also takes the stubs, when no late writer can come any more.
func (s *Service) content(ctx context.Context, ref execution.Ref, last int64, final bool) error {
	head, clock, err := s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil {
		return err
	}
	for _, prefix := range []string{journal.ObjectPrefix(ref), journal.ArchivePrefix(ref)} {
		if err := s.objects(ctx, ref, prefix); err != nil {
			return err
		}
	}
	if err := s.items(ctx, ref, last, s.Journal.NowOf(clock), final); err != nil {
		return err
	}
	if head == nil || head.Generation != ref.Generation {
		return nil
	}
	var rows []store.Key
	for _, token := range append(head.LabelTokens, head.SubjectTokens...) {
		rows = append(rows, journal.SelectorKey(ref, token))
	}
	return s.batchDelete(ctx, ref, rows)
}

// objects removes all versions, delete markers and unfinished uploads below a
// prefix, until a listing finds none.
func (s *Service) objects(ctx context.Context, ref execution.Ref, prefix string) error {
	in := store.ListObjects{Prefix: prefix}
	for try := 0; ; {
		page, _, err := s.Bucket.Versions(ctx, in)
		if err != nil {
			return journal.Fail(err, ref)
		}
		if len(page.Objects) == 0 {
			if in.Cursor = page.Cursor; in.Cursor == "" {
				break
			}
			continue
		}
		in.Cursor = ""
		doomed := make([]store.ObjectVersion, len(page.Objects))
		for i, o := range page.Objects {
			doomed[i] = store.ObjectVersion{Key: o.Key, VersionID: o.VersionID}
		}
		// Lost, landed, crashed, or refused key by key inside a 200 answer: the next
		// listing shows what is left.
		failed, _, err := s.Bucket.Delete(ctx, doomed)
		if err != nil && !store.Ambiguous(err) && store.KindOf(err) != store.Throttled {
			return journal.Fail(err, ref)
		}
		if err != nil || len(failed) > 0 {
			if try++; try > retries || ctx.Err() != nil {
				return execution.Errorf(execution.Throttled, "the bucket does not process the removal: repeat the same request").With("execution", string(ref.Execution)).With("prefix", prefix).Because(err)
			}
			if err := s.pause(ctx, try, ref); err != nil {
				return err
			}
			continue
		}
		try = 0
	}
	uploads, _, err := s.Bucket.Uploads(ctx, prefix)
	if err != nil {
		return journal.Fail(err, ref)
	}
	for _, u := range uploads {
		if _, err := s.Bucket.Abort(ctx, u); err != nil && store.KindOf(err) != store.NotFound {
			return journal.Fail(err, ref)
		}
	}
	return nil
}

// items removes the generation's items from its partition, page by page, again
// until a pass finds nothing to remove.
func (s *Service) items(ctx context.Context, ref execution.Ref, last, now int64, final bool) error {
	for pass := 0; ; pass++ {
		found := 0
		q := store.Query{PK: ref.PK(), Consistent: true}
		for {
			page, _, err := s.Table.Query(ctx, q)
			if err != nil {
				return journal.Fail(err, ref)
			}
			p := takeApart(ref, page.Items, last, now, final)
			found += p.len()
			if err := s.batchDelete(ctx, ref, p.free); err != nil {
				return err
			}
			if err := s.deleteOwn(ctx, ref, p.own); err != nil {
				return err
			}
			if err := s.stub(ctx, ref, p.young, p.slots, now); err != nil {
				return err
			}
			if page.Next == nil {
				break
			}
			q.Start = page.Next
		}
		if found == 0 {
			return nil
		}
		if pass == retries {
			return busy(ref)
		}
	}
}

// doomed is what a page of a partition holds of a deleted generation.
type doomed struct {
	free  []store.Key          // keys that only this generation can have
	own   []store.Key          // to be removed on condition of the generation
	young []journal.EntryFacts // entries whose slots must stay taken
	slots []journal.SlotFacts  // of the ledger, which must stay taken
}

func (d *doomed) len() int { return len(d.free) + len(d.own) + len(d.young) + len(d.slots) }

// takeApart sorts the items of a page. Entries above the closing entry, items of
// another generation, the head, receipts and (but for the final sweep) stubs are
// left alone.
func takeApart(ref execution.Ref, items []store.Item, last, now int64, final bool) doomed {
	var d doomed
	for _, it := range items {
		sk := it.Key().SK
		kind, _, _ := strings.Cut(sk, "#")
		switch kind + "#" {
		case journal.EntryPrefix:
			f, ok := journal.EntryOf(ref, it)
			switch {
			case !ok:
				d.own = append(d.own, it.Key())
			case f.Version > last+1 || f.Stub && !final || f.Generation != ref.Generation:
			case !final && now-f.At < execution.StubSafety.Milliseconds():
				d.young = append(d.young, f)
			default:
				d.free = append(d.free, it.Key())
			}
		case journal.SlotPrefix:
			// An operation's id is made from the generation it belongs to, or from that of
			// the execution that this one carries on. A filled slot stays taken whatever
			// its age: who fills it only when it is empty may have read the journal just
			// before it was closed.
			switch f := journal.SlotOf(it); {
			case f.Generation != ref.Generation || f.Stub && !final:
			case !final && f.Filled:
				d.slots = append(d.slots, f)
			default:
				d.free = append(d.free, it.Key())
			}
		case journal.SignalPrefix:
			if strings.HasPrefix(sk, fmt.Sprintf("%s%d#", journal.SignalPrefix, ref.Generation)) {
				d.free = append(d.free, it.Key())
			}
		case journal.TimerPrefix, journal.HoldPrefix:
			if it.Int(journal.HeadGeneration) == ref.Generation {
				d.own = append(d.own, it.Key())
			}
		}
	}
	return d
}

// deleteOwn removes items whose key other generations use too.
func (s *Service) deleteOwn(ctx context.Context, ref execution.Ref, keys []store.Key) error {
	for _, k := range keys {
		for try := 0; ; try++ {
			_, _, err := s.Table.Delete(ctx, store.Delete{Key: k, Cond: store.Eq(journal.HeadGeneration, store.N(ref.Generation))})
			var cf *store.ConditionFailed
			if err == nil || errors.As(err, &cf) {
				break
			}
			if !store.Ambiguous(err) && store.KindOf(err) != store.Throttled || try == retries || ctx.Err() != nil {
				return journal.Fail(err, ref)
			}
			if err := s.pause(ctx, try, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// stub replaces young entries and slots, up to a transaction's worth at a time.
// The condition is the generation, so two deleters at once, or one that wakes up
// late, change nothing that is not theirs.
//
// Lost, or somebody else was faster: the next pass finds what is left.
func (s *Service) stub(ctx context.Context, ref execution.Ref, young []journal.EntryFacts, slots []journal.SlotFacts, now int64) error {
	var puts []store.Write
	for _, f := range young {
		ttl := journal.EpochSeconds(f.At + execution.StubSafety.Milliseconds() + hour)
		puts = append(puts, store.Write{Put: &store.Put{Item: journal.StubItem(ref, f, ttl), Cond: journal.EntryGeneration(f.Generation)}})
	}
	for _, f := range slots {
		ttl := journal.EpochSeconds(now + execution.StubSafety.Milliseconds() + hour)
		puts = append(puts, store.Write{Put: &store.Put{Item: journal.SlotStub(f, ttl), Cond: store.Eq(journal.SlotGeneration, store.N(f.Generation))}})
	}
	for len(puts) > 0 {
		n := min(len(puts), store.MaxTransactItems)
		in := store.Transact{Writes: puts[:n]}
		puts = puts[n:]
		if err := s.transact(ctx, ref, in); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// census counts what a deletion will remove and takes its digest, before
// anything is removed: a receipt that is written by whoever finishes says the
// whole of it.
func (s *Service) census(ctx context.Context, ref execution.Ref) (counts map[string]int64, digest string, err error) {
	counts = map[string]int64{"entries": 0, "slots": 0, "signals": 0, "objects": 0, "object_bytes": 0}
	sum := sha256.New()
	q := store.Query{PK: ref.PK(), Consistent: true}
	for {
		page, _, err := s.Table.Query(ctx, q)
		if err != nil {
			return nil, "", journal.Fail(err, ref)
		}
		for _, it := range page.Items {
			sk := it.Key().SK
			kind, _, _ := strings.Cut(sk, "#")
			switch kind + "#" {
			case journal.EntryPrefix:
				if f, ok := journal.EntryOf(ref, it); ok && f.Generation == ref.Generation && !f.Stub && !f.Closing {
					counts["entries"]++
					fmt.Fprintf(sum, "%s %x\n", sk, f.Digest)
				}
			case journal.SlotPrefix:
				if it.Int(journal.SlotGeneration) == ref.Generation {
					counts["slots"]++
				}
			case journal.SignalPrefix:
				if strings.HasPrefix(sk, fmt.Sprintf("%s%d#", journal.SignalPrefix, ref.Generation)) {
					counts["signals"]++
				}
			}
		}
		if page.Next == nil {
			break
		}
		q.Start = page.Next
	}
	for _, prefix := range []string{journal.ObjectPrefix(ref), journal.ArchivePrefix(ref)} {
		in := store.ListObjects{Prefix: prefix}
		for {
			page, _, err := s.Bucket.Versions(ctx, in)
			if err != nil {
				return nil, "", journal.Fail(err, ref)
			}
			for _, o := range page.Objects {
				if !o.DeleteMarker {
					counts["objects"]++
					counts["object_bytes"] += o.Bytes
					fmt.Fprintf(sum, "%s %d\n", o.Key[len(prefix):], o.Bytes)
				}
			}
			if in.Cursor = page.Cursor; in.Cursor == "" {
				break
			}
		}
	}
	return counts, hex.EncodeToString(sum.Sum(nil)), nil
}
