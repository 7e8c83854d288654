package recovery

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/schema"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/view"
)

// Service answers the recover function's verbs and triggers. The fields up to
// Rand are required. Safe for concurrent use.
type Service struct {
	Table   store.Table
	Journal *journal.Journal
	Catalog *catalog.Catalog
	Ledger  *ledger.Ledger
	Views   *view.Builder
	// Rand spreads the times of repeated questions.
	Rand io.Reader

	// Resolvers by kind (lambda, https, sandbox); a kind that is missing answers
	// nothing: query_failed.
	Resolvers map[string]Resolver
	// Target starts resume targets and answers task tokens; nil: none can be
	// reached, so that what is due stays due.
	Target Target
	// Migrations that are registered in Go, by the schema's name. For the same
	// versions they go before the workflow's own.
	Migrations map[string][]schema.Step
	// Migrator runs migrations that are functions of the workflow; nil: they fail.
	Migrator Migrator

	// ChildID names the execution that is the effect of an operation's current
	// attempt, if there is one; nil: no operation has a child.
	ChildID func(parent execution.Ref, op *execution.Operation) execution.ExecutionID

	// Lifetime says when retention looks at a new fork, in milliseconds; nil: never.
	Lifetime func(ctx context.Context, s *execution.State) (expires, retain int64, err error)
	// Redact takes live credentials out of what a resolver answered, by the tenant's
	// settings (path: where the value stands); nil: nothing is taken out.
	Redact func(ctx context.Context, t execution.TenantID, v *jsonx.Value, path string) (*jsonx.Value, error)

	// Count is told what the metrics are made of; nil: nobody.
	Count func(name string, value float64)
	// Emit publishes an event to operators; detail is one JSON value without agent
	// data. nil: nobody. Its error is not the execution's.
	Emit func(ctx context.Context, detailType string, detail []byte) error
}

// Times of recovery, on the store's clock.
const (
	pollFirst     = time.Minute // until the next look at a wait or a parked execution
	pollMost      = time.Hour
	askFirst      = 30 * time.Second // until an operation is asked about again
	askMost       = time.Hour
	askTimeout    = 10 * time.Second // of one question, unless the workflow says otherwise
	writeReserve  = 5 * time.Second  // kept free at the end of an invocation for the write
	maxConcurrent = 8
)

// timeLeft reports whether an invocation has time for one more execution.
func (s *Service) timeLeft(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > 2*writeReserve
}

var system = &execution.Actor{Kind: "system", ID: "recover"}

func (s *Service) count(name string, value float64) {
	if s.Count != nil {
		s.Count(name, value)
	}
}

// emit tells operators about an execution. An event that is lost is in the
// history all the same.
func (s *Service) emit(ctx context.Context, detailType string, ref execution.Ref, facts map[string]any) {
	if s.Emit == nil {
		return
	}
	detail := map[string]any{"tenant": string(ref.Tenant), "execution": string(ref.Execution)}
	for k, v := range facts {
		detail[k] = v
	}
	b, err := json.Marshal(detail)
	if err == nil {
		_ = s.Emit(ctx, detailType, b)
	}
}

// backoff doubles from first to most.
func backoff(n int64, first, most time.Duration) int64 {
	d := most
	if n < 16 {
		d = min(most, first<<max(0, n))
	}
	return d.Milliseconds()
}

// jitter spreads a time by a tenth in both directions.
func (s *Service) jitter(ms int64) int64 {
	var b [4]byte
	if s.Rand == nil || ms < 10 {
		return ms
	}
	if _, err := io.ReadFull(s.Rand, b[:]); err != nil {
		return ms
	}
	return ms - ms/10 + int64(binary.BigEndian.Uint32(b[:]))%(ms/5+1)
}

// request is a request's identity. Without a request_id and an expected version
// it has none: a repeat is another request.
func request(c *api.Common, expected int64) execution.RequestID {
	if c.RequestID == "" && expected == 0 {
		return execution.RequestID{}
	}
	return execution.RequestID{ID: c.RequestID, Hash: c.Hash, Digest: c.Digest}
}

