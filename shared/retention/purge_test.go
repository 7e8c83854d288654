package retention_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// purge calls purge_tenant until it is done; each call that must wait moves the
// clock.
func (w *world) purge(f fields) (calls int, err error) {
	w.t.Helper()
	var waited time.Duration
	for calls = 1; calls < 100; calls++ {
		r, err := w.do(w.t.Context(), "retention", "purge_tenant", f)
		if err != nil {
			return calls, err
		}
		if r["done"] == true {
			if r["cursor"] != nil {
				w.t.Errorf("done, and goes on at %v", r["cursor"])
			}
			if waited > 2*time.Hour {
				w.t.Errorf("a purge waited for %v", waited)
			}
			return calls, nil
		}
		if d := r["deferred"].([]any); len(d) > 0 && r["cursor"] == nil {
			return calls, nil
		}
		if ms, ok := r["retry_after_ms"].(float64); ok {
			waited += time.Duration(ms) * time.Millisecond
			w.advance(time.Duration(ms) * time.Millisecond)
		}
	}
	return calls, fmt.Errorf("never done")
}

// tenantful is a tenant with all kinds of things, beside two whose names are
// near it.
func tenantful(t testing.TB) *world {
	w := newWorld(t)
	for _, tenant := range []execution.TenantID{"bank2", "ban", "bank"} {
		w.tenant = tenant
		w.ok("retention", "set_policy", fields{"policy": fields{"name": "p", "completed_days": 30}})
		w.ok("checkpoint", "set_workflow", fields{"workflow": fields{"name": "wf", "schema": fields{"name": "s", "version": 1}}})
		w.rich("live", fields{"policy": "p", "thread": "T"})
		w.rich("done", fields{"policy": "p"})
		w.complete("done")
		w.rich("gone", nil)
		w.ok("retention", "delete", fields{"execution": "gone", "reason": "r"})
	}
	return w
}

func everything(w *world) map[string]string {
	out := map[string]string{}
	for k, v := range w.items() {
		if !strings.HasSuffix(k, "/sweep#objects") && !strings.HasPrefix(k, "~sweep/") && !strings.Contains(k, "timer#lease") {
			out[k] = v
		}
	}
	for k, v := range w.objects() {
		out["object "+k] = v
	}
	return out
}

// mine are the things of the tenant: pk, object prefix and indexes.
func mine(all map[string]string) (out []string) {
	for k := range all {
		if strings.HasPrefix(k, "bank/") || strings.HasPrefix(k, "bank#") || strings.HasPrefix(k, "object bank/") {
			out = append(out, k)
		}
	}
	return out
}

func notMine(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if strings.HasPrefix(k, "bank2") || strings.HasPrefix(k, "ban/") || strings.HasPrefix(k, "ban#") || strings.HasPrefix(k, "object bank2/") || strings.HasPrefix(k, "object ban/") {
			out[k] = v
		}
	}
	return out
}

func TestPurge(t *testing.T) {
	t.Parallel()
	w := tenantful(t)
	others := notMine(everything(w))
	if len(others) < 40 {
		t.Fatalf("only %d things of other tenants", len(others))
	}
	r := w.ok("retention", "purge_tenant", fields{"shred": true})
	if r["done"] == true || r["retry_after_ms"].(float64) < 3_000_000 {
		t.Fatalf("done without waiting for late writers: %v", r)
	}
	if c := w.code("checkpoint", "create", fields{"execution": "new", "workflow": "wf"}); c != execution.Deleted {
		t.Errorf("create while purging: %q", c)
	}
	if c := w.code("retention", "hold", fields{"thread": "T", "hold": "h", "reason": "r"}); c != execution.Deleted {
		t.Errorf("hold while purging: %q", c)
	}
	if c := w.getCode("live"); c != execution.Deleted {
		t.Errorf("get while purging: %q", c)
	}
	if _, err := w.purge(fields{"shred": true}); err != nil {
		t.Fatal(err)
	}
	if left := mine(everything(w)); len(left) > 0 {
		t.Errorf("done, but left: %v", left)
	}
	same(t, "other tenants", notMine(everything(w)), others)
	for _, raw := range w.engine.Dump().Keys {
		if strings.Contains(string(raw), `"bank"`) {
			t.Errorf("shredded, but the keys are there")
		}
	}
	receipts := of(w.items(), "~purged/bank#")
	if len(receipts) != 1 || !strings.Contains(w.items()[receipts[0]], `"shredded":{"BOOL":true}`) {
		t.Errorf("receipt of the purge: %v", receipts)
	}
	// The ids are free at once.
	if c := w.getCode("live"); c != execution.NotFound {
		t.Errorf("get after the purge: %q", c)
	}
	w.rich("live", nil)
	if v := w.get("live")["version"].(float64); v != 4 {
		t.Errorf("a new execution stands at version %v", v)
	}
	if _, err := w.purge(nil); err != nil {
		t.Errorf("a second purge: %v", err)
	}
}

func TestPurgeOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.purge(nil); err != nil {
		t.Error(err)
	}
	if left := mine(everything(w)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPurgeStaysShutAfterShredding: a process that unwrapped the tenant's key
// right before it was shredded must not seal anything under it: whatever it
// creates afterwards, everybody can read.
func TestPurgeStaysShutAfterShredding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", nil)
	hot := w.process(w.engine.Table(memory.Main)).Functions()["checkpoint"]
	tries := 0
	for n := range 1000 {
		reply := w.ok("retention", "purge_tenant", fields{"shred": true, "limit": 1})
		if ms, ok := reply["retry_after_ms"].(float64); ok {
			w.advance(min(time.Duration(ms)*time.Millisecond, 5*time.Minute))
		}
		// Its key is asked for again whenever its time is over, also of a tenant that is
		// being purged: a subject's token needs it.
		tries++
		_, err := hot(t.Context(), []byte(fmt.Sprintf(`{"action":"create","tenant":"bank","execution":"again-%d","workflow":"wf","subjects":["s"],"state":{"n":1}}`, n)))
		if code := execution.CodeOf(lambdaError(err)); err != nil && code != execution.Deleted {
			t.Fatalf("create: %v", err)
		}
		if err != nil {
			if reply["done"] == true {
				t.Fatal("done, and the tenant is closed")
			}
			continue
		}
		w.restart()
		if c := w.getCode(fmt.Sprint("again-", n)); c != "" {
			t.Errorf("what the hot process made after %d tries answers %q", tries, c)
		}
		return
	}
	t.Error("the purge does not end")
}

// TestCreateAcrossAShreddingPurge: wherever a creation stands still while its tenant
// is purged and the keys are shredded, what it makes is read and found under the
// keys that come after.
func TestCreateAcrossAShreddingPurge(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.create("parent", nil)
	made := 0
	calls := beforeEachCall(t, base, "checkpoint", `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","labels":{"k":"v"},"subjects":["s"],"state":{}}`, func(w *world) {
		if _, err := w.purge(fields{"shred": true}); err != nil {
			t.Error(err)
		}
	}, func(w *world, n int, _ []byte, err error) {
		w.restart()
		if c := w.getCode("e"); (c == "") != (err == nil) {
			t.Errorf("call %d: create answers %v, get %q", n, err, c)
		}
		if err != nil {
			return
		}
		made++
		if l := w.ok("checkpoint", "list", fields{"label": fields{"k": "v"}})["executions"].([]any); len(l) != 1 {
			t.Errorf("call %d: %d are found under the label", n, len(l))
		}
		w.ok("retention", "delete", fields{"subject": "s", "reason": "asked"})
		if c := w.getCode("e"); c != execution.Deleted {
			t.Errorf("call %d: deleted by its subject, and get answers %q", n, c)
		}
	})
	if made == 0 || calls < 4 {
		t.Errorf("%d calls, %d of the creations were made", calls, made)
	}
}

