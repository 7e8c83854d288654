package fieldcases

import (
	"fmt"
	"slices"
	"testing"
)

func TestC1OwnWriteThenTimeout(t *testing.T) {
	k := start(t)
	k.run("without a fault", func(k *kit) { ownWrite(k, "plain", nil) })
	for _, effect := range []string{"landed", "lost", "crash_after", "crash_before", "throttle", "unavailable"} {
		for _, count := range []int{1, 2, 100} {
			k.run(fmt.Sprintf("%s %d", effect, count), func(k *kit) {
				ownWrite(k, fmt.Sprintf("%s-%d", effect, count), func() {
					k.faults(object{"on": "put", "effect": effect, "count": count, "match": "j#"})
				})
			})
		}
	}
	for _, effect := range []string{"landed", "lost", "crash_after", "crash_before"} {
		k.run("create, claim, suspend, complete: "+effect, func(k *kit) { ownTransactions(k, effect) })
	}
}

// ownWrite applies under a fault, repeats it, and tries it with other contents.
func ownWrite(k *kit, execution string, fault func()) {
	v := k.create(execution, object{"state": object{"n": 0}}).version()
	v = k.apply(execution, v, object{"state": object{"n": 1}}).version()
	request := object{"execution": execution, "expected_version": v, "request_id": "R", "state": object{"n": 2}}
	if fault != nil {
		fault()
	}
	r, f := k.try("apply", request)
	if fault != nil {
		k.faults()
	}
	switch {
	case f == nil:
		equal(k, r.version(), v+1, "first answer")
	case f.code != crash:
		oneOf(k, f.code, retryable, "first answer")
		equal(k, f.facts.at("retryable"), any(true), "retryable")
	}
	again := k.do("apply", request)
	equal(k, again.version(), v+1, "the repeat")
	if f == nil {
		equal(k, again.at("replayed"), any(true), "replayed")
	}
	equal(k, k.state(execution), any(object{"n": number("2")}), "state")
	equal(k, int64(len(k.history(execution))), v+1, "entries")
	k.refused("apply", with(request, object{"state": object{"n": 3}}), "RequestMismatch")
	x := k.refused("apply", with(request, object{"request_id": "S", "state": object{"n": 4}}), "VersionConflict")
	equal(k, x.facts.version(), v+1, "the conflict's version")
	equal(k, x.facts.at("retryable"), any(false), "the conflict's retryable")
	if len(x.facts.list("changes")) != 1 {
		k.Fatalf("the conflict does not say what changed: %s", x)
	}
	// Without a request_id the content at that version is the identity.
	bare := object{"execution": execution, "expected_version": v + 1, "request_id": omit{}, "state": object{"n": 5}}
	k.do("apply", bare)
	equal(k, k.do("apply", bare).at("replayed"), any(true), "a repeat without request_id")
	k.refused("apply", with(bare, object{"state": object{"n": 6}}), "VersionConflict")
	// Moved to a later version: still the same request.
	moved := k.do("apply", with(request, object{"expected_version": v + 2, "first_version": v}))
	equal(k, moved.version(), v+1, "a moved request")
	equal(k, k.version(execution), v+2, "version at the end")
}

// ownTransactions does what writes head and entry, each under a fault and again.
func ownTransactions(k *kit, effect string) {
	execution := "tx-" + effect
	fault := object{"on": "transact", "effect": effect}
	var version, fence int64
	step := func(action string, fields object) {
		k.Helper()
		k.faults(fault)
		fields = with(fields, object{"execution": execution, "request_id": action})
		if _, f := k.try(action, fields); f != nil && f.code != crash {
			oneOf(k, f.code, retryable, action)
		}
		k.faults()
		r := k.do(action, fields)
		version++
		equal(k, r.version(), version, action+" repeated: version")
		if n := r.fence(); n > 0 {
			fence = n
		}
	}
	step("create", object{"workflow": "wf", "state": object{"a": 1}})
	step("claim", object{"owner": "w", "lease_seconds": 60})
	step("suspend", object{"expected_version": 2, "fence": fence, "wait": object{}})
	k.claim(execution, "w2", 60)
	version++
	step("complete", object{"expected_version": 4, "fence": k.get(execution).fence(), "outcome": "completed"})
	equal(k, int64(len(k.history(execution))), version, "entries")
}

