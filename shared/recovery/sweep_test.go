package recovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// A dead owner's execution is handed over once per alarm, and whoever is started
// claims it with the version that it was given.
func TestHandOverLease(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"schema": m{"name": "s", "version": 1}})
	v, _ := k.owned("e1")
	k.advance(29)
	if r := k.sweep(); num(r["handed_over"]) != 0 {
		t.Errorf("a live one: %v", r)
	}
	k.advance(1)
	if r := k.sweep(); num(r["handed_over"]) != 1 || len(r["failures"].([]any)) != 0 {
		t.Errorf("%v", r)
	}
	for range 3 {
		if r := k.sweep(); num(r["handed_over"]) != 0 {
			t.Errorf("again at once: %v", r)
		}
	}
	in := k.target.inputs()[0]
	if len(in) != 7 || in["schema"].(m)["version"] != 1.0 || in["tenant"] != tenant || in["execution"] != "e1" || in["workflow"] != "w" || num(in["version"]) != v || in["cause"] != "lease" || in["handover"] != 1.0 {
		t.Errorf("%v", in)
	}
	// The target died before its claim: the next one has another name.
	k.advance(61)
	k.sweep()
	if n := len(k.target.started); n != 2 || k.target.started[0].Name == k.target.started[1].Name || k.target.started[0].Kind != "sandbox" || k.target.started[0].ARN != "machine" {
		t.Errorf("%+v", k.target.started)
	}
	r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30, "expected_version": in["version"]})
	k.refuses(execution.VersionConflict, "resume", m{"execution": "e1", "owner": "c", "lease_seconds": 30, "expected_version": in["version"]})
	if k.counts[telemetry.RecoveryDelay] != 61 || k.counts[telemetry.RecoverySuccess] != 2 || k.counts[telemetry.StateConflicts] != 1 {
		t.Errorf("counted %v", k.counts)
	}
	// Progress renews without touching the head: the alarm finds it and is set anew.
	k.advance(20)
	k.do("apply", m{"execution": "e1", "expected_version": r["version"], "fence": r["fence"], "state": m{"n": 1}})
	k.advance(11)
	if s := k.sweep(); num(s["handed_over"]) != 0 || len(k.target.started) != 2 {
		t.Errorf("live by its progress: %v", s)
	}
	if due := k.head("e1", "due"); due != fmt.Sprint(k.engine.Now().UnixMilli()+19_000) {
		t.Errorf("due %s at %d", due, k.engine.Now().UnixMilli())
	}
	k.advance(19)
	if s := k.sweep(); num(s["handed_over"]) != 1 {
		t.Errorf("%v", s)
	}
}

func TestHandOverNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workflow func(k *kit)
		reason   string
	}{
		"never set": {func(*kit) {}, "no_workflow"},
		"no target": {func(k *kit) { k.workflow(m{"resume_target": nil}) }, "no_resume_target"},
	} {
		k := newKit(t)
		c.workflow(k)
		k.owned("e1")
		k.advance(31)
		if r := k.sweep(); num(r["parked"]) != 1 {
			t.Errorf("%s: %v", name, r)
		}
		g := k.get("e1")
		if g["status"] != "parked" || g["owner"] != "" || g["parked_reasons"].([]any)[0].(m)["code"] != c.reason {
			t.Errorf("%s: %v", name, g)
		}
		for range 5 {
			k.advance(3601)
			if r := k.sweep(); num(r["parked"])+num(r["handed_over"]) != 0 {
				t.Errorf("%s: %v", name, r)
			}
		}
		if k.get("e1")["version"] != g["version"] || k.head("e1", "due") == "" {
			t.Errorf("%s: version %v, due %s", name, k.get("e1")["version"], k.head("e1", "due"))
		}
		// By a call it is resumed all the same, and once there is a target by itself.
		k.workflow(nil)
		k.advance(3601)
		k.sweep()
		if k.target.causes() == "" {
			t.Errorf("%s: not handed over", name)
		}
		if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30}); r["owner"] != "b" {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// An execution that dies again and again without progress parks; one that makes
// progress does not.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"max_recoveries": 3})
	k.owned("dies")
	k.owned("works")
	for round := range 6 {
		k.advance(120)
		k.sweep()
		for _, e := range []string{"dies", "works"} {
			r, err := k.try("resume", m{"execution": e, "owner": fmt.Sprint(round), "lease_seconds": 30})
			if err != nil {
				t.Fatal(err)
			}
			if e == "dies" && round == 2 {
				k.do("renew", m{"execution": e, "owner": r["owner"], "fence": r["fence"], "lease_seconds": 60})
			}
			if e == "works" {
				k.do("apply", m{"execution": e, "expected_version": r["version"], "fence": r["fence"], "state": m{"round": round}})
			}
			if e == "dies" && round == 2 {
				k.advance(120)
				k.sweep()
				if g := k.get(e); g["status"] != "parked" || g["parked_reasons"].([]any)[0].(m)["code"] != "crash_loop" {
					t.Fatalf("%v", g)
				}
				k.advance(7200)
				if k.sweep(); k.get(e)["status"] != "parked" {
					t.Fatal("left the park by itself")
				}
			}
		}
	}
	if g := k.get("works"); g["status"] != "running" {
		t.Errorf("%v", g)
	}
}

