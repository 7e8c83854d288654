package fieldcases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Text that is no plain ASCII, and the order of keys.
func TestTextAndOrder(t *testing.T) {
	k := start(t)
	const text = `{"z":1,"a":2,"m":{"9":1,"10":2,"b":3,"a":4},"ls":"\u2028\u2029","bom":"\ufeffx","lone":["\ud83d","\ude00","\ude00\ud83d"],"pair":"\ud83d\ude00","raw":"😀é","nfd":"e\u0301","rtl":"\u202eabc","tag":"</script>&<>","del":"\u007f","esc":"\b\f\n\r\t\"\\\/","num":"1e5","date":"2026-01-01T00:00:00+02:00","b64":"AAE","t":true,"\ud83d":"key"}`
	v := k.create("e", object{"state": raw(text)}).version()
	equal(t, k.state("e"), exactly(t, []byte(text)), "values")
	var order []string
	for _, part := range strings.Split(k.stateText("e"), `"`) {
		if len(part) <= 4 && strings.Trim(part, "zamlsboneprwfdtgcu") == "" && part != "" {
			order = append(order, part)
		}
	}
	if !slices.IsSortedFunc([]string{"z", "a", "m", "ls"}, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) }) {
		t.Fatalf("the order of keys changed: %s", k.stateText("e"))
	}
	v = k.apply("e", v, object{"merge": object{"new": 1}}).version()
	k.apply("e", v, object{"patch": []any{object{"op": "remove", "path": "/new"}}})
	equal(t, k.state("e"), exactly(t, []byte(text)), "values after two steps")
	for _, bad := range []string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\x80b"} {
		for _, f := range []object{{"state": raw(`{"a":"` + bad + `"}`)}, {"state": raw(`{"` + bad + `":1}`)}, {"merge": raw(`{"a":["` + bad + `"]}`)}, {"note": raw(`"` + bad + `"`)}} {
			k.refused("apply", with(f, object{"execution": "e", "expected_version": v + 1}), "InvalidRequest")
		}
	}
}

// No reply is larger than Lambda takes, whatever is asked for.
func TestRepliesFit(t *testing.T) {
	k := start(t)
	const most = 6 << 20
	c := k.create("e", object{"state": sized(5 << 20), "input": object{"i": noise(400_000)}, "claim": object{"owner": "w", "lease_seconds": 86400}})
	body := []byte(noise(4 << 20))
	art := k.put("e", "big", body, object{"fence": c.fence()})
	k.apply("e", 1, object{"fence": c.fence(), "artifacts": []any{art}})
	k.refused("get", object{"execution": "e", "max_inline_bytes": 1}, "TooLarge")
	for _, limit := range []any{2000, number("9223372036854775807")} {
		for action, f := range map[string]object{"get": {}, "get_artifact": {"digest": art}} {
			r := k.do(action, with(f, object{"execution": "e", "max_inline_bytes": limit}))
			if len(r.text) > most {
				t.Fatalf("%s with %v: %d bytes", action, limit, len(r.text))
			}
		}
	}
	equal(t, digest(k.artifact("e", object{"digest": art})), digest(body), "the artifact")
	// A history of large payloads comes in pages.
	k.tool("reset", object{})
	k.create("e")
	for n := range 5 {
		c = k.claim("e", "w", 5, object{"supersede": true, "resume": object{"n": n, "pad": noise(1_500_000)}})
	}
	entries, pages := k.pages("history", "entries", object{"execution": "e", "limit": 1000})
	equal(t, int64(len(entries)), c.version(), "entries over pages")
	_ = pages
	for _, newest := range []bool{false, true} {
		r := k.do("history", object{"execution": "e", "limit": 1000, "newest_first": newest})
		if len(r.text) > most {
			t.Fatalf("history: %d bytes", len(r.text))
		}
	}
	// Large operations' results.
	var ids []string
	for n := range 4 {
		id := k.declare("e", c.fence(), object{"key": fmt.Sprint(n)}).str("operation")
		k.outcome("e", id, "succeeded", object{"result": noise(2_000_000)})
		ids = append(ids, id)
	}
	k.drain("e", c.fence())
	ops := []any{}
	for n := range ids {
		ops = append(ops, object{"name": "charge", "args": object{}, "key": fmt.Sprint(n)})
	}
	v := k.version("e")
	for _, limit := range []any{omit{}, 1 << 30} {
		r := k.apply("e", v, object{"fence": c.fence(), "operations": ops, "max_inline_bytes": limit, "request_id": "ops"})
		if len(r.text) > most || len(r.list("operations")) != len(ids) {
			t.Fatalf("apply: %d operations in %d bytes", len(r.list("operations")), len(r.text))
		}
	}
	for _, id := range ids {
		if r := k.op("e", id); len(r.text) > most {
			t.Fatalf("get_operation: %d bytes", len(r.text))
		}
	}
}

