package journal

import (
	"context"
	"math/rand/v2"
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

func (h *hooked) Get(ctx context.Context, in store.Get) (store.Item, store.Meta, error) {
	h.before("get")
	return h.Table.Get(ctx, in)
}

func (h *hooked) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	h.before("query")
	return h.Table.Query(ctx, in)
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
	j = w.process()
	j.Bucket = &slowBucket{Bucket: j.Bucket, before: sync.OnceFunc(func() { w.advance(store.Window + time.Second) })}
	large := creation("large", `{"s":"`+noise(rand.New(rand.NewPCG(1, 2)), 1000)+`"}`, "")
	if h, replayed, err := j.Create(ctx, large); err != nil || replayed || h.State.CreatedAt != w.engine.Now().UnixMilli() {
		t.Errorf("a large creation: %v %v", replayed, err)
	}
	h := w.create(w.process(), "renewed", `{}`, "w1")
	w.advance(10 * time.Second)
	j = w.between("update", func() { w.advance(store.Window + time.Second) })
	if r, err := j.Renew(ctx, tenant, "renewed", "w1", h.State.Fence, 60); err != nil || r.Head.LeaseExpiresAt != w.engine.Now().UnixMilli()+60_000 {
		t.Errorf("%+v %v", r, err)
	}
}

// An answer that was too long on its way tells no time: a process that froze
// before its request went out would live in the future.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	h := w.create(w.process(), "e", `{}`, "w1")
	slow := func() { w.advance(slowest + time.Millisecond) }
	for _, call := range []string{"query", "get"} {
		j := w.between(call, slow)
		_, err := j.Open(ctx, tenant, "e", OpenOptions{Head: true})
		wantCode(t, err, execution.Unavailable)
		h, err := j.Open(ctx, tenant, "e", OpenOptions{Head: true})
		if err != nil || j.Now(h) != w.engine.Now().UnixMilli() {
			t.Errorf("%s: %v", call, err)
		}
		j = w.between(call, func() { w.advance(slowest) })
		if _, err := j.Open(ctx, tenant, "e", OpenOptions{Head: true}); err != nil {
			t.Errorf("%s that took just %v: %v", call, slowest, err)
		}
	}
	_, _, err := w.between("query", slow).Create(ctx, creation("late", `{}`, ""))
	wantCode(t, err, execution.Unavailable)
	// What was written stands; only nothing is decided on it without a read.
	j := w.between("put", slow)
	got, err := j.step(ctx, "e", change(h, "r", `{"n":1}`))
	if err != nil || got.Handle.State.Version != 2 || j.usable(got.Handle) {
		t.Errorf("a slow write: %v", err)
	}
	j = w.between("transact", slow)
	h, _, err = j.Create(ctx, creation("f", `{}`, ""))
	if err != nil || j.usable(h) {
		t.Errorf("a slow creation: %v", err)
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

// Two items are one write only with the same sealed bytes in the same life.
func TestSameBody(t *testing.T) {
	t.Parallel()
	item := func(generation int64, body, object string) store.Item {
		it := store.Item{attrGeneration: store.N(generation)}
		if body != "" {
			it[attrBody] = store.B([]byte(body))
		}
		if object != "" {
			it[attrObject] = store.B([]byte(object))
		}
		return it
	}
	for name, tt := range map[string]struct {
		a, b store.Item
		want bool
	}{
		"nothing there":           {nil, item(1, "b", ""), false},
		"the same":                {item(1, "b", ""), item(1, "b", ""), true},
		"another body":            {item(1, "c", ""), item(1, "b", ""), false},
		"another life":            {item(2, "b", ""), item(1, "b", ""), false},
		"the same object":         {item(1, "", "o"), item(1, "", "o"), true},
		"another object":          {item(1, "", "p"), item(1, "", "o"), false},
		"a body for an object":    {item(1, "o", ""), item(1, "", "o"), false},
		"nothing like an object":  {item(1, "", ""), item(1, "", "o"), false},
		"an object for its bytes": {item(1, "", "b"), item(1, "b", ""), false},
	} {
		if sameBody(tt.a, tt.b) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// A head that is gone or closed by the time of the write says so.
func TestHeadGoneUnderAWrite(t *testing.T) {
	t.Parallel()
	for want, f := range map[execution.Code]func(w *world){
		execution.NotFound: func(w *world) { w.remove("acme#e", SKHead) },
		execution.Deleted:  func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadStatus] = store.S("deleting") }) },
	} {
		w := newWorld(t)
		h := w.create(w.process(), "e", `{}`, "w1")
		j := w.between("transact", func() { f(w) })
		c := change(h, "r", `{}`)
		c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
		_, err := j.step(context.Background(), "e", c)
		wantCode(t, err, want)
	}
}

// Only a conflict tells what changed.
func TestOnlyConflictsTellChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.create(w.process(), "e", `{}`, "w1")
	c := change(h, "r", `{}`)
	c.Fence++
	_, err := w.process().step(context.Background(), "e", c)
	wantCode(t, err, execution.LeaseLost)
	if execution.AsError(err).Facts["changes"] != nil {
		t.Error(execution.AsError(err).Facts)
	}
}

// The newer token of a wait: only while that wait is on.
func TestRewake(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	if token, err := j.WakeToken(ctx, w.open(j, "e")); token != "" || err != nil {
		t.Errorf("%q %v", token, err)
	}
	suspend := func(h *Handle, token string) *Handle {
		c := change(h, "", `{}`)
		c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{TaskToken: token}
		if _, err := j.step(ctx, "e", c); err != nil {
			t.Fatal(err)
		}
		return w.open(j, "e")
	}
	token := func(want string) {
		t.Helper()
		if got, err := j.WakeToken(ctx, w.open(j, "e")); got != want || err != nil {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
	}
	h = suspend(h, "old")
	token("old")
	for range 2 {
		if err := j.Rewake(ctx, h, "new"); err != nil {
			t.Fatal(err)
		}
		token("new")
	}
	w.faults(memory.Fault{On: "update", Effect: "unavailable", Count: 9})
	wantCode(t, j.Rewake(ctx, h, "newer"), execution.Unavailable)
	w.faults()
	got, err := j.Claim(ctx, tenant, "e", claiming("w2", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Rewake(ctx, h, "late"); err != nil || w.items("acme#e")[SKHead].Has(HeadWake) {
		t.Errorf("a token of a wait that is over: %v", err)
	}
	h = suspend(got.Handle, "")
	if err := j.Rewake(ctx, h, "nobody's"); err != nil {
		t.Fatal(err)
	}
	token("")
}
