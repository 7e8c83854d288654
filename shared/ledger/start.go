package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// StartOperation answers start_operation: it fills an attempt's slot right
// before the effect runs. The same nonce again is `go` again. Errors: LeaseLost
// (fence moved, slot closed, attempt over, uncertain, past send_by),
// OperationMismatch (started by another nonce), InvalidRequest, NotFound,
// Halted, ExecutionClosed, Deleted, Integrity and the store's.
func (l *Ledger) StartOperation(ctx context.Context, r *api.StartOperationRequest) (*api.StartOperationReply, error) {
	for try := 1; ; try++ {
		// Fresh: only the tip tells whether the attempt is the current one.
		h, err := l.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{})
		if err != nil {
			return nil, err
		}
		op, err := l.mayStart(h, r)
		if execution.CodeOf(err) == execution.ExecutionClosed { // once its time is over it is gone
			if _, _, gone := l.Journal.LiveHead(ctx, r.Tenant, r.Execution); gone != nil {
				return nil, gone
			}
		}
		if err != nil {
			return nil, err
		}
		again, err := l.start(ctx, h, op, r)
		if again && try < 4 {
			continue // the head had moved on; the journal tells where to
		}
		if err != nil {
			return nil, err
		}
		s := h.State
		return &api.StartOperationReply{Disposition: api.Go, ProviderKey: op.ProviderKey(s.IdentityRoot), SendBy: api.TimeOrNil(op.SendBy()),
			Standing: api.Standing{Execution: s.Execution, Version: s.Version, Status: s.Status, Fence: s.Fence, Owner: s.Owner}}, nil
	}
}

// mayStart holds the request against the journal's tip.
func (l *Ledger) mayStart(h *journal.Handle, r *api.StartOperationRequest) (*execution.Operation, error) {
	s, now := h.State, l.Journal.Now(h)
	lost := func(text string) *execution.Error {
		return execution.Errorf(execution.LeaseLost, "%s", text).With("operation", string(r.Operation)).At(s)
	}
	switch {
	case !s.Status.Known():
		return nil, execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").At(s)
	case s.Status.Ended():
		return nil, execution.Errorf(execution.ExecutionClosed, "the execution has ended").At(s)
	case s.Status == execution.StatusHalted:
		return nil, execution.Errorf(execution.Halted, "the execution is halted").At(s)
	case r.Fence != s.Fence || s.Owner == "" || s.Status != execution.StatusRunning:
		return nil, lost("the fence is not the current one: another owner has taken over, or the execution was given up")
	}
	op := s.Operation(r.Operation)
	switch {
	case op == nil && s.MayBeForgotten(r.Operation):
		return nil, lost("the operation was settled long ago")
	case op == nil:
		return nil, execution.Errorf(execution.NotFound, "no such operation").With("operation", string(r.Operation)).With("field", "operation").At(s)
	case r.Attempt > op.Attempt:
		return nil, execution.Invalid("attempt", "no such attempt").With("operation", string(op.ID)).With("attempt", op.Attempt).At(s)
	case r.Attempt < op.Attempt:
		return nil, lost("that attempt is over").With("attempt", op.Attempt)
	case op.Final():
		return nil, lost("the operation is settled").With("outcome", string(op.Outcome))
	case op.SendBy() > 0 && now >= op.SendBy():
		return nil, lost("it is too late to start").With("send_by", api.Time(op.SendBy()).String())
	case op.Uncertain(s.Fence, now):
		return nil, lost("the operation is uncertain: reconcile it, or declare it again").With("disposition", string(api.Uncertain))
	}
	return op, nil
}

// start is the transaction: the slot is empty or started by the same nonce, and
// the head still says that this fence owns a running execution (M). again: the
// head says something else than the journal did.
//
// Lost: nothing runs, the loop or the caller starts again. Landed, reply lost:
// the slot holds our nonce, which passes. A crash right after: started without
// an outcome, which is truly uncertain.
func (l *Ledger) start(ctx context.Context, h *journal.Handle, op *execution.Operation, r *api.StartOperationRequest) (again bool, err error) {
	s := h.State
	nonce := nonceHash(op.ID, op.Attempt, r.Nonce)
	mine := store.All{store.Eq(journal.SlotGeneration, store.N(s.Generation)), store.Absent{Attr: journal.SlotOutcome},
		store.Any{store.Eq(journal.SlotNonce, store.B(nonce)), store.All{store.Absent{Attr: journal.SlotNonce}, store.Absent{Attr: journal.SlotStarted}}}}
	in := store.Transact{ValidatedAt: h.ValidatedAt(), Writes: []store.Write{
		{Update: &store.Update{Key: journal.SlotKey(s.PK(), op.ID, op.Attempt), Cond: store.Any{store.NotThere(), mine}, Actions: []store.Action{
			store.Set{Attr: journal.SlotGeneration, Value: store.N(s.Generation)}, store.Set{Attr: journal.SlotNonce, Value: store.B(nonce)},
			store.Set{Attr: journal.SlotFence, Value: store.N(s.Fence)}, store.Set{Attr: journal.SlotStarted, Value: store.N(l.Journal.Now(h))},
			store.Set{Attr: journal.SlotArgs, Value: store.B(op.ArgsDigest[:])}}}},
		{Check: &store.Check{Key: journal.HeadKey(s.PK()), Cond: store.All{journal.HeadIs(s), store.Present{Attr: journal.HeadOwner}}}},
	}}
	if in.Token, err = l.Journal.Token(); err != nil {
		return false, err
	}
	for try := 1; ; try++ {
		_, err := l.Journal.Table.Transact(ctx, in)
		var no *store.Cancelled
		switch {
		case err == nil:
			return false, nil
		case errors.As(err, &no) && no.Reasons[1] == store.ReasonCondition:
			return true, l.headMoved(ctx, h)
		case errors.As(err, &no):
			return false, slotTaken(s, op, nonce, no.Old[0])
		case !store.Ambiguous(err) || try == 4 || ctx.Err() != nil:
			return false, journal.Fail(err, s.Ref)
		}
	}
}

// headMoved explains a head that is not as the journal had it.
func (l *Ledger) headMoved(ctx context.Context, h *journal.Handle) error {
	head, _, err := l.Journal.LiveHead(ctx, h.State.Tenant, h.State.Execution)
	if err != nil {
		return err
	}
	return execution.Errorf(execution.LeaseLost, "another owner has taken over, or the execution was given up").With("execution", string(head.Execution)).
		With("status", string(head.Status)).With("fence", head.Fence).With("owner", head.Owner)
}

// slotTaken explains a slot that cannot be started.
func slotTaken(s *execution.State, op *execution.Operation, nonce []byte, old store.Item) error {
	outcome := old.Str(journal.SlotOutcome)
	if outcome == "" && old.Int(journal.SlotGeneration) == s.Generation && string(old.Bytes(journal.SlotNonce)) != string(nonce) {
		return execution.Errorf(execution.OperationMismatch, "the attempt was started by another process").With("operation", string(op.ID)).With("field", "nonce").At(s)
	}
	e := execution.Errorf(execution.LeaseLost, "the attempt's slot is closed").With("operation", string(op.ID))
	if o := execution.Outcome(outcome); o.Known() && o != execution.OutcomeNone {
		e = e.With("outcome", outcome)
	}
	return e.At(s)
}

// nonceHash is all that is kept of a nonce.
func nonceHash(op execution.OperationID, attempt int, nonce string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "cairn start nonce 1\x00%s\x00%d\x00%s", op, attempt, nonce))
	return sum[:16]
}
