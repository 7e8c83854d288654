package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/telemetry"
)

func dispositions(r m) string {
	var out []string
	for _, o := range r["operations"].([]any) {
		out = append(out, fmt.Sprint(o.(m)["key"], ":", o.(m)["status"], ":", o.(m)["disposition"]))
	}
	return strings.Join(out, " ")
}

func TestResumePlan(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	_, f := k.owned("e1")
	k.declare("e1", f, m{"key": "found"})
	k.declare("e1", f, m{"key": "key", "on_uncertain": "same_key", "dedup_seconds": 86400})
	k.declare("e1", f, m{"key": "again", "on_uncertain": "always"})
	k.declare("e1", f, m{"key": "closed", "on_uncertain": "close"})
	k.do("signal", m{"execution": "e1", "name": "upload", "key": "1", "body": m{"x": 1}})
	k.advance(31)
	k.resolver.set("bank", `{"finding":"found","result":{"tx":1.10}}`)
	r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "nonce": "n"})
	// same_key and always are protected; the resolver is asked about all that are
	// uncertain and found each.
	if got := dispositions(r); got != "found:succeeded:settled key:succeeded:settled again:succeeded:settled closed:not_executed:settled" {
		t.Errorf("%s", got)
	}
	if r["parked"] != nil || r["owner"] != "b" || r["state"].(m)["n"] != 0.0 || len(r["inbox"].([]any)) != 1 || num(r["lease_remaining_ms"]) != 60_000 {
		t.Errorf("%v", r)
	}
	kinds := k.versions("e1")
	if got := strings.Join(kinds[len(kinds)-2:], " "); got != "claimed reconciled" {
		t.Error(got)
	}
	k.restart()
	again := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "nonce": "n"})
	if again["replayed"] != true || num(again["fence"]) != num(r["fence"]) || len(k.versions("e1")) != len(kinds) {
		t.Errorf("the same nonce: %v", again)
	}
	if k.counts[telemetry.RepeatedRequests] != 1 {
		t.Errorf("counted %v", k.counts)
	}
	k.refuses(execution.LeaseHeld, "resume", m{"execution": "e1", "owner": "c", "lease_seconds": 60, "nonce": "n3"})
}

