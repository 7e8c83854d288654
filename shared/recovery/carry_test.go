package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// The right to act moves: the parent is out for good, the child knows every
// operation, and evidence that reaches the parent comes to the child.
func TestCarry(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	k.services.Checkpoint.Carry = k.services.Recovery.Carry
	r := k.do("create", m{"execution": "e1", "workflow": "w", "claim": m{"owner": "a", "lease_seconds": 30}, "state": m{"n": 0}, "labels": m{"case": "7"}, "subjects": []string{"s"}, "request_id": "c"})
	f := num(r["fence"])
	done := k.declare("e1", f, m{"key": "done"})
	open := k.declare("e1", f, m{"key": "open"})
	started := k.declare("e1", f, m{"key": "started", "on_uncertain": "close"})
	closed := k.declare("e1", f, m{"key": "closed", "on_uncertain": "close"})
	heard := k.declare("e1", f, m{"key": "heard"})
	id := func(o m) string { return o["operation"].(string) }
	k.do("record_outcome", m{"execution": "e1", "operation": id(done), "outcome": "succeeded", "result": m{"tx": 1}})
	k.do("reconcile", m{"execution": "e1", "fence": f})
	k.do("record_outcome", m{"execution": "e1", "operation": id(heard), "outcome": "succeeded", "provider_ref": "p"})
	k.do("start_operation", m{"execution": "e1", "operation": id(started), "attempt": 1, "fence": f, "nonce": "n"})

	k.services.Recovery.Lifetime = func(context.Context, *execution.State) (int64, int64, error) { return 0, 1_800_000_000_000, nil }
	fork := m{"execution": "e1", "at_version": 1, "new_execution": "e2", "operations": "carry", "request_id": "f"}
	got := k.do("fork", fork)
	if k.head("e2", "rdue") != "1800000000000" {
		t.Error(k.head("e2", "rdue"))
	}
	if got["execution"] != "e2" || got["status"] != "created" || got["parent"].(m)["carry"] != true || got["parent"].(m)["execution"] != "e1" {
		t.Fatalf("%v", got)
	}
	k.restart()
	k.services.Checkpoint.Carry = k.services.Recovery.Carry
	if again := k.do("fork", fork); again["replayed"] != true || again["execution"] != "e2" {
		t.Errorf("%v", again)
	}
	p := k.get("e1")
	if p["status"] != "moved" || p["moved_to"] != "e2" || k.head("e1", "due") != "" {
		t.Errorf("%v", p)
	}
	if facts := k.refuses(execution.ExecutionClosed, "claim", m{"execution": "e1", "owner": "b", "lease_seconds": 30}); facts["moved_to"] != "e2" {
		t.Errorf("%v", facts)
	}
	k.refuses(execution.ExecutionClosed, "start_operation", m{"execution": "e1", "operation": id(closed), "attempt": 1, "fence": f, "nonce": "late"})
	k.advance(100)
	if k.sweep(); k.target.causes() != "" {
		t.Errorf("handed over %q", k.target.causes())
	}
	// Evidence that comes to the parent is the child's.
	k.do("record_outcome", m{"execution": "e1", "operation": id(open), "outcome": "succeeded", "result": m{"late": 1}})
	if k.status("e2", id(open)) != "succeeded" {
		t.Error(k.status("e2", id(open)))
	}
	c := k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 60})
	if c["parked"] != true || len(c["reasons"].([]any)) != 1 || c["reasons"].([]any)[0].(m)["operation"] != id(started) {
		t.Fatalf("%v", c)
	}
	if c["state"].(m)["n"] != 0.0 || c["labels"].(m)["case"] != "7" {
		t.Errorf("%v", c)
	}
	for o, want := range map[string]string{id(done): "succeeded", id(open): "succeeded", id(heard): "succeeded", id(closed): "not_executed", id(started): "uncertain"} {
		if st := k.status("e2", o); st != want {
			t.Errorf("%s: %s, want %s", o, st, want)
		}
	}
	k.do("record_outcome", m{"execution": "e1", "operation": id(started), "outcome": "failed"})
	c = k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 60})
	if c["parked"] != nil {
		t.Fatalf("%v", c)
	}
	// The same calls are the same operations, under the same provider keys.
	d := k.declare("e2", num(c["fence"]), m{"key": "done"})
	if d["operation"] != done["operation"] || d["disposition"] != "settled" || d["provider_key"] != done["provider_key"] {
		t.Errorf("%v", d)
	}
	d = k.declare("e2", num(c["fence"]), m{"key": "closed", "on_uncertain": "close"})
	if d["operation"] != closed["operation"] || d["disposition"] != "start" || num(d["attempt"]) != 2 {
		t.Errorf("%v", d)
	}
	k.refuses(execution.ExecutionClosed, "fork", m{"execution": "e1", "at_version": 1, "new_execution": "e3", "operations": "carry", "request_id": "g"})
}

