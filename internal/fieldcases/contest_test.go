package fieldcases

import (
	"fmt"
	"testing"
)

// The owner's word does not outrank what the ledger has: a webhook was faster and
// says something else. Nothing goes again on one of two words, and a person decides.
func TestOwnerAgainstLedger(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "A", "lease_seconds": 900}})
	report := func(k *kit, id, outcome string, more object) string {
		k.apply("e", k.version("e"), object{"fence": c.fence(), "outcomes": []any{with(object{"operation": id, "outcome": outcome}, more)}})
		return k.op("e", id).str("status")
	}
	for name, x := range map[string]struct {
		ledger, owner, status string
		result                object
	}{
		"no effect after one":       {"succeeded", "rejected", "needs_review", nil},
		"failed after an effect":    {"succeeded", "failed", "failed", nil},
		"an effect after failed":    {"failed", "succeeded", "succeeded", nil},
		"rejected after failed":     {"failed", "rejected", "needs_review", nil},
		"a refused duplicate":       {"unknown", "rejected", "uncertain", nil},
		"the same":                  {"succeeded", "succeeded", "succeeded", object{"result": object{"id": number("1")}}},
		"the same without a result": {"succeeded", "succeeded", "succeeded", nil},
		"settled after unknown":     {"unknown", "succeeded", "succeeded", nil},
	} {
		k.run(name, func(k *kit) {
			o := k.declare("e", c.fence(), object{"key": name})
			id := o.str("operation")
			evidence := object{}
			if x.ledger == "succeeded" {
				evidence["result"] = object{"id": 1}
			}
			k.outcome("e", id, x.ledger, evidence)
			equal(k, report(k, id, x.owner, x.result), x.status, "status")
			if x.ledger == "failed" || x.ledger == "succeeded" {
				equal(k, len(k.op("e", id).list("contradictions")) > 0, x.ledger != x.owner, "contradictions")
			}
			want := "uncertain"
			if x.status == "succeeded" || x.status == "failed" {
				want = "settled"
			}
			equal(k, k.declare("e", c.fence(), object{"key": name}).str("disposition"), want, "declared again")
		})
	}
	for _, finding := range []object{{"finding": "found", "outcome": "rejected"}, {"finding": "found", "outcome": "failed"}, {"finding": "not_found", "fenced": true}} {
		k.run("reconcile "+finding["finding"].(string), func(k *kit) {
			id := k.declare("e", c.fence(), object{"key": k.Name()}).str("operation")
			k.outcome("e", id, "succeeded")
			k.reconcile("e", c.fence(), with(finding, object{"operation": id}))
			oneOf(k, k.op("e", id).str("status"), []string{"needs_review", "succeeded"}, "status")
		})
	}
}

// An effect that shows itself only after its attempt was settled as having none
// stops the next one, until a person has decided.
func TestLateEffectStopsTheNext(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "A", "lease_seconds": 900}})
	op := object{"key": "k"}
	id := k.declare("e", c.fence(), op).str("operation")
	reject := func(attempt int) {
		k.apply("e", k.version("e"), object{"fence": c.fence(), "outcomes": []any{object{"operation": id, "outcome": "rejected", "attempt": attempt}}})
	}
	decide := func(attempt int) {
		k.reconcile("e", c.fence(), object{"operation": id, "finding": "decided", "attempt": attempt, "outcome": "rejected", "reason": "another payment"})
	}
	reject(1)
	k.outcome("e", id, "succeeded", object{"attempt": 1})
	equal(t, k.declare("e", c.fence(), op).str("disposition"), "uncertain", "after a late effect")
	equal(t, len(k.op("e", id).list("contradictions")), 1, "contradictions")
	decide(1)
	d := k.declare("e", c.fence(), op)
	equal(t, []any{d.str("disposition"), d.int("attempt")}, []any{"go", int64(2)}, "after the verdict")
	reject(2)
	d = k.declare("e", c.fence(), op)
	equal(t, []any{d.str("disposition"), d.int("attempt")}, []any{"go", int64(3)}, "what was decided stays decided")
	// The second attempt shows itself while the third is under way.
	k.outcome("e", id, "failed", object{"attempt": 2})
	reject(3)
	equal(t, k.declare("e", c.fence(), op).str("disposition"), "uncertain", "an earlier attempt's effect")
	decide(3)
	equal(t, k.declare("e", c.fence(), op).str("disposition"), "go", "after the second verdict")
}