func TestPurgeStopsAtHolds(t *testing.T) {
	t.Parallel()
	for name, sel := range map[string]fields{"execution": {"execution": "live"}, "thread": {"thread": "T"}} {
		w := tenantful(t)
		w.ok("retention", "hold", with(sel, fields{"hold": "h", "reason": "legal"}))
		r := w.ok("retention", "purge_tenant", fields{"shred": true})
		d := r["deferred"].([]any)
		if r["done"] == true || len(d) != 1 || d[0].(map[string]any)["execution"] != "live" {
			t.Errorf("%s: %v", name, r)
		}
		w.advance(3 * time.Hour)
		w.ok("retention", "purge_tenant", fields{"shred": true})
		if c := w.getCode("live"); c != "" {
			t.Errorf("%s: a held execution answers %q", name, c)
		}
		if c := w.getCode("done"); c != execution.Deleted {
			t.Errorf("%s: one that is not held answers %q", name, c)
		}
		w.ok("retention", "release_hold", with(sel, fields{"hold": "h", "reason": "over"}))
		if _, err := w.purge(nil); err != nil {
			t.Fatal(err)
		}
		if left := mine(everything(w)); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// TestPurgeWithoutTheKey: nothing of a deletion needs to decrypt.
func TestPurgeWithoutTheKey(t *testing.T) {
	t.Parallel()
	w := tenantful(t)
	w.kms.SetState("stack", local.Disabled)
	w.restart()
	if c := w.getCode("live"); c != execution.KeyUnavailable {
		t.Fatalf("get without the key: %q", c)
	}
	w.ok("retention", "hold", fields{"execution": "live", "hold": "h", "reason": "r"})
	w.ok("retention", "release_hold", fields{"execution": "live", "hold": "h", "reason": "r"})
	w.ok("retention", "delete", fields{"execution": "done", "reason": "r"})
	if _, err := w.purge(nil); err != nil {
		t.Fatal(err)
	}
	if left := mine(everything(w)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPurgeSurvivesEverything strikes storage calls of a purge, in every phase.
func TestPurgeSurvivesEverything(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.tenant = "bank2"
	base.rich("e", nil)
	base.tenant = "bank"
	base.rich("e", fields{"thread": "T"})
	base.ok("checkpoint", "set_workflow", fields{"workflow": fields{"name": "wf", "schema": fields{"name": "s", "version": 1}}})
	others := notMine(everything(base))
	u := copyOf(t, base)
	u.engine.Mark()
	if _, err := u.purge(nil); err != nil {
		t.Fatal(err)
	}
	calls := len(u.engine.Log())
	want := everything(u)
	rows := 0
	for i, effect := range []string{"lost", "landed", "crash_before", "crash_after", "unavailable", "throttle"} {
		for n := 1 + i%2; n <= calls; n += 2 * stride() {
			w := copyOf(t, base)
			w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
			var err error
			for try := 0; try < 10; try++ {
				err = w.crash(func(ctx context.Context) error { _, err := w.purge(nil); return err })
				if err == nil {
					break
				}
				if c := execution.CodeOf(err); !c.Retryable() {
					t.Errorf("%s at call %d: %v", effect, n, err)
				}
				w.restart()
			}
			if err != nil {
				t.Errorf("%s at call %d: %v", effect, n, err)
			}
			rows++
			got := everything(w)
			if left := mine(got); len(left) > 0 {
				t.Errorf("%s at call %d: left %v", effect, n, left)
			}
			same(t, fmt.Sprintf("%s at call %d: another tenant", effect, n), notMine(got), others)
			if len(of(got, "~purged/")) != len(of(want, "~purged/")) {
				t.Errorf("%s at call %d: receipts %v", effect, n, of(got, "~purged/"))
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d rows over %d calls", rows, calls)
}

// TestPurgeMeetsLateWriters: whatever lands in the tenant's partitions after the
// first pass is gone when the purge is done.
func TestPurgeMeetsLateWriters(t *testing.T) {
	t.Parallel()
	w := tenantful(t)
	w.ok("retention", "purge_tenant", nil)
	for _, sk := range []string{"j#00000000000000000099", "op#0123#000001", "sig#1#a#b", "timer#lease"} {
		it := store.Item{store.AttrPK: store.S("bank#live"), store.AttrSK: store.S(sk), "generation": store.N(1)}
		if _, err := w.engine.Table(memory.Main).Put(t.Context(), store.Put{Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.purge(nil); err != nil {
		t.Fatal(err)
	}
	if left := mine(everything(w)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestSettingMeetsAPurge begins a purge before each call of requests that write
// records of the tenant: they are done, or say that the tenant goes.
func TestSettingMeetsAPurge(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.create("e", fields{"thread": "T"})
	base.ok("retention", "hold", fields{"thread": "T", "hold": "other", "reason": "r"})
	for _, request := range []string{
		`{"action":"set_policy","tenant":"bank","policy":{"name":"p","completed_days":1},"request_id":"r"}`,
		`{"action":"hold","tenant":"bank","execution":"e","hold":"h","reason":"r","request_id":"r"}`,
		`{"action":"hold","tenant":"bank","thread":"T","hold":"h","reason":"r","request_id":"r"}`,
		`{"action":"rotate_key","tenant":"bank","request_id":"r"}`,
	} {
		calls := beforeEachCall(t, base, "retention", request, func(w *world) { w.ok("retention", "purge_tenant", nil) }, func(_ *world, n int, _ []byte, err error) {
			if err != nil && execution.CodeOf(lambdaError(err)) != execution.Deleted {
				t.Errorf("%s, a purge before call %d: %v", request, n, err)
			}
		})
		if calls == 0 {
			t.Errorf("%s makes no call", request)
		}
	}
}

// TestPurgeWaitsAfterTheLastDeletion: a purge's call stands still for most of a day
// while others delete what it was to close. The wait for late writers begins when
// it has seen that all are gone, not when the call began.
func TestPurgeWaitsAfterTheLastDeletion(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.rich("e", nil)
	waits := 0
	var after int64 // that the last can have written
	beforeEachCall(t, base, "retention", `{"action":"purge_tenant","tenant":"bank"}`, func(w *world) {
		after = 0
		there := len(of(w.items(), "bank#e/head")) > 0
		w.advance(20 * time.Hour)
		if there {
			after = w.engine.Now().UnixMilli()
			w.code("retention", "delete", fields{"execution": "e", "reason": "r"})
		}
	}, func(w *world, n int, _ []byte, err error) {
		if err != nil { // a write whose validation is hours old
			if c := execution.CodeOf(lambdaError(err)); c != execution.Unavailable {
				t.Errorf("stopped before call %d: %v", n, err)
			}
			return
		}
		mark, _, err := w.engine.Table(memory.Main).Get(t.Context(), store.Get{Key: journal.ClosingKey("bank")})
		if err != nil || mark.Int("until") == 0 {
			t.Fatalf("stopped before call %d, the purge does not wait: %v %v", n, mark, err)
		}
		if waits++; mark.Int("until") < after+time.Hour.Milliseconds() {
			t.Errorf("stopped before call %d, the wait ends %d s after the last deletion", n, (mark.Int("until")-after)/1000)
		}
	})
	if waits < 10 {
		t.Errorf("only %d waits", waits)
	}
}

// TestFamilies: by thread, subject or label forks and children come along.
func TestFamilies(t *testing.T) {
	t.Parallel()
	build := func() *world {
		w := newWorld(t)
		w.create("root", fields{"thread": "T", "labels": fields{"kind": "loan"}, "subjects": []string{"ann"}, "claim": fields{"owner": "w", "lease_seconds": 900}})
		child := w.begets("root")
		w.ok("checkpoint", "fork", fields{"execution": "root", "at_version": 1, "new_execution": "fork", "operations": "refuse"})
		w.ok("checkpoint", "fork", fields{"execution": "fork", "at_version": 1, "new_execution": "forkfork", "operations": "refuse"})
		w.create("bystander", nil)
		w.create("held", fields{"thread": "T", "labels": fields{"kind": "loan"}, "subjects": []string{"ann"}})
		w.ok("retention", "hold", fields{"execution": "held", "hold": "h", "reason": "legal"})
		w.ok("retention", "holds", fields{"execution": child})
		return w
	}
	for name, sel := range map[string]fields{"thread": {"thread": "T"}, "subject": {"subject": "ann"}, "label": {"label": fields{"kind": "loan"}}} {
		for _, limit := range []int{1, 100} {
			w := build()
			cursor, done, deferred, pages := any(nil), false, 0, 0
			for !done {
				f := with(sel, fields{"reason": "gdpr", "limit": limit})
				if cursor != nil {
					f["cursor"] = cursor
				}
				r := w.ok("retention", "delete", f)
				deferred += len(r["deferred"].([]any))
				done, cursor = r["done"] == true, r["cursor"]
				if pages++; pages > 10 {
					t.Fatal("never done")
				}
			}
			if deferred != 1 {
				t.Errorf("%s: %d deferred", name, deferred)
			}
			for k := range w.items() {
				if strings.HasSuffix(k, "/head") && k != "bank#bystander/head" && k != "bank#held/head" {
					t.Errorf("%s, limit %d: %s is left", name, limit, k)
				}
			}
			if c := w.getCode("bystander"); c != "" {
				t.Errorf("%s: the bystander answers %q", name, c)
			}
		}
	}
	// Of one execution only that one; a child's deletion is evidence for its parent.
	w := build()
	op := w.get("root")["operations"].([]any)[0].(map[string]any)["operation"]
	for k := range w.items() {
		e, isHead := strings.CutSuffix(strings.TrimPrefix(k, "bank#"), "/head")
		if isHead && len(e) == 32 {
			w.ok("retention", "delete", fields{"execution": e, "reason": "r"})
		}
	}
	if o := w.ok("checkpoint", "get_operation", fields{"execution": "root", "operation": op}); o["outcome"] != "failed" || o["reason"] != "the child execution was deleted before it ended" {
		t.Errorf("the parent's operation after its child's deletion: %v", o)
	}
	w.ok("retention", "delete", fields{"execution": "root", "reason": "r"})
	if c := w.getCode("fork"); c != "" {
		t.Errorf("delete of one execution took its fork: %q", c)
	}
}

// TestHeldDescendants: what is found by its parent alone and is held when the parent
// goes is found by the same request afterwards, whichever call of the first one is
// lost, has landed unheard, or is the process's last.
func TestHeldDescendants(t *testing.T) {
	t.Parallel()
	for name, sel := range map[string]fields{"thread": {"thread": "T"}, "subject": {"subject": "ann"}, "label": {"label": fields{"kind": "loan"}}} {
		base := newWorld(t)
		base.create("root", fields{"thread": "T", "labels": fields{"kind": "loan"}, "subjects": []string{"ann"}, "claim": fields{"owner": "w", "lease_seconds": 900}})
		child := base.begets("root")
		base.ok("recover", "claim", fields{"execution": child, "owner": "w", "lease_seconds": 900})
		grandchild := base.begets(child)
		base.ok("retention", "hold", fields{"execution": grandchild, "hold": "h", "reason": "legal"})
		request := with(sel, fields{"reason": "gdpr"})
		for n := 0; ; n++ {
			struck := false
			for _, effect := range []string{"lost", "landed", "crash_before", "crash_after"} {
				if n%stride() > 0 {
					struck = true
					continue
				}
				w := copyOf(t, base)
				if n > 0 {
					w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
				}
				w.engine.Mark()
				err := w.crash(func(ctx context.Context) error { _, err := w.do(ctx, "retention", "delete", request); return err })
				struck = struck || len(w.engine.Log()) >= n
				w.faults()
				w.restart()
				at := fmt.Sprintf("by %s, %s at call %d (%v)", name, effect, n, err)
				r := w.ok("retention", "delete", request)
				if d := r["deferred"].([]any); len(d) != 1 || d[0].(map[string]any)["execution"] != grandchild {
					t.Errorf("%s: deferred %v", at, d)
				}
				for _, e := range []string{"root", child} {
					if c := w.getCode(e); c != execution.Deleted {
						t.Errorf("%s: %s answers %q", at, e, c)
					}
				}
				w.ok("retention", "release_hold", fields{"execution": grandchild, "hold": "h", "reason": "over"})
				if r := w.ok("retention", "delete", request); len(r["deferred"].([]any)) > 0 || r["done"] != true {
					t.Errorf("%s: after the release %v", at, r)
				}
				for range 2 { // one that was closed when the process died is finished by the sweep
					w.advance(61 * time.Minute)
					w.settle()
				}
				for k := range w.items() {
					if own := strings.HasPrefix(k, "bank#") && !strings.HasPrefix(k, "bank#~") && !strings.Contains(k, "/receipt#"); own || strings.HasPrefix(k, "bank#~s") {
						t.Errorf("%s: %s is left", at, k)
					}
				}
			}
			if name != "subject" || !struck || t.Failed() {
				break
			}
		}
	}
}

// begets makes a child of an execution that is owned and gives its id.
func (w *world) begets(e string) string {
	w.t.Helper()
	o := w.apply(e, fields{"operations": []any{fields{"name": "sub", "key": "k", "args": fields{}}}})
	op := o["operations"].([]any)[0].(map[string]any)["operation"]
	return w.ok("checkpoint", "create", fields{"workflow": "wf", "parent": fields{"execution": e, "operation": op}})["execution"].(string)
}

// TestOvertakenByAPurge purges the whole tenant, hours and all, before each call
// of a deletion or another purge, which then finds nothing left and must not take
// that for damage.
func TestOvertakenByAPurge(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.rich("e", fields{"subjects": []string{"s"}})
	for _, c := range []struct {
		name, request string
		codes         []execution.Code
	}{
		{"a purge", `{"action":"purge_tenant","tenant":"bank"}`, nil},
		{"the end of a purge", `{"action":"purge_tenant","tenant":"bank"}`, nil},
		{"a sweep", `{"action":"sweep","tenant":"bank"}`, nil},
		{"a deletion", `{"action":"delete","tenant":"bank","execution":"e","reason":"r","request_id":"d"}`, []execution.Code{execution.NotFound}},
		{"a deletion of a subject", `{"action":"delete","tenant":"bank","subject":"s","reason":"r","request_id":"d"}`, nil},
	} {
		from := copyOf(t, base)
		switch c.name {
		case "a sweep": // of a deletion that somebody began
			_ = from.crash(func(ctx context.Context) error {
				from.faults(memory.Fault{On: "transact", Nth: 2, Effect: "crash_before"})
				_, err := from.do(ctx, "retention", "delete", fields{"execution": "e", "reason": "r"})
				return err
			})
			from.faults()
			from.advance(5 * time.Minute)
		case "the end of a purge":
			from.ok("retention", "purge_tenant", nil)
			from.advance(time.Hour)
		}
		overtaken := beforeEachCall(t, from, "retention", c.request, func(w *world) {
			if _, err := w.purge(nil); err != nil {
				t.Fatal(err)
			}
		}, func(_ *world, n int, _ []byte, err error) {
			// Unavailable: a write whose validation is hours old.
			if err != nil && !slices.Contains(append(c.codes, execution.Unavailable), execution.CodeOf(lambdaError(err))) {
				t.Errorf("%s, overtaken before call %d: %v", c.name, n, err)
			}
		})
		if overtaken < 10 {
			t.Errorf("%s: overtaken at %d calls only", c.name, overtaken)
		}
	}
}
