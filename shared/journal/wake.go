package journal

import (
	"context"
	"strconv"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// HeadWake is the task token of a wait whose suspension was repeated with another
// one: sealed, and bound to the version of that suspension.
const HeadWake = "wake"

func wakePlace(s *execution.State) seal.Place {
	return seal.Place{Tenant: string(s.Tenant), Execution: string(s.Execution), Generation: s.Generation, Kind: "wake", Name: strconv.FormatInt(s.Version, 10)}
}

// Rewake keeps the newer token of a wait: the caller repeated its suspension, and
// it is behind this token now. The entry stays as it is. It does nothing when the
// wait is over.
//
// Lost: the caller's repeat comes here again. Landed: the same once more. A crash
// before it leaves the older token, behind which nobody is, and the hand-over
// falls back to the workflow's target.
func (j *Journal) Rewake(ctx context.Context, h *Handle, token string) error {
	sealed, err := j.Sealer.Seal(ctx, wakePlace(h.State), []byte(token))
	if err != nil {
		return Fail(err, h.State.Ref)
	}
	_, _, err = j.Table.Update(ctx, store.Update{Key: HeadKey(h.State.PK()), Cond: HeadIs(h.State), ValidatedAt: h.ValidatedAt(),
		Actions: []store.Action{store.Set{Attr: HeadWake, Value: store.B(sealed)}}})
	if _, moved := err.(*store.ConditionFailed); moved {
		return nil
	}
	return Fail(err, h.State.Ref)
}

// WakeToken is the newest task token of a wait; "": it has none. The handle must
// have the head.
func (j *Journal) WakeToken(ctx context.Context, h *Handle) (string, error) {
	w := h.State.Wait
	if w == nil {
		return "", nil
	}
	sealed := h.Head.Item.Bytes(HeadWake)
	if w.TaskToken == "" || len(sealed) == 0 {
		return w.TaskToken, nil
	}
	token, err := j.Sealer.Open(ctx, wakePlace(h.State), sealed)
	if err != nil {
		return "", Fail(err, h.State.Ref)
	}
	return string(token), nil
}
