package fieldcases

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileIDs are no identifiers.
var hostileIDs = []any{"", " ", "a b", "a/b", "../a", "..", ".a", "-a", "_a", "a#b", "a:b", "a\x00", "a\nb", "é", "~a", "a~", "%61", strings.Repeat("a", 129), strings.Repeat("a", 100_000), nil, 7, true, []any{"a"}, object{"a": 1}, raw(`"\ud800"`), raw("\"\xff\"")}

// Every identifier of every verb refuses what is none, by its name, before any
// call to the store.
func TestHostileIdentifiers(t *testing.T) {
	k := start(t)
	k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	fields := []string{"execution", "thread", "workflow", "policy", "new_execution", "operation", "hold"}
	k.mark()
	for _, v := range everyVerb("e") {
		for _, field := range fields {
			if s, has := v.object[field].(string); !has || s == "" {
				continue
			}
			for _, bad := range hostileIDs {
				f := k.refused(v.action, with(v.object, object{field: bad}), "InvalidRequest")
				equal(t, f.facts.at("retryable"), any(false), "retryable")
				if bad != any(raw("\"\xff\"")) {
					k.names(f, `"`+field, `"policy`)
				}
			}
		}
	}
	for _, v := range everyVerb("e") {
		for _, bad := range []any{"", strings.Repeat("r", 129), "a\x00b", "a\nb", "a\u0085b", "\x7f", 7, nil, []any{}, object{}} {
			k.refused(v.action, with(v.object, object{"request_id": bad}), "InvalidRequest")
		}
		for _, bad := range []any{"me", nil, []any{}, object{}, object{"kind": "robot", "id": "x"}, object{"kind": "human"}, object{"kind": "human", "id": ""}, object{"kind": "human", "id": "x", "verified": true},
			object{"kind": "human", "id": "x", "more": 1}, object{"Kind": "human", "id": "x"}, object{"kind": "human", "id": strings.Repeat("x", 257)}} {
			k.refused(v.action, with(v.object, object{"actor": bad}), "InvalidRequest")
		}
	}
	if log := k.log(); len(log) > 0 {
		t.Fatalf("%d calls to the store, first %v", len(log), log[0])
	}
	long := strings.Repeat("Z", 128)
	v := k.create(long, object{"thread": long, "workflow": long, "request_id": long}).version()
	k.apply(long, v, object{"task": long, "request_id": long + ""}, object{"request_id": "x" + long[1:]})
	equal(t, k.version(long), v+1, "identifiers of 128 characters")
}

