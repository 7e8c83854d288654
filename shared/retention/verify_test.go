package retention_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// findings are a tenant's or execution's, as "kind key".
func (w *world) findings(f fields) []string {
	w.t.Helper()
	var out []string
	cursor := any(nil)
	for range 1000 {
		g := with(f, nil)
		if cursor != nil {
			g["cursor"] = cursor
		}
		r := w.ok("retention", "verify", g)
		for _, x := range r["findings"].([]any) {
			m := x.(map[string]any)
			key, _ := m["key"].(string)
			out = append(out, m["kind"].(string)+" "+key)
		}
		if cursor = r["cursor"]; cursor == nil {
			return out
		}
	}
	w.t.Fatal("verify never ends")
	return nil
}

// edited is a copy of the world whose dump was changed.
func edited(t *testing.T, w *world, change func(d *memory.Dump)) *world {
	t.Helper()
	d := w.engine.Dump()
	change(&d)
	c := newWorldAt(t, w.engine.Now())
	if err := c.engine.Load(d); err != nil {
		t.Fatal(err)
	}
	c.restart()
	return c
}

func dropItem(part ...string) func(*memory.Dump) {
	return func(d *memory.Dump) {
		for i, raw := range d.Items {
			if all(string(raw), part...) {
				d.Items = append(d.Items[:i:i], d.Items[i+1:]...)
				return
			}
		}
		panic("no such item")
	}
}

