package simulation

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

const tenant = "bank"

// plan is what a world is made of; the same plan is the same run.
type plan struct {
	Seed       uint64
	Executions int // to begin with
	Steps      int // of the part with faults
	Faults     int // injected at most; -1: no limit
	Without    map[string]bool
	// Intensity in thousandths: how often a call meets a fault.
	Intensity int
}

// planOf is a seed's own plan. One in twenty meets no fault: what goes wrong there is
// the easiest to read.
func planOf(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{Seed: seed, Executions: 1 + r.IntN(8), Faults: -1, Intensity: []int{20, 40, 60, 80, 110, 140, 180}[r.IntN(7)]}
	if r.IntN(20) == 0 {
		p.Intensity = 0
	}
	p.Steps = p.Executions * (40 + r.IntN(120))
	return p
}

// world is one run.
type world struct {
	plan
	rng    *rand.Rand
	engine *memory.Engine
	start  time.Time

	mu     sync.Mutex // of parked and idle: goroutines of one service call park at the same time
	parked []*parked  // in an order that does not depend on goroutines
	picked []*parked  // what ready found, reused
	idle   []chan func()

	delayed   []func() // writes on their way that nobody waits for any more
	actors    []*actor
	processes []*process
	nextID    int
	acting    int  // the actor whose call was let through last; 0: nobody's
	healing   bool // no faults any more
	keyOutage bool
	ending    bool // everybody dies
	failed    error

	queue   []start // hand-overs that nobody took yet
	names   map[string]bool
	slow    bool                // days pass
	leap    time.Duration       // how much time is to pass at once
	holds   map[string][]string // on threads and subjects, by the item's key
	content map[string][]byte   // of artifacts, by digest
	asked   map[string]bool     // deletions of subjects and labels: "s0", "c1"
	held    int                 // times that holds changed
	purged  bool                // the tenant is to go
	days    bool                // have passed since anything was written
	keeps   int64               // versions that every history rule so far keeps; negative: one goes by days
	rules   *api.Policy         // the policy "keep", as long as it is as it was in the beginning
	tally   tally
	records []memory.Record
	deploys int

	biz   business
	truth truth

	steps, faults int
	hash          uint64
	tracing       bool
	trace         []string
}

type start struct {
	execution execution.ExecutionID
	version   int64
}

// parked is a call that waits to be picked.
type parked struct {
	a      *actor
	inv    *invocation
	what   string
	key    [2]string
	write  bool
	resume chan string
	begin  func() // of an actor that has not begun
}

func (p *parked) order(q *parked) int {
	return cmp.Or(cmp.Compare(p.a.id, q.a.id), cmp.Compare(p.what, q.what), cmp.Compare(p.key[0], q.key[0]), cmp.Compare(p.key[1], q.key[1]))
}

// actor is somebody who acts: a goroutine that runs only when it is picked.
type actor struct {
	w         *world
	name      string
	kind      string // of actor
	id        int
	rng       *rand.Rand
	done      bool
	until     time.Time // frozen until
	execution execution.ExecutionID
	rand      uint64
}

// invocation is one call of a function in one process.
type invocation struct {
	a    *actor
	p    *process
	dead bool // the process died
	kill bool // and the caller with it

	trouble bool // nothing is heard of the store for a while
}

type invocationKey struct{}

// process is a function instance with memory of its own.
type process struct {
	id       int
	services *wiring.Services
	busy     bool
	skew     time.Duration // of its wall clock
	lost     time.Duration // that its other clock stood still
}

var errDead = errors.New("simulation: the process died")

type killed struct{}

func newWorld(p plan) *world {
	w := &world{plan: p, rng: rand.New(rand.NewPCG(p.Seed, 2)), names: map[string]bool{}, holds: map[string][]string{}, content: map[string][]byte{}, asked: map[string]bool{}, tally: tally{}}
	w.slow = w.rng.IntN(3) == 0
	w.engine = memory.New(memory.Options{LogSize: 1, ShareItems: true, TTLLate: w.late, Seed: fmt.Sprint(p.Seed)})
	w.start = w.engine.Now()
	w.biz = newBusiness(w)
	w.truth = newTruth(w)
	return w
}

func (w *world) note(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%8.1fs ", w.engine.Now().Sub(w.start).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf(format, args...)
		w.note("VIOLATION %v", w.failed)
	}
}

// spawn makes an actor; it begins when it is picked.
func (w *world) spawn(name string, f func(a *actor)) *actor {
	w.nextID++
	a := &actor{w: w, name: fmt.Sprintf("%s-%d", name, w.nextID), kind: name, id: w.nextID, rng: rand.New(rand.NewPCG(w.Seed, uint64(w.nextID)+100))}
	w.actors = append(w.actors, a)
	w.enter(&parked{a: a, what: "start", begin: func() {
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(killed); !ok {
					w.fail("%s panics: %v", a.name, v)
				}
			}
			a.done = true
		}()
		f(a)
	}})
	return a
}

// Read gives an actor's randomness to services.
type randomness struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (r *randomness) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 0; i < len(b); i += 8 {
		var x [8]byte
		binary.LittleEndian.PutUint64(x[:], r.r.Uint64())
		copy(b[i:], x[:])
	}
	return len(b), nil
}

// late is how much later than its time an item goes.
func (w *world) late(k store.Key, ttl int64) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, w.Seed, k, ttl)
	switch r := rand.New(rand.NewPCG(h.Sum64(), 3)); r.IntN(4) {
	case 0:
		return time.Duration(r.IntN(3600)) * time.Second
	case 1:
		return time.Duration(r.IntN(72)) * time.Hour
	}
	return 0
}

