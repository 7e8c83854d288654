package stepfunctions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

var stack bool

// The stack is deployed once for all tests (make stack-test); each has a tenant
// of its own.
func TestMain(m *testing.M) {
	var err error
	if stack, err = deployed.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type story struct {
	*stepfunctions.Bank
	t  *testing.T
	id execution.ExecutionID
}

var wanted = []string{"passport", "proof-of-address", "register-extract"}

func newStory(t *testing.T) *story {
	t.Helper()
	if !stack {
		t.Skip("SKIP: no CAIRN_STACK (make stack-test)")
	}
	t.Parallel()
	b, err := stepfunctions.Open(t.Context(), os.Getenv, execution.TenantID("bank-"+strconv.FormatUint(rand.Uint64(), 36)))
	if err != nil {
		t.Fatal(err)
	}
	return &story{Bank: b, t: t, id: "case-1"}
}

func (s *story) start() string {
	s.t.Helper()
	arn, err := s.Start(s.t.Context(), s.id, stepfunctions.Case{Customer: "Ada Muster", Email: "ada@example.com", Wanted: wanted, RemindAfterSeconds: 3600})
	if err != nil {
		s.t.Fatal(err)
	}
	return arn
}

// until waits until the condition holds.
func (s *story) until(what string, limit time.Duration, holds func(ctx context.Context) bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); !holds(s.t.Context()); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s\n%s", limit, what, s.standing())
		}
	}
}

func (s *story) status() execution.Status {
	got, err := s.Get(s.t.Context(), &api.GetRequest{Execution: s.id, Include: []string{}})
	if err != nil {
		return ""
	}
	return got.Status
}

func (s *story) is(want execution.Status) func(context.Context) bool {
	return func(context.Context) bool { return s.status() == want }
}

func (s *story) upload(document string, pages int) {
	s.t.Helper()
	if err := s.Upload(s.t.Context(), s.id, document, pages); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) sweep() {
	s.t.Helper()
	if err := s.Sweep(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// standing is for readers of a failed test.
func (s *story) standing() string {
	ctx := context.WithoutCancel(s.t.Context())
	out := "status " + string(s.status())
	machines, err := s.Machines(ctx, s.id)
	if err != nil {
		return out + ": " + err.Error()
	}
	for _, m := range machines {
		out += "\n" + m.Name + " " + m.Status + " " + m.Output
		events, _ := s.Events(ctx, m.ARN)
		for _, e := range events {
			out += fmt.Sprintf("\n    %s %s %s", e.Type, e.State, e.Error)
		}
	}
	return out
}

// completed checks the end: the case is closed, every machine has ended but
// those that were stopped or wait behind a dead token, and each letter was sent
// exactly once.
func (s *story) completed(limit time.Duration) {
	s.t.Helper()
	s.until("completed", limit, s.is(execution.StatusCompleted))
	got, err := s.Get(s.t.Context(), &api.GetRequest{Execution: s.id, Include: []string{"operations", "inbox"}})
	if err != nil {
		s.t.Fatal(err)
	}
	if text := string(got.Result.Bytes()); text != `{"documents":3}` {
		s.t.Errorf("result %s", text)
	}
	if len(got.Inbox) != 0 {
		s.t.Errorf("%d signals are left", len(got.Inbox))
	}
	letters, err := s.Letters(s.t.Context(), s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, w := range wanted {
		if letters["request "+w] != 1 {
			s.t.Errorf("%d letters about %s", letters["request "+w], w)
		}
	}
	if len(letters) != len(wanted) {
		s.t.Errorf("letters %v", letters)
	}
}

// The customer answers after the machine has suspended the case: document by
// document, so it is woken three times.
func TestUploadsAfterSuspension(t *testing.T) {
	s := newStory(t)
	arn := s.start()
	for i, w := range wanted {
		s.until("waiting", time.Minute, s.is(execution.StatusWaiting))
		s.upload(w, i)
		s.until("taken in", time.Minute, func(ctx context.Context) bool {
			got, err := s.Get(ctx, &api.GetRequest{Execution: s.id, Include: []string{"inbox"}})
			return err == nil && len(got.Inbox) == 0
		})
	}
	s.completed(time.Minute)
	s.until("the machine ends", time.Minute, func(ctx context.Context) bool {
		m, err := s.Machine(ctx, arn)
		return err == nil && m.Status == "SUCCEEDED"
	})
	if all, err := s.Machines(t.Context(), s.id); err != nil || len(all) != 1 {
		t.Errorf("%d machines, %v", len(all), err)
	}
}

// The customer is faster than the bank: uploads come at any moment before,
// during or after the suspension. None is lost, none wakes twice.
func TestUploadsAtAnyMoment(t *testing.T) {
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := newStory(t)
			s.start()
			s.until("opened", time.Minute, func(context.Context) bool { return s.status() != "" })
			for _, w := range wanted {
				time.Sleep(rand.N(800 * time.Millisecond))
				s.upload(w, 1)
			}
			s.completed(2 * time.Minute)
		})
	}
}

