package memory_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// TestMillionExecutions fills a store with a million executions (head, entry,
// registry row) and works in it: memory and time stay bounded.
func TestMillionExecutions(t *testing.T) {
	if os.Getenv("CAIRN_BIG") == "" {
		t.Skip("SKIP: a million executions take 1.5 GB and a minute; set CAIRN_BIG=1")
	}
	e := memory.New(memory.Options{NoStream: true})
	tb := e.Table(memory.Main)
	begin := time.Now()
	body := store.B(make([]byte, 300))
	for i := range 1_000_000 {
		head := benchHead(i, "running")
		for _, it := range []store.Item{head,
			{"pk": head["pk"], "sk": store.S("j#00000000000000000001"), "v": store.N(1), "kind": store.S("created"), "body": body},
			{"pk": store.S(fmt.Sprintf("t#~%d", i%16)), "sk": store.S(fmt.Sprintf("e%07d#1", i*7919%1_000_000))}} {
			if _, err := tb.Put(t.Context(), store.Put{Item: it, Cond: store.NotThere()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("filled in %v, heap %d MB", time.Since(begin), m.HeapInuse>>20)
	if m.HeapInuse > 4<<30 {
		t.Errorf("heap %d MB", m.HeapInuse>>20)
	}
	begin = time.Now()
	page, _, err := tb.Query(t.Context(), store.Query{PK: "~due#1", Index: "due", Limit: 100})
	must(t, err)
	if len(page.Items) != 100 || page.Items[99].Int("due") != 99 {
		t.Errorf("due: %d items", len(page.Items))
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("a page of an index took %v", d)
	}
}
