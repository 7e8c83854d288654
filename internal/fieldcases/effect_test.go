package fieldcases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// provider is a business system that counts what it did.
type provider map[string]int

func (p provider) pay(t testing.TB, key string) {
	t.Helper()
	p[key]++
	if p[key] > 1 {
		t.Fatalf("the effect happened twice under %s", key)
	}
}

func TestE1CrashBetweenEffectAndRecord(t *testing.T) {
	k := start(t)
	wf := k.workflow("wfe")
	refund := object{"name": "refund", "args": object{"order": 7}, "key": "K", "valid_seconds": 60}
	done := object{"outcome": "succeeded", "provider_ref": "tx", "result": object{"refund": "tx"}}
	var finals []string
	for point := 1; point <= 4; point++ {
		execution, business := fmt.Sprintf("cp%d", point), provider{}
		k.create(execution, wf, object{"state": object{"step": 0}})
		a := k.claim(execution, "A", 30)
		o := k.declare(execution, a.fence(), refund)
		id := o.str("operation")
		equal(t, o.str("disposition"), "go", "first")
		if point >= 2 {
			business.pay(t, o.str("provider_key"))
		}
		if point >= 3 {
			k.do("record_outcome", with(done, object{"execution": execution, "operation": id}))
		}
		if point >= 4 {
			k.apply(execution, k.version(execution), object{"fence": a.fence(), "state": object{"step": 1}, "outcomes": []any{with(done, object{"operation": id})}})
		}
		k.wait(time.Hour)
		b := k.do("resume", object{"execution": execution, "owner": "B", "lease_seconds": 300})
		if b.at("parked") == true {
			if point > 2 || len(b.list("reasons")) == 0 {
				t.Fatalf("point %d: parked: %s", point, b.text)
			}
			equal(t, k.get(execution).str("owner"), "", "nobody owns a parked one")
			b = k.claim(execution, "B", 300)
		} else if point <= 2 {
			t.Fatalf("point %d: handed out though nobody knows", point)
		}
		d := k.declare(execution, b.fence(), refund)
		equal(t, d.str("operation"), id, "identity after the crash")
		if point <= 2 {
			equal(t, []string{d.str("disposition"), d.str("provider_key")}, []string{"uncertain", o.str("provider_key")}, "declared again")
		}
		switch point {
		case 1:
			k.reconcile(execution, b.fence(), object{"operation": id, "finding": "not_found", "asked_at": k.now()})
			equal(t, k.op(execution, id).list("attempts")[0].(object)["outcome"], any("not_executed"), "proved by asking late")
			d = k.declare(execution, b.fence(), refund)
			equal(t, d.str("disposition"), "go", "may go again")
			business.pay(t, d.str("provider_key"))
			k.apply(execution, k.version(execution), object{"fence": b.fence(), "outcomes": []any{with(done, object{"operation": id, "attempt": d.int("attempt")})}})
		case 2:
			k.reconcile(execution, b.fence(), object{"operation": id, "finding": "found", "count": 1, "provider_ref": "tx", "result": object{"refund": "tx"}})
		}
		d = k.declare(execution, b.fence(), refund)
		equal(t, []string{d.str("disposition"), d.str("outcome")}, []string{"settled", "succeeded"}, "at the end")
		k.apply(execution, k.version(execution), object{"fence": b.fence(), "state": object{"step": 1}})
		k.complete(execution, k.version(execution), b.fence())
		equal(t, len(business), 1, "effects")
		g, op := k.get(execution), k.op(execution, id)
		finals = append(finals, fmt.Sprint(g.at("state"), g.str("status"), op.str("outcome"), op.at("result"), op.str("provider_ref")))
	}
	for _, f := range finals {
		equal(t, f, finals[0], "final state")
	}
	k.run("outcome and step in one", func(k *kit) {
		// A crash at any storage call leaves both or neither.
		for n := 1; n <= 6; n++ {
			execution := fmt.Sprintf("at%d", n)
			c := k.create(execution, object{"state": object{"step": 0}, "claim": object{"owner": "A", "lease_seconds": 900}})
			id := k.declare(execution, c.fence(), refund).str("operation")
			v := k.version(execution)
			request := object{"execution": execution, "expected_version": v, "fence": c.fence(), "request_id": "R", "state": object{"step": 1}, "outcomes": []any{with(done, object{"operation": id})}}
			k.faults(object{"on": "*", "effect": []string{"crash_before", "crash_after"}[n%2], "nth": n})
			k.try("apply", request)
			k.faults()
			step, outcome := k.state(execution).(object)["step"], k.op(execution, id).str("outcome")
			if (step == any(number("1"))) != (outcome == "succeeded") {
				k.Fatalf("crash at call %d: step %v, outcome %q", n, step, outcome)
			}
			k.do("apply", request)
			equal(k, k.version(execution), v+1, "version after the repeat")
		}
	})
}

