package retention

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// Service answers the verbs of the retention function and handles what is due.
// Fields above the functions are required. Safe for concurrent use.
type Service struct {
	Table   store.Table
	Bucket  store.Bucket
	Journal *journal.Journal
	Sealer  *seal.Sealer
	Catalog *catalog.Catalog
	// BackupDays is how long a backup of the table may bring a deleted item back
	// (point-in-time recovery); 0: 35.
	BackupDays int64
	// Ledger takes the evidence that a deleted child leaves for its parent's
	// operation; nil: nobody is told.
	Ledger *ledger.Ledger
	// Log takes what operators must know; nil: nobody.
	Log *slog.Logger
	// Count is told figures for metrics; nil: nobody.
	Count func(name string, value float64)
}

func (s *Service) count(name string, n float64) {
	if s.Count != nil {
		s.Count(name, n)
	}
}

func (s *Service) log(ctx context.Context, text string, args ...any) {
	if s.Log != nil {
		s.Log.InfoContext(ctx, text, args...)
	}
}

// retries bounds how often one step is tried again because the store asked for
// it, or because somebody else was at work on the same item.
const retries = 8

// pause waits before try n+1.
func (s *Service) pause(ctx context.Context, n int, ref execution.Ref) error {
	return journal.Fail(s.Journal.Sleep(ctx, time.Duration(n+1)*20*time.Millisecond), ref)
}

// head reads an execution's head. NotFound, or Deleted while a receipt lives.
func (s *Service) head(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (*journal.Head, journal.Clock, error) {
	h, clock, err := s.Journal.ReadHead(ctx, t, e)
	if err != nil || h != nil {
		return h, clock, err
	}
	r, err := s.Journal.LastReceipt(ctx, t, e)
	if err != nil {
		return nil, clock, err
	}
	if r != nil {
		return nil, clock, execution.Errorf(execution.Deleted, "the execution was deleted").With("execution", string(e)).With("generation", r.Int(journal.HeadGeneration))
	}
	return nil, clock, journal.NotFound(e)
}

// facts are the plan's facts about a head; its policy is read.
func (s *Service) facts(ctx context.Context, h *journal.Head) (Facts, error) {
	f := Facts{Status: h.Status, Outcome: h.Status, CreatedAt: h.CreatedAt, EndedAt: h.EndedAt, RestoredAt: h.Item.Int(headRestored), ArchivedAt: h.Item.Int(headArchived),
		PrunedAt: h.Item.Int(headPruned), Holds: h.Holds, PolicyName: h.Policy, Asked: h.Asked(), Untrimmed: h.Item.Has(headUntrimmed)}
	if h.Status == execution.StatusArchived {
		f.Outcome = execution.Status(h.Item.Str(headOutcome))
	}
	var err error
	if h.Policy != "" {
		if f.Policy, err = s.Catalog.Policy(ctx, h.Tenant, h.Policy); err != nil {
			return f, err
		}
	}
	if waits(f) {
		f.Alone, err = s.alone(ctx, h)
	}
	return f, err
}

// alone reports whether nothing that descends from an execution is left, by a
// consistent read of the rows that lead to it.
func (s *Service) alone(ctx context.Context, h *journal.Head) (bool, error) {
	w := &walk{s: s, tenant: h.Tenant, token: journal.DescendantsToken(h.Ref)}
	for {
		heads, more, err := w.next(ctx, 100)
		if err != nil || len(heads) > 0 || !more {
			return err == nil && len(heads) == 0, err
		}
	}
}

// Attributes that retention adds to a head.
const (
	headRestored  = "restored_at"
	headArchived  = "archived_at"
	headOutcome   = "outcome" // terminal status of an archived execution
	headPruned    = "pruned_at"
	headUntrimmed = "untrimmed" // the table still holds what the archive holds
	headAskedBy   = "asked_by"  // its actor
	headAskedRule = "asked_rule"
)

// Lifetime says when an execution's time is over and when retention looks at it
// again, in milliseconds; 0: never. It is asked at a creation and at an ending.
func (s *Service) Lifetime(ctx context.Context, st *execution.State) (expires, retainAt int64, err error) {
	f := Facts{Status: st.Status, Outcome: st.Status, CreatedAt: st.CreatedAt, EndedAt: st.EndedAt, PolicyName: st.Policy, Open: st.Open}
	if st.Status == execution.StatusArchived {
		f.Outcome = st.Before
	}
	if st.Policy != "" {
		if f.Policy, err = s.Catalog.Policy(ctx, st.Tenant, st.Policy); err != nil {
			return 0, 0, err
		}
	}
	d := Plan(f, st.TipAt)
	return d.ExpiresAt, d.Next, nil
}

// standing says in a reply where an execution stands, as far as its head tells.
func standing(h *journal.Head) api.Standing {
	return api.Standing{Execution: h.Execution, Status: h.Status, Fence: h.Fence, Owner: h.Owner}
}

// selected checks that exactly one field of a selector is given.
func selected(sel api.Selector, more ...bool) error {
	n := 0
	for _, given := range append([]bool{sel.Execution != "", sel.Thread != "", sel.Subject != ""}, more...) {
		if given {
			n++
		}
	}
	if n != 1 {
		return execution.Invalid("execution", "exactly one of the things that a request can be about must be given")
	}
	return nil
}

// token stands in for a subject; it needs the tenant's key.
func (s *Service) token(ctx context.Context, t execution.TenantID, kind, value string) (string, error) {
	return s.Sealer.Token(ctx, string(t), kind, value)
}

// batchDelete removes items by key, whatever is there, asking again for what
// was not processed.
//
// Lost, landed or crashed: the same keys again change nothing more.
func (s *Service) batchDelete(ctx context.Context, ref execution.Ref, keys []store.Key) error {
	for chunk := range slices.Chunk(keys, store.MaxBatchWrite) {
		for try := 0; len(chunk) > 0; try++ {
			left, _, err := s.Table.BatchDelete(ctx, chunk)
			switch {
			case err != nil && (store.Ambiguous(err) || store.KindOf(err) == store.Throttled) && try < retries && ctx.Err() == nil:
				left = chunk
			case err != nil:
				return journal.Fail(err, ref)
			case len(left) > 0 && try == retries:
				return execution.Errorf(execution.Throttled, "the store does not process the removal: repeat the same request").With("execution", string(ref.Execution))
			}
			if chunk = left; len(chunk) > 0 {
				if err := s.pause(ctx, try, ref); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// update changes an item under a condition. changed false: the condition did
// not hold, so somebody else was faster. A repeat after an unknown outcome may
// find its own work and say false too: callers read again either way.
func (s *Service) update(ctx context.Context, ref execution.Ref, up store.Update) (changed bool, err error) {
	for try := 0; ; try++ {
		_, _, err := s.Table.Update(ctx, up)
		if err == nil {
			return true, nil
		}
		if _, refused := err.(*store.ConditionFailed); refused {
			return false, nil
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return false, journal.Fail(err, ref)
		}
	}
}
