package fieldcases

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// stateText gives a state's exact text, inline or by its reference.
func (k *kit) stateText(execution string) string {
	k.Helper()
	r := k.get(execution)
	if ref := r.str("state_ref", "url"); ref != "" {
		return string(k.fetch(ref))
	}
	_, from, _ := bytes.Cut(r.text, []byte(`"state":`))
	rd := &reader{text: from}
	rd.value()
	return string(from[:rd.at])
}

func TestS1ItemOver400KB(t *testing.T) {
	k := start(t)
	k.run("sizes", func(k *kit) {
		for i, s := range []raw{sized(399 * 1024), sized(409_599), sized(409_600), sized(409_601), sized(1_000_000), sized(4_900_000), raw(`{"s":"` + strings.Repeat("é", 204_800) + `"}`)} {
			execution := fmt.Sprintf("e%d", i)
			v := k.create(execution, object{"state": object{"first": 1}}).version()
			v = k.apply(execution, v, object{"state": s}).version()
			if got := k.stateText(execution); got != string(s) {
				k.Fatalf("%d bytes: %d other bytes came back", len(s), len(got))
			}
			v = k.apply(execution, v, object{"merge": object{"more": 1}}).version()
			k.apply(execution, v, object{"patch": []any{object{"op": "remove", "path": "/more"}}})
			equal(k, digest([]byte(k.stateText(execution))), digest([]byte(s)), fmt.Sprintf("%d bytes after two more steps", len(s)))
			if len(s) < 500_000 {
				k.create(execution+"c", object{"state": s})
				equal(k, digest([]byte(k.stateText(execution+"c"))), digest([]byte(s)), "created at once")
			}
		}
	})
	k.tool("reset", object{}) // small dumps from here on
	k.run("by the names around it", func(k *kit) {
		name := strings.Repeat("m", 128)
		v := k.create(name, object{"thread": name, "labels": object{strings.Repeat("l", 128): strings.Repeat("v", 256)}}).version()
		for n := 393_900; n <= 409_600; n += 7_800 {
			v = k.apply(name, v, object{"state": sized(n), "note": strings.Repeat("n", 1024), "task": name, "request_id": strings.Repeat("r", 122) + fmt.Sprint(n)}).version()
		}
	})
	k.tool("reset", object{})
	k.run("a refusal leaves nothing", func(k *kit) {
		v := k.create("no", object{"state": object{}}).version()
		before := k.rest().shape(k.tenant)
		k.refused("apply", object{"execution": "no", "expected_version": v, "state": sized(5_300_000)}, "TooLarge")
		k.refused("create", object{"execution": "never", "workflow": "wf", "state": sized(5_300_000)}, "TooLarge")
		equal(k, k.rest().shape(k.tenant), before, "what lies at rest")
	})
	k.run("a crash between object and entry", func(k *kit) {
		v := k.create("cr", object{"state": sized(200_000)}).version()
		old, have := k.stateText("cr"), keys(k.rest().objects(k.tenant, "cr"))
		k.faults(object{"on": "put_object", "effect": "crash_after"})
		next := sized(200_000)
		k.refused("apply", object{"execution": "cr", "expected_version": v, "state": next, "request_id": "crashed"}, crash)
		k.faults()
		equal(k, k.version("cr"), v, "version after the crash")
		equal(k, k.stateText("cr") == old, true, "state after the crash")
		var orphans []string
		for _, o := range keys(k.rest().objects(k.tenant, "cr")) {
			if !slices.Contains(have, o) {
				orphans = append(orphans, o)
			}
		}
		if len(orphans) == 0 {
			k.Fatal("the crash left no object")
		}
		k.wait(26 * time.Hour)
		k.sweeps(4)
		for _, o := range keys(k.rest().objects(k.tenant, "cr")) {
			if slices.Contains(orphans, o) {
				k.Fatalf("the orphan %s is still there 26 h later", o)
			}
		}
		equal(k, k.stateText("cr") == old, true, "state after the sweep")
		k.apply("cr", v, object{"state": next, "request_id": "crashed"})
		equal(k, k.stateText("cr") == string(next), true, "the request that crashed, repeated after the sweep")
	})
}