func TestE5InProgressExpiryIsNotPermission(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "A", "lease_seconds": 900}})
	draw := object{"name": "withdraw", "args": object{"n": 5}, "key": "K", "deadline_seconds": 2, "valid_seconds": 60}
	o := k.declare("e", c.fence(), draw)
	equal(t, o.str("disposition"), "go", "first")
	k.wait(3 * time.Second)
	for range 3 {
		d := k.declare("e", c.fence(), draw)
		equal(t, []string{d.str("operation"), d.str("disposition")}, []string{o.str("operation"), "uncertain"}, "after its deadline")
		k.deliver()
	}
	equal(t, k.op("e", o.str("operation")).str("status"), "uncertain", "status after its deadline")
	// Asked too early, an answer proves nothing; the future cannot be asked.
	k.reconcile("e", c.fence(), object{"operation": o.str("operation"), "finding": "not_found", "asked_at": k.now()})
	equal(t, k.declare("e", c.fence(), draw).str("disposition"), "uncertain", "asked while it could still happen")
	asked := k.now()
	k.refused("reconcile", object{"execution": "e", "fence": c.fence(), "evidence": []any{object{"operation": o.str("operation"), "finding": "not_found", "asked_at": "2999-01-01T00:00:00.000Z"}}}, "InvalidRequest")
	long := object{"name": "withdraw", "args": object{"n": 6}, "key": "K2", "deadline_seconds": 7200}
	s := k.declare("e", c.fence(), long)
	equal(t, s.str("disposition"), "go", "a deadline of two hours")
	k.outcome("e", s.str("operation"), "succeeded", object{"result": object{"ok": 1}})
	k.wait(600 * time.Second)
	k.do("renew", object{"execution": "e", "owner": "A", "fence": c.fence(), "lease_seconds": 900})
	k.drain("e", c.fence())
	d := k.declare("e", c.fence(), long)
	equal(t, []any{d.at("disposition"), d.at("result")}, []any{"settled", object{"ok": number("1")}}, "a recorded success")
	k.reconcile("e", c.fence(), object{"operation": o.str("operation"), "finding": "not_found", "asked_at": asked})
	equal(t, k.declare("e", c.fence(), draw).str("disposition"), "uncertain", "an early answer, told late")
	k.reconcile("e", c.fence(), object{"operation": o.str("operation"), "finding": "not_found", "asked_at": k.now()})
	d = k.declare("e", c.fence(), draw)
	equal(t, []string{d.str("disposition"), d.str("provider_key")}, []string{"go", o.str("provider_key")}, "after the proof")
	k.run("without a window nothing is ever proved", func(k *kit) {
		c := k.create("n", object{"claim": object{"owner": "A", "lease_seconds": 86400}})
		o := k.declare("n", c.fence(), object{"key": "K"}).str("operation")
		k.wait(20 * time.Hour)
		k.reconcile("n", c.fence(), object{"operation": o, "finding": "not_found", "asked_at": k.now()})
		equal(k, k.declare("n", c.fence(), object{"key": "K"}).str("disposition"), "uncertain", "not found")
		for _, finding := range []string{"in_progress", "query_failed", "rejected_duplicate"} {
			k.reconcile("n", c.fence(), object{"operation": o, "finding": finding, "asked_at": k.now()})
			equal(k, k.declare("n", c.fence(), object{"key": "K"}).str("disposition"), "uncertain", finding)
		}
		// A system that refuses older fences does not refuse the one the attempt itself
		// went out under; behind the next one it does.
		k.reconcile("n", c.fence(), object{"operation": o, "finding": "not_found", "fenced": true, "asked_at": k.now()})
		equal(k, k.declare("n", c.fence(), object{"key": "K"}).str("disposition"), "uncertain", "not found under its own fence")
		c = k.claim("n", "A", 86400, object{"supersede": true})
		k.reconcile("n", c.fence(), object{"operation": o, "finding": "not_found", "fenced": true, "asked_at": k.now()})
		equal(k, k.declare("n", c.fence(), object{"key": "K"}).str("disposition"), "go", "not found behind a fence")
	})
}

