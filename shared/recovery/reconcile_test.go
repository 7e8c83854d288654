package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// taken is an execution whose first owner died with an operation declared, and
// that b owns now.
func (k *kit) taken(e string, op m) (operation string, fence int64) {
	k.t.Helper()
	_, f := k.owned(e)
	o := k.declare(e, f, op)
	k.advance(31)
	return o["operation"].(string), num(k.do("claim", m{"execution": e, "owner": "b", "lease_seconds": 80_000})["fence"])
}

func TestReconcileFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		op      m
		wait    float64 // seconds before the question
		answers []string
		status  string // after one round
		detail  string
		next    bool // it is to be asked again
	}{
		{"found", nil, 0, []string{`{"finding":"found","provider_ref":"tx","result":{"n":1.10}}`}, "succeeded", "", false},
		{"found as failed", nil, 0, []string{`{"finding":"found","outcome":"failed","reason":"no funds"}`}, "failed", "", false},
		{"rejected, sent once", nil, 0, []string{`{"finding":"found","outcome":"rejected"}`}, "rejected", "", false},
		{"in progress", nil, 0, []string{`{"finding":"in_progress"}`}, "uncertain", "", true},
		{"found in progress", nil, 0, []string{`{"finding":"found","outcome":"in_progress"}`}, "uncertain", "", true},
		{"not found proves nothing", nil, 90_000, []string{`{"finding":"not_found"}`}, "uncertain", "", true},
		{"not found too early", m{"valid_seconds": 600}, 300, []string{`{"finding":"not_found"}`}, "uncertain", "", true},
		{"not found once it is impossible", m{"valid_seconds": 60}, 600, []string{`{"finding":"not_found"}`}, "not_executed", "", false},
		{"not found, fenced", nil, 0, []string{`{"finding":"not_found","fenced":true}`}, "not_executed", "", false},
		{"several", nil, 0, []string{`{"finding":"found","count":2}`}, "needs_review", "", false},
		{"several in words", nil, 0, []string{`{"finding":"several"}`}, "needs_review", "", false},
		{"a duplicate was refused", nil, 0, []string{`{"finding":"rejected_duplicate"}`}, "uncertain", "", true},
		{"a timeout", nil, 0, []string{`timeout`}, "uncertain", "the resolver did not answer in time", true},
		{"an error", nil, 0, []string{`error`}, "uncertain", "the resolver gave no answer", true},
		{"a panic", nil, 0, []string{`panic`}, "uncertain", "the resolver failed", true},
		{"HTML", nil, 0, []string{`<html>`}, "uncertain", "the answer is no JSON object", true},
		{"ten megabytes", nil, 0, []string{`{"finding":"found","result":"` + strings.Repeat("x", 10<<20) + `"}`}, "uncertain", "the answer is too large", true},
		{"a list", nil, 0, []string{`[]`}, "uncertain", "the answer is no JSON object", true},
		{"a verdict by a machine", nil, 0, []string{`{"finding":"decided","outcome":"succeeded"}`}, "uncertain", "the answer's finding is none of the known ones", true},
		{"an absence by a machine", nil, 0, []string{`{"finding":"found","outcome":"not_executed"}`}, "uncertain", "the answer's outcome is none that can be found", true},
		{"a finding of a later version", nil, 0, []string{`{"finding":"maybe"}`}, "uncertain", "the answer's finding is none of the known ones", true},
		{"found and none counted", nil, 0, []string{`{"finding":"found","count":0}`}, "uncertain", "the answer's count contradicts its finding", true},
		{"absent and counted", nil, 0, []string{`{"finding":"not_found","count":2,"fenced":true}`}, "uncertain", "the answer's count contradicts its finding", true},
		{"a count that is none", nil, 0, []string{`{"finding":"found","count":1.5}`}, "uncertain", "the answer's count is no number of effects", true},
		{"two keys of one name", nil, 0, []string{`{"finding":"found","finding":"not_found"}`}, "uncertain", "the answer is no JSON object", true},
		{"a control character", nil, 0, []string{"{\"finding\":\"found\",\"provider_ref\":\"a\\u0000\"}"}, "uncertain", "the answer's provider_ref is no short text", true},
		{"an outcome that was not found", nil, 0, []string{`{"finding":"not_found","outcome":"succeeded","fenced":true}`}, "uncertain", "the answer has an outcome and did not find one", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.workflow(nil)
			op, _ := k.taken("e1", c.op)
			k.advance(c.wait)
			f := num(k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 3600, "supersede": true, "force": m{"reason": "r"}})["fence"])
			k.resolver.set("bank", c.answers...)
			r := k.do("reconcile", m{"execution": "e1", "fence": f})
			ops := r["operations"].([]any)
			if len(ops) != 1 {
				t.Fatalf("%v", r)
			}
			o := ops[0].(m)
			if o["operation"] != op || o["status"] != c.status || fmt.Sprint(o["detail"]) != orNil(c.detail) || (o["next_check_at"] != nil) != c.next {
				t.Errorf("%v", o)
			}
			if q := k.resolver.questions(); len(q) != 1 || q[0].Fence != f || q[0].Operation != execution.OperationID(op) || q[0].Attempt != 1 || q[0].ProviderKey == "" || q[0].Tenant != tenant {
				t.Errorf("asked %+v", q)
			}
			if st := k.status("e1", op); st != c.status {
				t.Errorf("get_operation says %s", st)
			}
			k.restart()
			if st := k.status("e1", op); st != c.status {
				t.Errorf("after a restart get_operation says %s", st)
			}
		})
	}
}

