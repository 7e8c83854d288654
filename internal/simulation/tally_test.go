package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// tally counts what happened, by "group name".
type tally map[string]int64

func (t tally) add(o tally) {
	for name, n := range o {
		t[name] += n
	}
}

// lines writes it group by group, the most frequent first.
func (t tally) lines() (out []string) {
	groups := map[string][]string{}
	for name := range t {
		group, _, _ := strings.Cut(name, " ")
		groups[group] = append(groups[group], name)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		names := groups[group]
		slices.SortFunc(names, func(a, b string) int {
			if t[a] != t[b] {
				return int(t[b] - t[a])
			}
			return strings.Compare(a, b)
		})
		var total int64
		var parts []string
		for _, name := range names {
			total += t[name]
			parts = append(parts, fmt.Sprintf("%s %d", strings.TrimPrefix(name, group+" "), t[name]))
		}
		out = append(out, fmt.Sprintf("  %s (%d): %s", group, total, strings.Join(parts, ", ")))
	}
	return out
}

// counted is the sum of all runs.
type counted struct {
	mu                                                   sync.Mutex
	seeds, steps, faults, executions, completed, faulted int64
	tally                                                tally
}

func (c *counted) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeds++
	c.steps += int64(w.steps)
	c.faults += int64(w.faults)
	for _, k := range w.truth.known {
		if k.tip == 0 {
			continue // somebody wanted to make it, and nothing came of it
		}
		c.executions++
		if w.faults > 0 {
			c.faulted++
		}
		if k.ended() {
			c.completed++
		}
		c.tally["end "+string(k.end())]++
	}
	c.tally.add(w.tally)
}

// end is how an execution stood at the end.
func (k *known) end() execution.Status {
	if k.deleted {
		return "deleted"
	}
	return k.status
}

// cpu is what the process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (c *counted) report(violations int, took, used time.Duration) {
	fmt.Printf("simulation: %d violations in %d seeds, %d executions (%d with faults, %d ended), %d steps, %d faults, in %v: %.0f executions a minute, %.0f of them with faults, %.2f ms of CPU each\n",
		violations, c.seeds, c.executions, c.faulted, c.completed, c.steps, c.faults, took.Round(time.Second), float64(c.executions)/took.Minutes(), float64(c.faulted)/took.Minutes(), used.Seconds()*1000/float64(max(c.executions, 1)))
	for _, line := range c.tally.lines() {
		fmt.Println(line)
	}
}
