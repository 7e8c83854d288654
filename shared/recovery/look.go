package recovery

import (
	"context"
	"errors"
	"slices"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// moved says what a look at a due execution came to.
type moved string

const (
	nothing    moved = ""
	handedOver moved = "handed_over"
	parkedIt   moved = "parked"
)

// clockGrain is how much (ms) two readings of the store's time may differ that
// were made at the same moment: the Date of an answer is in whole seconds, and
// what has gone by since is added. Without it the ring of something that is due
// now would be taken for an early one, and nobody would look before the sweep.
// Leases and limits are judged exactly.
const clockGrain = 999

// look handles one execution whose alarm rang, whatever rang it. It decides on
// the journal and the head as they are now, so that any number of repeats in any
// order end in the same state. An error means that it stays due.
func (s *Service) look(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (moved, error) {
	h, err := s.Journal.Open(ctx, t, e, journal.OpenOptions{Head: true})
	if err != nil {
		return nothing, s.setAside(ctx, t, e, err)
	}
	head := h.Head
	now := s.Journal.Now(h)
	switch {
	case !head.Status.Known(), head.Expired(now):
		return nothing, nil // left alone: not ours to judge, or retention's
	case head.DueAt == 0 || now+clockGrain < head.DueAt:
		return nothing, nil // a late or repeated alarm
	}
	m, err := s.lookAt(ctx, h, now)
	switch execution.CodeOf(err) {
	case "":
		return m, nil
	case execution.VersionConflict, execution.Halted, execution.ExecutionClosed:
		return nothing, nil // somebody else was faster; what they wrote set what is due
	}
	return nothing, s.setAside(ctx, t, e, err)
}

// lookAt decides by the status of the fold.
func (s *Service) lookAt(ctx context.Context, h *journal.Handle, now int64) (moved, error) {
	st, head := h.State, h.Head
	switch st.Status {
	case execution.StatusRunning:
		if st.Owner == "" {
			cause := "continue"
			if head.DueKind == journal.DueUnhalt {
				cause = "unhalt"
			}
			return s.handOver(ctx, h, cause)
		}
		if left := s.Journal.LeaseRemaining(h); left > 0 {
			return nothing, s.rearm(ctx, h, journal.Due{At: now + left, Kind: journal.DueLease}, 0)
		}
		return s.handOver(ctx, h, "lease")
	case execution.StatusWaiting:
		cause, until, err := s.woken(ctx, h, now)
		if err != nil {
			return nothing, err
		}
		if cause != "" {
			return s.handOver(ctx, h, cause)
		}
		at := now + backoff(head.Polls, pollFirst, pollMost)
		if until > now && until < at {
			at = until
		}
		return nothing, s.rearm(ctx, h, journal.Due{At: at, Kind: journal.DueWake}, head.Polls+1)
	case execution.StatusParked:
		return s.lookAtParked(ctx, h, now)
	}
	// Created and never claimed, halted or ended: nothing is to happen.
	return nothing, s.rearm(ctx, h, journal.Due{}, 0)
}

// woken says why a waiting execution goes on; "": it waits on. until is its time
// limit, 0 when it has none.
func (s *Service) woken(ctx context.Context, h *journal.Handle, now int64) (cause string, until int64, err error) {
	st := h.State
	if h.Head.DueKind == journal.DueVerdict {
		return "verdict", 0, nil
	}
	w := st.Wait
	if w == nil {
		return "", 0, nil
	}
	found, err := s.awaitedEnded(ctx, h, w.Operations)
	if err != nil {
		return "", 0, err
	}
	if found {
		return "operation", w.Until, nil
	}
	if len(w.Signals) > 0 {
		inbox, err := s.Ledger.Inbox(ctx, st)
		if err != nil {
			return "", 0, err
		}
		// What an owner absorbed and could not empty any more; a failure leaves it to
		// the next opener.
		_ = s.Ledger.Empty(ctx, st.Ref, inbox.StillFull)
		for _, it := range inbox.Open {
			if slices.Contains(w.Signals, it.Name) {
				return "signal", w.Until, nil
			}
		}
	}
	if w.Until > 0 && now >= w.Until {
		return "until", w.Until, nil
	}
	return "", w.Until, nil
}

// awaitedEnded reports whether an awaited operation has an outcome: in the
// journal, in the ledger, or by its child's end.
func (s *Service) awaitedEnded(ctx context.Context, h *journal.Handle, ids []execution.OperationID) (bool, error) {
	var open []*execution.Operation
	for _, id := range ids {
		op := h.State.Operations[id]
		if op == nil || op.Final() {
			return true, nil // settled, perhaps so long ago that the fold forgot it
		}
		open = append(open, op)
	}
	if len(open) == 0 {
		return false, nil
	}
	evs, err := s.Ledger.Evidence(ctx, h.State, open)
	if err != nil {
		return false, err
	}
	var started []*execution.Operation
	for _, ev := range evs {
		op := h.State.Operations[ev.Operation]
		if op == nil || ev.Attempt != op.Attempt {
			continue
		}
		if ev.Finding == execution.Found && ev.Outcome.Final() {
			return true, nil
		}
		if ev.Started {
			started = append(started, op)
		}
	}
	for _, op := range started {
		if ev, _, child := s.askChild(ctx, h, op); child && ev.Finding == execution.Found {
			return true, nil
		}
	}
	return false, nil
}

// lookAtParked asks for evidence before anything else (M), and hands the
// execution over when nothing keeps it parked any more.
func (s *Service) lookAtParked(ctx context.Context, h *journal.Handle, now int64) (moved, error) {
	head := h.Head
	w, _, err := s.lookAgain(ctx, h, false, 0)
	if err != nil {
		return nothing, err
	}
	wrote := w.Handle.State.Version != h.State.Version
	keeps, err := s.keepsParked(ctx, w.Handle)
	if err != nil {
		return nothing, err
	}
	if wrote {
		// The entry set what is due. Whether it goes on is decided on a read of its own.
		if h, err = s.Journal.Open(ctx, h.State.Tenant, h.State.Execution, journal.OpenOptions{Head: true}); err != nil {
			return nothing, err
		}
		if h.State.Version != w.Handle.State.Version || h.Head.DueAt == 0 || h.Head.DueAt > s.Journal.Now(h)+clockGrain {
			return nothing, nil
		}
	}
	if !keeps {
		cause := "operation"
		switch head.DueKind {
		case journal.DueVerdict:
			cause = "verdict"
		case journal.DueUnhalt:
			cause = "unhalt"
		}
		return s.handOver(ctx, h, cause)
	}
	s.tellStuck(h)
	at := now + backoff(head.Polls, pollFirst, pollMost)
	if n := nextLook(h.State); n > now && n < at {
		at = n
	}
	return nothing, s.rearm(ctx, h, journal.Due{At: at, Kind: journal.DueParked}, head.Polls+1)
}

// keepsParked reports whether a parked execution must stay so: operations are
// still uncertain, or what it was parked for has not changed.
func (s *Service) keepsParked(ctx context.Context, h *journal.Handle) (bool, error) {
	if len(s.stuck(h, nil)) > 0 {
		return true, nil
	}
	for _, r := range h.State.Parked {
		switch r.Code {
		case "crash_loop":
			return true, nil // only a claim of somebody who looked at it
		case "migration_failed":
			if _, err := s.migration(ctx, h.State, nil, 0); err != nil {
				if execution.CodeOf(err) == execution.MigrationFailed {
					err = nil // as before
				}
				return true, err
			}
		case "no_workflow", "no_resume_target":
			w, err := s.Catalog.Workflow(ctx, h.State.Tenant, h.State.Workflow)
			if err != nil || w == nil || w.ResumeTarget == nil {
				return true, err
			}
		}
	}
	return false, nil
}

// rearm sets when a head is looked at next, as long as it stands as read.
//
// Lost: it stays due and the next look is at once. Landed: a repeat finds
// another due_at and leaves it. A crash right after: the alarm is set.
func (s *Service) rearm(ctx context.Context, h *journal.Handle, due journal.Due, polls int64) error {
	acts := journal.DueActions(h.State.Execution, due)
	if polls > 0 {
		acts = append(acts, store.Set{Attr: journal.HeadPolls, Value: store.N(polls)})
	}
	_, _, err := s.Table.Update(ctx, store.Update{Key: journal.HeadKey(h.State.PK()), ValidatedAt: h.ValidatedAt(), Actions: acts,
		Cond: store.All{journal.HeadIs(h.State), dueAsRead(h.Head), leaseAsRead(h.Head)}})
	return s.unlessMoved(err, h.State.Ref)
}

// unlessMoved passes over a condition that failed: the head has moved on, and
// whoever moved it set what is due.
func (s *Service) unlessMoved(err error, ref execution.Ref) error {
	var cf *store.ConditionFailed
	if errors.As(err, &cf) || store.KindOf(err) == store.TooLate {
		return nil
	}
	return journal.Fail(err, ref)
}

// setAside marks an execution that cannot be opened or handled on its head alone
// (`quarantine`), so that it blocks no other; its alarm rings ever later. A store
// that does not answer is given back as it is; what is gone is no error.
//
// Lost: it is met again at once. Landed: the next look is later. The next
// transition of the execution takes the mark away.
func (s *Service) setAside(ctx context.Context, t execution.TenantID, e execution.ExecutionID, why error) error {
	code := execution.CodeOf(why)
	switch {
	case code == execution.NotFound || code == execution.Deleted:
		return nil
	case code == execution.Throttled || code == execution.Unavailable:
		return why
	}
	head, clock, err := s.Journal.ReadHead(ctx, t, e)
	if execution.CodeOf(err) == execution.Integrity {
		return nil // not even a head: `verify` names it
	}
	if err != nil || head == nil {
		return err
	}
	now := s.Journal.NowOf(clock)
	if !head.Status.Known() || head.DueAt == 0 || head.DueAt > now {
		return nil
	}
	due := journal.Due{At: now + backoff(head.Polls, pollFirst, pollMost), Kind: head.DueKind}
	acts := append(journal.DueActions(e, due), store.Set{Attr: journal.HeadQuarantine, Value: store.S(string(code))}, store.Set{Attr: journal.HeadPolls, Value: store.N(head.Polls + 1)})
	_, _, err = s.Table.Update(ctx, store.Update{Key: journal.HeadKey(head.PK()), Actions: acts, ValidatedAt: clock.Date(),
		Cond: store.All{store.Eq(journal.HeadGeneration, store.N(head.Generation)), dueAsRead(head)}})
	s.count(telemetry.RecoveryFailure, 1)
	s.emit(ctx, "quarantine", head.Ref, map[string]any{"code": string(code)})
	return s.unlessMoved(err, head.Ref)
}
