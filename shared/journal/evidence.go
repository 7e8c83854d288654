package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Date is the store time of the reading: what a write that it justifies
// carries as ValidatedAt.
func (c Clock) Date() time.Time { return c.date }

// Token is a fresh transaction token.
func (j *Journal) Token() (string, error) { return j.token() }

// LiveHead reads the head of an execution that evidence may come to. Errors:
// NotFound or Deleted where there is none, Deleted {in_progress} while it is
// being deleted, Deleted {expired} past its time, Integrity for a status that
// this version does not know.
func (j *Journal) LiveHead(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (*Head, Clock, error) {
	ref := execution.Ref{Tenant: t, Execution: e}
	head, clock, err := j.ReadHead(ctx, t, e)
	switch {
	case err != nil:
		return nil, clock, err
	case head == nil:
		return nil, clock, j.gone(ctx, ref)
	case head.Status == execution.StatusDeleting:
		return nil, clock, deleting(head)
	case head.Expired(j.NowOf(clock)):
		return nil, clock, expired(head)
	case !head.Status.Known():
		return nil, clock, execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").With("execution", string(e)).With("status", head.RawStatus)
	}
	return head, clock, nil
}

// unusedOr holds while the attempt's callback was used for nothing else.
func unusedOr(content []byte) store.Cond {
	return store.Any{store.Absent{Attr: SlotCallback}, store.Eq(SlotCallback, store.B(content))}
}

func callbackUsed(ref execution.Ref, op execution.OperationID) error {
	return execution.Errorf(execution.RequestMismatch, "the callback was used before, with other content").With("execution", string(ref.Execution)).With("operation", string(op))
}

// UseCallback is the part of a transaction that uses up an attempt's callback
// for a content; a repeat with the same content passes. Its condition fails
// when it was used for another (CallbackRefused tells).
func UseCallback(ref execution.Ref, op execution.OperationID, attempt int, content []byte) store.Write {
	mine := store.All{store.Eq(SlotGeneration, store.N(ref.Generation)), unusedOr(content)}
	return store.Write{Update: &store.Update{Key: SlotKey(ref.PK(), op, attempt), Cond: store.Any{store.NotThere(), mine},
		Actions: []store.Action{store.Set{Attr: SlotGeneration, Value: store.N(ref.Generation)}, store.Set{Attr: SlotCallback, Value: store.B(content)}}}}
}

// CallbackRefused explains why the condition of UseCallback failed on old.
func CallbackRefused(ref execution.Ref, op execution.OperationID, old store.Item) error {
	if old.Int(SlotGeneration) != ref.Generation {
		return execution.Errorf(execution.Deleted, "the slot belongs to another generation").With("execution", string(ref.Execution))
	}
	return callbackUsed(ref, op)
}

// Contradict keeps a final outcome that came after the one that stands in the
// attempt's slot, under the digest of what it says, and marks the slot. first
// is false when it was kept before. o.OnlyEmpty does not apply.
//
// Lost: neither is there, a repeat writes both. Landed, reply lost: the repeat
// finds its own digest. A crash right after: the contradiction is shown and
// judged whenever somebody reads the slot.
func (j *Journal) Contradict(ctx context.Context, ref execution.Ref, s *Slot, digest []byte, o FillOptions) (first bool, err error) {
	body, err := j.sealSlot(ctx, ref, s, "contradiction")
	if err != nil {
		return false, err
	}
	slot := SlotKey(ref.PK(), s.Operation, s.Attempt)
	mark := &store.Update{Key: slot, Cond: store.Eq(SlotGeneration, store.N(s.Generation)), Actions: []store.Action{store.Set{Attr: SlotContra, Value: store.Bool(true)}}}
	if o.Callback != nil {
		mark.Cond = store.All{mark.Cond, unusedOr(o.Callback)}
		mark.Actions = append(mark.Actions, store.Set{Attr: SlotCallback, Value: store.B(o.Callback)})
	}
	in := store.Transact{ValidatedAt: o.ValidatedAt, Writes: []store.Write{
		{Put: &store.Put{Cond: store.NotThere(), Item: store.Item{store.AttrPK: store.S(slot.PK), store.AttrSK: store.S(slot.SK + contradictionMark + hex.EncodeToString(digest)),
			SlotGeneration: store.N(s.Generation), SlotOutcome: store.S(string(s.Outcome)), SlotAt: store.N(s.At), SlotBody: store.B(body)}}},
		{Update: mark},
	}}
	if in.Token, err = j.token(); err != nil {
		return false, err
	}
	for try := 0; ; try++ {
		_, err := j.Table.Transact(ctx, in)
		var no *store.Cancelled
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &no) && no.Reasons[1] == store.ReasonCondition:
			return false, CallbackRefused(ref, s.Operation, no.Old[1])
		case errors.As(err, &no):
			return false, nil
		case !store.Ambiguous(err) || try == 2 || ctx.Err() != nil:
			return false, Fail(err, ref)
		}
	}
}

// KeepOutcome writes what the journal has settled about an attempt into its
// slot, so that later evidence meets it there. What stands there already stays.
func (j *Journal) KeepOutcome(ctx context.Context, ref execution.Ref, op *execution.Operation, attempt int, now int64, validated time.Time) error {
	s := slotOf(ref, op, now)
	if attempt != op.Attempt {
		for _, p := range op.Past {
			if p.Attempt == attempt {
				s = &Slot{Operation: op.ID, Attempt: attempt, Generation: ref.Generation, Outcome: p.Outcome, At: now, Reason: p.Reason, Source: p.Source, Args: op.ArgsDigest[:]}
			}
		}
	}
	if s.Attempt != attempt || !s.Outcome.Final() {
		return nil
	}
	_, _, err := j.FillSlot(ctx, ref, s, FillOptions{ValidatedAt: validated})
	return err
}

// ResultRefs are the digests of results that the ledger keeps as artifacts,
// contradictions included: the orphan sweep must not take them.
func (j *Journal) ResultRefs(ctx context.Context, ref execution.Ref) (map[string]struct{}, error) {
	out := map[string]struct{}{}
	q := store.Query{PK: ref.PK(), Prefix: SlotPrefix, Consistent: true}
	for {
		page, _, err := j.Table.Query(ctx, q)
		if err != nil {
			return nil, Fail(err, ref)
		}
		for _, it := range page.Items {
			kind := "slot"
			if strings.Contains(it.Key().SK, contradictionMark) {
				kind = "contradiction"
			}
			if it.Int(SlotGeneration) != ref.Generation {
				continue
			}
			s, err := j.openSlot(ctx, ref, it, kind)
			if err != nil {
				return nil, err
			}
			if s.ResultRef != nil {
				out[s.ResultRef.Digest] = struct{}{}
			}
		}
		if page.Next == nil {
			return out, nil
		}
		q.Start = page.Next
	}
}
