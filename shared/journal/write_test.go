package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// history is every entry of an execution, as a fresh process reads it.
func (w *world) history(e execution.ExecutionID) []*execution.Entry {
	w.t.Helper()
	j := w.process()
	h := w.open(j, e)
	var out []*execution.Entry
	for from := int64(1); from > 0; {
		page, err := j.History(context.Background(), h, from, false, 50)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, page.Entries...)
		from = page.Next
	}
	if int64(len(out)) != h.State.Version {
		w.t.Fatalf("%d entries up to version %d", len(out), h.State.Version)
	}
	return out
}

// hooked runs something right before a table's write reaches it.
type hooked struct {
	store.Table
	before func(call string)
}

func (h *hooked) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	h.before("put")
	return h.Table.Put(ctx, in)
}

func (h *hooked) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	h.before("update")
	return h.Table.Update(ctx, in)
}

func (h *hooked) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	h.before("transact")
	return h.Table.Transact(ctx, in)
}

// between gives a process whose writes are preceded, once, by what somebody else
// does.
func (w *world) between(call string, do func()) *Journal {
	j := w.process()
	var once sync.Once
	j.Table = &hooked{Table: j.Table, before: func(c string) {
		if c == call {
			once.Do(do)
		}
	}}
	return j
}

// retrying is a client whose own retry meets what its first try wrote.
type retrying struct{ store.Table }

func (r retrying) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	if _, err := r.Table.Put(ctx, in); err != nil {
		return store.Meta{}, err
	}
	return r.Table.Put(ctx, in)
}

func (r retrying) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	if _, err := r.Table.Transact(ctx, in); err != nil {
		return store.Meta{}, err
	}
	in.Token = "another" // as if the store had forgotten it
	return r.Table.Transact(ctx, in)
}

func TestOwnWritesAreRecognised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	j.Table = retrying{j.Table}
	h := w.create(j, "e", `{}`, "w1")
	h = w.apply(j, h, "a", `{"n":1}`)
	c := change(h, "b", `{"n":2}`)
	c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
	got, err := j.step(context.Background(), "e", c)
	if err != nil || got.Replay != nil {
		t.Fatalf("%+v %v", got, err)
	}
	same(t, w.open(w.process(), "e"), got.Handle)
	if n := len(w.history("e")); n != 3 {
		t.Errorf("%d entries", n)
	}
}

// The same request by two processes at once: one entry, one of them was first.
func TestSameRequestTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, kind := range []string{"put", "transact"} {
		w := newWorld(t)
		h := w.create(w.process(), "e", `{}`, "w1")
		c := change(h, "r", `{"n":1}`)
		if kind == "transact" {
			c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
		}
		j := w.between(kind, func() {
			if _, err := w.process().step(ctx, "e", c); err != nil {
				t.Fatal(err)
			}
		})
		got, err := j.step(ctx, "e", c)
		if err != nil || got.Replay == nil || got.Replay.Version != 2 || got.Unsent {
			t.Errorf("%s: %+v %v", kind, got, err)
		}
		other := c
		other.Request = requestWith("r", "other content")
		_, err = j.step(ctx, "e", other)
		wantCode(t, err, execution.RequestMismatch, "done_at")
		if n := len(w.history("e")); n != 2 {
			t.Errorf("%d entries", n)
		}
	}
}

// Somebody else was faster: the caller is told what changed, and nothing of its
// own is written.
func TestConflict(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	h := w.create(w.process(), "e", `{}`, "w1")
	j := w.between("put", func() {
		c := change(h, "theirs", `{"n":"theirs"}`)
		c.Actor = &execution.Actor{Kind: "human", ID: "ann"}
		if _, err := w.process().step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
	})
	_, err := j.step(ctx, "e", change(h, "mine", `{"n":"mine"}`))
	wantCode(t, err, execution.VersionConflict, "changes", "version", "fence", "owner", "status")
	changes := execution.AsError(err).Facts["changes"].([]map[string]any)
	if len(changes) != 1 || changes[0]["version"] != int64(2) || changes[0]["actor"] == nil {
		t.Errorf("changes %v", changes)
	}
	// A system entry is computed anew and lands behind.
	k := w.between("transact", func() {
		if _, err := w.process().step(ctx, "e", execution.Change{Kind: execution.KindCheckpoint, Fence: 1, HasFence: true, Merge: value(`{"n":3}`)}); err != nil {
			t.Fatal(err)
		}
	})
	got, err := k.step(ctx, "e", execution.Change{Kind: execution.KindHalted, System: true, Reason: "r"})
	if err != nil || got.Handle.State.Version != 4 || got.Handle.State.Data.String() != `{"n":3}` {
		t.Errorf("%+v %v", got, err)
	}
	// A stale fence is LeaseLost, whatever was in memory.
	_, err = j.step(ctx, "e", change(h, "late", `{"n":9}`))
	wantCode(t, err, execution.Halted)
}

