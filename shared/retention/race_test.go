package retention_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// TestEverybodyAtOnce: workers of the old generation, two deleters, a holder, a
// creator of the next generation, sweeps and stream records at the same time.
// Whatever the order, what lives in the end is one whole generation, and of the
// old one nothing is left.
func TestEverybodyAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 30 {
		w := newWorld(t)
		w.rich("e", nil)
		old := ref(w, "e")
		at := w.get("e")
		var wg sync.WaitGroup
		run := func(f func(ctx context.Context)) {
			wg.Add(1)
			go func() { defer wg.Done(); f(context.Background()) }()
		}
		allowed := func(what string, err error, codes ...execution.Code) {
			for _, c := range append(codes, "", execution.Deleted, execution.Unavailable, execution.Throttled) {
				if execution.CodeOf(err) == c {
					return
				}
			}
			t.Errorf("round %d: %s: %v", round, what, err)
		}
		for i := range 2 {
			run(func(ctx context.Context) {
				_, err := w.do(ctx, "retention", "delete", fields{"execution": "e", "reason": "r", "generation": old.Generation, "request_id": fmt.Sprintf("d%d", i)})
				allowed("delete", err, execution.Held, execution.NotFound)
			})
		}
		run(func(ctx context.Context) {
			v := int64(at["version"].(float64))
			for i := range 10 {
				_, err := w.do(ctx, "checkpoint", "apply", fields{"execution": "e", "expected_version": v, "fence": at["fence"], "state": fields{"i": i}, "request_id": fmt.Sprintf("a%d", i)})
				allowed("apply", err, execution.LeaseLost, execution.VersionConflict, execution.RequestForgotten, execution.InvalidRequest, execution.Integrity)
				if err != nil {
					return
				}
				v++
			}
		})
		run(func(ctx context.Context) {
			for i := range 20 {
				_, err := w.do(ctx, "checkpoint", "create", fields{"execution": "e", "workflow": "wf", "reuse": "new_generation", "request_id": fmt.Sprintf("c%d", i), "state": fields{"second": true}})
				allowed("create", err, execution.AlreadyExists)
				if err == nil {
					return
				}
			}
		})
		run(func(ctx context.Context) {
			for range 5 {
				_, err := w.do(ctx, "retention", "sweep", nil)
				allowed("sweep", err)
			}
		})
		run(func(ctx context.Context) {
			for i := range 5 {
				_, err := w.do(ctx, "checkpoint", "signal", fields{"execution": "e", "name": "late", "key": fmt.Sprint(i), "body": fields{}})
				allowed("signal", err)
			}
		})
		wg.Wait()
		w.restart()
		if c := w.code("retention", "delete", fields{"execution": "e", "reason": "r", "generation": old.Generation}); c != "" {
			t.Errorf("round %d: the deletion of the old generation: %q", round, c)
		}
		w.advance(70 * time.Minute)
		w.settle()
		h, _, err := w.Journal.ReadHead(t.Context(), "bank", "e")
		if err != nil {
			t.Fatal(err)
		}
		if h != nil {
			if h.Generation == old.Generation {
				t.Fatalf("round %d: the old generation lives", round)
			}
			if s := w.get("e"); s["state"].(map[string]any)["second"] != true {
				t.Errorf("round %d: generation 2 has %v", round, s["state"])
			}
			if f := w.findings(fields{"execution": "e"}); len(f) > 0 {
				t.Errorf("round %d: findings %v", round, f)
			}
		}
		for _, it := range w.query("bank#e") {
			g := it.Int(journal.HeadGeneration)
			if g == 0 {
				g = it.Int("g")
			}
			if g == old.Generation && it.Key().SK[:5] != "recei" {
				t.Errorf("round %d: left of the old generation: %s", round, it.Key().SK)
			}
		}
		if got := of(w.objects(), journal.ObjectPrefix(old)); len(got) > 0 {
			t.Errorf("round %d: objects of the old generation: %v", round, got)
		}
	}
}

// TestPruneSurvivesEverything strikes every storage call of a sweep that applies
// a history rule; the next sweeps come to the same end.
func TestPruneSurvivesEverything(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"history": fields{"keep": "versions", "n": 3}})
	base.rich("e", fields{"policy": "p"})
	for i := range 6 {
		base.apply("e", fields{"state": fields{"i": i, "text": noise(uint64(i), 50_000)}})
	}
	base.advance(26 * time.Hour)
	u := copyOf(t, base)
	u.engine.Mark()
	u.sweep()
	calls := len(u.engine.Log())
	u.settle()
	keys := func(w *world) map[string]string {
		items, objects := outcome(w)
		out := map[string]string{}
		for k, v := range objects {
			out[k] = v
		}
		for k := range items {
			if k != "bank/replan#p" {
				out[k] = ""
			}
		}
		return out
	}
	for _, effect := range []string{"lost", "landed", "crash_before", "crash_after"} {
		for n := 1; n <= calls; n += stride() {
			w := copyOf(t, base)
			w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
			_ = w.crash(func(ctx context.Context) error { _, err := w.do(ctx, "retention", "sweep", nil); return err })
			w.faults()
			w.restart()
			if c := w.getCode("e"); c != "" {
				t.Errorf("%s at call %d: %q", effect, n, c)
			}
			w.advance(6 * time.Minute)
			w.settle()
			same(t, fmt.Sprintf("%s at call %d", effect, n), keys(w), keys(u))
		}
	}
}