func orNil(s string) string {
	if s == "" {
		return "<nil>"
	}
	return s
}

// A system refuses fences below the highest that it was told. An answer `fenced`
// to a question without a fence, put while nobody owns the execution, or with the
// attempt's own fence, proves nothing.
func TestFencedByAnOlderFenceOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ask   func(k *kit, op string, fence int64)
		asked int
		want  string
	}{
		"the attempt's own owner": {func(k *kit, _ string, fence int64) { k.do("reconcile", m{"execution": "e1", "fence": fence}) }, 1, "uncertain"},
		"what that owner brings": {func(k *kit, op string, fence int64) {
			k.do("reconcile", m{"execution": "e1", "fence": fence, "evidence": []m{{"operation": op, "finding": "not_found", "fenced": true}}})
		}, 0, "uncertain"},
		"nobody": {func(k *kit, _ string, _ int64) {
			answer := k.resolver.answers["bank"]
			k.advance(31)
			k.resolver.set("bank", "error")
			if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60}); r["parked"] != true {
				k.t.Errorf("%v", r)
			}
			k.resolver.set("bank", answer...)
			k.advance(3600)
			k.sweep()
		}, 1, "uncertain"},
		"the next owner": {func(k *kit, _ string, _ int64) {
			k.advance(31)
			k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
		}, 1, "not_executed"},
	} {
		k := newKit(t)
		k.workflow(nil)
		_, f := k.owned("e1")
		op := k.declare("e1", f, nil)["operation"].(string)
		k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "unknown"})
		k.resolver.set("bank", `{"finding":"not_found","fenced":true}`)
		tt.ask(k, op, f)
		if n := len(k.resolver.questions()); n != tt.asked {
			t.Errorf("%s: asked %d times", name, n)
		}
		if got := k.status("e1", op); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A round that learns nothing writes nothing; evidence from the ledger is taken
// in; what the owner itself has under way is not asked about.
func TestReconcileWritesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	op, f := k.taken("e1", nil)
	version := func() int64 { return num(k.get("e1")["version"]) }
	v := version()
	k.do("reconcile", m{"execution": "e1", "fence": f})
	if version() != v {
		t.Error("a round with nobody to ask wrote an entry")
	}
	k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "unknown"})
	k.do("reconcile", m{"execution": "e1", "fence": f})
	v = version()
	k.do("reconcile", m{"execution": "e1", "fence": f})
	if version() != v {
		t.Error("the same open evidence was written again")
	}
	k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "succeeded", "result": m{"tx": 1}})
	r := k.do("reconcile", m{"execution": "e1", "fence": f})
	if num(r["version"]) != v+1 || k.status("e1", op) != "succeeded" {
		t.Errorf("%v", r)
	}
	if r := k.do("reconcile", m{"execution": "e1", "fence": f}); num(r["version"]) != v+1 || len(r["operations"].([]any)) != 0 {
		t.Errorf("%v", r)
	}
	// Its own operation, under way.
	k.workflow(nil)
	k.resolver.set("bank", `{"finding":"not_found","fenced":true}`)
	own := k.declare("e1", f, m{"key": "own"})["operation"].(string)
	k.do("reconcile", m{"execution": "e1", "fence": f})
	if q := k.resolver.questions(); len(q) != 0 || k.status("e1", own) != "declared" {
		t.Errorf("asked %v", q)
	}
	// Past its deadline it is uncertain, but a system that refuses older fences does
	// not refuse this one's.
	late := k.declare("e1", f, m{"key": "late", "deadline_seconds": 2})["operation"].(string)
	k.advance(3)
	k.do("reconcile", m{"execution": "e1", "fence": f})
	if q := k.resolver.questions(); len(q) != 1 || k.status("e1", late) != "uncertain" {
		t.Errorf("asked %v: %s", q, k.status("e1", late))
	}
}

