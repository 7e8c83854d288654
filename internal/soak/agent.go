package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// caseFile is the state of an execution.
type caseFile struct {
	Trail    []string  `json:"trail"` // a mark for each step
	Answered bool      `json:"answered"`
	WaitTill time.Time `json:"wait_till,omitzero"`
	Ballast  string    `json:"ballast,omitempty"`
}

// Timer is how long an execution waits in the middle, and big the size of the
// states whose entries go to the bucket.
const (
	timer = 2 * time.Second
	big   = 60_000
)

// traits are what an execution does besides what all do, by its id alone.
type traits struct {
	artifact, ballast, letter bool
	// abandoned: the person who could decide about the letter does not.
	abandoned bool
}

func traitsOf(id execution.ExecutionID) traits {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	n := h.Sum32() >> 8
	return traits{artifact: n%3 == 0, ballast: n%7 == 0, letter: n%5 == 0, abandoned: n%4 == 0}
}

// effects are the logical effects of an execution that completes.
func effects(id execution.ExecutionID) []string {
	all := []string{"charge", "book", "notify one", "notify two"}
	if traitsOf(id).letter {
		all = append(all, "letter")
	}
	return all
}

// operation declares one effect by its kind of provider.
func operation(kind, effect string) api.OperationDeclaration {
	op := api.OperationDeclaration{Name: kind, Key: effect, Args: client.JSON(map[string]string{"effect": effect})}
	if kind == byKey {
		op.OnUncertain, op.DedupSeconds = execution.SameKey, 24*3600
	}
	return op
}

// body is the agent: it runs from its beginning after every crash and wait.
func (w *worker) body(ctx context.Context, run *client.Run) (client.End, error) {
	var c caseFile
	if err := run.Load(&c); err != nil {
		return client.End{}, err
	}
	a := &agent{worker: w, run: run, file: &c, traits: traitsOf(run.Execution())}
	if err := a.first(ctx); err != nil {
		return client.End{}, err
	}
	if !c.Answered {
		if len(run.Take("answer")) == 0 {
			return client.WaitFor(api.Wait{Signals: []string{"answer"}}), nil
		}
		c.Answered = true
		if err := a.step(ctx, "answered"); err != nil {
			return client.End{}, err
		}
	}
	if c.WaitTill.IsZero() {
		c.WaitTill = run.Now().Add(timer)
		if err := a.step(ctx, "timer set"); err != nil {
			return client.End{}, err
		}
	}
	if run.Now().Before(c.WaitTill) {
		until := api.Time(c.WaitTill.UnixMilli())
		return client.WaitFor(api.Wait{Until: &until}), nil
	}
	if err := a.last(ctx); err != nil {
		return client.End{}, err
	}
	return client.Done(client.JSON(len(c.Trail))), nil
}

type agent struct {
	*worker
	run    *client.Run
	file   *caseFile
	traits traits
}

func (a *agent) first(ctx context.Context) error {
	if err := a.do(ctx, "pay", operation(byKey, "charge")); err != nil {
		return err
	}
	if err := a.step(ctx, "paid"); err != nil {
		return err
	}
	if a.traits.artifact && !slices.Contains(a.file.Trail, "filed") {
		content := strings.Repeat(string(a.run.Execution())+"\n", 100)
		if _, err := a.run.Put(ctx, "receipt", "text/plain", []byte(content)); err != nil {
			return err
		}
		if err := a.step(ctx, "filed"); err != nil {
			return err
		}
	}
	if err := a.do(ctx, "book", operation(byQuery, "book")); err != nil {
		return err
	}
	return a.step(ctx, "booked")
}

func (a *agent) last(ctx context.Context) error {
	if err := a.do(ctx, "notify", operation(byKey, "notify one"), operation(byKey, "notify two")); err != nil {
		return err
	}
	if a.traits.letter {
		if err := a.do(ctx, "letter", operation(byHand, "letter")); err != nil {
			return err
		}
	}
	return a.step(ctx, "told")
}

// step writes a mark, once, and has the parent witness that it was acknowledged.
func (a *agent) step(ctx context.Context, mark string) error {
	if slices.Contains(a.file.Trail, mark) {
		return nil
	}
	a.file.Trail = append(a.file.Trail, mark)
	if a.traits.ballast {
		a.file.Ballast = ballast(string(a.run.Execution())+mark, big)
	}
	if err := a.run.Commit(ctx, api.Changes{State: client.JSON(a.file), Note: mark}); err != nil {
		return err
	}
	// After it is written and before anything else, so that a kill in between loses
	// a witness and nothing more.
	_, _ = a.desk.call(ctx, http.MethodPost, "/ack", ack{Execution: a.run.Execution(), Version: a.run.Version(), Note: mark}, nil)
	return nil
}

// do has effects made; all must have succeeded.
func (a *agent) do(ctx context.Context, task execution.TaskID, ops ...api.OperationDeclaration) error {
	outcomes, err := a.run.Do(ctx, api.Changes{Task: task}, ops, a.send)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if !o.Succeeded() {
			return fmt.Errorf("operation %s: %s", o.Operation, o.Outcome)
		}
	}
	return nil
}

// send makes one attempt; an error says that nobody knows.
func (a *agent) send(ctx context.Context, e client.Effect) (client.Outcome, error) {
	var got struct{ Reference string }
	_, err := a.desk.call(ctx, http.MethodPost, "/effects", wish{Kind: e.Name, Key: e.ProviderKey, Effect: string(a.run.Execution()) + "/" + e.Key,
		Execution: a.run.Execution(), Fence: e.Fence}, &got)
	if err != nil {
		return client.Outcome{}, err
	}
	return client.Success(nil, got.Reference), nil
}

// ballast is text that does not compress, the same for the same name.
func ballast(name string, size int) string {
	var b strings.Builder
	x := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		x = (x ^ uint64(c)) * 1099511628211
	}
	for b.Len() < size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%x", x)
	}
	return b.String()
}
