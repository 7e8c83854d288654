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

// planOf is a seed's own plan.
func planOf(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{Seed: seed, Executions: 1 + r.IntN(8), Faults: -1, Intensity: []int{0, 10, 30, 60, 120}[r.IntN(5)]}
	p.Steps = p.Executions * (200 + r.IntN(500))
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
	created int                 // executions that somebody began to make
	held    int                 // times that holds changed
	purged  bool                // the tenant is to go
	keeps   int64               // versions that every history rule so far keeps; negative: one goes by days
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

// run runs an actor in a goroutine, one that an earlier actor left if there is
// one: their stacks have grown.
func (w *world) run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		w.idle[n-1] <- f
		w.idle = w.idle[:n-1]
		return
	}
	next := make(chan func(), 1)
	next <- f
	go func() {
		for f := range next {
			f()
			w.mu.Lock()
			w.idle = append(w.idle, next)
			w.mu.Unlock()
		}
	}()
}

// park waits until the scheduler picks this call; an actor that dies here does
// not come back.
func (a *actor) park(what, key string, write bool) (effect string) {
	effect = a.w.wait(&parked{a: a, what: what, key: [2]string{key}, write: write})
	if effect == "kill_before" {
		panic(killed{})
	}
	return effect
}

func (w *world) wait(p *parked) string {
	p.resume = make(chan string, 1)
	w.enter(p)
	return <-p.resume
}

func (w *world) enter(p *parked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := len(w.parked)
	for at > 0 && w.parked[at-1].order(p) > 0 {
		at--
	}
	w.parked = slices.Insert(w.parked, at, p)
}

// leave takes a parked call out and lets it go on.
func (w *world) leave(p *parked, effect string) {
	w.mu.Lock()
	at := slices.Index(w.parked, p)
	w.parked = slices.Delete(w.parked, at, at+1)
	w.mu.Unlock()
	switch {
	case p.begin == nil:
		p.resume <- effect
	case effect == "kill_before":
		p.a.done = true
	default:
		w.run(p.begin)
	}
	synctest.Wait()
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

// call makes one call of the product in some process that is free.
func call[R any](a *actor, what string, f func(ctx context.Context, s *wiring.Services) (R, error)) (R, error) {
	w := a.w
	var p *process
	if free := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p.busy }); len(free) > 0 && a.rng.IntN(40) > 0 {
		p = free[a.rng.IntN(len(free))]
	} else {
		p = w.newProcess()
	}
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

// retry repeats a request whose outcome is not known.
func retry[R any](a *actor, what string, f func(ctx context.Context, s *wiring.Services) (R, error)) (r R, err error) {
	for range 5 {
		if r, err = call(a, what, f); err == nil || !execution.CodeOf(err).Retryable() || execution.CodeOf(err) == execution.LeaseHeld {
			return r, err
		}
		a.park("again", what, false)
	}
	return r, err
}

// let waits until a call may be made; an error: it is not made, or its answer
// does not come.
func (w *world) let(ctx context.Context, name, pk, sk string, write bool) (effect string, inv *invocation, err error) {
	inv, _ = ctx.Value(invocationKey{}).(*invocation)
	if inv == nil {
		return "", nil, nil // a checker
	}
	if inv.dead {
		return "dead", inv, lostCall(name, pk, sk, write, "Crashed", errDead)
	}
	switch effect = w.wait(&parked{a: inv.a, inv: inv, what: name, key: [2]string{pk, sk}, write: write}); effect {
	case "crash_before", "kill_before", "crash_after", "kill_after":
		inv.dead, inv.kill = true, strings.HasPrefix(effect, "kill")
		return effect, inv, lostCall(name, pk, sk, write, "Crashed", errDead)
	case "lost", "landed", "late":
		return effect, inv, lostCall(name, pk, sk, write, "RequestTimeout", nil)
	case "throttle":
		return effect, inv, &store.Error{Call: name, Key: pk + "/" + sk, Kind: store.Throttled, Code: "ThrottlingException"}
	}
	if inv.dead {
		return "dead", inv, lostCall(name, pk, sk, write, "Crashed", errDead)
	}
	return effect, inv, nil
}

func lostCall(name, pk, sk string, write bool, code string, err error) error {
	return &store.Error{Call: name, Key: pk + "/" + sk, Kind: store.Unavailable, Ambiguous: write, Code: code, Err: err}
}

// read lets a reading call through when it is picked.
func (w *world) read(ctx context.Context, name, pk, sk string) error {
	_, _, err := w.let(ctx, name, pk, sk, false)
	return err
}