// Large results lie beside the journal: those of operations that are settled and
// those that only the ledger has come along, and stay when the parent goes.
func TestCarriedResults(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	k.services.Checkpoint.Carry = k.services.Recovery.Carry
	f := num(k.do("create", m{"execution": "e1", "workflow": "w", "claim": m{"owner": "a", "lease_seconds": 30}})["fence"])
	ops := map[string]string{}
	for _, key := range []string{"settled", "heard"} {
		ops[key] = k.declare("e1", f, m{"key": key})["operation"].(string)
		k.do("record_outcome", m{"execution": "e1", "operation": ops[key], "outcome": "succeeded", "result": m{"text": key + strings.Repeat("x", 20_000)}})
		if key == "settled" {
			k.do("reconcile", m{"execution": "e1", "fence": f})
		}
	}
	k.do("fork", m{"execution": "e1", "at_version": 1, "new_execution": "e2", "operations": "carry", "request_id": "f"})
	k.do("delete", m{"execution": "e1", "reason": "r"})
	k.restart()
	c := k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 60})
	if c["parked"] != nil {
		t.Fatalf("%v", c)
	}
	for key, op := range ops {
		o := k.do("get_operation", m{"execution": "e2", "operation": op})
		result, _ := o["result"].(m)
		if text, _ := result["text"].(string); o["outcome"] != "succeeded" || text != key+strings.Repeat("x", 20_000) {
			t.Errorf("%s: %.200v", key, o)
		}
	}
}

// A child's own fence may be the number that the parent's was: its operations
// stay uncertain all the same.
func TestCarriedIsUncertain(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	k.services.Checkpoint.Carry = k.services.Recovery.Carry
	k.do("create", m{"execution": "e1", "workflow": "w"})
	f := num(k.do("claim", m{"execution": "e1", "owner": "a", "lease_seconds": 30})["fence"])
	o := k.declare("e1", f, m{"on_uncertain": "close"})
	k.do("fork", m{"execution": "e1", "at_version": 1, "new_execution": "e2", "operations": "carry", "request_id": "f"})
	c := k.do("claim", m{"execution": "e2", "owner": "b", "lease_seconds": 60})
	if num(c["fence"]) != f {
		t.Fatalf("fence %v, the parent's was %d", c["fence"], f)
	}
	if st := k.status("e2", o["operation"].(string)); st != "uncertain" {
		t.Error(st)
	}
	if d := k.declare("e2", f, m{"on_uncertain": "close"}); d["disposition"] != "uncertain" {
		t.Errorf("%v", d)
	}
}

func TestCarryRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	k.services.Checkpoint.Carry = k.services.Recovery.Carry
	v, f := k.owned("e1")
	var ops []m
	for i := range 41 {
		ops = append(ops, m{"name": "pay", "args": m{"i": i}})
	}
	k.do("apply", m{"execution": "e1", "expected_version": v, "fence": f, "operations": ops})
	k.owned("taken")
	fork := func(e, to string) m {
		return m{"execution": e, "at_version": 1, "new_execution": to, "operations": "carry", "request_id": "f" + e + to}
	}
	if facts := k.refuses(execution.OperationsOpen, "fork", fork("e1", "x")); num(facts["limit"]) != 40 {
		t.Errorf("%v", facts)
	}
	k.owned("e2")
	k.refuses(execution.AlreadyExists, "fork", fork("e2", "taken"))
	k.refuses(execution.NotFound, "fork", fork("none", "x"))
	k.do("halt", m{"execution": "e2", "reason": "r"})
	k.refuses(execution.Halted, "fork", fork("e2", "x"))
	if k.get("taken")["status"] != "running" || k.get("e1")["status"] != "running" {
		t.Error("a refused fork changed something")
	}
}

// Struck at every call, and repeated: one child, nothing lost.
func TestCarryStruck(t *testing.T) {
	t.Parallel()
	for _, effect := range []string{"lost", "landed", "crash_before", "crash_after"} {
		for nth := 1; ; nth++ {
			k := newKit(t)
			k.workflow(m{"resolvers": nil})
			_, f := k.owned("e1")
			o := k.declare("e1", f, nil)["operation"].(string)
			h := k.declare("e1", f, m{"key": "heard"})["operation"].(string)
			k.do("record_outcome", m{"execution": "e1", "operation": h, "outcome": "succeeded"})
			k.restart()
			k.services.Checkpoint.Carry = k.services.Recovery.Carry
			k.engine.Mark()
			k.faults(memory.Fault{On: "*", Nth: nth, Effect: effect})
			fork := m{"execution": "e1", "at_version": 1, "new_execution": "e2", "operations": "carry", "request_id": "f"}
			_, err := k.try("fork", fork)
			k.faults()
			struck := false
			for _, c := range k.engine.Log() {
				struck = struck || c.Outcome == effect
			}
			k.restart()
			k.services.Checkpoint.Carry = k.services.Recovery.Carry
			if r := k.do("fork", fork); r["execution"] != "e2" || err == nil && r["replayed"] != true {
				t.Fatalf("%s %d: %v, %v", effect, nth, r, err)
			}
			k.do("record_outcome", m{"execution": "e1", "operation": o, "outcome": "succeeded"})
			if k.status("e2", o) != "succeeded" || k.status("e2", h) != "succeeded" || fmt.Sprint(k.versions("e2")) != "[created]" || k.get("e1")["status"] != "moved" {
				t.Fatalf("%s %d: %s %s %v", effect, nth, k.status("e2", o), k.status("e2", h), k.versions("e2"))
			}
			if !struck {
				break
			}
		}
	}
}

