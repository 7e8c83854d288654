package memory_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func item(pk, sk string, n int64) store.Item {
	return store.Item{"pk": store.S(pk), "sk": store.S(sk), "n": store.N(n)}
}

func key(pk, sk string) store.Key { return store.Key{PK: pk, SK: sk} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value is n of an item, -1 when there is none.
func value(t *testing.T, tb store.Table, k store.Key) int64 {
	t.Helper()
	it, _, err := tb.Get(t.Context(), store.Get{Key: k, Consistent: true})
	must(t, err)
	if it == nil {
		return -1
	}
	return it.Int("n")
}

// Every write call under every effect: what happened, and what the caller hears.
func TestWriteEffects(t *testing.T) {
	for effect, want := range map[string]struct {
		happened, ambiguous, crashed bool
		kind                         store.ErrorKind
	}{
		"lost": {false, true, false, store.Unavailable}, "landed": {true, true, false, store.Unavailable},
		"unavailable": {false, true, false, store.Unavailable}, "throttle": {false, false, false, store.Throttled},
		"denied": {false, false, false, store.Denied}, "key_disabled": {false, false, false, store.KeyTrouble},
		"crash_before": {false, true, true, store.Unavailable}, "crash_after": {true, true, true, store.Unavailable},
	} {
		for name, write := range map[string]func(context.Context, store.Table) error{
			"put": func(ctx context.Context, tb store.Table) error {
				_, err := tb.Put(ctx, store.Put{Item: item("p", "a", 2)})
				return err
			},
			"update": func(ctx context.Context, tb store.Table) error {
				it, _, err := tb.Update(ctx, store.Update{Key: key("p", "a"), Actions: []store.Action{store.Add{Attr: "n", N: 1}}})
				if err != nil && it != nil {
					t.Errorf("update under %s: an item beside an error", effect)
				}
				return err
			},
			"delete": func(ctx context.Context, tb store.Table) error {
				_, _, err := tb.Delete(ctx, store.Delete{Key: key("p", "a")})
				return err
			},
			"transact": func(ctx context.Context, tb store.Table) error {
				_, err := tb.Transact(ctx, store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item("p", "a", 2)}}}})
				return err
			},
			"batch": func(ctx context.Context, tb store.Table) error {
				_, _, err := tb.BatchDelete(ctx, []store.Key{key("p", "a")})
				return err
			},
		} {
			t.Run(effect+" "+name, func(t *testing.T) {
				e := memory.New(memory.Options{})
				tb := e.Table(memory.Main)
				_, err := tb.Put(t.Context(), store.Put{Item: item("p", "a", 1)})
				must(t, err)
				setFaults(t, e, memory.Fault{On: name, Effect: effect})
				ctx, inv := memory.WithInvocation(t.Context())
				defer inv.End()
				err = write(ctx, tb)
				if store.KindOf(err) != want.kind || store.Ambiguous(err) != want.ambiguous || errors.Is(err, memory.ErrCrashed) != want.crashed || inv.Crashed() != want.crashed {
					t.Errorf("error %v, crashed %v", err, inv.Crashed())
				}
				if want.crashed != (ctx.Err() != nil) {
					t.Errorf("context: %v", ctx.Err())
				}
				if happened := value(t, tb, key("p", "a")) != 1; happened != want.happened {
					t.Errorf("happened: %v", happened)
				}
				log := e.Log()
				if got := log[1]; got.Call != name || got.Outcome != effect || got.Key != "p/a" {
					t.Errorf("log: %+v", got)
				}
				// Once only.
				must(t, write(t.Context(), tb))
			})
		}
	}
}

