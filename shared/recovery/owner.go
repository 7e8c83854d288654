package recovery

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/schema"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/view"
)

// Claim makes an owner and shows it the execution. Errors as journal.Claim's;
// SchemaTooNew and MigrationFailed by `supports` before the fence moves.
func (s *Service) Claim(ctx context.Context, r *api.ClaimRequest) (*api.ClaimReply, error) {
	w, err := s.claim(ctx, &r.Common, &r.Claiming)
	if err != nil {
		return nil, err
	}
	if r.Supports != nil && w.Handle.State.Schema.Version < r.Supports.Min {
		// A crash before this leaves an owner whose state is not migrated: its repeat
		// comes here again, another's claim likewise.
		if w, err = s.migrateOwned(ctx, w, &r.Claiming); err != nil {
			return nil, err
		}
	}
	reply := &api.ClaimReply{Standing: s.standing(w)}
	// A claim asks nobody: what the ledger has is shown, for the owner to reconcile.
	return reply, s.show(ctx, w.Handle, view.Options{Evidence: true}, reply, &reply.View, r.MaxInlineBytes)
}

// claim is the transaction, and what must hold before the fence moves.
func (s *Service) claim(ctx context.Context, common *api.Common, r *api.Claiming) (*journal.Written, error) {
	hash := api.HashNonce(r.Nonce)
	c := execution.Change{Kind: execution.KindClaimed, Actor: common.Actor.Execution(), Expected: r.ExpectedVersion,
		Claim: &execution.ClaimRequest{Owner: r.Owner, LeaseSeconds: r.LeaseSeconds, Nonce: hash, Resume: r.Resume, Supersede: r.Supersede}}
	if r.Force != nil {
		c.Claim.Force, c.Reason = r.Force.Reason, r.Force.Reason
	}
	if r.Nonce != "" {
		c.Request = execution.RequestID{ID: common.RequestID, Hash: hash, Digest: common.Digest}
	}
	var seen *journal.Handle
	w, err := s.Journal.Claim(ctx, common.Tenant, r.Execution, c, func(h *journal.Handle) error {
		seen = h
		return s.supported(ctx, h, r.Supports)
	})
	if err != nil {
		if execution.CodeOf(err) == execution.VersionConflict {
			s.count(telemetry.StateConflicts, 1)
		}
		return nil, err
	}
	s.tellDelay(seen, w)
	return s.withHead(w, seen), nil
}

// tellDelay measures how long a dead owner's execution waited for this claim.
func (s *Service) tellDelay(before *journal.Handle, w *journal.Written) {
	if w.Replay != nil || before == nil || before.Head == nil || before.State.Owner == "" {
		return
	}
	if late := w.Handle.State.ClaimedAt - before.State.LeaseEnd(before.Head.LeaseExpiresAt); late >= 0 {
		s.count(telemetry.RecoveryDelay, float64(late)/1000)
	}
}

// supported holds the stored schema against what the claiming build reads.
func (s *Service) supported(ctx context.Context, h *journal.Handle, r *api.Supports) error {
	if r == nil {
		return nil
	}
	below, err := schema.Check(h.State.Schema.Version, r.Min, r.Max)
	if err == nil && below {
		_, _, err = s.plan(ctx, h.State, r, 0)
	}
	if err != nil {
		return execution.AsError(err).At(h.State)
	}
	return nil
}

// show fills in the view of an owner and brings the reply under its limit.
func (s *Service) show(ctx context.Context, h *journal.Handle, o view.Options, reply api.Viewed, v *api.View, maxInline int64) error {
	o.Inbox, o.Owner, o.Dispositions = true, true, true
	made, err := s.Views.View(ctx, h, o)
	if err != nil {
		return err
	}
	*v = *made
	return api.FitView(reply, api.InlineLimit(maxInline), s.Views.References(ctx, h))
}

// Renew extends the owner's lease. Errors as journal.Renew's.
func (s *Service) Renew(ctx context.Context, r *api.RenewRequest) (*api.RenewReply, error) {
	got, err := s.Journal.Renew(ctx, r.Tenant, r.Execution, r.Owner, r.Fence, r.LeaseSeconds)
	if err != nil {
		return nil, err
	}
	return &api.RenewReply{Standing: api.Standing{Execution: r.Execution, Status: got.Head.Status, Fence: got.Head.Fence, Owner: got.Head.Owner, LeaseRemainingMS: &got.RemainingMS}}, nil
}

