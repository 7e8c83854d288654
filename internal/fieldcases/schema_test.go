package fieldcases

import (
	"fmt"
	"slices"
	"testing"
)

// oldForm reads records of an older form: values that were JSON text in strings,
// and a field that was renamed.
func TestM1OldRecordAfterUpgrade(t *testing.T) {
	k := start(t)
	const old = `{"source":"\"loop\"","step":15,"parents":{},"thread_id":"\"t-1\"","big":9007199254740993}`
	want := exactly(t, []byte(`{"source":"\"loop\"","step":15,"parents":{},"thread":"\"t-1\"","big":9007199254740993,"retries":3}`))
	one := k.workflow("wm")
	for n := range 6 {
		v := k.create(fmt.Sprintf("old%d", n), one, object{"state": raw(old)}).version()
		for range n % 4 {
			v = k.apply(fmt.Sprintf("old%d", n), v, object{"merge": object{"step": 15}, "note": "n"}).version()
		}
	}
	two := object{"workflow": "wm", "schema": object{"name": "s", "version": 2}}
	k.do("set_workflow", object{"workflow": object{"name": "wm", "schema": object{"name": "s", "version": 2}, "migrations": migrate3[:1]}})
	k.create("mid", two, object{"state": raw(`{"source":"\"loop\"","step":15,"parents":{},"thread_id":"\"t-1\"","big":9007199254740993,"retries":3}`)})
	k.do("set_workflow", object{"workflow": object{"name": "wm", "schema": object{"name": "s", "version": 3}, "migrations": migrate3}})
	k.create("new", object{"workflow": "wm", "schema": object{"name": "s", "version": 3}, "state": raw(`{"thread":"t","retries":9}`)})
	k.create("bad", one, object{"state": raw(`{"no":"thread_id"}`)})
	entries := func(execution string) []string {
		t.Helper()
		var out []string
		for _, i := range k.rest().items(k.tenant, execution) {
			if sk := attr(i, "sk"); sk[:2] == "j#" {
				out = append(out, string(encode(i)))
			}
		}
		return out
	}
	before := entries("old0")
	g := k.get("old0")
	equal(t, []any{g.int("schema", "version"), g.at("state")}, []any{int64(1), exactly(t, []byte(old))}, "before it is migrated")
	equal(t, entries("old0"), before, "reading writes nothing")
	answers := k.together(2, func(i int) (reply, *failure) {
		return k.try("resume", object{"execution": "old1", "owner": fmt.Sprint("w", i), "lease_seconds": 60})
	})
	won, _ := winners(answers)
	equal(t, len(won), 1, "resumes during the migration")
	equal(t, answers[won[0]].reply.at("state"), want, "the winner's plan")
	equal(t, k.state("old1"), want, "state after resume")
	migrated := 0
	for _, e := range k.history("old1") {
		if e.(object)["kind"] == any("migrated") {
			migrated++
		}
	}
	equal(t, migrated, 1, "one migration entry")
	was := k.get("bad")
	r := k.do("migrate", object{"workflow": "wm", "to": 3, "limit": 100})
	failures := r.list("failures")
	equal(t, len(failures), 1, "failures")
	equal(t, []any{r.at("failures", 0, "execution"), r.at("failures", 0, "code")}, []any{"bad", "MigrationFailed"}, "the one without the field")
	equal(t, k.state("bad"), exactly(t, []byte(`{"no":"thread_id"}`)), "a failed one keeps its bytes")
	k.do("migrate", object{"workflow": "wm", "to": 3, "limit": 100})
	bad := k.get("bad")
	equal(t, []any{bad.int("schema", "version"), bad.version(), bad.str("status"), int64(len(k.history("bad")))}, []any{int64(1), was.version(), was.str("status"), was.version()}, "and its schema, version and status, however often it is tried")
	plan := k.do("resume", object{"execution": "bad", "owner": "w", "lease_seconds": 60})
	equal(t, []any{plan.at("parked"), k.get("bad").str("parked_reasons", 0, "code")}, []any{true, "migration_failed"}, "resumed, it waits for somebody")
	for _, e := range []string{"old0", "old2", "old3", "old4", "old5", "mid"} {
		g := k.get(e)
		equal(t, []any{g.int("schema", "version"), g.at("state")}, []any{int64(3), want}, e+" after migrate")
		equal(t, int64(len(k.history(e))), g.version(), e+": a mixed history")
	}
	equal(t, k.state("new"), exactly(t, []byte(`{"thread":"t","retries":9}`)), "a new one is left alone")
	v := k.version("old0")
	k.do("migrate", object{"workflow": "wm", "to": 3})
	equal(t, k.version("old0"), v, "migrating twice changes nothing")
	equal(t, k.get("old0", object{"version": 1}).at("state"), exactly(t, []byte(old)), "the old version keeps its form")
	ids, _ := k.listed(object{"workflow": "wm"})
	equal(t, ids, []string{"bad", "mid", "new", "old0", "old1", "old2", "old3", "old4", "old5"}, "list")
	k.run("too new", func(k *kit) {
		k.refused("claim", object{"execution": "new", "owner": "w", "lease_seconds": 60, "supports": object{"min": 1, "max": 2}}, "SchemaTooNew")
		g := k.get("new")
		equal(k, []any{g.fence(), g.version()}, []any{int64(0), int64(1)}, "the fence did not move")
		k.claim("new", "w", 60, object{"supports": object{"min": 1, "max": 3}})
	})
}

