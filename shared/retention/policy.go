package retention

import (
	"context"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// replanPrefix begins the sort key of the work item that a changed policy leaves
// in its tenant's partition.
const replanPrefix = "replan#"

// Attributes of that item.
const (
	replanCursor = "cursor" // shard and row of the registry to go on from
	replanPass   = "pass"
	replanChange = "change" // random: a newer change starts anew
)

// secondLook is when executions are planned anew a second time after a change of
// their policy: an ending that had read the old one has landed by then.
const secondLook = 10 * 60_000

// SetPolicy stores a policy. Executions that name it are planned anew, both
// ways: a first stretch at once, the rest by sweeps; and each when it is due.
//
// A crash between the two writes leaves the policy stored and the executions
// planned as before until each is due; the same request again completes it.
func (s *Service) SetPolicy(ctx context.Context, r *api.SetPolicyRequest) (*api.SetPolicyReply, error) {
	p := r.Policy
	if p.History != nil && p.History.Keep != "all" && p.History.N == 0 {
		return nil, execution.Invalid("policy.history.n", "is required where not all versions are kept")
	}
	if p.History != nil && p.History.Keep == "all" && p.History.N != 0 {
		return nil, execution.Invalid("policy.history.n", "makes no sense where all versions are kept")
	}
	if err := s.Catalog.SetPolicy(ctx, r.Tenant, &p); err != nil {
		return nil, err
	}
	change, err := s.Journal.Token()
	if err != nil {
		return nil, err
	}
	ref := execution.Ref{Tenant: r.Tenant}
	k := store.Key{PK: string(r.Tenant), SK: replanPrefix + p.Name}
	now, err := s.now(ctx, k)
	if err != nil {
		return nil, err
	}
	it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), replanChange: store.S(change), replanPass: store.N(1), replanCursor: store.S("")}
	setRetain(it, execution.ExecutionID(p.Name), now)
	err = s.transact(ctx, ref, store.Transact{Writes: []store.Write{{Put: &store.Put{Item: it}}, {Check: &store.Check{Key: journal.ClosingKey(r.Tenant), Cond: store.NotThere()}}}})
	if refused(err) {
		return nil, execution.Errorf(execution.Deleted, "the tenant is being purged").With("in_progress", true)
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.replan(ctx, k, now); err != nil {
		return nil, err
	}
	return &api.SetPolicyReply{Policy: &p}, nil
}

// GetPolicy shows a policy; NotFound when it was never set.
func (s *Service) GetPolicy(ctx context.Context, r *api.GetPolicyRequest) (*api.GetPolicyReply, error) {
	p, err := s.Catalog.Policy(ctx, r.Tenant, r.Policy.Name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, execution.Errorf(execution.NotFound, "no such policy").With("policy", r.Policy.Name)
	}
	return &api.GetPolicyReply{Policy: p}, nil
}

// now asks the store for its time, by reading an item.
func (s *Service) now(ctx context.Context, k store.Key) (int64, error) {
	_, meta, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
	if err != nil {
		return 0, journal.Fail(err, execution.Ref{})
	}
	if meta.Date.IsZero() {
		return 0, execution.Errorf(execution.Unavailable, "the store's answer carried no time")
	}
	return meta.Date.UnixMilli(), nil
}

// replanRows is how many registry rows one call plans anew.
const replanRows = 500

// replan goes on with a changed policy: it walks the tenant's registry from
// where the item says. It costs what the tenant has, once (twice) per change.
func (s *Service) replan(ctx context.Context, k store.Key, now int64) (worked bool, err error) {
	t := execution.TenantID(k.PK)
	it, _, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
	if err != nil || it == nil || it.Int(journal.HeadRetainDue) > now {
		return false, journal.Fail(err, execution.Ref{Tenant: t})
	}
	name := strings.TrimPrefix(k.SK, replanPrefix)
	policy, err := s.Catalog.Policy(ctx, t, name)
	if err != nil {
		return false, err
	}
	reg := &registry{s: s, tenant: t, cursor: it.Str(replanCursor)}
	for seen := 0; seen < replanRows && !reg.done; {
		rows, err := reg.next(ctx, 100)
		if err != nil {
			return false, err
		}
		seen += max(len(rows), 1)
		heads, err := s.heads(ctx, rows)
		if err != nil {
			return false, err
		}
		for _, h := range heads {
			if h.Policy != name {
				continue
			}
			f, err := s.facts(ctx, h)
			if err != nil {
				return false, err
			}
			f.Policy = policy
			if _, err := s.arm(ctx, h, Plan(f, now)); err != nil {
				return false, err
			}
		}
	}
	// The item changes only if no newer change of the policy has replaced it.
	mine := store.Eq(replanChange, it[replanChange])
	switch {
	case !reg.done:
		_, err = s.update(ctx, execution.Ref{Tenant: t}, store.Update{Key: k, Cond: mine, Actions: []store.Action{store.Set{Attr: replanCursor, Value: store.S(reg.cursor)}}})
	case it.Int(replanPass) == 1:
		_, err = s.update(ctx, execution.Ref{Tenant: t}, store.Update{Key: k, Cond: mine, Actions: append([]store.Action{store.Set{Attr: replanCursor, Value: store.S("")},
			store.Set{Attr: replanPass, Value: store.N(2)}}, journal.RetainActions(execution.ExecutionID(name), now+secondLook)...)})
	default:
		if _, _, err = s.Table.Delete(ctx, store.Delete{Key: k, Cond: mine}); err != nil {
			if _, gone := err.(*store.ConditionFailed); gone {
				err = nil
			}
			err = journal.Fail(err, execution.Ref{Tenant: t})
		}
	}
	return true, err
}

