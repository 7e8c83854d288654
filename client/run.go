package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// wholeReply asks for replies with everything in them.
const wholeReply = execution.MaxReplyBytes

// Run is one ownership of an execution, with the plan in hand.
type Run struct {
	client  *Client
	id      execution.ExecutionID
	options DriveOptions
	keeper  *Keeper
	fence   int64
	plan    *api.ResumeReply
	root    execution.Ref // of operation ids
	store   Moment        // not later than plan.UpdatedAt on the store's clock

	mu      sync.Mutex
	version int64
	task    execution.TaskID
	state   *jsonx.Value
	inbox   []api.InboxEntry
	settled map[execution.OperationID]Outcome
	// Unwritten, for the next entry.
	outcomes  []api.OutcomeReport
	absorb    []api.SignalRef
	artifacts []api.ArtifactRef
	effects   map[attemptID]*effect
	refused   error // the functions said that this ownership is over
}

func newRun(c *Client, id execution.ExecutionID, o DriveOptions, plan *api.ResumeReply, k *Keeper, sent Moment) *Run {
	r := &Run{client: c, id: id, options: o, keeper: k, fence: plan.Fence, plan: plan, store: sent, version: plan.Version, task: plan.Task, state: plan.State,
		root:    execution.Ref{Tenant: c.Tenant(), Execution: id, Generation: plan.Generation},
		inbox:   plan.Inbox,
		settled: map[execution.OperationID]Outcome{}, effects: map[attemptID]*effect{}}
	if plan.Tip != nil && plan.Tip.Fence == plan.Fence {
		r.version = max(r.version, plan.Tip.Version)
	}
	return r
}

// completePlan reads what the plan had no room for and takes in what it says
// about settled operations.
func (r *Run) completePlan(ctx context.Context) error {
	if r.plan.State == nil {
		got, err := r.client.Get(ctx, &api.GetRequest{Execution: r.id, Include: []string{"state"}, MaxInlineBytes: wholeReply})
		if err != nil {
			return err
		}
		if r.state = got.State; r.state == nil {
			return execution.Errorf(execution.Integrity, "the state does not come inline")
		}
	}
	operations := r.plan.Operations
	for cursor := r.plan.OperationsCursor; cursor != ""; {
		got, err := r.client.Get(ctx, &api.GetRequest{Execution: r.id, Include: []string{"operations"}, OperationsCursor: cursor, MaxInlineBytes: wholeReply})
		if err != nil {
			return err
		}
		operations, cursor = append(operations, got.Operations...), got.OperationsCursor
	}
	for cursor := r.plan.InboxCursor; cursor != ""; {
		got, err := r.client.Get(ctx, &api.GetRequest{Execution: r.id, Include: []string{"inbox"}, InboxCursor: cursor, MaxInlineBytes: wholeReply})
		if err != nil {
			return err
		}
		r.inbox, cursor = append(r.inbox, got.Inbox...), got.InboxCursor
	}
	for i := range operations {
		if o := &operations[i]; keeps(o.Outcome) && o.ResultRef == nil && o.Evidence == nil {
			r.settled[o.Operation] = Outcome{Operation: o.Operation, Outcome: o.Outcome, Reason: o.Reason, ProviderRef: o.ProviderRef, Result: o.Result, Recorded: true}
		}
	}
	return nil
}

// keeps reports an outcome after which the same operation is never given out
// again.
func keeps(o execution.Outcome) bool {
	return o == execution.OutcomeSucceeded || o == execution.OutcomeFailed || o == execution.OutcomeAbandoned
}

// Execution is the one that is run.
func (r *Run) Execution() execution.ExecutionID { return r.id }

// Fence is the ownership's fencing token, to be shown to business systems that
// refuse older ones.
func (r *Run) Fence() int64 { return r.fence }

// Plan is what the resume gave: thread, labels, budgets, input, permissions and
// the rest of the view as it was then. It must not be changed.
func (r *Run) Plan() *api.ResumeReply { return r.plan }

// Resume is the value of the claim; nil: none.
func (r *Run) Resume() *jsonx.Value { return r.plan.View.Resume }

// Version is that of the run's last entry.
func (r *Run) Version() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// State is the agent's state after the run's last entry, token for token.
func (r *Run) State() *jsonx.Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Load decodes the state into a Go value, as encoding/json does.
func (r *Run) Load(into any) error {
	if err := json.Unmarshal(r.State().Bytes(), into); err != nil {
		return fmt.Errorf("client: state of another form: %w", err)
	}
	return nil
}

// Now is the store's time, the one that waits and limits are judged by: the time
// of the plan plus what has gone by since it was asked for, so a little late at
// most.
func (r *Run) Now() time.Time {
	return time.UnixMilli(r.plan.UpdatedAt.Millis()).Add(r.store.since(r.client.options.Clock)).UTC()
}

// In is a time on the store's clock, for Until of a wait.
func (r *Run) In(d time.Duration) *api.Time {
	t := api.Time(r.Now().Add(d).UnixMilli())
	return &t
}

