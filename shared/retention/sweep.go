package retention

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// backoff is when a work item that failed is tried again.
const backoff = 5 * 60_000

// Sweep does what is due, of one tenant or of all: up to limit work items of the
// retain index, then a stretch of the bucket (orphans). It reports failures and
// goes on; the error is of the sweep itself.
func (s *Service) Sweep(ctx context.Context, r *api.SweepRequest) (*api.SweepReply, error) {
	out := &api.SweepReply{Failures: []api.Failure{}}
	limit := api.ListLimit(r.Limit)
	items, now, err := s.due(ctx, r.Tenant, limit)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		worked, err := s.work(ctx, it.Key(), now)
		if err != nil {
			if ctx.Err() != nil {
				return nil, journal.Fail(ctx.Err(), execution.Ref{})
			}
			out.Failures = append(out.Failures, s.failed(ctx, it, now, err))
			continue
		}
		if worked {
			out.Removed++
		}
	}
	n, err := s.sweepObjects(ctx, r.Tenant, now)
	out.Removed += n
	if err != nil {
		e := execution.AsError(err)
		out.Failures = append(out.Failures, api.Failure{Tenant: r.Tenant, Code: e.Code, Message: e.Message})
	}
	if out.Removed > 0 {
		s.count(telemetry.RetentionRemoved, float64(out.Removed))
	}
	return out, nil
}

// due reads the work items whose time has come, the most overdue first within a
// shard. The index may lag by moments; each item is read again before anything is
// done.
func (s *Service) due(ctx context.Context, t execution.TenantID, limit int) (items []store.Item, now int64, err error) {
	for shard := range journal.DueShards {
		p := journal.RetainPartition(shard)
		if now == 0 {
			if now, err = s.now(ctx, store.Key{PK: p, SK: "now"}); err != nil {
				return nil, 0, err
			}
		}
		q := store.Query{PK: p, Index: "retain", ToN: &now, Limit: limit}
		taken := 0
		for taken < limit {
			page, _, err := s.Table.Query(ctx, q)
			if err != nil {
				return nil, 0, journal.Fail(err, execution.Ref{Tenant: t})
			}
			for _, it := range page.Items {
				if t == "" || tenantOf(it.Key()) == t {
					items = append(items, it)
					taken++
				}
			}
			if page.Next == nil {
				break
			}
			q.Start = page.Next
		}
	}
	slices.SortStableFunc(items, func(a, b store.Item) int { return int(a.Int(journal.HeadRetainDue) - b.Int(journal.HeadRetainDue)) })
	return items[:min(limit, len(items))], now, nil
}

// tenantOf is the tenant of a work item.
func tenantOf(k store.Key) execution.TenantID {
	t, _, _ := strings.Cut(k.PK, "#")
	return execution.TenantID(t)
}

// work does what is due on one item.
func (s *Service) work(ctx context.Context, k store.Key, now int64) (bool, error) {
	t, e, ok := execution.ParsePartitionKey(k.PK)
	switch {
	case ok && k.SK == journal.SKHead:
		return s.sweepHead(ctx, t, e)
	case ok && strings.HasPrefix(k.SK, journal.ReceiptPrefix):
		it, _, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
		if err != nil || it == nil {
			return false, journal.Fail(err, execution.Ref{Tenant: t, Execution: e})
		}
		return s.sweepReceipt(ctx, execution.Ref{Tenant: t, Execution: e, Generation: it.Int(journal.HeadGeneration)}, now)
	case strings.HasPrefix(k.SK, replanPrefix):
		return s.replan(ctx, k, now)
	}
	return false, nil
}

// failed puts a work item off, so that it does not starve the others, and
// reports it.
func (s *Service) failed(ctx context.Context, it store.Item, now int64, err error) api.Failure {
	k := it.Key()
	t, e, _ := execution.ParsePartitionKey(k.PK)
	failure := execution.AsError(err)
	if s.Log != nil {
		s.Log.WarnContext(ctx, "retention failed", "tenant", string(t), "execution", string(e), "item", k.SK, "code", string(failure.Code), "message", failure.Message)
	}
	s.count(telemetry.RetentionFailures, 1)
	due := it.Int(journal.HeadRetainDue)
	if _, err := s.update(ctx, execution.Ref{Tenant: t, Execution: e}, store.Update{Key: k, Cond: store.Eq(journal.HeadRetainDue, store.N(due)),
		Actions: []store.Action{store.Set{Attr: journal.HeadRetainDue, Value: store.N(now + backoff)}}}); err != nil {
		s.log(ctx, "a failed work item could not be put off", "item", k.SK)
	}
	return api.Failure{Tenant: t, Execution: e, Code: failure.Code, Message: failure.Message}
}

// sweepHead does what is due for one execution, judged on a consistent read. It
// reports whether anything was removed or archived.
func (s *Service) sweepHead(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (bool, error) {
	for range retries {
		worked, err := s.judge(ctx, t, e)
		if !errors.Is(err, errMoved) {
			return worked, err
		}
	}
	return false, busy(execution.Ref{Tenant: t, Execution: e})
}

func (s *Service) judge(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (bool, error) {
	h, clock, err := s.Journal.ReadHead(ctx, t, e)
	if err != nil || h == nil {
		return false, err
	}
	now := s.Journal.NowOf(clock)
	if !h.Status.Known() {
		// Nothing may be done with it; a version that knows it finds it due again.
		_, err := s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), sameTime(journal.HeadRetainDue, h.RetainAt)}, Actions: journal.RetainActions(e, now+heldPoll)})
		return false, err
	}
	f, err := s.facts(ctx, h)
	if err != nil {
		return false, err
	}
	if f.Holds, err = s.Journal.HoldsOn(ctx, h); err != nil {
		return false, err
	}
	d := Plan(f, now)
	if h, err = s.arm(ctx, h, d); err != nil {
		return false, err
	}
	if len(f.Holds) > 0 && h.Expired(now) || len(f.Holds) > 0 && d.Next == now+heldPoll {
		s.log(ctx, "kept: held", "tenant", string(t), "execution", string(e), "holds", len(f.Holds))
		s.count(telemetry.RetentionHeld, 1)
	}
	switch d.Do {
	case Remove:
		_, err = s.deleteHead(ctx, h, why{reason: "expired", rule: d.Why, actor: &api.Actor{Kind: "system", ID: "retention"},
			still: store.All{store.Eq(journal.HeadStatus, store.S(string(h.Status))), store.Eq(journal.HeadExpires, store.N(h.ExpiresAt))}})
	case Erase:
		_, err = s.deleteHead(ctx, h, why{reason: h.Item.Str(journal.HeadAsked), rule: "asked for while held", actor: decodeActor(h.Item.Str(headAskedBy))})
	case Archive:
		_, err = s.archive(ctx, h.Tenant, h.Execution, execution.RequestID{}, &execution.Actor{Kind: "system", ID: "retention"})
	case Trim:
		err = s.trim(ctx, h, now)
	case Prune:
		return s.prune(ctx, h, f.Policy.History, now)
	default:
		return false, nil
	}
	switch execution.CodeOf(err) {
	case execution.Held:
		// A hold came between the judgement and the closing: looked at again later.
		_, err = s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: live(h), Actions: journal.RetainActions(e, now+heldPoll)})
		return false, err
	case execution.NotFound, execution.Deleted:
		return true, nil
	}
	return err == nil, err
}