// Protected operations go again without anybody to ask; the rest parks.
func TestResumeWithoutResolver(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	_, f := k.owned("e1")
	k.declare("e1", f, m{"key": "key", "on_uncertain": "same_key", "dedup_seconds": 86400})
	k.declare("e1", f, m{"key": "again", "on_uncertain": "always"})
	k.advance(31)
	r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30})
	if got := dispositions(r); got != "key:uncertain:go again:uncertain:go" || r["parked"] != nil {
		t.Errorf("%s %v", got, r["parked"])
	}
	k.advance(86_400)
	r = k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 30, "nonce": "n"})
	if r["parked"] != true || len(r["reasons"].([]any)) != 1 || r["owner"] != "" || k.counts[telemetry.Parked] != 1 || k.counts[telemetry.UncertainAge] != 86_431 {
		t.Errorf("%v, counted %v", r, k.counts)
	}
	reason := r["reasons"].([]any)[0].(m)
	if reason["code"] != "uncertain" || reason["name"] != "pay" || reason["detail"] != "nobody can be asked" {
		t.Errorf("%v", reason)
	}
	// The same nonce finds it parked: nobody owns it.
	if again := k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 30, "nonce": "n"}); again["parked"] != true || again["version"] != r["version"] {
		t.Errorf("%v", again)
	}
	// A parked one can be claimed all the same.
	if c := k.do("claim", m{"execution": "e1", "owner": "d", "lease_seconds": 30}); c["status"] != "running" {
		t.Errorf("%v", c)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	old := func(e, state string) {
		k.do("create", m{"execution": e, "workflow": "w", "schema": m{"name": "s", "version": 1}, "state": rawJSON(state)})
	}
	k.workflow(nil)
	for n := range 5 {
		old(fmt.Sprintf("e%d", n), `{"n":1.10,"id":9007199254740993,"thread_id":"t"}`)
	}
	old("bad", `{"n":1}`)
	k.do("create", m{"execution": "owned", "workflow": "w", "schema": m{"name": "s", "version": 1}, "state": m{"thread_id": "t"}, "claim": m{"owner": "a", "lease_seconds": 30}})
	migrations := []m{{"from": 1, "to": 2, "patch": []m{{"op": "add", "path": "/retries", "value": 3}}}, {"from": 2, "to": 3, "patch": []m{{"op": "move", "from": "/thread_id", "path": "/thread"}}}}
	k.workflow(m{"schema": m{"name": "s", "version": 3}, "migrations": migrations})

	// supports is checked before the fence moves.
	before := k.get("e0")
	k.refuses(execution.SchemaTooNew, "claim", m{"execution": "e0", "owner": "b", "lease_seconds": 30, "supports": m{"min": 0, "max": 0}})
	k.refuses(execution.MigrationFailed, "claim", m{"execution": "e0", "owner": "b", "lease_seconds": 30, "supports": m{"min": 4, "max": 5}})
	if now := k.get("e0"); now["version"] != before["version"] || now["fence"] != before["fence"] {
		t.Errorf("%v", now)
	}
	// A claim migrates only what its build cannot read.
	if c := k.do("claim", m{"execution": "e0", "owner": "b", "lease_seconds": 30, "supports": m{"min": 1, "max": 2}}); c["schema"].(m)["version"] != 1.0 {
		t.Errorf("%v", c)
	}
	if c := k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 30, "supports": m{"min": 2, "max": 2}}); c["schema"].(m)["version"] != 2.0 || c["state"].(m)["retries"] != 3.0 || num(c["lease_remaining_ms"]) != 30_000 {
		t.Errorf("%v", c)
	}
	// A resume migrates to what the workflow writes, and no further than its build
	// reads.
	if c := k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 30, "supports": m{"min": 1, "max": 2}}); c["schema"].(m)["version"] != 2.0 {
		t.Errorf("%v", c)
	}
	r := k.do("resume", m{"execution": "e3", "owner": "b", "lease_seconds": 30})
	if r["schema"].(m)["version"] != 3.0 || r["state"].(m)["thread"] != "t" {
		t.Errorf("%v", r)
	}
	p := k.do("resume", m{"execution": "bad", "owner": "b", "lease_seconds": 30})
	if p["parked"] != true || p["reasons"].([]any)[0].(m)["code"] != "migration_failed" || p["state"].(m)["n"] != 1.0 || p["schema"].(m)["version"] != 1.0 {
		t.Errorf("%v", p)
	}

	var cursor any
	migrated, failed, calls := int64(0), 0, 0
	for done := false; !done; calls++ {
		req := m{"workflow": "w", "limit": 2}
		if cursor != nil {
			req["cursor"] = cursor
		}
		r := k.do("migrate", req)
		migrated += num(r["migrated"])
		failed += len(r["failures"].([]any))
		for _, x := range r["failures"].([]any) {
			if x.(m)["execution"] != "bad" || x.(m)["code"] != "MigrationFailed" {
				t.Errorf("%v", x)
			}
		}
		cursor, done = r["cursor"], r["done"].(bool)
		if calls > 20 {
			t.Fatal("no end")
		}
	}
	// e4 is migrated; e0, e1, e2 and owned have owners, e3 is there, bad fails.
	if migrated != 1 || failed != 1 || calls < 3 || k.get("e4")["schema"].(m)["version"] != 3.0 || k.get("owned")["schema"].(m)["version"] != 1.0 {
		t.Errorf("%d migrated, %d failed, %d calls", migrated, failed, calls)
	}
	if got := k.getRaw("e4"); !strings.Contains(got, `"state":{"n":1.10,"id":9007199254740993,"retries":3,"thread":"t"}`) {
		t.Errorf("tokens: %s", got)
	}
	if k.head("e4", "schema_version") != "3" || k.get("bad")["status"] != "parked" {
		t.Error(k.head("e4", "schema_version"), k.get("bad")["status"])
	}
	// Once there is a migration that fits, the parked one goes on by itself.
	migrations[1]["patch"] = []m{{"op": "add", "path": "/thread", "value": "none"}}
	k.workflow(m{"schema": m{"name": "s", "version": 3}, "migrations": migrations})
	k.advance(61)
	k.sweep()
	found := false
	for _, in := range k.target.inputs() {
		found = found || in["execution"] == "bad"
	}
	if !found {
		t.Errorf("%v", k.target.inputs())
	}
	k.refuses(execution.NotFound, "migrate", m{"workflow": "none"})
	for _, cursor := range []string{"x", api.Cursor("migrate", "0", "")} {
		k.refuses(execution.InvalidRequest, "migrate", m{"workflow": "w", "cursor": cursor})
	}
	for _, shard := range []string{"-1", "8", "x", ""} {
		k.refuses(execution.InvalidRequest, "migrate", m{"workflow": "w", "cursor": api.Cursor(api.Listing("migrate", "bank", "w", 0), shard, "")})
	}
}

