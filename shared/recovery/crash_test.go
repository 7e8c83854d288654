package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// A row is one verb of recovery in a state where it matters. do is repeated, by a
// new process, after every fault; check holds whatever struck.
type row struct {
	name  string
	setup func(k *kit) m // the request, or what do needs
	do    func(ctx context.Context, p process, req m) (m, error)
	check func(k *kit, req, reply m) error
}

func verb(action string) func(context.Context, process, m) (m, error) {
	return func(ctx context.Context, p process, req m) (m, error) { return p.call(ctx, "recover", action, req) }
}

func kinds(k *kit, e, want string) error {
	if got := strings.Join(k.versions(e), " "); got != want {
		return fmt.Errorf("entries %s, want %s", got, want)
	}
	return nil
}

var rows = []row{
	{"claim", func(k *kit) m {
		k.owned("e1")
		k.advance(31)
		return m{"execution": "e1", "owner": "b", "lease_seconds": 3600, "nonce": "n"}
	}, verb("claim"), func(k *kit, _, r m) error {
		if r["owner"] != "b" {
			return fmt.Errorf("%v", r)
		}
		return kinds(k, "e1", "created claimed")
	}},
	{"renew", func(k *kit) m {
		_, f := k.owned("e1")
		k.advance(10)
		return m{"execution": "e1", "owner": "a", "fence": f, "lease_seconds": 60}
	}, verb("renew"), func(k *kit, _, r m) error {
		if num(r["lease_remaining_ms"]) < 60_000 || k.head("e1", "due") != k.head("e1", "lease_expires_at") {
			return fmt.Errorf("%v", r)
		}
		return kinds(k, "e1", "created")
	}},
	{"release", func(k *kit) m {
		_, f := k.owned("e1")
		return m{"execution": "e1", "owner": "a", "fence": f, "request_id": "r"}
	}, verb("release"), func(k *kit, _, _ m) error {
		k.sweep()
		if k.target.causes() != "continue" {
			return fmt.Errorf("handed over %q", k.target.causes())
		}
		return kinds(k, "e1", "created continued")
	}},
	{"halt", func(k *kit) m {
		k.owned("e1")
		return m{"execution": "e1", "reason": "r", "request_id": "r"}
	}, verb("halt"), func(k *kit, _, _ m) error {
		k.advance(100)
		k.sweep()
		if k.target.causes() != "" || k.head("e1", "due") != "" {
			return fmt.Errorf("handed over %q, due %s", k.target.causes(), k.head("e1", "due"))
		}
		return kinds(k, "e1", "created halted")
	}},
	{"unhalt", func(k *kit) m {
		k.owned("e1")
		r := k.do("halt", m{"execution": "e1", "reason": "r"})
		return m{"execution": "e1", "reason": "r", "expected_version": r["version"]}
	}, verb("unhalt"), func(k *kit, _, _ m) error {
		k.sweep()
		if k.target.causes() != "unhalt" {
			return fmt.Errorf("handed over %q", k.target.causes())
		}
		return kinds(k, "e1", "created halted unhalted")
	}},
	{"resume", func(k *kit) m {
		_, f := k.owned("e1")
		k.declare("e1", f, m{"key": "found"})
		k.declare("e1", f, m{"key": "closed", "on_uncertain": "close"})
		k.advance(31)
		k.resolver.set("bank", `{"finding":"found"}`)
		return m{"execution": "e1", "owner": "b", "lease_seconds": 3600, "nonce": "n"}
	}, verb("resume"), func(k *kit, _, r m) error {
		if got := dispositions(r); got != "found:succeeded:settled closed:not_executed:settled" || r["owner"] != "b" {
			return fmt.Errorf("%s", got)
		}
		return kinds(k, "e1", "created checkpoint checkpoint claimed reconciled")
	}},
	{"resume that migrates", func(k *kit) m {
		k.do("create", m{"execution": "e1", "workflow": "w", "schema": m{"name": "s", "version": 1}, "claim": m{"owner": "a", "lease_seconds": 30}})
		k.workflow(m{"schema": m{"name": "s", "version": 2}, "migrations": []m{{"from": 1, "to": 2, "patch": []m{{"op": "add", "path": "/v", "value": 2}}}}})
		k.advance(31)
		return m{"execution": "e1", "owner": "b", "lease_seconds": 3600, "nonce": "n"}
	}, verb("resume"), func(k *kit, _, r m) error {
		if r["state"].(m)["v"] != 2.0 || k.head("e1", "schema_version") != "2" {
			return fmt.Errorf("%v", r)
		}
		return kinds(k, "e1", "created claimed migrated")
	}},
	{"resume that parks", func(k *kit) m {
		_, f := k.owned("e1")
		k.declare("e1", f, nil)
		k.advance(31)
		k.resolver.set("bank", `error`)
		return m{"execution": "e1", "owner": "b", "lease_seconds": 3600, "nonce": "n"}
	}, verb("resume"), func(k *kit, _, r m) error {
		if r["parked"] != true || k.head("e1", "due") == "" || k.get("e1")["owner"] != "" {
			return fmt.Errorf("%v", r)
		}
		if all := strings.Join(k.versions("e1"), " "); strings.Count(all, "claimed") != 1 || strings.Count(all, "parked") != 1 {
			return fmt.Errorf("entries %s", all)
		}
		// It goes on once there is an answer.
		k.resolver.set("bank", `{"finding":"found"}`)
		k.advance(3601)
		k.sweep()
		if k.target.causes() != "operation" {
			return fmt.Errorf("handed over %q", k.target.causes())
		}
		return nil
	}},
	{"reconcile with proof", func(k *kit) m {
		op, f := k.taken("e1", m{"valid_seconds": 1})
		k.advance(600)
		return m{"execution": "e1", "fence": f, "request_id": "r", "evidence": []m{{"operation": op, "finding": "not_found", "asked_at": k.engine.Now().Format("2006-01-02T15:04:05.000Z")}}}
	}, verb("reconcile"), func(k *kit, req, r m) error {
		op := req["evidence"].([]m)[0]["operation"].(string)
		if k.status("e1", op) != "not_executed" {
			return errors.New(k.status("e1", op))
		}
		if late := k.do("record_outcome", m{"execution": "e1", "operation": op, "outcome": "succeeded"}); late["recorded"] != false {
			return fmt.Errorf("the slot was open: %v", late)
		}
		return kinds(k, "e1", "created checkpoint claimed reconciled")
	}},
	{"a verdict", func(k *kit) m {
		op, _ := k.taken("e1", nil)
		k.advance(80_001)
		k.resolver.set("bank", `error`)
		k.do("resume", m{"execution": "e1", "owner": "c", "lease_seconds": 60})
		return m{"execution": "e1", "request_id": "r", "evidence": []m{{"operation": op, "finding": "decided", "attempt": 1, "outcome": "abandoned", "reason": "r"}}}
	}, verb("reconcile"), func(k *kit, req, _ m) error {
		k.sweep()
		if k.target.causes() != "verdict" {
			return fmt.Errorf("handed over %q", k.target.causes())
		}
		if all := strings.Join(k.versions("e1"), " "); strings.Count(all, "verdict") != 1 {
			return fmt.Errorf("entries %s", all)
		}
		return nil
	}},
	{"a sweep that hands over", func(k *kit) m {
		k.owned("e1")
		k.advance(31)
		return m{}
	}, verb("sweep"), func(k *kit, _, _ m) error {
		k.advance(61)
		k.sweep()
		if n := len(k.target.started); n < 1 || n > 2 {
			return fmt.Errorf("%d started", n)
		}
		v := k.target.inputs()[0]["version"]
		k.do("claim", m{"execution": "e1", "owner": "b", "lease_seconds": 60, "expected_version": v})
		return kinds(k, "e1", "created claimed")
	}},
	{"a sweep that parks", func(k *kit) m {
		k.workflow(m{"resume_target": nil})
		k.owned("e1")
		k.advance(31)
		return m{}
	}, verb("sweep"), func(k *kit, _, _ m) error {
		k.sweep() // what failed for now is still due
		if k.get("e1")["status"] != "parked" || k.head("e1", "due") == "" {
			return fmt.Errorf("%v", k.get("e1")["status"])
		}
		return kinds(k, "e1", "created parked")
	}},
	{"a sweep that wakes", func(k *kit) m {
		v, f := k.owned("e1")
		k.do("suspend", m{"execution": "e1", "expected_version": v, "fence": f, "wait": m{"signals": []string{"s"}, "wake": m{"task_token": "t"}}})
		k.do("signal", m{"execution": "e1", "name": "s", "key": "1"})
		return m{}
	}, verb("sweep"), func(k *kit, _, _ m) error {
		k.advance(61)
		k.sweep()
		if n := len(k.target.tokens) + len(k.target.started); n < 1 || n > 2 {
			return fmt.Errorf("%d woken", n)
		}
		return kinds(k, "e1", "created suspended")
	}},
	{"a batch of the stream", func(k *kit) m {
		k.owned("e1")
		k.advance(31)
		return m{}
	}, func(ctx context.Context, p process, _ m) (m, error) {
		out, err := p.handlers["recover"](ctx, []byte(`{"Records":[`+timer("1", "e1", "lease")+`]}`))
		if err == nil && strings.Contains(string(out), `"1"`) {
			err = errors.New("reported")
		}
		return nil, err
	}, func(k *kit, _, _ m) error {
		k.advance(61)
		k.sweep()
		if n := len(k.target.started); n < 1 || n > 2 {
			return fmt.Errorf("%d started", n)
		}
		return nil
	}},
	{"a batch of migrations", func(k *kit) m {
		k.do("create", m{"execution": "e1", "workflow": "w", "schema": m{"name": "s", "version": 1}})
		k.do("create", m{"execution": "e2", "workflow": "w", "schema": m{"name": "s", "version": 1}, "state": m{"v": 1}})
		k.workflow(m{"schema": m{"name": "s", "version": 2}, "migrations": []m{{"from": 1, "to": 2, "patch": []m{{"op": "replace", "path": "/v", "value": 2}}}}})
		return m{"workflow": "w"}
	}, func(ctx context.Context, p process, req m) (m, error) {
		r, err := p.call(ctx, "recover", "migrate", req)
		if err == nil && strings.Contains(fmt.Sprint(r["failures"]), "Unavailable") {
			err = errors.New("one of them failed for now")
		}
		return r, err
	}, func(k *kit, _, r m) error {
		if r["done"] != true || k.get("e2")["schema"].(m)["version"] != 2.0 {
			return fmt.Errorf("%v", r)
		}
		if err := kinds(k, "e2", "created migrated"); err != nil {
			return err
		}
		return kinds(k, "e1", "created")
	}},
}