// Versions, fences and numbers that are none, or not of this execution.
func TestHostileNumbers(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	k.create("other")
	k.apply("other", 1)
	other := k.claim("other", "w", 900)
	o := k.declare("e", c.fence(), object{"key": "k"}).str("operation")
	before := k.rest().raw(k.tenant, "e")
	ill := []any{0, -1, 1.5, number("1.0"), number("1e0"), number("-0"), "1", nil, true, []any{1}, object{}, number("9223372036854775808"), number("1e400"), number("123456789012345678901234567890"), raw("01"), raw("0x1"), raw("NaN"), raw("+1")}
	for _, bad := range ill {
		for action, f := range map[string]object{
			"apply": {"execution": "e", "fence": c.fence(), "expected_version": bad}, "suspend": {"execution": "e", "fence": c.fence(), "expected_version": bad, "wait": object{}},
			"complete": {"execution": "e", "fence": c.fence(), "expected_version": bad, "outcome": "failed"}, "get": {"execution": "e", "version": bad}, "history": {"execution": "e", "from_version": bad},
			"fork": {"execution": "e", "at_version": bad, "new_execution": "f"}, "claim": {"execution": "e", "owner": "z", "lease_seconds": 60, "expected_version": bad},
			"unhalt": {"execution": "e", "reason": "r", "expected_version": bad}, "get_artifact": {"execution": "e", "name": "n", "version": bad}, "start_operation": {"execution": "e", "operation": o, "attempt": bad, "fence": c.fence(), "nonce": "n"},
		} {
			k.refused(action, f, "InvalidRequest")
		}
		k.refused("apply", object{"execution": "e", "fence": c.fence(), "expected_version": 2, "first_version": bad}, "InvalidRequest")
		k.refused("get", object{"execution": "e", "max_inline_bytes": bad}, "InvalidRequest")
		k.refused("renew", object{"execution": "e", "owner": "w", "fence": c.fence(), "lease_seconds": bad}, "InvalidRequest")
		k.refused("claim", object{"execution": "e", "owner": "w", "lease_seconds": bad}, "InvalidRequest")
		k.refused("record_outcome", object{"execution": "e", "operation": o, "outcome": "succeeded", "attempt": bad}, "InvalidRequest")
		if bad != any(0) {
			k.refused("apply", object{"execution": "e", "expected_version": 2, "fence": bad}, "InvalidRequest", "LeaseLost")
		}
	}
	// Well-formed, and not of this execution.
	for _, v := range []int64{3, 99, 1 << 53, 9223372036854775807} {
		k.refused("apply", object{"execution": "e", "expected_version": v, "fence": c.fence(), "state": object{}}, "Integrity")
		k.refused("get", object{"execution": "e", "version": v}, "Integrity")
		k.refused("fork", object{"execution": "e", "at_version": v, "new_execution": "f"}, "Integrity", "OperationsOpen", "InvalidRequest")
	}
	k.refused("apply", object{"execution": "e", "expected_version": 1, "fence": c.fence(), "state": object{}}, "VersionConflict")
	for _, fence := range []int64{other.fence(), other.fence() + 1, 9223372036854775807, 2} {
		if fence == c.fence() {
			continue
		}
		k.refused("apply", object{"execution": "e", "expected_version": 2, "fence": fence, "state": object{}}, "LeaseLost")
		k.refused("renew", object{"execution": "e", "owner": "w", "fence": fence, "lease_seconds": 60}, "LeaseLost")
		k.refused("start_operation", object{"execution": "e", "operation": o, "attempt": 1, "fence": fence, "nonce": "n"}, "LeaseLost", "InvalidRequest")
	}
	for _, attempt := range []int{2, 99, 1 << 30} {
		k.refused("record_outcome", object{"execution": "e", "operation": o, "outcome": "succeeded", "attempt": attempt}, "InvalidRequest", "NotFound", "OperationMismatch")
		k.refused("reconcile", object{"execution": "e", "fence": c.fence(), "evidence": []any{object{"operation": o, "attempt": attempt, "finding": "found"}}}, "InvalidRequest", "NotFound", "OperationMismatch")
	}
	for _, seconds := range []int{1, 4, 86_401} {
		k.refused("claim", object{"execution": "e", "owner": "w", "lease_seconds": seconds}, "InvalidRequest")
		k.refused("create", object{"execution": "n", "workflow": "wf", "claim": object{"owner": "w", "lease_seconds": seconds}}, "InvalidRequest")
	}
	equal(t, k.rest().raw(k.tenant, "e"), before, "items after it all")
	k.refused("get", object{"execution": "f"}, "NotFound")
}