// Nothing is refused because of what a process remembers.
func TestMemoryDecidesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	a, b := w.process(), w.process()
	h := w.create(a, "e", `{}`, "w1")
	w.open(b, "e")
	h = w.apply(a, h, "1", `{"n":1}`)
	// b remembers version 1; a caller knows better.
	if got, err := b.step(ctx, "e", change(h, "2", `{"n":2}`)); err != nil || got.Handle.State.Version != 3 {
		t.Fatalf("%v", err)
	}
	// A repeat in a process that has fallen behind says where the execution stands now.
	r := change(h, "1", `{"n":1}`)
	r.Expected = 1
	if got, err := a.step(ctx, "e", r); err != nil || got.Replay == nil || got.Replay.Version != 2 || got.Handle.State.Version != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	// Suspended by b; a remembers running.
	c := execution.Change{Kind: execution.KindSuspended, Wait: &execution.Wait{}, Fence: 1, HasFence: true}
	if _, err := b.step(ctx, "e", c); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Claim(ctx, tenant, "e", claiming("w2", ""), nil); err != nil {
		t.Fatal(err)
	}
	_, err := a.step(ctx, "e", change(h, "3", `{"n":3}`))
	wantCode(t, err, execution.LeaseLost, "owner", "fence")
	_, err = a.Write(ctx, tenant, "e", WriteOptions{AtLeast: 99}, func(_ context.Context, h *Handle) (*Step, error) {
		if h.Fresh {
			t.Error("a step was computed on a journal whose end is cut")
		}
		return nil, execution.Errorf(execution.VersionConflict, "not yet there")
	})
	wantCode(t, err, execution.Integrity, "version")
}

// A write that was validated too long ago is refused by the store, and Write
// reads again.
func TestValidationWindow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	w.inline = 300
	for _, kind := range []string{"put", "transact", "put_object"} {
		e := execution.ExecutionID(kind)
		h := w.create(w.process(), e, `{}`, "w1")
		call := kind
		late := func() { w.advance(store.Window + time.Second) }
		j := w.between(call, late)
		c := change(h, "r", `{"n":1}`)
		switch kind {
		case "transact":
			c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
		case "put_object":
			c.Note = noise(rand.New(rand.NewPCG(1, 2)), 1000)
			j = w.process()
			j.Bucket = &slowBucket{Bucket: j.Bucket, before: sync.OnceFunc(late)}
		}
		w.calls()
		got, err := j.step(ctx, e, c)
		if err != nil || got.Handle.State.Version != 2 {
			t.Fatalf("%s: %v", kind, err)
		}
		calls, refused, reads := w.calls(), 0, 0
		for _, c := range calls {
			if c.Outcome == string(store.TooLate) && c.Call == kind {
				refused++
			}
			if c.Call == "query" {
				reads++
			}
		}
		if refused != 1 || reads != 2 {
			t.Errorf("%s: %s: %d refused, %d reads", kind, names(calls), refused, reads)
		}
		if at := w.history(e)[1].At; at < h.State.TipAt+store.Window.Milliseconds() {
			t.Errorf("%s: the entry's time is that of the old reading", kind)
		}
	}
	// Create begins anew, a renewal reads again.
	j := w.between("transact", func() { w.advance(store.Window + time.Second) })
	if h, replayed, err := j.Create(ctx, creation("late", `{}`, "")); err != nil || replayed || h.State.CreatedAt != w.engine.Now().UnixMilli() || h.State.Generation != h.State.CreatedAt {
		t.Errorf("%v %v", replayed, err)
	}
	h := w.create(w.process(), "renewed", `{}`, "w1")
	w.advance(10 * time.Second)
	j = w.between("update", func() { w.advance(store.Window + time.Second) })
	if r, err := j.Renew(ctx, tenant, "renewed", "w1", h.State.Fence, 60); err != nil || r.Head.LeaseExpiresAt != w.engine.Now().UnixMilli()+60_000 {
		t.Errorf("%+v %v", r, err)
	}
}