// Release gives the execution up for a fresh worker: the same as then.continue.
// LeaseLost when the fence is not the current one or the owner another.
func (s *Service) Release(ctx context.Context, r *api.ReleaseRequest) (*api.ReleaseReply, error) {
	c := execution.Change{Kind: execution.KindContinued, Actor: r.Actor.Execution(), Request: request(&r.Common, 0), Fence: r.Fence, HasFence: true,
		Continue: &execution.Continue{AfterSeconds: r.AfterSeconds}}
	w, err := s.write(ctx, r.Tenant, r.Execution, func(h *journal.Handle) (*journal.Step, error) {
		p, err := s.propose(h, &c)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		if h.State.Owner != r.Owner {
			return nil, execution.Errorf(execution.LeaseLost, "the execution is owned by another").At(h.State)
		}
		hc := &journal.HeadChange{Due: journal.Due{At: p.Entry.At + r.AfterSeconds*1000, Kind: journal.DueContinue}}
		if r.AfterSeconds > 0 {
			hc.Timer = "wake"
		}
		return &journal.Step{Proposal: p, Head: hc}, nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ReleaseReply{Standing: s.standing(w)}, nil
}

// Halt fences the owner out and stops recovery. Halting what is halted changes
// nothing; ExecutionClosed when it has ended.
func (s *Service) Halt(ctx context.Context, r *api.HaltRequest) (*api.HaltReply, error) {
	c := execution.Change{Kind: execution.KindHalted, System: true, Actor: r.Actor.Execution(), Request: request(&r.Common, 0), Reason: r.Reason}
	w, err := s.write(ctx, r.Tenant, r.Execution, func(h *journal.Handle) (*journal.Step, error) {
		p, err := s.propose(h, &c)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		if err := closed(h.State); err != nil {
			return nil, err
		}
		if h.State.Status == execution.StatusHalted {
			return nil, &unchanged{h}
		}
		return &journal.Step{Proposal: p, Head: &journal.HeadChange{}}, nil
	})
	if err != nil {
		return nil, err
	}
	return &api.HaltReply{Standing: s.standing(w)}, nil
}

// Unhalt lets a halted execution go on from the status it was halted in; it is
// due at once. InvalidRequest {status} when it is not halted.
func (s *Service) Unhalt(ctx context.Context, r *api.UnhaltRequest) (*api.UnhaltReply, error) {
	c := execution.Change{Kind: execution.KindUnhalted, System: true, Actor: r.Actor.Execution(), Request: request(&r.Common, r.ExpectedVersion), Reason: r.Reason, Expected: r.ExpectedVersion}
	w, err := s.write(ctx, r.Tenant, r.Execution, func(h *journal.Handle) (*journal.Step, error) {
		p, err := s.propose(h, &c)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		if err := closed(h.State); err != nil {
			return nil, err
		}
		if h.State.Status != execution.StatusHalted {
			return nil, execution.Invalid("execution", "is not halted").At(h.State)
		}
		hc := &journal.HeadChange{}
		if p.State.Status != execution.StatusCreated { // nobody ever worked on that one
			hc.Due = journal.Due{At: p.Entry.At, Kind: journal.DueUnhalt}
		}
		return &journal.Step{Proposal: p, Head: hc}, nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UnhaltReply{Standing: s.standing(w)}, nil
}

// park gives up an execution that only new evidence or a person can move. With a
// fence it is the owner's own; without, the lease must have lapsed (expiry as
// read) or nobody owns it.
//
// Lost: it stays as it was, due as before. Landed, reply lost: the version tells
// (journal.Write). A crash right after: parked, with an alarm on its head.
func (s *Service) park(ctx context.Context, h *journal.Handle, fence int64, reasons []execution.Reason, due int64) (*journal.Written, error) {
	c := execution.Change{Kind: execution.KindParked, Actor: system, Parked: reasons, Expected: h.State.Version, Fence: fence, HasFence: fence != 0, System: fence == 0}
	return s.write(ctx, h.State.Tenant, h.State.Execution, func(now *journal.Handle) (*journal.Step, error) {
		p, err := s.propose(now, &c)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		hc := &journal.HeadChange{Timer: "reconcile", Due: journal.Due{At: due, Kind: journal.DueParked}}
		if due == 0 {
			hc.Due.At = p.Entry.At + backoff(0, pollFirst, pollMost)
		}
		if fence == 0 {
			if s.Journal.LeaseRemaining(now) > 0 {
				return nil, &unchanged{now}
			}
			hc.Conditions = append(hc.Conditions, leaseAsRead(now.Head))
		}
		return &journal.Step{Proposal: p, Head: hc}, nil
	})
}

// leaseAsRead is the condition that nobody renewed since the head was read.
func leaseAsRead(h *journal.Head) store.Cond {
	if h.LeaseExpiresAt == 0 {
		return store.Absent{Attr: journal.HeadLeaseExpires}
	}
	return store.Eq(journal.HeadLeaseExpires, store.N(h.LeaseExpiresAt))
}
