package bench

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// instant is a table whose plain puts cost nothing, so that what is measured is
// the work around them.
type instant struct {
	store.Table
	engine *memory.Engine
}

func (i instant) Put(context.Context, store.Put) (store.Meta, error) {
	return store.Meta{Date: i.engine.Now(), WriteUnits: 1}, nil
}

// TestWorkOutsideTheStore measures what an apply does besides its one call, in
// CPU time, so that what else runs on the machine does not count.
func TestWorkOutsideTheStore(t *testing.T) {
	asked(t)
	e := memory.New(memory.Options{NoStream: true})
	table := instant{e.Table(memory.Main), e}
	const batches, steps = 50, 20 // the state stays at 10 to 30 KB
	var spent time.Duration
	var bytes uint64
	for n := range batches {
		w := open(t, wiring.Outside{Main: table, Keys: e.Table(memory.Keys), Bucket: e.Bucket(), KMS: &local.KMS{Master: make([]byte, 32)}, DataKey: "k"}, fmt.Sprintf("t%d", n))
		w.apply(t, w.request(-1))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := cpu(t)
		for i := range steps {
			w.apply(t, w.request(i))
		}
		spent += cpu(t) - begin
		runtime.ReadMemStats(&after)
		bytes += after.TotalAlloc - before.TotalAlloc
	}
	per, each := spent/(batches*steps), bytes/(batches*steps)
	fmt.Printf("work of an apply outside the store: %v of CPU (at most %v), %d KB allocated (at most %d)\n", per, maxWork, each>>10, maxWorkBytes>>10)
	if per > maxWork || each > maxWorkBytes {
		t.Errorf("%v and %d bytes, want at most %v and %d", per, each, maxWork, maxWorkBytes)
	}
}

// cpu is the CPU time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