func TestReconcileByCaller(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	op, f := k.taken("e1", m{"valid_seconds": 60})
	with := func(ev m) m {
		out := m{"operation": op}
		for n, v := range ev {
			out[n] = v
		}
		return m{"execution": "e1", "fence": f, "evidence": []m{out}}
	}
	now := func(d float64) string {
		return k.engine.Now().Add(1e9 * 1).Format("2006-01-02T15:04:05.000Z")
	}
	for _, c := range []struct {
		name  string
		req   m
		field string
	}{
		{"no such operation", with(m{"operation": "0123", "finding": "found"}), "evidence[0].operation"},
		{"a later attempt", with(m{"finding": "found", "attempt": 2}), "evidence[0].attempt"},
		{"the future", with(m{"finding": "not_found", "asked_at": now(1)}), "evidence[0].asked_at"},
		{"absence that was found", with(m{"finding": "found", "outcome": "not_executed"}), "evidence[0].outcome"},
		{"a verdict without an attempt", with(m{"finding": "decided", "outcome": "succeeded", "reason": "r"}), "evidence[0].attempt"},
		{"a verdict without a reason", with(m{"finding": "decided", "outcome": "succeeded", "attempt": 1}), "evidence[0].reason"},
		{"not executed while it may happen", with(m{"finding": "decided", "outcome": "not_executed", "attempt": 1, "reason": "r"}), "evidence[0].force"},
		{"no fence while somebody owns it", m{"execution": "e1", "evidence": []m{{"operation": op, "finding": "found"}}}, "fence"},
	} {
		if facts := k.refuses(execution.InvalidRequest, "reconcile", c.req); facts["field"] != c.field {
			t.Errorf("%s: %v", c.name, facts)
		}
	}
	k.refuses(execution.LeaseLost, "reconcile", m{"execution": "e1", "fence": f - 1})
	v := num(k.get("e1")["version"])
	k.advance(1000)
	// asked_at defaults to the claim's time, before the effect was impossible.
	if r := k.do("reconcile", with(m{"finding": "not_found"})); num(r["version"]) != v || r["operations"].([]any)[0].(m)["status"] != "uncertain" {
		t.Errorf("%v", r)
	}
	req := with(m{"finding": "not_found", "asked_at": k.engine.Now().Format("2006-01-02T15:04:05.000Z")})
	req["request_id"] = "r1"
	if r := k.do("reconcile", req); num(r["version"]) != v+1 || r["operations"].([]any)[0].(m)["status"] != "not_executed" {
		t.Errorf("%v", r)
	}
	if r := k.do("reconcile", req); r["replayed"] != true || num(r["version"]) != v+1 {
		t.Errorf("again: %v", r)
	}
	if d := k.declare("e1", f, m{"valid_seconds": 60}); d["disposition"] != "go" || num(d["attempt"]) != 2 {
		t.Errorf("declared again: %v", d)
	}
	if facts := k.refuses(execution.InvalidRequest, "reconcile", with(m{"finding": "found"})); facts["field"] != "evidence[0].attempt" {
		t.Errorf("%v", facts)
	}
}