func TestM3UnknownStatusFailsOpen(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	odd := []any{"suspended_v2", nil, omit{}, "", 7, "Completed", "completed ", "unknown", "COMPLETED"}
	type head struct {
		execution string
		item      object
	}
	var heads []head
	for n, s := range odd {
		for _, from := range []string{"open", "ended"} {
			execution := fmt.Sprintf("%s%d", from, n)
			k.create(execution, object{"policy": "p", "thread": "T", "state": object{"n": n}})
			if from == "ended" {
				k.finish(execution)
			}
			item := with(k.rest().item(k.tenant, execution, "head"))
			switch s := s.(type) {
			case omit:
				delete(item, "status")
			case nil:
				item["status"] = object{"NULL": true}
			case string:
				item["status"] = object{"S": s}
			case int:
				item["status"] = object{"N": fmt.Sprint(s)}
			}
			k.load(object{"items": []any{item}})
			heads = append(heads, head{execution, item})
		}
	}
	finished := []string{"completed", "failed", "cancelled", "archived", "moved"}
	for _, h := range heads {
		r, f := k.try("get", object{"execution": h.execution})
		if f == nil && slices.Contains(finished, r.str("status")) {
			t.Fatalf("%s is reported as %s", h.execution, r.str("status"))
		}
		if f != nil {
			equal(t, f.code, "Integrity", "get")
		}
		v := int64(1)
		for action, fields := range map[string]object{"claim": {"owner": "w", "lease_seconds": 60}, "resume": {"owner": "w", "lease_seconds": 60}, "archive": {}, "halt": {"reason": "r"},
			"suspend": {"expected_version": v, "wait": object{}}, "complete": {"expected_version": v, "outcome": "completed"}} {
			f := k.refused(action, with(fields, object{"execution": h.execution}), "Integrity", "LeaseLost", "ExecutionOpen", "ExecutionClosed", "InvalidRequest")
			if action == "claim" || action == "resume" {
				equal(t, f.code, "Integrity", action)
			}
		}
	}
	for _, s := range finished {
		got, _ := k.listed(object{"status": s})
		equal(t, got, []string{}, "list "+s)
	}
	entries := func() (n int64) {
		for _, h := range heads {
			n += k.rest().tip(k.tenant, h.execution)
		}
		return n
	}
	before := entries()
	k.wait(400 * day)
	k.sweeps(3)
	for _, h := range heads {
		item := k.rest().item(k.tenant, h.execution, "head")
		if item == nil {
			t.Fatalf("%s was removed as finished", h.execution)
		}
		equal(t, item["status"], h.item["status"], h.execution+": raw status after sweeps")
	}
	equal(t, entries(), before, "entries after sweeps")
	k.run("an outcome nobody knows", func(k *kit) {
		c := k.create("op", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		o := k.declare("op", c.fence(), object{"key": "k"}).str("operation")
		k.outcome("op", o, "unknown")
		for _, i := range k.rest().items(k.tenant, "op") {
			if sk := attr(i, "sk"); len(sk) > 3 && sk[:3] == "op#" {
				item := with(i.(object), object{"outcome": object{"S": "maybe"}})
				k.load(object{"items": []any{item}})
			}
		}
		_, f := k.try("reconcile", object{"execution": "op", "fence": c.fence()})
		if f != nil {
			equal(k, f.code, "Integrity", "reconcile")
		} else {
			oneOf(k, k.op("op", o).str("status"), append(uncertain, "needs_review"), "status")
		}
		k.refused("complete", object{"execution": "op", "expected_version": k.rest().tip(k.tenant, "op"), "fence": c.fence(), "outcome": "completed"}, "OperationsOpen", "Integrity")
	})
	k.run("an outcome nobody may send", func(k *kit) {
		c := k.create("op2", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		o := k.declare("op2", c.fence(), object{"key": "k"}).str("operation")
		for _, bad := range []any{"maybe", "", "Succeeded", "SUCCEEDED", "succeeded ", nil, 1, true, []any{"succeeded"}} {
			k.refused("record_outcome", object{"execution": "op2", "operation": o, "outcome": bad}, "InvalidRequest")
			k.refused("apply", object{"execution": "op2", "expected_version": 2, "fence": c.fence(), "then": object{"complete": object{"outcome": bad}}}, "InvalidRequest")
		}
	})
}

// tip is the newest version among the entries at rest.
func (r rest) tip(tenant, execution string) int64 {
	n := int64(0)
	for _, i := range r.items(tenant, execution) {
		if sk := attr(i, "sk"); len(sk) == 22 && sk[:2] == "j#" {
			n++
		}
	}
	return n
}

func TestM5RenamedStepOrType(t *testing.T) {
	k := start(t)
	k.create("e", k.workflow("wr"), object{"state": object{"thread_id": "t"}})
	c := k.claim("e", "w", 30)
	step := object{"name": "fetch_weather", "args": object{"city": "nyc"}, "key": "op1"}
	o := k.declare("e", c.fence(), step, object{"task": "STEP"}).str("operation")
	before, raw := string(k.op("e", o).text), k.rest().raw(k.tenant, "e")
	for _, other := range []object{{"name": "wait"}, {"name": "get_weather"}, {"args": object{"city": "sf"}}} {
		f := k.refused("apply", object{"execution": "e", "expected_version": k.version("e"), "fence": c.fence(), "task": "STEP", "operations": []any{with(step, other)}}, "OperationMismatch")
		k.names(f, o)
	}
	equal(t, string(k.op("e", o).text), before, "the operation after mismatches")
	equal(t, k.rest().raw(k.tenant, "e"), raw, "items after mismatches")
	k.do("release", object{"execution": "e", "owner": "w", "fence": c.fence()})
	k.do("set_workflow", object{"workflow": object{"name": "wr", "schema": object{"name": "s", "version": 3}, "migrations": migrate3}})
	k.do("migrate", object{"workflow": "wr", "to": 3})
	d := k.claim("e", "w2", 60)
	equal(t, d.str("operations", 0, "operation"), o, "a step that nobody declares any more is listed")
	equal(t, d.at("state"), any(object{"thread": "t", "retries": number("3")}), "the migrated state")
	k.reconcile("e", d.fence(), object{"operation": o, "finding": "found", "count": 1, "result": object{"t": 3}})
	r := k.op("e", o)
	equal(t, []any{r.at("outcome"), r.at("result")}, []any{"succeeded", object{"t": number("3")}}, "reconciled by its identity")
	again := k.declare("e", d.fence(), step, object{"task": "STEP"})
	equal(t, []string{again.str("operation"), again.str("disposition")}, []string{o, "settled"}, "declared again after the migration")
	// Another task is another operation.
	other := k.declare("e", d.fence(), step, object{"task": "WAIT"})
	if other.str("operation") == o {
		t.Fatal("two tasks share one operation")
	}
}
