package ledger

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
)

// RecordOutcome answers record_outcome: evidence about an attempt. Errors:
// InvalidRequest (field), NotFound, Deleted, OperationMismatch, RequestMismatch
// (a callback used for something else), Integrity and the store's.
func (l *Ledger) RecordOutcome(ctx context.Context, r *api.RecordOutcomeRequest) (*api.RecordOutcomeReply, error) {
	if r.Outcome == execution.OutcomeNotExecuted || r.Outcome == execution.OutcomeAbandoned {
		return nil, execution.Invalid("outcome", "%s must be proved or decided: it comes from reconcile only", r.Outcome)
	}
	rec := &recording{l: l, r: r, to: CallbackTarget{Ref: execution.Ref{Tenant: r.Tenant, Execution: r.Execution}, Operation: r.Operation, Attempt: r.Attempt}}
	if r.Callback != "" {
		if err := rec.callback(ctx); err != nil {
			return nil, err
		}
	}
	for range maxMoves {
		out, err := rec.once(ctx)
		if out != nil || err != nil {
			return out, err
		}
	}
	return nil, execution.Errorf(execution.Internal, "the execution was forked on too often").With("execution", string(rec.to.Execution))
}

// recording is one record_outcome on its way, through forks if need be.
type recording struct {
	l  *Ledger
	r  *api.RecordOutcomeRequest
	to CallbackTarget // Generation 0: whichever is there
	// from is the execution that passed the evidence on; nil: none.
	from *execution.State
	// used is what the callback is used for; nil: it came without one.
	used []byte
}

func (rec *recording) callback(ctx context.Context) error {
	r := rec.r
	t, err := rec.l.ParseCallback(ctx, r.Tenant, r.Callback)
	if err != nil {
		return err
	}
	switch {
	case r.Execution != "" && r.Execution != t.Execution:
		return execution.Invalid("execution", "is not the callback's")
	case r.Operation != "" && r.Operation != t.Operation:
		return execution.Invalid("operation", "is not the callback's")
	case r.Attempt != 0 && r.Attempt != t.Attempt:
		return execution.Invalid("attempt", "is not the callback's")
	}
	rec.to = t
	rec.used, err = rec.l.content(ctx, r.Tenant, "record_outcome", r.Result, string(r.Outcome), r.Reason, r.ProviderRef)
	return err
}

// content is the identity of what evidence says: a MAC, because a digest of a
// short answer tells the answer.
func (l *Ledger) content(ctx context.Context, t execution.TenantID, what string, value *jsonx.Value, texts ...string) ([]byte, error) {
	var form []byte
	for _, s := range texts {
		form = append(jsonx.NewString(s).Append(form), ',')
	}
	if value != nil {
		form = jsonx.AppendDigestForm(append(form, '='), value)
	}
	mac, err := l.Journal.Sealer.MAC(ctx, string(t), "evidence "+what, form)
	if err != nil {
		return nil, err
	}
	return mac[:16], nil
}

