package retention

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Orphans are objects that no entry names: staged artifacts that were never
// accepted, oversize bodies whose entry never landed, unfinished uploads, views.
// Nobody notes them down (that would cost every step a write), so they are found
// by listing the bucket in rounds, a stretch per sweep. A round looks into an
// execution only for objects that came of age since the last round, so each
// object is judged once in its life; the listing itself costs one request per
// 1,000 objects and round.
//
// An object of age is older than the grace plus an hour: whoever wanted to name
// it in an entry had to do so an hour before the grace was over (M).
const (
	ofAge = int64((execution.ArtifactGrace + execution.ArtifactMargin) / 1e6)
	// roundEvery is how often the scheduled sweep begins a round over the bucket; a
	// sweep of one tenant begins one whenever none is under way.
	roundEvery = hour
	// pagesAtOnce bounds the listing of one sweep.
	pagesAtOnce = 10
)

// Attributes of a round's item.
const (
	roundCursor  = "cursor"
	roundStarted = "started_at"
	roundHorizon = "horizon" // objects older than that were judged by an earlier round
	roundFailed  = "failed"  // something could not be judged: the horizon stays
)

func roundKey(t execution.TenantID) store.Key {
	if t == "" {
		return store.Key{PK: "~sweep", SK: "objects"}
	}
	return store.Key{PK: string(t), SK: "sweep#objects"}
}

// sweepObjects goes on with a round over the bucket, of one tenant or of all,
// and gives the number of objects removed.
//
// Two sweeps at once judge some objects twice. A crash repeats a stretch.
func (s *Service) sweepObjects(ctx context.Context, t execution.TenantID, now int64) (int64, error) {
	k, ref := roundKey(t), execution.Ref{Tenant: t}
	it, _, err := s.Table.Get(ctx, store.Get{Key: k, Consistent: true})
	if err != nil {
		return 0, journal.Fail(err, ref)
	}
	r := &round{s: s, now: now, horizon: it.Int(roundHorizon), started: it.Int(roundStarted), failed: it.Has(roundFailed)}
	cursor := it.Str(roundCursor)
	if cursor == "" {
		if t == "" && it != nil && now-r.started < roundEvery {
			return 0, nil
		}
		r.started, r.failed = now, false
	}
	in := store.ListObjects{Cursor: cursor}
	if t != "" {
		in.Prefix = string(t) + "/e/"
	}
	listed := 0
	for page := 0; page < pagesAtOnce; page++ {
		p, _, err := s.Bucket.Versions(ctx, in)
		if err != nil {
			return r.removed, journal.Fail(err, ref)
		}
		listed += len(p.Objects)
		if err := r.page(ctx, p.Objects); err != nil {
			return r.removed, err
		}
		if in.Cursor = p.Cursor; in.Cursor == "" {
			break
		}
	}
	if in.Cursor == "" {
		if err := r.uploads(ctx, in.Prefix); err != nil {
			return r.removed, err
		}
		if it == nil && listed == 0 && t != "" {
			return r.removed, nil // nothing of this tenant: nothing to remember
		}
	}
	return r.removed, errors.Join(r.err, r.keep(ctx, k, in.Cursor))
}

// round judges objects.
type round struct {
	s                     *Service
	now, horizon, started int64
	failed                bool
	removed               int64
	err                   error // the first that kept an execution from being judged
}

// keep notes how far the round is; cursor "": it has ended.
func (r *round) keep(ctx context.Context, k store.Key, cursor string) error {
	acts := []store.Action{store.Set{Attr: roundCursor, Value: store.S(cursor)}, store.Set{Attr: roundStarted, Value: store.N(r.started)}}
	switch {
	case cursor == "" && !r.failed:
		acts = append(acts, store.Set{Attr: roundHorizon, Value: store.N(r.started - ofAge)}, store.Remove{Attr: roundFailed})
	case cursor == "":
		acts = append(acts, store.Remove{Attr: roundFailed})
	case r.failed:
		acts = append(acts, store.Set{Attr: roundFailed, Value: store.N(1)})
	}
	_, err := r.s.update(ctx, execution.Ref{}, store.Update{Key: k, Actions: acts})
	return err
}

