package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Kinds of findings.
const (
	findDangling = "dangling_reference" // something names an object that is not there
	findOrphan   = "orphan_object"      // nothing names an object of age
	findGap      = "gap"                // a version of the journal is missing
	findDigest   = "digest_mismatch"    // stored bytes are not what was written
	findStray    = "stray_entry"        // an item that belongs to nothing
	findTimer    = "timer_missing"      // something will not be looked at when it is due
	findStuck    = "stuck_deletion"     // a deletion that nobody finishes
	findExpired  = "expired_present"    // its time was over long ago
	findUnread   = "unreadable"         // could not be checked (no key, unknown status)
)

// Verify checks one execution, or a page of the tenant: first every execution of
// the registry, then every object of the bucket. It changes nothing, holds one
// execution's findings and one page at a time in memory, and reads every byte
// that it vouches for. It may run while others work: what one look finds is looked at
// again (check).
func (s *Service) Verify(ctx context.Context, r *api.VerifyRequest) (*api.VerifyReply, error) {
	out := &api.VerifyReply{Findings: []api.VerifyFinding{}}
	if r.Execution != "" {
		if r.Cursor != "" {
			return nil, execution.Invalid("cursor", "makes no sense for one execution")
		}
		h, clock, err := s.head(ctx, r.Tenant, r.Execution)
		if err != nil {
			return nil, err
		}
		c := &checker{s: s, ref: h.Ref, now: s.Journal.NowOf(clock)}
		if err := c.check(ctx); err != nil {
			return nil, err
		}
		out.Standing, out.Findings, out.Checked = standing(h), append(out.Findings, c.found...), 1
		return out, nil
	}
	part, at := "registry", ""
	if r.Cursor != "" {
		p, err := api.ParseCursor("cursor", verifyListing(r.Tenant), r.Cursor, 2)
		if err != nil {
			return nil, err
		}
		part, at = p[0], p[1]
	}
	if part == "objects" {
		return out, s.verifyObjects(ctx, r.Tenant, at, out)
	}
	return out, s.verifyRegistry(ctx, r.Tenant, at, out)
}

// verifyAtOnce is how many executions one page of Verify checks.
const verifyAtOnce = 100

func verifyListing(t execution.TenantID) string { return api.Listing("verify", t) }

func (s *Service) verifyRegistry(ctx context.Context, t execution.TenantID, at string, out *api.VerifyReply) error {
	reg := &registry{s: s, tenant: t, cursor: at}
	rows, err := reg.next(ctx, verifyAtOnce)
	if err != nil {
		return err
	}
	for _, ref := range rows {
		c := &checker{s: s, ref: ref, now: reg.now}
		if err := c.check(ctx); err != nil && execution.CodeOf(err) != execution.NotFound && execution.CodeOf(err) != execution.Deleted {
			return err
		} else if err != nil {
			c.found = nil // it went while it was looked at
		}
		out.Findings = append(out.Findings, c.found...)
		out.Checked++
	}
	out.Cursor = api.Cursor(verifyListing(t), "registry", reg.cursor)
	if reg.done {
		out.Cursor = api.Cursor(verifyListing(t), "objects", "")
	}
	return nil
}

// verifyObjects looks for objects that belong to no execution.
func (s *Service) verifyObjects(ctx context.Context, t execution.TenantID, at string, out *api.VerifyReply) error {
	now, err := s.now(ctx, journal.ClosingKey(t))
	if err != nil {
		return err
	}
	page, _, err := s.Bucket.Versions(ctx, store.ListObjects{Prefix: string(t) + "/", Cursor: at})
	if err != nil {
		return journal.Fail(err, execution.Ref{Tenant: t})
	}
	var aged []candidate
	var keys []store.Key
	for _, o := range page.Objects {
		if o.LastModified.UnixMilli() > now-ofAge || strings.HasPrefix(o.Key, journal.ReceiptsPrefix(t)) {
			continue
		}
		ref, area, name, ok := parseObjectKey(o.Key)
		if !ok {
			ref, ok = parseArchiveKey(o.Key)
			area = "archive"
		}
		if !ok {
			out.Findings = append(out.Findings, api.VerifyFinding{Kind: findStray, Key: o.Key, Detail: "an object of no known kind"})
			continue
		}
		aged, keys = append(aged, candidate{ref, area, name, o}), append(keys, journal.HeadKey(ref.PK()))
	}
	heads, err := s.getMany(ctx, keys)
	if err != nil {
		return err
	}
	for _, c := range aged {
		if !newOwner(c.ref, heads[journal.HeadKey(c.ref.PK())]).gone && !c.obj.DeleteMarker {
			continue
		}
		there, err := s.there(ctx, c.obj)
		if err != nil {
			return err
		}
		if there { // and did not go together with its execution
			out.Findings = append(out.Findings, api.VerifyFinding{Kind: findOrphan, Execution: c.ref.Execution, Key: c.obj.Key, Detail: c.area + " of no execution"})
		}
	}
	if page.Cursor != "" {
		out.Cursor = api.Cursor(verifyListing(t), "objects", page.Cursor)
	}
	return nil
}