type slowBucket struct {
	store.Bucket
	before func()
}

func (s *slowBucket) Put(ctx context.Context, in store.PutObject) (store.ObjectMeta, error) {
	s.before()
	return s.Bucket.Put(ctx, in)
}

// What an ambiguous write may say `go` for, and when never (M).
func TestUnsent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	prepare := func() (*world, *Journal, execution.Change) {
		w := newWorld(t)
		j := w.process()
		c := change(w.create(j, "e", `{}`, "w1"), "r", `{"n":1}`)
		c.Operations = []execution.Declaration{{Name: "pay"}}
		return w, j, c
	}
	repeat := func(j *Journal, c execution.Change, replay, unsent bool, what string) {
		t.Helper()
		got, err := j.step(ctx, "e", c)
		if err != nil || (got.Replay != nil) != replay || got.Unsent != unsent {
			t.Errorf("%s: %+v %v", what, got, err)
		}
	}
	// Landed, nobody heard of it: this process may say so once, another never.
	w, j, c := prepare()
	w.faults(memory.Fault{On: "*", Count: 99, Effect: "landed"})
	_, err := j.step(ctx, "e", c)
	wantCode(t, err, execution.Unavailable)
	w.faults()
	repeat(w.process(), c, true, false, "another process")
	repeat(j, c, true, true, "this process")
	repeat(j, c, true, false, "this process again")
	// Lost, then written by the repeat and answered: never again.
	w, j, c = prepare()
	w.faults(memory.Fault{On: "*", Count: 99, Effect: "lost"})
	_, err = j.step(ctx, "e", c)
	wantCode(t, err, execution.Unavailable)
	w.faults()
	repeat(j, c, false, false, "the repeat writes it")
	repeat(j, c, true, false, "and has answered")
	// Lost here, written by another process, which has answered.
	w, j, c = prepare()
	w.faults(memory.Fault{On: "*", Count: 99, Effect: "lost"})
	_, err = j.step(ctx, "e", c)
	wantCode(t, err, execution.Unavailable)
	w.faults()
	repeat(w.process(), c, false, false, "another process writes it")
	repeat(j, c, true, false, "not this one's entry")
	// Landed, but the fence has moved on.
	w, j, c = prepare()
	w.faults(memory.Fault{On: "*", Count: 99, Effect: "landed"})
	_, err = j.step(ctx, "e", c)
	wantCode(t, err, execution.Unavailable)
	w.faults()
	w.advance(2 * time.Minute)
	if _, err := w.process().Claim(ctx, tenant, "e", claiming("w2", ""), nil); err != nil {
		t.Fatal(err)
	}
	repeat(j, c, true, false, "under another fence")
}

