package retention

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Attributes of a hold. Its reason is an operator's text and stands plain: holds
// are placed and shown while the tenant's key is away.
const (
	holdReason = "reason"
	holdActor  = "actor"
	holdSince  = "since"
	// holdEach begins the attribute of a holdset that describes one hold.
	holdEach = "hold#"
)

// Hold keeps an execution, or everything of a thread or subject, from being
// removed, pruned or archived. The same hold again changes nothing. Errors:
// RequestMismatch when it is in force for another reason; NotFound; Deleted {in_progress} when a deletion has closed the execution;
// TooLarge beyond execution.MaxHolds; KeyUnavailable for a subject, whose token
// needs the tenant's key.
func (s *Service) Hold(ctx context.Context, r *api.HoldRequest) (*api.HoldReply, error) {
	if err := selected(r.Selector); err != nil {
		return nil, err
	}
	if r.Execution != "" {
		replayed, err := s.holdExecution(ctx, r)
		if err != nil {
			return nil, err
		}
		return s.holdsReply(ctx, &r.Common, r.Selector, replayed)
	}
	// From before the subject's token is made: one of a key that a purge has taken
	// since would be a hold that nobody can end. The purge leaves the tenant closed
	// for longer than such a write may be on its way.
	since, err := s.now(ctx, journal.ClosingKey(r.Tenant))
	if err != nil {
		return nil, err
	}
	k, err := s.holdset(ctx, r.Tenant, r.Selector)
	if err != nil {
		return nil, err
	}
	replayed, err := s.holdSet(ctx, r, k, time.UnixMilli(since))
	if err != nil {
		return nil, err
	}
	return s.holdsReply(ctx, &r.Common, r.Selector, replayed)
}

// holdset is the item of a thread's or subject's holds.
func (s *Service) holdset(ctx context.Context, t execution.TenantID, sel api.Selector) (store.Key, error) {
	if sel.Thread != "" {
		return journal.ThreadHoldset(t, sel.Thread), nil
	}
	token, err := s.token(ctx, t, "subject", sel.Subject)
	return journal.SubjectHoldset(t, token), err
}

// holdExecution puts the hold into the head's set and writes its item, in one
// transaction: the set is what a closing transaction is held against.
func (s *Service) holdExecution(ctx context.Context, r *api.HoldRequest) (replayed bool, err error) {
	for try := 0; try < retries; try++ {
		h, clock, err := s.head(ctx, r.Tenant, r.Execution)
		if err != nil {
			return false, err
		}
		now := s.Journal.NowOf(clock)
		switch {
		case h.Status == execution.StatusDeleting:
			return false, closing(h)
		case slices.Contains(h.Holds, r.Hold):
			it, _, err := s.Table.Get(ctx, store.Get{Key: store.Key{PK: h.PK(), SK: journal.HoldPrefix + r.Hold}, Consistent: true})
			if err != nil {
				return false, journal.Fail(err, h.Ref)
			}
			if it == nil && try < retries-1 {
				continue // released since, by somebody whose reason it was
			}
			return true, sameHold(r, it)
		case len(h.Holds) >= execution.MaxHolds:
			return false, execution.Errorf(execution.TooLarge, "the execution has as many holds as it may have").With("execution", string(h.Execution)).With("limit", execution.MaxHolds)
		}
		if h.Expired(now) {
			return false, execution.Errorf(execution.Deleted, "the execution's time is over").With("execution", string(h.Execution)).With("expired", true)
		}
		item := store.Item{store.AttrPK: store.S(h.PK()), store.AttrSK: store.S(journal.HoldPrefix + r.Hold), journal.HeadGeneration: store.N(h.Generation)}
		for name, v := range describe(r, now) {
			item[name] = v
		}
		// Lost: no hold. Landed, reply lost: the repeat finds the hold. A crash right
		// after: the hold is in force.
		err = s.transact(ctx, h.Ref, store.Transact{ValidatedAt: clock.Date(), Writes: []store.Write{
			{Update: &store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), holdsAsRead(h)}, Actions: []store.Action{store.AddToSet{Attr: journal.HeadHolds, Values: []string{r.Hold}}}}},
			{Put: &store.Put{Item: item}},
		}})
		if err == nil {
			s.Journal.Forget(r.Tenant, r.Execution)
			return false, nil
		}
		if !refused(err) {
			return false, err
		}
	}
	return false, busy(execution.Ref{Tenant: r.Tenant, Execution: r.Execution})
}

