package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// Workers that die, freeze and come back, a recover function that is struck, and
// a business system that counts: over many seeded schedules no effect happens
// twice, and every execution ends with what the business system says.
//
// CAIRN_SCHEDULES sets how many schedules are run (default 60).
func TestSchedules(t *testing.T) {
	t.Parallel()
	n := 60
	if s := os.Getenv("CAIRN_SCHEDULES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	const parts = 2
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			var sum outcome
			for seed := part; seed < n && !t.Failed(); seed += parts {
				sum.add(schedule(t, uint64(seed)))
			}
			if sum.crashes == 0 || sum.handovers == 0 || sum.zombies == 0 {
				t.Errorf("the schedules were too kind: %+v", sum)
			}
			t.Logf("%+v", sum)
		})
	}
}

// outcome counts what schedules were made of.
type outcome struct{ steps, crashes, handovers, verdicts, zombies int }

func (o *outcome) add(x outcome) {
	o.steps += x.steps
	o.crashes += x.crashes
	o.handovers += x.handovers
	o.verdicts += x.verdicts
	o.zombies += x.zombies
}

// effects declares the three kinds of effect; the key names it.
var effects = []m{
	{"name": "pay", "args": m{"n": 1}, "key": "valid", "valid_seconds": 300},
	{"name": "ship", "args": m{"n": 2}, "key": "closed", "on_uncertain": "close"},
	{"name": "mail", "args": m{"n": 3}, "key": "deduplicated", "on_uncertain": "same_key", "dedup_seconds": 1800},
}

// business is the system where effects happen. It refuses a payment after its
// expiry, deduplicates mail by its key for as long as it says, and nothing else.
type business struct {
	k     *kit
	count map[string]int       // by operation
	seen  map[string]time.Time // mail, by provider key
}

func (b *business) do(op, key string, o m) (done bool) {
	if by, ok := o["send_by"].(string); ok {
		if at, err := time.Parse(time.RFC3339, by); err == nil && b.k.engine.Now().After(at) {
			return false
		}
	}
	if key == "deduplicated" {
		provider := o["provider_key"].(string)
		if at, ok := b.seen[provider]; ok && b.k.engine.Now().Sub(at) < 1800*time.Second {
			return true
		}
		b.seen[provider] = b.k.engine.Now()
	}
	b.count[op]++
	return true
}

// Ask answers what happened so far, and sometimes nothing.
func (b *business) Ask(_ context.Context, q recovery.Question) (recovery.Answer, error) {
	switch n := b.count[string(q.Operation)]; {
	case n > 1:
		return recovery.Answer{JSON: []byte(`{"finding":"several"}`)}, nil
	case n == 1:
		return recovery.Answer{JSON: []byte(`{"finding":"found"}`)}, nil
	}
	return recovery.Answer{JSON: []byte(`{"finding":"not_found"}`)}, nil
}

var errEnded = errors.New("the worker gave up")

// worker is a process that resumes the execution and carries it to its end. It
// may be stopped for ever, or for a while, at every yield.
func worker(k *kit, b *business, who string) iter.Seq[struct{}] {
	p := k.newProcess()
	return func(yield func(struct{}) bool) {
		w := &working{k: k, p: p, b: b, who: who, yield: yield}
		_ = w.run()
	}
}

type working struct {
	k       *kit
	p       process
	b       *business
	who     string
	yield   func(struct{}) bool
	version any
	fence   any
	calls   int
}

// call sends a request, repeats it as long as its outcome is unknown, and lets
// others go on before and after.
func (w *working) call(function, action string, req m) (m, error) {
	w.calls++
	req["execution"] = "e1"
	if action == "apply" || action == "complete" {
		req["request_id"] = fmt.Sprint(w.who, "-", w.calls)
	}
	for range 4 {
		if !w.yield(struct{}{}) {
			return nil, errEnded
		}
		r, err := w.p.call(context.Background(), function, action, req)
		var no *refusal
		if errors.As(err, &no) && no.code.Retryable() && no.code != "LeaseHeld" {
			continue
		}
		if !w.yield(struct{}{}) {
			return nil, errEnded
		}
		return r, err
	}
	return nil, errEnded
}

func (w *working) run() error {
	r, err := w.call("recover", "resume", m{"owner": w.who, "lease_seconds": 60, "nonce": w.who})
	if err != nil || r["parked"] == true {
		return errEnded
	}
	w.version, w.fence = r["version"], r["fence"]
	if tip, ok := r["tip"].(m); ok {
		w.version = tip["version"]
	}
	for _, e := range effects {
		if err := w.effect(e); err != nil {
			return err
		}
	}
	_, err = w.call("checkpoint", "complete", m{"expected_version": w.version, "fence": w.fence, "outcome": "completed"})
	return err
}

// effect makes one effect happen, once.
func (w *working) effect(e m) error {
	for range 6 {
		r, err := w.call("checkpoint", "apply", m{"expected_version": w.version, "fence": w.fence, "operations": []m{e}})
		if err != nil {
			return err
		}
		w.version = r["version"]
		if tip, ok := r["tip"].(m); ok {
			w.version = tip["version"]
		}
		o := r["operations"].([]any)[0].(m)
		op, _ := o["operation"].(string)
		switch o["disposition"] {
		case "settled":
			return nil
		case "uncertain":
			r, err := w.call("recover", "reconcile", m{"fence": w.fence})
			if err != nil {
				return err
			}
			w.version = r["version"]
			continue
		case "start":
			s, err := w.call("checkpoint", "start_operation", m{"operation": op, "attempt": o["attempt"], "fence": w.fence, "nonce": w.who + op})
			if err != nil || s["disposition"] != "go" {
				return errEnded
			}
		}
		if !w.yield(struct{}{}) {
			return errEnded
		}
		if done := w.b.do(op, e["key"].(string), o); !w.yield(struct{}{}) || !done {
			return errEnded
		}
		if _, err := w.call("checkpoint", "record_outcome", m{"operation": op, "attempt": o["attempt"], "outcome": "succeeded"}); err != nil {
			return err
		}
	}
	return errEnded
}