// Every wait has an alarm, and no wake-up is lost whichever of evidence and
// suspension came first.
func TestWaits(t *testing.T) {
	t.Parallel()
	type world struct {
		k    *kit
		op   string
		wait func(w m)
	}
	for _, c := range []struct {
		name  string
		do    func(w world)
		cause string
		after float64 // seconds until it must be woken
	}{
		{"until", func(w world) {
			w.wait(m{"until": w.k.engine.Now().Add(90 * time.Second).Format("2006-01-02T15:04:05.000Z")})
		}, "until", 91},
		{"an operation, after", func(w world) {
			w.wait(m{"operations": []string{w.op}})
			w.k.do("record_outcome", m{"execution": "e1", "operation": w.op, "outcome": "succeeded"})
		}, "operation", 0},
		{"an operation, before", func(w world) {
			w.k.do("record_outcome", m{"execution": "e1", "operation": w.op, "outcome": "succeeded"})
			w.wait(m{"operations": []string{w.op}})
		}, "operation", 0},
		{"an operation that is only in progress", func(w world) {
			w.wait(m{"operations": []string{w.op}})
			w.k.do("record_outcome", m{"execution": "e1", "operation": w.op, "outcome": "in_progress"})
		}, "", 7200},
		{"an operation by its resolver's evidence", func(w world) {
			w.wait(m{"operations": []string{w.op}})
			w.k.do("reconcile", m{"execution": "e1", "evidence": []m{{"operation": w.op, "finding": "found"}}})
		}, "operation", 0},
		{"a signal, after", func(w world) {
			w.wait(m{"signals": []string{"upload"}})
			w.k.do("signal", m{"execution": "e1", "name": "upload", "key": "1"})
		}, "signal", 0},
		{"a signal, before", func(w world) {
			w.k.do("signal", m{"execution": "e1", "name": "upload", "key": "1"})
			w.wait(m{"signals": []string{"upload"}})
		}, "signal", 0},
		{"another signal", func(w world) {
			w.wait(m{"signals": []string{"upload"}})
			w.k.do("signal", m{"execution": "e1", "name": "other", "key": "1"})
		}, "", 7200},
		{"evidence whose notice was lost", func(w world) {
			w.wait(m{"operations": []string{w.op}})
			w.k.faults(memory.Fault{On: "update", Match: "/head", Nth: 1, Count: 100, Effect: "lost"})
			_, _ = w.k.try("record_outcome", m{"execution": "e1", "operation": w.op, "outcome": "succeeded"})
			w.k.faults()
		}, "operation", 61},
		{"a verdict", func(w world) {
			w.wait(m{"signals": []string{"upload"}})
			w.k.do("reconcile", m{"execution": "e1", "evidence": []m{{"operation": w.op, "finding": "decided", "attempt": 1, "outcome": "succeeded", "reason": "r"}}})
		}, "verdict", 0},
		{"nothing awaited", func(w world) { w.wait(m{"waiting_for": m{"a": 1}}) }, "", 7200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.workflow(m{"resolvers": nil})
			_, f := k.owned("e1")
			w := world{k: k, op: k.declare("e1", f, nil)["operation"].(string)}
			w.wait = func(wait m) {
				k.do("suspend", m{"execution": "e1", "expected_version": k.get("e1")["version"], "fence": f, "wait": wait})
			}
			c.do(w)
			k.restart()
			k.advance(c.after)
			k.sweep()
			if c.cause == "" {
				for range 5 {
					k.advance(3601)
					k.sweep()
				}
			}
			k.sweep()
			if got := k.target.causes(); got != c.cause {
				t.Fatalf("handed over for %q", got)
			}
			if k.get("e1")["status"] != "waiting" || k.head("e1", "due") == "" {
				t.Errorf("%v, due %q", k.get("e1")["status"], k.head("e1", "due"))
			}
			if c.cause != "" {
				if r := k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "expected_version": k.target.inputs()[0]["version"]}); r["status"] != "running" || r["wait"] != nil {
					t.Errorf("%v", r)
				}
			}
		})
	}
}

