package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// PurgedPartition holds the receipts of purged tenants: outside of any tenant.
const PurgedPartition = "~purged"

// Phases of a purge, on the tenant's closing mark. Each goes through the
// registry, the complete list of what the tenant ever had.
const (
	purgeClose = int64(iota) // close and delete every execution
	purgeWait                // until nobody can write any more
	purgeWipe                // take stubs, receipts and what late writers left
	purgeProve               // a pass that finds nothing: rows go one by one
	purgeRest                // records of the tenant, bucket, keys, mark
	purgeShut                // keys went: until no process has one of them any more
)

// Attributes of the closing mark.
const (
	purgePhase   = "phase"
	purgeCursor  = "cursor"
	purgeStarted = "started_at"
	purgeUntil   = "until" // of purgeWait and purgeShut, ms
	purgeShred   = "shredded"
	purgeCount   = "executions"
)

// quiet is how long a purge waits after everything is closed: stubs of young
// entries (an hour), late writers (store.Window), presigned URLs and the key
// caches of other processes have run out then.
func (s *Service) quiet() int64 {
	return max(execution.StubSafety, s.Sealer.MaxAge()+store.Window, time.Hour).Milliseconds()
}

// PurgeTenant removes everything of a tenant. It is called again until it says
// done, with or without the cursor (where it stands is kept beside the mark);
// retry_after_ms says when it can go on. done: a pass over the tenant's whole
// registry, its own records and its prefix of the bucket, all versions, found
// nothing. Held executions stay and are listed; then it is never done. With
// shred the tenant's wrapped keys go at the end, and the tenant stays closed for
// another while: a process that still has one of them unwrapped would seal under
// it what nobody can open any more (seal.Sealer.Shred).
//
// It needs no key, may be killed at any call and run by several at once.
func (s *Service) PurgeTenant(ctx context.Context, r *api.PurgeTenantRequest) (*api.PurgeTenantReply, error) {
	p := &purge{s: s, r: r, out: &api.PurgeTenantReply{Counts: map[string]int64{}, Deferred: []api.Deferred{}}, left: api.ListLimit(r.Limit)}
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	for p.left > 0 && !p.stopped {
		phase := p.mark.Int(purgePhase)
		var err error
		switch phase {
		case purgeClose:
			err = p.pass(ctx, p.closeRow, p.closed)
		case purgeWait:
			err = p.wait(ctx, func(ctx context.Context) error { return p.move(ctx, purgeWipe) })
		case purgeWipe:
			err = p.pass(ctx, p.wipeRow, func(ctx context.Context) error { return p.move(ctx, purgeProve) })
		case purgeProve:
			err = p.pass(ctx, p.proveRow, func(ctx context.Context) error { return p.move(ctx, purgeRest) })
		case purgeShut:
			err = p.wait(ctx, p.rest)
		default:
			err = p.rest(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	if !p.out.Done && len(p.out.Deferred) == 0 {
		p.out.Cursor = api.Cursor("purge", p.mark.Str(purgeCursor))
	}
	p.out.Counts["executions"] = p.mark.Int(purgeCount)
	return p.out, nil
}

// purge is one call's part of a purge.
type purge struct {
	s       *Service
	r       *api.PurgeTenantRequest
	out     *api.PurgeTenantReply
	mark    store.Item
	now     int64
	left    int // rows that this call may still work on
	stopped bool
}

func (p *purge) ref() execution.Ref { return execution.Ref{Tenant: p.r.Tenant} }

func (p *purge) key() store.Key { return journal.ClosingKey(p.r.Tenant) }

// open reads the closing mark, or sets it: from then on nothing of the tenant is
// created.
//
// Lost: no purge has begun. Landed, reply lost, or a crash: the next call finds
// the mark.
func (p *purge) open(ctx context.Context) error {
	for try := 0; try < retries; try++ {
		it, meta, err := p.s.Table.Get(ctx, store.Get{Key: p.key(), Consistent: true})
		if err != nil {
			return journal.Fail(err, p.ref())
		}
		if meta.Date.IsZero() {
			return execution.Errorf(execution.Unavailable, "the store's answer carried no time")
		}
		p.mark, p.now = it, meta.Date.UnixMilli()
		if it != nil {
			return nil
		}
		_, err = p.s.update(ctx, p.ref(), store.Update{Key: p.key(), Cond: store.NotThere(), ValidatedAt: meta.Date, Actions: []store.Action{
			store.Set{Attr: purgePhase, Value: store.N(purgeClose)}, store.Set{Attr: purgeCursor, Value: store.S("")}, store.Set{Attr: purgeStarted, Value: store.N(p.now)},
			store.Set{Attr: purgeCount, Value: store.N(0)}}})
		if err != nil {
			return err
		}
	}
	return busy(p.ref())
}

// change writes onto the mark, provided that nobody else moved the purge on, and
// reads it again.
func (p *purge) change(ctx context.Context, acts ...store.Action) error {
	same := store.All{store.Eq(purgePhase, p.mark[purgePhase]), store.Eq(purgeCursor, p.mark[purgeCursor])}
	if _, err := p.s.update(ctx, p.ref(), store.Update{Key: p.key(), Cond: same, Actions: acts}); err != nil {
		return err
	}
	it, _, err := p.s.Table.Get(ctx, store.Get{Key: p.key(), Consistent: true})
	if err != nil {
		return journal.Fail(err, p.ref())
	}
	if it == nil { // somebody else has finished
		p.out.Done, p.stopped = true, true
		return nil
	}
	p.mark = it
	return nil
}

func (p *purge) move(ctx context.Context, phase int64, more ...store.Action) error {
	return p.change(ctx, append([]store.Action{store.Set{Attr: purgePhase, Value: store.N(phase)}, store.Set{Attr: purgeCursor, Value: store.S("")}}, more...)...)
}

// pass goes on through the registry with one phase's work on each row.
func (p *purge) pass(ctx context.Context, row func(context.Context, execution.Ref) error, end func(context.Context) error) error {
	reg := &registry{s: p.s, tenant: p.r.Tenant, cursor: p.mark.Str(purgeCursor)}
	rows, err := reg.next(ctx, min(p.left, 25))
	if err != nil {
		return err
	}
	for _, ref := range rows {
		if err := row(ctx, ref); err != nil {
			return err
		}
		p.left--
	}
	if !reg.done {
		return p.change(ctx, store.Set{Attr: purgeCursor, Value: store.S(reg.cursor)})
	}
	return end(ctx)
}

// closeRow closes and deletes one execution, unless it is held.
func (p *purge) closeRow(ctx context.Context, ref execution.Ref) error {
	receipt, err := p.s.close(ctx, ref, why{reason: "purge of the tenant", rule: "purge_tenant", actor: p.r.Actor, request: p.r.RequestID, hash: p.r.Hash})
	if execution.CodeOf(err) == execution.Held {
		holds, _ := execution.AsError(err).Facts["holds"].([]string)
		p.out.Deferred = append(p.out.Deferred, api.Deferred{Execution: ref.Execution, Holds: holds})
		return nil
	}
	if err != nil || receipt == nil || receipt.Str(journal.ReceiptState) == journal.ReceiptDeleted {
		return err
	}
	if _, err = p.s.finish(ctx, ref, receipt); execution.CodeOf(err) == execution.NotFound {
		return nil // another call has got further
	}
	return err
}

// closed ends the first pass. With holds the purge stops here, and a later call
// begins the pass anew. The wait counts from now, after the last look, and not
// from when the call began: it may have stood still since, while others closed
// what it now finds gone.
func (p *purge) closed(ctx context.Context) error {
	rows, held, err := p.held(ctx)
	if err != nil {
		return err
	}
	if held {
		p.stopped = true
		return p.move(ctx, purgeClose)
	}
	if p.now, err = p.s.now(ctx, p.key()); err != nil {
		return err
	}
	return p.move(ctx, purgeWait, store.Set{Attr: purgeUntil, Value: store.N(p.now + p.s.quiet())}, store.Set{Attr: purgeCount, Value: store.N(rows)})
}

// held looks for holds: on executions (found by this call's or an earlier call's
// part of the pass) and on threads and subjects. It counts the registry's rows.
func (p *purge) held(ctx context.Context) (count int64, held bool, err error) {
	reg := &registry{s: p.s, tenant: p.r.Tenant}
	for !reg.done {
		rows, err := reg.next(ctx, 100)
		if err != nil {
			return 0, false, err
		}
		count += int64(len(rows))
		heads, err := p.s.heads(ctx, rows)
		if err != nil {
			return 0, false, err
		}
		if len(heads) > 0 {
			return count, true, p.listHeld(ctx, heads)
		}
	}
	page, _, err := p.s.Table.Query(ctx, store.Query{PK: string(p.r.Tenant), Prefix: journal.HoldsetPrefix, Consistent: true})
	if err != nil {
		return 0, false, journal.Fail(err, p.ref())
	}
	for _, it := range page.Items {
		if holds := it[journal.HeadHolds].SS; len(holds) > 0 {
			p.out.Deferred = append(p.out.Deferred, api.Deferred{Holds: holds})
		}
	}
	return count, len(p.out.Deferred) > 0, nil
}

// listHeld lists executions that are still there at the end of the pass.
func (p *purge) listHeld(ctx context.Context, heads []*journal.Head) error {
	for _, h := range heads {
		listed := false
		for _, d := range p.out.Deferred {
			listed = listed || d.Execution == h.Execution
		}
		if listed {
			continue
		}
		holds, err := p.s.Journal.HoldsOn(ctx, h)
		if err != nil {
			return err
		}
		p.out.Deferred = append(p.out.Deferred, api.Deferred{Execution: h.Execution, Holds: holds})
	}
	return nil
}

// wait goes on once the time has come that the mark names.
func (p *purge) wait(ctx context.Context, on func(context.Context) error) error {
	if left := p.mark.Int(purgeUntil) - p.now; left > 0 {
		p.out.RetryAfterMS, p.stopped = left, true
		return nil
	}
	return on(ctx)
}

// wipeRow empties a partition: nobody writes to it any more, so nothing in it
// needs to stay.
func (p *purge) wipeRow(ctx context.Context, ref execution.Ref) error {
	return p.wipe(ctx, ref.PK(), "")
}

// wipe removes every item of a partition but one sort key, until a pass finds
// none.
func (p *purge) wipe(ctx context.Context, pk, but string) error {
	for {
		found := 0
		q := store.Query{PK: pk, Consistent: true}
		for {
			page, _, err := p.s.Table.Query(ctx, q)
			if err != nil {
				return journal.Fail(err, p.ref())
			}
			var keys []store.Key
			for _, it := range page.Items {
				if k := it.Key(); k.SK != but {
					keys = append(keys, k)
				}
			}
			found += len(keys)
			if err := p.s.batchDelete(ctx, p.ref(), keys); err != nil {
				return err
			}
			if page.Next == nil {
				break
			}
			q.Start = page.Next
		}
		if found == 0 {
			return nil
		}
	}
}

// proveRow shows that a partition is empty and only then takes its row away. It
// is not: a writer came late after all, everything is wiped and looked at again.
func (p *purge) proveRow(ctx context.Context, ref execution.Ref) error {
	page, _, err := p.s.Table.Query(ctx, store.Query{PK: ref.PK(), Limit: 1, Consistent: true})
	if err != nil {
		return journal.Fail(err, ref)
	}
	if len(page.Items) > 0 {
		if err := p.wipeRow(ctx, ref); err != nil {
			return err
		}
		return p.proveRow(ctx, ref)
	}
	return p.s.batchDelete(ctx, ref, []store.Key{journal.RegistryKey(ref)})
}

// rest takes what is left: the tenant's own records, its whole prefix of the
// bucket, with shred its keys, and last the mark, leaving the purge's receipt.
//
// A crash before the last transaction repeats all of it; after it the tenant is
// one that never was.
func (p *purge) rest(ctx context.Context) error {
	reg := &registry{s: p.s, tenant: p.r.Tenant}
	for !reg.done {
		rows, err := reg.next(ctx, 100)
		if err != nil {
			return err
		}
		if len(rows) > 0 { // a row that another call's pass left
			return p.move(ctx, purgeWipe)
		}
	}
	if err := p.wipe(ctx, string(p.r.Tenant), p.key().SK); err != nil {
		return err
	}
	if err := p.s.objects(ctx, p.ref(), string(p.r.Tenant)+"/"); err != nil {
		return err
	}
	if p.r.Shred && p.mark.Int(purgePhase) != purgeShut {
		return p.shred(ctx)
	}
	now, err := p.s.now(ctx, p.key())
	if err != nil {
		return err
	}
	k := store.Key{PK: PurgedPartition, SK: string(p.r.Tenant) + "#" + fmt.Sprintf("%015d", p.mark.Int(purgeStarted))}
	receipt := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "tenant": store.S(string(p.r.Tenant)), purgeStarted: p.mark[purgeStarted], "done_at": store.N(now),
		purgeCount: p.mark[purgeCount], purgeShred: store.Bool(p.mark[purgeShred].Bool), receiptBackups: store.N(now + p.s.backupDays()*day),
		"proof": store.S("a pass over the registry, the tenant's records and all versions below its prefix found nothing")}
	if p.r.Actor != nil {
		receipt[receiptActor] = store.S(encodeActor(p.r.Actor))
	}
	if err := p.keep(ctx, k); err != nil {
		return err
	}
	// The receipt first: a crash between the two leaves the mark, and the repeat
	// finds nothing and writes the same receipt again. (They belong to different
	// owners: no call is about both.)
	if err := p.s.transact(ctx, p.ref(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: receipt}}}}); err != nil {
		return err
	}
	err = p.s.transact(ctx, p.ref(), store.Transact{Writes: []store.Write{{Delete: &store.Delete{Key: p.key(), Cond: store.Eq(purgeStarted, p.mark[purgeStarted])}}}})
	if err != nil && !refused(err) {
		return err
	}
	p.out.Done, p.stopped = true, true
	return nil
}

