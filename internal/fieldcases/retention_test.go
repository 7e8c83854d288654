package fieldcases

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestR1ExpiredButStillThere(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	k.create("e", object{"policy": "p", "state": object{"x": 1}, "thread": "T0"})
	d := k.put("e", "a", []byte("bytes"))
	k.apply("e", k.version("e"), object{"artifacts": []any{d}})
	done := k.finish("e")
	k.wait(day - time.Second)
	equal(t, k.get("e").str("status"), "completed", "a second before its time")
	k.wait(2 * time.Second)
	before := k.rest().shape(k.tenant)
	for range 2 {
		for _, c := range everyVerb("e") {
			// holds says that there are none, a release's repeat may come when the
			// release itself let the time run out, delete and verify go on with it.
			if c.execution && !slices.Contains([]string{"holds", "release_hold", "delete", "verify"}, c.action) {
				f := k.refused(c.action, with(c.object, object{"expected_version": omitUnless(c.object, "expected_version", done.version())}), append(gone, "InvalidRequest")...)
				if f.code == "InvalidRequest" {
					t.Fatalf("%s on an expired execution: %s", c.action, f)
				}
			}
		}
	}
	f := k.refused("get", object{"execution": "e"}, "Deleted")
	equal(t, f.facts.at("expired"), any(true), "the reason")
	k.run("nothing extends it", func(k *kit) {
		k.refused("hold", object{"execution": "e", "hold": "late", "reason": "r"}, gone...)
		equal(k, k.rest().shape(k.tenant), before, "what lies at rest")
	})
	for _, i := range k.rest().items(k.tenant, "") {
		if ttl := attr(i, "ttl"); ttl != "" {
			if n, err := strconv.ParseFloat(ttl, 64); err != nil || n < 1e8 || n > 1e11 {
				t.Fatalf("a ttl that is not in epoch seconds: %s", ttl)
			}
		}
	}
	k.run("listings", func(k *kit) {
		for n := range 300 {
			execution := fmt.Sprintf("d%03d", n)
			c := k.create(execution, object{"policy": "p", "thread": "T", "labels": object{"l": "v"}, "subjects": []any{"S"}, "claim": object{"owner": "w", "lease_seconds": 60}})
			k.complete(execution, c.version(), c.fence())
		}
		k.wait(2 * day)
		var live []string
		for n := range 20 {
			live = append(live, k.create(fmt.Sprintf("live%02d", n), object{"policy": "p", "thread": "T", "labels": object{"l": "v"}, "subjects": []any{"S"}}).str("execution"))
		}
		for _, by := range []object{{"thread": "T"}, {"workflow": "wf"}, {"label": object{"l": "v"}}, {"subject": "S"}, {"status": "created"}} {
			k.mark()
			got, pages := k.listed(with(by, object{"limit": 10}))
			calls := len(k.log())
			equal(k, got, live, fmt.Sprint("list ", by))
			if pages > 4 || calls > 200 {
				k.Fatalf("list %v beside 300 expired: %d pages, %d storage calls", by, pages, calls)
			}
			first := k.do("list", with(by, object{"limit": 10}))
			if len(first.list("executions")) != 10 || first.str("cursor") == "" {
				k.Fatalf("list %v: the first page has %d", by, len(first.list("executions")))
			}
		}
		got, _ := k.listed(object{"status": "completed"})
		equal(k, got, []string{}, "expired ones by status")
	})
	k.run("a hold keeps it readable", func(k *kit) {
		k.create("held", object{"policy": "p"})
		k.finish("held")
		k.do("hold", object{"execution": "held", "hold": "h", "reason": "r"})
		k.wait(3 * day)
		k.sweeps(2)
		equal(k, k.get("held").str("status"), "completed", "held beyond its time")
		k.do("release_hold", object{"execution": "held", "hold": "h", "reason": "r"})
		k.refused("get", object{"execution": "held"}, gone...)
	})
}

// omitUnless gives v where the field is there, else omit.
func omitUnless(o object, field string, v any) any {
	if _, has := o[field]; has {
		return v
	}
	return omit{}
}

