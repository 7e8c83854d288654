package main

import (
	"os"
	"testing"
)

const data = "../../../shared/data/agent-runs/airline-runs.json.gz"

func recordings(t *testing.T) []recording {
	t.Helper()
	if _, err := os.Stat(data); err != nil {
		t.Skip("SKIP: no recordings beside the repository")
	}
	runs, err := load(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 200 {
		t.Fatalf("%d runs", len(runs))
	}
	return runs
}

// Every run ends as it must with each kind of crash; the costs are those of the
// issue; the double booking is answered by the record.
func TestReplay(t *testing.T) {
	runs := recordings(t)
	for _, c := range []crash{none, cold, before, landed, function} {
		t.Run(string(c), func(t *testing.T) {
			some := runs
			if c != none { // `make replay` does them all
				some = some[:25]
			}
			f, err := pass(t.Context(), some, c)
			if err != nil {
				t.Fatal(err)
			}
			if f.runs != len(some) || f.effects == 0 {
				t.Errorf("%+v", f)
			}
			switch c {
			case none:
				if f.messages != 5308 || f.steps != 5308 || f.recorded != 1 {
					t.Errorf("%+v", f)
				}
				if err := f.missed(); err != nil {
					t.Error(err)
				}
			case cold:
				if f.perStep(float64(f.requests-f.looks)) > 2.01 {
					t.Errorf("%.2f requests a cold step", f.perStep(float64(f.requests)))
				}
			case landed, function:
				if f.crashes < f.messages {
					t.Errorf("%d crashes for %d messages", f.crashes, f.messages)
				}
			case before:
				if f.crashes < f.messages-2*f.runs {
					t.Errorf("%d crashes for %d messages", f.crashes, f.messages)
				}
			}
		})
	}
}

// The run in which the recorded agent books the same flight twice.
func TestDoubleBooking(t *testing.T) {
	for _, r := range recordings(t) {
		if r.name != "task-0-trial-3" {
			continue
		}
		for _, c := range []crash{none, before, landed, function} {
			r := r
			f, err := replay(t.Context(), &r, c)
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			if f.recorded != 1 {
				t.Errorf("%s: %d effects answered by the record", c, f.recorded)
			}
		}
		return
	}
	t.Fatal("the run is not there")
}

// The airline's own check can fail.
func TestAirlineCounts(t *testing.T) {
	for _, r := range recordings(t) {
		air, err := newAirline(&r)
		if err != nil {
			t.Fatal(err)
		}
		refusals := true // only refused effects: nothing is to happen
		for _, list := range air.answers {
			for _, a := range list {
				text, _ := a.Text()
				refusals = refusals && refused(text)
			}
		}
		if !refusals && air.check(&r) == nil {
			t.Fatalf("%s: nothing was done, and that is well", r.name)
		}
	}
}
