package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

//go:embed documents
var documents embed.FS

// wanted are the documents, with the files in which the customer sends them.
var wanted = []struct{ name, file, mediaType string }{
	{"passport", "passport.txt", "text/plain"},
	{"proof-of-address", "proof-of-address.txt", "text/plain"},
	{"register-extract", "register-extract.pdf", "application/pdf"},
}

const day = 24 * time.Hour

type demoCmd struct {
	cairn
	KillAt string `default:"sent" help:"When a worker is killed: \"sent\" (the first mail is out, nothing says so), the number of a moment, \"random\" or \"never\"."`
	Seed   uint64 `default:"1" help:"Of --kill-at random."`
}

// lastMoment is about how many moments all workers of a case live through.
const lastMoment = 70

// story is one case from its opening to its end.
type story struct {
	out     io.Writer
	office  *office
	client  *client.Client
	mail    *mailbox
	id      execution.ExecutionID
	gateway string

	killAt                       int  // moments that are left until the kill; 0: none
	onSent                       bool // kill when the first mail is out
	workers                      int
	kills, recoveries, conflicts int
	handedOver                   int
	deskDied                     bool // a reviewer died: how many conflicts it met is not known
}

// Run tells the story and checks its end.
func (c *demoCmd) Run(ctx context.Context) (err error) {
	began := time.Now()
	s := &story{out: os.Stdout, id: execution.ExecutionID("case-" + strconv.FormatInt(began.UnixMilli(), 36))}
	switch c.KillAt {
	case "sent":
		s.onSent = true
	case "random":
		s.killAt = 1 + rand.New(rand.NewPCG(c.Seed, 42)).IntN(lastMoment)
		fmt.Fprintf(s.out, "seed %d: a worker is killed at moment %d\n", c.Seed, s.killAt)
	case "never":
	default:
		if s.killAt, err = strconv.Atoi(c.KillAt); err != nil || s.killAt < 1 {
			return fmt.Errorf("--kill-at: sent, a number from 1, random or never")
		}
	}
	office, closeOffice, err := openOffice(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOffice()) }()
	s.office, c.Endpoint = office, office.endpoint
	door, err := c.door(ctx)
	if err != nil {
		return err
	}
	s.client = client.New(client.Options{Door: door, Tenant: tenant, Actor: &api.Actor{Kind: "system", ID: "front-office"}})
	gateway, err := start(ctx, "gateway")
	if err != nil {
		return err
	}
	defer func() { _ = gateway.in.Close(); _ = gateway.cmd.Wait() }()
	if s.gateway, err = gateway.line(); err != nil {
		return err
	}
	s.mail = &mailbox{url: s.gateway, fuse: &fuse{}}
	if err := s.tell(ctx); err != nil {
		return err
	}
	if err := s.finish(ctx); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\nAll as it should be, in %.1f s.\n", time.Since(began).Seconds())
	return nil
}