func (w *world) newProcess() *process {
	w.nextID++
	p := &process{id: w.nextID, skew: time.Duration(w.rng.IntN(600)-300) * time.Second}
	random := &randomness{r: rand.New(rand.NewPCG(w.Seed, uint64(p.id)+1_000_000))}
	kms := &local.KMS{Master: []byte("simulated"), Rand: random, Before: func(_ context.Context, call, key string) error {
		if w.keyOutage {
			return &store.Error{Call: call, Key: key, Kind: store.KeyTrouble, Code: "DisabledException"}
		}
		return nil
	}}
	p.services = wiring.New(wiring.Outside{
		Main: table{w, w.engine.Table(memory.Main)}, Keys: table{w, w.engine.Table(memory.Keys)}, Bucket: bucket{w, w.engine.Bucket()},
		KMS: kms, DataKey: "stack", Now: func() time.Time { return w.engine.Now().Add(p.skew) },
		Elapsed: func() time.Duration { return w.engine.Now().Sub(w.start) - p.lost }, Rand: random,
		Sleep:     func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Resolvers: map[string]recovery.Resolver{"sandbox": &w.biz}, Target: target{w},
	})
	w.processes = append(w.processes, p)
	return p
}

// instance is the process that takes the next call: mostly the one that was busy
// last, as Lambda does it, sometimes one that has not seen anything for long, and
// a new one now and then.
func (w *world) instance(rng *rand.Rand) *process {
	free := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p.busy })
	if len(free) == 0 || rng.IntN(200) == 0 {
		return w.newProcess()
	}
	p := free[len(free)-1]
	if rng.IntN(4) == 0 {
		p = free[rng.IntN(len(free))]
	}
	at := slices.Index(w.processes, p)
	w.processes = append(slices.Delete(w.processes, at, at+1), p)
	return p
}

// call makes one call of the product in some process that is free.
func call[R any](a *actor, what string, f func(ctx context.Context, s *wiring.Services) (R, error)) (R, error) {
	w := a.w
	p := w.instance(a.rng)
	p.busy = true
	inv := &invocation{a: a, p: p}
	r, err := f(context.WithValue(context.Background(), invocationKey{}, inv), p.services)
	p.busy = false
	if inv.dead {
		w.processes = slices.DeleteFunc(w.processes, func(x *process) bool { return x == p })
		if inv.kill {
			panic(killed{})
		}
		return r, execution.Errorf(execution.Unavailable, "the function died")
	}
	verb, _, _ := strings.Cut(what, " ")
	if err == nil && w.befalls(a, "unheard", w.Intensity/2) {
		w.note("%s %s: done, and nobody heard of it", a.name, what)
		return r, execution.Errorf(execution.Unavailable, "the answer was lost")
	}
	w.tally["verb "+verb]++
	if err != nil {
		w.tally["answer "+string(execution.CodeOf(err))]++
		w.note("%s %s: %s %v", a.name, what, execution.CodeOf(err), err)
		if c := execution.CodeOf(err); c == execution.Internal || c == execution.Integrity {
			w.fail("%s %s answers %v", a.name, what, err)
		}
	} else {
		w.note("%s %s: done", a.name, what)
	}
	return r, err
}

// befalls decides, rate times in a thousand, whether a fault befalls an actor's call
// as a whole: "unheard": what the function answers is lost on its way, and the
// function takes it for given; "double": the request comes twice, in two processes,
// in any order and at the same time, and nobody hears the second answer.
func (w *world) befalls(a *actor, fault string, rate int) bool {
	if w.healing || w.Without[fault] || w.Faults >= 0 && w.faults >= w.Faults || a.rng.IntN(1000) >= rate {
		return false
	}
	w.faults++
	w.tally["fault "+fault]++
	return true
}

// retry repeats a request whose outcome is not known.
func retry[R any](a *actor, what string, f func(ctx context.Context, s *wiring.Services) (R, error)) (r R, err error) {
	if a.w.befalls(a, "double", a.w.Intensity/4) {
		a.w.spawn("double", func(b *actor) { _, _ = call(b, what, f) }).execution = a.execution
	}
	for range 5 {
		if r, err = call(a, what, f); err == nil || !execution.CodeOf(err).Retryable() || execution.CodeOf(err) == execution.LeaseHeld {
			return r, err
		}
		a.park("again", what, false)
	}
	return r, err
}

// shaping faults change an answer inside the store.
var shaping = map[string]bool{"stale": true, "page_1": true, "unprocessed": true}

// whole is one whole run inside a bubble.
func (w *world) whole() {
	w.begin()
	for w.steps < w.Steps && w.failed == nil && !w.truth.allEnded() {
		w.step()
		if w.steps%64 == 0 {
			w.steps++ // so that a world in which nothing can be picked ends too
		}
	}
	if w.failed == nil {
		w.heal()
	}
	if w.failed == nil {
		w.settle()
	}
	if w.failed == nil && w.rng.IntN(3) == 0 {
		if w.expire(); w.failed == nil {
			w.settle()
		}
		if w.failed == nil && w.rng.IntN(3) == 0 {
			w.forget()
		}
	}
	if w.failed == nil && w.rng.IntN(5) == 0 {
		w.purge()
	}
	if w.failed == nil && !w.engine.Untouched() {
		w.fail("somebody changed an item that others read")
	}
	w.ending = true
	for ready := w.ready(); len(ready) > 0; ready = w.ready() {
		w.leave(ready[0], "kill_before")
	}
	for _, next := range w.idle {
		close(next)
	}
}

// simulate runs a plan.
func simulate(t *testing.T, p plan, tracing bool) *world {
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(p)
		w.tracing = tracing
		w.whole()
	})
	return w
}

func short(e execution.ExecutionID) string { return strings.TrimPrefix(string(e), "e") }