// A cursor belongs to its question: with another one's a listing would begin in the
// middle, and a deletion end with `done` and half of it left.
func TestCursorsBelongToTheirQuestion(t *testing.T) {
	k := start(t)
	for n := range 6 {
		k.create(fmt.Sprint("e", n), object{"thread": "th", "labels": object{"a": "b"}, "subjects": []any{"s"}})
		k.create(fmt.Sprint("f", n), object{"thread": "th2", "labels": object{"a": "c"}, "subjects": []any{"s2"}, "workflow": "wf2"})
		k.apply("e0", int64(n+1), object{"merge": object{"n": n}})
	}
	k.apply("f0", 1)
	questions := map[string][]object{
		"list":    {{"status": "created"}, {"status": "running"}, {"thread": "th"}, {"thread": "th2"}, {"workflow": "wf"}, {"label": object{"a": "b"}}, {"label": object{"a": "c"}}, {"subject": "s"}},
		"history": {{"execution": "e0"}, {"execution": "f0"}},
		"delete":  {{"subject": "s", "reason": "r"}, {"subject": "s2", "reason": "r"}, {"label": object{"a": "c"}, "reason": "r"}, {"thread": "th2", "reason": "r"}},
	}
	other := k.as("other" + k.tenant)
	for _, action := range []string{"list", "history", "delete"} {
		r := k.do(action, with(questions[action][0], object{"limit": 2}))
		cursor := r.str("cursor")
		if cursor == "" {
			t.Fatalf("%s: one page", action)
		}
		for _, q := range questions[action][1:] {
			k.refused(action, with(q, object{"cursor": cursor}), "InvalidRequest")
		}
		other.refused(action, with(questions[action][0], object{"cursor": cursor}), "InvalidRequest", "NotFound")
	}
	ids, _ := k.listed(object{"thread": "th2"})
	equal(t, len(ids), 6, "executions of the other thread")
}

// Lists that were asked for are there when they are empty: a state machine's path
// into a missing field fails.
func TestEmptyListsAreThere(t *testing.T) {
	k := start(t)
	k.create("e")
	c := k.claim("e", "w", 60)
	for what, r := range map[string]reply{"get": k.get("e"), "claim": c, "resume": k.do("resume", object{"execution": "e", "owner": "w", "lease_seconds": 60, "supersede": true})} {
		for _, list := range []string{"operations", "inbox", "artifacts"} {
			if l, ok := r.at(list).([]any); !ok || len(l) != 0 {
				t.Errorf("%s: %s is %v", what, list, r.at(list))
			}
		}
	}
	if r := k.get("e", object{"include": []any{"state"}}); r.at("operations") != nil || r.at("inbox") != nil {
		t.Error("lists that were not asked for")
	}
}

// One id cannot stand for two holds: whoever releases one would end the other.
func TestHoldIDsStandForOneReason(t *testing.T) {
	k := start(t)
	k.create("e", object{"thread": "th", "subjects": []any{"s"}})
	for _, on := range []object{{"execution": "e"}, {"thread": "th"}, {"subject": "s"}} {
		k.do("hold", with(on, object{"hold": "h", "reason": "first case"}))
		k.do("hold", with(on, object{"hold": "h", "reason": "first case", "actor": object{"kind": "human", "id": "someone else"}}))
		k.refused("hold", with(on, object{"hold": "h", "reason": "second case"}), "RequestMismatch")
		r := k.do("holds", on)
		equal(t, []any{len(r.list("holds")), r.str("holds", 0, "reason")}, []any{1, "first case"}, fmt.Sprint(on))
		k.do("release_hold", with(on, object{"hold": "h", "reason": "over"}))
		k.do("hold", with(on, object{"hold": "h", "reason": "second case"}))
		k.do("release_hold", with(on, object{"hold": "h", "reason": "over"}))
	}
}

// Evidence that contradicts itself is refused before it settles anything.
func TestCountsContradictFindings(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "A", "lease_seconds": 900}})
	id := k.declare("e", c.fence(), object{"key": "k"}).str("operation")
	c = k.claim("e", "A", 900, object{"supersede": true})
	for _, evidence := range []object{{"finding": "found", "count": 0}, {"finding": "not_found", "count": 2, "fenced": true}, {"finding": "not_found", "count": 1}} {
		f := k.refused("reconcile", object{"execution": "e", "fence": c.fence(), "evidence": []any{with(evidence, object{"operation": id})}}, "InvalidRequest")
		k.names(f, "evidence[0].count")
	}
	equal(t, k.op("e", id).str("status"), "uncertain", "status")
	k.reconcile("e", c.fence(), object{"operation": id, "finding": "not_found", "count": 0, "fenced": true})
	equal(t, k.op("e", id).str("status"), "not_executed", "status")
}