// An answer that certainly nothing was written is given only where that is so.
func TestUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	w.faults(memory.Fault{On: "put", Effect: "lost"}, memory.Fault{On: "put", Nth: 2, Effect: "throttle"}, memory.Fault{On: "get", Effect: "unavailable"})
	_, err := j.step(ctx, "e", change(h, "r", `{"n":1}`))
	wantCode(t, err, execution.Unavailable) // the first try may still land
	w.faults(memory.Fault{On: "put", Effect: "throttle"})
	_, err = j.step(ctx, "e", change(h, "r", `{"n":1}`))
	wantCode(t, err, execution.Throttled)
	w.faults(memory.Fault{On: "transact", Effect: "lost"}, memory.Fault{On: "transact", Nth: 2, Effect: "throttle"})
	_, _, err = j.Create(ctx, creation("new", `{}`, ""))
	wantCode(t, err, execution.Unavailable)
	for effect, code := range map[string]execution.Code{"denied": execution.KeyUnavailable, "key_disabled": execution.KeyUnavailable, "throttle": execution.Throttled} {
		w.faults(memory.Fault{On: "put", Effect: effect})
		_, err = j.step(ctx, "e", change(h, "r", `{"n":1}`))
		wantCode(t, err, code, "execution")
	}
	w.faults()
	if n := len(w.history("e")); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{"n":0}`, "w1")
	if h.State.Version != 1 || h.State.Fence != 1 || h.State.Status != execution.StatusRunning || h.State.Generation != w.start.UnixMilli() {
		t.Fatalf("%+v", h.State)
	}
	head := w.open(w.process(), "e").Head
	if head.Owner != "w1" || head.LeaseExpiresAt != h.State.TipAt+60_000 || head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease || head.Thread != "case-1" || len(head.SubjectTokens) != 2 {
		t.Errorf("%+v", head)
	}
	h2, replayed, err := w.process().Create(ctx, creation("e", `{"n":0}`, "w1"))
	if err != nil || !replayed || h2.State.Version != 1 {
		t.Errorf("%v %v", replayed, err)
	}
	w.apply(j, h, "later", `{"n":1}`)
	h2, replayed, err = w.process().Create(ctx, creation("e", `{"n":0}`, "w1"))
	if err != nil || !replayed || h2.State.Version != 2 {
		t.Errorf("after a step: %v %v", replayed, err)
	}
	other := creation("e", `{"n":0}`, "w1")
	other.Change.Request = requestWith("create e", "other")
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.RequestMismatch)
	other.Change.Request = request("another")
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.AlreadyExists)
	other.Change.Request = execution.RequestID{}
	_, _, err = j.Create(ctx, other)
	wantCode(t, err, execution.AlreadyExists)
	// Rows by which it is found.
	for _, k := range []store.Key{RegistryKey(h.State.Ref), SelectorKey(h.State.Ref, "lt1"), SelectorKey(h.State.Ref, "st1"), SelectorKey(h.State.Ref, "st2")} {
		if it := w.items(k.PK)[k.SK]; it.Int(HeadGeneration) != h.State.Generation {
			t.Errorf("%v: %v", k, it)
		}
	}
	// A tenant that is being purged takes nothing in.
	k := ClosingKey(tenant)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK)})
	_, _, err = j.Create(ctx, creation("closing", `{}`, ""))
	wantCode(t, err, execution.Deleted, "in_progress")
	w.remove(k.PK, k.SK)
	// Parts of others: refused with their own words.
	with := creation("with", `{}`, "")
	with.With = []store.Write{{Check: &store.Check{Key: store.Key{PK: "acme#e", SK: "nothing"}, Cond: store.There()}}}
	with.Refused = func(i int, old store.Item) error { return fmt.Errorf("part %d: %w", i, execution.Held) }
	if _, _, err = j.Create(ctx, with); !errors.Is(err, execution.Held) {
		t.Errorf("%v", err)
	}
	if len(w.items("acme#with")) != 0 {
		t.Error("half of it was written")
	}
	// Past its time: gone for create too.
	hd := w.items("acme#e")[SKHead]
	hd[HeadExpires] = store.N(w.engine.Now().UnixMilli())
	w.put(hd)
	_, _, err = j.Create(ctx, creation("e", `{"n":0}`, "w1"))
	wantCode(t, err, execution.Deleted, "expired")
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.Deleted, "expired")
	_, err = j.Renew(ctx, tenant, "e", "w1", 1, 60)
	wantCode(t, err, execution.Deleted, "expired")
}

// Two creations of one id at once.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.between("transact", func() { w.create(w.process(), "e", `{"n":0}`, "") })
	if _, replayed, err := j.Create(ctx, creation("e", `{"n":0}`, "")); err != nil || !replayed {
		t.Errorf("%v %v", replayed, err)
	}
	j = w.between("transact", func() { w.create(w.process(), "f", `{"n":0}`, "") })
	c := creation("f", `{"n":1}`, "")
	c.Change.Request = request("mine")
	_, _, err := j.Create(ctx, c)
	wantCode(t, err, execution.AlreadyExists)
}

func TestClaim(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	_, err := j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld, "retry_after_ms", "owner")
	// A renewal holds it longer, progress too.
	w.advance(50 * time.Second)
	if r, err := j.Renew(ctx, tenant, "e", "w1", h.State.Fence, 60); err != nil || r.RemainingMS != 60_000 {
		t.Fatalf("%v", err)
	}
	w.advance(59 * time.Second)
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	if ms := execution.AsError(err).Facts["retry_after_ms"]; ms != int64(1000) {
		t.Errorf("retry after %v ms", ms)
	}
	h = w.apply(j, h, "a", `{"n":1}`)
	w.advance(59 * time.Second)
	_, err = j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// A renewal between reading and claiming is not run over.
	w.advance(time.Second)
	k := w.between("transact", func() {
		if _, err := w.process().Renew(ctx, tenant, "e", "w1", h.State.Fence, 60); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// Nor is progress.
	w.advance(61 * time.Second)
	k = w.between("transact", func() { h = w.apply(w.process(), h, "b", `{"n":2}`) })
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.LeaseHeld)
	// Of two claimers exactly one.
	w.advance(61 * time.Second)
	k = w.between("transact", func() {
		if _, err := w.process().Claim(ctx, tenant, "e", claiming("w3", "n3"), nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Claim(ctx, tenant, "e", claiming("w2", "n2"), nil)
	wantCode(t, err, execution.LeaseHeld)
	got, err := w.process().Claim(ctx, tenant, "e", claiming("w3", "n3"), nil)
	if err != nil || got.Replay == nil || got.Handle.State.Owner != "w3" {
		t.Fatalf("%+v %v", got, err)
	}
	head := w.open(j, "e").Head
	if s := got.Handle.State; head.Fence != s.Fence || head.Owner != "w3" || head.LeaseExpiresAt != s.ClaimedAt+60_000 || head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease || head.Status != execution.StatusRunning {
		t.Errorf("%+v", head)
	}
	// The nonce of a claim that is over is LeaseLost, not a second owner.
	w.advance(61 * time.Second)
	if _, err := j.Claim(ctx, tenant, "e", claiming("w4", "n4"), nil); err != nil {
		t.Fatal(err)
	}
	_, err = j.Claim(ctx, tenant, "e", claiming("w3", "n3"), nil)
	wantCode(t, err, execution.LeaseLost, "owner")
	c := execution.Change{Kind: execution.KindContinued, Continue: &execution.Continue{}, Fence: w.open(j, "e").State.Fence, HasFence: true}
	if _, err := j.step(ctx, "e", c); err != nil {
		t.Fatal(err)
	}
	_, err = j.Claim(ctx, tenant, "e", claiming("w4", "n4"), nil)
	wantCode(t, err, execution.LeaseLost)
	// What nobody owns anybody may have; what prepare refuses stays refused.
	_, err = j.Claim(ctx, tenant, "e", claiming("w5", ""), func(*Handle) error { return execution.Errorf(execution.SchemaTooNew, "no") })
	wantCode(t, err, execution.SchemaTooNew)
}

// The hand-overs on the head are counted by the claim and gone from the head.
func TestClaimTakesHandovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "w1")
	w.advance(61 * time.Second)
	hd := w.items("acme#e")[SKHead]
	hd[HeadHandover], hd[HeadQuarantine] = store.N(3), store.S("x")
	w.put(hd)
	got, err := j.Claim(context.Background(), tenant, "e", claiming("w2", ""), nil)
	if err != nil || got.Handle.State.Handovers != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	if h := w.open(j, "e").Head; h.Handover != 0 || h.Quarantine != "" {
		t.Errorf("%+v", h)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	f := h.State.Fence
	// Not later: success, unchanged, no write.
	w.calls()
	r, err := j.Renew(ctx, tenant, "e", "w1", f, 30)
	if err != nil || r.RemainingMS != 60_000 || names(w.calls()) != "get" {
		t.Errorf("%+v %v", r, err)
	}
	_, err = j.Renew(ctx, tenant, "e", "w2", f, 90)
	wantCode(t, err, execution.LeaseLost, "owner", "fence")
	_, err = j.Renew(ctx, tenant, "e", "w1", f+1, 90)
	wantCode(t, err, execution.LeaseLost)
	_, err = j.Renew(ctx, tenant, "nope", "w1", f, 90)
	wantCode(t, err, execution.NotFound)
	// After its own end, as long as nobody else has claimed.
	w.advance(2 * time.Minute)
	if r, err = j.Renew(ctx, tenant, "e", "w1", f, 60); err != nil || r.RemainingMS != 60_000 {
		t.Errorf("%+v %v", r, err)
	}
	if head := w.open(j, "e").Head; head.DueAt != head.LeaseExpiresAt || head.DueKind != DueLease {
		t.Errorf("%+v", head)
	}
	// A claim between its read and its write wins.
	w.advance(2 * time.Minute)
	k := w.between("update", func() {
		if _, err := w.process().Claim(ctx, tenant, "e", claiming("w2", ""), nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Renew(ctx, tenant, "e", "w1", f, 60)
	wantCode(t, err, execution.LeaseLost, "owner")
	// So does an ending, and an older renewal never shortens a newer one.
	s := w.open(j, "e").State
	k = w.between("update", func() {
		if _, err := w.process().Renew(ctx, tenant, "e", "w2", s.Fence, 600); err != nil {
			t.Fatal(err)
		}
	})
	if r, err = k.Renew(ctx, tenant, "e", "w2", s.Fence, 300); err != nil || r.RemainingMS != 600_000 {
		t.Errorf("%+v %v", r, err)
	}
	k = w.between("update", func() {
		c := execution.Change{Kind: execution.KindSuspended, Wait: &execution.Wait{}, Fence: s.Fence, HasFence: true}
		if _, err := w.process().step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
	})
	_, err = k.Renew(ctx, tenant, "e", "w2", s.Fence, 900)
	wantCode(t, err, execution.LeaseLost)
	if head := w.open(j, "e").Head; head.LeaseExpiresAt != 0 || head.Owner != "" || head.DueKind != DueWake {
		t.Errorf("%+v", head)
	}
	// A status that this version does not know: nothing.
	hd := w.items("acme#e")[SKHead]
	hd[HeadStatus] = store.S("dreaming")
	w.put(hd)
	_, err = j.Renew(ctx, tenant, "e", "w2", s.Fence, 60)
	wantCode(t, err, execution.Integrity)
	_, err = j.Claim(ctx, tenant, "e", claiming("w5", ""), nil)
	wantCode(t, err, execution.Integrity)
	_, err = j.step(ctx, "e", execution.Change{Kind: execution.KindHalted, System: true})
	wantCode(t, err, execution.Integrity)
}

// A renewal holds only for the head as it was read, in each of these by itself.
func TestRenewAgainstTheHeadAsRead(t *testing.T) {
	t.Parallel()
	for attr, v := range map[string]store.Value{HeadStatus: store.S("halted"), HeadOwner: store.S("w9"), HeadFence: store.N(9)} {
		w := newWorld(t)
		h := w.create(w.process(), "e", `{}`, "w1")
		w.advance(10 * time.Second)
		j := w.between("update", func() {
			hd := w.items("acme#e")[SKHead]
			hd[attr] = v
			w.put(hd)
		})
		_, err := j.Renew(context.Background(), tenant, "e", "w1", h.State.Fence, 60)
		wantCode(t, err, execution.LeaseLost)
		if got := w.items("acme#e")[SKHead].Int(HeadLeaseExpires); got != h.State.TipAt+60_000 {
			t.Errorf("%s: the lease was moved", attr)
		}
	}
	// An earlier self of the same name, superseded between its read and its write.
	w := newWorld(t)
	h := w.create(w.process(), "e", `{}`, "w1")
	j := w.between("update", func() {
		c := claiming("w1", "n2")
		c.Claim.Supersede = true
		if _, err := w.process().Claim(context.Background(), tenant, "e", c, nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err := j.Renew(context.Background(), tenant, "e", "w1", h.State.Fence, 600)
	wantCode(t, err, execution.LeaseLost)
}

// A head that does not belong to its journal is damage, not a race.
func TestHeadAgainstJournal(t *testing.T) {
	t.Parallel()
	for attr, v := range map[string]store.Value{HeadStatus: store.S("parked"), HeadFence: store.N(77), HeadGeneration: store.N(5), "nobody's " + HeadFence: store.N(1)} {
		w := newWorld(t)
		j := w.process()
		owner := "w1"
		if strings.HasPrefix(attr, "nobody's ") {
			owner, attr = "", HeadFence
		}
		h := w.create(j, "e", `{}`, owner)
		hd := w.items("acme#e")[SKHead]
		hd[attr] = v
		w.put(hd)
		c := change(h, "r", `{}`)
		c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
		_, err := j.step(context.Background(), "e", c)
		wantCode(t, err, execution.Integrity)
		if n := len(w.items("acme#e")); n > 3 {
			t.Errorf("%s: %d items", attr, n)
		}
	}
	// The lease on a head of another fence says nothing about this owner.
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "w1")
	w.advance(61 * time.Second)
	hd := w.items("acme#e")[SKHead]
	hd[HeadFence], hd[HeadLeaseExpires] = store.N(77), store.N(w.engine.Now().Add(time.Hour).UnixMilli())
	w.put(hd)
	_, err := j.Claim(context.Background(), tenant, "e", claiming("w2", ""), nil)
	wantCode(t, err, execution.Integrity)
}

// What the fold forgets stands in its slot first; what stands there already
// stays.
func TestForgottenOperationsStandInTheirSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, forgotten := range []int{3, 30} {
		w := newWorld(t)
		j := w.process()
		j.SnapshotBytes = 1 << 30
		h := w.create(j, "e", `{"text":"`+noise(rand.New(rand.NewPCG(1, 1)), 250<<10)+`"}`, "w1")
		c := change(h, "many", `{"n":-1}`)
		for i := range execution.MaxSettledMemory + forgotten {
			c.Operations = append(c.Operations, execution.Declaration{Name: "op", Key: fmt.Sprint(i), Args: value(`7`)})
		}
		got, err := j.step(ctx, "e", c)
		if err != nil {
			t.Fatal(err)
		}
		ops := got.Handle.State.OperationsInOrder()
		c = change(got.Handle, "settled", `{"n":0}`)
		for _, op := range ops {
			c.Outcomes = append(c.Outcomes, execution.Settlement{Operation: op.ID, Outcome: execution.OutcomeFailed, Result: value(`null`), ProviderRef: "p"})
		}
		if got, err = j.step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.FillSlot(ctx, h.State.Ref, &Slot{Operation: ops[1].ID, Attempt: 1, Generation: h.State.Generation, Outcome: execution.OutcomeSucceeded, At: 3}, FillOptions{}); err != nil {
			t.Fatal(err)
		}
		j.SnapshotBytes = 1
		h = w.apply(j, got.Handle, "forgets", `{"n":1}`)
		same(t, w.open(w.process(), "e"), h)
		if len(h.State.Settled) != execution.MaxSettledMemory || len(h.State.Forgotten) != 8*forgotten {
			t.Fatalf("%d remembered, %d forgotten", len(h.State.Settled), len(h.State.Forgotten)/8)
		}
		slots, err := j.ReadAllSlots(ctx, h.State.Ref)
		if err != nil || len(slots) != forgotten {
			t.Fatalf("%d slots, %v", len(slots), err)
		}
		for i, op := range ops[:forgotten] {
			want := execution.OutcomeFailed
			if i == 1 {
				want = execution.OutcomeSucceeded
			}
			if s := slots[op.ID][1]; s.Outcome != want || i != 1 && (s.Result == nil || s.ProviderRef != "p" || string(s.Args) != string(op.ArgsDigest[:])) || !h.State.MayBeForgotten(op.ID) {
				t.Errorf("%d: %+v", i, s)
			}
		}
	}
}

// Slots: first final write wins, whoever writes.
func TestSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	ref := w.create(j, "e", `{}`, "w1").State.Ref
	const op = execution.OperationID("0123456789abcdef0123456789abcdef")
	slot := func(o execution.Outcome, n int) *Slot {
		return &Slot{Operation: op, Attempt: n, Generation: ref.Generation, Outcome: o, At: 5, Result: value(`{"n":null}`), ProviderRef: "p"}
	}
	fill := func(s *Slot, o FillOptions, stands execution.Outcome, filled bool) {
		t.Helper()
		now, did, err := j.FillSlot(ctx, ref, s, o)
		if err != nil || now.Outcome != stands || did != filled {
			t.Errorf("fill %s: stands %+v filled %v %v", s.Outcome, now, did, err)
		}
	}
	fill(slot(execution.OutcomeUnknown, 1), FillOptions{}, execution.OutcomeUnknown, true)
	fill(slot(execution.OutcomeInProgress, 1), FillOptions{}, execution.OutcomeInProgress, true)
	fill(slot(execution.OutcomeNotExecuted, 1), FillOptions{OnlyEmpty: true}, execution.OutcomeInProgress, false)
	fill(slot(execution.OutcomeSucceeded, 1), FillOptions{}, execution.OutcomeSucceeded, true)
	fill(slot(execution.OutcomeSucceeded, 1), FillOptions{}, execution.OutcomeSucceeded, true)
	fill(slot(execution.OutcomeFailed, 1), FillOptions{}, execution.OutcomeSucceeded, false)
	fill(slot(execution.OutcomeUnknown, 1), FillOptions{}, execution.OutcomeSucceeded, false)
	other := slot(execution.OutcomeSucceeded, 1)
	other.Result = value(`{"n":1}`)
	fill(other, FillOptions{}, execution.OutcomeSucceeded, false)
	got, err := j.ReadSlots(ctx, ref, op)
	if s := got[1]; err != nil || !s.SawUnknown || s.Result.String() != `{"n":null}` || s.ProviderRef != "p" {
		t.Errorf("%+v %v", got, err)
	}
	// A started slot is not empty, and only its outcome finishes it.
	k := SlotKey(ref.PK(), op, 2)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(ref.Generation), SlotNonce: store.B([]byte("n")), SlotStarted: store.N(3), SlotFence: store.N(1)})
	fill(slot(execution.OutcomeNotExecuted, 2), FillOptions{OnlyEmpty: true}, execution.OutcomeNone, false)
	fill(slot(execution.OutcomeRejected, 2), FillOptions{}, execution.OutcomeRejected, true)
	// An outcome of a newer version is open, and nobody writes over it.
	k = SlotKey(ref.PK(), op, 3)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(ref.Generation), SlotOutcome: store.S("teleported"), SlotBody: store.B([]byte("?"))})
	fill(slot(execution.OutcomeSucceeded, 3), FillOptions{}, "teleported", false)
	// Another generation's.
	k = SlotKey(ref.PK(), op, 4)
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), SlotGeneration: store.N(1)})
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 4), FillOptions{})
	wantCode(t, err, execution.Deleted)
	// A callback is good for one content.
	fill(slot(execution.OutcomeInProgress, 5), FillOptions{Callback: []byte("a")}, execution.OutcomeInProgress, true)
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 5), FillOptions{Callback: []byte("b")})
	wantCode(t, err, execution.RequestMismatch)
	fill(slot(execution.OutcomeSucceeded, 5), FillOptions{}, execution.OutcomeSucceeded, true)
	// A recorded null is not absent.
	null := slot(execution.OutcomeSucceeded, 6)
	null.Result = value(`null`)
	fill(null, FillOptions{}, execution.OutcomeSucceeded, true)
	none := slot(execution.OutcomeSucceeded, 7)
	none.Result, none.Reason = nil, `"r":null`
	fill(none, FillOptions{}, execution.OutcomeSucceeded, true)
	got, err = j.ReadSlots(ctx, ref, op)
	if err != nil || got[6].Result == nil || got[7].Result != nil {
		t.Errorf("%+v %v", got, err)
	}
	// Contradictions are kept once each, beside the first outcome.
	for n, first := range []bool{true, false} {
		did, err := j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 1), []byte{1}, FillOptions{})
		if err != nil || did != first {
			t.Errorf("contradiction %d: first %v, %v", n, did, err)
		}
	}
	if did, err := j.Contradict(ctx, ref, slot(execution.OutcomeRejected, 1), []byte{2}, FillOptions{}); err != nil || !did {
		t.Errorf("another contradiction: %v %v", did, err)
	}
	got, err = j.ReadSlots(ctx, ref, op)
	if s := got[1]; err != nil || s.Outcome != execution.OutcomeSucceeded || !s.Contradicted || len(s.Contradictions) != 2 || s.Contradictions[0].Outcome != execution.OutcomeFailed {
		t.Errorf("%+v %v", got[1], err)
	}
	_, err = j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 4), []byte{1}, FillOptions{}) // another generation's slot
	wantCode(t, err, execution.Deleted)
	_, err = j.Contradict(ctx, ref, slot(execution.OutcomeFailed, 5), []byte{1}, FillOptions{Callback: []byte("b")})
	wantCode(t, err, execution.RequestMismatch)
	// Too late a validation is refused.
	_, _, err = j.FillSlot(ctx, ref, slot(execution.OutcomeSucceeded, 8), FillOptions{ValidatedAt: w.engine.Now().Add(-store.Window - time.Second)})
	wantCode(t, err, execution.Unavailable)
	// Batches that come back in part.
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 2})
	many, err := j.GetSlots(ctx, ref, []*execution.Operation{{ID: op, Attempt: 6}, {ID: "none", Attempt: 1}})
	if err != nil || len(many) != 1 {
		t.Errorf("%v %v", many, err)
	}
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 20})
	_, err = j.GetSlots(ctx, ref, []*execution.Operation{{ID: op, Attempt: 6}})
	wantCode(t, err, execution.Throttled)
}
