package retention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

// selectors that bind the execution `e` of rich, in thread T.
var selectors = map[string]fields{"execution": {"execution": "e"}, "thread": {"thread": "T"}, "subject": {"subject": "customer-1"}}

func with(a fields, b fields) fields {
	out := fields{}
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

func TestHoldsKeepEverything(t *testing.T) {
	t.Parallel()
	for name, sel := range selectors {
		for _, before := range []bool{true, false} {
			if name == "execution" && before {
				continue
			}
			t.Run(fmt.Sprintf("%s placed before the creation %v", name, before), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.ok("retention", "set_policy", fields{"policy": fields{"name": "p", "completed_days": 1, "history": fields{"keep": "versions", "n": 1}, "archive": fields{"enabled": true}}})
				hold := func(id string) {
					w.ok("retention", "hold", with(sel, fields{"hold": id, "reason": "legal", "actor": fields{"kind": "human", "id": "ann"}}))
				}
				if before {
					hold("h1")
				}
				w.rich("e", fields{"thread": "T", "policy": "p"})
				w.complete("e")
				if !before {
					hold("h1")
				}
				hold("h2")
				hold("h2") // again
				r := w.ok("retention", "holds", fields{"execution": "e"})
				if got := r["holds"].([]any); len(got) != 2 || got[0].(map[string]any)["reason"] != "legal" || got[0].(map[string]any)["actor"] == nil || got[0].(map[string]any)["since"] == nil {
					t.Errorf("holds: %v", got)
				}
				on := r["holds"].([]any)[0].(map[string]any)["on"].(map[string]any)
				for k, v := range sel {
					if on[k] != v {
						t.Errorf("on %v, want %v", on, sel)
					}
				}
				if c := w.code("retention", "delete", fields{"execution": "e", "reason": "r"}); c != execution.Held {
					t.Errorf("delete: %q", c)
				}
				if c := w.code("retention", "archive", fields{"execution": "e"}); c != execution.Held {
					t.Errorf("archive: %q", c)
				}
				items, objects := w.items(), w.objects()
				w.advance(3 * 24 * time.Hour)
				w.settle()
				if c := w.getCode("e"); c != "" {
					t.Errorf("held and past its time, but get answers %q", c)
				}
				for k := range objects {
					if _, ok := w.objects()[k]; !ok {
						t.Errorf("a held execution lost %s", k)
					}
				}
				for _, k := range of(items, "bank#e/j#") {
					if _, ok := w.items()[k]; !ok {
						t.Errorf("a held execution lost %s", k)
					}
				}
				w.ok("retention", "release_hold", with(sel, fields{"hold": "h1", "reason": "over"}))
				w.settle()
				if c := w.code("retention", "delete", fields{"execution": "e", "reason": "r"}); c != execution.Held {
					t.Errorf("delete under the second hold: %q", c)
				}
				w.ok("retention", "release_hold", with(sel, fields{"hold": "h2", "reason": "over"}))
				w.ok("retention", "release_hold", with(sel, fields{"hold": "h2", "reason": "over"})) // again
				w.settle()
				if c := w.getCode("e"); c != execution.Deleted {
					t.Errorf("after the release and its time: %q", c)
				}
				if got := of(w.objects(), "bank/e/e/"); len(got) > 0 {
					t.Errorf("objects left: %v", got)
				}
				if got := of(w.items(), "bank/holdset#"); len(got) > 0 {
					t.Errorf("holdsets left: %v", got)
				}
			})
		}
	}
}

func TestHoldLimitsAndRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", nil)
	for i := range execution.MaxHolds {
		w.ok("retention", "hold", fields{"execution": "e", "hold": fmt.Sprintf("h%d", i), "reason": "r"})
	}
	if c := w.code("retention", "hold", fields{"execution": "e", "hold": "more", "reason": "r"}); c != execution.TooLarge {
		t.Errorf("a seventeenth hold: %q", c)
	}
	for i := range execution.MaxHolds {
		w.ok("retention", "hold", fields{"thread": "T", "hold": fmt.Sprintf("h%d", i), "reason": "r"})
	}
	if c := w.code("retention", "hold", fields{"thread": "T", "hold": "more", "reason": "r"}); c != execution.TooLarge {
		t.Errorf("a seventeenth hold on a thread: %q", c)
	}
	// One that is there already is answered; a place that is free again is taken.
	w.ok("retention", "hold", fields{"thread": "T", "hold": "h1", "reason": "r"})
	w.ok("retention", "release_hold", fields{"thread": "T", "hold": "h1", "reason": "over"})
	w.ok("retention", "hold", fields{"thread": "T", "hold": "more", "reason": "r"})
	// What is closed takes no hold and releases none.
	closing := journal.ClosingKey("bank")
	if _, err := w.engine.Table(memory.Main).Put(t.Context(), store.Put{Item: store.Item{store.AttrPK: store.S(closing.PK), store.AttrSK: store.S(closing.SK)}}); err != nil {
		t.Fatal(err)
	}
	if c := w.code("retention", "hold", fields{"thread": "U", "hold": "h", "reason": "r"}); c != execution.Deleted {
		t.Errorf("a hold in a tenant that is being purged: %q", c)
	}
	if _, _, err := w.engine.Table(memory.Main).Delete(t.Context(), store.Delete{Key: closing}); err != nil {
		t.Fatal(err)
	}
	w.create("over", nil)
	w.create("closed", nil)
	set := func(e, attr string, v store.Value) {
		t.Helper()
		if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: journal.HeadKey("bank#" + e), Actions: []store.Action{store.Set{Attr: attr, Value: v}}}); err != nil {
			t.Fatal(err)
		}
	}
	set("over", journal.HeadExpires, store.N(w.engine.Now().UnixMilli()))
	set("closed", journal.HeadStatus, store.S("deleting"))
	for _, e := range []string{"over", "closed"} {
		if c := w.code("retention", "hold", fields{"execution": e, "hold": "h", "reason": "r"}); c != execution.Deleted {
			t.Errorf("a hold on %s: %q", e, c)
		}
	}
	if c := w.code("retention", "release_hold", fields{"execution": "closed", "hold": "h", "reason": "r"}); c != execution.Deleted {
		t.Errorf("a release of what is closed: %q", c)
	}
	for _, c := range []struct {
		f    fields
		want execution.Code
	}{
		{fields{"hold": "h", "reason": "r"}, execution.InvalidRequest},
		{fields{"execution": "e", "thread": "T", "hold": "h", "reason": "r"}, execution.InvalidRequest},
		{fields{"execution": "never", "hold": "h", "reason": "r"}, execution.NotFound},
		{fields{"execution": "e", "hold": "a#b", "reason": "r"}, execution.InvalidRequest},
		{fields{"execution": "e", "hold": "h"}, execution.InvalidRequest},
	} {
		if got := w.code("retention", "hold", c.f); got != c.want {
			t.Errorf("hold %v: %q, want %q", c.f, got, c.want)
		}
	}
}

// TestHoldAtEveryStepOfADeletion places a hold before each storage call of a
// deletion: it is acknowledged and stops the deletion, or it is told that the
// deletion is under way and does not.
// TestHoldsAtOneMoment: while holds are listed, or one is placed, somebody places
// another and releases the first. Never does it look as if there were none, and a
// hold that ended is not taken for one that is in force for another reason (found
// by TestLinearizable).
func TestHoldsAtOneMoment(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.create("e", nil)
	base.ok("retention", "hold", fields{"execution": "e", "hold": "a", "reason": "theirs"})
	for request, want := range map[string][]string{
		`{"action":"holds","tenant":"bank","execution":"e"}`:                                            {"a", "b"},
		`{"action":"hold","tenant":"bank","execution":"e","hold":"a","reason":"ours","request_id":"h"}`: {"a b"},
	} {
		calls := beforeEachCall(t, base, "retention", request, func(w *world) {
			w.ok("retention", "hold", fields{"execution": "e", "hold": "b", "reason": "r"})
			w.ok("retention", "release_hold", fields{"execution": "e", "hold": "a", "reason": "over"})
		}, func(_ *world, n int, out []byte, err error) {
			var r struct {
				Holds    []struct{ Hold, Reason string }
				Replayed bool
			}
			if err != nil || json.Unmarshal(out, &r) != nil {
				t.Errorf("%s, overtaken before call %d: %v", request, n, err)
				return
			}
			var ids []string
			for _, h := range r.Holds {
				if ids = append(ids, h.Hold); h.Reason == "" {
					t.Errorf("%s, overtaken before call %d: %s without its reason", request, n, h.Hold)
				}
			}
			if got := strings.Join(ids, " "); !slices.Contains(want, got) || r.Replayed {
				t.Errorf("%s, overtaken before call %d: %q, replayed %v", request, n, got, r.Replayed)
			}
		})
		if calls < 2 {
			t.Errorf("%s: only %d calls", request, calls)
		}
	}
	// What describes a hold was lost: the hold is in force and shown all the same.
	if _, _, err := base.engine.Table(memory.Main).Delete(t.Context(), store.Delete{Key: store.Key{PK: "bank#e", SK: "hold#a"}}); err != nil {
		t.Fatal(err)
	}
	if r := base.ok("retention", "holds", fields{"execution": "e"}); len(r["holds"].([]any)) != 1 {
		t.Errorf("%v", r)
	}
	if r := base.ok("retention", "hold", fields{"execution": "e", "hold": "a", "reason": "again"}); r["replayed"] != true {
		t.Errorf("%v", r)
	}
}