// live is the condition that the head is of this generation and not closing.
func live(h *journal.Head) store.Cond {
	return store.All{store.Eq(journal.HeadGeneration, store.N(h.Generation)), store.Not{Cond: store.Eq(journal.HeadStatus, store.S(string(execution.StatusDeleting)))}}
}

// holdsAsRead is the condition that the head's holds did not change since.
func holdsAsRead(h *journal.Head) store.Cond {
	if len(h.Holds) == 0 {
		return store.Absent{Attr: journal.HeadHolds}
	}
	return store.Eq(journal.HeadHolds, store.SS(h.Holds...))
}

func closing(h *journal.Head) error {
	return execution.Errorf(execution.Deleted, "the execution is being deleted").With("execution", string(h.Execution)).With("in_progress", true)
}

func busy(ref execution.Ref) error {
	return execution.Errorf(execution.Unavailable, "the execution is changed by many at once: repeat the same request").With("execution", string(ref.Execution))
}

// refused reports a transaction that a condition stopped.
func refused(err error) bool {
	var c *store.Cancelled
	return errors.As(err, &c)
}

// transact makes a transaction, again under the same token while its outcome is
// unknown. A *store.Cancelled comes back as it is; everything else is one of the
// closed codes.
func (s *Service) transact(ctx context.Context, ref execution.Ref, in store.Transact) error {
	token, err := s.Journal.Token()
	if err != nil {
		return err
	}
	in.Token = token
	for try := 0; ; try++ {
		_, err := s.Table.Transact(ctx, in)
		if err == nil || refused(err) {
			return err
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return journal.Fail(err, ref)
		}
		if err := s.pause(ctx, try, ref); err != nil {
			return err
		}
	}
}

// describe is what is kept about a hold.
func describe(r *api.HoldRequest, now int64) map[string]store.Value {
	m := map[string]store.Value{holdReason: store.S(r.Reason), holdSince: store.N(now)}
	if r.Actor != nil {
		m[holdActor] = store.S(encodeActor(r.Actor))
	}
	return m
}

// sameHold refuses a hold under an id that is in force for another reason: whoever
// releases that one would end this one too, unknowing.
func sameHold(r *api.HoldRequest, kept map[string]store.Value) error {
	if reason := kept[holdReason].S; reason != "" && reason != r.Reason {
		return execution.Errorf(execution.RequestMismatch, "this hold is in force for another reason: place another one").With("hold", r.Hold).With("field", "reason")
	}
	return nil
}

func encodeActor(a *api.Actor) string {
	b, _ := json.Marshal(a) // plain strings
	return string(b)
}

func decodeActor(text string) *api.Actor {
	var a api.Actor
	if text == "" || json.Unmarshal([]byte(text), &a) != nil {
		return nil
	}
	return &a
}

// holdSet adds a hold to those of a thread or subject; since is when it was asked
// for.
func (s *Service) holdSet(ctx context.Context, r *api.HoldRequest, k store.Key, since time.Time) (replayed bool, err error) {
	ref := execution.Ref{Tenant: r.Tenant}
	for try := 0; try < retries; try++ {
		it, meta, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
		if err != nil {
			return false, journal.Fail(err, ref)
		}
		holds := it[journal.HeadHolds].SS
		switch {
		case slices.Contains(holds, r.Hold):
			return true, sameHold(r, it[holdEach+r.Hold].M)
		case len(holds) >= execution.MaxHolds:
			return false, execution.Errorf(execution.TooLarge, "as many holds as there may be").With("limit", execution.MaxHolds)
		}
		same := store.Cond(store.Absent{Attr: journal.HeadHolds})
		if len(holds) > 0 {
			same = store.Eq(journal.HeadHolds, store.SS(holds...))
		}
		// As for one execution; a tenant that is being purged takes no new holds.
		err = s.transact(ctx, ref, store.Transact{ValidatedAt: since, Writes: []store.Write{
			{Update: &store.Update{Key: k, Cond: same, Actions: []store.Action{store.AddToSet{Attr: journal.HeadHolds, Values: []string{r.Hold}},
				store.Set{Attr: holdEach + r.Hold, Value: store.Value{Kind: store.KindM, M: describe(r, meta.Date.UnixMilli())}}}}},
			{Check: &store.Check{Key: journal.ClosingKey(r.Tenant), Cond: store.NotThere()}},
		}})
		if err == nil {
			return false, nil
		}
		var c *store.Cancelled
		if !errors.As(err, &c) {
			return false, err
		}
		if len(c.Reasons) > 1 && c.Reasons[1] == store.ReasonCondition {
			return false, execution.Errorf(execution.Deleted, "the tenant is being purged").With("in_progress", true)
		}
	}
	return false, busy(ref)
}