// The memory of requests has an end, and says so.
func TestRequestMemory(t *testing.T) {
	k := start(t)
	v := k.create("e", object{"state": object{"n": 0}}).version()
	first := object{"execution": "e", "expected_version": v, "request_id": "first", "state": object{"n": -1}}
	k.do("apply", first)
	for n := 2; n <= 200; n++ {
		r := k.do("apply", object{"execution": "e", "expected_version": n, "request_id": fmt.Sprint("r", n), "state": object{"n": n}})
		equal(t, r.version(), int64(n+1), "version")
		if n == 100 {
			equal(t, k.do("apply", first).at("replayed"), any(true), "a hundred requests later")
		}
	}
	for n := 80; n <= 200; n += 20 {
		r := k.do("apply", object{"execution": "e", "expected_version": n, "request_id": fmt.Sprint("r", n), "state": object{"n": n}})
		equal(t, []any{r.version(), r.at("replayed"), r.int("tip", "version")}, []any{int64(n + 1), true, int64(201)}, "a replay")
		k.refused("apply", object{"execution": "e", "expected_version": n, "request_id": fmt.Sprint("r", n), "state": object{"n": "other"}}, "RequestMismatch")
	}
	k.refused("apply", first, "VersionConflict", "RequestForgotten")
	k.refused("apply", with(first, object{"expected_version": 201, "first_version": 1}), "RequestForgotten")
	equal(t, k.version("e"), int64(201), "applied once each")
	equal(t, k.state("e"), any(object{"n": number("200")}), "state")
}