func all(s string, part ...string) bool {
	for _, p := range part {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func replaceIn(old, text string, part ...string) func(*memory.Dump) {
	return func(d *memory.Dump) {
		for i, raw := range d.Items {
			if all(string(raw), append(part, old)...) {
				d.Items[i] = json.RawMessage(strings.Replace(string(raw), old, text, 1))
				return
			}
		}
		panic("no such item")
	}
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"completed_days": 1})
	base.rich("e", fields{"policy": "p"})
	base.rich("done", fields{"policy": "p"})
	base.complete("done")
	base.rich("gone", nil)
	base.ok("retention", "delete", fields{"execution": "gone", "reason": "r"})
	if got := base.findings(nil); len(got) > 0 {
		t.Fatalf("findings of a sound tenant: %v", got)
	}
	r := ref(base, "e")
	body := of(base.objects(), journal.ObjectPrefix(r)+"journal/")[0]
	art := of(base.objects(), journal.ObjectPrefix(r)+"artifacts/")[0]
	object := func(key string, change func(*memory.Object)) func(*memory.Dump) {
		return func(d *memory.Dump) {
			for i := range d.Objects {
				if d.Objects[i].Key == key {
					change(&d.Objects[i])
					return
				}
			}
			panic("no such object")
		}
	}
	lost := func(key string) func(*memory.Dump) {
		return func(d *memory.Dump) {
			for i := range d.Objects {
				if d.Objects[i].Key == key {
					d.Objects = append(d.Objects[:i:i], d.Objects[i+1:]...)
					return
				}
			}
		}
	}
	stray := func(pk, sk string) func(*memory.Dump) {
		return func(d *memory.Dump) {
			raw, _ := json.Marshal(fields{"pk": fields{"S": pk}, "sk": fields{"S": sk}, "generation": fields{"N": "7"}, "g": fields{"N": "7"}})
			d.Items = append(d.Items, raw)
		}
	}
	old := base.engine.Now().Add(-48 * time.Hour)
	for _, c := range []struct {
		name   string
		change func(*memory.Dump)
		after  time.Duration
		want   string
	}{
		{"a lost body", lost(body), 0, "dangling_reference " + body},
		{"a lost artifact", lost(art), 0, "dangling_reference " + art},
		{"a changed body", object(body, func(o *memory.Object) { o.Body[len(o.Body)/2] ^= 1 }), 0, "digest_mismatch " + body},
		{"a lost entry", dropItem(`"bank#e"`, `j#00000000000000000002`), 0, "gap j#00000000000000000003"},
		{"a changed entry", replaceIn(`"f":{"N":"1"}`, `"f":{"N":"2"}`, `"bank#e"`, `j#00000000000000000002`), 0, "digest_mismatch j#00000000000000000003"},
		{"a changed tip", replaceIn(`"f":{"N":"1"}`, `"f":{"N":"2"}`, `"bank#e"`, `j#00000000000000000004`), 0, "digest_mismatch "},
		{"a stray entry", stray("bank#e", "j#00000000000000000077"), 0, "stray_entry j#00000000000000000077"},
		{"a stray slot", stray("bank#e", "op#0123#000001"), 0, "stray_entry op#0123#000001"},
		{"an unregistered execution", dropItem(`"bank#~`, fmt.Sprintf("done#%020d", ref(base, "done").Generation)), 0, ""},
		{"no alarm", replaceIn(`"due":`, `"dew":`, `"bank#e"`, `"head"`), 0, "timer_missing head"},
		{"an orphan", func(d *memory.Dump) {
			d.Objects = append(d.Objects, memory.Object{Key: journal.ObjectPrefix(r) + "artifacts/" + strings.Repeat("ab", 32), Body: []byte("x"), LastModified: &old})
		}, 0, "orphan_object " + journal.ObjectPrefix(r) + "artifacts/" + strings.Repeat("ab", 32)},
		{"an object of nobody", func(d *memory.Dump) {
			d.Objects = append(d.Objects, memory.Object{Key: "bank/e/never/1/journal/x", Body: []byte("x"), LastModified: &old})
		}, 0, "orphan_object bank/e/never/1/journal/x"},
		{"a row of nobody", stray(journal.RegistryKey(execution.Ref{Tenant: "bank", Execution: "never", Generation: 1}).PK, "never#00000000000000000001"), 0, "stray_entry never#00000000000000000001"},
		{"a stuck deletion", func(*memory.Dump) {}, 4 * time.Hour, "stuck_deletion receipt#"},
		{"expired and present", func(*memory.Dump) {}, 27 * time.Hour, "expired_present head"},
		{"an unknown status", replaceIn(`"status":{"S":"running"}`, `"status":{"S":"jogging"}`, `"bank#e"`, `"head"`), 0, "unreadable head"},
	} {
		w := edited(t, base, c.change)
		w.advance(c.after)
		before := w.items()
		got := w.findings(nil)
		same(t, c.name+": verify writes", w.items(), before)
		found := c.want == ""
		for _, g := range got {
			found = found || strings.HasPrefix(g, c.want)
		}
		if !found {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
		if c.want == "" {
			if one := w.findings(fields{"execution": "done"}); len(one) != 1 || !strings.HasPrefix(one[0], "stray_entry") {
				t.Errorf("%s: %v", c.name, one)
			}
		}
	}
}

// TestOrphans: staged and never named, an object goes between 25 hours and the
// next round; named, it stays for ever.
func TestOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rich("e", nil)
	kept := len(of(w.objects(), "bank/e/"))
	stage := func(name string) string {
		a := w.ok("checkpoint", "put_artifact", fields{"execution": "e", "fence": w.get("e")["fence"], "name": name, "media_type": "text/plain", "body": []byte("staged " + name)})
		return a["artifact"].(map[string]any)["digest"].(string)
	}
	stage("a")
	accepted := stage("b")
	w.apply("e", fields{"artifacts": []any{accepted}})
	// A body whose entry never landed.
	v := w.get("e")["version"]
	w.faults(memory.Fault{On: "put_object", Effect: "crash_after"})
	_ = w.crash(func(ctx ctxt) error {
		_, err := w.do(ctx, "checkpoint", "apply", fields{"execution": "e", "expected_version": v, "fence": w.get("e")["fence"], "state": fields{"big": noise(99, 60_000)}})
		return err
	})
	w.faults()
	w.restart()
	if got := len(of(w.objects(), "bank/e/")); got != kept+3 {
		t.Fatalf("%d objects, want %d", got, kept+3)
	}
	// The objects of a tenant beside it.
	w.tenant = "bank2"
	w.rich("e", nil)
	w.tenant = "bank"
	w.advance(23 * time.Hour)
	w.settle()
	w.advance(time.Hour)
	w.settle()
	if got := len(of(w.objects(), "bank/e/")); got != kept+3 {
		t.Errorf("at 24 h: %d objects, want %d", got, kept+3)
	}
	w.advance(time.Hour + time.Minute)
	w.settle()
	if got := len(of(w.objects(), "bank/e/")); got != kept+1 {
		t.Errorf("at 25 h: %d objects, want %d", got, kept+1)
	}
	if got := w.ok("checkpoint", "get_artifact", fields{"execution": "e", "digest": accepted}); got["body"] == nil {
		t.Errorf("the accepted one: %v", got)
	}
	// A round looks into no execution for objects that an earlier one judged.
	w.advance(2 * time.Hour)
	w.engine.Mark()
	w.sweep()
	for _, c := range w.engine.Log() {
		if strings.HasPrefix(c.Key, "bank#e") {
			t.Errorf("an execution whose objects were judged is read again: %s %s", c.Call, c.Key)
		}
	}
	// The schedule's sweep covers all tenants.
	w.tenant = "bank2"
	stage("c")
	n := len(of(w.objects(), "bank2/e/"))
	w.advance(26 * time.Hour)
	if _, err := w.Retention.Sweep(t.Context(), &api.SweepRequest{Limit: execution.MaxListLimit}); err != nil {
		t.Fatal(err)
	}
	if got := len(of(w.objects(), "bank2/e/")); got != n-1 {
		t.Errorf("after the schedule's sweep: %d objects of %d", got, n)
	}
	// Late objects of a deleted generation.
	w.tenant = "bank"
	w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
	if _, err := w.engine.Bucket().Put(t.Context(), store.PutObject{Key: "bank/e/e/1/artifacts/x", Body: strings.NewReader(""), SHA256: [32]byte{0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55}}); err != nil {
		t.Fatal(err)
	}
	w.advance(26 * time.Hour)
	w.settle()
	if got := of(w.objects(), "bank/e/"); len(got) != 0 {
		t.Errorf("a late object of a deleted execution: %v", got)
	}
}

func TestOrphansWithoutTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rich("e", nil)
	n := len(w.objects())
	w.advance(26 * time.Hour)
	w.kms.SetState("stack", "DisabledException")
	w.restart()
	r := w.sweep()
	if f := r["failures"].([]any); len(f) != 1 || f[0].(map[string]any)["code"] != string(execution.KeyUnavailable) {
		t.Errorf("failures: %v", f)
	}
	if len(w.objects()) != n {
		t.Errorf("objects went that could not be judged")
	}
	w.kms.SetState("stack", "")
	w.ok("checkpoint", "put_artifact", fields{"execution": "e", "name": "x", "fence": w.get("e")["fence"], "media_type": "text/plain", "body": []byte("young")})
	w.settle()
	if len(w.objects()) != n+1 {
		t.Errorf("%d objects, want %d", len(w.objects()), n+1)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if k := w.ok("retention", "keys", nil)["keys"].([]any); len(k) != 0 {
		t.Errorf("keys of a tenant without: %v", k)
	}
	w.rich("e", nil)
	k := w.ok("retention", "rotate_key", nil)["keys"].([]any)
	if len(k) != 2 || k[0].(map[string]any)["current"] == true || k[1].(map[string]any)["current"] != true || k[0].(map[string]any)["items"].(float64) < 4 || k[1].(map[string]any)["items"].(float64) != 0 {
		t.Fatalf("after a rotation: %v", k)
	}
	w.apply("e", fields{"state": fields{"after": "rotation"}})
	if k := w.ok("retention", "keys", nil)["keys"].([]any); k[1].(map[string]any)["items"].(float64) != 1 {
		t.Errorf("after a step: %v", k)
	}
	if w.get("e")["state"].(map[string]any)["after"] != "rotation" {
		t.Error("the state does not read")
	}
}