// schedule runs one seeded interleaving.
func schedule(t *testing.T, seed uint64) (sum outcome) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	k := newKit(t)
	b := &business{k: k, count: map[string]int{}, seen: map[string]time.Time{}}
	k.business = b
	k.restart()
	ask := m{"kind": "https", "target": "https://business"}
	k.workflow(m{"resolvers": m{"pay": ask, "ship": ask, "mail": ask}, "max_recoveries": 1000})
	k.do("create", m{"execution": "e1", "workflow": "w"})

	type running struct {
		next   func() (struct{}, bool)
		stop   func()
		frozen int // until that step
	}
	var workers []running
	born := 0
	start := func() {
		born++
		next, stop := iter.Pull(worker(k, b, fmt.Sprint("w", born)))
		workers = append(workers, running{next, stop, 0})
	}
	check := func() {
		for op, n := range b.count {
			if n > 1 {
				t.Fatalf("seed %d: %s happened %d times", seed, op, n)
			}
		}
	}
	end := func(i int) {
		workers[i].stop()
		workers = append(workers[:i], workers[i+1:]...)
	}
	started := 0
	pump := func() {
		k.do("sweep", m{})
		for ; started < len(k.target.started); started++ {
			sum.handovers++
			start()
		}
	}
	start()
	for step := range 100 + rnd.IntN(100) {
		sum.steps++
		var awake []int
		for i, w := range workers {
			if w.frozen <= step {
				awake = append(awake, i)
			}
		}
		switch x := rnd.IntN(100); {
		case x < 60 && len(awake) > 0:
			i := awake[rnd.IntN(len(awake))]
			k.mess(rnd)
			_, more := workers[i].next()
			k.faults()
			if !more {
				end(i)
			}
		case x < 64 && len(awake) > 0: // one freezes: a zombie, when it thaws
			sum.zombies++
			workers[awake[rnd.IntN(len(awake))]].frozen = step + 10 + rnd.IntN(60)
		case x < 67 && len(workers) > 0: // one dies
			sum.crashes++
			end(rnd.IntN(len(workers)))
		case x < 80:
			k.advance([]float64{1, 20, 61, 61, 200, 700, 4000}[rnd.IntN(7)])
		case x < 95:
			k.mess(rnd)
			ctx, inv := memory.WithInvocation(context.Background())
			_, _ = k.call(ctx, "recover", "sweep", m{})
			inv.End()
			k.faults()
			if inv.Crashed() {
				k.restart()
			}
			pump()
		default:
			start()
		}
		check()
	}
	// Everybody who is still there goes on to its own end; then what is left must
	// come to an end by itself, or by a person who looks it up.
	for len(workers) > 0 {
		for _, more := workers[0].next(); more; _, more = workers[0].next() {
			check()
		}
		end(0)
	}
	for round := 0; ; round++ {
		g := k.get("e1")
		if g["status"] == "completed" {
			break
		}
		if round > 60 {
			t.Fatalf("seed %d: stuck: %v %v", seed, g["status"], k.versions("e1"))
		}
		if g["status"] == "parked" && round > 3 {
			for _, x := range g["parked_reasons"].([]any) {
				op := x.(m)["operation"].(string)
				o := k.do("get_operation", m{"execution": "e1", "operation": op})
				outcome := "not_executed"
				if b.count[op] > 0 {
					outcome = "succeeded"
				}
				if o["status"] == "uncertain" {
					sum.verdicts++
					k.do("reconcile", m{"execution": "e1", "evidence": []m{{"operation": op, "finding": "decided", "attempt": o["attempt"], "outcome": outcome, "reason": "looked up", "force": true}}})
				}
			}
		}
		k.advance(3601)
		pump()
		if g["status"] == "created" && len(workers) == 0 {
			start()
		}
		for len(workers) > 0 {
			for _, more := workers[0].next(); more; _, more = workers[0].next() {
			}
			end(0)
		}
		check()
	}
	for _, x := range k.get("e1")["operations"].([]any) {
		o := x.(m)
		if o["status"] != "succeeded" || b.count[o["operation"].(string)] != 1 {
			t.Fatalf("seed %d: %v is %v, and happened %d times", seed, o["key"], o["status"], b.count[o["operation"].(string)])
		}
	}
	if len(b.count) != len(effects) {
		t.Fatalf("seed %d: effects %v", seed, b.count)
	}
	return sum
}

// mess scripts a fault somewhere in the calls to come, or none.
func (k *kit) mess(rnd *rand.Rand) {
	if rnd.IntN(3) > 0 {
		return
	}
	effect := []string{"lost", "landed", "throttle", "unavailable", "crash_before", "crash_after"}[rnd.IntN(6)]
	k.faults(memory.Fault{On: "*", Nth: 1 + rnd.IntN(8), Count: 1 + rnd.IntN(2), Effect: effect})
}