// What on_uncertain promises is what recovery does.
func TestOnUncertain(t *testing.T) {
	k := start(t)
	wf := k.workflow("wu")
	take := func(execution string, operation object) (o reply, b reply, d reply) {
		t.Helper()
		k.create(execution, wf)
		a := k.claim(execution, "A", 30)
		o = k.declare(execution, a.fence(), operation)
		k.wait(31 * time.Second)
		b = k.claim(execution, "B", 900)
		return o, b, k.declare(execution, b.fence(), operation)
	}
	k.run("ask", func(k *kit) {
		o, _, d := take("ask", object{"key": "k"})
		equal(k, []string{o.str("disposition"), d.str("disposition")}, []string{"go", "uncertain"}, "dispositions")
	})
	k.run("always", func(k *kit) {
		o, _, d := take("always", object{"key": "k", "on_uncertain": "always"})
		equal(k, []string{o.str("disposition"), d.str("disposition"), d.str("provider_key")}, []string{"go", "go", o.str("provider_key")}, "dispositions")
	})
	k.run("same_key", func(k *kit) {
		op := object{"key": "k", "on_uncertain": "same_key", "dedup_seconds": 3600}
		o, _, d := take("same", op)
		equal(k, []string{o.str("disposition"), d.str("disposition"), d.str("provider_key")}, []string{"go", "go", o.str("provider_key")}, "within the window")
		if d.str("send_by") == "" {
			k.Fatal("no send_by")
		}
		k.wait(time.Hour)
		c := k.claim("same", "C", 900)
		d = k.declare("same", c.fence(), op)
		equal(k, d.str("disposition"), "uncertain", "after the window")
		k.refused("apply", object{"execution": "same", "expected_version": k.version("same"), "fence": c.fence(), "operations": []any{object{"name": "n", "args": object{}, "on_uncertain": "same_key"}}}, "InvalidRequest")
	})
	k.run("close", func(k *kit) {
		op := object{"key": "k", "on_uncertain": "close"}
		o, b, _ := take("close", op)
		equal(k, o.str("disposition"), "start", "first")
		// Nobody started it: it is closed, and goes as the next attempt.
		k.do("reconcile", object{"execution": "close", "fence": b.fence()})
		d := k.declare("close", b.fence(), op)
		equal(k, d.str("disposition"), "start", "after it was closed")
		attempt := d.int("attempt")
		k.refused("start_operation", object{"execution": "close", "operation": d.str("operation"), "attempt": 1, "fence": b.fence(), "nonce": "z"}, "LeaseLost")
		start := object{"execution": "close", "operation": d.str("operation"), "attempt": attempt, "fence": b.fence(), "nonce": "n1"}
		s := k.do("start_operation", start)
		equal(k, s.str("disposition"), "go", "started")
		equal(k, k.do("start_operation", start).str("disposition"), "go", "the same process again")
		k.refused("start_operation", with(start, object{"nonce": "n2"}), "OperationMismatch")
		k.wait(901 * time.Second)
		c := k.claim("close", "C", 900)
		k.reconcile("close", c.fence())
		equal(k, k.declare("close", c.fence(), op).str("disposition"), "uncertain", "started without an outcome")
		k.outcome("close", d.str("operation"), "succeeded", object{"attempt": attempt})
		k.drain("close", c.fence())
		equal(k, k.declare("close", c.fence(), op).str("disposition"), "settled", "with its outcome")
	})
	k.run("start against close", func(k *kit) {
		for n := range 40 {
			execution := fmt.Sprintf("sc%d", n)
			c := k.create(execution, object{"claim": object{"owner": "A", "lease_seconds": 60}})
			o := k.declare(execution, c.fence(), object{"key": "k", "on_uncertain": "close"})
			k.wait(61 * time.Second)
			answers := k.together(2, func(i int) (reply, *failure) {
				if i == 0 {
					return k.try("start_operation", object{"execution": execution, "operation": o.str("operation"), "attempt": 1, "fence": c.fence(), "nonce": "n"})
				}
				return k.try("resume", object{"execution": execution, "owner": "B", "lease_seconds": 60})
			})
			if answers[1].failure != nil {
				oneOf(k, answers[1].failure.code, []string{"VersionConflict", "LeaseHeld"}, "resume")
				continue
			}
			started := answers[0].failure == nil
			again := answers[1].reply.str("operations", 0, "disposition")
			if started && (again == "go" || again == "start") {
				k.Fatalf("round %d: started, and closed as never started: %s", n, answers[1].reply.text)
			}
		}
	})
	k.run("several", func(k *kit) {
		c := k.create("sev", object{"claim": object{"owner": "A", "lease_seconds": 900}})
		o := k.declare("sev", c.fence(), object{"key": "k"}).str("operation")
		k.reconcile("sev", c.fence(), object{"operation": o, "finding": "several", "count": 2})
		equal(k, k.op("sev", o).str("status"), "needs_review", "found twice")
		k.refused("complete", object{"execution": "sev", "expected_version": k.version("sev"), "fence": c.fence(), "outcome": "completed"}, "OperationsOpen")
		equal(k, k.declare("sev", c.fence(), object{"key": "k"}).str("disposition"), "uncertain", "declared again")
	})
}