// unchanged ends a Write that has nothing to write.
type unchanged struct{ h *journal.Handle }

func (*unchanged) Error() string { return "recovery: nothing to write" }

// write adds an entry computed from the journal with its head; a step that is
// *unchanged ends it without one.
func (s *Service) write(ctx context.Context, t execution.TenantID, e execution.ExecutionID, propose func(h *journal.Handle) (*journal.Step, error)) (*journal.Written, error) {
	return s.writeFrom(ctx, t, e, nil, propose)
}

// writeFrom is write for a step under a fence that changes no status: it needs no
// head but the one that the caller has read (seen), and so no further read. nil:
// the head is read.
func (s *Service) writeFrom(ctx context.Context, t execution.TenantID, e execution.ExecutionID, seen *journal.Handle, propose func(h *journal.Handle) (*journal.Step, error)) (*journal.Written, error) {
	withHead := seen == nil
	w, err := s.Journal.Write(ctx, t, e, journal.WriteOptions{Head: withHead}, func(_ context.Context, h *journal.Handle) (*journal.Step, error) {
		if withHead {
			seen = h
			if err := s.usable(h); err != nil {
				return nil, err
			}
		}
		return propose(h)
	})
	var same *unchanged
	if errors.As(err, &same) {
		return s.withHead(&journal.Written{Handle: same.h}, seen), nil
	}
	if err != nil {
		if execution.CodeOf(err) == execution.VersionConflict {
			s.count(telemetry.StateConflicts, 1)
		}
		return nil, err
	}
	return s.withHead(w, seen), nil
}

// withHead gives what was written the head as it is known to stand now: as it
// was read, with what the transition changed.
func (s *Service) withHead(w *journal.Written, before *journal.Handle) *journal.Written {
	if w.Handle.Head != nil || before == nil || before.Head == nil {
		return w
	}
	h, head, st := *w.Handle, *before.Head, w.Handle.State
	if st.Owner != "" && st.Fence != head.Fence {
		head.LeaseExpiresAt = st.TipAt + st.LeaseSeconds*1000
	}
	head.Status, head.RawStatus, head.Owner, head.Fence, head.LeaseSeconds = st.Status, "", st.Owner, st.Fence, st.LeaseSeconds
	head.Schema = st.Schema
	h.Head = &head
	out := *w
	out.Handle = &h
	return &out
}

// usable refuses an execution of which nothing may be done: past its expiry, or
// with a status that this version does not know.
func (s *Service) usable(h *journal.Handle) error {
	if err := s.Journal.Readable(h); err != nil {
		return err
	}
	if !h.Head.Status.Known() {
		return execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").With("execution", string(h.State.Execution)).With("status", h.Head.RawStatus)
	}
	return nil
}

// propose is execution.Propose at a handle.
func (s *Service) propose(h *journal.Handle, c *execution.Change) (*execution.Proposal, error) {
	return execution.Propose(h.State, h.State.Ref, c, execution.Environment{Now: s.Journal.Now(h), Epoch: s.Journal.Epoch})
}

// standing is a reply's, once: where the execution stands, and of a replay what it
// had written.
func (s *Service) standing(w *journal.Written) api.Standing {
	out := s.Views.Standing(w.Handle)
	if w.Replay != nil {
		s.count(telemetry.RepeatedRequests, 1)
		out.Replayed, out.Tip = true, &api.Tip{Version: out.Version, Fence: out.Fence}
		out.Version = w.Replay.Version
	}
	return out
}

// closed refuses what only an execution that has not ended can do.
func closed(st *execution.State) error {
	if !st.Status.Ended() {
		return nil
	}
	e := execution.Errorf(execution.ExecutionClosed, "the execution has ended")
	if st.Status == execution.StatusMoved {
		e = e.With("moved_to", string(st.MovedTo))
	}
	return e.At(st)
}

func halted(st *execution.State) error {
	if st.Status == execution.StatusHalted {
		return execution.Errorf(execution.Halted, "the execution is halted").At(st)
	}
	return nil
}
