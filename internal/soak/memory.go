package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// memory is the resident size of a process over time, in bytes.
type memory struct {
	name    string
	samples []int64
}

// Flat is what the last quarter may have more than the second one.
const (
	flatFactor = 1.2
	flatSlack  = 8 << 20
	fewSamples = 60 // a run with fewer says nothing
)

// watch samples processes once a second until ctx ends.
func watch(ctx context.Context, pids map[string]int) []memory {
	all := []memory{{name: "steady worker"}, {name: "this process"}}
	for {
		for i := range all {
			if n := resident(pids[all[i].name]); n > 0 {
				all[i].samples = append(all[i].samples, n)
			}
		}
		if !pause(ctx, time.Second) {
			return all
		}
	}
}

// resident reads a process's size; 0 where there is no /proc.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// quarters are the medians of the second and the last quarter; ok false: too few
// samples to say anything.
func (m memory) quarters() (second, last int64, ok bool) {
	n := len(m.samples)
	if n < fewSamples {
		return 0, 0, false
	}
	return median(m.samples[n/4 : n/2]), median(m.samples[n-n/4:]), true
}

func median(samples []int64) int64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

// check says what is wrong; "": nothing, or nothing that can be told.
func (m memory) check() string {
	second, last, ok := m.quarters()
	if ok && float64(last) > flatFactor*float64(second)+flatSlack {
		return fmt.Sprintf("memory of %s grows: %d MB in the second quarter, %d MB in the last", m.name, second>>20, last>>20)
	}
	return ""
}

func (m memory) String() string {
	second, last, ok := m.quarters()
	if !ok {
		return "too few samples"
	}
	return fmt.Sprintf("%d MB in the second quarter, %d MB in the last", second>>20, last>>20)
}
