package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cairnstate/cairn/shared/store/memory"
)

// figures are what a pass counted.
type figures struct {
	runs, messages, effects, recorded int
	steps                             int // applies
	requests                          int
	looks                             int // of those, into the ledger: where the airline refused
	readUnits, writeUnits             float64
	own, stored                       int // bytes
	crashes, resumes                  int
}

// step counts what one apply cost, by the store's own log: requests about the
// execution. (A new process also reads its tenant's key and settings, once for
// all executions.)
func (f *figures) step(calls []memory.Call) {
	f.steps++
	for _, c := range calls {
		if strings.HasPrefix(c.Key, string(tenant)+"#") || strings.HasPrefix(c.Key, string(tenant)+"/e/") {
			f.requests++
			if strings.Contains(c.Key, "/op#") {
				f.looks++
			}
			f.readUnits += c.ReadUnits
			f.writeUnits += c.WriteUnits
		}
	}
}

func (f *figures) add(o *figures) {
	f.runs, f.messages, f.effects, f.recorded = f.runs+o.runs, f.messages+o.messages, f.effects+o.effects, f.recorded+o.recorded
	f.steps, f.requests = f.steps+o.steps, f.requests+o.requests
	f.looks += o.looks
	f.readUnits, f.writeUnits = f.readUnits+o.readUnits, f.writeUnits+o.writeUnits
	f.own, f.stored = f.own+o.own, f.stored+o.stored
	f.crashes, f.resumes = f.crashes+o.crashes, f.resumes+o.resumes
}

// The targets of a plain replay.
const (
	maxRequests   = 1.0 // besides a look into the ledger where the airline refused
	maxLooks      = 0.03
	maxWriteUnits = 1.6
	maxRatio      = 1.6
)

func (f *figures) perStep(n float64) float64 { return n / float64(max(1, f.steps)) }

func (f *figures) ratio() float64 { return float64(f.stored) / float64(max(1, f.own)) }

// missed names the targets that a plain replay does not meet.
func (f *figures) missed() error {
	switch {
	case f.perStep(float64(f.requests-f.looks)) > maxRequests:
		return fmt.Errorf("more than %.0f request a step", maxRequests)
	case f.perStep(float64(f.looks)) > maxLooks:
		return fmt.Errorf("more than %.2f looks into the ledger a step", maxLooks)
	case f.perStep(f.writeUnits) > maxWriteUnits:
		return fmt.Errorf("more than %.1f write units a step", maxWriteUnits)
	case f.ratio() > maxRatio:
		return fmt.Errorf("more than %.1f times the messages' own bytes are stored", maxRatio)
	}
	return nil
}

// show prints all passes.
func show(passes []crash, all map[crash]*figures) {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"crash", "runs", "steps", "crashes", "resumes", "effects", "answered by record", "requests/step", "write units/step", "read units/step", "bytes/step", "stored/own"})
	right := []table.ColumnConfig{}
	for n := 2; n <= 12; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, c := range passes {
		f := all[c]
		row := table.Row{c, f.runs, f.steps, f.crashes, f.resumes, f.effects, f.recorded}
		if f.crashes == 0 { // what a crash costs is not a step's cost
			row = append(row, fmt.Sprintf("%.2f", f.perStep(float64(f.requests))), fmt.Sprintf("%.2f", f.perStep(f.writeUnits)),
				fmt.Sprintf("%.2f", f.perStep(f.readUnits)), fmt.Sprintf("%.0f", f.perStep(float64(f.stored))), fmt.Sprintf("%.2f", f.ratio()))
		}
		t.AppendRow(row)
	}
	t.Render()
}