// Bodies that are no requests.
func TestHostileBodies(t *testing.T) {
	k := start(t)
	k.create("e", object{"state": object{"n": 1}})
	before := k.rest().shape(k.tenant)
	call := fmt.Sprintf(`"action":"apply","tenant":%q,"execution":"e","expected_version":1,"state":{}`, k.tenant)
	bodies := map[string]string{
		"empty": ``, "space": ` `, "null": `null`, "true": `true`, "number": `1`, "text": `"x"`, "list": `[]`, "list of one": `[{` + call + `}]`, "empty object": `{}`, "half": `{` + call, "two": `{` + call + `}{}`,
		"trailing": `{` + call + `} x`, "comma": `{` + call + `,}`, "comment": `{` + call + `/*x*/}`, "single quotes": `{'action':'apply'}`, "BOM": "\ufeff{" + call + `}`, "UTF-16": "\xff\xfe{\x00}\x00",
		"invalid UTF-8 in a value": `{` + call + `,"note":"` + "\xff" + `"}`, "invalid UTF-8 in a key": `{` + call + `,"` + "\xc3\x28" + `":1}`, "overlong": `{` + call + `,"note":"` + "\xc0\xaf" + `"}`, "surrogate bytes": `{` + call + `,"note":"` + "\xed\xa0\x80" + `"}`,
		"lone surrogate in a control field": `{` + call + `,"note":"\ud800"}`, "control character": `{` + call + `,"note":"` + "\x01" + `"}`,
		"action twice": `{` + call + `,"action":"get"}`, "tenant twice": `{` + call + `,"tenant":"other"}`, "same tenant twice": `{` + call + `,"tenant":"` + k.tenant + `"}`, "fence twice": `{` + call + `,"fence":1,"fence":2}`, "state twice": `{` + call + `,"state":{"a":1}}`,
		"escaped twice": `{` + call + `,"\u0074enant":"other"}`, "case": `{` + call + `,"Tenant":"other"}`, "upper": `{` + call + `,"FENCE":1}`, "camel": `{` + call + `,"requestId":"x"}`, "dash": `{` + call + `,"request-id":"x"}`, "Kelvin": `{` + call + `,"\u212aey":1}`,
		"long s": `{` + call + `,"\u017ftate":{}}`, "unknown": `{` + call + `,"more":1}`, "null unknown": `{` + call + `,"more":null}`, "proto": `{` + call + `,"__proto__":{"tenant":"x"}}`, "empty key": `{` + call + `,"":1}`,
		"state and patch": `{` + call + `,"patch":[]}`, "state and merge": `{` + call + `,"merge":{}}`, "state null": `{"action":"apply","tenant":"` + k.tenant + `","execution":"e","expected_version":1,"state":null}`, "merge list": `{"action":"apply","tenant":"` + k.tenant + `","execution":"e","expected_version":1,"merge":[]}`,
		"state text": `{"action":"apply","tenant":"` + k.tenant + `","execution":"e","expected_version":1,"state":"{}"}`, "state list": `{"action":"apply","tenant":"` + k.tenant + `","execution":"e","expected_version":1,"state":[]}`,
		"deep": strings.Repeat("[", 200_000), "deep objects": strings.Repeat(`{"a":`, 200_000), "deep in an unknown field": `{` + call + `,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"action list": `{"action":["apply"]}`, "action null": `{"action":null,"tenant":"x"}`, "action case": `{"action":"Apply","tenant":"x"}`, "action unknown": `{"action":"drop","tenant":"x"}`, "internal": `{"action":"hand_over","tenant":"x"}`,
	}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		for _, function := range []string{"checkpoint", "recover", "retention"} {
			k.mark()
			began := time.Now()
			_, f := k.send(function, []byte(bodies[name]))
			if f == nil || f.code != "InvalidRequest" {
				t.Errorf("%s to %s: %s", name, function, f)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s to %s took %v", name, function, took)
			}
			if len(k.log()) > 0 {
				t.Errorf("%s to %s reached the store", name, function)
			}
		}
	}
	for _, v := range everyVerb("e") {
		for _, function := range []string{"checkpoint", "recover", "retention"} {
			if function == homes[v.action] {
				continue
			}
			if _, f := k.send(function, encode(with(v.object, object{"action": v.action, "tenant": k.tenant}))); f == nil || f.code != "InvalidRequest" {
				t.Errorf("%s to %s: %s", v.action, function, f)
			}
		}
	}
	k.run("huge", func(k *kit) {
		for _, body := range []string{`{` + call + `,"note":"` + strings.Repeat("n", 6_000_000) + `"}`, `{` + call + `,"x":[` + strings.Repeat("0,", 2_500_000) + `0]}`, `{` + call + `,"x":{` + manyKeys(300_000) + `}}`, strings.Repeat(" ", 6_200_000) + `{}`} {
			_, f := k.send("checkpoint", []byte(body))
			if f == nil {
				k.Fatal("accepted")
			}
			oneOf(k, f.code, []string{"InvalidRequest", "TooLarge"}, "code")
			equal(k, f.facts.at("retryable"), any(false), "retryable")
		}
	})
	equal(t, k.rest().shape(k.tenant), before, "what lies at rest")
	equal(t, k.version("e"), int64(1), "version")
}

func manyKeys(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	return b.String() + `"z":0`
}

// Data that looks like what we store ourselves is only data.
func TestLookalikeData(t *testing.T) {
	k := start(t)
	for i, text := range []string{
		`{"state_ref":{"version":1,"digest":"00","bytes":1,"url":"http://127.0.0.1/"}}`, `{"$ref":"#/state"}`, `{"S":"x","N":"1"}`, `{"M":{"a":{"S":"b"}}}`, `{"__type":"x","__proto__":{"a":1},"constructor":1}`,
		`{"op":"remove","path":"/x"}`, `{"snapshot":{"version":9},"patch":[{"op":"remove","path":""}]}`, `{"errorType":"Internal","errorMessage":"{\"code\":\"Internal\"}"}`, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`,
		`{"Records":[]}`, `{"action":"purge_tenant","tenant":"x"}`, `{"pk":"a#b","sk":"head"}`, `{"a/b":{"~":1,"~0":2,"~1":3,"":4}}`, `{"0":1,"-":2,"01":3}`,
	} {
		execution := fmt.Sprintf("l%d", i)
		want := exactly(t, []byte(text))
		v := k.create(execution, object{"state": raw(text), "input": raw(text)}).version()
		equal(t, k.state(execution), want, text)
		v = k.apply(execution, v, object{"state": raw(`{"a":` + text + `}`)}).version()
		k.apply(execution, v, object{"patch": raw(`[{"op":"move","from":"/a","path":"/b"}]`)})
		equal(t, k.state(execution), any(object{"b": want}), text)
		equal(t, k.get(execution).at("input"), want, "input")
	}
	v := k.create("p", object{"state": raw(`{"a/b":{"~":1,"~0":2,"~1":3,"":4},"l":[1,2,3]}`)}).version()
	v = k.apply("p", v, object{"patch": raw(`[{"op":"replace","path":"/a~1b/~0","value":10},{"op":"replace","path":"/a~1b/~00","value":20},{"op":"replace","path":"/a~1b/~01","value":30},{"op":"replace","path":"/a~1b/","value":40},{"op":"add","path":"/l/-","value":4},{"op":"remove","path":"/l/0"}]`)}).version()
	equal(t, k.state("p"), exactly(t, []byte(`{"a/b":{"~":10,"~0":20,"~1":30,"":40},"l":[2,3,4]}`)), "pointers")
	for _, bad := range []string{`[{"op":"add","path":"a","value":1}]`, `[{"op":"add","path":"/l/9","value":1}]`, `[{"op":"add","path":"/l/01","value":1}]`, `[{"op":"add","path":"/l/-1","value":1}]`, `[{"op":"remove","path":"/nope"}]`, `[{"op":"remove","path":"/l/-"}]`,
		`[{"op":"test","path":"/l/0","value":3}]`, `[{"op":"move","from":"/a~1b","path":"/a~1b/x"}]`, `[{"op":"copy","from":"/nope","path":"/x"}]`, `[{"op":"add","path":"/a~2b","value":1}]`, `[{"op":"drop","path":"/l"}]`, `[{"path":"/l"}]`, `[{"op":"add","path":"/x"}]`,
		`[{"op":"replace","path":"","value":[]}]`, `[{"op":"remove","path":""}]`, `{"op":"add","path":"/x","value":1}`, `[1]`, `[null]`, `[{"op":"add","path":"/ok","value":1},{"op":"test","path":"/ok","value":2}]`} {
		k.refused("apply", object{"execution": "p", "expected_version": v, "patch": raw(bad)}, "InvalidRequest")
	}
	equal(t, k.version("p"), v, "version after refused patches")
	k.apply("p", v, object{"patch": raw(`[{"op":"test","path":"/l/0","value":2.0},{"op":"replace","path":"","value":{"whole":1}}]`)})
	equal(t, k.state("p"), exactly(t, []byte(`{"whole":1}`)), "the whole replaced")
}