// The desk's process is killed when a letter is out and nothing says so; the
// machine calls it again, and no letter goes out twice.
func TestDeskKilled(t *testing.T) {
	s := newStory(t)
	if err := s.LayFuse(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	arn := s.start()
	s.until("waiting", time.Minute, s.is(execution.StatusWaiting))
	events, err := s.Events(t.Context(), arn)
	if err != nil {
		t.Fatal(err)
	}
	died := 0
	for _, e := range events {
		if e.Error != "" {
			died++
		}
	}
	if died == 0 {
		t.Error("the desk did not die")
	}
	for _, w := range wanted {
		s.upload(w, 1)
	}
	s.completed(time.Minute)
}

// The machine is stopped while it waits. The upload finds nobody behind the
// token, so Cairn starts another machine from where the case is.
func TestStoppedWhileWaiting(t *testing.T) {
	s := newStory(t)
	arn := s.start()
	s.until("waiting", time.Minute, s.is(execution.StatusWaiting))
	if err := s.Stop(t.Context(), arn); err != nil {
		t.Fatal(err)
	}
	for _, w := range wanted {
		s.upload(w, 1)
	}
	s.until("completed", 4*time.Minute, func(context.Context) bool { s.sweep(); return s.status() == execution.StatusCompleted })
	s.completed(time.Second)
	s.resumed(arn)
}

// The machine is stopped while it owns the case: its lease lapses, and another
// machine takes over.
func TestStoppedAtWork(t *testing.T) {
	s := newStory(t)
	if err := s.LayFuse(t.Context(), s.id); err != nil { // the desk dies, so the machine stands still for a moment
		t.Fatal(err)
	}
	arn := s.start()
	s.until("a letter is out", time.Minute, func(ctx context.Context) bool {
		letters, err := s.Letters(ctx, s.id)
		return err == nil && letters["request passport"] == 1
	})
	if err := s.Stop(t.Context(), arn); err != nil {
		t.Fatal(err)
	}
	for _, w := range wanted {
		s.upload(w, 1)
	}
	s.until("completed", 4*time.Minute, func(context.Context) bool { s.sweep(); return s.status() == execution.StatusCompleted })
	s.completed(time.Second)
	s.resumed(arn)
}

// resumed checks that a second machine went on for the one that was stopped.
func (s *story) resumed(stopped string) {
	s.t.Helper()
	all, err := s.Machines(s.t.Context(), s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	done := 0
	for _, m := range all {
		switch {
		case m.ARN == stopped:
			if m.Status != "ABORTED" {
				s.t.Errorf("the first machine is %s", m.Status)
			}
		case m.Input.Cause == "":
			s.t.Errorf("machine %s was started by nobody", m.Name)
		default:
			var out struct{ Ending string }
			s.until("it ends", time.Minute, func(ctx context.Context) bool {
				now, err := s.Machine(ctx, m.ARN)
				return err == nil && now.Ended() && json.Unmarshal([]byte(now.Output), &out) == nil
			})
			if out.Ending == "completed" {
				done++
			}
		}
	}
	if done != 1 {
		s.t.Errorf("%d machines completed the case\n%s", done, s.standing())
	}
}

// The state grows to 120 KB, 1 MB and 5 MB. The machine carries coordinates, so
// nothing that it is given comes near Step Functions' 256 KB.
func TestLargeStates(t *testing.T) {
	for _, pages := range []int{60, 500, 2600} {
		t.Run(strconv.Itoa(pages*2)+" KB", func(t *testing.T) {
			s := newStory(t)
			arn := s.start()
			s.until("waiting", time.Minute, s.is(execution.StatusWaiting))
			s.upload(wanted[0], pages)
			s.until("taken in", 2*time.Minute, func(ctx context.Context) bool {
				got, err := s.Get(ctx, &api.GetRequest{Execution: s.id, Include: []string{"inbox"}})
				return err == nil && len(got.Inbox) == 0 && got.Status == execution.StatusWaiting
			})
			s.upload(wanted[1], 0)
			s.upload(wanted[2], 0)
			s.completed(2 * time.Minute)
			got, err := s.Get(t.Context(), &api.GetRequest{Execution: s.id, Include: []string{"state"}, MaxInlineBytes: execution.MaxReplyBytes})
			if err != nil {
				t.Fatal(err)
			}
			if got.State.Size() < pages*2000 {
				t.Errorf("the state has %d bytes", got.State.Size())
			}
			events, err := s.Events(t.Context(), arn)
			if err != nil {
				t.Fatal(err)
			}
			largest := 0
			for _, e := range events {
				largest = max(largest, e.Bytes)
			}
			if t.Logf("state %d bytes, largest of %d events %d bytes", got.State.Size(), len(events), largest); largest == 0 || largest > 256<<10 {
				t.Errorf("an event of %d bytes", largest)
			}
		})
	}
}

// A reply that is asked for without a limit of the machine's own keeps Step
// Functions' limit all the same.
func TestRepliesKeepTheLimit(t *testing.T) {
	s := newStory(t)
	s.start()
	s.until("waiting", time.Minute, s.is(execution.StatusWaiting))
	s.upload(wanted[0], 2600)
	s.until("taken in", 2*time.Minute, func(ctx context.Context) bool {
		got, err := s.Get(ctx, &api.GetRequest{Execution: s.id, Include: []string{"inbox"}})
		return err == nil && len(got.Inbox) == 0 && got.Status == execution.StatusWaiting
	})
	got, err := s.Get(t.Context(), &api.GetRequest{Execution: s.id})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != nil || got.StateRef == nil || len(text) > 256<<10 {
		t.Errorf("%d bytes, state inline %v, reference %v", len(text), got.State != nil, got.StateRef)
	}
}