// A suspension that is repeated is behind the token of the repeat: the last one
// wins, until the wait is over.
func TestLastTaskTokenWins(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	v, f := k.owned("e1")
	suspend := func(token string) m {
		return k.do("suspend", m{"execution": "e1", "expected_version": v, "fence": f, "wait": m{"signals": []string{"s"}, "wake": m{"task_token": token}}})
	}
	first := suspend("first")
	for _, token := range []string{"second", "third"} {
		if r := suspend(token); r["replayed"] != true || r["version"] != first["version"] {
			t.Errorf("%s: %v", token, r)
		}
	}
	if text := k.head("e1", "wake"); strings.Contains(text, "third") || text == "" {
		t.Errorf("on the head: %q", text)
	}
	k.do("signal", m{"execution": "e1", "name": "s", "key": "1"})
	k.sweep()
	if len(k.target.tokens) != 1 || !strings.HasPrefix(k.target.tokens[0], `third {`) {
		t.Errorf("answered %v", k.target.tokens)
	}
	claimed := k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "expected_version": first["version"]})
	if text := k.head("e1", "wake"); text != "" {
		t.Errorf("left on the head: %q", text)
	}
	// Too late: the wait is over, and the next one has its own token.
	suspend("late")
	k.do("suspend", m{"execution": "e1", "expected_version": claimed["version"], "fence": claimed["fence"], "absorb": []m{{"name": "s", "key": "1"}}, "wait": m{"signals": []string{"s"}, "wake": m{"task_token": "own"}}})
	k.do("signal", m{"execution": "e1", "name": "s", "key": "2"})
	k.sweep()
	if len(k.target.tokens) != 2 || !strings.HasPrefix(k.target.tokens[1], `own {`) {
		t.Errorf("answered %v", k.target.tokens)
	}
}

// A task token is answered once, and a dead one falls back to the target.
func TestTaskToken(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	suspend := func(e, token string) {
		v, f := k.owned(e)
		k.do("suspend", m{"execution": e, "expected_version": v, "fence": f, "wait": m{"signals": []string{"s"}, "wake": m{"task_token": token}}})
		k.do("signal", m{"execution": e, "name": "s", "key": "1"})
	}
	suspend("e1", "secret-token")
	k.sweep()
	if len(k.target.tokens) != 1 || len(k.target.started) != 0 || !strings.HasPrefix(k.target.tokens[0], `secret-token {"tenant":"bank","execution":"e1"`) {
		t.Errorf("%v %v", k.target.tokens, k.target.started)
	}
	k.advance(61)
	k.sweep()
	if len(k.target.tokens) != 1 || len(k.target.started) != 1 {
		t.Errorf("nobody came: %v %v", k.target.tokens, k.target.started)
	}
	k.target.gone = map[string]bool{"dead": true}
	suspend("e2", "dead")
	k.sweep()
	if len(k.target.tokens) != 1 || len(k.target.started) != 2 {
		t.Errorf("a dead token: %v %v", k.target.tokens, k.target.started)
	}
	for _, r := range []string{k.getRaw("e1"), fmt.Sprint(k.events)} {
		if strings.Contains(r, "secret-token") {
			t.Errorf("shows the token: %s", r)
		}
	}
}