func (k *kit) fill(executions int) {
	k.Helper()
	for i := range executions {
		execution := fmt.Sprintf("e%d", i)
		c := k.create(execution, object{"state": sized(12_000 + 33_000*(i%3/2)), "thread": "T", "subjects": []any{"S"}, "labels": object{"l": "v"}, "claim": object{"owner": "w", "lease_seconds": 900}})
		arts := []any{}
		for j := range 3 {
			arts = append(arts, k.put(execution, fmt.Sprint("a", j), []byte(noise(500)), object{"fence": c.fence()}))
		}
		r := k.apply(execution, c.version(), object{"fence": c.fence(), "artifacts": arts, "operations": []any{object{"name": "n", "args": object{}, "key": "k"}}})
		k.outcome(execution, r.str("operations", 0, "operation"), "succeeded")
		k.do("signal", object{"execution": execution, "name": "s", "key": "k"})
	}
	k.policy("pol", 30)
	k.do("set_workflow", object{"workflow": object{"name": "w", "schema": object{"name": "s", "version": 1}}})
}

func TestR3PurgeIncompleteButOK(t *testing.T) {
	k := start(t)
	other := k.as("neighbour")
	other.fill(3)
	keep := k.rest().shape("neighbour")
	scripts := [][]object{
		{},
		{{"on": "batch", "effect": "unprocessed", "nth": 2, "count": 3}, {"on": "delete", "effect": "unprocessed", "nth": 2, "count": 3}, {"on": "delete_objects", "effect": "unprocessed", "count": 2}},
		{{"on": "delete", "effect": "crash_after", "nth": 5}, {"on": "batch", "effect": "crash_after", "nth": 2}},
		{{"on": "delete_objects", "effect": "crash_after"}},
		{{"on": "transact", "effect": "crash_after", "nth": 3}, {"on": "transact", "effect": "crash_before", "nth": 7}},
		{{"on": "query", "effect": "page_1", "count": 100_000}, {"on": "list_objects", "effect": "page_1", "count": 100_000}},
		{{"on": "delete", "effect": "lost", "nth": 3, "count": 2}, {"on": "delete_objects", "effect": "landed"}, {"on": "list_objects", "effect": "unavailable", "nth": 2, "count": 2}},
		{{"on": "*", "effect": "throttle", "nth": 20, "count": 10}},
	}
	for n, faults := range scripts {
		k.fill([]int{40, 6}[min(n, 1)])
		if len(k.rest().objects(k.tenant, "")) == 0 {
			t.Fatal("no objects to purge")
		}
		k.faults(faults...)
		if !k.purge(300) {
			t.Fatalf("never done under %v", faults)
		}
		k.faults()
		equal(t, k.rest().shape(k.tenant), []string{}, fmt.Sprint("left after done under ", faults))
		equal(t, k.rest().shape("neighbour"), keep, "the neighbour")
	}
	k.run("never done while something stays", func(k *kit) {
		k.fill(3)
		for _, on := range []string{"batch", "delete", "delete_objects"} {
			k.faults(object{"on": on, "effect": "unprocessed", "count": 1_000_000})
			f := object{}
			for range 12 {
				r, e := k.try("purge_tenant", f)
				if e == nil && r.at("done") == true && len(k.rest().shape(k.tenant)) > 0 {
					k.Fatalf("done while %s is never processed", on)
				}
				if e == nil && r.str("cursor") != "" {
					f["cursor"] = r.str("cursor")
				}
				k.wait(1200 * time.Second)
			}
		}
		k.faults()
		if !k.purge(200) {
			k.Fatal("never done after the fault is gone")
		}
		equal(k, k.rest().shape(k.tenant), []string{}, "left")
	})
	k.run("what is held stays", func(k *kit) {
		k.fill(2)
		k.do("hold", object{"execution": "e0", "hold": "h", "reason": "r"})
		if k.purge(60) {
			k.Fatal("done though something is held")
		}
		r := k.do("purge_tenant", object{})
		equal(k, r.at("deferred", 0, "execution"), any("e0"), "the held one is named")
		equal(k, k.get("e0").version() > 0, true, "and readable")
		k.refused("get", object{"execution": "e1"}, gone...)
		k.do("release_hold", object{"execution": "e0", "hold": "h", "reason": "r"})
		if !k.purge(200) {
			k.Fatal("never done after the hold")
		}
		equal(k, k.rest().shape(k.tenant), []string{}, "left")
	})
	k.run("ids are free again", func(k *kit) {
		k.create("e0", object{"state": object{"new": 1}})
		equal(k, k.state("e0"), any(object{"new": number("1")}), "created anew")
	})
}

