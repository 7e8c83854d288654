package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// order is what the machine asks for: work on this case, in its name.
type order struct {
	Tenant    execution.TenantID    `json:"tenant"`
	Execution execution.ExecutionID `json:"execution"`
	Fence     int64                 `json:"fence"`
}

// answer tells the machine how to go on: coordinates and what is missing.
type answer struct {
	Version   int64     `json:"version"`
	Missing   []string  `json:"missing"`
	RemindAt  time.Time `json:"remind_at"`
	Documents int       `json:"documents"`
}

// caseFile is the case's state, as far as the desk reads it.
type caseFile struct {
	Customer string   `json:"customer"`
	Email    string   `json:"email"`
	Wanted   []string `json:"wanted"`
	// RemindAfter in seconds; a state machine's numbers are doubles.
	RemindAfter float64            `json:"remind_after_seconds"`
	Received    map[string]float64 `json:"received"` // pages by document
	Reminders   int                `json:"reminders"`
	RemindAt    *time.Time         `json:"remind_at"`
}

// caseChange is what the desk adds to the state, as a merge patch.
type caseChange struct {
	Received  map[string]float64 `json:"received,omitempty"`
	Text      map[string]string  `json:"text,omitempty"` // what was read, by document
	Reminders int                `json:"reminders,omitempty"`
	RemindAt  *time.Time         `json:"remind_at,omitempty"`
}

// desk is one call.
type desk struct {
	order
	client *client.Client
	outbox *outbox

	version  int64
	settled  map[string]bool // operations by key
	outcomes []api.OutcomeReport
}

// work does what can be done now. A crash anywhere leaves entries that were
// written and letters under their keys; the next call goes on from there.
func (d *desk) work(ctx context.Context) (*answer, error) {
	got, err := d.client.Get(ctx, &api.GetRequest{Execution: d.Execution, Include: []string{"state", "operations", "inbox"}, MaxInlineBytes: execution.MaxReplyBytes})
	if err != nil {
		return nil, err
	}
	if got.Fence != d.Fence || got.Status != execution.StatusRunning {
		return nil, execution.Errorf(execution.LeaseLost, "the machine does not own the case any more").With("execution", string(d.Execution))
	}
	var c caseFile
	if err := json.Unmarshal(got.State.Bytes(), &c); err != nil {
		return nil, execution.Errorf(execution.Integrity, "the state is no case").Because(err)
	}
	d.version, d.settled = got.Version, map[string]bool{}
	for _, op := range got.Operations {
		d.settled[op.Key] = op.Outcome == execution.OutcomeSucceeded
	}
	if err := d.send(ctx, &c, "request", c.Wanted); err != nil {
		return nil, err
	}
	change := caseChange{Received: map[string]float64{}, Text: map[string]string{}}
	step := api.Changes{Task: "collect"}
	for _, u := range got.Inbox {
		if u.Name == "upload" {
			step.Absorb = append(step.Absorb, api.SignalRef{Name: u.Name, Key: u.Key})
			change.Received[u.Key], change.Text[u.Key] = read(&u)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(c.Wanted), func(w string) bool {
		_, had := c.Received[w]
		_, has := change.Received[w]
		return had || has
	})
	// Store time: the newest entry's, a little late at most.
	now := time.UnixMilli(got.UpdatedAt.Millis()).UTC()
	after := time.Duration(c.RemindAfter * float64(time.Second))
	switch {
	case c.RemindAt == nil:
		at := now.Add(after)
		change.RemindAt, c.RemindAt = &at, &at
	case len(missing) > 0 && len(step.Absorb) == 0 && !now.Before(*c.RemindAt):
		if err := d.send(ctx, &c, fmt.Sprintf("reminder %d", c.Reminders+1), missing); err != nil {
			return nil, err
		}
		at := now.Add(after)
		change.Reminders, change.RemindAt, c.RemindAt = c.Reminders+1, &at, &at
	}
	if len(step.Absorb) > 0 || change.RemindAt != nil || len(d.outcomes) > 0 {
		step.Merge = client.JSON(change)
		step.Note = fmt.Sprintf("%d of %d documents", len(c.Wanted)-len(missing), len(c.Wanted))
		if _, err := d.apply(ctx, step); err != nil {
			return nil, err
		}
	}
	return &answer{Version: d.version, Missing: missing, RemindAt: *c.RemindAt, Documents: len(c.Wanted) - len(missing)}, nil
}

// send sends one letter for each subject, each once whatever happens: the
// outbox knows a letter by its provider key.
func (d *desk) send(ctx context.Context, c *caseFile, kind string, about []string) error {
	step := api.Changes{Task: "collect", Note: kind}
	for _, a := range about {
		key := kind + " " + a
		if !d.settled[key] {
			step.Operations = append(step.Operations, api.OperationDeclaration{Name: "send_letter", Key: key, Args: client.JSON(letter{To: c.Email, Kind: kind, About: a}),
				OnUncertain: execution.SameKey, DedupSeconds: 14 * 24 * 3600})
		}
	}
	if len(step.Operations) == 0 {
		return nil
	}
	reply, err := d.apply(ctx, step)
	if err != nil {
		return err
	}
	for i, op := range reply.Operations {
		if op.Disposition != api.Go {
			continue // settled by an earlier call
		}
		var l letter
		if err := json.Unmarshal(step.Operations[i].Args.Bytes(), &l); err != nil {
			return err
		}
		if err := d.outbox.send(ctx, &d.order, op.ProviderKey, l); err != nil {
			return execution.Errorf(execution.Unavailable, "the outbox does not answer").Because(err)
		}
		d.outcomes = append(d.outcomes, api.OutcomeReport{Operation: op.Operation, Attempt: op.Attempt, Outcome: execution.OutcomeSucceeded, ProviderRef: op.ProviderKey})
	}
	return nil
}

// apply writes one entry under the machine's fence, with the outcomes known.
func (d *desk) apply(ctx context.Context, step api.Changes) (*api.ApplyReply, error) {
	step.Execution, step.ExpectedVersion, step.Fence, step.Outcomes = d.Execution, d.version, d.Fence, d.outcomes
	reply, err := d.client.Apply(ctx, &api.ApplyRequest{Changes: step})
	if err != nil {
		return nil, err
	}
	if reply.Version != d.version+1 {
		return nil, execution.Errorf(execution.VersionConflict, "another call of the desk is at work")
	}
	d.version, d.outcomes = reply.Version, nil
	return reply, nil
}

// pageBytes is how much text a page has.
const pageBytes = 2000

// read stands for reading a document: so and so many pages of text, always the
// same for the same document.
func read(u *api.InboxEntry) (pages float64, text string) {
	var body struct {
		Pages int `json:"pages"`
	}
	if u.Body != nil && json.Unmarshal(u.Body.Bytes(), &body) != nil {
		body.Pages = 0 // a customer may send anything: it counts, unread
	}
	var b strings.Builder
	for n := 0; b.Len() < body.Pages*pageBytes; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", u.Key, n))
		b.WriteString(base64.RawStdEncoding.EncodeToString(sum[:]))
	}
	return float64(body.Pages), b.String()[:min(b.Len(), body.Pages*pageBytes)]
}