// candidate is an object of age that no round has judged yet.
type candidate struct {
	ref        execution.Ref
	area, name string
	obj        store.ObjectInfo
}

// page judges a page of a listing and removes the orphans in it.
func (r *round) page(ctx context.Context, objects []store.ObjectInfo) error {
	var aged []candidate
	for _, o := range objects {
		if at := o.LastModified.UnixMilli(); at <= r.horizon || at > r.now-ofAge {
			continue
		}
		if ref, area, name, ok := parseObjectKey(o.Key); ok {
			aged = append(aged, candidate{ref, area, name, o})
		}
	}
	orphans, err := r.judge(ctx, aged)
	if err != nil {
		return err
	}
	// Lost or landed: the next round lists what is left, the horizon stays. A call
	// is about one tenant's objects.
	for len(orphans) > 0 {
		t := orphans[0].ref.Tenant
		var versions []store.ObjectVersion
		for len(orphans) > 0 && orphans[0].ref.Tenant == t {
			versions = append(versions, store.ObjectVersion{Key: orphans[0].obj.Key, VersionID: orphans[0].obj.VersionID})
			orphans = orphans[1:]
		}
		if err := r.s.deleteVersions(ctx, execution.Ref{Tenant: t}, versions); err != nil {
			r.failed = true
			return err
		}
		r.removed += int64(len(versions))
	}
	return nil
}

// parseObjectKey takes <tenant>/e/<execution>/<generation>/<area>/<name> apart.
func parseObjectKey(key string) (ref execution.Ref, area, name string, ok bool) {
	p := strings.SplitN(key, "/", 6)
	if len(p) != 6 || p[1] != "e" {
		return ref, "", "", false
	}
	g, err := strconv.ParseInt(p[3], 10, 64)
	return execution.Ref{Tenant: execution.TenantID(p[0]), Execution: execution.ExecutionID(p[2]), Generation: g}, p[4], p[5], err == nil
}

// judge gives those of the candidates that are orphans, by consistent reads of
// heads, entries and folds. What cannot be judged stays and is noted (r.err); the
// error is of the store.
func (r *round) judge(ctx context.Context, all []candidate) ([]candidate, error) {
	var keys []store.Key
	for _, c := range all {
		keys = append(keys, journal.HeadKey(c.ref.PK()))
		if v, ok := bodyVersion(c); ok {
			keys = append(keys, journal.EntryKey(c.ref.PK(), v))
		}
	}
	found, err := r.s.getMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	var orphans []candidate
	owners := map[execution.Ref]*owner{}
	for _, c := range all {
		o := owners[c.ref]
		if o == nil {
			o = newOwner(c.ref, found[journal.HeadKey(c.ref.PK())])
			owners[c.ref] = o
		}
		orphan, err := r.orphan(ctx, o, c, found)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, journal.Fail(ctx.Err(), c.ref)
		case err != nil:
			o.skip, r.failed = true, true // the same for its other objects
			if r.err == nil {
				r.err = err
			}
		case orphan:
			orphans = append(orphans, c)
		}
	}
	return orphans, nil
}

// owner is what is known of the execution whose objects are being judged.
type owner struct {
	ref      execution.Ref
	bundled  int64
	gone     bool                // no such generation: whatever lies there is nobody's
	skip     bool                // being deleted, of an unknown status, or not readable
	accepted map[string]struct{} // by the fold; nil: not read yet
	results  map[string]struct{} // by the ledger; nil: not read yet
}

func newOwner(ref execution.Ref, head store.Item) *owner {
	o := &owner{ref: ref}
	h, ok := journal.ParseHead(head)
	switch {
	case head == nil, ok && h.Generation != ref.Generation:
		o.gone = true
	case !ok, h.Status == execution.StatusDeleting, !h.Status.Known():
		o.skip = true
	default:
		o.bundled = h.Item.Int(headBundled)
	}
	return o
}

// bodyVersion is the version whose entry names an oversize body.
func bodyVersion(c candidate) (int64, bool) {
	if c.area != "journal" {
		return 0, false
	}
	v, _, _ := strings.Cut(c.name, "-")
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil
}