// TestVerifyWhileThingsHappen does to an execution, before each call of verify,
// what goes on in a store that lives. None of it is a finding.
func TestVerifyWhileThingsHappen(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"history": fields{"keep": "versions", "n": 1}})
	base.rich("e", fields{"policy": "p"})
	base.create("other", nil)
	base.advance(26 * time.Hour)
	ended := copyOf(t, base)
	ended.complete("e")
	ended.advance(26 * time.Hour)
	purging := copyOf(t, base)
	purging.ok("retention", "purge_tenant", nil)
	purging.advance(time.Hour)
	for name, c := range map[string]struct {
		from *world
		do   func(w *world)
	}{
		"a step":     {base, func(w *world) { w.apply("e", fields{"note": "on", "artifacts": []any{}}) }},
		"an end":     {base, func(w *world) { w.complete("e") }},
		"an archive": {ended, func(w *world) { w.ok("retention", "archive", fields{"execution": "e"}) }},
		"a deletion": {base, func(w *world) { w.ok("retention", "delete", fields{"execution": "e", "reason": "r"}) }},
		"a whole one": {base, func(w *world) {
			w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
			w.advance(2 * time.Hour)
			w.settle()
		}},
		"a new life": {base, func(w *world) {
			w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
			w.ok("checkpoint", "create", fields{"execution": "e", "workflow": "wf", "reuse": "new_generation"})
		}},
		"a pruning": {base, func(w *world) { w.settle() }},
		"a purge":   {purging, func(w *world) { w.ok("retention", "purge_tenant", nil) }},
	} {
		for _, request := range []string{`{"action":"verify","tenant":"bank"}`, `{"action":"verify","tenant":"bank","cursor":"` + api.Cursor(api.Listing("verify", "bank"), "objects", "") + `"}`, `{"action":"verify","tenant":"bank","execution":"e"}`} {
			met := beforeEachCall(t, c.from, "retention", request, c.do, func(_ *world, n int, out []byte, err error) {
				code := execution.CodeOf(lambdaError(err))
				if strings.Contains(request, `"execution"`) && (code == execution.Deleted || code == execution.NotFound) || code == execution.Unavailable {
					return // gone, or a call that took hours
				}
				var r struct{ Findings []api.VerifyFinding }
				if err != nil || json.Unmarshal(out, &r) != nil || len(r.Findings) > 0 {
					t.Errorf("%s before call %d of %s: %v %+v", name, n, request, err, r.Findings)
				}
			})
			if met == 0 {
				t.Errorf("%s makes no call", request)
			}
		}
	}
}

// TestVerifyOvertakenEachTime: before every call of verify the execution changes
// hands. Its head, read before its journal, is behind it in every look, and never
// at the same place; one that stays behind is found.
func TestVerifyOvertakenEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("e", nil)
	findings := func(hook *hooked) string {
		out, err := w.processOver(hookedTable{w.engine.Table(memory.Main), hook}, hookedBucket{w.engine.Bucket(), hook}).Functions()["retention"](t.Context(), []byte(`{"action":"verify","tenant":"bank","execution":"e"}`))
		var r struct{ Findings []api.VerifyFinding }
		if err != nil || json.Unmarshal(out, &r) != nil {
			t.Fatalf("%v %s", err, out)
		}
		return fmt.Sprint(r.Findings)
	}
	claimed := 0
	if got := findings(&hooked{do: func() {
		claimed++
		w.ok("recover", "claim", fields{"execution": "e", "owner": fmt.Sprint("w", claimed), "lease_seconds": 60, "supersede": true, "force": fields{"reason": "r"}})
	}}); got != "[]" || claimed == 0 {
		t.Errorf("after %d claims: %s", claimed, got)
	}
	table := w.engine.Table(memory.Main)
	it, _, err := table.Get(t.Context(), store.Get{Key: store.Key{PK: "bank#e", SK: "head"}, Consistent: true})
	if err != nil {
		t.Fatal(err)
	}
	it = maps.Clone(it)
	it[journal.HeadFence] = store.N(1)
	if _, err := table.Put(t.Context(), store.Put{Item: it}); err != nil {
		t.Fatal(err)
	}
	if got := findings(&hooked{do: func() {}}); !strings.Contains(got, "do not agree") {
		t.Errorf("a head of old: %s", got)
	}
}

// TestVerifyWhilePurging: between any two calls of a purge nothing is found, also
// of executions whose receipts went and whose rows of the registry go last.
func TestVerifyWhilePurging(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, e := range []string{"a", "b", "c"} {
		w.create(e, nil)
	}
	bare := 0
	for range 100 {
		reply := w.ok("retention", "purge_tenant", fields{"limit": 1})
		if f := w.findings(nil); len(f) > 0 {
			t.Fatalf("%v", f)
		}
		if items := w.items(); len(of(items, "bank#~")) == 3 && len(of(items, "bank#a/")) == 0 {
			bare++
		}
		if reply["done"] == true {
			if bare == 0 {
				t.Error("no call ended with a row alone")
			}
			return
		}
		w.advance(10 * time.Minute)
	}
	t.Error("the purge does not end")
}