// A person decides about what is parked: without a fence, kept in the history,
// and the execution goes on at once.
func TestVerdict(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	op, _ := k.taken("e1", nil)
	k.advance(80_001)
	r := k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 60})
	if r["parked"] != true || r["status"] != "parked" || r["owner"] != "" || r["reasons"].([]any)[0].(m)["code"] != "uncertain" || r["reasons"].([]any)[0].(m)["operation"] != op {
		t.Fatalf("%v", r)
	}
	v := num(r["version"])
	if again := k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 60}); again["parked"] != true || num(again["version"]) != v {
		t.Errorf("asked again: %v", again)
	}
	if s := k.sweep(); num(s["handed_over"]) != 0 {
		t.Errorf("%v", s)
	}
	verdict := m{"operation": op, "finding": "decided", "attempt": 1, "outcome": "succeeded", "reason": "seen in the bank's books", "reference": "case 7"}
	got := k.do("reconcile", m{"execution": "e1", "evidence": []m{verdict}, "actor": m{"kind": "human", "id": "ann"}})
	if num(got["version"]) != v+1 || got["operations"].([]any)[0].(m)["status"] != "succeeded" {
		t.Errorf("%v", got)
	}
	detail := k.do("get_operation", m{"execution": "e1", "operation": op})["verdict"].(m)
	if detail["reason"] != "seen in the bank's books" || detail["reference"] != "case 7" || detail["actor"].(m)["id"] != "ann" {
		t.Errorf("%v", detail)
	}
	if s := k.sweep(); num(s["handed_over"]) != 1 || k.target.causes() != "verdict" || num(k.target.inputs()[0]["version"]) != v+1 {
		t.Errorf("%v, %v", s, k.target.inputs())
	}
	k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 60, "expected_version": v + 1})
	// Superseded by another verdict, also while it is owned.
	verdict["outcome"], verdict["force"] = "failed", true
	f := k.get("e1")["fence"]
	k.do("reconcile", m{"execution": "e1", "fence": f, "evidence": []m{verdict}})
	if k.status("e1", op) != "failed" {
		t.Error(k.status("e1", op))
	}
	if kinds := k.versions("e1"); kinds[len(kinds)-1] != "verdict" {
		t.Error(kinds)
	}
}

// An outcome in the slot wins over the verdict that nothing happened (M).
func TestSlotWins(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	op, _ := k.taken("e1", nil)
	k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "succeeded", "provider_ref": "tx"})
	c := k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "supersede": true})
	if o := c["operations"].([]any)[0].(m); o["status"] != "uncertain" || o["disposition"] != "uncertain" || o["evidence"].(m)["outcome"] != "succeeded" {
		t.Errorf("a claim shows %v", o)
	}
	f := num(c["fence"])
	r := k.do("reconcile", m{"execution": "e1", "fence": f, "evidence": []m{{"operation": op, "finding": "decided", "attempt": 1, "outcome": "abandoned", "reason": "r"}}})
	if o := r["operations"].([]any)[0].(m); o["status"] != "succeeded" {
		t.Errorf("%v", o)
	}
	// The other way round: late evidence meets a closed slot, and is kept as a
	// contradiction.
	op, f = k.taken("e2", nil)
	k.do("reconcile", m{"execution": "e2", "fence": f, "evidence": []m{{"operation": op, "finding": "decided", "attempt": 1, "outcome": "abandoned", "reason": "r"}}})
	if r := k.do("record_outcome", m{"execution": "e2", "operation": op, "outcome": "succeeded"}); r["recorded"] != false {
		t.Errorf("%v", r)
	}
	if k.status("e2", op) != "abandoned" {
		t.Error(k.status("e2", op))
	}
}

// A not_found counts as of the time at which the question was put: what became
// impossible while the system thought about it is not ruled out.
func TestAskedBefore(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	_, f := k.owned("e1")
	op := k.declare("e1", f, m{"valid_seconds": 60})["operation"].(string)
	k.advance(60 + 299)
	k.resolver.set("bank", `{"finding":"not_found"}`)
	slow := true
	k.resolver.block = func(context.Context) {
		if slow {
			slow = false
			k.advance(5)
		}
	}
	k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	if slow || k.status("e1", op) != "uncertain" {
		t.Fatalf("asked: %v, %s", !slow, k.status("e1", op))
	}
	k.advance(3600)
	if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60}); k.status("e1", op) != "not_executed" {
		t.Fatalf("asked late enough: %v", r)
	}
}

// A verdict leads out also where the slot holds what settles nothing by itself: a
// rejection of one of several sendings. It counts as what the slot says.
func TestVerdictOverRejection(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"not_executed", "abandoned"} {
		k := newKit(t)
		k.workflow(m{"resolvers": nil})
		_, f := k.owned("e1")
		op := k.declare("e1", f, m{"on_uncertain": "always"})["operation"].(string)
		if again := k.declare("e1", f, m{"on_uncertain": "always"}); again["disposition"] != "go" {
			t.Fatalf("%v", again)
		}
		k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "rejected"})
		if r := k.do("reconcile", m{"execution": "e1", "fence": f}); r["operations"].([]any)[0].(m)["outcome"] != nil {
			t.Fatalf("one rejection of two sendings settles: %v", r)
		}
		r := k.do("reconcile", m{"execution": "e1", "fence": f, "evidence": []m{{"operation": op, "finding": "decided", "attempt": 1, "outcome": outcome, "reason": "r", "force": true}}})
		if o := r["operations"].([]any)[0].(m); o["status"] != "rejected" {
			t.Errorf("a verdict %s leaves %v", outcome, o)
		}
	}
}