func TestC2ReplayWithReorderedKeys(t *testing.T) {
	k := start(t)
	const first, second = `{"n":1,"deep":{"x":1,"y":[1,2]},"text":"foo"}`, `{ "text":"foo" , "deep":{"y":[ 1,2],"x":1}, "n":1 }`
	for n := range 50 {
		execution := fmt.Sprintf("e%d", n)
		v := k.create(execution).version()
		if n%2 == 1 {
			k.faults(object{"on": "put", "effect": "landed", "count": 1 + n%3})
		}
		if _, f := k.try("apply", object{"execution": execution, "expected_version": v, "request_id": "R", "state": raw(first)}); f != nil {
			oneOf(t, f.code, retryable, "first")
		}
		k.faults()
		r, f := k.send("checkpoint", []byte(fmt.Sprintf(`{"state":%s, "request_id":"R","expected_version":%d ,"execution":%q,"tenant":%q,"action":"apply"}`, second, v, execution, k.tenant)))
		if f != nil {
			t.Fatalf("round %d: %s", n, f)
		}
		equal(t, r.version(), v+1, "the reordered repeat")
		equal(t, k.version(execution), v+1, "version")
	}
	v := k.create("num").version()
	k.apply("num", v, object{"request_id": "R", "state": raw(`{"a":1,"l":[1,2]}`)})
	for _, other := range []string{`{"a":1.0,"l":[1,2]}`, `{"a":1,"l":[2,1]}`, `{"a":1e0,"l":[1,2]}`, `{"a":"1","l":[1,2]}`, `{"a":1,"l":[1,2],"b":null}`} {
		k.refused("apply", object{"execution": "num", "expected_version": v, "request_id": "R", "state": raw(other)}, "RequestMismatch")
	}
	// The same data by another field is another request.
	k.refused("apply", object{"execution": "num", "expected_version": v, "request_id": "R", "merge": raw(`{"a":1,"l":[1,2]}`)}, "RequestMismatch")
	// What is not content may differ.
	r := k.do("apply", object{"execution": "num", "expected_version": v, "request_id": "R", "state": raw(`{"l":[1,2],"a":1}`), "max_inline_bytes": 5000, "actor": object{"kind": "human", "id": "x"}})
	equal(t, r.at("replayed"), any(true), "another actor")
	create := object{"execution": "c", "workflow": "wf", "labels": object{"a": "1", "b": "2"}, "state": raw(first), "request_id": "C"}
	k.do("create", create)
	equal(t, k.do("create", with(create, object{"state": raw(second)})).at("replayed"), any(true), "create")
	k.refused("create", with(create, object{"labels": object{"a": "1"}}), "RequestMismatch")
}

func TestC3StaleReadAfterWrite(t *testing.T) {
	k := start(t)
	k.faults(object{"on": "*", "effect": "stale", "count": 1_000_000})
	for n := range 60 {
		readAfterWrite(k, fmt.Sprintf("e%d", n))
	}
	// Listings may be late, and only they.
	k.create("alone", object{"thread": "T"})
	k.faults()
	ids, _ := k.listed(object{"thread": "T"})
	equal(t, ids, []string{"alone"}, "list without staleness")
}

// readAfterWrite reads everything right after it was written.
func readAfterWrite(k *kit, execution string) {
	k.Helper()
	v := k.create(execution, object{"state": object{"n": 0}}).version()
	equal(k, k.version(execution), v, "get after create")
	v = k.apply(execution, v, object{"state": object{"n": 1}}).version()
	r := k.get(execution)
	equal(k, r.version(), v, "get after apply")
	equal(k, r.at("state"), any(object{"n": number("1")}), "state after apply")
	c := k.claim(execution, "w1", 60)
	k.refused("claim", object{"execution": execution, "owner": "w2", "lease_seconds": 60}, "LeaseHeld")
	equal(k, k.get(execution).fence(), c.fence(), "fence after claim")
	o := k.declare(execution, c.fence(), object{"key": "k"})
	equal(k, o.str("disposition"), "go", "disposition")
	k.outcome(execution, o.str("operation"), "succeeded")
	equal(k, k.op(execution, o.str("operation")).str("status"), "succeeded", "status right after the outcome")
	k.do("signal", object{"execution": execution, "name": "n", "key": "k"})
	equal(k, len(k.get(execution).list("inbox")), 1, "inbox right after the signal")
	k.reconcile(execution, c.fence())
	k.complete(execution, k.version(execution), c.fence())
	equal(k, k.get(execution).str("status"), "completed", "status after complete")
}