// Recovery is struck at every storage call, one after the other, in every way;
// then another process repeats it. Nothing is lost, done twice, or stuck.
func TestStruckAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		for _, effect := range []string{"lost", "landed", "throttle", "crash_before", "crash_after"} {
			t.Run(r.name+"/"+effect, func(t *testing.T) {
				t.Parallel()
				strike(t, r, effect)
			})
		}
	}
}

func strike(t *testing.T, r row, effect string) {
	for nth := 1; ; nth++ {
		k := newKit(t)
		k.workflow(nil)
		req := r.setup(k)
		k.restart()
		k.engine.Mark()
		k.faults(memory.Fault{On: "*", Nth: nth, Effect: effect})
		ctx, inv := memory.WithInvocation(context.Background())
		reply, err := r.do(ctx, k.process, req)
		inv.End()
		k.faults()
		struck := false
		for _, c := range k.engine.Log() {
			struck = struck || c.Outcome == effect
		}
		var no *refusal
		if err != nil && errors.As(err, &no) && !no.code.Retryable() {
			t.Fatalf("call %d: %v", nth, err)
		}
		if err != nil || inv.Crashed() {
			k.restart()
			if reply, err = r.do(context.Background(), k.process, req); err != nil {
				t.Fatalf("call %d, repeated: %v", nth, err)
			}
		}
		if err := r.check(k, req, reply); err != nil {
			t.Fatalf("call %d: %v", nth, err)
		}
		if !struck {
			if nth < 3 {
				t.Fatal("nothing was struck")
			}
			return
		}
	}
}

