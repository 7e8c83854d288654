package retention

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// items walks the partition: the chain of entries without gap, each naming the
// one before, bodies in the bucket whole, nothing of another generation.
func (c *checker) items(ctx context.Context, h *journal.Head) error {
	chain := &chainCheck{c: c, h: h, next: h.Oldest()}
	chain.bundled = h.Item.Int(headBundled)
	q := store.Query{PK: c.ref.PK(), Consistent: true}
	for {
		page, _, err := c.s.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, c.ref)
		}
		for _, it := range page.Items {
			sk := it.Key().SK
			kind, _, _ := strings.Cut(sk, "#")
			switch {
			case kind+"#" == journal.EntryPrefix:
				if err := chain.entry(ctx, it); err != nil {
					return err
				}
			case kind+"#" == journal.SlotPrefix && journal.SlotOf(it).Stub && it.Int(journal.SlotGeneration) != c.ref.Generation:
				// of an earlier generation, until its final sweep
			case (kind+"#" == journal.SlotPrefix || kind+"#" == journal.TimerPrefix) && it.Int(journal.SlotGeneration) != c.ref.Generation:
				c.find(findStray, sk, "of another generation")
			case kind+"#" == journal.SignalPrefix && !strings.HasPrefix(sk, fmt.Sprintf("%s%d#", journal.SignalPrefix, c.ref.Generation)):
				c.find(findStray, sk, "of another generation")
			}
		}
		if page.Next == nil {
			break
		}
		q.Start = page.Next
	}
	if chain.last == 0 {
		c.find(findGap, "", "there is no entry")
	}
	return nil
}

// chainCheck follows a journal's entries upwards.
type chainCheck struct {
	c       *checker
	h       *journal.Head
	next    int64 // the oldest kept version
	bundled int64 // versions up to it may lie in the archive only
	last    int64
	digest  [32]byte
}

func (k *chainCheck) entry(ctx context.Context, it store.Item) error {
	f, ok := journal.EntryOf(k.c.ref, it)
	sk := it.Key().SK
	switch {
	case !ok:
		k.c.find(findStray, sk, "no entry's key")
		return nil
	case f.Generation != k.c.ref.Generation && f.Version < k.h.FirstVersion:
		return nil // stubs of an earlier generation, until its final sweep
	case f.Damaged, f.Stub, f.Generation != k.c.ref.Generation:
		k.c.find(findStray, sk, "no entry of this generation")
		return nil
	}
	switch {
	case k.last == 0:
		if f.Version-f.Chain > k.next && f.Version > k.bundled+1 || f.Version > k.next && f.Version > k.bundled+1 {
			k.c.find(findGap, sk, "the journal begins at %d, but is kept from %d", f.Version, k.next)
		}
	case f.Version != k.last+1:
		if f.Version > k.bundled+1 && k.last >= k.next-1 {
			k.c.find(findGap, sk, "nothing between %d and %d", k.last, f.Version)
		}
	case f.Prev != k.digest:
		k.c.find(findDigest, sk, "the entry does not name the one before it")
	}
	k.last, k.digest = f.Version, f.Digest
	if f.Object == "" {
		return nil
	}
	return k.c.object(ctx, f.Object, hex.EncodeToString(f.ObjectDigest), f.ObjectBytes)
}