// ReleaseHold ends a hold; one that is not in force changes nothing. What waited
// for it becomes due.
func (s *Service) ReleaseHold(ctx context.Context, r *api.ReleaseHoldRequest) (*api.ReleaseHoldReply, error) {
	if err := selected(r.Selector); err != nil {
		return nil, err
	}
	var replayed bool
	var err error
	if r.Execution != "" {
		replayed, err = s.releaseExecution(ctx, r)
	} else {
		replayed, err = s.releaseSet(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return s.holdsReply(ctx, &r.Common, r.Selector, replayed)
}

func (s *Service) releaseExecution(ctx context.Context, r *api.ReleaseHoldRequest) (replayed bool, err error) {
	for try := 0; try < retries; try++ {
		h, clock, err := s.head(ctx, r.Tenant, r.Execution)
		if err != nil {
			return false, err
		}
		if h.Status == execution.StatusDeleting {
			return false, closing(h)
		}
		if !slices.Contains(h.Holds, r.Hold) {
			return true, nil
		}
		acts := []store.Action{store.RemoveFromSet{Attr: journal.HeadHolds, Values: []string{r.Hold}}}
		if h.RetainAt > 0 || h.Asked() {
			acts = append(acts, journal.RetainActions(h.Execution, s.Journal.NowOf(clock))...)
		}
		// Lost: still held. Landed, reply lost: the repeat finds no such hold. A crash
		// right after: released, and what waited for it is due.
		err = s.transact(ctx, h.Ref, store.Transact{ValidatedAt: clock.Date(), Writes: []store.Write{
			{Update: &store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), holdsAsRead(h)}, Actions: acts}},
			{Delete: &store.Delete{Key: store.Key{PK: h.PK(), SK: journal.HoldPrefix + r.Hold}}},
		}})
		if err == nil {
			s.Journal.Forget(r.Tenant, r.Execution)
			return false, nil
		}
		if !refused(err) {
			return false, err
		}
	}
	return false, busy(execution.Ref{Tenant: r.Tenant, Execution: r.Execution})
}

func (s *Service) releaseSet(ctx context.Context, r *api.ReleaseHoldRequest) (replayed bool, err error) {
	k, err := s.holdset(ctx, r.Tenant, r.Selector)
	if err != nil {
		return false, err
	}
	ref := execution.Ref{Tenant: r.Tenant}
	changed, err := s.update(ctx, ref, store.Update{Key: k, Cond: store.Contains{Attr: journal.HeadHolds, Value: r.Hold},
		Actions: []store.Action{store.RemoveFromSet{Attr: journal.HeadHolds, Values: []string{r.Hold}}, store.Remove{Attr: holdEach + r.Hold}}})
	if err != nil {
		return false, err
	}
	// The last hold leaves an empty item; a hold that comes between keeps it.
	if _, _, err := s.Table.Delete(ctx, store.Delete{Key: k, Cond: store.Absent{Attr: journal.HeadHolds}}); err != nil {
		var cf *store.ConditionFailed
		if !errors.As(err, &cf) {
			return false, journal.Fail(err, ref)
		}
	}
	return !changed, s.wake(ctx, r.Tenant, r.Selector)
}

// wakeRows bounds how many executions the release of a thread's or subject's
// hold brings forward; the others are due by themselves within heldPoll.
const wakeRows = 1000

// wake makes due what waited for a hold on its thread or subject.
func (s *Service) wake(ctx context.Context, t execution.TenantID, sel api.Selector) error {
	w := walk{s: s, tenant: t, sel: sel}
	for seen := 0; seen < wakeRows; {
		heads, more, err := w.next(ctx, 100)
		if err != nil {
			return err
		}
		for _, h := range heads {
			seen++
			if h.RetainAt == 0 && !h.Asked() {
				continue
			}
			_, err := s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: live(h), Actions: journal.RetainActions(h.Execution, w.now)})
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
	return nil
}