func TestHoldAtEveryStepOfADeletion(t *testing.T) {
	t.Parallel()
	for name, sel := range selectors {
		base := newWorld(t)
		base.rich("e", fields{"thread": "T"})
		u := copyOf(t, base)
		u.engine.Mark()
		u.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
		calls := len(u.engine.Log())
		stopped, under := 0, 0
		for n := 1; n <= calls; n += stride() {
			w := copyOf(t, base)
			hook := &hooked{n: n, do: func() {
				_, err := w.do(t.Context(), "retention", "hold", with(sel, fields{"hold": "h", "reason": "legal"}))
				hookedCode[err == nil](&stopped, &under)
				if err != nil && execution.CodeOf(err) != execution.Deleted {
					t.Errorf("%s before call %d: %v", name, n, err)
				}
			}}
			acknowledged := stopped
			w.over(hook)
			_, err := w.deleteWith(hook, "e")
			acked := stopped > acknowledged
			code := execution.CodeOf(err)
			switch {
			case name == "execution" && acked && code != execution.Held:
				t.Errorf("%s before call %d: acknowledged, but the deletion answered %q", name, n, code)
			case name == "execution" && !acked && code != "":
				t.Errorf("%s before call %d: refused, but the deletion answered %q", name, n, code)
			case code != "" && code != execution.Held:
				t.Errorf("%s before call %d: %v", name, n, err)
			}
			if code == execution.Held {
				if c := w.getCode("e"); c != "" {
					t.Errorf("%s before call %d: held, but get answers %q", name, n, c)
				}
			}
		}
		if stopped == 0 || name == "execution" && under == 0 {
			t.Errorf("%s: %d stopped it, %d were told that it is under way: the hook does not work", name, stopped, under)
		}
	}
}

var hookedCode = map[bool]func(stopped, under *int){
	true:  func(s, _ *int) { *s++ },
	false: func(_, u *int) { *u++ },
}

// TestHoldAndDeleteRace: of a hold and a deletion at the same time exactly one
// comes first.
func TestHoldAndDeleteRace(t *testing.T) {
	t.Parallel()
	for round := range 40 {
		w := newWorld(t)
		w.create("e", fields{"thread": "T"})
		var wg sync.WaitGroup
		var holdErr, deleteErr error
		wg.Add(2)
		go func() {
			defer wg.Done()
			_, holdErr = w.do(context.Background(), "retention", "hold", fields{"execution": "e", "hold": "h", "reason": "r", "request_id": "a"})
		}()
		go func() {
			defer wg.Done()
			_, deleteErr = w.do(context.Background(), "retention", "delete", fields{"execution": "e", "reason": "r", "request_id": "b"})
		}()
		wg.Wait()
		held, deleted := holdErr == nil, deleteErr == nil
		if held == deleted {
			t.Fatalf("round %d: hold %v, delete %v", round, holdErr, deleteErr)
		}
		if held && execution.CodeOf(deleteErr) != execution.Held || deleted && execution.CodeOf(holdErr) != execution.Deleted {
			t.Fatalf("round %d: hold %v, delete %v", round, holdErr, deleteErr)
		}
	}
}

