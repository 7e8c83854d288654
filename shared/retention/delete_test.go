package retention_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// others are what a deletion must not touch: another execution of the tenant and
// a tenant whose name begins with this one's.
func others(w *world) (items, objects map[string]string) {
	items, objects = map[string]string{}, map[string]string{}
	for k, v := range w.items() {
		if strings.HasPrefix(k, "bank#other/") || strings.HasPrefix(k, "bank2#") {
			items[k] = v
		}
	}
	for k, v := range w.objects() {
		if strings.HasPrefix(k, "bank/e/other/") || strings.HasPrefix(k, "bank2/") {
			objects[k] = v
		}
	}
	return items, objects
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if g, ok := got[k]; !ok {
			t.Errorf("%s: %s is gone", what, k)
		} else if g != v {
			t.Errorf("%s: %s is %.300s, want %.300s", what, k, g, v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s is left", what, k)
		}
	}
}

// populated is a world with an execution `e`, another one, and another tenant.
func populated(t testing.TB, old bool) *world {
	w := newWorld(t)
	w.rich("e", nil)
	w.rich("other", nil)
	w.tenant = "bank2"
	w.rich("e", nil)
	w.tenant = "bank"
	if old {
		w.advance(90 * time.Minute)
	}
	return w
}

func TestDeleteReachesEverything(t *testing.T) {
	t.Parallel()
	w := populated(t, false)
	w = edited(t, w, func(d *memory.Dump) {
		d.Uploads = append(d.Uploads, memory.Upload{Key: journal.ObjectPrefix(ref(w, "e")) + "artifacts/half", UploadID: "u1", Started: w.engine.Now()})
		for i := range d.Objects { // an older version below a marker
			if strings.HasPrefix(d.Objects[i].Key, "bank/e/e/") {
				d.Objects = append(d.Objects, memory.Object{Key: d.Objects[i].Key, DeleteMarker: true})
				break
			}
		}
	})
	oi, oo := others(w)
	gone := ref(w, "e")
	r := w.ok("retention", "delete", fields{"execution": "e", "reason": "asked for"})
	if r["done"] != true {
		t.Fatalf("not done: %v", r)
	}
	counts := r["counts"].(map[string]any)
	if counts["entries"].(float64) < 4 || counts["slots"].(float64) != 1 || counts["signals"].(float64) != 1 || counts["objects"].(float64) < 2 {
		t.Errorf("counts %v", counts)
	}
	if c := w.getCode("e"); c != execution.Deleted {
		t.Errorf("get after deletion: %s", c)
	}
	left := of(w.items(), "bank#e/")
	for _, k := range left {
		if !strings.HasPrefix(k, "bank#e/receipt#") && !strings.HasPrefix(k, "bank#e/j#") && !strings.HasPrefix(k, "bank#e/op#") {
			t.Errorf("left: %s", k)
		}
	}
	if got := of(w.objects(), "bank/e/e/"); len(got) > 0 || len(w.engine.Dump().Uploads) > 0 {
		t.Errorf("objects left: %v, uploads %v", got, w.engine.Dump().Uploads)
	}
	for k, v := range w.items() {
		if strings.HasPrefix(k, "bank#~s") && strings.Contains(k, fmt.Sprintf("/e#%020d", gone.Generation)) {
			t.Errorf("selector row left: %s %s", k, v)
		}
	}
	w.advance(time.Hour)
	w.settle()
	if got := of(w.items(), "bank#e/"); len(got) != 1 || !strings.Contains(got[0], "receipt#") {
		t.Errorf("after the final sweep: %v", got)
	}
	rows := func() (n int) {
		for k := range w.items() {
			if strings.HasPrefix(k, "bank#~") && strings.Contains(k, "/e#") {
				n++
			}
		}
		return n
	}
	if rows() != 1 {
		t.Errorf("%d registry rows beside the receipt: a purge would not find it", rows())
	}
	gi, gotObjects := others(w)
	delete(oi, "bank#other/timer#lease") // rang meanwhile
	delete(gi, "bank#other/timer#lease")
	same(t, "others' items", gi, oi)
	same(t, "others' objects", gotObjects, oo)
	if c := w.code("retention", "delete", fields{"execution": "e", "reason": "again"}); c != "" {
		t.Errorf("delete again: %s", c)
	}
	if c := w.code("retention", "delete", fields{"execution": "never", "reason": "again"}); c != execution.NotFound {
		t.Errorf("delete of nothing: %s", c)
	}
	rec := w.ok("retention", "get_receipt", fields{"execution": "e"})["receipt"].(map[string]any)
	for _, name := range []string{"state", "reason", "counts", "digests", "closed_at", "deleted_at", "recoverable_until", "expires_at"} {
		if rec[name] == nil {
			t.Errorf("the receipt has no %s: %v", name, rec)
		}
	}
	// Years later the item is gone and the object still tells.
	w.advance(100 * 24 * time.Hour)
	w.settle()
	if got := of(w.items(), "bank#e/"); len(got) != 0 {
		t.Errorf("after the receipt's time: %v", got)
	}
	if rows() != 0 {
		t.Errorf("%d registry rows after the receipt's time", rows())
	}
	if got := w.ok("retention", "get_receipt", fields{"execution": "e"})["receipt"].(map[string]any); got["deleted_at"] != rec["deleted_at"] {
		t.Errorf("the kept receipt says %v", got)
	}
	if list := w.ok("retention", "receipts", nil)["receipts"].([]any); len(list) != 1 {
		t.Errorf("receipts: %v", list)
	}
	if c := w.getCode("e"); c != execution.NotFound {
		t.Errorf("get after the receipt's time: %s", c)
	}
	w.create("e", nil)
}