// shred deletes the keys; the wait counts from then: what a process sealed under a
// key that it had fetched before lands within the validation window or never.
//
// A crash in between: the keys are gone, and the repeat begins the wait.
func (p *purge) shred(ctx context.Context) error {
	if err := p.s.Sealer.Shred(ctx, string(p.r.Tenant)); err != nil {
		return err
	}
	now, err := p.s.now(ctx, p.key())
	if err != nil {
		return err
	}
	return p.move(ctx, purgeShut, store.Set{Attr: purgeUntil, Value: store.N(now + (p.s.Sealer.MaxAge() + store.Window).Milliseconds())}, store.Set{Attr: purgeShred, Value: store.Bool(true)})
}

// keep also writes the purge down in the bucket, for a restore of the table from
// a backup: the tenant must be purged again then.
func (p *purge) keep(ctx context.Context, k store.Key) error {
	body, err := json.Marshal(map[string]any{"tenant": p.r.Tenant, "started_at": api.Time(p.mark.Int(purgeStarted)), "executions": p.mark.Int(purgeCount)})
	if err != nil {
		return execution.Errorf(execution.Internal, "a receipt cannot be encoded").Because(err)
	}
	for try := 0; ; try++ {
		_, err := p.s.Bucket.Put(ctx, store.PutObject{Key: k.PK + "/" + strings.Replace(k.SK, "#", "/", 1) + ".json", Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body), MediaType: "application/json"})
		if err == nil || store.KindOf(err) == store.Exists {
			return nil
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return journal.Fail(err, p.ref())
		}
	}
}