// `close`: what was not started never starts any more, exactly.
func TestClose(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	_, f := k.owned("e1")
	o := k.declare("e1", f, m{"on_uncertain": "close"})
	op := o["operation"].(string)
	started := k.declare("e1", f, m{"on_uncertain": "close", "key": "started"})["operation"].(string)
	done := k.declare("e1", f, m{"on_uncertain": "close", "key": "done"})["operation"].(string)
	start := m{"execution": "e1", "operation": started, "attempt": 1, "fence": f, "nonce": "n"}
	k.do("start_operation", start)
	start["operation"], start["nonce"] = done, "n2"
	k.do("start_operation", start)
	k.do("record_outcome", m{"execution": "e1", "operation": done, "outcome": "succeeded"})
	k.advance(31)
	r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	if r["parked"] != true || len(r["reasons"].([]any)) != 1 || r["reasons"].([]any)[0].(m)["operation"] != started {
		t.Fatalf("%v", r)
	}
	if a, b, c := k.status("e1", op), k.status("e1", started), k.status("e1", done); a != "not_executed" || b != "uncertain" || c != "succeeded" {
		t.Error(a, b, c)
	}
	start["operation"], start["nonce"] = op, "late"
	k.refuses(execution.LeaseLost, "start_operation", start)
	k.do("record_outcome", m{"execution": "e1", "operation": started, "outcome": "succeeded"})
	r = k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	if r["parked"] != nil || r["owner"] != "b" {
		t.Fatalf("%v", r)
	}
	if d := k.declare("e1", num(r["fence"]), m{"on_uncertain": "close"}); d["disposition"] != "start" || num(d["attempt"]) != 2 {
		t.Errorf("%v", d)
	}
}

// Many open operations: one entry, few requests.
func TestReconcileMany(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	for _, c := range []struct {
		name, answer, status string
		op                   m
	}{
		{"found", `{"finding":"found"}`, "succeeded", nil},
		{"in progress", `{"finding":"in_progress"}`, "uncertain", nil},
		{"proved absent", `{"finding":"not_found"}`, "not_executed", m{"valid_seconds": 1}},
		{"closed", `error`, "not_executed", m{"on_uncertain": "close"}},
	} {
		e := strings.ReplaceAll(c.name, " ", "-")
		v, f := k.owned(e)
		var ops []m
		for i := range 1000 {
			o := m{"name": "pay", "args": m{"i": i}}
			for n, x := range c.op {
				o[n] = x
			}
			ops = append(ops, o)
		}
		k.do("apply", m{"execution": e, "expected_version": v, "fence": f, "operations": ops, "max_inline_bytes": 5_000_000})
		k.advance(700)
		f = num(k.do("claim", m{"execution": e, "owner": "b", "lease_seconds": 3600})["fence"])
		k.resolver.set("bank", c.answer)
		k.restart()
		k.do("get", m{"execution": e, "include": []string{}}) // unwraps the tenant's key
		k.engine.Mark()
		r := k.do("reconcile", m{"execution": e, "fence": f})
		if n := len(k.engine.Log()); n > 25 {
			by := map[string]int{}
			for _, x := range k.engine.Log() {
				by[x.Call]++
			}
			t.Errorf("%s: %d requests: %v", c.name, n, by)
		}
		n := 0
		for _, o := range r["operations"].([]any) {
			if o.(m)["status"] == c.status {
				n++
			}
		}
		if n != 1000 || num(r["version"]) != v+3 {
			t.Errorf("%s: %d %s, version %v", c.name, n, c.status, r["version"])
		}
	}
}