func TestR5S3DeleteMarker(t *testing.T) {
	k := start(t)
	k.create("e")
	bodies := [][]byte{[]byte(noise(900)), []byte(noise(900)), []byte(noise(900))}
	var digests []string
	v := int64(1)
	for _, b := range bodies {
		d := k.put("e", "doc", b)
		k.put("e", "doc", b) // the same bytes again
		v = k.apply("e", v, object{"artifacts": []any{d}, "state": sized(60_000)}).version()
		digests = append(digests, d)
	}
	k.finish("e")
	k.do("hold", object{"execution": "e", "hold": "h", "reason": "legal"})
	before := k.rest().objects(k.tenant, "")
	k.mark()
	f := k.refused("delete", object{"execution": "e", "reason": "erase"}, "Held")
	k.names(f, `"h"`)
	for _, c := range k.log() {
		if call := c.(object)["call"]; call == any("delete_objects") || call == any("delete") || call == any("batch") && c.(object)["write_units"] != any(number("0")) {
			t.Fatalf("a held delete reached the store: %v", c)
		}
	}
	equal(t, k.rest().objects(k.tenant, ""), before, "objects after a held delete")
	for i, d := range digests {
		equal(t, bytes.Equal(k.artifact("e", object{"digest": d}), bodies[i]), true, "an artifact of a held execution")
	}
	k.do("release_hold", object{"execution": "e", "hold": "h", "reason": "over"})
	k.delete("e")
	equal(t, len(k.rest().objects(k.tenant, "")), 0, "versions and markers after delete")
	k.refused("get_artifact", object{"execution": "e", "digest": digests[0]}, gone...)
	r := k.do("get_receipt", object{"execution": "e"})
	equal(t, r.str("receipt", "state"), "deleted", "the receipt")
	k.run("by thread and subject", func(k *kit) {
		k.create("t1", object{"thread": "T"})
		k.create("s1", object{"subjects": []any{"S"}})
		k.do("hold", object{"thread": "T", "hold": "ht", "reason": "r"})
		k.do("hold", object{"subject": "S", "hold": "hs", "reason": "r"})
		k.create("t2", object{"thread": "T"}) // later ones too
		k.create("s2", object{"subjects": []any{"S"}})
		for _, e := range []string{"t1", "t2", "s1", "s2"} {
			k.refused("delete", object{"execution": e, "reason": "r"}, "Held")
		}
		r := k.do("delete", object{"thread": "T", "reason": "r"})
		equal(k, len(r.list("deferred")), 2, "deferred by thread")
		k.do("release_hold", object{"thread": "T", "hold": "ht", "reason": "r"})
		k.do("release_hold", object{"subject": "S", "hold": "hs", "reason": "r"})
		for _, e := range []string{"t1", "t2", "s1", "s2"} {
			k.delete(e)
		}
	})
	k.run("purge", func(k *kit) {
		k.create("e2", object{"state": sized(90_000)})
		for _, b := range bodies {
			k.put("e2", "doc", b)
		}
		if !k.purge(200) {
			k.Fatal("never done")
		}
		equal(k, len(k.rest().objects(k.tenant, "")), 0, "versions and markers after purge")
	})
}