// An execution that is the effect of a carried operation was made under the
// parent's name; who carries on finds it there, also when its parent is gone.
func TestCarriedChild(t *testing.T) {
	t.Parallel()
	for _, maker := range []string{"e1", "e2"} {
		k := newKit(t)
		k.workflow(m{"resolvers": nil})
		_, f := k.owned("e1")
		op := k.declare("e1", f, nil)["operation"].(string)
		var child m
		for _, e := range []string{"e1", "e2"} {
			if e == maker {
				child = k.do("create", m{"workflow": "w", "parent": m{"execution": e, "operation": op}, "request_id": "c", "claim": m{"owner": "x", "lease_seconds": 3600}})
			}
			to := map[string]string{"e1": "e2", "e2": "e3"}[e]
			k.do("fork", m{"execution": e, "at_version": k.get(e)["version"], "new_execution": to, "operations": "carry", "request_id": "f" + e})
		}
		if r := k.do("resume", m{"execution": "e3", "owner": "b", "lease_seconds": 60}); r["parked"] != true {
			t.Fatalf("before the child ended: %v", r)
		}
		k.do("delete", m{"execution": maker, "reason": "r", "request_id": "d"})
		k.do("complete", m{"execution": child["execution"], "expected_version": child["version"], "fence": child["fence"], "outcome": "completed", "result": m{"r": 1}})
		k.advance(3600)
		r := k.do("resume", m{"execution": "e3", "owner": "b", "lease_seconds": 60})
		if o := r["operations"].([]any)[0].(m); r["parked"] == true || o["status"] != "succeeded" {
			t.Fatalf("made by %s: %v", maker, r)
		}
	}
}

// A child that is carried on ends as the last of those that carry it on, also when
// the notice of it was lost.
func TestChildThatMoved(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		k := newKit(t)
		k.workflow(m{"resolvers": nil})
		v, f := k.owned("e1")
		op := k.declare("e1", f, nil)["operation"].(string)
		at := k.do("create", m{"workflow": "w", "parent": m{"execution": "e1", "operation": op}, "request_id": "c"})["execution"]
		k.do("suspend", m{"execution": "e1", "expected_version": v + 1, "fence": f, "wait": m{"operations": []string{op}}})
		for _, to := range []string{"c2", "c3"} {
			k.do("fork", m{"execution": at, "at_version": 1, "new_execution": to, "operations": "carry", "request_id": to})
			at = to
		}
		k.do("fork", m{"execution": at, "at_version": 1, "new_execution": "aside", "request_id": "aside"}) // carries nothing on
		aside := k.do("claim", m{"execution": "aside", "owner": "x", "lease_seconds": 60})
		k.do("complete", m{"execution": "aside", "expected_version": aside["version"], "fence": aside["fence"], "outcome": "failed"})
		k.advance(61)
		if k.sweep(); k.target.causes() != "" {
			t.Fatalf("woken before the child ended: %s", k.target.causes())
		}
		if lost {
			k.services.Checkpoint.ChildEnded = nil
		}
		c := k.do("claim", m{"execution": at, "owner": "x", "lease_seconds": 60})
		k.do("complete", m{"execution": at, "expected_version": c["version"], "fence": c["fence"], "outcome": "completed", "result": m{"r": 1}})
		if lost {
			k.advance(3600)
		}
		k.sweep()
		if got := k.target.causes(); got != "operation" {
			t.Fatalf("lost %v: %q", lost, got)
		}
		r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
		if o := r["operations"].([]any)[0].(m); o["status"] != "succeeded" || r["parked"] != nil || o["result"].(m)["r"] != 1.0 {
			t.Errorf("lost %v: %v", lost, o)
		}
	}
}

// What a carried operation had sent went out under the parent's fence, which a
// system that has seen the child's does not refuse: `fenced` proves nothing.
func TestCarriedIsNotFenced(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	_, f := k.owned("e1")
	op := k.declare("e1", f, nil)["operation"].(string)
	k.do("fork", m{"execution": "e1", "at_version": k.get("e1")["version"], "new_execution": "e2", "operations": "carry", "request_id": "f"})
	k.resolver.set("bank", `{"finding":"not_found","fenced":true}`)
	if r := k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 60}); r["parked"] != true {
		t.Fatalf("by the resolver: %v", r)
	}
	c := k.do("claim", m{"execution": "e2", "owner": "b", "lease_seconds": 60})
	k.do("reconcile", m{"execution": "e2", "fence": c["fence"], "evidence": []m{{"operation": op, "finding": "not_found", "fenced": true}}})
	if st := k.status("e2", op); st != "uncertain" {
		t.Fatalf("by the owner: %s", st)
	}
}
