package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// caseFile is the case's state.
type caseFile struct {
	Customer  string            `json:"customer"`
	Email     string            `json:"email"`
	Wanted    []string          `json:"wanted"`
	Received  map[string]string `json:"received"` // digest by document
	Reminders int               `json:"reminders"`
	RemindAt  time.Time         `json:"remind_at"`
	Approved  bool              `json:"approved"`
}

func (c *caseFile) missing() []string {
	return slices.DeleteFunc(slices.Clone(c.Wanted), func(d string) bool { return c.Received[d] != "" })
}

// worker is what a worker process has.
type worker struct {
	client *client.Client
	mail   *mailbox
	// remindAfter is how long the customer may take before a reminder.
	remindAfter time.Duration
}

// work is the agent. It begins at its beginning after every wait and every
// crash: operations that were settled come back with their recorded results, so
// nothing is sent twice.
func (w *worker) work(ctx context.Context, run *client.Run) (client.End, error) {
	var c caseFile
	if err := run.Load(&c); err != nil {
		return client.End{}, err
	}
	if _, err := run.Do(ctx, api.Changes{Task: "collect", Note: "ask for the documents"}, mails(&c, "request", c.Wanted...), w.send); err != nil {
		return client.End{}, err
	}
	if uploads := run.Take("upload"); len(uploads) > 0 {
		change := api.Changes{Note: "documents received"}
		for _, u := range uploads {
			digest, _ := u.Body.Get("digest").Text()
			c.Received[u.Key] = digest
			change.Artifacts = append(change.Artifacts, api.ArtifactRef{Digest: digest, Name: u.Key})
		}
		change.State = client.JSON(c)
		if err := run.Commit(ctx, change); err != nil {
			return client.End{}, err
		}
	}
	if missing := c.missing(); len(missing) > 0 {
		if c.RemindAt.IsZero() {
			c.RemindAt = run.Now().Add(w.remindAfter)
		} else if !run.Now().Before(c.RemindAt) {
			reminder := fmt.Sprintf("reminder %d", c.Reminders+1)
			if _, err := run.Do(ctx, api.Changes{Note: reminder}, mails(&c, reminder, missing...), w.send); err != nil {
				return client.End{}, err
			}
			c.Reminders, c.RemindAt = c.Reminders+1, run.Now().Add(w.remindAfter)
		}
		until := api.Time(c.RemindAt.UnixMilli())
		return client.WaitFor(api.Wait{Signals: []string{"upload"}, Until: &until, WaitingFor: client.JSON(missing)}).
			With(api.Changes{State: client.JSON(c), Note: fmt.Sprintf("%d of %d documents", len(c.Received), len(c.Wanted))}), nil
	}
	reviewed := run.Take("reviewed")
	if len(reviewed) == 0 && !c.Approved {
		if err := openSheet(ctx, w.client, run.Execution(), &c); err != nil {
			return client.End{}, err
		}
		return client.WaitFor(api.Wait{Signals: []string{"reviewed"}, WaitingFor: client.JSON("two reviewers")}).With(api.Changes{Task: "review", Note: "documents complete, reviewers called"}), nil
	}
	c.Approved = true
	if _, err := run.Do(ctx, api.Changes{State: client.JSON(c), Task: "close", Note: "approved"}, mails(&c, "confirmation", "account"), w.send); err != nil {
		return client.End{}, err
	}
	return client.Done(client.JSON(c.Received)).With(api.Changes{Note: "case closed"}), nil
}

// mails declares one mail to the customer for each subject. The gateway
// recognises the provider key for two weeks, so that sending again under it is
// harmless.
func mails(c *caseFile, kind string, about ...string) []api.OperationDeclaration {
	var ops []api.OperationDeclaration
	for _, a := range about {
		ops = append(ops, api.OperationDeclaration{Name: "send_mail", Key: kind + " " + a, Args: client.JSON(mail{To: c.Email, Kind: kind, About: a}),
			OnUncertain: execution.SameKey, DedupSeconds: 14 * 24 * 3600})
	}
	return ops
}

// send makes one attempt. An error means that nobody knows whether it was sent.
func (w *worker) send(ctx context.Context, e client.Effect) (client.Outcome, error) {
	receipt, err := w.mail.send(ctx, e.ProviderKey, e.Args.Bytes())
	if err != nil {
		return client.Outcome{}, err
	}
	return client.Success(client.JSON(receipt), receipt.ID), nil
}
