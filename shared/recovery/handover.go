package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
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

// look handles one execution whose alarm rang, whatever rang it. It decides on
// the journal and the head as they are now, so that any number of repeats in any
// order end in the same state. An error means that it stays due.
func (s *Service) look(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (moved, error) {
	h, err := s.Journal.Open(ctx, t, e, journal.OpenOptions{Head: true})
	if err != nil {
		return nothing, s.quarantine(ctx, t, e, err)
	}
	head := h.Head
	now := s.Journal.Now(h)
	switch {
	case !head.Status.Known(), head.Expired(now):
		return nothing, nil // left alone: not ours to judge, or retention's
	case head.DueAt == 0 || now < head.DueAt:
		return nothing, nil // a late or repeated alarm
	}
	m, err := s.lookAt(ctx, h, now)
	if code := execution.CodeOf(err); code == execution.VersionConflict || code == execution.Deleted || code == execution.NotFound || code == execution.Halted || code == execution.ExecutionClosed {
		return nothing, nil // somebody else was faster; what they wrote set what is due
	}
	if unfoldable(execution.CodeOf(err)) {
		return nothing, s.quarantine(ctx, t, e, err)
	}
	return m, err
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
	w, _, err := s.lookAgain(ctx, h, false)
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
		if h.State.Version != w.Handle.State.Version || h.Head.DueAt == 0 || h.Head.DueAt > s.Journal.Now(h) {
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

// handOver starts whoever goes on with an execution (architecture, "Hand-over").
//
// The head counts the hand-over and sets the next alarm before anything is
// started: a crash after that leaves a hand-over that never began, and the alarm
// begins the next one. Whoever is started claims with the version that it was
// given, so of any number of them one gets it.
func (s *Service) handOver(ctx context.Context, h *journal.Handle, cause string) (moved, error) {
	st, head := h.State, h.Head
	w, err := s.Catalog.Workflow(ctx, st.Tenant, st.Workflow)
	if err != nil {
		return nothing, err
	}
	if why := s.notHandedOver(st, head, w); why != nil {
		if st.Status == execution.StatusParked && slices.ContainsFunc(st.Parked, func(r execution.Reason) bool { return r.Code == why.Code }) {
			return nothing, s.rearm(ctx, h, journal.Due{At: s.Journal.Now(h) + backoff(head.Polls, pollFirst, pollMost), Kind: journal.DueParked}, head.Polls+1)
		}
		return s.parkDue(ctx, h, *why)
	}
	n := head.Handover + 1
	due := s.Journal.Now(h) + backoff(head.Handover, pollFirst, pollMost)
	first, err := s.countHandover(ctx, h, n, due)
	if err != nil || !first {
		return nothing, err
	}
	if err := s.start(ctx, h, w, cause, n); err != nil {
		s.count(telemetry.RecoveryFailure, 1)
		s.emit(ctx, "handover failed", st.Ref, map[string]any{"version": st.Version, "handover": n, "cause": cause})
		return nothing, execution.Errorf(execution.Unavailable, "the resume target could not be reached; it is tried again").With("execution", string(st.Execution)).Because(err)
	}
	s.count(telemetry.RecoverySuccess, 1)
	return handedOver, nil
}

// notHandedOver is the reason why nobody can be started; nil: somebody can.
func (s *Service) notHandedOver(st *execution.State, head *journal.Head, w *api.Workflow) *execution.Reason {
	most := int64(execution.DefaultMaxRecoveries)
	if w != nil && w.MaxRecoveries > 0 {
		most = w.MaxRecoveries
	}
	switch {
	case st.Handovers+head.Handover >= most:
		return &execution.Reason{Code: "crash_loop", Detail: "handed over again and again without a new entry by an owner"}
	case st.Wait != nil && st.Wait.TaskToken != "" && head.Handover == 0:
		return nil
	case w == nil:
		return &execution.Reason{Code: "no_workflow", Detail: "the workflow was never set"}
	case w.ResumeTarget == nil:
		return &execution.Reason{Code: "no_resume_target", Detail: "the workflow has no resume target"}
	}
	return nil
}

// parkDue parks what is due and cannot be handed over.
func (s *Service) parkDue(ctx context.Context, h *journal.Handle, why execution.Reason) (moved, error) {
	w, err := s.park(ctx, h, 0, []execution.Reason{why}, 0)
	if err != nil {
		return nothing, err
	}
	if w.Proposal == nil {
		return nothing, nil
	}
	s.count(telemetry.Parked, 1)
	s.emit(ctx, "parked", h.State.Ref, map[string]any{"reasons": []string{why.Code}})
	return parkedIt, nil
}

// countHandover writes the hand-over's number and the next alarm to the head;
// first false: the head has moved, somebody else hands it over.
//
// Landed, reply lost: the same number with the same alarm is either this very
// update or one by somebody who starts the same name with the same input.
func (s *Service) countHandover(ctx context.Context, h *journal.Handle, n, due int64) (first bool, err error) {
	kind := h.Head.DueKind
	was := store.Cond(store.Absent{Attr: journal.HeadHandover})
	if h.Head.Handover != 0 {
		was = store.Eq(journal.HeadHandover, store.N(h.Head.Handover))
	}
	up := store.Update{Key: journal.HeadKey(h.State.PK()), ValidatedAt: h.ValidatedAt(), Cond: store.All{journal.HeadIs(h.State), was, dueAsRead(h.Head), leaseAsRead(h.Head)},
		Actions: append(journal.DueActions(h.State.Execution, journal.Due{At: due, Kind: kind}), store.Set{Attr: journal.HeadHandover, Value: store.N(n)})}
	for try := 0; ; try++ {
		_, _, err := s.Table.Update(ctx, up)
		var cf *store.ConditionFailed
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &cf):
			mine := try > 0 && cf.Old.Int(journal.HeadHandover) == n && cf.Old.Int(journal.HeadDue) == due && cf.Old.Int(journal.HeadFence) == h.State.Fence
			return mine, nil
		case !store.Ambiguous(err) || try == 2 || ctx.Err() != nil:
			return false, s.unlessMoved(err, h.State.Ref)
		}
	}
}

// start answers the task token of a wait the first time, and starts the
// workflow's target otherwise, or when nobody waits behind the token.
func (s *Service) start(ctx context.Context, h *journal.Handle, w *api.Workflow, cause string, n int64) error {
	if s.Target == nil {
		return errors.New("recovery: no resume target can be reached from here")
	}
	st := h.State
	input := handoverInput(st, cause, n)
	if st.Wait != nil && st.Wait.TaskToken != "" && n == 1 {
		out, err := s.Target.AnswerToken(ctx, st.Wait.TaskToken, input)
		if err != nil || out != Gone {
			return err
		}
		if w == nil || w.ResumeTarget == nil {
			return nil // the next look finds that there is nobody else, and parks it
		}
	}
	_, err := s.Target.Start(ctx, Handover{Kind: w.ResumeTarget.Kind, ARN: w.ResumeTarget.ARN, Name: handoverName(st, n), Input: input})
	return err
}

// handoverInput is what the target gets: coordinates, no state.
func handoverInput(st *execution.State, cause string, n int64) []byte {
	text := func(k, v string) jsonx.Member { return jsonx.Member{Key: jsonx.Key(k), Value: jsonx.NewString(v)} }
	number := func(k string, v int64) jsonx.Member {
		return jsonx.Member{Key: jsonx.Key(k), Value: jsonx.NewInt(v)}
	}
	members := []jsonx.Member{text("tenant", string(st.Tenant)), text("execution", string(st.Execution)), text("workflow", st.Workflow)}
	if st.Schema.Version != 0 {
		members = append(members, jsonx.Member{Key: jsonx.Key("schema"), Value: jsonx.NewObject(text("name", st.Schema.Name), number("version", st.Schema.Version))})
	}
	members = append(members, number("version", st.Version), text("cause", cause), number("handover", n))
	return jsonx.NewObject(members...).Bytes()
}

// handoverName is the same for the same hand-over, and a name that Step Functions
// takes.
func handoverName(st *execution.State, n int64) string {
	h := sha256.New()
	h.Write([]byte("cairn handover 1\x00" + st.PK() + "\x00"))
	var b [24]byte
	binary.BigEndian.PutUint64(b[:8], uint64(st.Generation))
	binary.BigEndian.PutUint64(b[8:16], uint64(st.Version))
	binary.BigEndian.PutUint64(b[16:], uint64(n))
	h.Write(b[:])
	return "cairn-" + hex.EncodeToString(h.Sum(nil)[:20])
}

// unfoldable codes prevent an execution from being opened until somebody does
// something about it.
func unfoldable(c execution.Code) bool {
	return c == execution.Integrity || c == execution.KeyUnavailable || c == execution.SchemaTooNew
}

// quarantine sets an execution that cannot be opened aside, on its head alone, so
// that it blocks no other; its alarm rings ever later. Any other error is given
// back; what is gone is no error.
//
// Lost: it is met again at once. Landed: the next look is later. The next
// transition of the execution takes the mark away.
func (s *Service) quarantine(ctx context.Context, t execution.TenantID, e execution.ExecutionID, why error) error {
	code := execution.CodeOf(why)
	switch {
	case code == execution.NotFound || code == execution.Deleted:
		return nil
	case !unfoldable(code):
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
	if head.DueAt == 0 || head.DueAt > now {
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
