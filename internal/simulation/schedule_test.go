package simulation

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

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

// pick lets one parked call go on.
func (w *world) pick(p *parked, effect string) {
	w.steps++
	w.acting = p.a.id
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
	rate, trouble := w.Intensity, p.inv != nil && p.inv.trouble
	if trouble {
		rate = troubled
	}
	if w.healing || w.Faults >= 0 && w.faults >= w.Faults || w.rng.IntN(1000) >= rate {
		return ""
	}
	kinds := []string{"kill_before", "freeze"}
	switch {
	case trouble:
		kinds = []string{"throttle", "lost"}
	case p.inv != nil:
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
	if p.inv != nil && (kind == "landed" || kind == "late" || kind == "lost") {
		p.inv.trouble = w.rng.IntN(2) == 0
	}
	return kind
}

// troubled is how often, in thousandths, the next calls of an invocation are not
// heard either while trouble lasts: what an ambiguous write came to then stays
// unknown to this call.
const troubled = 850

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
	case len(ready) > 0 && n < 930:
		p := ready[w.rng.IntN(len(ready))]
		if effect := w.fault(p); effect == "freeze" {
			w.freeze(p)
		} else {
			w.pick(p, effect)
		}
	case n < 965 && len(w.biz.due()) > 0:
		due := w.biz.due()
		w.biz.deliver(due[w.rng.IntN(len(due))])
	case n < 970 && len(w.delayed) > 0:
		i := w.rng.IntN(len(w.delayed))
		land := w.delayed[i]
		w.delayed = slices.Delete(w.delayed, i, i+1)
		w.note("a late write lands")
		w.acting = 0
		land()
		w.observe()
	default:
		w.happen(len(ready) == 0)
	}
}
