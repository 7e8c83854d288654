package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// unsteady is a process that is often overtaken between its reads and its
// writes.
func (w *world) unsteady() *Journal {
	j := w.process()
	j.Table = &hooked{Table: j.Table, before: func(string) {
		for range rand.IntN(200) {
			runtime.Gosched()
		}
	}}
	return j
}

// Sixteen writers on one execution: exactly one winner a version, every
// acknowledged change in the history, none that was refused.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 12
	ctx := context.Background()
	w := newWorld(t)
	w.create(w.process(), "e", `{"n":{}}`, "w1")
	type ack struct {
		version int64
		id      string
	}
	acks := make([][]ack, writers)
	conflicts := make([]int, writers)
	shared := []*Journal{w.unsteady(), w.unsteady(), w.unsteady()}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			j := shared[i%3]
			if i%4 == 3 {
				j = w.unsteady()
			}
			for k := 0; k < each; {
				h, err := j.Open(ctx, tenant, "e", OpenOptions{Warm: true})
				if err != nil {
					t.Error(err)
					return
				}
				id := fmt.Sprintf("%d-%d-at-%d", i, k, h.State.Version)
				got, err := j.step(ctx, "e", change(h, id, fmt.Sprintf(`{"n":{"w%d":%d}}`, i, k)))
				switch execution.CodeOf(err) {
				case "":
					if got.Replay != nil {
						t.Errorf("%s: a replay", id)
					}
					acks[i] = append(acks[i], ack{got.Proposal.Entry.Version, id})
					k++
				case execution.VersionConflict:
					conflicts[i]++
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	log := w.history("e")
	if len(log) != 1+writers*each {
		t.Fatalf("%d entries, want %d", len(log), 1+writers*each)
	}
	lost := 0
	for i := range acks {
		for _, a := range acks[i] {
			if log[a.version-1].Body.RequestID != a.id {
				t.Errorf("version %d is %s, acknowledged to %s", a.version, log[a.version-1].Body.RequestID, a.id)
			}
		}
		lost += conflicts[i]
	}
	s := w.open(w.process(), "e").State
	for i := range writers {
		if got := s.Data.Get("n").Get(fmt.Sprint("w", i)).Raw(); got != fmt.Sprint(each-1) {
			t.Errorf("writer %d ends at %s", i, got)
		}
	}
	t.Logf("%d writes, %d conflicts", writers*each, lost)
}

// Claims, renewals, commits and endings at once, on a clock that runs: whoever
// wrote an entry held the fence of its time, and the head says what the journal
// says.
func TestConcurrentOwners(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	w.create(w.process(), "e", `{"n":0}`, "w0")
	var mu sync.Mutex
	acked := map[int64]string{}
	won := 0
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			j := w.unsteady()
			owner := fmt.Sprint("w", i)
			for k := range 25 {
				nonce := fmt.Sprint(owner, "-", k)
				got, err := j.Claim(ctx, tenant, "e", claiming(owner, nonce), nil)
				code := execution.CodeOf(err)
				if code == execution.LeaseHeld || code == execution.Unavailable {
					if err := w.engine.Advance(time.Duration(r.IntN(30)) * time.Second); err != nil {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				h := got.Handle
				mu.Lock()
				won++
				mu.Unlock()
				for n := range r.IntN(4) {
					if r.IntN(2) == 0 {
						if _, err := j.Renew(ctx, tenant, "e", owner, h.State.Fence, 60); err != nil && execution.CodeOf(err) != execution.LeaseLost && execution.CodeOf(err) != execution.Unavailable {
							t.Errorf("renew: %v", err)
						}
					}
					c := change(h, fmt.Sprint(nonce, "/", n), `{"n":`+jsonx.Quote(nonce)+`}`)
					if n == 2 {
						c.Kind, c.Continue = execution.KindContinued, &execution.Continue{}
					}
					got, err := j.step(ctx, "e", c)
					if code := execution.CodeOf(err); code == execution.LeaseLost || code == execution.Unavailable {
						break // over, or the others' clock ran too far meanwhile to know
					} else if err != nil {
						t.Errorf("commit: %v", err)
						return
					}
					mu.Lock()
					acked[got.Proposal.Entry.Version] = c.Request.ID
					mu.Unlock()
					h = got.Handle
				}
			}
		})
	}
	wg.Wait()
	log := w.history("e")
	fence := int64(0)
	for _, e := range log {
		if e.Body.Claim != nil {
			if e.Fence <= fence || e.Fence != e.Version {
				t.Errorf("version %d: fence %d after %d", e.Version, e.Fence, fence)
			}
			fence = e.Fence
		} else if e.Fence != fence {
			t.Errorf("version %d was written under fence %d while %d was current", e.Version, e.Fence, fence)
		}
	}
	for v, id := range acked {
		if log[v-1].Body.RequestID != id {
			t.Errorf("version %d is %s, acknowledged to %s", v, log[v-1].Body.RequestID, id)
		}
	}
	h := w.open(w.process(), "e")
	if h.Head.Fence != h.State.Fence || h.Head.Status != h.State.Status || h.Head.Owner != h.State.Owner || h.State.Owner != "" && h.Head.DueAt != h.Head.LeaseExpiresAt {
		t.Errorf("head %+v, state owner %q fence %d", h.Head, h.State.Owner, h.State.Fence)
	}
	t.Logf("%d claims won, %d entries", won, len(log))
}