func TestE6SameKeyDifferentPayload(t *testing.T) {
	k := start(t)
	args := object{"refund_id": "R1", "customer_id": "C1", "amount": 100}
	for _, how := range []string{"in_progress", "uncertain", "unknown", "succeeded", "failed", "rejected", "not_executed", "abandoned"} {
		execution := "s-" + how
		k.create(execution)
		c := k.claim(execution, "A", 30)
		good := object{"name": "refund", "args": args, "key": "R1.C1"}
		id := k.declare(execution, c.fence(), good).str("operation")
		switch how {
		case "uncertain":
			k.wait(31 * time.Second)
			c = k.claim(execution, "B", 30)
		case "in_progress":
		case "not_executed", "abandoned":
			k.reconcile(execution, c.fence(), object{"operation": id, "finding": "decided", "attempt": 1, "outcome": how, "reason": "r", "force": true})
		default:
			k.outcome(execution, id, how, object{"result": object{"r": how}})
			k.reconcile(execution, c.fence())
		}
		before, v := string(k.op(execution, id).text), k.version(execution)
		for i, bad := range []object{{"args": with(args, object{"amount": 1000})}, {"args": with(args, object{"amount": number("100.5")})}, {"args": object{}}, {"args": with(args, object{"extra": nil})}, {"name": "refund2"}} {
			k.refused("apply", object{"execution": execution, "expected_version": v, "fence": c.fence(), "operations": []any{with(good, bad)}, "state": object{"x": i}}, "OperationMismatch")
			if bad["args"] != nil {
				k.refused("record_outcome", with(object{"execution": execution, "operation": id, "attempt": 1, "outcome": "succeeded"}, bad), "OperationMismatch")
			}
		}
		equal(t, string(k.op(execution, id).text), before, how+": the operation after mismatches")
		equal(t, k.version(execution), v, how+": version after mismatches")
		// The same arguments, spelled otherwise, are the same.
		d := k.declare(execution, c.fence(), with(good, object{"args": raw(`{ "amount":100.0, "customer_id":"\u00431","refund_id":"R1"}`)}))
		equal(t, d.str("operation"), id, how+": an honest repeat")
		want := map[string]string{"succeeded": "settled", "failed": "settled", "abandoned": "settled", "rejected": "go", "not_executed": "go"}[how]
		if want == "" {
			want = "uncertain"
		}
		equal(t, d.str("disposition"), want, how+": an honest repeat")
	}
	k.run("without a key", func(k *kit) {
		c := k.create("nokey", object{"claim": object{"owner": "A", "lease_seconds": 60}})
		one := k.declare("nokey", c.fence(), object{"args": object{"a": 1, "b": 2}})
		two := k.declare("nokey", c.fence(), object{"args": raw(`{"b":2,"a":1}`)})
		equal(k, two.str("operation"), one.str("operation"), "the same call")
		equal(k, two.str("disposition"), "uncertain", "never twice `go`")
		three := k.declare("nokey", c.fence(), object{"args": object{"a": 1, "b": 3}})
		if three.str("operation") == one.str("operation") {
			k.Fatal("two calls are one operation")
		}
	})
	k.run("on_uncertain is kept", func(k *kit) {
		c := k.create("keep", object{"claim": object{"owner": "A", "lease_seconds": 60}})
		o := k.declare("keep", c.fence(), object{"key": "k"}).str("operation")
		// It cannot be talked into harmlessness afterwards.
		r, f := k.try("apply", object{"execution": "keep", "expected_version": k.version("keep"), "fence": c.fence(), "operations": []any{object{"name": "charge", "args": object{}, "key": "k", "on_uncertain": "always"}}})
		if f == nil {
			equal(k, r.str("operations", 0, "disposition"), "uncertain", "declared again as harmless")
		} else {
			equal(k, f.code, "OperationMismatch", "declared again as harmless")
		}
		equal(k, k.op("keep", o).str("intent", "on_uncertain"), "ask", "as first declared")
	})
}