// migrator answers migrations that are functions.
type migrator func(question string) (string, error)

func (f migrator) Migrate(_ context.Context, _ string, question []byte) ([]byte, error) {
	out, err := f(string(question))
	return []byte(out), err
}

func TestMigrateByFunction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		err    error
		parked bool
		code   execution.Code
	}{
		"a state and a new name": {answer: `{"state":{"n":2.50},"renamed":[{"from":"pay","to":"transfer"}]}`},
		"no state":               {answer: `{}`, parked: true},
		"an array":               {answer: `{"state":[]}`, parked: true},
		"HTML":                   {answer: `<html>`, parked: true},
		"bad names":              {answer: `{"state":{},"renamed":[{"from":"pay","to":"a b"}]}`, parked: true},
		"two keys of one name":   {answer: `{"state":{"a":1,"a":2}}`, parked: true},
		"no answer":              {err: errors.New("secret-value"), code: execution.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			var asked string
			k.migrator = migrator(func(q string) (string, error) { asked = q; return c.answer, c.err })
			k.restart()
			k.workflow(m{"resolvers": m{"pay": m{"kind": "sandbox", "target": "bank"}}})
			r := k.do("create", m{"execution": "e1", "workflow": "w", "schema": m{"name": "s", "version": 1}, "state": rawJSON(`{"n":1.10}`), "claim": m{"owner": "a", "lease_seconds": 30}})
			op := k.declare("e1", num(r["fence"]), nil)["operation"].(string)
			k.advance(31)
			k.workflow(m{"schema": m{"name": "s", "version": 2}, "migrations": []m{{"from": 1, "to": 2, "lambda": "fn"}}})
			k.resolver.set("bank", `{"finding":"found"}`)
			req := m{"execution": "e1", "owner": "b", "lease_seconds": 60, "nonce": "n"}
			if c.code != "" {
				k.refuses(c.code, "resume", req)
				c.err, c.answer = nil, `{"state":{"n":2.50}}`
				k.migrator = migrator(func(string) (string, error) { return c.answer, nil })
				k.restart()
			}
			got := k.do("resume", req)
			if got["parked"] == true != c.parked {
				t.Fatalf("%v", got)
			}
			if !strings.Contains(asked, `"state":{"n":1.10}`) || !strings.Contains(asked, `"to":2`) {
				t.Errorf("asked %s", asked)
			}
			if c.parked {
				if g := k.get("e1"); g["schema"].(m)["version"] != 1.0 || g["status"] != "parked" {
					t.Errorf("%v", g)
				}
				return
			}
			// The resolver is found by the old name too, and the identity stays.
			if o := got["operations"].([]any)[0].(m); o["operation"] != op || o["status"] != "succeeded" {
				t.Errorf("%v", o)
			}
			if !strings.Contains(k.getRaw("e1"), `{"n":2.50}`) {
				t.Error(k.getRaw("e1"))
			}
		})
	}
}