// A caller's own clock decides nothing.
func TestSkewedCallers(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	for n, skew := range []time.Duration{-300 * time.Second, 300 * time.Second, -30 * day, 30 * day} {
		early := *k
		early.skew = skew
		early.invoke = early.post
		s := &early
		execution := fmt.Sprintf("e%d", n)
		s.create(execution, object{"policy": "p"})
		a := k.claim(execution, "A", 30)
		f := s.refused("claim", object{"execution": execution, "owner": "B", "lease_seconds": 30}, "LeaseHeld")
		if ms := f.facts.int("retry_after_ms"); ms < 29_000 || ms > 30_000 {
			t.Fatalf("skew %v: %d ms left of 30 s", skew, ms)
		}
		o := s.declare(execution, a.fence(), object{"key": "k", "deadline_seconds": 100, "valid_seconds": 100})
		equal(t, o.str("disposition"), "go", "disposition")
		k.wait(29 * time.Second)
		s.do("renew", object{"execution": execution, "owner": "A", "fence": a.fence(), "lease_seconds": 30})
		k.wait(29 * time.Second)
		s.refused("claim", object{"execution": execution, "owner": "B", "lease_seconds": 30}, "LeaseHeld")
		k.wait(2 * time.Second)
		b := s.claim(execution, "B", 30)
		k.refused("apply", object{"execution": execution, "expected_version": b.version(), "fence": a.fence(), "state": object{}}, "LeaseLost")
		s.reconcile(execution, b.fence(), object{"operation": o.str("operation"), "finding": "not_found", "asked_at": k.now()})
		oneOf(t, k.op(execution, o.str("operation")).str("status"), uncertain, "asked while it could still happen")
		s.refused("reconcile", object{"execution": execution, "fence": b.fence(), "evidence": []any{object{"operation": o.str("operation"), "finding": "not_found", "asked_at": "2999-01-01T00:00:00.000Z"}}}, "InvalidRequest")
		s.outcome(execution, o.str("operation"), "succeeded")
		s.drain(execution, b.fence())
		done := s.complete(execution, s.version(execution), b.fence())
		k.wait(day - time.Minute)
		s.do("retention.sweep", object{})
		equal(t, s.get(execution).str("status"), "completed", "before its time")
		k.wait(2 * time.Minute)
		s.refused("get", object{"execution": execution}, gone...)
		_ = done
	}
	k.run("times in the history are the store's", func(k *kit) {
		fast := *k
		fast.skew = 300 * time.Second
		fast.invoke = fast.post
		before := k.now()
		v := fast.create("t").version()
		fast.apply("t", v, object{"note": "n"})
		after := k.now()
		for _, e := range k.history("t") {
			if at := e.(object)["at"].(string); at < before[:19] || at[:19] > after[:19] {
				k.Fatalf("an entry at %s, written between %s and %s", at, before, after)
			}
		}
	})
}