func TestC4TransactionConflict(t *testing.T) {
	k := start(t)
	k.run("many writers", func(k *kit) { manyWriters(k, 25) })
	k.run("scripted reasons", scriptedReasons)
	k.run("many creators", func(k *kit) {
		won, codes := winners(k.together(20, func(i int) (reply, *failure) {
			return k.try("create", object{"execution": "same", "workflow": "wf", "state": object{"i": i}})
		}))
		equal(k, len(won), 1, "winners")
		equal(k, codes, []string{"AlreadyExists"}, "losers")
		won, codes = winners(k.together(20, func(int) (reply, *failure) {
			return k.try("create", object{"execution": "one", "workflow": "wf", "request_id": "one"})
		}))
		equal(k, len(won), 20, "repeats of one create")
		equal(k, codes, []string(nil), "their errors")
	})
}

func manyWriters(k *kit, rounds int) {
	v := k.create("many", object{"state": object{"n": 0}}).version()
	for n := range rounds {
		answers := k.together(20, func(i int) (reply, *failure) {
			return k.try("apply", object{"execution": "many", "expected_version": v, "request_id": fmt.Sprintf("r%d-%d", n, i), "state": object{"n": n, "i": i}})
		})
		won, codes := winners(answers)
		equal(k, len(won), 1, fmt.Sprintf("winners of round %d (losers %v)", n, codes))
		equal(k, codes, []string{"VersionConflict"}, "losers")
		v = answers[won[0]].reply.version()
		equal(k, k.state("many"), any(object{"n": number(fmt.Sprint(n)), "i": number(fmt.Sprint(won[0]))}), "the winner's state")
	}
	equal(k, int64(len(k.history("many"))), v, "entries")
}

// scriptedReasons cancels transactions as DynamoDB would say it.
func scriptedReasons(k *kit) {
	for i, c := range []struct {
		reasons []any
		count   int
		want    []string // codes; nil: it succeeds in the end
		again   bool     // tried again inside
	}{
		{[]any{nil, "TransactionConflict"}, 1, nil, true},
		{[]any{"TransactionConflict", nil}, 3, nil, true},
		{[]any{"ThrottlingError", nil}, 1, nil, true},
		{[]any{"TransactionConflict", nil}, 1000, retryable, true},
		{[]any{"ThrottlingError"}, 1000, retryable, true},
		{[]any{"ProvisionedThroughputExceeded", nil}, 1000, retryable, true},
		{[]any{"ConditionalCheckFailed", "TransactionConflict"}, 1, nil, true}, // read anew: nobody was there, so it goes through
		{[]any{"ValidationError", nil}, 1, []string{"Internal", "InvalidRequest", "TooLarge"}, false},
		{[]any{nil, "ItemCollectionSizeLimitExceeded"}, 1, []string{"Internal", "TooLarge"}, false},
	} {
		execution := fmt.Sprintf("s%d", i)
		k.create(execution)
		k.mark()
		k.faults(object{"on": "transact", "effect": "cancelled", "reasons": c.reasons, "count": c.count})
		r, f := k.try("claim", object{"execution": execution, "owner": "w", "lease_seconds": 60, "request_id": "c"})
		k.faults()
		attempts := 0
		for _, call := range k.log() {
			if call.(object)["call"] == "transact" {
				attempts++
			}
		}
		switch {
		case c.want == nil && f != nil:
			k.Fatalf("%v: %s", c.reasons, f)
		case c.want == nil:
			equal(k, r.version(), int64(2), fmt.Sprint(c.reasons))
		case f == nil:
			k.Fatalf("%v: succeeded", c.reasons)
		default:
			oneOf(k, f.code, c.want, fmt.Sprint(c.reasons))
			equal(k, f.facts.at("retryable"), any(slices.Contains(retryable, f.code) || f.code == "Internal"), "retryable")
			equal(k, k.version(execution), int64(1), "nothing was written")
		}
		if c.again && attempts < 2 || !c.again && attempts != 1 || attempts > 40 {
			k.Fatalf("%v: %d attempts", c.reasons, attempts)
		}
		equal(k, k.claim(execution, "w", 60, object{"request_id": "c"}).version(), int64(2), "the claim afterwards")
	}
}