func TestS2StepFunctions256KB(t *testing.T) {
	k := start(t)
	wf := k.workflow("wfs")
	for i, n := range []int{98_000, 120_000, 130_000, 262_144, 307_200} {
		execution, s := fmt.Sprintf("e%d", i), sized(n)
		k.create(execution, wf, object{"state": s})
		for _, limit := range []object{{}, {"max_inline_bytes": 100_000}, {"max_inline_bytes": 20_000}, {"max_inline_bytes": 4_000}} {
			r := k.do("get", with(object{"execution": execution}, limit))
			most := 100_000
			if n, ok := limit["max_inline_bytes"].(int); ok {
				most = n
			}
			if len(r.text) > most {
				t.Fatalf("get %v of %d: %d bytes", limit, n, len(r.text))
			}
			if n > most && (r.object["state"] != nil || r.str("state_ref", "url") == "") {
				t.Fatalf("get %v of %d: no reference", limit, n)
			}
			if ref := r.str("state_ref", "url"); ref != "" {
				got := k.fetch(ref)
				equal(t, string(got) == string(s), true, "the reference read back")
				equal(t, r.str("state_ref", "digest"), digest(got), "its digest")
				equal(t, r.int("state_ref", "bytes"), int64(len(got)), "its size")
				equal(t, r.int("state_ref", "version"), r.version(), "its version")
			}
		}
		for _, verb := range []string{"claim", "resume"} {
			k.wait(61 * time.Second)
			r := k.do(verb, object{"execution": execution, "owner": "w", "lease_seconds": 60, "max_inline_bytes": 50_000})
			if len(r.text) > 50_000 {
				t.Fatalf("%s of %d: %d bytes", verb, n, len(r.text))
			}
		}
		r := k.get(execution)
		if r := k.apply(execution, r.version(), object{"fence": r.fence(), "state": sized(n)}); len(r.text) > 4_000 {
			t.Fatalf("apply echoes %d bytes", len(r.text))
		}
	}
	k.run("operations and inbox over the limit", func(k *kit) {
		c := k.create("ops", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		ops := []any{}
		for i := range 300 {
			ops = append(ops, object{"name": "n", "args": object{"i": i}, "key": fmt.Sprintf("%d%s", i, strings.Repeat("k", 200))})
		}
		k.apply("ops", c.version(), object{"fence": c.fence(), "operations": ops})
		for i := range 60 {
			k.do("signal", object{"execution": "ops", "name": "n", "key": fmt.Sprint(i), "body": noise(3000)})
		}
		for list, cursor := range map[string]string{"operations": "operations_cursor", "inbox": "inbox_cursor"} {
			f, seen, pages := object{"execution": "ops", "include": []any{list}}, map[string]bool{}, 0
			for {
				r := k.do("get", f)
				if len(r.text) > 100_000 {
					k.Fatalf("%s: a page of %d bytes", list, len(r.text))
				}
				for _, x := range r.list(list) {
					o := x.(object)
					id := fmt.Sprint(o["operation"], o["key"])
					if seen[id] {
						k.Fatalf("%s: %s twice", list, id)
					}
					seen[id] = true
				}
				pages++
				if r.str(cursor) == "" {
					break
				}
				f[cursor] = r.str(cursor)
			}
			equal(k, len(seen), map[string]int{"operations": 300, "inbox": 60}[list], list+" over all pages")
			if pages < 2 {
				k.Fatalf("%s fit one page: the fixture is too small", list)
			}
		}
	})
}

func TestS4TooLargeIsPermanent(t *testing.T) {
	k := start(t)
	const limit = 5 << 20
	v := k.create("e", object{"state": object{}}).version()
	same := func(n int) raw { return raw(`{"s":"` + strings.Repeat("a", n-8) + `"}`) }
	for _, n := range []int{limit - 1, limit} {
		v = k.apply("e", v, object{"state": same(n)}).version()
	}
	// At the limit with everything around it.
	v = k.apply("e", v, object{"state": same(limit), "note": strings.Repeat("n", 1024), "task": strings.Repeat("t", 128)}).version()
	before := k.rest().shape(k.tenant)
	grow := object{"patch": []any{object{"op": "add", "path": "/more", "value": noise(4000)}}}
	for range 3 {
		for _, change := range []object{{"state": same(limit + 1)}, grow, {"merge": object{"more": "x"}}, {"state": same(6_200_000)}, {"state": same(7_000_000)}} {
			f := k.refused("apply", with(change, object{"execution": "e", "expected_version": v}), "TooLarge")
			equal(t, f.facts.at("retryable"), any(false), "retryable")
		}
		equal(t, k.version("e"), v, "version")
	}
	equal(t, k.rest().shape(k.tenant), before, "what lies at rest")
	k.apply("e", v, object{"state": object{"small": 1}})
	for _, c := range []struct {
		action string
		object
	}{
		{"put_artifact", object{"execution": "e", "name": "n", "media_type": "a/b", "body": raw(`"` + strings.Repeat("AAAA", (4<<20)/3+1) + `"`)}},
		{"apply", object{"execution": "e", "expected_version": v, "note": strings.Repeat("n", 1025)}},
		{"put_artifact", object{"execution": "e", "name": "n", "media_type": "a/b", "upload": object{"bytes": 5<<30 + 1, "sha256": digest(nil)}}},
	} {
		f := k.refused(c.action, c.object, "TooLarge", "InvalidRequest")
		equal(t, f.facts.at("retryable"), any(false), "retryable")
	}
}

func TestS5QueryPage1MB(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	v, ids := c.version(), []string{}
	for b := range 11 {
		ops := []any{}
		for i := range 100 {
			ops = append(ops, object{"name": "n", "args": object{"pad": noise(900)}, "key": fmt.Sprint(b*100 + i)})
		}
		r := k.apply("e", v, object{"fence": c.fence(), "operations": ops, "max_inline_bytes": inline})
		v = r.version()
		for _, o := range r.list("operations") {
			equal(t, o.(object)["disposition"], any("go"), "disposition")
			ids = append(ids, o.(object)["operation"].(string))
		}
	}
	listed := func(r reply) []string {
		t.Helper()
		out := []string{}
		for {
			for _, o := range r.list("operations") {
				out = append(out, o.(object)["operation"].(string))
			}
			if r.str("operations_cursor") == "" {
				return out
			}
			r = k.do("get", object{"execution": "e", "include": []any{"operations"}, "operations_cursor": r.str("operations_cursor")})
		}
	}
	equal(t, listed(k.do("get", object{"execution": "e", "include": []any{"operations"}})), ids, "operations in the order of their declaration")
	k.faults(object{"on": "query", "effect": "page_1", "count": 1_000_000})
	equal(t, listed(k.do("get", object{"execution": "e", "include": []any{"operations"}})), ids, "in pages of one item")
	equal(t, int64(len(k.history("e"))), v, "history in pages of one item")
	k.faults()
	k.wait(901 * time.Second)
	d := k.claim("e", "w2", 900)
	equal(t, listed(d), ids, "the claim's list and its pages")
	v = d.version()
	for b := 0; b < 1000; b += 250 {
		outcomes := []any{}
		for _, id := range ids[b : b+250] {
			outcomes = append(outcomes, object{"operation": id, "outcome": "succeeded"})
		}
		v = k.apply("e", v, object{"fence": d.fence(), "outcomes": outcomes}).version()
	}
	for _, id := range ids[1000 : len(ids)-1] {
		k.outcome("e", id, "succeeded")
	}
	k.drain("e", d.fence())
	f := k.refused("complete", object{"execution": "e", "expected_version": k.version("e"), "fence": d.fence(), "outcome": "completed"}, "OperationsOpen")
	k.names(f, ids[len(ids)-1])
	k.outcome("e", ids[len(ids)-1], "succeeded")
	k.drain("e", d.fence())
	k.complete("e", k.version("e"), d.fence())
}

func TestS6HistoryGrowth(t *testing.T) {
	k := start(t)
	k.policy("keep10", 1, object{"history": object{"keep": "versions", "n": 10}})
	k.run("objects of a running execution", func(k *kit) {
		v := k.create("big", object{"policy": "keep10", "state": object{}}).version()
		states := map[int64]string{}
		for range 30 {
			s := sized(60_000)
			v = k.apply("big", v, object{"state": s}).version()
			states[v] = digest([]byte(s))
		}
		k.wait(49 * time.Hour)
		k.sweeps(4)
		if n := len(keys(k.rest().objects(k.tenant, "big"))); n > 24 {
			k.Fatalf("%d objects of 30 states under a rule of 10 versions", n)
		}
		equal(k, digest([]byte(k.stateText("big"))), states[v], "the newest state")
		for _, back := range []int64{1, 9} {
			got := k.get("big", object{"version": v - back})
			text := digest(k.fetchOr(got))
			equal(k, text, states[v-back], fmt.Sprintf("version N-%d", back))
		}
		f := k.refused("get", object{"execution": "big", "version": 3}, "HistoryPruned")
		if f.facts.int("floor") <= 3 {
			k.Fatalf("no floor: %s", f)
		}
		v = k.apply("big", v, object{"merge": object{"s": "x"}}).version()
		equal(k, k.version("big"), v, "it goes on")
	})
	k.run("cost does not grow", func(k *kit) {
		v := k.create("old", object{"policy": "keep10", "state": sized(20_000)}).version()
		cost := map[int]float64{}
		for n := 1; n <= 400; n++ {
			if n == 21 || n == 371 {
				k.mark()
			}
			v = k.apply("old", v, object{"patch": []any{object{"op": "add", "path": "/obs", "value": noise(2000)}}}).version()
			if n == 50 || n == 400 {
				cost[n] = k.units()
				k.mark()
				k.get("old")
				cost[n+1] = k.units()
			}
		}
		if cost[50] == 0 || cost[400] > 2*cost[50] || cost[401] > 2*cost[51]+2 {
			k.Fatalf("30 steps cost %v units early and %v late, a read %v and %v", cost[50], cost[400], cost[51], cost[401])
		}
		k.mark()
		k.claim("old", "w", 60)
		if n := len(k.log()); n > 12 {
			k.Fatalf("a claim makes %d storage calls", n)
		}
	})
}

// fetchOr gives the state's text of a reply with or without a reference.
func (k *kit) fetchOr(r reply) []byte {
	k.Helper()
	if ref := r.str("state_ref", "url"); ref != "" {
		return k.fetch(ref)
	}
	return encode(r.object["state"])
}