// A child's end is evidence on its parent's operation, also when the notice of it
// was lost.
func TestChildren(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome, status string
		lost            bool
	}{{"completed", "succeeded", false}, {"failed", "failed", false}, {"cancelled", "failed", true}, {"completed", "succeeded", true}} {
		k := newKit(t)
		k.workflow(m{"resolvers": nil})
		v, f := k.owned("e1")
		op := k.declare("e1", f, nil)["operation"].(string)
		child := k.do("create", m{"workflow": "w", "parent": m{"execution": "e1", "operation": op}, "request_id": "c", "claim": m{"owner": "x", "lease_seconds": 3600}})
		k.do("suspend", m{"execution": "e1", "expected_version": v + 1, "fence": f, "wait": m{"operations": []string{op}}})
		k.advance(61)
		if k.sweep(); k.target.causes() != "" {
			t.Fatal("woken before the child ended")
		}
		if c.lost {
			k.services.Checkpoint.ChildEnded = nil
		}
		k.do("complete", m{"execution": child["execution"], "expected_version": child["version"], "fence": child["fence"], "outcome": c.outcome, "result": m{"r": 1}})
		if c.lost {
			k.advance(3600)
		}
		k.sweep()
		if got := k.target.causes(); got != "operation" {
			t.Fatalf("%+v: %q", c, got)
		}
		r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
		o := r["operations"].([]any)[0].(m)
		if o["status"] != c.status || r["parked"] != nil {
			t.Errorf("%+v: %v", c, o)
		}
		if c.outcome == "completed" && o["result"].(m)["r"] != 1.0 {
			t.Errorf("%v", o)
		}
	}
}

// After the proof that nothing happened the operation goes again, with a time to
// go: the window of its key begins anew.
func TestSameKeyAfterProof(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	o := m{"on_uncertain": "same_key", "dedup_seconds": 3600}
	op, f := k.taken("e1", o)
	key := k.do("get_operation", m{"execution": "e1", "operation": op})["provider_key"]
	k.advance(7200)
	k.resolver.set("bank", `{"finding":"not_found"}`)
	k.do("reconcile", m{"execution": "e1", "fence": f})
	d := k.declare("e1", f, o)
	by, err := time.Parse(time.RFC3339, d["send_by"].(string))
	if d["disposition"] != "go" || num(d["attempt"]) != 2 || d["provider_key"] != key || err != nil || by.Sub(k.engine.Now()) != 55*time.Minute {
		t.Errorf("%v", d)
	}
}

// A target that was given a version resumes a parked execution although asking
// for evidence adds an entry to it.
func TestResumeParkedAtVersion(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	_, f := k.owned("e1")
	op := k.declare("e1", f, m{"key": "ask"})["operation"].(string)
	k.declare("e1", f, m{"key": "protected", "on_uncertain": "always"})
	k.advance(31)
	k.resolver.set("bank", `{"finding":"in_progress"}`)
	if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30}); r["parked"] != true {
		t.Fatalf("%v", r)
	}
	k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "succeeded"})
	k.sweep()
	in := k.target.inputs()
	if len(in) != 1 || in[0]["cause"] != "operation" {
		t.Fatalf("%v", in)
	}
	r := k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 30, "expected_version": in[0]["version"]})
	if r["owner"] != "c" || r["parked"] != nil || num(r["version"]) <= num(in[0]["version"]) {
		t.Errorf("%v", r)
	}
	k.refuses(execution.VersionConflict, "resume", m{"execution": "e1", "owner": "d", "lease_seconds": 30, "expected_version": in[0]["version"]})
}