// there reports whether a version of an object is there.
func (s *Service) there(ctx context.Context, o store.ObjectInfo) (bool, error) {
	page, _, err := s.Bucket.Versions(ctx, store.ListObjects{Prefix: o.Key})
	if err != nil {
		return false, journal.Fail(err, execution.Ref{})
	}
	return slices.ContainsFunc(page.Objects, func(v store.ObjectInfo) bool { return v.Key == o.Key && v.VersionID == o.VersionID }), nil
}

func parseArchiveKey(key string) (ref execution.Ref, ok bool) {
	p := strings.SplitN(key, "/", 5)
	if len(p) != 5 || p[1] != "archive" {
		return ref, false
	}
	g, err := strconv.ParseInt(p[3], 10, 64)
	return execution.Ref{Tenant: execution.TenantID(p[0]), Execution: execution.ExecutionID(p[2]), Generation: g}, err == nil
}

// checker checks one execution.
type checker struct {
	s     *Service
	ref   execution.Ref
	now   int64
	found []api.VerifyFinding
}

func (c *checker) find(kind, key, format string, args ...any) {
	c.found = append(c.found, api.VerifyFinding{Kind: kind, Execution: c.ref.Execution, Key: key, Detail: fmt.Sprintf(format, args...)})
}

// looks is how often something is looked at before it counts as found.
const looks = 3

// check looks at what a registry row stands for, and again where it found
// something: while one item after the other is read, others write, archive and
// delete. Only what every look finds, the same in each, is wrong: a head that is
// behind the journal in each look, but not at the same place, is one that moves on.
func (c *checker) check(ctx context.Context) error {
	for look := 0; look < looks; look++ {
		now := &checker{s: c.s, ref: c.ref, now: c.now}
		if err := now.row(ctx); err != nil {
			return err
		}
		if look > 0 {
			now.found = slices.DeleteFunc(now.found, func(f api.VerifyFinding) bool {
				return !slices.Contains(c.found, f)
			})
		}
		if c.found = now.found; len(c.found) == 0 {
			return nil
		}
	}
	return nil
}

// row checks what a registry row stands for: a living execution, or a deletion.
func (c *checker) row(ctx context.Context) error {
	h, _, err := c.s.Journal.ReadHead(ctx, c.ref.Tenant, c.ref.Execution)
	if execution.CodeOf(err) == execution.Integrity {
		c.find(findDigest, journal.SKHead, "the head is no head")
		return nil
	}
	if err != nil {
		return err
	}
	if h != nil && h.Generation == c.ref.Generation && h.Status != execution.StatusDeleting {
		if err := c.execution(ctx, h); err != nil {
			return err
		}
		return c.objects(ctx, h)
	}
	it, err := c.s.receipt(ctx, c.ref)
	switch {
	case err != nil:
		return err
	case it == nil && h == nil:
		row, _, err := c.s.Table.Get(ctx, store.Get{Key: journal.RegistryKey(c.ref), Consistent: true})
		if err != nil {
			return journal.Fail(err, c.ref)
		}
		if row == nil {
			break
		}
		mark, _, err := c.s.Table.Get(ctx, store.Get{Key: journal.ClosingKey(c.ref.Tenant), Consistent: true})
		if err != nil {
			return journal.Fail(err, c.ref)
		}
		if mark.Int(purgePhase) < purgeWipe { // from then on a purge leaves the row to the last
			c.find(findStray, journal.RegistryKey(c.ref).SK, "a row of the registry without head and receipt")
		}
	case it == nil && h.Generation == c.ref.Generation:
		c.find(findStuck, journal.SKHead, "the head is deleting, but there is no receipt")
	case it != nil:
		c.deletion(it)
	}
	return nil
}

// late is how long after its time something counts as stuck.
const late = 2 * hour

func (c *checker) deletion(it store.Item) {
	due := it.Int(journal.HeadRetainDue)
	switch {
	case due == 0:
		c.find(findTimer, it.Key().SK, "the receipt is in no index: its final sweep never comes")
	case c.now > due+late:
		c.find(findStuck, it.Key().SK, "the deletion is %s and was due %d minutes ago", it.Str(journal.ReceiptState), (c.now-due)/60_000)
	}
}

