package retention_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// stretched is a world with an execution of n entries, made from one real entry.
func stretched(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t)
	w.create("e", nil)
	w.apply("e", fields{"state": fields{"n": 1}})
	d := w.engine.Dump()
	var entry map[string]json.RawMessage
	for _, raw := range d.Items {
		if all(string(raw), `"bank#e"`, "j#00000000000000000002") {
			if err := json.Unmarshal(raw, &entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	for v := 3; v <= n; v++ {
		entry["sk"] = json.RawMessage(fmt.Sprintf(`{"S":"j#%020d"}`, v))
		raw, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		d.Items = append(d.Items, raw)
	}
	c := newWorldAt(t, w.engine.Now())
	if err := c.engine.Load(d); err != nil {
		t.Fatal(err)
	}
	c.restart()
	return c
}

// writes counts the write requests of the log.
func writes(w *world) (n int) {
	for _, c := range w.engine.Log() {
		switch c.Call {
		case "put", "update", "transact", "delete", "batch":
			n++
		}
	}
	return n
}

// TestDeletionOfAnOldExecution holds the numbers that a deletion may cost.
func TestDeletionOfAnOldExecution(t *testing.T) {
	const entries = 10_000
	for _, c := range []struct {
		name string
		age  time.Duration
		most int
	}{{"old entries", 2 * time.Hour, 420}, {"young entries", 0, 840}} {
		w := stretched(t, entries)
		w.advance(c.age)
		w.engine.Mark()
		start := time.Now()
		r := w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
		first := writes(w)
		w.advance(time.Hour)
		w.ok("retention", "sweep", nil)
		took := time.Since(start)
		n := writes(w)
		if r["counts"].(map[string]any)["entries"].(float64) != entries {
			t.Errorf("%s: counts %v", c.name, r["counts"])
		}
		if n > c.most {
			t.Errorf("%s: %d write requests, at most %d", c.name, n, c.most)
		}
		if left := of(w.items(), "bank#e/j#"); len(left) > 0 {
			t.Errorf("%s: %d entries left", c.name, len(left))
		}
		rate := entries / took.Seconds()
		t.Logf("%s: %d write requests, %d before the final sweep; %.0f items a second", c.name, n, first, rate)
		if rate < 3000 && !raceEnabled {
			t.Errorf("%s: %.0f items a second, at least 3,000", c.name, rate)
		}
	}
}

// TestVerifyStreams: verifying a large tenant holds a page at a time.
func TestVerifyStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a large store")
	}
	const n = 2000
	w := newWorld(t)
	for i := range n {
		w.create(fmt.Sprintf("e%d", i), nil)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	checked, cursor, most := 0, any(nil), uint64(0)
	for {
		f := fields{}
		if cursor != nil {
			f["cursor"] = cursor
		}
		r := w.ok("retention", "verify", f)
		if got := r["findings"].([]any); len(got) > 0 {
			t.Fatalf("findings: %v", got)
		}
		checked += int(r["checked"].(float64))
		w.engine.Mark()
		if now := heap(); now > before {
			most = max(most, now-before)
		}
		if cursor = r["cursor"]; cursor == nil {
			break
		}
	}
	if checked != n {
		t.Errorf("%d of %d checked", checked, n)
	}
	t.Logf("%d executions, %d KB above the store at most", checked, most>>10)
	if most > 64<<20 {
		t.Errorf("%d MB", most>>20)
	}
}
