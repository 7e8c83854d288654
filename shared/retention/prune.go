package retention

import (
	"context"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// prune applies the history rule: the floor moves first, in one transaction with
// the checks of holds, so readers get HistoryPruned before anything is gone; then
// entries that no kept version needs go, with their objects. The tip, kept
// versions, the snapshot they are folded from, and entries whose successor is
// younger than execution.PruneSafety stay.
//
// A crash anywhere leaves entries below the floor, which the next look takes.
func (s *Service) prune(ctx context.Context, h *journal.Head, rule *api.HistoryRule, now int64) (bool, error) {
	tip, clock, err := s.Journal.ReadTip(ctx, h.Ref)
	if err != nil {
		return false, err
	}
	if tip.Generation != h.Generation || tip.Stub || tip.Closing {
		return false, errMoved
	}
	low, bundled := h.Oldest(), h.Item.Int(headBundled)
	floor, err := s.keptFrom(ctx, h, rule, low, bundled, tip.Version, now)
	if err != nil {
		return false, err
	}
	if floor > low {
		same := store.Cond(store.Absent{Attr: journal.HeadFloor})
		if h.Floor != 0 {
			same = store.Eq(journal.HeadFloor, store.N(h.Floor))
		}
		// Lost: nothing is pruned. Landed, reply lost: the next look finds the floor.
		err := s.transact(ctx, h.Ref, store.Transact{ValidatedAt: clock.Date(), Writes: append([]store.Write{
			{Update: &store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), store.Absent{Attr: journal.HeadHolds}, journal.SubjectsAsRead(h), same},
				Actions: []store.Action{store.Set{Attr: journal.HeadFloor, Value: store.N(floor)}}}},
		}, journal.HoldChecks(h)...)})
		if refused(err) {
			return false, errMoved
		}
		if err != nil {
			return false, err
		}
	}
	if floor <= bundled { // served from the archive: nothing of it lies in the table
		return false, s.looked(ctx, h, now, false)
	}
	base, err := s.entry(ctx, h.Ref, floor)
	if err != nil {
		return false, err
	}
	gone, more, err := s.drop(ctx, h.Ref, base.Version-base.Chain, now, true)
	if err != nil {
		return false, err
	}
	return gone > 0, s.looked(ctx, h, now, more)
}

// keptFrom is the oldest version that the rule keeps. Times of archived entries
// are not looked up: while none in the table is old enough, the floor stays.
func (s *Service) keptFrom(ctx context.Context, h *journal.Head, rule *api.HistoryRule, low, bundled, tip, now int64) (int64, error) {
	switch rule.Keep {
	case "versions":
		return max(low, tip-rule.N+1), nil
	case "days":
		from, at := max(low, bundled+1), now-rule.N*day
		f, err := s.entry(ctx, h.Ref, from)
		if err != nil || f.At > at {
			return low, err
		}
		return s.standingAt(ctx, h.Ref, from, tip, at)
	}
	return low, nil
}

// looked notes that the history rule was applied and plans the next look; more:
// at once.
func (s *Service) looked(ctx context.Context, h *journal.Head, now int64, more bool) error {
	f, err := s.facts(ctx, h)
	if err != nil {
		return err
	}
	f.PrunedAt = now
	next := Plan(f, now).Next
	if more {
		next = now
	}
	_, err = s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), store.Eq(journal.HeadStatus, store.S(string(h.Status))), journal.AskedAsRead(h)},
		Actions: append([]store.Action{store.Set{Attr: headPruned, Value: store.N(now)}}, journal.RetainActions(h.Execution, next)...)})
	return err
}