// TestDeletionKeepsFilledSlotsTaken: a tool's transaction that was on its way when
// another attempt was made and the execution was deleted must not commit, however
// long ago the slot was filled.
func TestDeletionKeepsFilledSlotsTaken(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		w := populated(t, old)
		gone := ref(w, "e")
		slots := of(w.items(), "bank#e/op#")
		if len(slots) != 1 {
			t.Fatalf("slots: %v", slots)
		}
		op, _, _ := strings.Cut(strings.TrimPrefix(slots[0], "bank#e/op#"), "#")
		late, err := journal.FillWrite(t.Context(), w.Sealer, gone, &journal.Slot{Operation: execution.OperationID(op), Attempt: 1, Generation: gone.Generation, Outcome: execution.OutcomeSucceeded, At: 1, ProviderRef: "late"})
		if err != nil {
			t.Fatal(err)
		}
		w.ok("retention", "delete", fields{"execution": "e", "reason": "asked for"})
		left := of(w.items(), "bank#e/op#")
		if len(left) != 1 {
			t.Fatalf("old %v: left %v", old, left)
		}
		if it := w.items()[slots[0]]; strings.Contains(it, "succeeded") || strings.Contains(it, journal.SlotBody+":") {
			t.Errorf("the stub says %s", it)
		}
		var refused *store.ConditionFailed
		if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), *late); !errors.As(err, &refused) {
			t.Errorf("a late tool: %v", err)
		}
		w.create("e", fields{"reuse": "new_generation"})
		if f := w.ok("retention", "verify", fields{"execution": "e"})["findings"].([]any); len(f) > 0 {
			t.Errorf("verify of the id used again: %v", f)
		}
		w.advance(time.Hour)
		w.settle()
		if left := of(w.items(), "bank#e/op#"); len(left) > 0 {
			t.Errorf("after the final sweep: %v", left)
		}
	}
}

// outcome is what a disturbed run must share with an undisturbed one.
func outcome(w *world) (items, objects map[string]string) {
	items, objects = w.items(), w.objects()
	for k := range items { // rounds over the bucket are no part of a deletion
		if strings.HasSuffix(k, "/sweep#objects") {
			delete(items, k)
		}
	}
	return items, objects
}

// TestDeleteSurvivesEverything strikes every storage call of a deletion, lost
// and landed, with and without the death of the process, then goes on: by the
// same call, or by the sweep alone.
func TestDeleteSurvivesEverything(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		base := populated(t, old)
		run := func(w *world, ctx context.Context) error {
			_, err := w.do(ctx, "retention", "delete", fields{"execution": "e", "reason": "asked for", "request_id": "the-deletion"})
			return err
		}
		finish := func(w *world, sweepOnly bool) {
			if !sweepOnly {
				if err := run(w, t.Context()); err != nil {
					t.Errorf("delete again: %v", err)
				}
			} else {
				w.advance(2 * time.Minute)
				w.settle()
			}
			w.advance(time.Hour + time.Minute)
			w.settle()
		}
		undisturbed, calls := map[bool]*world{}, 0
		for _, byBeing := range []bool{false, true} {
			u := copyOf(t, base)
			u.engine.Mark()
			if err := run(u, t.Context()); err != nil {
				t.Fatal(err)
			}
			calls = len(u.engine.Log())
			finish(u, byBeing)
			undisturbed[byBeing] = u
		}
		rows := 0
		for _, effect := range []string{"lost", "landed", "crash_before", "crash_after"} {
			for n := 1; n <= calls; n += stride() {
				w := copyOf(t, base)
				w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
				err := w.crash(func(ctx context.Context) error { return run(w, ctx) })
				w.faults()
				rows++
				w.restart()
				sweepOnly := n%2 == 0 && closedAlready(w)
				finish(w, sweepOnly)
				gi, gotObjects := outcome(w)
				wi, wo := outcome(undisturbed[sweepOnly])
				strip(gi, sweepOnly)
				strip(wi, sweepOnly)
				same(t, fmt.Sprintf("old %v, %s at call %d (%v)", old, effect, n, err), gi, wi)
				if !sweepOnly {
					same(t, fmt.Sprintf("old %v, %s at call %d: objects", old, effect, n), gotObjects, wo)
				}
				if t.Failed() {
					return
				}
			}
		}
		t.Logf("old %v: %d rows", old, rows)
		if rows < 40 && !raceEnabled {
			t.Errorf("only %d rows: the faults do not strike", rows)
		}
	}
}

// closedAlready reports whether the deletion has begun for good.
func closedAlready(w *world) bool {
	return len(of(w.items(), "bank#e/receipt#")) > 0
}

// strip leaves out the times of a receipt that a sweep finished later.
func strip(items map[string]string, sweepOnly bool) {
	for k := range items {
		if sweepOnly && strings.Contains(k, "/receipt#") {
			items[k] = "receipt"
		}
	}
}