// arm writes a decision's times onto a head when they are others than before,
// and gives the head as it is then. It changes nothing else, and nothing at all
// once the status has changed.
func (s *Service) arm(ctx context.Context, h *journal.Head, d Decision) (*journal.Head, error) {
	if d.ExpiresAt == h.ExpiresAt && d.Next == h.RetainAt || !h.Status.Known() || h.Status == execution.StatusDeleting {
		return h, nil
	}
	acts := journal.RetainActions(h.Execution, d.Next)
	if d.ExpiresAt == 0 {
		acts = append(acts, store.Remove{Attr: journal.HeadExpires})
	} else {
		acts = append(acts, store.Set{Attr: journal.HeadExpires, Value: store.N(d.ExpiresAt)})
	}
	// Lost: planned as before, the next look finds the same. Landed, reply lost: the
	// repeat writes the same.
	changed, err := s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), store.Eq(journal.HeadStatus, store.S(string(h.Status))), sameTime(journal.HeadEnded, h.EndedAt), journal.AskedAsRead(h)}, Actions: acts})
	if err != nil || !changed {
		return h, err
	}
	c := *h
	c.ExpiresAt, c.RetainAt = d.ExpiresAt, d.Next
	return &c, nil
}

func sameTime(attr string, ms int64) store.Cond {
	if ms == 0 {
		return store.Absent{Attr: attr}
	}
	return store.Eq(attr, store.N(ms))
}

// registry walks the complete list of a tenant's executions, consistently. Its
// cursor is "<shard>#<row>"; "" is the beginning.
type registry struct {
	s      *Service
	tenant execution.TenantID
	cursor string
	done   bool
	now    int64 // store time of the last read, ms
}

func (r *registry) next(ctx context.Context, n int) ([]execution.Ref, error) {
	n = max(n, 1)
	head, after, _ := strings.Cut(r.cursor, "#")
	shard, _ := strconv.Atoi(head)
	q := store.Query{PK: journal.RegistryPartition(r.tenant, shard), Limit: n, Consistent: true}
	if after != "" {
		q.From, q.To = after+"\x00", "\U0010FFFF"
	}
	page, meta, err := r.s.Table.Query(ctx, q)
	if err != nil {
		return nil, journal.Fail(err, execution.Ref{Tenant: r.tenant})
	}
	r.now = meta.Date.UnixMilli()
	var out []execution.Ref
	for _, it := range page.Items {
		after = it.Key().SK
		if ref, ok := rowRef(r.tenant, it); ok {
			out = append(out, ref)
		}
	}
	switch {
	case page.Next != nil:
		r.cursor = strconv.Itoa(shard) + "#" + after
	case shard+1 < journal.RegistryShards:
		r.cursor = strconv.Itoa(shard+1) + "#"
	default:
		r.done = true
	}
	return out, nil
}

// heads reads the heads of registry rows whose generation still lives.
func (s *Service) heads(ctx context.Context, rows []execution.Ref) ([]*journal.Head, error) {
	keys := make([]store.Key, 0, len(rows))
	for _, ref := range rows {
		keys = append(keys, journal.HeadKey(ref.PK()))
	}
	found, err := s.getMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []*journal.Head
	for _, ref := range rows {
		h, ok := journal.ParseHead(found[journal.HeadKey(ref.PK())])
		if ok && h.Generation == ref.Generation {
			out = append(out, h)
		}
	}
	return out, nil
}