// once records at the execution that rec.to names. Both results nil: it has
// moved, rec.to is the fork now.
func (rec *recording) once(ctx context.Context) (*api.RecordOutcomeReply, error) {
	l := rec.l
	head, clock, err := l.Journal.LiveHead(ctx, rec.to.Tenant, rec.to.Execution)
	if err != nil {
		return nil, err
	}
	if rec.to.Generation != 0 && rec.to.Generation != head.Generation {
		return nil, execution.Errorf(execution.Deleted, "the execution was deleted").With("execution", string(head.Execution))
	}
	if head.Status == execution.StatusMoved {
		return nil, rec.passOn(ctx, head)
	}
	h, op, err := rec.find(ctx, head)
	if err != nil {
		return nil, err
	}
	slot, err := rec.slot(ctx, head.Ref, op, l.Journal.NowOf(clock))
	if err != nil {
		return nil, err
	}
	// What the journal settled without the ledger stands in the slot first, so that
	// this evidence meets it.
	if err := l.Journal.KeepOutcome(ctx, head.Ref, op, slot.Attempt, slot.At, clock.Date()); err != nil {
		return nil, err
	}
	opts := journal.FillOptions{Callback: rec.used, ValidatedAt: clock.Date()}
	now, filled, err := l.Journal.FillSlot(ctx, head.Ref, slot, opts)
	if err != nil {
		return nil, err
	}
	out := &api.RecordOutcomeReply{}
	if err := rec.weigh(ctx, head, slot, now, filled, opts, out); err != nil {
		return nil, err
	}
	wake := ""
	if slot.Outcome.Final() {
		wake = journal.DueEvidence
	}
	last, err := l.after(ctx, head.Ref, wake)
	if err != nil {
		return nil, err
	}
	if last.Status == execution.StatusMoved {
		// Written before the move: the fork took it along. Not written: the move closed
		// the slot. Either way the fork has the last word.
		return nil, rec.passOn(ctx, last)
	}
	if out.Ledger, err = l.slotView(ctx, head.Ref, now, nil); err != nil {
		return nil, err
	}
	repeated := out.Replayed
	out.Standing = standing(last, h)
	if out.Replayed = repeated; repeated && h.Fresh {
		out.Tip = &api.Tip{Version: h.State.Version, Fence: last.Fence}
	}
	return out, nil
}

// weigh says what became of the evidence, and keeps a final outcome that the
// slot could not take.
func (rec *recording) weigh(ctx context.Context, head *journal.Head, slot, now *journal.Slot, filled bool, opts journal.FillOptions, out *api.RecordOutcomeReply) error {
	l := rec.l
	switch {
	case filled:
		out.Recorded = now == slot // else it was found there
		out.Replayed = !out.Recorded
	case !slot.Outcome.Final() || now.Outcome == SlotMoved:
		return nil // a final one stands there, or the slot is closed for the move
	default:
		digest, err := l.content(ctx, head.Tenant, "contradiction", slot.Result, string(slot.Outcome), slot.ProviderRef, refText(slot.ResultRef))
		if err != nil {
			return err
		}
		first, err := l.Journal.Contradict(ctx, head.Ref, slot, digest, opts)
		if err != nil {
			return err
		}
		if first && now.Outcome.Final() {
			l.contradicted()
		}
		// An outcome that a newer version wrote is not touched, and this one is kept.
		out.Recorded = first && !now.Outcome.Final()
		out.Replayed = !first
		now.Contradictions = append(now.Contradictions, execution.Contradiction{Attempt: slot.Attempt, Outcome: slot.Outcome, ProviderRef: slot.ProviderRef, Source: slot.Source, At: slot.At})
		return nil
	}
	if rec.used == nil || now == slot || now.Callback != nil {
		return nil
	}
	// The same outcome had come by another way: the callback is used up all the same.
	// Lost or landed: a repeat does it again.
	use := journal.UseCallback(head.Ref, slot.Operation, slot.Attempt, rec.used).Update
	use.ValidatedAt = opts.ValidatedAt
	_, _, err := l.Journal.Table.Update(ctx, *use)
	var other *store.ConditionFailed
	if errors.As(err, &other) {
		return journal.CallbackRefused(head.Ref, slot.Operation, other.Old)
	}
	return journal.Fail(err, head.Ref)
}

func refText(a *execution.Artifact) string {
	if a == nil {
		return ""
	}
	return a.Digest
}

// SlotMoved is what stands in the slot of an attempt whose operation was carried
// along by a fork: no outcome that anybody reports. It is written by the fork.
const SlotMoved execution.Outcome = "moved"