func TestDeleteWhenReleased(t *testing.T) {
	t.Parallel()
	for name, sel := range selectors {
		w := newWorld(t)
		w.rich("e", fields{"thread": "T"})
		w.ok("retention", "hold", with(sel, fields{"hold": "h", "reason": "legal"}))
		r := w.ok("retention", "delete", fields{"execution": "e", "reason": "gdpr", "when_released": true})
		if d := r["deferred"].([]any); len(d) != 1 || r["done"] != false || d[0].(map[string]any)["execution"] != "e" {
			t.Errorf("%s: %v", name, r)
		}
		w.settle()
		if c := w.getCode("e"); c != "" {
			t.Errorf("%s: held, but get answers %q", name, c)
		}
		w.ok("retention", "release_hold", with(sel, fields{"hold": "h", "reason": "over"}))
		w.settle()
		if c := w.getCode("e"); c != execution.Deleted {
			t.Errorf("%s: released, but get answers %q", name, c)
		}
		if rec := w.ok("retention", "get_receipt", fields{"execution": "e"})["receipt"].(map[string]any); rec["reason"] != "gdpr" {
			t.Errorf("%s: receipt %v", name, rec)
		}
	}
}

// A deletion that could not be noted on a held execution is not said to wait for the
// release, whichever way it was asked for.
func TestNotNotedForTheRelease(t *testing.T) {
	t.Parallel()
	for name, sel := range map[string]fields{"execution": {"execution": "e"}, "thread": {"thread": "T"}, "subject": {"subject": "customer-1"}} {
		w := newWorld(t)
		w.rich("e", fields{"thread": "T"})
		w.ok("retention", "hold", fields{"execution": "e", "hold": "h", "reason": "legal"})
		w.faults(memory.Fault{On: "update", Match: "bank#e", Count: 100, Effect: "unavailable"})
		if c := w.code("retention", "delete", with(sel, fields{"reason": "gdpr", "when_released": true})); c != execution.Unavailable {
			t.Errorf("%s: %q", name, c)
		}
		w.faults()
		if r := w.ok("retention", "delete", with(sel, fields{"reason": "gdpr", "when_released": true})); len(r["deferred"].([]any)) != 1 {
			t.Errorf("%s: %v", name, r)
		}
		w.ok("retention", "release_hold", fields{"execution": "e", "hold": "h", "reason": "over"})
		w.settle()
		if c := w.getCode("e"); c != execution.Deleted {
			t.Errorf("%s: released, but get answers %q", name, c)
		}
	}
}

// TestHoldSurvivesEverything: placed or released under any fault and asked for
// again, a hold is there once, or gone.
func TestHoldSurvivesEverything(t *testing.T) {
	t.Parallel()
	for name, sel := range selectors {
		base := newWorld(t)
		base.rich("e", fields{"thread": "T"})
		for _, effect := range []string{"lost", "landed", "crash_before", "crash_after", "throttle", "unavailable"} {
			for n := 1; n <= 8; n++ {
				w := copyOf(t, base)
				for _, action := range []string{"hold", "release_hold"} {
					w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
					f := with(sel, fields{"hold": "h", "reason": "r", "request_id": action})
					err := w.crash(func(ctx context.Context) error { _, err := w.do(ctx, "retention", action, f); return err })
					if err != nil && !execution.CodeOf(err).Retryable() {
						t.Errorf("%s, %s %s at call %d: %v", name, action, effect, n, err)
					}
					w.faults()
					w.restart()
					r := w.ok("retention", action, f)
					want := map[string]int{"hold": 1, "release_hold": 0}[action]
					if got := len(r["holds"].([]any)); got != want {
						t.Errorf("%s, %s %s at call %d: %d holds", name, action, effect, n, got)
					}
					if got := len(of(w.items(), "bank#e/hold#")) + len(of(w.items(), "bank/holdset#")); got != want {
						t.Errorf("%s, %s %s at call %d: %d items", name, action, effect, n, got)
					}
				}
			}
		}
	}
}

// hooked runs something before the nth call of a table or bucket.
type hooked struct {
	n, seen int // n 0: before every call
	busy    bool
	do      func()
}

func (h *hooked) before() {
	if h.busy {
		return
	}
	if h.seen++; h.seen == h.n || h.n == 0 {
		h.busy = true
		h.do()
		h.busy = false
	}
}

