package recovery

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Sweep handles what is due, of one tenant or of all, at most limit executions.
// It reads the due index only. It keeps no cursor: what it handled is no longer
// due, so a sweep that dies is continued by the next. Failures name what stays
// due (at most 100).
func (s *Service) Sweep(ctx context.Context, r *api.SweepRequest) (*api.SweepReply, error) {
	w := &sweep{s: s, tenant: r.Tenant, left: api.ListLimit(r.Limit), reply: &api.SweepReply{Failures: []api.Failure{}}}
	now, err := s.storeTime(ctx)
	if err != nil {
		return nil, err
	}
	// Every minute another shard is the first, so that none is always behind what is
	// more than one sweep can do.
	for n := int64(0); n < journal.DueShards && w.left > 0; n++ {
		if err := w.shard(ctx, int((now/60_000+n)%journal.DueShards), now); err != nil {
			return nil, err
		}
	}
	return w.reply, nil
}

// storeTime reads the store's clock, by a consistent read of nothing.
func (s *Service) storeTime(ctx context.Context) (int64, error) {
	_, meta, err := s.Table.Get(ctx, store.Get{Key: store.Key{PK: "~clock", SK: "clock"}, Consistent: true})
	if err != nil {
		return 0, journal.Fail(err, execution.Ref{})
	}
	if meta.Date.IsZero() {
		return 0, execution.Errorf(execution.Unavailable, "the store's answer carried no time")
	}
	return meta.Date.UnixMilli(), nil
}

type sweep struct {
	s      *Service
	tenant execution.TenantID
	mu     sync.Mutex
	left   int
	reply  *api.SweepReply
}

// maxFailures bounds what a sweep's reply names.
const maxFailures = 100

// shard handles one shard of the due index, page by page. Pages follow each
// other by their own position, so that what stays due does not hide the rest.
func (w *sweep) shard(ctx context.Context, n int, now int64) error {
	from := int64(1)
	q := store.Query{Index: "due", PK: journal.DuePartition(n), FromN: &from, ToN: &now, Limit: 100}
	for w.left > 0 {
		page, _, err := w.s.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, execution.Ref{})
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(maxConcurrent)
		for _, it := range page.Items {
			head, ok := journal.ParseHead(it)
			if !ok || w.tenant != "" && head.Tenant != w.tenant || !head.Status.Known() {
				continue
			}
			if w.left--; w.left < 0 {
				break
			}
			group.Go(func() error { return w.one(gctx, head) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if page.Next == nil || !w.s.timeLeft(ctx) {
			return nil
		}
		q.Start = page.Next
	}
	return nil
}

// one handles one execution. Its failure is its own and is counted.
func (w *sweep) one(ctx context.Context, head *journal.Head) error {
	if !w.s.timeLeft(ctx) {
		return nil
	}
	m, err := w.s.look(ctx, head.Tenant, head.Execution)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && len(w.reply.Failures) < maxFailures:
		e := execution.AsError(err)
		w.reply.Failures = append(w.reply.Failures, api.Failure{Tenant: head.Tenant, Execution: head.Execution, Code: e.Code, Message: e.Message})
	case m == handedOver:
		w.reply.HandedOver++
	case m == parkedIt:
		w.reply.Parked++
	}
	return nil
}