// write lets a writing call through when it is picked; it may be made although
// the answer does not come, now or later.
func (w *world) write(ctx context.Context, name, pk, sk string, do func() error) error {
	effect, _, err := w.let(ctx, name, pk, sk, true)
	switch effect {
	case "crash_after", "kill_after", "landed":
		_ = do()
	case "late":
		w.delayed = append(w.delayed, func() { _ = do() })
	}
	if err != nil {
		return err
	}
	return do()
}

// shaping faults change an answer inside the store.
var shaping = map[string]bool{"stale": true, "page_1": true, "unprocessed": true}

// pick lets one parked call go on.
func (w *world) pick(p *parked, effect string) {
	w.steps++
	for _, s := range [...]string{p.a.name, p.what, p.key[0], p.key[1], effect} {
		for i := range len(s) {
			w.hash = w.hash*1099511628211 ^ uint64(s[i])
		}
	}
	if w.tracing {
		key := strings.Trim(p.key[0]+"/"+p.key[1], "/")
		if effect != "" {
			key += "  <- " + effect
		}
		w.note("%s %s %s", p.a.name, p.what, key)
	}
	if shaping[effect] {
		if err := w.engine.SetFaults([]memory.Fault{{On: "*", Effect: effect}}); err != nil {
			panic(err)
		}
		w.leave(p, "")
		_ = w.engine.SetFaults(nil)
	} else {
		w.leave(p, effect)
	}
	w.observe()
}

// ready lists the parked calls that may go on.
func (w *world) ready() []*parked {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.engine.Now()
	w.picked = w.picked[:0]
	for _, p := range w.parked {
		if !p.a.until.After(now) || w.ending {
			w.picked = append(w.picked, p)
		}
	}
	return w.picked
}

func (w *world) advance(d time.Duration) {
	if d > 5*time.Hour {
		w.tally["fault leap"]++
	}
	w.note("  ... %v", d)
	if err := w.engine.Advance(d); err != nil {
		panic(err)
	}
	w.observe()
}

// fault decides what befalls a call; "": nothing.
func (w *world) fault(p *parked) string {
	if w.healing || w.Faults >= 0 && w.faults >= w.Faults || w.rng.IntN(1000) >= w.Intensity {
		return ""
	}
	kinds := []string{"kill_before", "freeze"}
	if p.inv != nil {
		kinds = []string{"throttle", "crash_before", "crash_after", "kill_before", "kill_after", "lost", "freeze"}
		if p.write {
			kinds = append(kinds, "landed", "landed", "late", "lost")
		} else {
			kinds = append(kinds, "page_1", "stale", "unprocessed")
		}
	}
	kind := kinds[w.rng.IntN(len(kinds))]
	if w.Without[kind] {
		return ""
	}
	w.faults++
	w.tally["fault "+kind]++
	return kind
}

// freeze stops an actor for a while, perhaps with the clock of its process.
func (w *world) freeze(p *parked) {
	d := []time.Duration{20 * time.Second, 2 * time.Minute, 6 * time.Minute, 30 * time.Minute, 5 * time.Hour}[w.rng.IntN(5)]
	if w.slow && w.rng.IntN(4) == 0 {
		d = time.Duration(20+w.rng.IntN(60)) * time.Hour
	}
	p.a.until = w.engine.Now().Add(d)
	if p.inv != nil && w.rng.IntN(2) == 0 {
		p.inv.p.lost += d
	}
	w.note("%s is frozen for %v", p.a.name, d)
}

// step is one step of the part with faults.
func (w *world) step() {
	if w.leap > 0 {
		w.advance(w.leap)
		w.leap = 0
	}
	ready := w.ready()
	switch n := w.rng.IntN(1000); {
	case len(ready) > 0 && n < 900:
		p := ready[w.rng.IntN(len(ready))]
		if effect := w.fault(p); effect == "freeze" {
			w.freeze(p)
		} else {
			w.pick(p, effect)
		}
	case n < 950 && len(w.biz.due()) > 0:
		due := w.biz.due()
		w.biz.deliver(due[w.rng.IntN(len(due))])
	case n < 955 && len(w.delayed) > 0:
		i := w.rng.IntN(len(w.delayed))
		land := w.delayed[i]
		w.delayed = slices.Delete(w.delayed, i, i+1)
		w.note("a late write lands")
		land()
		w.observe()
	default:
		w.happen()
	}
}

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