// TestHoldOnASubjectIsWrittenInTimeOrNot: the token that a hold stands under was
// made from a key that may be gone by the time the hold is written; a write that
// comes more than five minutes after it was begun is refused.
func TestHoldOnASubjectIsWrittenInTimeOrNot(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.create("e", fields{"subjects": []string{"s"}})
	refused := 0
	beforeEachCall(t, base, "retention", `{"action":"hold","tenant":"bank","subject":"s","hold":"h","reason":"r"}`, func(w *world) { w.advance(6 * time.Minute) }, func(w *world, n int, _ []byte, err error) {
		held := len(of(w.items(), "bank/holdset#")) > 0
		if code := execution.CodeOf(lambdaError(err)); (code == "") != held || code != "" && !code.Retryable() {
			t.Errorf("call %d: %q, and the hold is there: %v", n, code, held)
		} else if code != "" {
			refused++
		}
	})
	if refused != 2 {
		t.Errorf("%d calls came too late, want the read of the subject's holds and the write", refused)
	}
}

// TestRememberedDeletion: a deletion that waits for a hold comes about once the hold
// is gone, also when the release died before it woke anybody, and whatever was being
// written to the execution when it was asked for.
func TestRememberedDeletion(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"completed_days": 365, "history": fields{"keep": "versions", "n": 3}})
	for _, e := range []string{"running", "done", "archived"} {
		base.rich(e, fields{"thread": "T", "policy": "p"})
	}
	base.rich("free", fields{"thread": "T"})
	base.complete("done")
	base.complete("archived")
	base.ok("retention", "archive", fields{"execution": "archived"})
	base.advance(90 * time.Minute) // the lease is over, not yet anything of the policy's
	fence := base.get("running")["fence"]
	ask := func(e string) func(w *world) {
		return func(w *world) {
			w.ok("retention", "hold", fields{"thread": "T", "hold": "h", "reason": "legal"})
			w.ok("retention", "delete", fields{"execution": e, "reason": "gdpr", "when_released": true})
			w.faults(memory.Fault{On: "update", Match: "holdset#", Effect: "crash_after"})
			_ = w.crash(func(ctx context.Context) error {
				_, err := w.do(ctx, "retention", "release_hold", fields{"thread": "T", "hold": "h", "reason": "over"})
				return err
			})
			w.faults()
		}
	}
	for _, c := range []struct {
		name, execution, function string
		request                   fields
		after                     time.Duration
	}{
		{"completing", "running", "checkpoint", fields{"action": "complete", "execution": "running", "fence": fence, "expected_version": 4, "outcome": "completed"}, 0},
		{"completing without a policy", "free", "checkpoint", fields{"action": "complete", "execution": "free", "fence": fence, "expected_version": 4, "outcome": "completed"}, 0},
		{"carrying on", "running", "checkpoint", fields{"action": "fork", "execution": "running", "at_version": 2, "new_execution": "fork", "operations": "carry", "request_id": "f"}, 0},
		{"archiving", "done", "retention", fields{"action": "archive", "execution": "done", "request_id": "a"}, 0},
		{"restoring", "archived", "retention", fields{"action": "restore", "execution": "archived", "request_id": "a"}, 0},
		{"a change of the policy", "running", "retention", fields{"action": "set_policy", "policy": fields{"name": "p", "completed_days": 1}}, 0},
		{"pruning", "running", "retention", fields{"action": "sweep"}, 26 * time.Hour},
		{"trimming", "archived", "retention", fields{"action": "sweep"}, 26 * time.Hour},
	} {
		from := copyOf(t, base)
		from.advance(c.after)
		body, _ := json.Marshal(with(c.request, fields{"tenant": "bank"}))
		calls := beforeEachCall(t, from, c.function, string(body), ask(c.execution), func(w *world, n int, _ []byte, err error) {
			if code := execution.CodeOf(lambdaError(err)); err != nil && code != execution.Deleted {
				t.Errorf("%s, asked before call %d: %v", c.name, n, err)
			}
			w.restart()
			w.advance(7 * time.Hour)
			w.settle()
			if code := w.getCode(c.execution); code != execution.Deleted {
				t.Errorf("%s, asked before call %d: a day later %s answers %q", c.name, n, c.execution, code)
			}
		})
		if calls < 2 {
			t.Errorf("%s: %d calls", c.name, calls)
		}
	}
}

