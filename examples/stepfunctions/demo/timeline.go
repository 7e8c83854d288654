package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/api"
)

// line is one thing that happened.
type line struct {
	at        time.Time
	who, what string
}

// say notes what a person does.
func (d *demo) say(who, what string) { d.notes = append(d.notes, line{time.Now(), who, what}) }

// timeline prints what people and machines did, in order, and what the case says
// of itself.
func (d *demo) timeline(ctx context.Context) error {
	lines := slices.Clone(d.notes)
	machines, err := d.Machines(ctx, d.id)
	if err != nil {
		return err
	}
	for i, m := range machines {
		of, err := d.machine(ctx, fmt.Sprintf("machine %d", i+1), m)
		if err != nil {
			return err
		}
		lines = append(lines, of...)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	fmt.Println()
	for _, l := range lines {
		fmt.Printf("%8.2fs  %-13s %s\n", l.at.Sub(lines[0].at).Seconds(), l.who, l.what)
	}
	return d.journal(ctx)
}

// machine tells what one machine did.
func (d *demo) machine(ctx context.Context, name string, m *stepfunctions.Machine) ([]line, error) {
	began := "begins: a new case"
	if m.Input.Cause != "" {
		began = fmt.Sprintf("begins: handed over at version %d, cause %s", m.Input.Version, m.Input.Cause)
	}
	lines := []line{{m.Started, name, began}}
	events, err := d.Events(ctx, m.ARN)
	if err != nil {
		return nil, err
	}
	state := ""
	for _, e := range events {
		switch {
		case strings.HasSuffix(e.Type, "StateEntered"):
			if state = e.State; strings.HasPrefix(e.Type, "Task") {
				lines = append(lines, line{e.At, name, state})
			}
		case e.Error != "":
			lines = append(lines, line{e.At, name, state + " failed: " + e.Error})
		case e.Type == "ExecutionAborted":
			lines = append(lines, line{e.At, name, "is stopped"})
		case e.Type == "ExecutionSucceeded":
			lines = append(lines, line{e.At, name, "ends: " + m.Output})
		}
	}
	return lines, nil
}

// journal prints the case's own history.
func (d *demo) journal(ctx context.Context) error {
	fmt.Println("\nthe case's journal:")
	for cursor := ""; ; {
		page, err := d.History(ctx, &api.HistoryRequest{Execution: d.id, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			fmt.Printf("%9d  %-11s %s\n", e.Version, e.Kind, e.Note)
		}
		if cursor = page.Cursor; cursor == "" {
			return nil
		}
	}
}
