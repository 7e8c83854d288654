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
		h, _, err := s.head(ctx, c.Tenant, sel.Execution)
		if err != nil {
			return nil, err
		}
		if h.Status == execution.StatusDeleting {
			return nil, closing(h)
		}
		out.Standing = standing(h)
		if out.Holds, err = s.executionHolds(ctx, h); err != nil {
			return nil, err
		}
	}
	out.Replayed = replayed
	return out, nil
}

// executionHolds shows all holds that bind an execution.
func (s *Service) executionHolds(ctx context.Context, h *journal.Head) ([]api.HoldView, error) {
	out := []api.HoldView{}
	page, _, err := s.Table.Query(ctx, store.Query{PK: h.PK(), Prefix: journal.HoldPrefix, Consistent: true})
	if err != nil {
		return nil, journal.Fail(err, h.Ref)
	}
	for _, it := range page.Items {
		id := strings.TrimPrefix(it.Key().SK, journal.HoldPrefix)
		if slices.Contains(h.Holds, id) {
			out = append(out, holdView(id, it, api.Selector{Execution: h.Execution}))
		}
	}
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
