package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	full    = flag.Bool("full", false, "explore the large worlds")
	stories = flag.Bool("stories", false, "tell how each model breaks without its guards")
)

// guard names a rule that a model can leave out; "" is none.
type guard string

// model is a world and what can happen in it. S is compared by ==.
type model[S comparable] struct {
	begin []S
	// next emits every state that one step leads to, with the step's name.
	next func(s S, emit func(step string, to S))
	// wrong gives the invariant that a state breaks, which names its guarantee in
	// docs/GUARANTEES.md; "": none.
	wrong func(s S) string
	// ended are states in which nothing more need happen; from every state one must
	// be reachable. nil: not asked.
	ended func(s S) bool
}

// found is what an exploration found.
type found struct {
	states, steps, depth int
	truncated            bool
	broken               string
	trace                []string
	took                 time.Duration
}

// node is how a state was first reached.
type node struct {
	from int32
	step int32
}

// explore visits every state that can be reached, the nearest first, and stops
// at the first that breaks an invariant: its trace is a shortest one.
func explore[S comparable](m model[S], most int) found {
	started := time.Now()
	ids, states, nodes := map[S]int32{}, []S(nil), []node(nil)
	names, named := []string{""}, map[string]int32{"": 0}
	var back [][2]int32 // edges, to and from
	add := func(s S, from int32, step string) int32 {
		if id, ok := ids[s]; ok {
			return id
		}
		n, ok := named[step]
		if !ok {
			n = int32(len(names))
			names, named[step] = append(names, step), n
		}
		id := int32(len(states))
		ids[s], states, nodes = id, append(states, s), append(nodes, node{from, n})
		return id
	}
	trace := func(id int32) (out []string) {
		out = append(out, fmt.Sprintf("%+v", states[id]))
		for ; nodes[id].from >= 0; id = nodes[id].from {
			out = append(out, names[nodes[id].step])
		}
		out = append(out, fmt.Sprintf("%+v", states[id]))
		for i, k := 0, len(out)-1; i < k; i, k = i+1, k-1 {
			out[i], out[k] = out[k], out[i]
		}
		return out
	}
	var f found
	for _, s := range m.begin {
		add(s, -1, "")
	}
	level := int32(len(states)) // where the next depth begins
	for id := int32(0); int(id) < len(states) && f.broken == ""; id++ {
		if id == level {
			f.depth, level = f.depth+1, int32(len(states))
		}
		if f.broken = m.wrong(states[id]); f.broken != "" {
			f.trace = trace(id)
			break
		}
		if len(states) > most {
			f.truncated = true
			break
		}
		m.next(states[id], func(step string, to S) {
			f.steps++
			k := add(to, id, step)
			if m.ended != nil && k != id {
				back = append(back, [2]int32{k, id})
			}
		})
	}
	if f.states = len(states); m.ended != nil && f.broken == "" && !f.truncated {
		if id, stuck := stuckState(states, back, m.ended); stuck {
			f.broken, f.trace = "something can never end", trace(id)
		}
	}
	f.took = time.Since(started)
	return f
}

// stuckState is the first state from which none that has ended can be reached.
func stuckState[S comparable](states []S, back [][2]int32, ended func(S) bool) (int32, bool) {
	first := make([]int32, len(states)+1)
	for _, e := range back {
		first[e[0]+1]++
	}
	for i := range states {
		first[i+1] += first[i]
	}
	from, at := make([]int32, len(back)), append([]int32(nil), first...)
	for _, e := range back {
		from[at[e[0]]] = e[1]
		at[e[0]]++
	}
	good, todo := make([]bool, len(states)), []int32(nil)
	for i, s := range states {
		if ended(s) {
			good[i], todo = true, append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, f := range from[first[id]:first[id+1]] {
			if !good[f] {
				good[f], todo = true, append(todo, f)
			}
		}
	}
	for i := range states {
		if !good[i] {
			return int32(i), true
		}
	}
	return 0, false
}

// removal is a guard and the beginning of what breaks without it.
type removal struct {
	guard  guard
	breaks string
}

// protocol is a model with its guards.
type protocol struct {
	name     string
	explore  func(without guard, large bool) found
	removals []removal
}

// mostStates bounds every exploration, by memory.
const mostStates = 4_000_000

func protocolOf[S comparable](name string, build func(without guard, large bool) model[S], removals ...removal) protocol {
	return protocol{name, func(without guard, large bool) found { return explore(build(without, large), mostStates) }, removals}
}

var protocols = []protocol{}

// TestModels explores every protocol as designed, where nothing may break, and
// with each of its guards removed, where something must: a model that cannot fail
// proves nothing.
func TestModels(t *testing.T) {
	for _, p := range protocols {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
			f := p.explore("", *full)
			tell(p.name, "as designed", f)
			switch {
			case f.broken != "":
				t.Errorf("%s\n%s", f.broken, strings.Join(f.trace, "\n"))
			case f.truncated:
				t.Errorf("more than %d states", mostStates)
			case f.states < 100:
				t.Errorf("only %d states: nothing happens in this world", f.states)
			}
			for _, r := range p.removals {
				f := p.explore(r.guard, false)
				tell(p.name, "without: "+string(r.guard), f)
				switch {
				case f.broken == "":
					t.Errorf("without %q nothing breaks", r.guard)
				case !strings.HasPrefix(f.broken, r.breaks):
					t.Errorf("without %q: %s, want %s\n%s", r.guard, f.broken, r.breaks, strings.Join(f.trace, "\n"))
				case *stories:
					t.Log("\n" + strings.Join(f.trace, "\n"))
				}
			}
		})
	}
}

func tell(name, how string, f found) {
	if !testing.Verbose() {
		return
	}
	what := "holds"
	if f.broken != "" {
		what = fmt.Sprintf("%s (%d steps)", f.broken, len(f.trace)-2)
	}
	fmt.Printf("%-16s %-62s %8d states %9d steps %3d deep %6.1fs  %s\n", name, how, f.states, f.steps, f.depth, f.took.Seconds(), what)
}