// journalObjects are the objects with entries' bodies.
func (k *kit) journalObjects(execution string) []object {
	k.Helper()
	var out []object
	for _, o := range k.rest().objects(k.tenant, execution) {
		if strings.Contains(o["key"].(string), "/journal/") && o["delete_marker"] != true {
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		k.Fatalf("no journal object of %s", execution)
	}
	slices.SortFunc(out, func(a, b object) int { return strings.Compare(a["key"].(string), b["key"].(string)) })
	return out
}

func TestR7DanglingOrWrongObject(t *testing.T) {
	k := start(t)
	hows := []string{"truncated", "longer", "another's", "older", "flipped", "empty", "deleted"}
	for n, how := range hows {
		k.tool("reset", object{}) // small dumps
		execution := fmt.Sprintf("e%d", n)
		v1 := k.create(execution, object{"state": object{"small": 1}}).version()
		v2 := k.apply(execution, v1, object{"state": sized(60_000)}).version()
		old := k.journalObjects(execution)[0]
		v3 := k.apply(execution, v2, object{"state": sized(60_000)}).version()
		art := k.put(execution, "doc", []byte(noise(3000)))
		k.apply(execution, v3, object{"artifacts": []any{art}})
		k.create(execution+"x", object{"state": sized(60_000)})
		all := k.rest()
		newest := k.journalObjects(execution)[1]
		var artObject object
		for _, o := range all.objects(k.tenant, execution) {
			if strings.Contains(o["key"].(string), "/artifacts/") {
				artObject = o
			}
		}
		body := func(o object) object {
			b := objectBody(o)
			switch how {
			case "truncated":
				return withBody(o, b[:len(b)-1])
			case "longer":
				return withBody(o, append(slices.Clone(b), 0))
			case "another's":
				return withBody(o, objectBody(k.journalObjects(execution + "x")[0]))
			case "older":
				return withBody(o, objectBody(old))
			case "flipped":
				b = slices.Clone(b)
				b[len(b)/2] ^= 1
				return withBody(o, b)
			}
			return withBody(o, nil)
		}
		if how == "deleted" {
			kept := []any{}
			for _, o := range all.all["objects"].([]any) {
				if key := o.(object)["key"]; key != newest["key"] && key != artObject["key"] {
					kept = append(kept, o)
				}
			}
			k.tool("reset", object{})
			k.load(with(all.all, object{"objects": kept}))
		} else {
			k.load(object{"objects": []any{body(newest), body(artObject)}})
		}
		before := k.rest().raw(k.tenant, execution)
		for _, c := range []struct {
			action string
			object
		}{
			{"get", object{}}, {"claim", object{"owner": "w", "lease_seconds": 60}}, {"resume", object{"owner": "w", "lease_seconds": 60}},
			{"apply", object{"expected_version": v3 + 1, "merge": object{"x": 1}}}, {"get_artifact", object{"digest": art}}, {"suspend", object{"expected_version": v3 + 1, "wait": object{}}},
		} {
			f := k.refused(c.action, with(c.object, object{"execution": execution}), "Integrity")
			k.names(f, `"`+execution+`"`)
			equal(t, f.facts.at("retryable"), any(false), how+": retryable")
		}
		k.refused("create", object{"execution": execution, "workflow": "wf"}, "AlreadyExists")
		equal(t, k.get(execution, object{"version": v1}).at("state"), any(object{"small": number("1")}), how+": an earlier version")
		equal(t, k.rest().raw(k.tenant, execution), before, how+": nothing is written over")
		k.wait(2 * time.Hour)
		k.sweeps(1)
		oneOf(t, k.rest().status(k.tenant, execution), []string{"created", "parked"}, how+": status after sweeps")
		if how == "deleted" {
			k.load(all.all)
		} else {
			k.load(object{"objects": []any{newest, artObject}})
		}
		equal(t, k.get(execution).version() >= v3+1, true, how+": whole again")
	}
	k.run("verify finds it", func(k *kit) {
		v := k.create("v").version()
		k.apply("v", v, object{"state": sized(60_000)})
		o := k.journalObjects("v")[0]
		b := objectBody(o)
		k.load(object{"objects": []any{withBody(o, b[:len(b)-1])}})
		if r := k.do("verify", object{"execution": "v"}); len(r.list("findings")) == 0 {
			k.Fatal("verify finds nothing")
		}
		k.load(object{"objects": []any{o}})
		if r := k.do("verify", object{"execution": "v"}); len(r.list("findings")) != 0 {
			k.Fatalf("verify finds in a sound one: %s", r.text)
		}
	})
}

// status is the head's raw status.
func (r rest) status(tenant, execution string) string {
	head := r.item(tenant, execution, "head")
	if head == nil {
		return "absent"
	}
	return attr(head, "status")
}

// whole is everything that reads show of an execution, but where it lies.
func (k *kit) whole(execution string, entries int) string {
	k.Helper()
	g := k.get(execution)
	text := fmt.Sprint(g.at("state"), g.at("holds"), g.fence(), g.at("labels"), g.at("thread"), g.at("input"), g.at("result"))
	for _, o := range g.list("operations") {
		id := o.(object)["operation"].(string)
		r := k.op(execution, id)
		text += fmt.Sprint(id, r.str("status"), r.at("result"), r.at("intent"))
	}
	for _, a := range g.list("artifacts") {
		d := a.(object)["digest"].(string)
		text += d + digest(k.artifact(execution, object{"digest": d}))
	}
	for _, e := range k.history(execution)[:entries] {
		text += string(encode(e))
	}
	return text
}

func TestR8ArchivedButHalfVisible(t *testing.T) {
	k := start(t)
	k.policy("p", 365)
	make := func(execution string) {
		t.Helper()
		c := k.create(execution, object{"policy": "p", "thread": "T", "labels": object{"l": "v"}, "input": object{"i": 1}, "state": object{"n": 1}, "claim": object{"owner": "w", "lease_seconds": 60}})
		arts := []any{k.put(execution, "a", []byte(noise(700)), object{"fence": c.fence()}), k.put(execution, "b", []byte(noise(800)), object{"fence": c.fence()})}
		k.apply(execution, c.version(), object{"fence": c.fence(), "state": sized(90_000), "artifacts": arts})
		o := k.declare(execution, c.fence(), object{"key": "k1"}).str("operation")
		k.apply(execution, k.version(execution), object{"fence": c.fence(), "outcomes": []any{object{"operation": o, "outcome": "succeeded", "result": object{"r": 1}}}})
		k.complete(execution, k.version(execution), c.fence(), object{"result": object{"done": true}})
	}
	make("e")
	entries := len(k.history("e"))
	k.do("hold", object{"execution": "e", "hold": "h", "reason": "legal"})
	k.refused("archive", object{"execution": "e"}, "Held")
	k.do("release_hold", object{"execution": "e", "hold": "h", "reason": "over"})
	k.refused("restore", object{"execution": "e"}, "InvalidRequest")
	before, version := k.whole("e", entries), k.version("e")
	k.do("archive", object{"execution": "e"})
	g := k.get("e")
	equal(t, []any{g.str("status"), g.version()}, []any{"archived", version + 1}, "an archived one")
	equal(t, k.whole("e", entries), before, "what reads show of an archived one")
	for status, want := range map[string][]string{"archived": {"e"}, "completed": {}} {
		got, _ := k.listed(object{"status": status})
		equal(t, got, want, "list "+status)
	}
	for _, c := range []string{"apply", "claim", "resume", "complete"} {
		k.refused(c, with(object{"execution": "e"}, map[string]object{"apply": {"expected_version": version + 1, "fence": g.fence(), "state": object{}}, "complete": {"expected_version": version + 1, "fence": g.fence(), "outcome": "failed"}, "claim": {"owner": "w", "lease_seconds": 60}, "resume": {"owner": "w", "lease_seconds": 60}}[c]), "ExecutionClosed")
	}
	k.do("hold", object{"execution": "e", "hold": "h2", "reason": "r"})
	k.do("restore", object{"execution": "e"})
	k.do("release_hold", object{"execution": "e", "hold": "h2", "reason": "r"})
	g = k.get("e")
	equal(t, []any{g.str("status"), g.version()}, []any{"completed", version + 2}, "restored")
	equal(t, k.whole("e", entries), before, "what reads show of a restored one")
	k.run("an open one", func(k *kit) {
		for _, how := range []string{"created", "leased", "waiting", "uncertain"} {
			k.create("o-"+how, object{"policy": "p"})
			switch how {
			case "leased":
				k.claim("o-"+how, "w", 60)
			case "waiting", "uncertain":
				c := k.claim("o-"+how, "w", 60)
				if how == "uncertain" {
					k.declare("o-"+how, c.fence(), object{"key": "k"})
				}
				k.do("suspend", object{"execution": "o-" + how, "expected_version": k.version("o-" + how), "fence": c.fence(), "wait": object{}})
			}
			raw := k.rest().raw(k.tenant, "o-"+how)
			k.refused("archive", object{"execution": "o-" + how}, "ExecutionOpen")
			equal(k, k.rest().raw(k.tenant, "o-"+how), raw, how+": after a refused archive")
		}
	})
	k.run("crashes", func(k *kit) {
		n := 0
		for _, on := range []string{"put_object", "delete_objects", "delete", "batch", "transact", "put", "update"} {
			for _, effect := range []string{"crash_after", "crash_before"} {
				execution := fmt.Sprintf("c%d", n)
				n++
				make(execution)
				entries := len(k.history(execution))
				before := k.whole(execution, entries)
				for _, verb := range []string{"archive", "restore"} {
					k.faults(object{"on": on, "effect": effect})
					k.try(verb, object{"execution": execution})
					k.faults()
					equal(k, k.whole(execution, entries), before, verb+", "+on+" "+effect+": right after")
					if _, f := k.try(verb, object{"execution": execution}); f != nil && f.code != "InvalidRequest" && f.code != "ExecutionClosed" {
						k.Fatalf("%s again: %s", verb, f)
					}
					equal(k, k.get(execution).str("status"), map[string]string{"archive": "archived", "restore": "completed"}[verb], verb+" again")
					equal(k, k.whole(execution, entries), before, verb+", "+on+" "+effect+": in the end")
				}
				equal(k, k.version(execution), int64(entries+2), "numbering goes on")
			}
		}
	})
	k.run("deleted", func(k *kit) {
		make("del")
		k.do("archive", object{"execution": "del"})
		k.delete("del")
		equal(k, len(k.rest().objects(k.tenant, "del")), 0, "objects of a deleted archive")
		k.refused("restore", object{"execution": "del"}, gone...)
	})
}

func TestR9TTLRunsOutUnderWork(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	c := k.create("e", object{"policy": "p", "state": object{"n": 0}, "claim": object{"owner": "w", "lease_seconds": 900}})
	o := k.declare("e", c.fence(), object{"key": "k"}).str("operation")
	for n := range 8 {
		for range 2 {
			k.wait(800 * time.Second)
			k.do("renew", object{"execution": "e", "owner": "w", "fence": c.fence(), "lease_seconds": 900})
		}
		k.apply("e", k.version("e"), object{"fence": c.fence(), "state": object{"n": n}})
		k.sweeps(1)
		equal(t, k.state("e"), any(object{"n": number(fmt.Sprint(n))}), "under work")
	}
	k.wait(400 * day) // the worker is gone, the operation stays uncertain
	k.sweeps(3)
	g := k.get("e")
	equal(t, g.at("state"), any(object{"n": number("7")}), "an unfinished one after a year")
	oneOf(t, g.str("status"), []string{"running", "parked"}, "its status")
	oneOf(t, k.op("e", o).str("status"), uncertain, "its operation")
	d := k.claim("e", "w2", 900)
	k.refused("complete", object{"execution": "e", "expected_version": d.version(), "fence": d.fence(), "outcome": "cancelled"}, "OperationsOpen")
	k.reconcile("e", d.fence(), object{"operation": o, "finding": "found", "count": 1, "provider_ref": "x"})
	k.complete("e", k.version("e"), d.fence())
	k.wait(day - time.Hour)
	k.sweeps(2)
	equal(t, k.get("e").str("status"), "completed", "an hour before its time")
	k.wait(2 * time.Hour)
	k.refused("get", object{"execution": "e"}, gone...)
	k.sweeps(3)
	k.refused("get", object{"execution": "e"}, gone...)
	k.wait(3 * time.Hour)
	k.sweeps(2)
	equal(t, k.rest().item(k.tenant, "e", "head") == nil, true, "the head is gone in the end")
	for _, status := range []string{"waiting", "parked", "created", "halted"} {
		k.run(status+" never expires", func(k *kit) {
			execution := "n-" + status
			switch status {
			case "created":
				k.create(execution, object{"policy": "p"})
			case "waiting":
				c := k.create(execution, object{"policy": "p", "claim": object{"owner": "w", "lease_seconds": 60}})
				k.do("suspend", object{"execution": execution, "expected_version": c.version(), "fence": c.fence(), "wait": object{}})
			case "parked":
				k.create(execution, object{"policy": "p", "claim": object{"owner": "w", "lease_seconds": 60}})
			case "halted":
				k.create(execution, object{"policy": "p"})
				k.do("halt", object{"execution": execution, "reason": "r"})
			}
			k.wait(400 * day)
			k.sweeps(2)
			equal(k, k.get(execution).str("status"), status, "after 400 days")
		})
	}
}
