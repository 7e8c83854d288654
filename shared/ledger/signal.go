package ledger

import (
	"bytes"
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Signal answers signal: evidence without an intent. The first body under a name
// and key stands; the same again is a replay, also after it was absorbed and
// emptied, another one is RequestMismatch. Errors besides: InvalidRequest,
// NotFound, Deleted, ExecutionClosed, TooLarge (body, or a full inbox) and the
// store's.
func (l *Ledger) Signal(ctx context.Context, r *api.SignalRequest) (*api.SignalReply, error) {
	if r.Body.Size() > MaxSignalBody {
		return nil, execution.Errorf(execution.TooLarge, "the body is too large: put it as an artifact and signal its digest").With("field", "body").With("limit", MaxSignalBody)
	}
	digest, err := l.content(ctx, r.Tenant, "signal", r.Body)
	if err != nil {
		return nil, err
	}
	s := &sending{l: l, r: r, to: execution.Ref{Tenant: r.Tenant, Execution: r.Execution}, digest: digest}
	if r.Callback != "" {
		if s.by, err = l.callbackFor(ctx, r); err != nil {
			return nil, err
		}
		s.to = s.by.Ref
		if s.used, err = l.content(ctx, r.Tenant, "signal", r.Body, r.Name, r.Key); err != nil {
			return nil, err
		}
	}
	for range maxMoves {
		out, err := s.once(ctx)
		if out != nil || err != nil {
			return out, err
		}
	}
	return nil, execution.Errorf(execution.Internal, "the execution was forked on too often").With("execution", string(s.to.Execution))
}

func (l *Ledger) callbackFor(ctx context.Context, r *api.SignalRequest) (*CallbackTarget, error) {
	t, err := l.ParseCallback(ctx, r.Tenant, r.Callback)
	if err != nil {
		return nil, err
	}
	if r.Execution != "" && r.Execution != t.Execution {
		return nil, execution.Invalid("execution", "is not the callback's")
	}
	return &t, nil
}

// sending is one signal on its way. by and used as in recording, nil without a
// callback.
type sending struct {
	l      *Ledger
	r      *api.SignalRequest
	to     execution.Ref // Generation 0: whichever is there
	by     *CallbackTarget
	digest []byte
	used   []byte
	from   *execution.State
}

// once sends to the execution that s.to names. Both results nil: the callback's
// execution has moved, s.to is the fork now.
func (s *sending) once(ctx context.Context) (*api.SignalReply, error) {
	l := s.l
	head, clock, err := l.Journal.LiveHead(ctx, s.to.Tenant, s.to.Execution)
	if err != nil {
		return nil, err
	}
	if s.to.Generation != 0 && s.to.Generation != head.Generation {
		return nil, execution.Errorf(execution.Deleted, "the execution was deleted").With("execution", string(head.Execution))
	}
	if s.from != nil {
		h, err := l.handle(ctx, head, false)
		if err != nil {
			return nil, err
		}
		if !inherited(h.State, s.from) {
			return nil, execution.Errorf(execution.Integrity, "the execution that this one moved to is not its fork").With("execution", string(s.from.Execution))
		}
	}
	if head.Status == execution.StatusMoved && s.by != nil {
		if s.from, err = l.heir(ctx, head); err != nil {
			return nil, err
		}
		s.to = execution.Ref{Tenant: head.Tenant, Execution: s.from.MovedTo}
		return nil, nil
	}
	key := journal.SignalItemKey(head.PK(), head.Generation, s.r.Name, s.r.Key)
	recorded, err := s.put(ctx, head, clock, key)
	if err != nil {
		return nil, err
	}
	last, err := l.after(ctx, head.Ref, journal.DueSignal)
	if err != nil {
		return nil, err
	}
	out := &api.SignalReply{Standing: standing(last, nil), Recorded: recorded}
	out.Replayed = !recorded
	return out, nil
}

// put writes the item, or finds it. An ended execution and a full inbox take
// nothing new, but answer what they have.
func (s *sending) put(ctx context.Context, head *journal.Head, clock journal.Clock, key store.Key) (recorded bool, err error) {
	l := s.l
	refused := error(nil)
	if head.Status.Ended() {
		refused = execution.Errorf(execution.ExecutionClosed, "the execution has ended").With("execution", string(head.Execution)).With("status", string(head.Status))
	} else if refused, err = l.gauges.full(ctx, l, head.Ref, key); err != nil {
		return false, err
	}
	if refused != nil {
		it, _, err := l.Journal.Table.Get(ctx, store.Get{Key: key, Consistent: true})
		if err != nil {
			return false, journal.Fail(err, head.Ref)
		}
		if it == nil {
			return false, refused
		}
		return false, s.same(head.Ref, it)
	}
	item, err := l.signalItem(ctx, head.Ref, key, s, l.Journal.NowOf(clock))
	if err != nil {
		return false, err
	}
	write, err := s.writer(head.Ref, item, clock)
	if err != nil {
		return false, err
	}
	// Lost: nothing is there, the loop or the caller writes it again. Landed, reply
	// lost: the item found is ours, by its sealed bytes. A crash right after: the
	// signal lies in the inbox; the poll finds it (M: the head is read again on the
	// replay too).
	for try := 1; ; try++ {
		err := write(ctx)
		if err == nil {
			l.gauges.added(head.Ref)
			return true, nil
		}
		old, no := s.found(head.Ref, err)
		if old != nil {
			if bytes.Equal(old.Bytes(sigBody), item.Bytes(sigBody)) {
				return true, nil
			}
			if err := s.same(head.Ref, old); err != nil {
				return false, err
			}
			return false, s.useUp(ctx, head.Ref, clock)
		}
		if no != nil {
			return false, no
		}
		if !store.Ambiguous(err) || try == 4 || ctx.Err() != nil {
			return false, journal.Fail(err, head.Ref)
		}
	}
}

// writer is the write: a put, with a callback in one transaction with the slot
// that says what it was used for.
func (s *sending) writer(ref execution.Ref, item store.Item, clock journal.Clock) (func(context.Context) error, error) {
	put := store.Put{Item: item, Cond: store.NotThere(), ValidatedAt: clock.Date()}
	if s.by == nil {
		return func(ctx context.Context) error {
			_, err := s.l.Journal.Table.Put(ctx, put)
			return err
		}, nil
	}
	token, err := s.l.Journal.Token()
	if err != nil {
		return nil, err
	}
	in := store.Transact{Token: token, ValidatedAt: clock.Date(), Writes: []store.Write{{Put: &put}, journal.UseCallback(ref, s.by.Operation, s.by.Attempt, s.used)}}
	return func(ctx context.Context) error {
		_, err := s.l.Journal.Table.Transact(ctx, in)
		return err
	}, nil
}

// found gives the item that stood in the way, or why the callback was refused.
func (s *sending) found(ref execution.Ref, err error) (old store.Item, refused error) {
	var taken *store.ConditionFailed
	if errors.As(err, &taken) {
		return taken.Old, nil
	}
	var no *store.Cancelled
	if !errors.As(err, &no) {
		return nil, nil
	}
	if no.Reasons[1] == store.ReasonCondition {
		return nil, journal.CallbackRefused(ref, s.by.Operation, no.Old[1])
	}
	return no.Old[0], nil
}

// same is RequestMismatch unless the item has this body (or had it).
func (s *sending) same(ref execution.Ref, it store.Item) error {
	if bytes.Equal(it.Bytes(sigDigest), s.digest) {
		return nil
	}
	return execution.Errorf(execution.RequestMismatch, "this key was signalled with another body").With("execution", string(ref.Execution)).With("field", "key")
}

// useUp marks the callback as used where the same signal had come without it.
func (s *sending) useUp(ctx context.Context, ref execution.Ref, clock journal.Clock) error {
	if s.by == nil {
		return nil
	}
	use := journal.UseCallback(ref, s.by.Operation, s.by.Attempt, s.used).Update
	use.ValidatedAt = clock.Date()
	_, _, err := s.l.Journal.Table.Update(ctx, *use)
	var other *store.ConditionFailed
	if errors.As(err, &other) {
		return journal.CallbackRefused(ref, s.by.Operation, other.Old)
	}
	return journal.Fail(err, ref)
}
