package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// budgetLimit is soon reached.
const budgetLimit api.Decimal = "6"

// stage puts an artifact, and perhaps one that nobody will ever name; nil when
// that did not work.
func (s *shift) stage(n int) []api.ArtifactRef {
	name := fmt.Sprintf("file %d", n)
	if s.rng.IntN(4) == 0 {
		s.putFile(name, fmt.Sprintf("draft %s", s.fresh()))
	}
	// What somebody staged before, perhaps days ago, need not be staged again.
	text := strings.Repeat(fmt.Sprintf("%s step %d ", s.e, n), 1+n*40)
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	if s.k.staged[digest] != s.gen || s.rng.IntN(2) == 0 {
		if digest = s.putFile(name, text); digest == "" {
			return nil
		}
		s.k.staged[digest] = s.gen
	}
	if s.w.slow && s.rng.IntN(3) == 0 { // it is accepted at the age at which sweeps take it
		s.w.leap = time.Duration(1380+s.rng.IntN(240)) * time.Minute
		s.w.sweep("retention")
	}
	if s.rng.IntN(3) == 0 { // a sweep looks at it while it is being accepted
		s.w.sweep("retention")
	}
	for range s.rng.IntN(3) { // somewhere in between it may be frozen for days
		s.park("think", "", false)
	}
	return []api.ArtifactRef{{Digest: digest, Name: name}}
}

func (s *shift) putFile(name, text string) string {
	body := []byte(text)
	sum := sha256.Sum256(body)
	s.w.content[hex.EncodeToString(sum[:])] = body
	req := &api.PutArtifactRequest{Common: s.common(""), Execution: s.e, Fence: s.fence, Name: name, MediaType: "text/plain", Body: body}
	api.Identify(req)
	r, err := retry(s.actor, "put_artifact "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.PutArtifactReply, error) {
		return v.Artifacts.Put(ctx, req)
	})
	if err != nil {
		return ""
	}
	return r.Artifact.Digest
}

// spending writes the step with what it costs; when the budget is used up it
// costs nothing.
func (s *shift) spending(req *api.ApplyRequest, n int64) bool {
	if n == 0 || !s.k.budget || s.gen != s.k.made {
		return s.accepting(req)
	}
	req.Spend = map[string]api.Decimal{"b": api.Decimal(strconv.FormatInt(n, 10))}
	gen := s.gen
	s.k.maybe[gen] += n
	on := s.accepting(req)
	switch s.refused {
	case "":
		s.k.maybe[gen] -= n
		s.k.spent[gen] += n
	case execution.BudgetExceeded:
		s.k.maybe[gen] -= n
		req.Spend = nil
		return s.accepting(req)
	}
	return on
}

// accepting writes the step and remembers which artifacts it has.
func (s *shift) accepting(req *api.ApplyRequest) bool {
	_, on := s.apply(req)
	if s.refused == "" {
		for _, a := range req.Artifacts {
			s.k.accepted[a.Digest] = s.gen
		}
	}
	if s.refused == execution.InvalidRequest { // swept
		for _, a := range req.Artifacts {
			delete(s.k.staged, a.Digest)
		}
	}
	return on
}

// fetch holds: an artifact that was accepted is there, whatever the sweeps do.
func (a *actor) fetch(e execution.ExecutionID) {
	k := a.w.truth.of(e)
	if len(k.accepted) == 0 {
		return
	}
	digests := slices.Sorted(maps.Keys(k.accepted))
	digest := digests[a.rng.IntN(len(digests))]
	gen := k.accepted[digest]
	req := &api.GetArtifactRequest{Common: api.Common{Tenant: tenant}, Execution: e, Digest: digest}
	api.Identify(req)
	r, err := retry(a, "get_artifact "+short(e), func(ctx context.Context, s *wiring.Services) (*api.GetArtifactReply, error) {
		return s.Artifacts.Get(ctx, req)
	})
	switch {
	case err == nil && string(r.Body) != string(a.w.content[digest]):
		a.w.fail("an artifact of %s has other bytes", e)
	case execution.CodeOf(err) == execution.NotFound && !k.closed() && k.gen == gen:
		a.w.fail("an artifact of %s was accepted and is not there: %v", e, err)
	}
}