// find gives the operation and holds the request against it. A warm journal is
// enough to find it there; that it is not there, or which attempt is meant when
// none was said, only a fresh one tells.
func (rec *recording) find(ctx context.Context, head *journal.Head) (*journal.Handle, *execution.Operation, error) {
	for fresh := rec.to.Attempt == 0; ; fresh = true {
		h, err := rec.l.handle(ctx, head, fresh)
		if err != nil {
			return nil, nil, err
		}
		op := h.State.Operation(rec.to.Operation)
		if !h.Fresh && (op == nil || rec.to.Attempt > op.Attempt) {
			continue
		}
		if rec.from != nil && !inherited(h.State, rec.from) {
			return nil, nil, execution.Errorf(execution.Integrity, "the execution that this one moved to is not its fork").With("execution", string(rec.from.Execution))
		}
		if op == nil {
			if op, err = rec.l.forgotten(ctx, h.State, rec.to.Operation); err != nil {
				return nil, nil, err
			}
		}
		return h, op, rec.holds(op)
	}
}

// forgotten is an operation that left the fold, as its slots tell; NotFound when
// there is none.
func (l *Ledger) forgotten(ctx context.Context, s *execution.State, id execution.OperationID) (*execution.Operation, error) {
	no := execution.Errorf(execution.NotFound, "no such operation").With("execution", string(s.Execution)).With("operation", string(id)).With("field", "operation")
	if !s.MayBeForgotten(id) {
		return nil, no
	}
	slots, err := l.Journal.ReadSlots(ctx, s.Ref, id)
	if err != nil {
		return nil, err
	}
	return fromSlots(id, slots, no)
}

// fromSlots makes an operation of what its slots hold.
func fromSlots(id execution.OperationID, slots map[int]*journal.Slot, none error) (*execution.Operation, error) {
	var last *journal.Slot
	for _, s := range slots {
		if last == nil || s.Attempt > last.Attempt {
			last = s
		}
	}
	if last == nil {
		return nil, none
	}
	op := &execution.Operation{ID: id, Attempt: last.Attempt}
	if last.Outcome.Final() {
		op.Outcome, op.Reason, op.ProviderRef, op.Result, op.ResultRef, op.Source = last.Outcome, last.Reason, last.ProviderRef, last.Result, last.ResultRef, last.Source
	}
	copy(op.ArgsDigest[:], last.Args)
	return op, nil
}

// holds checks attempt and arguments.
func (rec *recording) holds(op *execution.Operation) error {
	named := func(e *execution.Error) error {
		return e.With("execution", string(rec.to.Execution)).With("operation", string(op.ID)).With("attempt", op.Attempt)
	}
	switch {
	case rec.to.Attempt == 0 && op.Attempt > 1:
		return named(execution.Invalid("attempt", "is required once there is a second attempt"))
	case rec.to.Attempt > op.Attempt:
		return named(execution.Invalid("attempt", "no such attempt"))
	case rec.r.Args != nil && op.ArgsDigest != (execution.ContentDigest{}) && execution.DigestArgs(rec.r.Args) != op.ArgsDigest:
		return named(execution.Errorf(execution.OperationMismatch, "the operation was declared with other arguments").With("field", "args"))
	}
	return nil
}

// slot is what is to be written; a large result goes to the bucket first. A
// crash after that leaves an object that nothing names; the orphan sweep takes
// it.
func (rec *recording) slot(ctx context.Context, ref execution.Ref, op *execution.Operation, now int64) (*journal.Slot, error) {
	r := rec.r
	s := &journal.Slot{Operation: op.ID, Attempt: max(rec.to.Attempt, 1), Generation: ref.Generation, Outcome: r.Outcome, At: now, Reason: r.Reason, ProviderRef: r.ProviderRef,
		Actor: r.Actor.Execution(), Source: execution.FromLedger}
	if op.ArgsDigest != (execution.ContentDigest{}) {
		s.Args = op.ArgsDigest[:]
	}
	var err error
	s.Result, s.ResultRef, err = rec.l.Shrink(ctx, ref, r.Result)
	return s, err
}

// passOn aims the evidence at the fork.
func (rec *recording) passOn(ctx context.Context, head *journal.Head) error {
	from, err := rec.l.heir(ctx, head)
	if err != nil {
		return err
	}
	rec.from, rec.to.Ref = from, execution.Ref{Tenant: from.Tenant, Execution: from.MovedTo}
	return nil
}
