package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

func TestClaimAndRenew(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	v, f := k.owned("e1")
	claim := m{"execution": "e1", "owner": "b", "lease_seconds": 60, "nonce": "n1", "resume": m{"who": "b"}}
	facts := k.refuses(execution.LeaseHeld, "claim", claim)
	if facts["owner"] != "a" || num(facts["retry_after_ms"]) != 30_000 {
		t.Errorf("held: %v", facts)
	}
	k.refuses(execution.LeaseHeld, "claim", m{"execution": "e1", "owner": "a", "lease_seconds": 60})
	k.advance(20)
	if r := k.do("renew", m{"execution": "e1", "owner": "a", "fence": f, "lease_seconds": 30}); num(r["lease_remaining_ms"]) != 30_000 || r["status"] != "running" {
		t.Errorf("renewed: %v", r)
	}
	k.advance(29)
	k.refuses(execution.LeaseHeld, "claim", claim)
	k.advance(1)
	b := k.do("claim", claim)
	if num(b["version"]) != v+1 || num(b["fence"]) <= f || b["owner"] != "b" || num(b["lease_remaining_ms"]) != 60_000 || b["resume"].(m)["who"] != "b" || b["state"].(m)["n"] != 0.0 || b["status"] != "running" {
		t.Errorf("claimed: %v", b)
	}
	k.restart()
	again := k.do("claim", claim)
	if again["replayed"] != true || num(again["fence"]) != num(b["fence"]) || num(again["version"]) != v+1 || again["tip"] == nil {
		t.Errorf("the same nonce: %v", again)
	}
	other := m{"execution": "e1", "owner": "b", "lease_seconds": 60, "nonce": "n2"}
	k.refuses(execution.LeaseHeld, "claim", other)
	other["supersede"] = true
	super := k.do("claim", other)
	k.refuses(execution.LeaseLost, "claim", claim)
	k.refuses(execution.LeaseLost, "renew", m{"execution": "e1", "owner": "b", "fence": b["fence"], "lease_seconds": 60})
	k.refuses(execution.LeaseLost, "release", m{"execution": "e1", "owner": "b", "fence": b["fence"]})
	k.refuses(execution.LeaseLost, "release", m{"execution": "e1", "owner": "x", "fence": super["fence"]})
	k.refuses(execution.VersionConflict, "claim", m{"execution": "e1", "owner": "c", "lease_seconds": 60, "expected_version": v, "force": m{"reason": "r"}})
	c := k.do("claim", m{"execution": "e1", "owner": "c", "lease_seconds": 60, "force": m{"reason": "stuck"}})
	k.do("release", m{"execution": "e1", "owner": "c", "fence": c["fence"], "after_seconds": 10})
	if g := k.get("e1"); g["status"] != "running" || g["owner"] != "" {
		t.Errorf("released: %v", g)
	}
	k.refuses(execution.NotFound, "claim", m{"execution": "none", "owner": "c", "lease_seconds": 60})
	k.refuses(execution.NotFound, "renew", m{"execution": "none", "owner": "c", "fence": 1, "lease_seconds": 60})
}