func TestE7EffectDoneResultCannotBeSaved(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	ids := []string{}
	for n := range 8 {
		ids = append(ids, k.declare("e", c.fence(), object{"key": fmt.Sprint("k", n)}).str("operation"))
	}
	result := func(id string) any {
		t.Helper()
		r := k.op("e", id)
		if ref := r.str("result_ref", "url"); ref != "" {
			got := k.fetch(ref)
			equal(t, r.str("result_ref", "digest"), digest(got), "digest of the result")
			return exactly(t, got)
		}
		return r.at("result")
	}
	big := sized(1_000_000)
	k.outcome("e", ids[0], "succeeded", object{"result": big})
	equal(t, k.op("e", ids[0]).str("status"), "succeeded", "status of the big one")
	equal(t, result(ids[0]), exactly(t, []byte(big)), "1 MB by record_outcome")
	k.apply("e", k.version("e"), object{"fence": c.fence(), "outcomes": []any{object{"operation": ids[1], "outcome": "succeeded", "result": big}}})
	equal(t, result(ids[1]), exactly(t, []byte(big)), "1 MB by apply")
	const odd = `{"n":12345678901234567890123,"f":1.10,"nul":"\u0000","s":"\ud83d","e":1e9999}`
	k.outcome("e", ids[2], "succeeded", object{"result": raw(odd)})
	equal(t, result(ids[2]), exactly(t, []byte(odd)), "odd result")
	for _, bad := range []raw{"\"\xed\xa0\x80\"", "\"\xff\"", "NaN", `{"a":1,"a":2}`, raw(nested(501))} {
		k.refused("record_outcome", object{"execution": "e", "operation": ids[3], "outcome": "succeeded", "result": bad}, "InvalidRequest")
		oneOf(t, k.op("e", ids[3]).str("status"), uncertain, "status after a refused result")
	}
	k.outcome("e", ids[3], "succeeded")
	for i, effect := range []string{"throttle", "unavailable", "lost", "landed"} {
		id := ids[4+i]
		request := object{"execution": "e", "operation": id, "outcome": "succeeded", "result": object{"x": 1}}
		k.faults(object{"on": "put", "effect": effect, "count": 1000}, object{"on": "update", "effect": effect, "count": 1000}, object{"on": "transact", "effect": effect, "count": 1000})
		_, f := k.try("record_outcome", request)
		k.faults()
		if f != nil {
			oneOf(t, f.code, retryable, effect)
			equal(t, f.facts.at("retryable"), any(true), "retryable")
			oneOf(t, k.op("e", id).str("status"), append(uncertain, "succeeded"), "status after "+effect)
		} else if effect != "landed" {
			t.Fatalf("succeeded under a store that is always %s", effect)
		}
		k.do("record_outcome", request)
		k.do("record_outcome", request)
		equal(t, result(id), any(object{"x": number("1")}), "result after "+effect)
		equal(t, len(k.op("e", id).list("contradictions")), 0, "no contradiction")
	}
	k.drain("e", c.fence())
	d := k.declare("e", c.fence(), object{"key": "k0"})
	equal(t, []string{d.str("disposition"), d.str("outcome")}, []string{"settled", "succeeded"}, "the big one, declared again")
	k.complete("e", k.version("e"), c.fence())
}