func TestReadEffects(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	for _, effect := range []string{"lost", "landed", "unavailable", "throttle", "denied", "key_disabled", "crash_before", "crash_after"} {
		setFaults(t, e, memory.Fault{On: "get", Effect: effect}, memory.Fault{On: "query", Effect: effect})
		_, _, err := tb.Get(t.Context(), store.Get{Key: key("p", "a"), Consistent: true})
		_, _, err2 := tb.Query(t.Context(), store.Query{PK: "p", Consistent: true})
		for _, err := range []error{err, err2} {
			if err == nil || store.Ambiguous(err) {
				t.Errorf("%s: %v", effect, err)
			}
		}
	}
}

// After a crash, every call of the invocation dies, on whatever goroutine, and
// does nothing; other invocations live on.
func TestCrashEndsInvocation(t *testing.T) {
	e := memory.New(memory.Options{})
	tb, b := e.Table(memory.Main), e.Bucket()
	setFaults(t, e, memory.Fault{On: "put", Nth: 10, Effect: "crash_after"})
	ctx, inv := memory.WithInvocation(t.Context())
	defer inv.End()
	var g errgroup.Group
	for i := range int64(50) {
		g.Go(func() error {
			_, err := tb.Put(ctx, store.Put{Item: item("p", string(rune('a'+i)), i)})
			return err
		})
	}
	if err := g.Wait(); !errors.Is(err, memory.ErrCrashed) || !inv.Crashed() {
		t.Fatalf("%v", err)
	}
	n := tb.Len()
	_, err := tb.Put(ctx, store.Put{Item: item("p", "late", 1)})
	_, _, err2 := tb.Get(ctx, store.Get{Key: key("p", "a")})
	_, err3 := b.Put(ctx, store.PutObject{Key: "x"})
	err4 := e.Door(ctx, "target", "arn", func() error { t.Error("a dead invocation reached a target"); return nil })
	for _, err := range []error{err, err2, err3, err4} {
		if !errors.Is(err, memory.ErrCrashed) || store.KindOf(err) != store.Unavailable {
			t.Errorf("after the crash: %v", err)
		}
	}
	if tb.Len() != n {
		t.Errorf("a dead invocation wrote")
	}
	other, inv2 := memory.WithInvocation(t.Context())
	defer inv2.End()
	_, err = tb.Put(other, store.Put{Item: item("p", "other", 1)})
	must(t, err)
	if inv2.Crashed() {
		t.Error("another invocation died")
	}
}

func TestScript(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	outcomes := func(n int, pk string) (out []string) {
		e.Mark()
		for range n {
			_, _ = tb.Put(t.Context(), store.Put{Item: item(pk, "a", 1)})
		}
		for _, c := range e.Log() {
			out = append(out, c.Outcome)
		}
		return out
	}
	for name, r := range map[string]struct {
		faults []memory.Fault
		want   []string
	}{
		"once by default": {[]memory.Fault{{On: "put", Effect: "lost"}}, []string{"lost", "ok", "ok", "ok"}},
		"nth and count":   {[]memory.Fault{{On: "put", Nth: 2, Count: 2, Effect: "throttle"}}, []string{"ok", "throttle", "throttle", "ok"}},
		"in sequence":     {[]memory.Fault{{On: "put", Effect: "lost"}, {On: "put", Effect: "landed"}}, []string{"lost", "landed", "ok", "ok"}},
		"by number":       {[]memory.Fault{{On: "put", Nth: 1, Effect: "lost"}, {On: "*", Nth: 3, Effect: "landed"}}, []string{"lost", "ok", "landed", "ok"}},
		"another key":     {[]memory.Fault{{On: "put", Match: "q/", Effect: "lost"}}, []string{"ok", "ok", "ok", "ok"}},
		"this key":        {[]memory.Fault{{On: "put", Match: "p/a", Count: 3, Effect: "lost"}}, []string{"lost", "lost", "lost", "ok"}},
		"another call":    {[]memory.Fault{{On: "update", Effect: "lost"}}, []string{"ok", "ok", "ok", "ok"}},
		"not for puts":    {[]memory.Fault{{On: "*", Effect: "stale"}}, []string{"ok", "ok", "ok", "ok"}},
		"cleared":         {nil, []string{"ok", "ok", "ok", "ok"}},
	} {
		setFaults(t, e, r.faults...)
		if got := outcomes(4, "p"); !slices.Equal(got, r.want) {
			t.Errorf("%s: %v, want %v", name, got, r.want)
		}
	}
	setFaults(t, e, memory.Fault{On: "put", Effect: "lost"})
	for _, f := range []memory.Fault{{On: "putt", Effect: "lost"}, {On: "put", Effect: "gone"}, {On: "put", Effect: "stale"}, {On: "get", Effect: "page_1"}, {On: "put", Effect: "lost", Nth: -1},
		{On: "put", Effect: "lost", Count: -1}, {On: "transact", Effect: "cancelled"}, {On: "transact", Effect: "lost", Reasons: reasons("x")}, {}} {
		if err := e.SetFaults([]memory.Fault{{On: "get", Effect: "lost"}, f}); err == nil {
			t.Errorf("accepted: %+v", f)
		}
	}
	if got := outcomes(2, "p"); !slices.Equal(got, []string{"lost", "ok"}) {
		t.Errorf("after a refused script: %v", got)
	}
}