func TestC6CreateTwiceDifferentDefinition(t *testing.T) {
	k := start(t)
	first := object{"execution": "X", "workflow": "A", "state": object{"s": 1}, "request_id": "r1", "claim": object{"owner": "w", "lease_seconds": 60}}
	r := k.do("create", first)
	o := k.declare("X", r.fence(), object{"key": "k"}).str("operation")
	before := k.rest().raw(k.tenant, "X")
	shape := k.rest().shape(k.tenant)
	k.refused("create", with(first, object{"workflow": "B", "request_id": "r2"}), "AlreadyExists")
	k.refused("create", with(first, object{"request_id": "r2"}), "AlreadyExists")
	for _, other := range []object{{"workflow": "B"}, {"state": object{"s": 2}}, {"claim": object{"owner": "w", "lease_seconds": 61}}, {"claim": omit{}}, {"thread": "t"}, {"subjects": []any{"s"}}} {
		k.refused("create", with(first, other), "RequestMismatch")
	}
	equal(t, k.rest().raw(k.tenant, "X"), before, "items after refused creates")
	equal(t, k.rest().shape(k.tenant), shape, "shape after refused creates")
	again := k.do("create", first)
	equal(t, again.at("replayed"), any(true), "replayed")
	for _, f := range []string{"execution", "version", "fence", "generation"} {
		equal(t, again.at(f), r.at(f), "exact repeat: "+f)
	}
	equal(t, again.int("tip", "version"), int64(2), "the repeat's tip")
	k.wait(61 * 1e9)
	k.claim("X", "w2", 60)
	g := k.get("X")
	equal(t, g.str("workflow"), "A", "workflow")
	equal(t, g.at("state"), any(object{"s": number("1")}), "state")
	equal(t, g.str("operations", 0, "operation"), o, "its open operation")
	// Without an id: one for each request_id.
	a := k.do("create", object{"workflow": "A", "request_id": "gen"})
	b := k.do("create", object{"workflow": "A", "request_id": "gen"})
	equal(t, a.str("execution"), b.str("execution"), "a generated id")
	c := k.do("create", object{"workflow": "A", "request_id": "gen2"})
	if c.str("execution") == a.str("execution") {
		t.Fatal("two requests got one id")
	}
	k.refused("create", object{"workflow": "A", "request_id": omit{}}, "InvalidRequest")
}

func TestC7ArtifactVersionLost(t *testing.T) {
	k := start(t)
	v := k.create("e").version()
	type saved struct {
		version int64
		digest  string
		body    []byte
	}
	var kept []saved
	save := func(body []byte, d string) {
		t.Helper()
		v = k.apply("e", v, object{"artifacts": []any{d}}).version()
		kept = append(kept, saved{v, d, body})
		for _, s := range kept {
			if string(k.artifact("e", object{"digest": s.digest})) != string(s.body) {
				t.Fatalf("the bytes of %s changed", s.digest)
			}
		}
	}
	for range 3 {
		body := []byte(noise(2000))
		save(body, k.put("e", "report.txt", body))
	}
	for _, s := range kept {
		equal(t, string(k.artifact("e", object{"name": "report.txt", "version": s.version})) == string(s.body), true, "by name and version")
	}
	for _, on := range []string{"list_objects", "head_object", "get_object", "query", "put_object", "get"} {
		for _, effect := range []string{"unavailable", "throttle", "landed"} {
			body := []byte(noise(1500))
			k.faults(object{"on": on, "effect": effect})
			request := object{"execution": "e", "name": "report.txt", "media_type": "a/b", "body": body, "request_id": on + effect}
			r, f := k.try("put_artifact", request)
			k.faults()
			if f != nil {
				oneOf(t, f.code, retryable, on+" "+effect)
				r = k.do("put_artifact", request)
			}
			equal(t, r.str("artifact", "digest"), digest(body), "digest")
			save(body, r.str("artifact", "digest"))
		}
	}
	bodies := make([][]byte, 10)
	for i := range bodies {
		bodies[i] = []byte(noise(1000 + i))
	}
	answers := k.together(10, func(i int) (reply, *failure) {
		return k.try("put_artifact", object{"execution": "e", "name": "report.txt", "media_type": "a/b", "body": bodies[i]})
	})
	for i, a := range answers {
		if a.failure != nil {
			t.Fatalf("saved at once: %s", a.failure)
		}
		save(bodies[i], a.reply.str("artifact", "digest"))
	}
	equal(t, string(k.artifact("e", object{"name": "report.txt"})) == string(bodies[9]), true, "the newest by name")
	k.refused("apply", object{"execution": "e", "expected_version": v, "artifacts": []any{digest([]byte("never put"))}}, "InvalidRequest", "NotFound")
}