// A 1 MB state opened by a process that has nothing in memory: bounded by what
// it allocates; the time is reported, never asserted.
func TestOpenLargeState(t *testing.T) {
	w := newWorld(t)
	j := w.process()
	p := prose{rand.New(rand.NewPCG(1, 2))}
	list := make([]*jsonx.Value, 0, 2000)
	for n := 0; n < 1<<20; {
		v := value(`{"role":"assistant","content":` + jsonx.Quote(p.text(400)) + `,"tokens":117,"ok":true}`)
		list = append(list, v)
		n += v.Size() + 1
	}
	h := w.create(j, "e", `{"messages":`+jsonx.NewArray(list...).String()+`}`, "w1")
	w.apply(j, h, "a", `{"n":1}`)
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.process().Open(context.Background(), tenant, "e", OpenOptions{Head: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	t.Logf("state of %d bytes: %v, %.1f MB allocated, %d allocations", h.State.Data.Size(), time.Duration(r.NsPerOp()), float64(r.AllocedBytesPerOp())/1e6, r.AllocsPerOp())
	if r.AllocedBytesPerOp() > 12<<20 {
		t.Errorf("%d bytes allocated, at most 12 MB", r.AllocedBytesPerOp())
	}
}

// A warm step's work outside the store, sealing included.
func TestStepWork(t *testing.T) {
	w := newWorld(t)
	j := w.process()
	p := prose{rand.New(rand.NewPCG(1, 2))}
	h := w.create(j, "e", `{"text":`+jsonx.Quote(p.text(10<<10))+`,"last":0}`, "w1")
	// The memory of requests as full as it gets, and no snapshot in the way.
	for i := range execution.MaxRequestMemory {
		h = w.apply(j, h, fmt.Sprint(i), `{"last":`+fmt.Sprint(i)+`}`)
	}
	patch := value(`[{"op":"replace","path":"/last","value":` + jsonx.Quote(p.text(970)) + `}]`)
	n := 0
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n++
			c := change(h, fmt.Sprint("s", n), `{}`)
			c.Merge, c.Patch = nil, patch
			got, err := execution.Propose(h.State, h.State.Ref, &c, execution.Environment{Now: j.Now(h)})
			if err != nil {
				b.Fatal(err)
			}
			s, _, err := j.seal(context.Background(), h, got.Entry)
			if err != nil {
				b.Fatal(err)
			}
			s.toItem(h.State.PK())
		}
	})
	t.Logf("propose, encode and seal: %v, %d bytes, %d allocations a step", time.Duration(r.NsPerOp()), r.AllocedBytesPerOp(), r.AllocsPerOp())
	if r.AllocedBytesPerOp() > 200<<10 {
		t.Errorf("%d bytes allocated a step, at most 200 KB", r.AllocedBytesPerOp())
	}
}
