package ledger

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Ledger takes in and gives out evidence. Journal and Artifacts are required.
// Safe for concurrent use.
type Ledger struct {
	Journal   *journal.Journal
	Artifacts *artifact.Store
	Catalog   *catalog.Catalog
	// Count is told of contradictions; nil: nobody.
	Count func(name string, value float64)

	gauges gauges
}

// MaxInlineResult is the size from which a result is kept in the bucket instead
// of its slot or entry; MaxSignalBody is the largest body of a signal. Bytes.
const (
	MaxInlineResult = 16 << 10
	MaxSignalBody   = 256 << 10
)

// maxMoves bounds the forks that evidence is passed on through.
const maxMoves = 32

func (l *Ledger) contradicted() {
	if l.Count != nil {
		l.Count(telemetry.Contradictions, 1)
	}
}

// handle opens the journal of the generation that a head names. fresh: not from
// memory.
func (l *Ledger) handle(ctx context.Context, head *journal.Head, fresh bool) (*journal.Handle, error) {
	for {
		h, err := l.Journal.Open(ctx, head.Tenant, head.Execution, journal.OpenOptions{Warm: !fresh})
		if err != nil {
			return nil, err
		}
		if h.State.Generation == head.Generation {
			return h, nil
		}
		l.Journal.Forget(head.Tenant, head.Execution)
		if h.Fresh {
			return nil, execution.Errorf(execution.Unavailable, "the execution is being made anew: repeat the same request").With("execution", string(head.Execution))
		}
		fresh = true
	}
}

// after reads the head again, once the evidence is written or was found written
// (M): gone or closing is Deleted, and a waiting or parked execution is made due.
//
// Lost: the caller repeats, and a replay comes here too; the poll finds it in
// any case. Landed, reply lost: it is due, once more is the same. A crash before
// the update leaves evidence that the next poll reads.
func (l *Ledger) after(ctx context.Context, ref execution.Ref, wake string) (*journal.Head, error) {
	for try := 1; ; try++ {
		head, clock, err := l.Journal.LiveHead(ctx, ref.Tenant, ref.Execution)
		if err != nil {
			return nil, err
		}
		if head.Generation != ref.Generation {
			return nil, execution.Errorf(execution.Deleted, "the execution was deleted").With("execution", string(ref.Execution))
		}
		now := l.Journal.NowOf(clock)
		asleep := head.Status == execution.StatusWaiting || head.Status == execution.StatusParked
		if wake == "" || !asleep || head.DueAt > 0 && head.DueAt <= now {
			return head, nil
		}
		same := store.All{store.Eq(journal.HeadGeneration, store.N(head.Generation)), store.Eq(journal.HeadStatus, store.S(string(head.Status)))}
		_, _, err = l.Journal.Table.Update(ctx, store.Update{Key: journal.HeadKey(ref.PK()), Cond: same, ValidatedAt: clock.Date(),
			Actions: journal.DueActions(ref.Execution, journal.Due{At: now, Kind: wake})})
		if err == nil {
			return head, nil
		}
		var moved *store.ConditionFailed
		if !errors.As(err, &moved) && !store.Ambiguous(err) || try == 4 || ctx.Err() != nil {
			return nil, journal.Fail(err, ref)
		}
	}
}

// heir is the fork that a moved execution's right to act went to.
func (l *Ledger) heir(ctx context.Context, head *journal.Head) (*execution.State, error) {
	h, err := l.handle(ctx, head, true)
	if err != nil {
		return nil, err
	}
	if h.State.Status != execution.StatusMoved {
		return nil, execution.Errorf(execution.Unavailable, "the execution is on the move: repeat the same request").With("execution", string(head.Execution))
	}
	return h.State, nil
}

// inherited reports whether s is the fork that from moved to.
func inherited(s *execution.State, from *execution.State) bool {
	f := s.ForkedFrom
	return f != nil && f.Carry && f.Execution == from.Execution && f.Generation == from.Generation
}

// standing shows where an execution stands after evidence came: h may be nil.
func standing(head *journal.Head, h *journal.Handle) api.Standing {
	out := api.Standing{Execution: head.Execution, Status: head.Status, Fence: head.Fence, Owner: head.Owner}
	if h != nil && h.Fresh {
		out.Version = h.State.Version
	}
	return out
}

// Shrink moves a result that is too large for a slot or an entry into an
// artifact; one of the two it returns is nil, both for nil.
func (l *Ledger) Shrink(ctx context.Context, ref execution.Ref, result *jsonx.Value) (*jsonx.Value, *execution.Artifact, error) {
	if result == nil || result.Size() <= MaxInlineResult {
		return result, nil, nil
	}
	a, err := l.Artifacts.Write(ctx, ref, result.Bytes(), "application/json")
	if err != nil {
		return nil, nil, err
	}
	return nil, &a, nil
}

// Expand reads a result that Shrink moved; nil for nil.
func (l *Ledger) Expand(ctx context.Context, ref execution.Ref, a *execution.Artifact) (*jsonx.Value, error) {
	if a == nil {
		return nil, nil
	}
	b, err := l.Artifacts.Read(ctx, ref, a.Digest)
	if err != nil {
		return nil, err
	}
	v, err := jsonx.Parse(b)
	if err != nil {
		return nil, execution.Errorf(execution.Integrity, "a result is no JSON").With("execution", string(ref.Execution)).With("digest", a.Digest)
	}
	return v, nil
}