func TestShapedAnswers(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	for _, sk := range []string{"a", "b", "c"} {
		_, err := tb.Put(t.Context(), store.Put{Item: item("p", sk, 1)})
		must(t, err)
	}
	setFaults(t, e, memory.Fault{On: "query", Effect: "page_1", Count: 10})
	page, _, err := tb.Query(t.Context(), store.Query{PK: "p", Limit: 2, Consistent: true})
	must(t, err)
	if len(page.Items) != 1 || page.Next.Key() != key("p", "a") {
		t.Errorf("page_1: %+v", page)
	}
	// A batch of deletes is struck by `delete` too, single deletes are not by unprocessed.
	setFaults(t, e, memory.Fault{On: "delete", Effect: "unprocessed"})
	_, _, err = tb.Delete(t.Context(), store.Delete{Key: key("p", "c")})
	must(t, err)
	left, _, err := tb.BatchDelete(t.Context(), []store.Key{key("p", "a"), key("p", "b")})
	must(t, err)
	if len(left) != 2 || value(t, tb, key("p", "a")) != 1 {
		t.Errorf("unprocessed: %v", left)
	}
}

// A stale read does not see the last write of an item, on the table and on
// indexes, unless that was long ago; consistent reads are not touched.
func TestStale(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	x := store.Indexes[0]
	head := func(sk, ipk string, n int64) store.Item {
		it := item("p", sk, n)
		it[x.PK], it[x.SK] = store.S(ipk), store.S("2026")
		return it
	}
	put := func(it store.Item) {
		_, err := tb.Put(t.Context(), store.Put{Item: it})
		must(t, err)
	}
	put(head("old", "running", 1))
	must(t, e.Advance(2*time.Minute))
	put(head("moved", "running", 1))
	put(head("moved", "waiting", 2))
	put(head("new", "running", 1))
	put(head("gone", "running", 1))
	_, _, err := tb.Delete(t.Context(), store.Delete{Key: key("p", "gone")})
	must(t, err)
	setFaults(t, e, memory.Fault{On: "*", Effect: "stale", Count: 1000})
	stale := map[string]int64{}
	fresh := map[string]int64{}
	for _, sk := range []string{"old", "moved", "new", "gone"} {
		fresh[sk] = value(t, tb, key("p", sk))
		it, _, err := tb.Get(t.Context(), store.Get{Key: key("p", sk)})
		must(t, err)
		stale[sk] = it.Int("n")
	}
	if fresh["old"] != 1 || fresh["moved"] != 2 || fresh["new"] != 1 || fresh["gone"] != -1 {
		t.Errorf("consistent: %v", fresh)
	}
	if stale["old"] != 1 || stale["moved"] != 1 || stale["new"] != 0 || stale["gone"] != 1 {
		t.Errorf("stale: %v", stale)
	}
	names := func(q store.Query) (out []string) {
		for {
			page, _, err := tb.Query(t.Context(), q)
			must(t, err)
			for _, it := range page.Items {
				out = append(out, it.Key().SK)
			}
			if q.Start = page.Next; page.Next == nil {
				return out
			}
		}
	}
	for _, limit := range []int{0, 1} {
		if got := names(store.Query{PK: "running", Index: x.Name, Limit: limit}); !slices.Equal(got, []string{"gone", "moved", "old"}) {
			t.Errorf("stale index: %v", got)
		}
		if got := names(store.Query{PK: "p", Limit: limit, Descending: true}); !slices.Equal(got, []string{"old", "moved", "gone"}) {
			t.Errorf("stale query: %v", got)
		}
		if got := names(store.Query{PK: "p", Limit: limit, Consistent: true}); !slices.Equal(got, []string{"moved", "new", "old"}) {
			t.Errorf("consistent query: %v", got)
		}
	}
	must(t, e.Advance(2*time.Minute))
	if got := names(store.Query{PK: "running", Index: x.Name}); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("two minutes later: %v", got)
	}
}

