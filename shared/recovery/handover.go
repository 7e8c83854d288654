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
		token, err := s.Journal.WakeToken(ctx, h)
		if err != nil {
			return err
		}
		out, err := s.Target.AnswerToken(ctx, token, input)
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
