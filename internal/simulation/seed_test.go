package simulation

import (
	"context"
	"flag"
	"fmt"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "the seed that TestSeed runs")
	executions  = flag.Int("executions", 0, "of the seed's plan, 0: its own")
	faultsFlag  = flag.Int("faults", -2, "at most so many faults, -2: the plan's own")
	stepsFlag   = flag.Int("steps", 0, "of the part with faults, 0: the plan's own")
	without     = flag.String("without", "", "faults that are left out")
	intensity   = flag.Int("intensity", -1, "thousandths, -1: the plan's own")
	seedsFlag   = flag.Int("seeds", 0, "so many seeds in TestSimulation, 0: as time allows")
	firstFlag   = flag.Uint64("first", 1, "the first seed of TestSimulation")
	forFlag     = flag.Duration("for", 0, "how long TestSimulation goes on; 0: 12 s, 5 s with -short")
	noShrink    = flag.Bool("noshrink", false, "a failing seed is not made smaller")
	workersFlag = flag.Int("worlds", runtime.GOMAXPROCS(0), "worlds at a time")
)

func flagged(p plan) plan {
	if *executions > 0 {
		p.Executions = *executions
	}
	if *faultsFlag > -2 {
		p.Faults = *faultsFlag
	}
	if *stepsFlag > 0 {
		p.Steps = *stepsFlag
	}
	if *intensity >= 0 {
		p.Intensity = *intensity
	}
	if *without != "" {
		p.Without = map[string]bool{}
		for _, name := range strings.Split(*without, ",") {
			p.Without[name] = true
		}
	}
	return p
}

// command is how a plan is run again.
func command(p plan) string {
	out := fmt.Sprintf("go test ./internal/simulation -run TestSeed -v -seed %d -executions %d -steps %d -intensity %d", p.Seed, p.Executions, p.Steps, p.Intensity)
	if p.Faults >= 0 {
		out += fmt.Sprintf(" -faults %d", p.Faults)
	}
	if len(p.Without) > 0 {
		var names []string
		for _, name := range faultNames {
			if p.Without[name] {
				names = append(names, name)
			}
		}
		out += " -without " + strings.Join(names, ",")
	}
	return out
}

var faultNames = []string{"throttle", "crash_before", "crash_after", "kill_before", "kill_after", "lost", "freeze", "landed", "late", "page_1", "stale", "unprocessed", "key", "deaf", "unheard", "double"}

// TestSeed tells one run as a story.
func TestSeed(t *testing.T) {
	if *seedFlag == 0 {
		t.Skip("no -seed")
	}
	w := simulate(t, flagged(planOf(*seedFlag)), true)
	fmt.Println(strings.Join(w.trace, "\n"))
	if w.failed != nil {
		t.Fatal(w.failed)
	}
}

// class is a failure without its numbers and names.
func class(err error) string {
	var out []string
	for _, word := range strings.Fields(err.Error()) {
		if !strings.ContainsAny(word, "0123456789") {
			out = append(out, word)
		}
	}
	return strings.Join(out[:min(len(out), 4)], " ")
}

// shrink makes a failing plan smaller as long as it fails.
func shrink(t *testing.T, p plan) (plan, *world) {
	best := simulate(t, p, false)
	first := class(best.failed)
	try := func(q plan) bool {
		w := simulate(t, q, false)
		if w.failed == nil || class(w.failed) != first {
			return false
		}
		p, best = q, w
		return true
	}
	q := p
	q.Intensity = 0
	if try(q) {
		return p, best
	}
	for p.Executions > 1 {
		q := p
		if q.Executions--; !try(q) {
			break
		}
	}
	for _, name := range faultNames {
		q := p
		q.Without = map[string]bool{name: true}
		for n := range p.Without {
			q.Without[n] = true
		}
		try(q)
	}
	for low, high := 0, best.faults; low < high; {
		q := p
		q.Faults = (low + high) / 2
		if try(q) {
			high = min(q.Faults, best.faults)
		} else {
			low = q.Faults + 1
		}
	}
	for n := p.Steps / 2; n > 20; n /= 2 {
		q := p
		if q.Steps -= n; q.Steps > 0 {
			try(q)
		}
	}
	return p, best
}

// TestSimulation runs seed after seed.
func TestSimulation(t *testing.T) {
	limit := *forFlag
	if limit == 0 {
		if limit = 12 * time.Second; testing.Short() {
			limit = 5 * time.Second
		}
	}
	began, used := time.Now(), cpu()
	var next atomic.Int64
	next.Store(int64(*firstFlag) - 1)
	sum := counted{tally: tally{}}
	var failing sync.Mutex
	failures := 0
	var group sync.WaitGroup
	for range *workersFlag {
		group.Go(func() {
			for time.Since(began) < limit && !t.Failed() {
				n := next.Add(1)
				if *seedsFlag > 0 && n >= int64(*firstFlag)+int64(*seedsFlag) {
					return
				}
				p := flagged(planOf(uint64(n)))
				w := simulate(t, p, false)
				sum.add(w)
				if w.failed == nil {
					continue
				}
				failing.Lock()
				failures++
				t.Errorf("seed %d: %v", n, w.failed)
				if failures == 1 && !*noShrink {
					small, _ := shrink(t, p)
					told := simulate(t, small, true)
					fmt.Fprintln(os.Stderr, strings.Join(told.trace, "\n"))
					t.Errorf("made smaller: %v\nagain: %s", told.failed, command(small))
				}
				failing.Unlock()
			}
		})
	}
	group.Wait()
	sum.report(failures, time.Since(began), cpu()-used)
}

// TestSameSeedSameRun: a seed is one schedule.
func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		p := planOf(seed)
		p.Executions, p.Steps = min(p.Executions, 2), min(p.Steps, 600)
		a, b := simulate(t, p, false), simulate(t, p, false)
		if a.hash != b.hash || a.steps != b.steps || a.faults != b.faults {
			t.Errorf("seed %d: %d steps (%x) and %d steps (%x)", seed, a.steps, a.hash, b.steps, b.hash)
		}
	}
}

// TestMain makes what all processes share (the compressor's channels) before the
// first bubble does, which would keep it to itself.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400) // worlds are small and short-lived
	w := newWorld(plan{Seed: 1})
	s := w.newProcess().services
	get := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: "first"}
	api.Identify(get)
	for e, n := range map[execution.ExecutionID]int{"first": 100, "large": 100_000} {
		req := &api.CreateRequest{Common: api.Common{Tenant: tenant}, Execution: e, Workflow: "main", State: parse([]byte(`{"s":"` + strings.Repeat("compressed ", n) + `"}`)), Claim: &api.CreateClaim{Owner: "o", LeaseSeconds: 30}}
		api.Identify(req)
		if _, err := s.Checkpoint.Create(context.Background(), req); err != nil {
			panic(err)
		}
	}
	if _, err := w.newProcess().services.Checkpoint.Get(context.Background(), get); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