// standingAt finds the version that was the newest at a time, between low and
// high, by the entries' times, which never go down; low when even that is
// younger.
func (s *Service) standingAt(ctx context.Context, ref execution.Ref, low, high, at int64) (int64, error) {
	for low < high {
		mid := (low + high + 1) / 2
		f, err := s.entry(ctx, ref, mid)
		if err != nil {
			return 0, err
		}
		if f.At <= at {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// entry reads one entry's plain attributes.
func (s *Service) entry(ctx context.Context, ref execution.Ref, version int64) (journal.EntryFacts, error) {
	it, _, err := s.Table.Get(ctx, store.Get{Key: journal.EntryKey(ref.PK(), version), Consistent: true})
	if err != nil {
		return journal.EntryFacts{}, journal.Fail(err, ref)
	}
	f, ok := journal.EntryOf(ref, it)
	if it == nil || !ok || f.Damaged || f.Generation != ref.Generation {
		return f, execution.Errorf(execution.Integrity, "an entry of the journal is missing").With("execution", string(ref.Execution)).With("version", version)
	}
	return f, nil
}

// dropAtOnce bounds the entries that one look removes.
const dropAtOnce = 10_000

// drop removes the entries below a version whose successor is old enough, and
// with objects their bodies in the bucket. more: there are others that could go
// now.
func (s *Service) drop(ctx context.Context, ref execution.Ref, below, now int64, objects bool) (gone int, more bool, err error) {
	q := store.Query{PK: ref.PK(), From: journal.EntryPrefix, To: journal.EntryKey(ref.PK(), below).SK, Consistent: true}
	var before *journal.EntryFacts // whose successor is still to come
	cut := int64(0)                // everything below is gone
	for !more {
		page, _, err := s.Table.Query(ctx, q)
		if err != nil {
			return gone, false, journal.Fail(err, ref)
		}
		var keys []store.Key
		old := true
		for _, it := range page.Items {
			f, ok := journal.EntryOf(ref, it)
			if !ok || f.Generation != ref.Generation {
				continue
			}
			if old = f.At <= now-execution.PruneSafety.Milliseconds(); !old {
				break
			}
			if before != nil {
				keys = append(keys, journal.EntryKey(ref.PK(), before.Version))
			}
			before, cut = &f, f.Version
		}
		if err := s.batchDelete(ctx, ref, keys); err != nil {
			return gone, false, err
		}
		gone += len(keys)
		if page.Next == nil || !old {
			break
		}
		q.Start, more = page.Next, gone >= dropAtOnce
	}
	if objects && cut > 0 {
		if err := s.dropBodies(ctx, ref, cut, now); err != nil {
			return gone, false, err
		}
	}
	return gone, more, nil
}

// dropBodies removes the oversize bodies of the versions below cut, staged ones
// that no entry ever named among them. A younger object may still be on its way
// into an entry: it stays for the orphan sweep.
func (s *Service) dropBodies(ctx context.Context, ref execution.Ref, cut, now int64) error {
	prefix := journal.ObjectPrefix(ref) + "journal/"
	in := store.ListObjects{Prefix: prefix}
	for {
		page, _, err := s.Bucket.Versions(ctx, in)
		if err != nil {
			return journal.Fail(err, ref)
		}
		var old []store.ObjectVersion
		passed := false
		for _, o := range page.Objects {
			v, _, _ := strings.Cut(o.Key[len(prefix):], "-")
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n >= cut {
				passed = err == nil
				continue
			}
			if o.LastModified.UnixMilli() <= now-execution.PruneSafety.Milliseconds() {
				old = append(old, store.ObjectVersion{Key: o.Key, VersionID: o.VersionID})
			}
		}
		if err := s.deleteVersions(ctx, ref, old); err != nil {
			return err
		}
		if in.Cursor = page.Cursor; in.Cursor == "" || passed {
			return nil
		}
	}
}

// deleteVersions removes object versions for good, again those that the bucket
// did not process.
func (s *Service) deleteVersions(ctx context.Context, ref execution.Ref, versions []store.ObjectVersion) error {
	for try := 0; len(versions) > 0; try++ {
		failed, _, err := s.Bucket.Delete(ctx, versions)
		if err != nil && !store.Ambiguous(err) && store.KindOf(err) != store.Throttled {
			return journal.Fail(err, ref)
		}
		if err == nil {
			versions = failed
		}
		if len(versions) == 0 {
			return nil
		}
		if try == retries || ctx.Err() != nil {
			return execution.Errorf(execution.Throttled, "the bucket does not process the removal: repeat the same request").With("execution", string(ref.Execution)).Because(err)
		}
		if err := s.pause(ctx, try, ref); err != nil {
			return err
		}
	}
	return nil
}