// A model's call ids repeat, a worker's process does not.
func TestOperationIdentity(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "A", "lease_seconds": 900}})
	one := k.declare("e", c.fence(), object{"name": "send", "args": object{"to": "a"}, "key": "call_1"})
	k.refused("apply", object{"execution": "e", "expected_version": k.version("e"), "fence": c.fence(), "operations": []any{object{"name": "send", "args": object{"to": "b"}, "key": "call_1"}}}, "OperationMismatch")
	k.refused("apply", object{"execution": "e", "expected_version": k.version("e"), "fence": c.fence(), "operations": []any{object{"name": "x", "args": object{}, "key": "same"}, object{"name": "x", "args": object{"n": 1}, "key": "same"}}}, "OperationMismatch", "InvalidRequest")
	seen := map[string]bool{one.str("operation"): true}
	for _, args := range []string{`{"to":"a"}`, `{"to":"b"}`, `{"to":["a","b"]}`, `{"to":["b","a"]}`, `{"n":1}`, `{"n":10}`, `{"n":"1"}`, `{"n":null}`, `{}`, `{"to":"\u00e9"}`, `{"to":"e\u0301"}`, `{"n":9007199254740993}`, `{"n":9007199254740992}`, `[]`, `null`, `""`, `0`} {
		id := k.declare("e", c.fence(), object{"name": "send", "args": raw(args)}).str("operation")
		if seen[id] {
			t.Fatalf("%s is the operation of other arguments", args)
		}
		seen[id] = true
	}
	for _, pair := range [][2]string{{`{"n":1}`, `{"n":1.0}`}, {`{"n":10}`, `{"n":1e1}`}, {`{"to":"\u00e9"}`, `{"to":"é"}`}, {`{"to":"a"}`, `{ "to" : "\u0061" }`}, {`0`, `-0`}} {
		a := k.declare("e", c.fence(), object{"name": "send", "args": raw(pair[0])})
		b := k.declare("e", c.fence(), object{"name": "send", "args": raw(pair[1])})
		equal(t, b.str("operation"), a.str("operation"), fmt.Sprint(pair))
		if b.str("disposition") == "go" {
			t.Fatalf("%v: twice go", pair)
		}
	}
}

// Holds against everything that would erase or overwrite them.
func TestHoldsStay(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	k.create("e", object{"policy": "p"})
	k.do("hold", object{"execution": "e", "hold": "h", "reason": "r"})
	for n := range 3 { // claims, renewals, endings change the head
		c := k.claim("e", "w", 30)
		k.do("renew", object{"execution": "e", "owner": "w", "fence": c.fence(), "lease_seconds": 60})
		k.do("suspend", object{"execution": "e", "expected_version": c.version(), "fence": c.fence(), "wait": object{}})
		equal(t, k.get("e").at("holds"), any([]any{"h"}), fmt.Sprint("holds after round ", n))
	}
	k.finish("e")
	k.wait(400 * day)
	k.sweeps(3)
	equal(t, k.get("e").str("status"), "completed", "held")
	k.do("release_hold", object{"execution": "e", "hold": "h", "reason": "r"})
	k.sweeps(3)
	k.refused("get", object{"execution": "e"}, gone...)
	k.run("hold against delete", func(k *kit) {
		for n := range 40 {
			execution := fmt.Sprintf("r%d", n)
			k.create(execution)
			answers := k.together(2, func(i int) (reply, *failure) {
				if i == 0 {
					return k.try("hold", object{"execution": execution, "hold": "h", "reason": "r"})
				}
				return k.try("delete", object{"execution": execution, "reason": "r"})
			})
			switch held, deleted := answers[0].failure == nil, answers[1].failure == nil; {
			case held && deleted:
				k.Fatalf("round %d: held and deleted", n)
			case held:
				equal(k, k.get(execution).at("holds"), any([]any{"h"}), "held")
			case deleted:
				k.refused("get", object{"execution": execution}, "Deleted")
			default:
				k.Fatalf("round %d: %s, %s", n, answers[0].failure, answers[1].failure)
			}
		}
	})
	k.run("a lone artifact that is under way", func(k *kit) {
		c := k.create("up", object{"claim": object{"owner": "w", "lease_seconds": 86400}})
		staged := k.put("up", "a", []byte("staged"), object{"fence": c.fence()})
		k.wait(22 * time.Hour)
		k.sweeps(2)
		k.apply("up", 1, object{"fence": c.fence(), "artifacts": []any{staged}})
		k.wait(10 * day)
		k.sweeps(3)
		equal(k, string(k.artifact("up", object{"digest": staged})), "staged", "accepted in time")
		c = k.claim("up", "w2", 86400)
		late := k.put("up", "b", []byte("late"), object{"fence": c.fence()})
		k.wait(24*time.Hour - time.Minute)
		_, f := k.try("apply", object{"execution": "up", "expected_version": c.version(), "fence": c.fence(), "artifacts": []any{late}})
		if f == nil {
			k.wait(10 * day)
			k.sweeps(3)
			equal(k, string(k.artifact("up", object{"digest": late})), "late", "accepted late, kept")
		} else {
			oneOf(k, f.code, []string{"InvalidRequest", "NotFound"}, "too late to accept")
		}
	})
}