// settleKept holds: accepted artifacts and kept results are whole, budgets say
// what was spent.
func (w *world) settleKept(ctx context.Context, p *process, e execution.ExecutionID, k *known, h *journal.Handle) {
	for _, digest := range slices.Sorted(maps.Keys(k.accepted)) {
		if k.accepted[digest] != k.gen {
			continue
		}
		req := &api.GetArtifactRequest{Common: api.Common{Tenant: tenant}, Execution: e, Digest: digest}
		api.Identify(req)
		r, err := p.services.Artifacts.Get(ctx, req)
		if err != nil || string(r.Body) != string(w.content[digest]) {
			w.fail("an artifact of %s was accepted and is not there: %v", e, err)
		}
	}
	for _, op := range h.State.OperationsInOrder() {
		if op.ResultRef == nil || h.State.Status == execution.StatusArchived {
			continue
		}
		body, err := p.services.Artifacts.Read(ctx, h.State.Ref, op.ResultRef.Digest)
		if err != nil {
			w.fail("the result of %s of %s is not there: %v", op.ID, e, err)
			continue
		}
		if v, err := jsonx.Parse(body); err != nil || v.Kind() != jsonx.String {
			w.fail("the result of %s of %s is another one", op.ID, e)
		}
	}
	b, ok := h.State.Budgets["b"]
	if !ok {
		return
	}
	limit, _ := strconv.ParseInt(b.Limit, 10, 64)
	spent, err := strconv.ParseInt(b.Spent, 10, 64)
	if err != nil || spent < 0 || spent > limit {
		w.fail("of the budget of %s %s of %s are spent", e, b.Spent, b.Limit)
	}
	if k.budget && k.made == k.gen && (spent < k.spent[k.gen] || spent > k.spent[k.gen]+k.maybe[k.gen]) {
		w.fail("of the budget of %s %d are spent; %d were acknowledged, of %d nobody knows", e, spent, k.spent[k.gen], k.maybe[k.gen])
	}
}

// policies are set, now and then in another form.
func (a *actor) policies() {
	one, ten := int64(1), int64(10)
	keep := api.Policy{Name: "keep"}
	switch a.rng.IntN(4) {
	case 0:
		keep.History = &api.HistoryRule{Keep: "versions", N: int64(1 + a.rng.IntN(4))}
	case 1:
		keep.History = &api.HistoryRule{Keep: "days", N: 1}
	case 2:
		keep.Archive = &api.ArchiveRule{Enabled: true}
	case 3:
		keep.History, keep.Archive = &api.HistoryRule{Keep: "versions", N: 2}, &api.ArchiveRule{Enabled: true}
	}
	if len(a.w.truth.order) == 0 {
		a.w.rules = &keep
	} else {
		a.w.rules = nil
	}
	switch h := keep.History; {
	case h == nil || a.w.keeps < 0:
	case h.Keep == "days":
		a.w.keeps = -1
	case a.w.keeps == 0 || h.N < a.w.keeps:
		a.w.keeps = h.N
	}
	for _, p := range []api.Policy{{Name: "short", CompletedDays: &one, FailedDays: &ten, CancelledDays: &ten}, keep} {
		req := &api.SetPolicyRequest{Common: a.common(a.fresh()), Policy: p}
		api.Identify(req)
		_, _ = retry(a, "set_policy "+p.Name, func(ctx context.Context, s *wiring.Services) (*api.SetPolicyReply, error) {
			return s.Retention.SetPolicy(ctx, req)
		})
	}
}

// keep is what people do about many executions at once.
func (a *actor) keep() {
	subject := fmt.Sprint("s", a.rng.IntN(2))
	switch a.rng.IntN(8) {
	case 0, 1:
		a.hold(api.Selector{Subject: subject}, "hs")
	case 2, 3:
		a.releaseSubjects()
	case 4:
		a.deleteAll(api.Selector{Subject: subject}, nil, subject)
	case 5:
		label := fmt.Sprint("c", a.rng.IntN(2))
		a.deleteAll(api.Selector{}, map[string]string{"case": label}, label)
	case 6:
		a.policies()
	case 7:
		req := &api.RotateKeyRequest{Common: a.common(a.fresh())}
		api.Identify(req)
		_, _ = retry(a, "rotate_key", func(ctx context.Context, s *wiring.Services) (*api.RotateKeyReply, error) {
			return s.Retention.RotateKey(ctx, req)
		})
	}
}

func (a *actor) releaseSubjects() {
	for _, subject := range []string{"s0", "s1"} {
		req := &api.ReleaseHoldRequest{Common: a.common(a.fresh()), Selector: api.Selector{Subject: subject}, Hold: "hs", Reason: "closed"}
		api.Identify(req)
		_, _ = retry(a, "release_hold subject", func(ctx context.Context, s *wiring.Services) (*api.ReleaseHoldReply, error) {
			return s.Retention.ReleaseHold(ctx, req)
		})
	}
}