// beforeEachCall makes a request once for each of the calls that it makes of table
// and bucket, always in a copy of the world, and does something right before that
// call; then sees the answer. It gives the number of calls.
func beforeEachCall(t *testing.T, base *world, function, request string, do func(w *world), then func(w *world, n int, out []byte, err error)) (calls int) {
	t.Helper()
	for n := 1; ; n++ {
		w := copyOf(t, base)
		hook := &hooked{n: n, do: func() { do(w) }}
		out, err := w.processOver(hookedTable{w.engine.Table(memory.Main), hook}, hookedBucket{w.engine.Bucket(), hook}).Functions()[function](t.Context(), []byte(request))
		if hook.seen < n {
			return n - 1
		}
		then(w, n, out, err)
	}
}

var _ store.Table = hookedTable{}

type hookedTable struct {
	store.Table
	h *hooked
}

func (t hookedTable) Get(ctx context.Context, in store.Get) (store.Item, store.Meta, error) {
	t.h.before()
	return t.Table.Get(ctx, in)
}

func (t hookedTable) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	t.h.before()
	return t.Table.Query(ctx, in)
}

func (t hookedTable) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	t.h.before()
	return t.Table.Update(ctx, in)
}

func (t hookedTable) Delete(ctx context.Context, in store.Delete) (store.Item, store.Meta, error) {
	t.h.before()
	return t.Table.Delete(ctx, in)
}

func (t hookedTable) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	t.h.before()
	return t.Table.Transact(ctx, in)
}

func (t hookedTable) BatchDelete(ctx context.Context, keys []store.Key) ([]store.Key, store.Meta, error) {
	t.h.before()
	return t.Table.BatchDelete(ctx, keys)
}

func (t hookedTable) BatchGet(ctx context.Context, keys []store.Key, consistent bool) ([]store.Item, []store.Key, store.Meta, error) {
	t.h.before()
	return t.Table.BatchGet(ctx, keys, consistent)
}

type hookedBucket struct {
	store.Bucket
	h *hooked
}

func (b hookedBucket) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	b.h.before()
	return b.Bucket.Get(ctx, in)
}

// over gives the world a second process whose table calls are hooked.
func (w *world) over(h *hooked) {
	w.hookedServices = w.process(hookedTable{w.engine.Table(memory.Main), h})
}

// deleteWith deletes through the hooked process.
func (w *world) deleteWith(_ *hooked, e string) (fields, error) {
	plain := w.Services
	w.Services = w.hookedServices
	f := w.Functions()["retention"]
	w.Services = plain
	reply, err := f(w.t.Context(), []byte(`{"action":"delete","tenant":"bank","execution":"`+e+`","reason":"r","request_id":"hooked"}`))
	if err != nil {
		return nil, lambdaError(err)
	}
	_ = reply
	return nil, nil
}

// A hold on the thread or on a subject that comes between the reading of holds
// and the closing transaction stops the deletion all the same.
func TestHoldJustBeforeTheClosing(t *testing.T) {
	t.Parallel()
	for _, on := range []fields{{"thread": "t1"}, {"subject": "customer-1"}, {"execution": "e"}} {
		w := newWorld(t)
		w.rich("e", fields{"thread": "t1"})
		hold := fields{"hold": "h", "reason": "r"}
		for k, v := range on {
			hold[k] = v
		}
		b := &storetest.BeforeTransact{Table: w.Services.Retention.Table}
		b.What = func() {
			w.Services.Retention.Table = b.Table
			w.ok("retention", "hold", hold)
			w.Services.Retention.Table = b
		}
		w.Services.Retention.Table = b
		if c := w.code("retention", "delete", fields{"execution": "e", "reason": "r"}); c != execution.Held {
			t.Errorf("held by %v: %q", on, c)
		}
		if g := w.get("e"); g["status"] != "running" {
			t.Errorf("held by %v: %v", on, g["status"])
		}
	}
}

