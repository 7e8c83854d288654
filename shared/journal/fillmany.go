package journal

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Filled is what FillSlot says about one slot.
type Filled struct {
	Now    *Slot
	Filled bool
}

// FillSlots is FillSlot for many slots, up to 100 a request; the answers are in
// the order of slots, which must be different ones. o.Callback must be nil.
//
// Each slot is decided by itself: one that is taken keeps no other from being
// filled. After an error some may be filled and others not; a repeat finds out.
func (j *Journal) FillSlots(ctx context.Context, ref execution.Ref, slots []*Slot, o FillOptions) ([]Filled, error) {
	out := make([]Filled, len(slots))
	for from := 0; from < len(slots); from += store.MaxTransactItems {
		to := min(from+store.MaxTransactItems, len(slots))
		if err := j.fillPart(ctx, ref, slots[from:to], out[from:to], o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fillPart fills at most store.MaxTransactItems slots, in one transaction when
// all are free.
//
// Lost: nothing is there. Landed, reply lost: the slots one by one find their own
// outcome. A crash right after: evidence lies in the ledger.
func (j *Journal) fillPart(ctx context.Context, ref execution.Ref, slots []*Slot, out []Filled, o FillOptions) error {
	left := make([]int, len(slots))
	for i := range left {
		left[i] = i
	}
	for round := 0; len(left) > 1 && round < 3; round++ {
		in := store.Transact{ValidatedAt: o.ValidatedAt, Writes: make([]store.Write, len(left))}
		for n, i := range left {
			up, err := j.fillUpdate(ctx, ref, slots[i], o)
			if err != nil {
				return err
			}
			in.Writes[n] = store.Write{Update: up}
		}
		var err error
		if in.Token, err = j.token(); err != nil {
			return err
		}
		_, err = j.Table.Transact(ctx, in)
		var no *store.Cancelled
		switch {
		case err == nil:
			for _, i := range left {
				out[i] = Filled{slots[i], true}
			}
			return nil
		case !errors.As(err, &no) && store.Ambiguous(err), store.KindOf(err) == store.Conflict:
			round = 3 // one by one
		case !errors.As(err, &no):
			return Fail(err, ref)
		default:
			var free []int
			for n, i := range left {
				if no.Reasons[n] != store.ReasonCondition {
					free = append(free, i)
					continue
				}
				now, filled, err := j.stands(ctx, ref, slots[i], o, no.Old[n])
				if err != nil {
					return err
				}
				out[i] = Filled{now, filled}
			}
			left = free
		}
	}
	for _, i := range left {
		now, filled, err := j.FillSlot(ctx, ref, slots[i], o)
		if err != nil {
			return err
		}
		out[i] = Filled{now, filled}
	}
	return nil
}