// Artifacts belong to one execution, callbacks to one operation.
func TestForeignHandles(t *testing.T) {
	k := start(t)
	c := k.create("a", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	k.create("b")
	art := k.put("a", "doc", []byte("of a"), object{"fence": c.fence()})
	k.refused("apply", object{"execution": "b", "expected_version": 1, "artifacts": []any{art}}, "InvalidRequest", "NotFound")
	k.refused("get_artifact", object{"execution": "b", "digest": art}, "NotFound")
	k.as("other").create("a")
	k.as("other").refused("get_artifact", object{"execution": "a", "digest": art}, "NotFound")
	o := k.declare("a", c.fence(), object{"key": "k"})
	p := k.declare("a", c.fence(), object{"key": "k2"})
	callback := o.str("callback")
	if callback == "" {
		t.Fatal("no callback")
	}
	for _, bad := range []string{callback + "x", callback[:len(callback)-1], strings.ToUpper(callback), "x", "", strings.Repeat("x", 5000), flip(callback, 3), flip(callback, len(callback)/2), flip(callback, len(callback)-2)} {
		k.refused("record_outcome", object{"callback": bad, "outcome": "succeeded"}, "InvalidRequest", "NotFound", "Integrity")
		k.refused("signal", object{"callback": bad, "name": "n", "key": "k"}, "InvalidRequest", "NotFound", "Integrity")
	}
	k.as("other").refused("record_outcome", object{"callback": callback, "outcome": "succeeded"}, "InvalidRequest", "NotFound", "Integrity")
	k.refused("record_outcome", object{"callback": callback, "execution": "b", "outcome": "succeeded"}, "InvalidRequest")
	k.refused("record_outcome", object{"callback": callback, "operation": p.str("operation"), "outcome": "succeeded"}, "InvalidRequest")
	k.refused("record_outcome", object{"callback": callback, "attempt": 2, "outcome": "succeeded"}, "InvalidRequest")
	oneOf(t, k.op("a", o.str("operation")).str("status"), uncertain, "status before")
	use := object{"callback": callback, "outcome": "succeeded", "result": object{"n": 1}}
	k.do("record_outcome", use)
	k.do("record_outcome", use)
	k.refused("record_outcome", with(use, object{"outcome": "failed"}), "RequestMismatch")
	k.refused("signal", object{"callback": callback, "name": "n", "key": "k"}, "RequestMismatch")
	equal(t, k.op("a", o.str("operation")).str("outcome"), "succeeded", "its outcome")
	oneOf(t, k.op("a", p.str("operation")).str("status"), uncertain, "the other one")
}

func flip(s string, i int) string {
	b := []byte(s)
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// The door of one tenant speaks for that tenant only.
func TestTenantAlias(t *testing.T) {
	k := start(t)
	k.create("e", object{"state": object{"canary": "mine"}})
	mine, theirs := "t-"+k.tenant, "t-other"
	for _, name := range []string{"checkpoint:" + theirs, "checkpoint:t-", "checkpoint:t-" + strings.ToUpper(k.tenant), "checkpoint:t-" + k.tenant + "x"} {
		_, f := k.send(name, encode(object{"action": "get", "tenant": k.tenant, "execution": "e"}))
		if f == nil || f.code != "InvalidRequest" {
			t.Fatalf("%s speaks for %s: %s", name, k.tenant, f)
		}
	}
	r, f := k.send("checkpoint:"+mine, encode(object{"action": "get", "tenant": k.tenant, "execution": "e"}))
	if f != nil || r.version() != 1 {
		t.Fatalf("the tenant's own alias: %s", f)
	}
	for _, function := range []string{"recover:" + theirs, "retention:" + theirs} {
		if _, f := k.send(function, encode(object{"action": "sweep"})); f == nil {
			t.Fatalf("%s sweeps all tenants", function)
		}
		if _, f := k.send(function, encode(object{"action": "sweep", "tenant": k.tenant})); f == nil {
			t.Fatalf("%s sweeps %s", function, k.tenant)
		}
		if _, f := k.send(function, encode(object{"Records": []any{record("1", "REMOVE", k.tenant+"#e", "timer#retention")}})); f == nil {
			t.Fatalf("%s takes a stream batch", function)
		}
	}
}

// No wake-up is lost, whoever crashes when.
func TestWakeUps(t *testing.T) {
	k := start(t)
	wf := k.workflow("ww", object{"resume_target": object{"kind": "sandbox", "arn": "target"}})
	offered := func(execution string) (n int, cause string) {
		for _, h := range k.rest().all["handovers"].([]any) {
			r := reply{object: h.(object)}
			if r.str("input", "execution") == execution {
				n++
				cause = r.str("input", "cause")
			}
		}
		return n, cause
	}
	n := 0
	for _, how := range []string{"signal", "operation", "until", "continue", "lease", "unhalt"} {
		for _, fault := range []object{nil, {"on": "*", "effect": "crash_after", "nth": 1}, {"on": "*", "effect": "crash_after", "nth": 2}, {"on": "*", "effect": "crash_after", "nth": 3}, {"on": "*", "effect": "crash_before", "nth": 3}, {"on": "*", "effect": "crash_after", "nth": 4}, {"on": "target", "effect": "lost"}, {"on": "target", "effect": "landed"}} {
			n++
			execution := fmt.Sprintf("%s%d", how, n)
			c := k.create(execution, wf, object{"claim": object{"owner": "w", "lease_seconds": 60}})
			strike := func() {
				if fault != nil {
					k.faults(fault)
				}
			}
			again := func(action string, f object) {
				t.Helper()
				f = with(object{"execution": execution, "request_id": action + execution}, f)
				strike()
				_, e := k.try(action, f)
				k.faults()
				if e != nil {
					k.do(action, f)
				}
			}
			switch how {
			case "signal":
				again("suspend", object{"expected_version": 1, "fence": c.fence(), "wait": object{"signals": []any{"go"}}})
				again("signal", object{"name": "go", "key": "k"})
			case "operation":
				o := k.declare(execution, c.fence(), object{"key": "k"}).str("operation")
				again("suspend", object{"expected_version": 2, "fence": c.fence(), "wait": object{"operations": []any{o}}})
				again("record_outcome", object{"operation": o, "outcome": "succeeded"})
			case "until":
				at, _ := time.Parse(time.RFC3339, k.now())
				again("suspend", object{"expected_version": 1, "fence": c.fence(), "wait": object{"until": at.Add(time.Hour).Format("2006-01-02T15:04:05.000Z")}})
				k.wait(time.Hour)
			case "continue":
				again("apply", object{"expected_version": 1, "fence": c.fence(), "then": object{"continue": object{"after_seconds": 60}}})
				k.wait(time.Minute)
			case "lease":
				k.wait(2 * time.Minute)
			case "unhalt":
				again("halt", object{"reason": "r"})
				k.wait(2 * day)
				k.sweeps(1)
				if got, _ := offered(execution); got != 0 {
					t.Fatalf("%s: a halted one is handed over", execution)
				}
				again("unhalt", object{"reason": "r", "expected_version": k.version(execution)})
			}
			strike()
			k.do1("recover.sweep")
			k.faults()
			k.wait(2 * time.Second)
			k.sweeps(2)
			k.wait(15 * time.Minute) // backoffs, poll
			k.sweeps(2)
			got, cause := offered(execution)
			if got == 0 {
				t.Fatalf("%s with %v: never handed over: %s", execution, fault, k.get(execution).text)
			}
			want := how
			if how != cause && !(how == "continue" && cause == "lease") {
				t.Fatalf("%s: handed over because of %q, want %q", execution, cause, want)
			}
			k.claim(execution, "w2", 60)
			k.do("halt", object{"execution": execution, "reason": "over"})
		}
	}
	k.run("nobody is woken early", func(k *kit) {
		c := k.create("early", wf, object{"claim": object{"owner": "w", "lease_seconds": 60}})
		k.do("suspend", object{"execution": "early", "expected_version": 1, "fence": c.fence(), "wait": object{"signals": []any{"go"}}})
		k.do("signal", object{"execution": "early", "name": "other", "key": "k"})
		k.wait(3 * time.Hour)
		k.sweeps(3)
		if got, _ := offered("early"); got != 0 {
			k.Fatal("handed over without what it waits for")
		}
		equal(k, k.get("early").str("status"), "waiting", "status")
	})
}

// do1 calls a verb that may fail by a fault.
func (k *kit) do1(action string) { k.Helper(); k.try(action, object{}) }