// A target that cannot be reached leaves an alarm, not a lost execution.
func TestTargetFails(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	k.owned("e1")
	k.advance(31)
	k.target.fail = errors.New("secret-value")
	r := k.sweep()
	if fs := r["failures"].([]any); len(fs) != 1 || fs[0].(m)["execution"] != "e1" || fs[0].(m)["code"] != "Unavailable" || strings.Contains(fmt.Sprint(r), "secret-value") {
		t.Errorf("%v", r)
	}
	if k.counts[telemetry.RecoveryFailure] != 1 || k.counts[telemetry.RecoverySuccess] != 0 {
		t.Errorf("counted %v", k.counts)
	}
	k.target.fail = nil
	k.sweep()
	if len(k.target.started) != 0 {
		t.Error("did not wait")
	}
	k.advance(61)
	k.sweep()
	if in := k.target.inputs(); len(in) != 1 || in[0]["handover"] != 2.0 {
		t.Errorf("%v", in)
	}
}

// One execution that cannot be opened is set aside; its alarm rings later, and it
// goes on once it can be opened.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	for n := range 5 {
		k.owned(fmt.Sprintf("e%d", n))
	}
	// Its only entry is swapped for another's.
	var good, other json.RawMessage
	for _, raw := range k.engine.Dump().Items {
		var it map[string]json.RawMessage
		_ = json.Unmarshal(raw, &it)
		if !strings.HasPrefix(text(it["sk"]), "j#") {
			continue
		}
		switch text(it["pk"]) {
		case tenant + "#e2":
			good = raw
		case tenant + "#e3":
			it["pk"] = json.RawMessage(`{"S":"bank#e2"}`)
			other, _ = json.Marshal(it)
		}
	}
	load := func(raw json.RawMessage) {
		if err := k.engine.Load(memory.Dump{Items: []json.RawMessage{raw}}); err != nil {
			t.Fatal(err)
		}
	}
	load(other)
	k.restart()
	k.advance(31)
	if r := k.sweep(); num(r["handed_over"]) != 4 || len(r["failures"].([]any)) != 0 {
		t.Errorf("%v", r)
	}
	if k.head("e2", "quarantine") != "Integrity" || k.head("e2", "status") != "running" || !strings.Contains(fmt.Sprint(k.events), "quarantine") {
		t.Error(k.head("e2", "quarantine"), k.events)
	}
	if k.counts[telemetry.RecoveryFailure] != 1 {
		t.Errorf("counted %v", k.counts)
	}
	k.refuses(execution.Integrity, "resume", m{"execution": "e2", "owner": "b", "lease_seconds": 30})
	load(good)
	k.advance(61)
	if r := k.sweep(); num(r["handed_over"]) < 1 {
		t.Errorf("%v", r)
	}
	k.do("resume", m{"execution": "e2", "owner": "b", "lease_seconds": 30})
	if k.head("e2", "quarantine") != "" {
		t.Error(k.head("e2", "quarantine"))
	}
	// Without the key none can be opened; all are, later.
	k.kms.SetState("stack", local.Disabled)
	k.restart()
	k.advance(7200)
	k.sweep()
	if k.head("e4", "quarantine") != "KeyUnavailable" {
		t.Error(k.head("e4", "quarantine"))
	}
	k.kms.SetState("stack", local.Enabled)
	k.restart()
	k.advance(3600)
	k.target.started = nil
	if k.sweep(); len(k.target.started) != 5 {
		t.Errorf("%d", len(k.target.started))
	}
}

// However little a sweep can do, no part of the due index is always behind another.
func TestSweepIsFair(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	shards := map[string]string{}
	for n := 0; len(shards) < journal.DueShards; n++ {
		e := fmt.Sprintf("e%d", n)
		k.do("create", m{"execution": e, "workflow": "w", "claim": m{"owner": "a", "lease_seconds": 30}})
		if shard := k.head(e, "xd"); shards[shard] == "" {
			shards[shard] = e
		} else {
			k.do("claim", m{"execution": e, "owner": "a", "lease_seconds": 86_400, "supersede": true})
		}
	}
	k.advance(31)
	for range journal.DueShards {
		k.do("sweep", m{"limit": 1})
		k.advance(60)
	}
	seen := map[string]bool{}
	for _, in := range k.target.inputs() {
		seen[in["execution"].(string)] = true
	}
	if len(seen) != journal.DueShards {
		t.Errorf("%d of %d were handed over in as many sweeps", len(seen), journal.DueShards)
	}
}

