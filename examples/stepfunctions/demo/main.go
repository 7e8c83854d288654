// Command demo tells the document case on a deployed stack (make demo-stack):
// real Lambda processes and a real Step Functions state machine, on the local
// engine. The desk's process is killed when a letter is out and nothing says so;
// the machine itself is stopped while it waits; the customer uploads all the
// same, and another machine finishes the case. Nothing is sent twice.
//
// At the end it prints what happened, from the case's own history and the
// machines', and fails when a figure is not what it must be.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

var wanted = []string{"passport", "proof-of-address", "register-extract"}

// pages of the passport's scan: it makes the state large.
const pages = 500

type demo struct {
	*stepfunctions.Bank
	id    execution.ExecutionID
	notes []line // what the people did
}

func run(ctx context.Context) error {
	ok, err := deployed.Load()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not set: make demo-stack", deployed.VarFile)
	}
	suffix := strconv.FormatInt(time.Now().UnixMilli(), 36)
	bank, err := stepfunctions.Open(ctx, os.Getenv, execution.TenantID("musterbank-"+suffix))
	if err != nil {
		return err
	}
	d := &demo{Bank: bank, id: execution.ExecutionID("case-" + suffix)}
	if err := d.tell(ctx); err != nil {
		return errors.Join(err, d.timeline(context.WithoutCancel(ctx)))
	}
	if err := d.timeline(ctx); err != nil {
		return err
	}
	return d.check(ctx)
}

// tell lets the story happen.
func (d *demo) tell(ctx context.Context) error {
	if err := d.LayFuse(ctx, d.id); err != nil {
		return err
	}
	d.say("operator", "lays a fuse: the desk's process will be killed when its first letter is out")
	machine, err := d.Start(ctx, d.id, stepfunctions.Case{Customer: "Ada Muster", Email: "ada@example.com", Wanted: wanted, RemindAfterSeconds: 3 * 24 * 3600})
	if err != nil {
		return err
	}
	d.say("front office", "starts a machine for "+string(d.id))
	if err := d.until(ctx, "waits for the customer", d.is(execution.StatusWaiting)); err != nil {
		return err
	}
	if err := d.Stop(ctx, machine); err != nil {
		return err
	}
	d.say("operator", "stops the machine while it waits")
	for i, document := range wanted {
		n := 1
		if i == 0 {
			n = pages
		}
		d.say("customer", fmt.Sprintf("sends %s, %d pages", document, n))
		if err := d.Upload(ctx, d.id, document, n); err != nil {
			return err
		}
		taken := func(ctx context.Context) bool {
			got, err := d.Get(ctx, &api.GetRequest{Execution: d.id, Include: []string{"inbox"}})
			return err == nil && (len(got.Inbox) == 0 && got.Status == execution.StatusWaiting || got.Status == execution.StatusCompleted)
		}
		if i == 0 {
			continue // the engine keeps a stopped machine's token alive: the next upload finds that out
		}
		if err := d.until(ctx, "takes the documents in", taken); err != nil {
			return err
		}
	}
	return d.until(ctx, "is completed", d.is(execution.StatusCompleted))
}

func (d *demo) is(want execution.Status) func(context.Context) bool {
	return func(ctx context.Context) bool {
		got, err := d.Get(ctx, &api.GetRequest{Execution: d.id, Include: []string{}})
		return err == nil && got.Status == want
	}
}

// until waits; a hand-over that the engine swallowed is made again after a minute.
func (d *demo) until(ctx context.Context, what string, holds func(context.Context) bool) error {
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the case never %s", what)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil
}

// check compares the end with what it must be.
func (d *demo) check(ctx context.Context) error {
	got, err := d.Get(ctx, &api.GetRequest{Execution: d.id, Include: []string{"state"}, MaxInlineBytes: execution.MaxReplyBytes})
	if err != nil {
		return err
	}
	letters, err := d.Letters(ctx, d.id)
	if err != nil {
		return err
	}
	machines, err := d.Machines(ctx, d.id)
	if err != nil {
		return err
	}
	sent, twice, largest := 0, 0, 0
	for _, n := range letters {
		sent, twice = sent+n, twice+n-1
	}
	for _, m := range machines {
		events, err := d.Events(ctx, m.ARN)
		if err != nil {
			return err
		}
		for _, e := range events {
			largest = max(largest, e.Bytes)
		}
	}
	fmt.Printf("\nstatus %s, result %s\nstate %d bytes; the largest thing a machine carried: %d bytes\nletters sent %d, of them twice %d; machines %d\n",
		got.Status, got.Result, got.State.Size(), largest, sent, twice, len(machines))
	switch {
	case got.Status != execution.StatusCompleted, !strings.Contains(got.Result.String(), "3"):
		return errors.New("the case is not completed")
	case sent != len(wanted) || twice != 0:
		return errors.New("letters are missing or were sent twice")
	case len(machines) < 2:
		return errors.New("no second machine went on")
	case got.State.Size() < pages*2000 || largest > 256<<10:
		return errors.New("sizes are not what they must be")
	}
	return nil
}