func TestHalt(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	v, f := k.owned("e1")
	r := k.do("halt", m{"execution": "e1", "reason": "stop", "request_id": "h1"})
	if num(r["version"]) != v+1 || r["status"] != "halted" || r["owner"] != "" {
		t.Errorf("halted: %v", r)
	}
	if r := k.do("halt", m{"execution": "e1", "reason": "stop", "request_id": "h1"}); r["replayed"] != true {
		t.Errorf("again: %v", r)
	}
	if r := k.do("halt", m{"execution": "e1", "reason": "other"}); num(r["version"]) != v+1 {
		t.Errorf("a second halt wrote: %v", r)
	}
	k.refuses(execution.LeaseLost, "renew", m{"execution": "e1", "owner": "a", "fence": f, "lease_seconds": 60})
	k.refuses(execution.Halted, "claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "force": m{"reason": "r"}})
	k.refuses(execution.Halted, "resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	k.refuses(execution.Halted, "reconcile", m{"execution": "e1"})
	k.advance(7200)
	if r := k.sweep(); num(r["handed_over"])+num(r["parked"]) != 0 {
		t.Errorf("sweep of a halted one: %v", r)
	}
	k.refuses(execution.VersionConflict, "unhalt", m{"execution": "e1", "reason": "go", "expected_version": v})
	u := k.do("unhalt", m{"execution": "e1", "reason": "go", "expected_version": v + 1})
	if u["status"] != "running" || u["owner"] != "" {
		t.Errorf("unhalted: %v", u)
	}
	if r := k.do("unhalt", m{"execution": "e1", "reason": "go", "expected_version": v + 1}); r["replayed"] != true {
		t.Errorf("unhalted again: %v", r)
	}
	k.refuses(execution.InvalidRequest, "unhalt", m{"execution": "e1", "reason": "go", "expected_version": u["version"]})
	k.sweep()
	if c := k.target.causes(); c != "unhalt" {
		t.Errorf("handed over for %q", c)
	}
	w := k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "expected_version": u["version"]})
	k.do("complete", m{"execution": "e1", "expected_version": w["version"], "fence": w["fence"], "outcome": "completed"})
	for _, verb := range []string{"halt", "unhalt"} {
		req := m{"execution": "e1", "reason": "r"}
		if verb == "unhalt" {
			req["expected_version"] = num(w["version"]) + 1
		}
		k.refuses(execution.ExecutionClosed, verb, req)
	}
	k.refuses(execution.ExecutionClosed, "claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	k.refuses(execution.ExecutionClosed, "resume", m{"execution": "e1", "owner": "b", "lease_seconds": 60})
	k.refuses(execution.ExecutionClosed, "reconcile", m{"execution": "e1"})
}

// Of two claims, resumes, or a renewal and a claim at once, one wins, and the
// other is told so by a code.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"claim", "resume"} {
		k := newKit(t)
		k.workflow(nil)
		for n := range 50 {
			e := fmt.Sprintf("e%d", n)
			v, f := k.owned(e)
			k.do("suspend", m{"execution": e, "expected_version": v, "fence": f, "wait": m{"waiting_for": 1}})
			var won, lost []int
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 3 {
				p := k.newProcess()
				wg.Go(func() {
					r, err := p.call(context.Background(), "recover", verb, m{"execution": e, "owner": fmt.Sprint(i), "lease_seconds": 60, "resume": i})
					mu.Lock()
					defer mu.Unlock()
					var no *refusal
					switch {
					case err == nil && r["resume"] == float64(i):
						won = append(won, i)
					case errors.As(err, &no) && slices.Contains([]execution.Code{execution.LeaseHeld, execution.VersionConflict, execution.LeaseLost}, no.code) && no.facts["owner"] != nil:
						lost = append(lost, i)
					default:
						t.Errorf("%s: %v, %v", verb, r, err)
					}
				})
			}
			wg.Wait()
			if len(won) != 1 || len(lost) != 2 || k.get(e)["owner"] != fmt.Sprint(won[0]) {
				t.Fatalf("round %d: won %v, lost %v, owner %v", n, won, lost, k.get(e)["owner"])
			}
		}
	}
	k := newKit(t)
	k.workflow(nil)
	for n := range 50 {
		e := fmt.Sprintf("r%d", n)
		_, f := k.owned(e)
		k.advance(30 + float64(n%2))
		var renewed, claimed error
		var wg sync.WaitGroup
		p, q := k.newProcess(), k.newProcess()
		wg.Go(func() {
			_, renewed = p.call(context.Background(), "recover", "renew", m{"execution": e, "owner": "a", "fence": f, "lease_seconds": 60})
		})
		wg.Go(func() {
			_, claimed = q.call(context.Background(), "recover", "claim", m{"execution": e, "owner": "b", "lease_seconds": 60})
		})
		wg.Wait()
		want := "b"
		if renewed == nil {
			want = "a"
		}
		if (renewed == nil) == (claimed == nil) || k.get(e)["owner"] != want {
			t.Fatalf("round %d: renewal %v, claim %v, owner %v", n, renewed, claimed, k.get(e)["owner"])
		}
	}
}

func TestUnknownStatus(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	for n, status := range []string{`{"S":"suspended_v2"}`, `{"NULL":true}`, `{"S":""}`, `{"N":"7"}`, `{"S":"Completed"}`, ``} {
		e := fmt.Sprintf("e%d", n)
		k.owned(e)
		k.setHead(e, "status", status)
		for _, verb := range []string{"claim", "resume"} {
			k.refuses(execution.Integrity, verb, m{"execution": e, "owner": "b", "lease_seconds": 60, "force": m{"reason": "r"}})
		}
		k.refuses(execution.Integrity, "halt", m{"execution": e, "reason": "r"})
		k.refuses(execution.Integrity, "reconcile", m{"execution": e})
	}
	before := map[string]string{}
	for n := range 6 {
		before[fmt.Sprintf("e%d", n)] = fmt.Sprint(k.rawHead(fmt.Sprintf("e%d", n)))
	}
	k.advance(86400)
	if r := k.sweep(); num(r["handed_over"])+num(r["parked"]) != 0 || len(r["failures"].([]any)) != 0 {
		t.Errorf("sweep: %v", r)
	}
	for e, head := range before {
		if now := fmt.Sprint(k.rawHead(e)); now != head {
			t.Errorf("the head of %s was changed: %s", e, now)
		}
	}
}