// tell is the story.
func (s *story) tell(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.work(ctx, true); err != nil { // asks for the documents; dies
		return err
	}
	s.say("The next day the customer sends the passport.")
	if err := s.after(ctx, day, s.uploads(ctx, 0)); err != nil {
		return err
	}
	s.say("On the third day nothing else has come: time for a reminder.")
	if err := s.after(ctx, 2*day+6*time.Hour, nil); err != nil {
		return err
	}
	s.say("On the fourth day the rest arrives.")
	if err := s.after(ctx, day, s.uploads(ctx, 1, 2)); err != nil {
		return err
	}
	s.say("On the fifth day two reviewers open the same sheet.")
	return s.after(ctx, day, func() error { return s.reviews(ctx) })
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// after lets time pass, has something happen, and lets workers do what follows.
func (s *story) after(ctx context.Context, d time.Duration, event func() error) error {
	if err := s.office.pass(ctx, s.office.days(d)); err != nil {
		return err
	}
	if event != nil {
		if err := event(); err != nil {
			return err
		}
	}
	return s.work(ctx, true)
}

// open makes the case.
func (s *story) open(ctx context.Context) error {
	if s.office.virtual { // the workflow hands over to whoever starts workers here
		_, err := s.client.SetWorkflow(ctx, &api.SetWorkflowRequest{Workflow: api.Workflow{Name: caseWorkflow, Schema: &api.Schema{Name: "case", Version: 1},
			ResumeTarget: &api.ResumeTarget{Kind: "sandbox", ARN: "case-workers"}}})
		if err != nil {
			return err
		}
		if err := s.office.pass(ctx, 9*time.Hour); err != nil {
			return err
		}
	}
	file := caseFile{Customer: "Mira Eleonora Lindqvist", Email: "mira@customer.example", Received: map[string]string{}}
	for _, w := range wanted {
		file.Wanted = append(file.Wanted, w.name)
	}
	_, err := s.client.Create(ctx, &api.CreateRequest{Execution: s.id, Thread: execution.ThreadID(s.id), Workflow: caseWorkflow, Schema: &api.Schema{Name: "case", Version: 1},
		State: client.JSON(file), Labels: map[string]string{"product": "business-account"}, Subjects: []string{file.Email}})
	s.say("%s: %s wants a business account; %d documents are needed.", s.id, file.Customer, len(file.Wanted))
	return err
}

// uploads are documents that the customer gives to the bank's portal: stored as
// artifacts, and told to the case by a signal each.
func (s *story) uploads(ctx context.Context, which ...int) func() error {
	return func() error {
		for _, i := range which {
			content, err := documents.ReadFile("documents/" + wanted[i].file)
			if err != nil {
				return err
			}
			a, err := s.client.StageArtifact(ctx, s.id, 0, wanted[i].name, wanted[i].mediaType, content)
			if err != nil {
				return err
			}
			_, err = s.client.Signal(ctx, &api.SignalRequest{Execution: s.id, Name: "upload", Key: wanted[i].name, Body: client.JSON(map[string]string{"digest": a.Digest})})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// work starts workers as long as the case is handed over. event: something has
// just happened to it.
func (s *story) work(ctx context.Context, event bool) error {
	for range 10 {
		next, err := s.next(ctx, event)
		if err != nil || next == nil {
			return err
		}
		r, died, err := s.worker(ctx, next)
		if err != nil {
			return err
		}
		if event = died || r.Ending == client.Held; died {
			err = s.killed(ctx)
		} else if r.Ending == client.Held {
			err = s.office.pass(ctx, time.Duration(r.RetryAfter+1)*time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("workers are started without end")
}

// next says whether a worker is to be started. Who opened the case starts the
// first one, until one has claimed it; from then on a hand-over comes by itself.
func (s *story) next(ctx context.Context, event bool) (*handover, error) {
	got, err := s.client.Get(ctx, &api.GetRequest{Execution: s.id, Include: []string{}})
	if err != nil {
		return nil, err
	}
	if got.Fence == 0 {
		return &handover{Execution: s.id, Cause: "opened"}, nil
	}
	next, err := s.office.next(ctx, s.id, event)
	if next != nil {
		s.handedOver++
	}
	return next, err
}

// killed lets the dead worker's lease lapse. One that died when its last entry
// was written had nothing left to recover.
func (s *story) killed(ctx context.Context) error {
	s.kills++
	got, err := s.client.Get(ctx, &api.GetRequest{Execution: s.id, Include: []string{}})
	if err != nil {
		return err
	}
	if got.Status.Ended() {
		s.recoveries++
		return nil
	}
	return s.office.pass(ctx, s.office.lease()+time.Second)
}

// worker runs one worker process to its end.
func (s *story) worker(ctx context.Context, h *handover) (r report, died bool, err error) {
	s.workers++
	name := fmt.Sprintf("worker-%d", s.workers)
	args := []string{"worker", "--endpoint", s.office.endpoint, "--case", string(s.id), "--name", name, "--gateway", s.gateway, "--lease", s.office.lease().String(),
		"--remind-after", s.office.days(3 * day).String(), "--version", strconv.FormatInt(h.Version, 10), "--die-at", strconv.Itoa(s.killAt)}
	if s.onSent {
		args = append(args, "--die-on-sent")
	}
	c, err := start(ctx, args...)
	if err != nil {
		return r, false, err
	}
	r, killed, err := c.wait()
	switch {
	case err != nil:
		return r, false, err
	case killed:
		s.killAt, s.onSent = 0, false
		t, err := s.mail.tally(ctx)
		s.say("  %s (%s) KILLED by SIGKILL; the gateway has sent %d mails by now.", name, h.Cause, t.Sent)
		return r, true, err
	}
	if s.killAt > 0 {
		s.killAt = max(1, s.killAt-r.Moments)
	}
	if s.kills > s.recoveries {
		s.recoveries++
	}
	s.say("  %s (%s) %s at version %d.", name, h.Cause, r.Ending, r.Version)
	return r, false, nil
}

// reviews has two reviewers read the same version and write both. A desk whose
// process dies is taken by another process.
func (s *story) reviews(ctx context.Context) error {
	names := []string{"reviewer-ada", "reviewer-ben"}
	desks := make([]*child, len(names))
	var err error
	for i, name := range names {
		if desks[i], err = s.desk(ctx, name); err != nil {
			return err
		}
	}
	for i, name := range names {
		for _, err := desks[i].line(); err != nil; _, err = desks[i].line() { // until it has read
			if _, killed, err := desks[i].wait(); !killed {
				return errors.Join(err, errors.New("a reviewer does not read"))
			}
			s.deskDied = true
			if desks[i], err = s.desk(ctx, name); err != nil {
				return err
			}
		}
	}
	for _, c := range desks {
		_, _ = c.in.Write([]byte("write\n")) // a dead one shows below
	}
	for i, name := range names {
		r, killed, err := desks[i].wait()
		for killed && err == nil {
			s.deskDied = true
			var again *child
			if again, err = s.desk(ctx, name); err != nil {
				return err
			}
			_, _ = again.in.Write([]byte("write\n"))
			r, killed, err = again.wait()
		}
		if err != nil {
			return err
		}
		s.conflicts += r.Conflicts
	}
	s.say("  who was too late (VersionConflict) read the sheet again and wrote; conflicts: %d", s.conflicts)
	return nil
}

func (s *story) desk(ctx context.Context, name string) (*child, error) {
	return start(ctx, "reviewer", "--endpoint", s.office.endpoint, "--case", string(s.id), "--name", name)
}

// sameDocuments compares what the case keeps with what the customer sent.
func (s *story) sameDocuments(ctx context.Context) error {
	for _, w := range wanted {
		want, err := documents.ReadFile("documents/" + w.file)
		if err != nil {
			return err
		}
		got, a, err := s.client.ReadArtifact(ctx, &api.GetArtifactRequest{Execution: s.id, Name: w.name})
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s is not what the customer sent", w.name)
		}
		s.say("  %-17s %4d bytes, sha256 %s.. verified", w.name, len(got), a.Digest[:12])
	}
	return nil
}