// Evidence keyed by name: first write wins, and a repeat is a repeat.
func TestSignalsOnce(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	one := object{"execution": "e", "name": "answer", "key": "k/1 ü", "body": object{"n": 1}}
	k.do("signal", one)
	k.do("signal", one)
	k.do("signal", with(one, object{"body": raw(`{ "n" : 1 }`)}))
	k.refused("signal", with(one, object{"body": object{"n": 2}}), "RequestMismatch")
	k.refused("signal", with(one, object{"body": omit{}}), "RequestMismatch")
	equal(t, len(k.get("e").list("inbox")), 1, "inbox")
	ref := object{"name": "answer", "key": "k/1 ü"}
	v := k.apply("e", c.version(), object{"fence": c.fence(), "absorb": []any{ref}, "state": object{"got": 1}}).version()
	equal(t, len(k.get("e").list("inbox")), 0, "inbox after it was absorbed")
	k.do("signal", one) // once more, late
	equal(t, len(k.get("e").list("inbox")), 0, "a late repeat does not come again")
	k.refused("apply", object{"execution": "e", "expected_version": v, "fence": c.fence(), "absorb": []any{object{"name": "answer", "key": "none"}}}, "InvalidRequest")
	k.refused("apply", object{"execution": "e", "expected_version": v, "fence": c.fence(), "absorb": []any{ref}}, "InvalidRequest")
	for i := range 20 {
		answers := k.together(5, func(j int) (reply, *failure) {
			return k.try("signal", object{"execution": "e", "name": "race", "key": fmt.Sprint(i), "body": j})
		})
		won, codes := winners(answers)
		equal(t, len(won), 1, fmt.Sprint("first writers, others ", codes))
	}
	equal(t, len(k.get("e").list("inbox")), 20, "inbox after the races")
}