func TestContradiction(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	op, f := k.taken("e1", nil)
	found := func(outcome string) m {
		return m{"execution": "e1", "fence": f, "evidence": []m{{"operation": op, "finding": "found", "outcome": outcome}}}
	}
	k.do("reconcile", found("succeeded"))
	k.do("reconcile", found("failed"))
	v := k.get("e1")["version"]
	k.do("reconcile", found("failed"))
	if k.status("e1", op) != "succeeded" || k.get("e1")["version"] != v {
		t.Error(k.status("e1", op), k.get("e1")["version"], v)
	}
	if k.counts[telemetry.Contradictions] != 1 || !slices.ContainsFunc(k.events, func(s string) bool { return strings.HasPrefix(s, "contradiction ") }) {
		t.Error(k.counts, k.events)
	}
	// Both at once, before either is settled: a person must look.
	op, f = k.taken("e2", nil)
	k.do("reconcile", m{"execution": "e2", "fence": f, "evidence": []m{{"operation": op, "finding": "found", "outcome": "failed"}, {"operation": op, "finding": "found"}}})
	if k.status("e2", op) != "needs_review" {
		t.Error(k.status("e2", op))
	}
}

// What a resolver answers is redacted before it is kept, and kept whole when it
// is large.
func TestResolverResult(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	k.services.Recovery.Redact = func(_ context.Context, _ execution.TenantID, v *jsonx.Value, path string) (*jsonx.Value, error) {
		if path != "/result" {
			t.Error(path)
		}
		return jsonx.MergePatch(v, jsonx.MustParse(`{"key":"redacted"}`))
	}
	op, f := k.taken("e1", nil)
	k.resolver.set("bank", `{"finding":"found","result":{"key":"secret-value","n":1.10}}`)
	k.do("reconcile", m{"execution": "e1", "fence": f})
	if r := k.do("get_operation", m{"execution": "e1", "operation": op})["result"].(m); r["key"] != "redacted" || r["n"] != 1.1 {
		t.Errorf("%v", r)
	}
	large := strings.Repeat("x", 100_000)
	op, f = k.taken("e2", nil)
	k.resolver.set("bank", `{"finding":"found","result":{"large":"`+large+`"}}`)
	k.do("reconcile", m{"execution": "e2", "fence": f})
	got := k.do("get_operation", m{"execution": "e2", "operation": op})
	if got["status"] != "succeeded" || got["result"] == nil && got["result_ref"] == nil {
		t.Errorf("%v", got["status"])
	}
}

// A resolver that hangs costs its timeout and no more, and leaves time to write.
func TestResolverHangs(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": m{"pay": m{"kind": "sandbox", "target": "bank", "timeout_seconds": 1}}})
	k.resolver.block = func(ctx context.Context) { <-ctx.Done() }
	k.resolver.set("bank", "timeout")
	op, f := k.taken("e1", nil)
	began := time.Now()
	r := k.do("reconcile", m{"execution": "e1", "fence": f})
	if o := r["operations"].([]any)[0].(m); o["detail"] != "the resolver did not answer in time" || o["finding"] != "query_failed" || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v", o, time.Since(began))
	}
	// With little time left nobody is asked, and what the ledger knows is written.
	k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "succeeded"})
	other := k.declare("e1", f, m{"key": "other"})["operation"].(string)
	k.advance(90_000)
	f = num(k.do("claim", m{"execution": "e1", "owner": "c", "lease_seconds": 60})["fence"])
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	began = time.Now()
	if _, err := k.call(ctx, "recover", "reconcile", m{"execution": "e1", "fence": f}); err != nil {
		t.Fatal(err)
	}
	if k.status("e1", op) != "succeeded" || k.status("e1", other) != "uncertain" || time.Since(began) > 4*time.Second {
		t.Errorf("%s, %s after %v", k.status("e1", op), k.status("e1", other), time.Since(began))
	}
}

// TestParkedIsLookedAtInTime: however seldom a parked execution is looked at by now,
// it is when one of its operations is to be asked about again.
func TestParkedIsLookedAtInTime(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	op, _ := k.taken("e1", nil)
	k.advance(80_001)
	k.resolver.set("bank", "out of order")
	if r := k.do("resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60}); r["parked"] != true {
		t.Fatalf("%v", r)
	}
	for range 2 {
		k.setHead("e1", "polls", `{"N":"12"}`)
		k.setHead("e1", "due", `{"N":"1"}`)
		k.sweep()
		next := k.do("get_operation", m{"execution": "e1", "operation": op})["next_check_at"].(string)
		at, err := time.Parse(time.RFC3339Nano, next)
		if err != nil {
			t.Fatal(err)
		}
		if due := k.head("e1", "due"); due != fmt.Sprint(at.UnixMilli()) {
			t.Errorf("due at %s, to be asked about again at %d", due, at.UnixMilli())
		}
		k.advance(10)
	}
}
