package retention_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// TestEverybodyGivesUp: where one kind of call is never answered, or always refused
// for its rate, every verb ends after a few tries, with a code that says what to do.
func TestEverybodyGivesUp(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"completed_days": 365, "history": fields{"keep": "versions", "n": 1}})
	base.rich("e", fields{"policy": "p", "thread": "T"})
	fence, version := base.get("e")["fence"], base.get("e")["version"]
	digest := base.ok("checkpoint", "put_artifact", fields{"execution": "e", "fence": fence, "name": "late", "media_type": "text/plain", "body": []byte("late")})["artifact"].(map[string]any)["digest"]
	op := base.get("e")["operations"].([]any)[0].(map[string]any)["operation"]
	for _, e := range []string{"done", "archived", "held"} {
		base.rich(e, fields{"policy": "p"})
		base.complete(e)
	}
	base.ok("retention", "archive", fields{"execution": "archived"})
	base.ok("retention", "hold", fields{"execution": "held", "hold": "h", "reason": "legal"})
	base.advance(25 * time.Hour) // everything of age for the sweeps, and the lease is over
	purging := copyOf(t, base)
	purging.ok("retention", "release_hold", fields{"execution": "held", "hold": "h", "reason": "over"})
	for range 10 {
		if ms, ok := purging.ok("retention", "purge_tenant", fields{"limit": 1000})["retry_after_ms"].(float64); ok {
			purging.advance(time.Duration(ms) * time.Millisecond)
			break
		}
	}
	step := fields{"execution": "e", "fence": fence, "expected_version": version}
	verbs := []struct {
		function, action string
		f                fields
	}{
		{"checkpoint", "create", fields{"execution": "new", "workflow": "wf", "policy": "p", "subjects": []string{"s"}, "state": fields{"big": noise(1, 60_000)}}},
		{"checkpoint", "apply", with(step, fields{"state": fields{"big": noise(2, 60_000)}, "artifacts": []any{digest}, "labels": fields{"kind": "x"},
			"operations": []any{fields{"name": "pay", "key": "2", "args": fields{}}}, "outcomes": []any{fields{"operation": op}}})},
		{"checkpoint", "suspend", with(step, fields{"wait": fields{"signals": []string{"paper"}, "operations": []any{op}}})},
		{"checkpoint", "complete", with(step, fields{"outcome": "completed"})},
		{"checkpoint", "put_artifact", fields{"execution": "e", "fence": fence, "name": "x", "media_type": "text/plain", "body": []byte("another")}},
		{"checkpoint", "get_artifact", fields{"execution": "e", "name": "doc"}},
		{"checkpoint", "signal", fields{"execution": "e", "name": "paper", "key": "2", "body": fields{"s": 2}}},
		{"checkpoint", "record_outcome", fields{"execution": "e", "operation": op, "outcome": "failed", "result": fields{"big": noise(3, 60_000)}}},
		{"checkpoint", "fork", fields{"execution": "e", "at_version": 1, "new_execution": "f", "operations": "refuse"}},
		{"checkpoint", "fork", fields{"execution": "e", "at_version": 3, "new_execution": "f", "operations": "carry"}},
		{"checkpoint", "set_workflow", fields{"workflow": fields{"name": "other"}}},
		{"checkpoint", "get", fields{"execution": "archived", "version": 1}},
		{"checkpoint", "history", fields{"execution": "archived"}},
		{"checkpoint", "list", fields{"thread": "T"}},
		{"recover", "claim", fields{"execution": "e", "owner": "x", "lease_seconds": 60}},
		{"recover", "resume", fields{"execution": "e", "owner": "x", "lease_seconds": 60, "nonce": "n"}},
		{"recover", "renew", fields{"execution": "e", "owner": "w", "fence": fence, "lease_seconds": 90_000}},
		{"recover", "release", fields{"execution": "e", "owner": "w", "fence": fence}},
		{"recover", "halt", fields{"execution": "e", "reason": "look"}},
		{"recover", "reconcile", fields{"execution": "e", "fence": fence}},
		{"recover", "sweep", nil},
		{"retention", "hold", fields{"execution": "e", "hold": "h", "reason": "legal"}},
		{"retention", "hold", fields{"thread": "T", "hold": "h", "reason": "legal"}},
		{"retention", "hold", fields{"subject": "customer-1", "hold": "h", "reason": "legal"}},
		{"retention", "release_hold", fields{"execution": "held", "hold": "h", "reason": "over"}},
		{"retention", "archive", fields{"execution": "done"}},
		{"retention", "restore", fields{"execution": "archived"}},
		{"retention", "delete", fields{"execution": "archived", "reason": "asked"}},
		{"retention", "delete", fields{"subject": "customer-1", "reason": "asked", "when_released": true}},
		{"retention", "set_policy", fields{"policy": fields{"name": "p", "completed_days": 1}}},
		{"retention", "sweep", nil},
		{"retention", "verify", nil},
		{"retention", "rotate_key", nil},
		{"retention", "purge_tenant", nil},
		{"retention", "purge_tenant", fields{"limit": 1000}}, // to its end
	}
	struck := 0
	for n, v := range verbs {
		for m, on := range []string{"put", "update", "transact", "query", "get", "delete", "batch", "put_object", "get_object", "delete_objects", "head_object", "list_objects"} {
			for i, effect := range []string{"lost", "landed", "throttle"} {
				if (n+m+i)%stride() > 0 {
					continue
				}
				w := copyOf(t, base)
				if v.f["limit"] != nil {
					w = copyOf(t, purging)
				} else {
					w.get("e") // the process has the keys
				}
				w.faults(memory.Fault{On: on, Effect: effect, Count: 1_000_000})
				w.engine.Mark()
				at := fmt.Sprintf("%s %d, every %s %s", v.action, n, on, effect)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				_, err := w.do(ctx, v.function, v.action, v.f)
				if ctx.Err() != nil {
					t.Errorf("%s: it does not give up", at)
				}
				cancel()
				calls := w.engine.Log()
				for _, c := range calls {
					if c.Outcome == effect {
						struck++
						break
					}
				}
				if len(calls) > 150 {
					t.Errorf("%s: %d calls", at, len(calls))
				}
				switch c := execution.CodeOf(err); c {
				case execution.Internal, execution.Integrity:
					t.Errorf("%s: %v", at, err)
				}
			}
		}
	}
	t.Logf("%d struck", struck)
	if struck < 300 && !raceEnabled {
		t.Errorf("only %d met a fault", struck)
	}
}