// A sweep reads the due index only, handles what is due in one or many calls, and
// a dead sweep is continued by the next.
func TestSweepMany(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	const due, live = 600, 300
	for n := range due + live {
		lease := 30
		if n >= due {
			lease = 86400
		}
		k.do("create", m{"execution": fmt.Sprintf("e%d", n), "workflow": "w", "claim": m{"owner": "a", "lease_seconds": lease}})
	}
	k.advance(31)
	k.restart()
	ctx, inv := memory.WithInvocation(context.Background())
	k.faults(memory.Fault{On: "update", Nth: 50, Effect: "crash_before"})
	_, _ = k.call(ctx, "recover", "sweep", m{"limit": 1000})
	inv.End()
	k.faults()
	first := len(k.target.started)
	if first == 0 || first >= due {
		t.Errorf("%d before the crash", first)
	}
	k.restart()
	k.engine.Mark()
	began := time.Now()
	total := 0
	for calls := 0; ; calls++ {
		r := k.do("sweep", m{"limit": 100})
		total += int(num(r["handed_over"]))
		if num(r["handed_over"]) == 0 {
			break
		}
		if calls > 20 {
			t.Fatal("no end")
		}
	}
	if total < due-first-8 || len(k.target.started) < due-8 { // those counted before the crash wait for their next alarm
		t.Errorf("%d, %d in all", total, len(k.target.started))
	}
	if n := len(k.engine.Log()); n > 8*due {
		t.Errorf("%d requests for %d", n, total)
	}
	t.Logf("%d handed over in %v", total, time.Since(began))
	k.advance(61)
	k.do("sweep", m{"limit": 1000})
	seen := map[string]bool{}
	for _, in := range k.target.inputs() {
		seen[in["execution"].(string)] = true
	}
	if len(seen) != due {
		t.Errorf("%d of %d were handed over", len(seen), due)
	}
	// Of one tenant only.
	if r := k.do("sweep", m{"tenant": "other"}); num(r["handed_over"]) != 0 {
		t.Errorf("%v", r)
	}
}

// A workflow whose record is damaged keeps nobody else from being recovered, and
// takes no execution's fence.
func TestDamagedWorkflow(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	k.do("set_workflow", m{"workflow": m{"name": "good", "schema": m{"name": "s", "version": 1}, "resume_target": m{"kind": "sandbox", "arn": "machine"}}})
	k.owned("e1")
	k.do("create", m{"execution": "e2", "workflow": "good", "claim": m{"owner": "a", "lease_seconds": 30}})
	for _, record := range []string{`{"S":"{"}`, `{"S":"7"}`, `{"N":"7"}`} {
		raw := json.RawMessage(`{"pk":{"S":"bank"},"sk":{"S":"workflow#w"},"record":` + record + `}`)
		if err := k.engine.Load(memory.Dump{Items: []json.RawMessage{raw}}); err != nil {
			t.Fatal(err)
		}
		k.advance(4000)
		before := k.get("e1")
		k.refuses(execution.Integrity, "resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30})
		k.sweep()
		if g := k.get("e1"); g["fence"] != before["fence"] || g["version"] != before["version"] || k.head("e1", "quarantine") != "Integrity" {
			t.Errorf("%s: %v", record, g)
		}
	}
	for _, in := range k.target.inputs() {
		if in["execution"] != "e2" {
			t.Errorf("%v", in)
		}
	}
	if len(k.target.inputs()) == 0 {
		t.Error("the good one was not handed over")
	}
	k.workflow(nil)
	k.advance(3601)
	k.sweep()
	if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 30}); r["owner"] != "b" {
		t.Errorf("%v", r)
	}
}

// A claim that comes between the look and the hand-over: nobody is started, and
// the new owner's alarm stays as the claim set it.
func TestHandoverBehindAClaim(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	k.owned("e1")
	k.advance(31)
	other := k.newProcess()
	b := &storetest.BeforeUpdate{Table: k.services.Recovery.Table}
	b.What = func() {
		if _, err := other.call(t.Context(), "recover", "claim", m{"execution": "e1", "owner": "x", "lease_seconds": 60}); err != nil {
			t.Error(err)
		}
	}
	k.services.Recovery.Table = b
	k.sweep()
	if got := k.target.causes(); got != "" || k.head("e1", "handover") != "" || k.head("e1", "due_kind") != "lease" {
		t.Fatalf("started %q, handover %q, due %q", got, k.head("e1", "handover"), k.head("e1", "due_kind"))
	}
}
