package retention_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// TestFigures: whoever is paged for retention is paged by these.
func TestFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counts := map[string]float64{}
	w.Retention.Count = func(name string, v float64) { counts[name] += v }
	want := func(at string, removed, failures, held float64) {
		t.Helper()
		if counts[telemetry.RetentionRemoved] != removed || counts[telemetry.RetentionFailures] != failures || counts[telemetry.RetentionHeld] != held {
			t.Errorf("%s: %v, want %v removed, %v failures, %v held", at, counts, removed, failures, held)
		}
		clear(counts)
	}
	w.setPolicy(fields{"completed_days": 1, "receipt_days": 30})
	for _, e := range []string{"a", "b", "held"} {
		w.create(e, fields{"policy": "p", "claim": fields{"owner": "w", "lease_seconds": 900}})
		w.complete(e)
	}
	w.ok("retention", "hold", fields{"execution": "held", "hold": "h", "reason": "legal"})
	w.advance(time.Hour)
	w.settle()
	clear(counts) // what the policy's own look at everything did
	w.sweep()
	want("nothing is due", 0, 0, 0)
	w.advance(23*time.Hour + time.Minute)
	w.faults(memory.Fault{On: "transact", Nth: 1, Effect: "throttle"})
	w.sweep()
	w.faults()
	want("one of two is refused by the store", 1, 1, 1)
	w.advance(6 * time.Minute)
	w.sweep()
	want("it is tried again", 1, 0, 0)
	w.Retention.Stream(t.Context(), []json.RawMessage{json.RawMessage(`{"dynamodb":{}}`)})
	want("a record that nothing names", 0, 1, 0)
}