// The same resume by many processes, each struck somewhere: one owner, one plan.
func TestManyStruckResumes(t *testing.T) {
	t.Parallel()
	for nth := 1; nth < 40; nth++ {
		k := newKit(t)
		k.workflow(nil)
		_, f := k.owned("e1")
		k.declare("e1", f, m{"on_uncertain": "close"})
		k.advance(31)
		owners := map[any]bool{}
		for i := range 4 {
			k.restart()
			k.faults(memory.Fault{On: "*", Nth: nth * (i + 1) % 17, Effect: []string{"lost", "landed"}[i%2]})
			r, err := k.try("resume", m{"execution": "e1", "owner": fmt.Sprint(i), "lease_seconds": 3600})
			k.faults()
			if err == nil {
				owners[r["owner"]] = true
			} else if code := err.(*refusal).code; code != execution.LeaseHeld && !code.Retryable() {
				t.Fatal(err)
			}
		}
		if _, err := k.try("resume", m{"execution": "e1", "owner": "last", "lease_seconds": 3600}); err == nil {
			owners["last"] = true
		}
		g := k.get("e1")
		if len(owners) > 1 || len(owners) == 1 && !owners[g["owner"]] || strings.Count(strings.Join(k.versions("e1"), " "), "claimed") != 1 {
			t.Fatalf("%d: owners %v, %v, %v", nth, owners, g["owner"], k.versions("e1"))
		}
	}
}
