package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store/enginetest"
)

// The test binary is its own worker process.
func TestMain(m *testing.M) {
	if name := os.Getenv(varWorker); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSoak is a short soak: twenty executions and a storm of some seconds.
func TestSoak(t *testing.T) {
	enginetest.Open(t) // or a counted skip
	report, err := soak(t.Context(), options{endpoint: os.Getenv(enginetest.Var), length: 6 * time.Second, rate: 5, most: 20, workers: 3,
		killEvery: time.Second, drain: 4 * time.Minute, answer: 2 * time.Second, redeliver: 3 * time.Second, durable: true, seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	report.print(&text)
	t.Log("\n" + text.String())
	if len(report.failures) > 0 {
		t.Fail()
	}
}

// TestMemory is the rule by which memory counts as flat.
func TestMemory(t *testing.T) {
	grow := func(n int, at func(i int) int64) memory {
		m := memory{name: "m"}
		for i := range n {
			m.samples = append(m.samples, at(i))
		}
		return m
	}
	for _, c := range []struct {
		name  string
		m     memory
		wrong bool
	}{
		{"flat", grow(100, func(int) int64 { return 50 << 20 }), false},
		{"saw", grow(100, func(i int) int64 { return int64(50+i%7) << 20 }), false},
		{"grows", grow(100, func(i int) int64 { return int64(50+i) << 20 }), true},
		{"too few to say", grow(fewSamples-1, func(i int) int64 { return int64(i) << 30 }), false},
	} {
		if got := c.m.check(); (got != "") != c.wrong {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
