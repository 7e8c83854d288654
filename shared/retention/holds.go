package retention

import (
	"context"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Holds lists the holds in force: of an execution also those on its thread and
// subjects.
func (s *Service) Holds(ctx context.Context, r *api.HoldsRequest) (*api.HoldsReply, error) {
	if err := selected(r.Selector); err != nil {
		return nil, err
	}
	return s.holdsReply(ctx, &r.Common, r.Selector, false)
}

func (s *Service) holdsReply(ctx context.Context, c *api.Common, sel api.Selector, replayed bool) (*api.HoldsReply, error) {
	out := &api.HoldsReply{Holds: []api.HoldView{}}
	if sel.Execution == "" {
		k, err := s.holdset(ctx, c.Tenant, sel)
		if err != nil {
			return nil, err
		}
		it, _, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
		if err != nil {
			return nil, journal.Fail(err, execution.Ref{Tenant: c.Tenant})
		}
		out.Holds = append(out.Holds, setViews(it, sel)...)
	} else {
		h, own, err := s.ownHolds(ctx, c.Tenant, sel.Execution)
		if err != nil {
			return nil, err
		}
		sets, err := s.setHolds(ctx, h)
		if err != nil {
			return nil, err
		}
		out.Standing, out.Holds = standing(h), append(append(out.Holds, own...), sets...)
	}
	out.Replayed = replayed
	return out, nil
}

// ownHolds shows the holds on an execution itself: exactly those that its head
// names at one moment. What describes them is read after it; where that is gone by
// then, the head is read again, for another hold may have come instead, and in the
// end the bare hold is shown.
func (s *Service) ownHolds(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (*journal.Head, []api.HoldView, error) {
	for try := 0; ; try++ {
		h, _, err := s.head(ctx, t, e)
		if err != nil {
			return nil, nil, err
		}
		if h.Status == execution.StatusDeleting {
			return nil, nil, closing(h)
		}
		page, _, err := s.Table.Query(ctx, store.Query{PK: h.PK(), Prefix: journal.HoldPrefix, Consistent: true})
		if err != nil {
			return nil, nil, journal.Fail(err, h.Ref)
		}
		about := map[string]store.Item{}
		for _, it := range page.Items {
			about[strings.TrimPrefix(it.Key().SK, journal.HoldPrefix)] = it
		}
		whole := true
		var own []api.HoldView
		for _, id := range slices.Sorted(slices.Values(h.Holds)) {
			whole = whole && about[id] != nil
			own = append(own, holdView(id, about[id], api.Selector{Execution: e}))
		}
		if whole || try == retries-1 {
			return h, own, nil
		}
	}
}

// setHolds shows the holds that bind an execution by its thread and subjects.
func (s *Service) setHolds(ctx context.Context, h *journal.Head) (out []api.HoldView, err error) {
	for i, k := range h.Holdsets() {
		it, _, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
		if err != nil {
			return nil, journal.Fail(err, h.Ref)
		}
		if len(it[journal.HeadHolds].SS) == 0 {
			continue
		}
		on := api.Selector{Thread: h.Thread}
		if h.Thread == "" || i > 0 {
			on = api.Selector{Subject: s.subjectOf(ctx, h, k)}
		}
		out = append(out, setViews(it, on)...)
	}
	return out, nil
}

// subjectOf names the subject behind a holdset; its token where the key is away.
func (s *Service) subjectOf(ctx context.Context, h *journal.Head, k store.Key) string {
	token := strings.TrimPrefix(k.SK, journal.HoldsetPrefix+"subject#")
	opened, err := s.Journal.Open(ctx, h.Tenant, h.Execution, journal.OpenOptions{})
	if err != nil {
		return token
	}
	for _, subject := range opened.State.Subjects {
		if t, err := s.token(ctx, h.Tenant, "subject", subject); err == nil && t == token {
			return subject
		}
	}
	return token
}

func setViews(it store.Item, on api.Selector) []api.HoldView {
	var out []api.HoldView
	ids := slices.Clone(it[journal.HeadHolds].SS)
	slices.Sort(ids)
	for _, id := range ids {
		out = append(out, holdView(id, it[holdEach+id].M, on))
	}
	return out
}

func holdView(id string, about store.Item, on api.Selector) api.HoldView {
	return api.HoldView{Hold: id, Reason: about.Str(holdReason), Actor: decodeActor(about.Str(holdActor)), Since: api.TimeOrNil(about.Int(holdSince)), On: on}
}
