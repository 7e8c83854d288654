package fieldcases

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whoever can write to the table changes, swaps or cuts what lies there: it is
// noticed, and never other data.
func TestTamperedItems(t *testing.T) {
	k := start(t)
	make := func(k *kit, execution string) reply {
		t.Helper()
		c := k.create(execution, object{"state": object{"who": execution + k.tenant}, "input": object{"i": execution}, "claim": object{"owner": "w", "lease_seconds": 86400}})
		o := k.declare(execution, c.fence(), object{"key": "k"})
		k.outcome(execution, o.str("operation"), "succeeded", object{"result": object{"of": execution + k.tenant}})
		k.do("signal", object{"execution": execution, "name": "n", "key": "k", "body": object{"of": execution + k.tenant}})
		k.apply(execution, 2, object{"fence": c.fence(), "state": object{"who": execution + k.tenant, "n": 2}})
		k.apply(execution, 3, object{"fence": c.fence(), "merge": object{"n": 3}})
		return o
	}
	o := make(k, "e")
	make(k, "x")
	other := k.as("other")
	make(other, "e")
	whole := k.rest().all
	item := func(tenant, execution, sk string) object {
		t.Helper()
		for _, i := range k.rest().items(tenant, execution) {
			if strings.HasPrefix(attr(i, "sk"), sk) {
				return with(i.(object))
			}
		}
		t.Fatalf("no item %s of %s", sk, execution)
		return nil
	}
	entry := func(n int) string { return fmt.Sprintf("j#%020d", n) }
	// from puts what lies at one place to another.
	from := func(source object, to object) object {
		return with(source, object{"pk": to["pk"], "sk": to["sk"]})
	}
	// bytesOf lists the attributes with bytes.
	bytesOf := func(i object) (names []string) {
		for name, v := range i {
			if o, ok := v.(object); ok && o["B"] != nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	history := k.do("history", object{"execution": "e"}).at("entries")
	operation := k.op("e", o.str("operation"))
	inbox := k.get("e").at("inbox")
	check := func(k *kit, what string, items ...any) {
		k.Helper()
		k.tool("reset", object{})
		k.load(whole)
		k.load(object{"items": items})
		for action, f := range map[string]object{"get": {}, "history": {}, "get_operation": {"operation": o.str("operation")}} {
			r, e := k.try(action, with(f, object{"execution": "e"}))
			if e != nil {
				oneOf(k, e.code, []string{"Integrity", "NotFound"}, what+": "+action)
				if e.code == "NotFound" && action != "get_operation" {
					k.Fatalf("%s: %s answers NotFound", what, action)
				}
				continue
			}
			if strings.Contains(string(r.text), "xt") || strings.Contains(string(r.text), "other") {
				k.Fatalf("%s: %s shows another's data: %s", what, action, r.text)
			}
			switch action {
			case "get":
				equal(k, r.at("state", "who"), any("e"+k.tenant), what+": state")
				equal(k, r.at("inbox"), inbox, what+": inbox")
			case "history":
				equal(k, r.at("entries"), history, what+": history")
			case "get_operation":
				for _, f := range []string{"intent", "outcome", "result", "evidence"} {
					equal(k, r.at(f), operation.at(f), what+": "+f+" of the operation")
				}
			}
		}
	}
	k.run("a bit of every byte attribute", func(k *kit) {
		for _, sk := range []string{entry(1), entry(2), entry(3), entry(4), "op#", "sig#"} {
			for _, name := range bytesOf(item(k.tenant, "e", sk)) {
				i := item(k.tenant, "e", sk)
				b, _ := base64.StdEncoding.DecodeString(i[name].(object)["B"].(string))
				if len(b) == 0 {
					continue
				}
				for _, at := range []int{0, len(b) / 2, len(b) - 1} {
					c := slices.Clone(b)
					c[at] ^= 0x40
					i[name] = object{"B": base64.StdEncoding.EncodeToString(c)}
					check(k, fmt.Sprintf("%s %s byte %d", sk, name, at), i)
				}
				i[name] = object{"B": base64.StdEncoding.EncodeToString(b[:len(b)-1])}
				check(k, sk+" "+name+" cut", i)
			}
		}
	})
	k.run("swapped", func(k *kit) {
		for _, sk := range []string{entry(1), entry(2), entry(3), entry(4)} {
			to := item(k.tenant, "e", sk)
			check(k, sk+" of another execution", from(item(k.tenant, "x", sk), to))
			check(k, sk+" of another tenant", from(item("other", "e", sk), to))
		}
		check(k, "an older entry again", from(item(k.tenant, "e", entry(3)), item(k.tenant, "e", entry(4))))
		check(k, "two entries swapped", from(item(k.tenant, "e", entry(3)), item(k.tenant, "e", entry(2))), from(item(k.tenant, "e", entry(2)), item(k.tenant, "e", entry(3))))
		for _, sk := range []string{"op#", "sig#"} {
			check(k, sk+" of another execution", from(item(k.tenant, "x", sk), item(k.tenant, "e", sk)))
			check(k, sk+" of another tenant", from(item("other", "e", sk), item(k.tenant, "e", sk)))
		}
	})
	k.run("plain attributes of an entry", func(k *kit) {
		i := item(k.tenant, "e", entry(4))
		for _, name := range slices.Sorted(maps.Keys(i)) {
			v, _ := i[name].(object)
			if name == "pk" || name == "sk" || name == "ttl" || v == nil {
				continue
			}
			for kind, old := range v {
				var bad any
				switch kind {
				case "N":
					bad = object{"N": old.(string) + "1"}
				case "S":
					bad = object{"S": old.(string) + "x"}
				default:
					continue
				}
				check(k, "entry's "+name, with(i, object{name: bad}))
			}
			gone := with(i)
			delete(gone, name)
			check(k, "entry without "+name, gone)
		}
	})
	k.run("a gap", func(k *kit) {
		for _, lost := range []int{1, 2, 3} {
			kept := []any{}
			for _, i := range whole["items"].([]any) {
				if attr(i, "pk") != k.tenant+"#e" || attr(i, "sk") != entry(lost) {
					kept = append(kept, i)
				}
			}
			k.tool("reset", object{})
			k.load(with(whole, object{"items": kept}))
			k.refused("get", object{"execution": "e"}, "Integrity")
			k.refused("claim", object{"execution": "e", "owner": "z", "lease_seconds": 60}, "Integrity", "LeaseHeld")
			k.refused("create", object{"execution": "e", "workflow": "wf"}, "AlreadyExists")
		}
	})
	k.run("a sound one still opens", func(k *kit) {
		k.tool("reset", object{})
		k.load(whole)
		equal(k, k.get("e").at("state"), any(object{"who": "e" + k.tenant, "n": number("3")}), "state")
		equal(k, k.op("e", o.str("operation")).at("result"), any(object{"of": "e" + k.tenant}), "result")
	})
}

// Stream records repeated, out of order, of things that are gone: every path
// leads to the same end.
func TestStreamRepeatsAndDisorder(t *testing.T) {
	k := start(t)
	wf := k.workflow("ws", object{"resume_target": object{"kind": "sandbox", "arn": "target"}})
	k.policy("p", 1)
	for n := range 6 {
		k.create(fmt.Sprint("d", n), wf, object{"policy": "p", "claim": object{"owner": "w", "lease_seconds": 60}})
	}
	k.wait(2 * time.Minute)
	batch := []any{}
	for n := range 30 {
		batch = append(batch, byTTL(record(fmt.Sprint(100+n), "REMOVE", k.tenant+fmt.Sprint("#d", n%6), []string{"timer#lease", "timer#wake", "timer#reconcile"}[n%3])))
	}
	for range 3 {
		equal(t, k.stream("recover", batch...), []string{}, "a batch")
		slices.Reverse(batch)
		k.stream("retention", batch...)
	}
	answers := k.together(6, func(i int) (reply, *failure) {
		if i%2 == 0 {
			return k.try("recover.sweep", object{})
		}
		r := k.tool("stream", object{"function": "recover", "event": object{"Records": batch}}).(object)
		return reply{object: r}, nil
	})
	for _, a := range answers {
		if a.failure != nil {
			t.Fatalf("at once: %s", a.failure)
		}
	}
	seen := map[string]int{}
	for _, h := range k.rest().all["handovers"].([]any) {
		r := reply{object: h.(object)}
		seen[fmt.Sprintf("%s %d %d", r.str("input", "execution"), r.int("input", "version"), r.int("input", "handover"))]++
	}
	for n := range 6 {
		equal(t, seen[fmt.Sprintf("d%d 1 1", n)], 1, fmt.Sprint("first hand-over of d", n))
	}
	for id, times := range seen {
		if times > 1 {
			t.Fatalf("%s was started %d times", id, times)
		}
	}
	k.run("a crash loop parks", func(k *kit) {
		k.create("loop", k.workflow("wl", object{"resume_target": object{"kind": "sandbox", "arn": "target"}, "max_recoveries": 3}), object{"claim": object{"owner": "w", "lease_seconds": 60}})
		for range 12 {
			k.wait(2 * time.Hour)
			k.sweeps(1)
			if k.get("loop").str("status") == "parked" {
				break
			}
			k.try("claim", object{"execution": "loop", "owner": "w", "lease_seconds": 60}) // and dies
		}
		g := k.get("loop")
		equal(k, g.str("status"), "parked", "status")
		equal(k, g.str("parked_reasons", 0, "code") != "", true, "with its reason")
		c := k.claim("loop", "human", 60)
		k.complete("loop", c.version(), c.fence())
	})
}

// The right to act moves once, and one child is made for one operation.
func TestForksAndChildren(t *testing.T) {
	k := start(t)
	c := k.create("p", object{"state": object{"n": 1}, "claim": object{"owner": "w", "lease_seconds": 900}})
	op := object{"name": "pay", "args": object{}, "key": "k"}
	o := k.declare("p", c.fence(), op)
	k.refused("fork", object{"execution": "p", "at_version": 2, "new_execution": "f"}, "OperationsOpen")
	k.refused("get", object{"execution": "f"}, "NotFound")
	r := k.do("fork", object{"execution": "p", "at_version": 1, "new_execution": "f0"})
	equal(t, r.str("parent", "execution"), "p", "a fork before it")
	equal(t, len(k.get("f0").list("operations")), 0, "starts without operations")
	k.run("carry", func(k *kit) {
		moved := k.do("fork", object{"execution": "p", "at_version": 2, "new_execution": "f", "operations": "carry", "request_id": "F"})
		equal(k, k.do("fork", object{"execution": "p", "at_version": 2, "new_execution": "f", "operations": "carry", "request_id": "F"}).str("execution"), moved.str("execution"), "repeated")
		g := k.get("p")
		equal(k, []string{g.str("status"), g.str("moved_to")}, []string{"moved", "f"}, "the parent")
		for action, f := range map[string]object{"apply": {"expected_version": g.version(), "fence": c.fence(), "state": object{}}, "claim": {"owner": "w", "lease_seconds": 60}, "complete": {"expected_version": g.version(), "fence": c.fence(), "outcome": "failed"},
			"start_operation": {"operation": o.str("operation"), "attempt": 1, "fence": c.fence(), "nonce": "n"}} {
			k.refused(action, with(f, object{"execution": "p"}), "ExecutionClosed", "LeaseLost")
		}
		d := k.claim("f", "w2", 900)
		again := k.declare("f", d.fence(), op)
		equal(k, []string{again.str("operation"), again.str("provider_key"), again.str("disposition")}, []string{o.str("operation"), o.str("provider_key"), "uncertain"}, "the operation moved")
		// Evidence that reaches the parent is passed on.
		k.outcome("p", o.str("operation"), "succeeded", object{"result": object{"tx": 1}})
		k.drain("f", d.fence())
		equal(k, k.declare("f", d.fence(), op).str("disposition"), "settled", "by the parent's evidence")
		k.complete("f", k.version("f"), d.fence())
	})
	k.run("one fork of many", func(k *kit) {
		c := k.create("many", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		k.declare("many", c.fence(), op)
		won, codes := winners(k.together(8, func(i int) (reply, *failure) {
			return k.try("fork", object{"execution": "many", "at_version": 2, "new_execution": fmt.Sprint("m", i), "operations": "carry"})
		}))
		equal(k, len(won), 1, fmt.Sprint("forks that carry, others ", codes))
		for i := range 8 {
			if i != won[0] {
				k.refused("get", object{"execution": fmt.Sprint("m", i)}, "NotFound")
			}
		}
	})
	k.run("children", func(k *kit) {
		c := k.create("par", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		o := k.declare("par", c.fence(), object{"name": "child", "key": "c"}).str("operation")
		parent := object{"parent": object{"execution": "par", "operation": o}, "workflow": "wf"}
		won, codes := winners(k.together(6, func(i int) (reply, *failure) { return k.try("create", parent) }))
		equal(k, len(won), 1, fmt.Sprint("children of one operation, others ", codes))
		equal(k, codes, []string{"AlreadyExists"}, "the others")
		f := k.refused("create", parent, "AlreadyExists")
		child := f.facts.str("execution")
		equal(k, k.get(child).str("parent", "execution"), "par", "the child")
		k.refused("create", with(parent, object{"execution": "mine"}), "InvalidRequest")
		k.finish(child)
		k.drain("par", c.fence())
		equal(k, k.op("par", o).str("outcome"), "succeeded", "its end is the operation's")
		k.complete("par", k.version("par"), c.fence())
		k.refused("create", object{"parent": object{"execution": "par", "operation": o}, "workflow": "wf", "request_id": "late"}, "AlreadyExists", "ExecutionClosed", "OperationMismatch", "InvalidRequest")
		k.refused("create", object{"parent": object{"execution": "none", "operation": o}, "workflow": "wf"}, "NotFound")
		k.as("other").refused("create", object{"parent": object{"execution": "par", "operation": o}, "workflow": "wf"}, "NotFound")
	})
}