func (r *round) orphan(ctx context.Context, o *owner, c candidate, found map[store.Key]store.Item) (bool, error) {
	switch {
	case o.skip:
		return false, nil
	case o.gone, c.obj.DeleteMarker, c.area == "views":
		return true, nil
	case c.area == "journal":
		return r.unnamed(ctx, o, c, found)
	case c.area == "artifacts":
		named, err := r.named(ctx, o, c.name)
		return !named && err == nil, err
	}
	return false, nil
}

// unnamed reports a body that the entry of its version does not name; of a
// version that was pruned or never written there is none.
func (r *round) unnamed(ctx context.Context, o *owner, c candidate, found map[store.Key]store.Item) (bool, error) {
	v, ok := bodyVersion(c)
	if !ok {
		return false, nil
	}
	it := found[journal.EntryKey(o.ref.PK(), v)]
	if it == nil && v <= o.bundled {
		var err error
		if it, err = r.s.bundled(ctx, o.ref, v); err != nil {
			return false, err
		}
	}
	if it == nil {
		return true, nil
	}
	f, ok := journal.EntryOf(o.ref, it)
	_, digest, _ := strings.Cut(c.name, "-")
	return !ok || f.Generation != o.ref.Generation || hex.EncodeToString(f.ObjectDigest) != digest, nil
}

// named reports whether the execution's newest state or its ledger names an
// artifact.
func (r *round) named(ctx context.Context, o *owner, digest string) (bool, error) {
	if o.accepted == nil {
		h, err := r.s.Journal.Open(ctx, o.ref.Tenant, o.ref.Execution, journal.OpenOptions{})
		if err != nil {
			return false, err
		}
		o.accepted = artifact.AcceptedDigests(h.State)
	}
	if _, ok := o.accepted[digest]; ok {
		return true, nil
	}
	if o.results == nil {
		var err error
		if o.results, err = r.s.Journal.ResultRefs(ctx, o.ref); err != nil {
			return false, err
		}
	}
	_, ok := o.results[digest]
	return ok, nil
}

// getMany reads items by key, consistently, a hundred of one tenant at a time;
// absent ones are left out.
func (s *Service) getMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	found, byTenant := map[store.Key]store.Item{}, map[execution.TenantID]map[store.Key]struct{}{}
	for _, k := range keys {
		t := tenantOf(k)
		if byTenant[t] == nil {
			byTenant[t] = map[store.Key]struct{}{}
		}
		byTenant[t][k] = struct{}{}
	}
	for t, set := range byTenant {
		left := slices.SortedFunc(maps.Keys(set), func(a, b store.Key) int { return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK)) })
		for try := 0; len(left) > 0; {
			n := min(len(left), store.MaxBatchGet)
			items, again, _, err := s.Table.BatchGet(ctx, left[:n], true)
			if err != nil {
				return nil, journal.Fail(err, execution.Ref{Tenant: t})
			}
			for _, it := range items {
				found[it.Key()] = it
			}
			if len(again) > 0 {
				if try++; try > retries {
					return nil, execution.Errorf(execution.Throttled, "the items could not be read whole")
				}
				if err := s.pause(ctx, try, execution.Ref{Tenant: t}); err != nil {
					return nil, err
				}
			}
			left = append(again, left[n:]...)
		}
	}
	return found, nil
}

// bundled reads an archived entry's item; nil when the archive does not have it.
func (s *Service) bundled(ctx context.Context, ref execution.Ref, version int64) (store.Item, error) {
	h, err := s.Journal.Open(ctx, ref.Tenant, ref.Execution, journal.OpenOptions{})
	if err != nil || h.State.Bundle == nil {
		return nil, err
	}
	items, err := s.vault().Entries(ctx, ref, *h.State.Bundle, version, version)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return items[0], nil
}

// uploads ends multipart uploads that were begun and never finished.
func (r *round) uploads(ctx context.Context, prefix string) error {
	uploads, _, err := r.s.Bucket.Uploads(ctx, prefix)
	if err != nil {
		return journal.Fail(err, execution.Ref{})
	}
	for _, u := range uploads {
		if u.Started.UnixMilli() > r.now-ofAge {
			continue
		}
		if _, err := r.s.Bucket.Abort(ctx, u); err != nil && store.KindOf(err) != store.NotFound {
			return journal.Fail(err, execution.Ref{})
		}
		r.removed++
	}
	return nil
}