// deleteAll holds: when a deletion of a subject or label says that it is done,
// all that had it before are gone with their forks and
// children, but those that it names.
func (a *actor) deleteAll(sel api.Selector, label map[string]string, what string) {
	w := a.w
	w.asked[what] = true
	had, below, held := map[execution.ExecutionID]int64{}, map[execution.ExecutionID]bool{}, w.held
	for range 3 { // forks of forks and their children
		for _, e := range w.truth.order {
			k := w.truth.known[e]
			named := k.made == k.gen && (k.subject == what || k.label == what)
			if from, ok := had[k.parent]; ok && k.under == from && !named {
				named, below[e] = true, true
			}
			if named && k.born != 0 && k.born == k.gen && !k.closed() {
				had[e] = k.gen
			}
		}
	}
	req := &api.DeleteRequest{Common: a.common(a.fresh()), Selector: sel, Label: label, Reason: "asked", WhenReleased: a.rng.IntN(2) == 0, Limit: 2}
	deferred := map[execution.ExecutionID]bool{}
	for {
		api.Identify(req)
		r, err := retry(a, "delete "+what, func(ctx context.Context, s *wiring.Services) (*api.DeleteReply, error) {
			return s.Retention.Delete(ctx, req)
		})
		if err != nil {
			return
		}
		for _, d := range r.Deferred {
			deferred[d.Execution] = true
		}
		if r.Done {
			break
		}
		req.Cursor = r.Cursor
	}
	// Whoever removes one execution alone leaves those below it, and then nothing
	// leads from here to them.
	var cut func(e execution.ExecutionID) bool
	cut = func(e execution.ExecutionID) bool {
		from := w.truth.known[w.truth.known[e].parent]
		return below[e] && (from.closed() && from.closer != a.id || cut(w.truth.known[e].parent))
	}
	for e, gen := range had {
		k := w.truth.known[e]
		if cut(e) {
			continue
		}
		if below[e] && (w.held != held || w.truth.held(k.head)) {
			continue // it was deferred, by an answer that did not come; its parent, which led to it, is gone
		}
		if k.gen == gen && !k.closed() && !deferred[e] {
			w.fail("the deletion of %s is done, and %s is %s", what, e, k.status)
		}
	}
}

// leftovers holds: of a deleted execution nothing is left but receipts, and not
// even those after a purge.
func (w *world) leftovers(e execution.ExecutionID, purged bool) {
	ctx := context.Background()
	page, _, err := w.engine.Table(memory.Main).Query(ctx, store.Query{PK: execution.PartitionKey(tenant, e), Consistent: true})
	if err != nil {
		w.fail("query %s: %v", e, err)
	}
	for _, it := range page.Items {
		if purged || !strings.HasPrefix(it.Key().SK, journal.ReceiptPrefix) {
			w.fail("%s was deleted, and its %s is left", e, it.Key().SK)
		}
	}
	for _, prefix := range []string{"/e/", "/archive/"} {
		prefix = tenant + prefix + string(e) + "/"
		if !purged { // what a creation staged that came to nothing is the orphan sweep's
			prefix += fmt.Sprint(w.truth.known[e].gen) + "/"
		}
		objects, _, err := w.engine.Bucket().Versions(ctx, store.ListObjects{Prefix: prefix})
		if err != nil {
			w.fail("list %s: %v", e, err)
		}
		for _, o := range objects.Objects {
			w.fail("%s was deleted, and its object %s is left", e, o.Key)
		}
	}
}

// purge ends the tenant while others go on working, and holds: when it is done
// nothing of the tenant is left.
func (w *world) purge() {
	w.note("the tenant is to go")
	w.purged, w.healing = true, false
	var done bool
	var at int64 // when it was done first
	once := func() {
		w.spawn("purger", func(a *actor) {
			req := &api.PurgeTenantRequest{Common: a.common(a.fresh()), Limit: int64(2 + a.rng.IntN(20)), Shred: a.rng.IntN(2) == 0}
			api.Identify(req)
			for range 40 {
				r, err := retry(a, "purge_tenant", func(ctx context.Context, s *wiring.Services) (*api.PurgeTenantReply, error) {
					return s.Retention.PurgeTenant(ctx, req)
				})
				if err == nil && r.Done && !done {
					done, at = true, w.engine.Now().UnixMilli()
				}
				if done || err != nil || r.RetryAfterMS > 0 || len(r.Deferred) > 0 {
					return
				}
			}
		})
	}
	for range 2 {
		w.create()
		once()
	}
	for last := w.steps + 500; w.steps < last && w.failed == nil && !done; w.steps++ {
		if w.step(); w.rng.IntN(30) == 0 {
			w.advance(time.Duration(w.rng.IntN(40)) * time.Minute)
		}
		if w.rng.IntN(40) == 0 {
			once()
		}
	}
	w.healing, w.keyOutage, w.biz.deaf = true, false, false
	w.arrive()
	w.drain() // whoever may still make something
	for _, e := range w.truth.order {
		if done && w.truth.known[e].gen < at { // not made again since
			w.leftovers(e, true)
		}
	}
	done = false
	for range 12 {
		w.arrive()
		w.drain()
		w.queue, w.records = nil, nil
		if w.failed != nil || done {
			break
		}
		w.spawn("operator", func(a *actor) {
			a.releaseThread()
			a.releaseSubjects()
			for _, e := range w.truth.order {
				if w.truth.known[e].holds > 0 {
					a.release(e, "h0")
					a.release(e, "h1")
				}
			}
		})
		w.drain()
		w.advance(50 * time.Minute)
		once()
	}
	if w.failed != nil {
		return
	}
	if !done {
		w.fail("the purge of the tenant is never done")
	}
	d := w.engine.Dump()
	for _, raw := range d.Items {
		if it, err := memory.DecodeItem(raw); err != nil || it.Key().PK == tenant || strings.HasPrefix(it.Key().PK, tenant+"#") {
			w.fail("the tenant was purged, and %v is left: %v", it.Key(), err)
		}
	}
	for _, o := range d.Objects {
		if strings.HasPrefix(o.Key, tenant+"/") {
			w.fail("the tenant was purged, and the object %s is left", o.Key)
		}
	}
}