// Inbox lists the signals that no entry has absorbed yet, by name and key, as
// they were when the run began, Poll apart.
func (r *Run) Inbox() []api.InboxEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.inbox)
}

// Take gives the inbox's signals of a name and has the run's next entry absorb
// them: what the body makes of them and their absorption are one entry, so a
// crash before it leaves them in the inbox.
func (r *Run) Take(name string) []api.InboxEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []api.InboxEntry
	for _, s := range r.inbox {
		if s.Name == name {
			taken = append(taken, s)
			r.absorb = append(r.absorb, api.SignalRef{Name: s.Name, Key: s.Key})
		}
	}
	r.forget(r.absorb)
	return taken
}

// forget takes signals out of the inbox.
func (r *Run) forget(refs []api.SignalRef) {
	r.inbox = slices.DeleteFunc(slices.Clone(r.inbox), func(s api.InboxEntry) bool {
		return slices.Contains(refs, api.SignalRef{Name: s.Name, Key: s.Key})
	})
}

// Poll reads the inbox anew; what was taken already stays away.
func (r *Run) Poll(ctx context.Context) error {
	var inbox []api.InboxEntry
	for cursor := ""; ; {
		got, err := r.client.Get(ctx, &api.GetRequest{Execution: r.id, Include: []string{"inbox"}, InboxCursor: cursor, MaxInlineBytes: wholeReply})
		if err != nil {
			return err
		}
		inbox = append(inbox, got.Inbox...)
		if cursor = got.InboxCursor; cursor == "" {
			break
		}
	}
	r.keeper.Progress()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inbox = inbox
	r.forget(r.absorb)
	return nil
}

// Progress says that the work is alive, for what takes longer than StuckAfter
// without a call of the run's.
func (r *Run) Progress() { r.keeper.Progress() }

// Commit writes one step: the change, and everything that is still unwritten
// (outcomes, taken signals, staged artifacts) in one entry. Of change the run
// fills in execution, versions and fence.
func (r *Run) Commit(ctx context.Context, change api.Changes) error {
	_, err := r.apply(ctx, change, nil, nil)
	return err
}

// apply writes one entry. Lost: nothing happened. Landed, reply lost: the very
// same bytes find themselves. A crash right after: the next run reads it.
func (r *Run) apply(ctx context.Context, change api.Changes, operations []api.OperationDeclaration, then *api.Then) (*api.ApplyReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.keeper.Check(); err != nil {
		return nil, err
	}
	change.Execution, change.ExpectedVersion, change.Fence = r.id, r.version, r.fence
	change.Operations = operations
	change.Outcomes = append(slices.Clone(r.outcomes), change.Outcomes...)
	change.Absorb = append(slices.Clone(r.absorb), change.Absorb...)
	change.Artifacts = append(slices.Clone(r.artifacts), change.Artifacts...)
	change.MaxInlineBytes = wholeReply
	sent := r.client.Now()
	reply, err := r.client.Apply(ctx, &api.ApplyRequest{Changes: change, Then: then})
	if err != nil {
		return nil, r.refuse(err)
	}
	r.version = reply.Version
	if reply.Tip != nil && reply.Tip.Fence == r.fence {
		r.version = max(r.version, reply.Tip.Version)
	}
	if then == nil {
		r.keeper.Extend(sent)
	}
	r.outcomes, r.absorb, r.artifacts = nil, nil, nil
	r.forget(change.Absorb)
	if change.Task != "" {
		r.task = change.Task
	}
	return reply, r.foldState(ctx, &change)
}

// refuse notes an answer to the run itself after which it is over; it gives the
// error back. A body may also meet such errors about other executions, and those
// end nothing.
func (r *Run) refuse(err error) error {
	if _, quiet := endings[execution.CodeOf(err)]; quiet {
		r.refused = err
	}
	return err
}

// foldState brings the run's copy of the state to where the entry brought the
// execution's.
func (r *Run) foldState(ctx context.Context, change *api.Changes) error {
	var err error
	state := r.state
	switch {
	case change.State != nil:
		state = change.State
	case change.Merge != nil:
		state, err = jsonx.MergePatch(r.state, change.Merge)
	case change.Patch != nil:
		state, err = jsonx.ApplyPatch(r.state, change.Patch)
	}
	if err == nil {
		r.state = state
		return nil
	}
	got, err := r.client.Get(ctx, &api.GetRequest{Execution: r.id, Include: []string{"state"}, MaxInlineBytes: wholeReply})
	if err == nil {
		r.state = got.State
	}
	return err
}

// JSON is a Go value as encoding/json writes it, without its HTML escapes. It
// panics on what has no JSON form (channels, functions, NaN), which is a mistake
// of the program.
func JSON(v any) *jsonx.Value {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil {
		var value *jsonx.Value
		if value, err = jsonx.Parse(b.Bytes()); err == nil {
			return value
		}
	}
	panic("client: no JSON form: " + err.Error())
}