func TestCancelledOldItems(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	_, err := tb.Put(t.Context(), store.Put{Item: item("p", "a", 7)})
	must(t, err)
	setFaults(t, e, memory.Fault{On: "transact", Effect: "cancelled", Reasons: reasons("ConditionalCheckFailed", "TransactionConflict")})
	_, err = tb.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item("p", "a", 8)}}, {Put: &store.Put{Item: item("p", "b", 8)}}}})
	var c *store.Cancelled
	if !errors.As(err, &c) || c.Old[0].Int("n") != 7 || c.Old[1] != nil || c.Reasons[1] != store.ReasonConflict {
		t.Fatalf("%v", err)
	}
	// Repeats inside are calls of their own.
	setFaults(t, e, memory.Fault{On: "transact", Count: 2, Effect: "cancelled", Reasons: reasons("TransactionConflict")})
	e.Mark()
	_, err = tb.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item("p", "b", 8)}}}})
	must(t, err)
	var got []string
	for _, l := range e.Log() {
		got = append(got, l.Outcome)
	}
	if !slices.Equal(got, []string{"cancelled", "cancelled", "ok"}) {
		t.Errorf("log: %v", got)
	}
}

func TestDoor(t *testing.T) {
	e := memory.New(memory.Options{})
	own := errors.New("own")
	for effect, want := range map[string]struct {
		ran  bool
		kind store.ErrorKind
	}{
		"lost": {false, store.Unavailable}, "landed": {true, store.Unavailable}, "key_disabled": {false, store.KeyTrouble},
		"denied": {false, store.Denied}, "throttle": {false, store.Throttled}, "unavailable": {false, store.Unavailable}, "crash_before": {false, store.Unavailable}, "crash_after": {true, store.Unavailable},
	} {
		setFaults(t, e, memory.Fault{On: "kms_decrypt", Match: "tenant", Effect: effect})
		ran := false
		err := e.Door(t.Context(), "kms_decrypt", "tenant/1", func() error {
			ran = true
			e.Now() // no lock is held
			return nil
		})
		if ran != want.ran || store.KindOf(err) != want.kind {
			t.Errorf("%s: ran %v, %v", effect, ran, err)
		}
	}
	if err := e.Door(t.Context(), "resolver", "x", func() error { return own }); err != own {
		t.Errorf("own error: %v", err)
	}
	must(t, e.Door(t.Context(), "kms_decrypt", "tenant/1", func() error { return nil }))
	if l := e.Log(); l[len(l)-1].Call != "kms_decrypt" || l[len(l)-1].Key != "tenant/1" || l[len(l)-1].Outcome != "ok" || l[len(l)-2].Outcome != "error" {
		t.Errorf("log: %+v", l)
	}
}