// A list in an error that is not whole says so.
func TestCutListsSaySo(t *testing.T) {
	k := start(t)
	c := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	var ops []any
	for n := range 60 {
		ops = append(ops, object{"name": "n", "args": object{}, "key": fmt.Sprint(n)})
	}
	for _, want := range []struct{ ops, open int }{{50, 50}, {10, 60}} {
		k.apply("e", k.version("e"), object{"fence": c.fence(), "operations": ops[:want.ops]})
		ops = ops[want.ops:]
		f := k.refused("complete", object{"execution": "e", "expected_version": k.version("e"), "fence": c.fence(), "outcome": "completed"}, "OperationsOpen")
		equal(t, []any{len(f.facts.list("operations")), f.facts.at("truncated") == any(true)}, []any{50, want.open > 50}, "open operations")
	}
	for _, n := range []int{10, 60} {
		for range n {
			k.apply("e", k.version("e"), object{"fence": c.fence(), "note": "n"})
		}
		f := k.refused("apply", object{"execution": "e", "expected_version": k.version("e") - int64(n), "fence": c.fence()}, "VersionConflict")
		equal(t, f.facts.at("truncated") == any(true), len(f.facts.list("changes")) < n, fmt.Sprint(n, " changes"))
		if n == 10 {
			equal(t, len(f.facts.list("changes")), 10, "changes")
		}
	}
}

// A label that has another value now does not stand for its execution any more:
// neither in a listing nor, above all, in a deletion.
func TestReplacedLabelsLetGo(t *testing.T) {
	k := start(t)
	k.create("a", object{"labels": object{"team": "red", "kind": "x"}})
	k.create("b", object{"labels": object{"team": "red"}})
	c := k.claim("a", "w", 900)
	o := k.declare("a", c.fence(), object{"key": "k"}).str("operation")
	child := k.do("create", object{"workflow": "wf", "parent": object{"execution": "a", "operation": o}}).str("execution")
	step := object{"fence": c.fence(), "labels": object{"team": "blue", "new": "1"}, "request_id": "relabel"}
	v := k.version("a")
	for _, fault := range []object{{"on": "transact", "effect": "landed"}, {"on": "transact", "effect": "crash_after"}} {
		k.faults(fault)
		k.try("apply", with(step, object{"execution": "a", "expected_version": v}))
		k.faults()
	}
	equal(t, k.apply("a", v, step).at("replayed"), any(true), "the repeat")
	listed := func(label object) []string { ids, _ := k.listed(object{"label": label}); return ids }
	equal(t, fmt.Sprint(listed(object{"team": "red"}), listed(object{"team": "blue"}), listed(object{"kind": "x"}), listed(object{"new": "1"})), "[b] [a] [a] [a]", "listings")
	k.do("delete", object{"label": object{"team": "red"}, "reason": "r"})
	k.refused("get", object{"execution": "b"}, "Deleted")
	equal(t, fmt.Sprint(k.get("a").at("labels")), fmt.Sprint(object{"team": "blue", "new": "1", "kind": "x"}), "the one that changed")
	// And back again.
	k.apply("a", k.version("a"), object{"fence": c.fence(), "labels": object{"team": "red"}})
	equal(t, fmt.Sprint(listed(object{"team": "red"}), listed(object{"team": "blue"})), "[a] []", "listings")
	k.do("delete", object{"label": object{"team": "red"}, "reason": "r"})
	for _, e := range []string{"a", child} {
		k.refused("get", object{"execution": e}, "Deleted")
	}
	equal(t, len(k.do("verify", object{}).list("findings")), 0, "findings")
}

// No deletion is done because an index lags.
func TestDeletionByThreadIsComplete(t *testing.T) {
	k := start(t)
	k.create("a", object{"thread": "T"})
	k.create("other", object{"thread": "T2"})
	k.faults(object{"on": "query", "effect": "stale", "count": 1_000_000})
	k.create("b", object{"thread": "T"})
	c := k.claim("b", "w", 900)
	o := k.declare("b", c.fence(), object{"key": "k"}).str("operation")
	child := k.do("create", object{"workflow": "wf", "parent": object{"execution": "b", "operation": o}}).str("execution")
	k.do("fork", object{"execution": "a", "at_version": 1, "new_execution": "f"})
	k.do("fork", object{"execution": "f", "at_version": 1, "new_execution": "moved", "operations": "carry"})
	equal(t, k.do("delete", object{"thread": "T", "reason": "r"}).at("done"), any(true), "done")
	k.faults()
	for _, e := range []string{"a", "b", child, "f", "moved"} {
		k.refused("get", object{"execution": e}, "Deleted")
	}
	k.get("other")
	equal(t, len(k.do("verify", object{}).list("findings")), 0, "findings")
}