// Every storage call of a whole life may be the last one of its process: whoever
// repeats the request gets on, nothing happens twice and nothing is lost.
func TestCrashAtEveryCall(t *testing.T) {
	k := start(t)
	for _, effect := range []string{"crash_before", "crash_after", "lost", "landed"} {
		for n := 1; n <= 8; n++ {
			execution := fmt.Sprintf("%s%d", strings.ReplaceAll(effect, "_", "-"), n)
			life(k, execution, func() { k.faults(object{"on": "*", "effect": effect, "nth": n}) })
		}
	}
}

// life goes through an execution's whole life; each request is struck, then
// repeated until it succeeds.
func life(k *kit, execution string, strike func()) {
	k.Helper()
	step := func(action string, fields object) reply {
		k.Helper()
		fields = with(object{"execution": execution, "request_id": fmt.Sprint(action, fields["n"])}, fields)
		delete(fields, "n")
		strike()
		r, f := k.try(action, fields)
		k.faults()
		for range 3 {
			if f == nil {
				return r
			}
			if f.code != crash && !slices.Contains(retryable, f.code) {
				k.Fatalf("%s, %s: %s", execution, action, f)
			}
			r, f = k.try(action, fields)
		}
		k.Fatalf("%s, %s never succeeds: %s", execution, action, f)
		return reply{}
	}
	equal(k, step("create", object{"workflow": "wf", "state": object{"n": 0}}).version(), int64(1), "create")
	c := step("claim", object{"owner": "w", "lease_seconds": 900, "nonce": "N"})
	r := step("apply", object{"n": 1, "expected_version": c.version(), "fence": c.fence(), "state": object{"n": 1}, "operations": []any{object{"name": "pay", "args": object{}, "key": "k", "on_uncertain": "always"}}})
	equal(k, r.version(), int64(3), "apply")
	o := r.str("operations", 0, "operation")
	step("record_outcome", object{"operation": o, "outcome": "succeeded", "result": object{"tx": 1}})
	step("signal", object{"name": "s", "key": "k", "body": 1})
	step("put_artifact", object{"name": "a", "media_type": "a/b", "body": []byte("artifact"), "fence": c.fence()})
	r = step("apply", object{"n": 2, "expected_version": 3, "fence": c.fence(), "outcomes": []any{object{"operation": o}}, "absorb": []any{object{"name": "s", "key": "k"}}, "artifacts": []any{digest([]byte("artifact"))}, "state": object{"n": 2}})
	equal(k, r.version(), int64(4), "apply of everything")
	equal(k, step("suspend", object{"expected_version": 4, "fence": c.fence(), "wait": object{"signals": []any{"go"}}}).version(), int64(5), "suspend")
	step("signal", object{"n": 2, "name": "go", "key": "k"})
	d := step("resume", object{"owner": "w2", "lease_seconds": 900, "nonce": "M"})
	v := k.version(execution)
	equal(k, step("complete", object{"expected_version": v, "fence": d.fence(), "outcome": "completed", "absorb": []any{object{"name": "go", "key": "k"}}}).version(), v+1, "complete")
	g := k.get(execution)
	equal(k, []any{g.at("status"), g.at("state"), k.op(execution, o).at("result")}, []any{"completed", object{"n": number("2")}, object{"tx": number("1")}}, "the end")
	equal(k, string(k.artifact(execution, object{"name": "a"})), "artifact", "its artifact")
	equal(k, int64(len(k.history(execution))), v+1, "entries")
	if v > 7 {
		k.Fatalf("%d entries: something was done twice", v)
	}
	step("hold", object{"hold": "h", "reason": "r"})
	step("release_hold", object{"hold": "h", "reason": "r"})
	step("archive", object{})
	step("delete", object{"reason": "r"})
	k.delete(execution)
	k.refused("get", object{"execution": execution}, "Deleted")
}
