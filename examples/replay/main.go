package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

type command struct {
	Data  string `default:"../shared/data/agent-runs/airline-runs.json.gz" help:"The recordings."`
	Crash bool   `help:"Also with a crash at every step of every run."`
	Runs  int    `default:"0" help:"Only so many of them (0: all)."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c command
	k := kong.Parse(&c, kong.Name("replay"), kong.Description("Replays recorded agent runs as executions."))
	k.FatalIfErrorf(c.run(ctx))
}

func (c *command) run(ctx context.Context) error {
	runs, err := load(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("SKIP replay: no recordings at %s\n", c.Data)
		return nil
	}
	if err != nil {
		return err
	}
	if c.Runs > 0 {
		runs = runs[:min(c.Runs, len(runs))]
	}
	passes := []crash{none, cold}
	if c.Crash {
		passes = append(passes, before, landed, function)
	}
	all := map[crash]*figures{}
	for _, p := range passes {
		began := time.Now()
		if all[p], err = pass(ctx, runs, p); err != nil {
			return err
		}
		fmt.Printf("%-8s %d runs, %d messages: every state as expected, every effect executed once (%.1f s)\n", p, all[p].runs, all[p].messages, time.Since(began).Seconds())
	}
	show(passes, all)
	return all[none].missed()
}

// pass replays all runs with one kind of crash.
func pass(ctx context.Context, runs []recording, c crash) (*figures, error) {
	var mu sync.Mutex
	total := &figures{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i := range runs {
		group.Go(func() error {
			f, err := replay(ctx, &runs[i], c)
			if err != nil {
				return fmt.Errorf("%s, crash %s: %w", runs[i].name, c, err)
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(f)
			return nil
		})
	}
	return total, group.Wait()
}

const lease = time.Minute

// replay runs one recording to its end, worker after worker.
func replay(ctx context.Context, r *recording, c crash) (*figures, error) {
	air, err := newAirline(r)
	if err != nil {
		return nil, err
	}
	w, f := newWorld(air), &figures{runs: 1, messages: len(r.messages)}
	id := execution.ExecutionID(r.name)
	connect := func(d client.Door) *client.Client {
		return client.New(client.Options{Door: d, Tenant: tenant, Clock: impatient{client.HostClock()}})
	}
	if err := w.create(ctx, connect(w.functions), id, r); err != nil {
		return nil, err
	}
	reached, last := 0, 2
	for range 3*len(r.messages) + 10 {
		d := &door{world: w, crash: c, costs: f, last: last}
		a := &agent{recording: r, execute: d.execute}
		result, err := connect(d).Drive(ctx, id, client.DriveOptions{Owner: "agent", Lease: lease, OutcomesRide: true}, a.work)
		f.resumes++
		switch {
		case d.dead:
			// What has to be asked for again takes a step more; to die before that one
			// for ever would prove nothing.
			if last = 2; a.reached == reached {
				last = 3
			}
			reached = a.reached
			if err := w.engine.Advance(lease + time.Second); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case result.Ending == client.Finished:
			f.resumes-- // the first one is none
			return f, w.check(ctx, connect(w.functions), id, r, f)
		case result.Ending != client.Uncertain: // given up: the next one asks the airline
			return nil, fmt.Errorf("ended %s: %w", result.Ending, result.Cause)
		}
	}
	return nil, errors.New("never ends")
}

// check compares the end with what it must be.
func (w *world) check(ctx context.Context, c *client.Client, id execution.ExecutionID, r *recording, f *figures) error {
	state, err := stateOf(ctx, c, id)
	if err != nil {
		return err
	}
	want, repeats, err := r.expected()
	if err != nil {
		return err
	}
	if state.String() != want.String() {
		return errors.New("the state is not what it must be")
	}
	if err := w.airline.check(r); err != nil {
		return err
	}
	f.effects, f.recorded = len(w.airline.done), repeats
	for _, m := range state.Get("messages").Elems() {
		f.own += m.Size()
	}
	f.stored, err = w.stored(id)
	return err
}

// stateOf reads the whole state of an execution that must have completed.
func stateOf(ctx context.Context, c *client.Client, id execution.ExecutionID) (*jsonx.Value, error) {
	got, err := c.Get(ctx, &api.GetRequest{Execution: id, Include: []string{"state"}, MaxInlineBytes: execution.MaxReplyBytes})
	if err != nil {
		return nil, err
	}
	if got.Status != execution.StatusCompleted || got.State == nil {
		return nil, fmt.Errorf("status %s", got.Status)
	}
	return got.State, nil
}
