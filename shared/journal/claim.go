package journal

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Claim takes ownership: a transaction of entry and head, so of two claimers
// exactly one wins. prepare, when not nil, may refuse on the journal as read and
// add to the change (migrations are entries of their own and come after).
//
// A claim is replayed only for the same nonce and only while its fence is
// current (M); then Written.Replay is set. Errors: LeaseHeld with
// retry_after_ms, LeaseLost (the nonce's fence is no longer current),
// VersionConflict, ExecutionClosed, Halted, Integrity for an unknown status,
// Deleted also past expires_at.
func (j *Journal) Claim(ctx context.Context, t execution.TenantID, e execution.ExecutionID, c execution.Change, prepare func(h *Handle) error) (*Written, error) {
	asked := *c.Claim
	w, err := j.Write(ctx, t, e, WriteOptions{Head: true, AtLeast: c.Expected}, func(_ context.Context, h *Handle) (*Step, error) {
		if err := j.Readable(h); err != nil {
			return nil, err
		}
		if !h.Head.Status.Known() {
			return nil, execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").With("status", h.Head.RawStatus)
		}
		if prepare != nil {
			if err := prepare(h); err != nil {
				return nil, err
			}
		}
		change, claim := c, asked
		if h.Head.Fence == h.State.Fence {
			claim.HeadExpiry = h.Head.LeaseExpiresAt
		}
		change.Claim, change.Handovers = &claim, h.Head.Handover
		p, err := execution.Propose(h.State, h.State.Ref, &change, execution.Environment{Now: j.Now(h), Epoch: j.Epoch})
		if err != nil || p.Replay != nil {
			if p != nil && p.Replay != nil && (p.Replay.Version != h.State.ClaimVersion || h.State.Owner == "") {
				return nil, execution.Errorf(execution.LeaseLost, "the claim with this nonce is no longer the current one").At(h.State)
			}
			return &Step{Proposal: p}, err
		}
		lease := p.Entry.At + p.State.LeaseSeconds*1000
		// The lease as read: a renewal in between must not be run over.
		same := store.Cond(store.Absent{Attr: HeadLeaseExpires})
		if h.Head.LeaseExpiresAt != 0 {
			same = store.Eq(HeadLeaseExpires, store.N(h.Head.LeaseExpiresAt))
		}
		return &Step{Proposal: p, Head: &HeadChange{LeaseExpires: lease, Due: Due{At: lease, Kind: DueLease}, Timer: "lease", Conditions: []store.Cond{same}}}, nil
	})
	return w, err
}

// Renewed is the head after a renewal and the remaining lease.
type Renewed struct {
	Head        *Head
	RemainingMS int64
}

// Renew extends the lease of the current owner: one read and one update. A new
// expiry that is not later changes nothing and succeeds. After the owner's own
// expiry it succeeds as long as nobody else has claimed; which of the two comes
// first is decided by the conditions of both writes. LeaseLost otherwise.
func (j *Journal) Renew(ctx context.Context, t execution.TenantID, e execution.ExecutionID, owner string, fence, leaseSeconds int64) (*Renewed, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	for try := 0; ; try++ {
		head, clock, err := j.ReadHead(ctx, t, e)
		if err != nil {
			return nil, err
		}
		if head == nil {
			return nil, j.gone(ctx, ref)
		}
		now := j.NowOf(clock)
		if err := mayRenew(head, now, owner, fence); err != nil {
			return nil, err
		}
		expiry := now + leaseSeconds*1000
		if expiry <= head.LeaseExpiresAt {
			return &Renewed{Head: head, RemainingMS: head.LeaseExpiresAt - now}, nil
		}
		up := store.Update{Key: HeadKey(ref.PK()), ValidatedAt: clock.date,
			Cond: store.All{store.Eq(HeadGeneration, store.N(head.Generation)), store.Eq(HeadStatus, store.S(string(execution.StatusRunning))), store.Eq(HeadOwner, store.S(owner)),
				store.Eq(HeadFence, store.N(fence)), store.Compare{Attr: HeadLeaseExpires, Op: store.LT, Value: store.N(expiry)}},
			Actions: append([]store.Action{store.Set{Attr: HeadLeaseExpires, Value: store.N(expiry)}}, dueActions(e, Due{At: expiry, Kind: DueLease})...)}
		// Lost: the lease stands as before. Landed, reply lost: a repeat finds an
		// expiry that is not earlier. A crash right after: the lease is longer than
		// anybody uses, nothing else.
		item, _, err := j.Table.Update(ctx, up)
		if err == nil {
			h, ok := ParseHead(item)
			if !ok {
				return nil, integrity(ref, 0, "the head is no head")
			}
			return &Renewed{Head: h, RemainingMS: expiry - now}, nil
		}
		var cf *store.ConditionFailed
		if errors.As(err, &cf) || store.Ambiguous(err) || store.KindOf(err) == store.TooLate {
			if try < 3 && ctx.Err() == nil {
				continue
			}
			return nil, unknown(ref, err)
		}
		return nil, Fail(err, ref)
	}
}

func mayRenew(h *Head, now int64, owner string, fence int64) error {
	facts := func(e *execution.Error) error {
		e = e.With("execution", string(h.Execution)).With("status", string(h.Status))
		if h.Owner != "" {
			e = e.With("owner", h.Owner).With("fence", h.Fence)
		}
		return e
	}
	switch {
	case h.Status == execution.StatusDeleting:
		return deleting(h)
	case h.Expired(now):
		return expired(h)
	case !h.Status.Known():
		return facts(execution.Errorf(execution.Integrity, "a status that this version does not know"))
	case h.Fence != fence || h.Owner != owner || h.Status != execution.StatusRunning:
		return facts(execution.Errorf(execution.LeaseLost, "another owner has taken over, or the execution was given up"))
	}
	return nil
}

func expired(h *Head) error {
	return execution.Errorf(execution.Deleted, "the execution's time is over").With("execution", string(h.Execution)).With("expired", true)
}

// Readable refuses what is past its expiry; it needs the head.
func (j *Journal) Readable(h *Handle) error {
	if h.Head != nil && h.Head.Expired(j.Now(h)) {
		return expired(h.Head)
	}
	return nil
}