func TestE8TerminalStateContradictsLedger(t *testing.T) {
	k := start(t)
	k.create("e")
	a := k.claim("e", "A", 10)
	o1 := k.declare("e", a.fence(), object{"key": "k1"}).str("operation")
	o2 := k.declare("e", a.fence(), object{"key": "k2"}).str("operation")
	k.outcome("e", o1, "succeeded", object{"result": object{"r": 1}})
	k.wait(11 * time.Second)
	b := k.claim("e", "B", 900)
	for _, outcome := range []string{"completed", "failed", "cancelled"} {
		k.refused("complete", object{"execution": "e", "expected_version": k.version("e"), "fence": a.fence(), "outcome": outcome}, "LeaseLost")
		f := k.refused("complete", object{"execution": "e", "expected_version": k.version("e"), "fence": b.fence(), "outcome": outcome}, "OperationsOpen")
		k.names(f, o2)
	}
	k.outcome("e", o2, "succeeded", object{"result": object{"r": 2}})
	k.outcome("e", o1, "succeeded", object{"result": object{"r": 1}}) // the duplicate, late
	k.drain("e", b.fence())
	k.complete("e", k.version("e"), b.fence())
	for _, outcome := range []string{"failed", "completed", "cancelled"} {
		k.refused("complete", object{"execution": "e", "expected_version": k.version("e"), "fence": b.fence(), "outcome": outcome}, "ExecutionClosed", "LeaseLost")
	}
	k.refused("apply", object{"execution": "e", "expected_version": k.version("e"), "fence": b.fence(), "state": object{}}, "ExecutionClosed", "LeaseLost")
	k.refused("claim", object{"execution": "e", "owner": "C", "lease_seconds": 60}, "ExecutionClosed")
	equal(t, k.get("e").str("status"), "completed", "status")
	for i, o := range []string{o1, o2} {
		equal(t, k.op("e", o).str("outcome"), "succeeded", "outcome")
		equal(t, k.op("e", o).at("result"), any(object{"r": number(fmt.Sprint(i + 1))}), "its own result")
	}
	k.run("any order of arrival", func(k *kit) {
		finals := []string{}
		random := rand.New(rand.NewPCG(7, 7))
		for n := range 20 {
			execution := fmt.Sprintf("o%d", n)
			c := k.create(execution, object{"claim": object{"owner": "w", "lease_seconds": 900}})
			ops := []any{}
			for i := range 10 {
				ops = append(ops, object{"name": "n", "args": object{"i": i}, "key": fmt.Sprint("k", i)})
			}
			r := k.apply(execution, c.version(), object{"fence": c.fence(), "operations": ops})
			for _, i := range random.Perm(10) {
				k.outcome(execution, r.str("operations", i, "operation"), []string{"rejected", "succeeded", "failed"}[i%3], object{"result": object{"i": i}})
				if n%4 == 0 && i%2 == 0 {
					k.reconcile(execution, c.fence())
				}
			}
			k.drain(execution, c.fence())
			k.complete(execution, k.version(execution), c.fence())
			final := ""
			for i := range 10 {
				o := k.op(execution, r.str("operations", i, "operation"))
				final += fmt.Sprint(o.str("outcome"), o.at("result"), ";")
			}
			finals = append(finals, final)
		}
		equal(k, len(slices.Compact(finals)), 1, "final states")
	})
	k.run("a contradiction is seen", func(k *kit) {
		c := k.create("con", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		o := k.declare("con", c.fence(), object{"key": "k"}).str("operation")
		k.outcome("con", o, "succeeded")
		k.outcome("con", o, "failed")
		k.outcome("con", o, "failed")
		r := k.op("con", o)
		equal(k, r.str("status"), "needs_review", "status")
		if len(r.list("contradictions")) == 0 {
			k.Fatal("no contradiction is shown")
		}
		k.reconcile("con", c.fence())
		k.refused("complete", object{"execution": "con", "expected_version": k.version("con"), "fence": c.fence(), "outcome": "completed"}, "OperationsOpen")
		k.reconcile("con", c.fence(), object{"operation": o, "finding": "decided", "attempt": 1, "outcome": "succeeded", "reason": "looked it up"})
		k.complete("con", k.version("con"), c.fence())
		// After it is settled a late other outcome changes nothing.
		k.outcome("con", o, "failed")
		equal(k, k.op("con", o).str("outcome"), "succeeded", "settled stays settled")
	})
}
