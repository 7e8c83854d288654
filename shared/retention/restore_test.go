package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// TestTableRestoredFromABackup runs the procedure of docs/OPERATIONS.md: nothing
// erased comes back and no old fence wins.
func TestTableRestoredFromABackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, e := range []string{"kept", "erased", "again", "worked"} {
		w.rich(e, nil)
	}
	w.ok("retention", "delete", fields{"execution": "again", "reason": "r"})
	w.advance(2 * time.Hour)
	w.settle()
	w.rich("again", fields{"reuse": "new_generation"})
	second := ref(w, "again")
	backup := w.engine.Dump()
	since := w.engine.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	w.advance(time.Minute)

	w.ok("retention", "delete", fields{"execution": "erased", "reason": "gdpr"})
	claimed := w.ok("recover", "claim", fields{"execution": "worked", "owner": "after", "lease_seconds": 60, "nonce": "n", "force": fields{"reason": "r"}})
	w.advance(10 * time.Minute)

	// The table as of the backup, the bucket as it is now; the epoch is raised.
	now := w.engine.Dump()
	now.Items = backup.Items
	r := newWorldAt(t, w.engine.Now())
	if err := r.engine.Load(now); err != nil {
		t.Fatal(err)
	}
	r.epoch = 1
	r.restart()

	list := r.ok("retention", "receipts", fields{"since": since})["receipts"].([]any)
	if len(list) != 1 {
		t.Fatalf("receipts since the backup: %v", list)
	}
	for _, x := range r.ok("retention", "receipts", nil)["receipts"].([]any) {
		m := x.(map[string]any)
		_, err := r.do(t.Context(), "retention", "delete", fields{"execution": m["execution"], "generation": m["generation"], "reason": "replayed receipt"})
		if c := execution.CodeOf(err); c != "" && c != execution.NotFound {
			t.Errorf("replay of %v: %v", m["execution"], err)
		}
	}
	if c := r.getCode("erased"); c != execution.Deleted {
		t.Errorf("the erased one answers %q", c)
	}
	if got := of(r.objects(), "bank/e/erased/"); len(got) > 0 {
		t.Errorf("objects of the erased one: %v", got)
	}
	for _, e := range []string{"kept", "again", "worked"} {
		if c := r.getCode(e); c != "" {
			t.Errorf("%s answers %q", e, c)
		}
	}
	if got := ref(r, "again"); got != second {
		t.Errorf("the recreated id: %v, want %v", got, second)
	}
	// The claim that the backup does not know is fenced out by any new one.
	fresh := r.ok("recover", "claim", fields{"execution": "worked", "owner": "new", "lease_seconds": 60, "nonce": "m", "force": fields{"reason": "restored"}})
	if fresh["fence"].(float64) <= claimed["fence"].(float64) {
		t.Errorf("the new fence %v does not outrank the lost one %v", fresh["fence"], claimed["fence"])
	}
	_, err := r.do(context.Background(), "checkpoint", "apply", fields{"execution": "worked", "expected_version": fresh["version"], "fence": claimed["fence"], "state": fields{}})
	if c := execution.CodeOf(err); c != execution.LeaseLost {
		t.Errorf("a write under the lost fence: %q", c)
	}
}