// execution checks head, journal, fold, ledger and alarms.
func (c *checker) execution(ctx context.Context, h *journal.Head) error {
	if !h.Status.Known() {
		c.find(findUnread, journal.SKHead, "the status %q is not known to this version", h.RawStatus)
		return nil
	}
	c.alarms(h)
	if err := c.registered(ctx); err != nil {
		return err
	}
	if err := c.items(ctx, h); err != nil {
		return err
	}
	opened, err := c.s.Journal.Open(ctx, h.Tenant, h.Execution, journal.OpenOptions{Head: true})
	switch code := execution.CodeOf(err); code {
	case "":
	case execution.Integrity:
		c.find(findDigest, "", "the newest state cannot be read: %s", execution.AsError(err).Message)
		return nil
	case execution.KeyUnavailable, execution.SchemaTooNew:
		c.find(findUnread, "", "the newest state cannot be read: %s", execution.AsError(err).Message)
		return nil
	default:
		return err
	}
	st := opened.State
	if st.Generation == h.Generation && (st.Status != h.Status || st.Fence != h.Fence) {
		c.find(findDigest, journal.SKHead, "head (%s, fence %d) and journal (%s, fence %d) do not agree", h.Status, h.Fence, st.Status, st.Fence)
	}
	if st.Bundle != nil {
		if err := c.archive(ctx, st); err != nil {
			return err
		}
	}
	for digest := range artifact.AcceptedDigests(st) {
		if err := c.object(ctx, journal.ArtifactObjectKey(c.ref, digest), digest, -1); err != nil {
			return err
		}
	}
	return nil
}

// alarms checks that whatever will be due is in an index.
func (c *checker) alarms(h *journal.Head) {
	switch h.Status {
	case execution.StatusRunning, execution.StatusWaiting, execution.StatusParked:
		if h.DueAt == 0 || !h.Item.Has(journal.HeadDueShard) {
			c.find(findTimer, journal.SKHead, "%s, but nothing is due", h.Status)
		}
	}
	if h.ExpiresAt > 0 && h.RetainAt == 0 {
		c.find(findTimer, journal.SKHead, "it expires, but retention will not look at it")
	}
	if h.Expired(c.now - late) {
		c.find(findExpired, journal.SKHead, "its time was over at %s and it is still there (a hold on its thread or subject keeps it, or nobody sweeps)", api.Time(h.ExpiresAt))
	}
}

func (c *checker) registered(ctx context.Context) error {
	it, _, err := c.s.Table.Get(ctx, store.Get{Key: journal.RegistryKey(c.ref), Consistent: true})
	if err == nil && it == nil {
		c.find(findStray, journal.RegistryKey(c.ref).SK, "the execution is not in the registry: a purge would not find it")
	}
	return journal.Fail(err, c.ref)
}

// object reads an object and holds it against its digest; size -1: not known.
func (c *checker) object(ctx context.Context, key, digest string, size int64) error {
	r, info, _, err := c.s.Bucket.Get(ctx, store.GetObject{Key: key})
	switch {
	case store.KindOf(err) == store.NotFound:
		c.find(findDangling, key, "named, but not there")
		return nil
	case err != nil && cold(ctx, c.s.Bucket, key):
		return nil // its class cannot be read at once; it is there
	case err != nil:
		return journal.Fail(err, c.ref)
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return execution.Errorf(execution.Unavailable, "an object could not be read to its end").Because(err)
	}
	if size >= 0 && info.Bytes != size || hex.EncodeToString(sum.Sum(nil)) != digest {
		c.find(findDigest, key, "the object has other content than was named")
	}
	return nil
}

// archive checks the bundle that serves the old versions.
func (c *checker) archive(ctx context.Context, st *execution.State) error {
	m, err := c.s.vault().manifest(ctx, st.Ref, *st.Bundle)
	if execution.CodeOf(err) == execution.Integrity {
		c.find(findDangling, st.Bundle.Key, "%s", execution.AsError(err).Message)
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := c.object(ctx, f.Key, f.Digest, f.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// objects looks for objects of age that nothing of the execution names.
func (c *checker) objects(ctx context.Context, h *journal.Head) error {
	if !h.Status.Known() {
		return nil
	}
	r := &round{s: c.s, now: c.now}
	in := store.ListObjects{Prefix: journal.ObjectPrefix(c.ref)}
	for {
		page, _, err := c.s.Bucket.Versions(ctx, in)
		if err != nil {
			return journal.Fail(err, c.ref)
		}
		var aged []candidate
		for _, o := range page.Objects {
			if o.LastModified.UnixMilli() > c.now-ofAge {
				continue
			}
			ref, area, name, ok := parseObjectKey(o.Key)
			if !ok || ref != c.ref {
				c.find(findStray, o.Key, "an object of no known kind")
				continue
			}
			aged = append(aged, candidate{ref, area, name, o})
		}
		orphans, err := r.judge(ctx, aged)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			c.find(findOrphan, o.obj.Key, "nothing names it")
		}
		// What could not be judged: the journal itself was reported.
		if code := execution.CodeOf(r.err); code != "" && code != execution.Integrity && code != execution.KeyUnavailable && code != execution.SchemaTooNew {
			return r.err
		}
		if in.Cursor = page.Cursor; in.Cursor == "" {
			return nil
		}
	}
}
