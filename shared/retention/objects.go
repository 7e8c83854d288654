package retention

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
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
	group                 *owner
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

func (r *round) page(ctx context.Context, objects []store.ObjectInfo) error {
	var orphans []store.ObjectVersion
	for _, o := range objects {
		at := o.LastModified.UnixMilli()
		if at <= r.horizon || at > r.now-ofAge {
			continue
		}
		ref, area, name, ok := parseObjectKey(o.Key)
		if !ok {
			continue
		}
		orphan, err := r.orphan(ctx, ref, area, name, o)
		if err != nil {
			if ctx.Err() != nil {
				return journal.Fail(ctx.Err(), ref)
			}
			r.failed = true
			if r.err == nil {
				r.err = err
			}
			continue
		}
		if orphan {
			orphans = append(orphans, store.ObjectVersion{Key: o.Key, VersionID: o.VersionID})
		}
	}
	// Lost or landed: the next round lists what is left, the horizon stays. A call
	// is about one tenant's objects.
	for len(orphans) > 0 {
		t, _, _ := strings.Cut(orphans[0].Key, "/")
		n := 1
		for n < len(orphans) && strings.HasPrefix(orphans[n].Key, t+"/") {
			n++
		}
		if err := r.s.deleteVersions(ctx, execution.Ref{Tenant: execution.TenantID(t)}, orphans[:n]); err != nil {
			r.failed = true
			return err
		}
		r.removed += int64(n)
		orphans = orphans[n:]
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

// owner is what is known of the execution whose objects are being judged.
type owner struct {
	ref      execution.Ref
	head     *journal.Head
	gone     bool                // no such generation: whatever lies there is nobody's
	skip     bool                // being deleted, or of an unknown status
	accepted map[string]struct{} // nil: not read yet
}

func (r *round) owner(ctx context.Context, ref execution.Ref) (*owner, error) {
	if r.group != nil && r.group.ref == ref {
		return r.group, nil
	}
	h, _, err := r.s.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil {
		return nil, err
	}
	o := &owner{ref: ref, head: h}
	switch {
	case h == nil, h.Generation != ref.Generation:
		o.gone = true
	case h.Status == execution.StatusDeleting, !h.Status.Known():
		o.skip = true
	}
	r.group = o
	return o, nil
}

// orphan judges one object of age, by consistent reads.
func (r *round) orphan(ctx context.Context, ref execution.Ref, area, name string, obj store.ObjectInfo) (bool, error) {
	o, err := r.owner(ctx, ref)
	if err != nil || o.skip {
		return false, err
	}
	if o.gone || obj.DeleteMarker {
		return true, nil
	}
	switch area {
	case "views":
		return true, nil
	case "journal":
		return r.unnamed(ctx, o, name)
	case "artifacts":
		if o.accepted == nil {
			if o.accepted, err = r.s.accepted(ctx, ref); err != nil {
				return false, err
			}
		}
		_, named := o.accepted[name]
		return !named, nil
	}
	return false, nil
}

// unnamed reports a body that the entry of its version does not name; of a
// version that was pruned or never written there is none.
func (r *round) unnamed(ctx context.Context, o *owner, name string) (bool, error) {
	v, digest, _ := strings.Cut(name, "-")
	version, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return false, nil
	}
	it, _, err := r.s.Table.Get(ctx, store.Get{Key: journal.EntryKey(o.ref.PK(), version), Consistent: true})
	if err != nil {
		return false, journal.Fail(err, o.ref)
	}
	if it == nil && version <= o.head.Item.Int(headBundled) {
		if it, err = r.s.bundled(ctx, o.ref, version); err != nil {
			return false, err
		}
	}
	if it == nil {
		return true, nil
	}
	f, ok := journal.EntryOf(o.ref, it)
	return !ok || f.Generation != o.ref.Generation || hex.EncodeToString(f.ObjectDigest) != digest, nil
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

// accepted are the artifacts that an execution's newest state or its ledger
// names.
func (s *Service) accepted(ctx context.Context, ref execution.Ref) (map[string]struct{}, error) {
	h, err := s.Journal.Open(ctx, ref.Tenant, ref.Execution, journal.OpenOptions{})
	if err != nil {
		return nil, err
	}
	out := artifact.AcceptedDigests(h.State)
	results, err := s.Journal.ResultRefs(ctx, ref)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, results)
	return out, nil
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