// suddenHolds place a hold on the execution e, of thread T and customer-1, while
// somebody is about to touch it; customer-2 is a subject of `other`.
var suddenHolds = map[string]func(w *world){
	"execution": func(w *world) { place(w, fields{"execution": "e"}) },
	"thread":    func(w *world) { place(w, fields{"thread": "T"}) },
	"subject":   func(w *world) { place(w, fields{"subject": "customer-1"}) },
	"a subject that came meanwhile": func(w *world) {
		place(w, fields{"subject": "customer-2"})
		r := ref(w, "e")
		other, _, err := w.Journal.ReadHead(w.t.Context(), w.tenant, "other")
		if err != nil {
			w.t.Fatal(err)
		}
		mine, _, err := w.Journal.ReadHead(w.t.Context(), w.tenant, "e")
		if err != nil {
			w.t.Fatal(err)
		}
		tokens := append(mine.SubjectTokens, other.SubjectTokens...)
		if _, _, err := w.engine.Table(memory.Main).Update(w.t.Context(), store.Update{Key: journal.HeadKey(r.PK()), Actions: []store.Action{store.Set{Attr: journal.HeadSubjects, Value: store.SS(tokens...)}}}); err != nil {
			w.t.Fatal(err)
		}
	},
}

// place puts a hold behind whatever is hooked.
func place(w *world, sel fields) {
	w.ok("retention", "hold", with(fields{"hold": "h", "reason": "r"}, sel))
}

// suddenly gives the world a process whose next transaction is preceded by
// something that another one does.
func (w *world) suddenly(what func(w *world)) {
	plain := w.Services
	w.Services = w.process(&storetest.BeforeTransact{Table: w.engine.Table(memory.Main), What: func() {
		hooked := w.Services
		w.Services = plain
		what(w)
		w.Services = hooked
	}})
}

// A hold that comes between the judgement and the archived entry stops the
// archiving, also one on a subject that came with it.
func TestHoldJustBeforeTheArchiving(t *testing.T) {
	t.Parallel()
	for name, what := range suddenHolds {
		w := newWorld(t)
		w.rich("e", fields{"thread": "T"})
		w.create("other", fields{"subjects": []string{"customer-2"}})
		w.complete("e")
		w.suddenly(what)
		if c := w.code("retention", "archive", fields{"execution": "e"}); c != execution.Held {
			t.Errorf("%s: %q", name, c)
		}
		if g := w.get("e"); g["status"] != "completed" {
			t.Errorf("%s: %v", name, g["status"])
		}
	}
}

// It stops the history rule, too.
func TestHoldJustBeforeThePruning(t *testing.T) {
	t.Parallel()
	for name, what := range suddenHolds {
		w := newWorld(t)
		w.setPolicy(fields{"history": fields{"keep": "versions", "n": 1}})
		long(w, "e", 5, fields{"policy": "p", "thread": "T"})
		w.create("other", fields{"subjects": []string{"customer-2"}})
		w.advance(26 * time.Hour)
		before := of(w.items(), "bank#e/j#")
		w.suddenly(what)
		w.sweep()
		if got := of(w.items(), "bank#e/j#"); len(got) != len(before) || strings.Contains(w.items()["bank#e/head"], `"floor"`) {
			t.Errorf("%s: %d of %d entries, head %s", name, len(got), len(before), w.items()["bank#e/head"])
		}
		// Nothing but the hold was in the way.
		plain := newWorld(t)
		plain.setPolicy(fields{"history": fields{"keep": "versions", "n": 1}})
		long(plain, "e", 5, fields{"policy": "p", "thread": "T"})
		plain.advance(26 * time.Hour)
		plain.suddenly(func(*world) {})
		if plain.sweep(); !strings.Contains(plain.items()["bank#e/head"], `"floor"`) {
			t.Errorf("%s: nothing is pruned at all", name)
		}
	}
}

// An ending that comes while a changed policy is being applied keeps the time that
// it set: what was planned for the running execution is of no use.
func TestEndingWhileAPolicyIsApplied(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		w := newWorld(t)
		w.setPolicy(fields{"completed_days": 5})
		w.rich("e", fields{"policy": "p"})
		plain, met := w.Services, false
		w.Services = w.process(&storetest.BeforeUpdate{Table: w.engine.Table(memory.Main), What: func() {
			met = true
			hooked := w.Services
			w.Services = plain
			if ends {
				w.complete("e")
			}
			w.Services = hooked
		}})
		w.setPolicy(fields{"completed_days": 5, "history": fields{"keep": "versions", "n": 3}})
		if has := strings.Contains(w.items()["bank#e/head"], `"expires_at"`); !met || has != ends {
			t.Errorf("ends %v: met %v, head %s", ends, met, w.items()["bank#e/head"])
		}
	}
}
