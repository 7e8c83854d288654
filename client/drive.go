package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// DriveOptions of one Drive. The zero value is usable.
type DriveOptions struct {
	// Owner names this worker in the history; "": a random name.
	Owner string
	// Lease is how long nobody else may take over after the last sign of life, in
	// whole seconds from 5 s to 24 h; 0: one minute.
	Lease time.Duration
	// ExpectedVersion is that of a hand-over: the execution is taken over only at
	// that version. 0: at any.
	ExpectedVersion int64
	// Resume is kept in the claim's entry; Run.Resume gives it back. nil: none.
	Resume *jsonx.Value
	// Supports are the schema versions that this build reads; nil: any.
	Supports *api.Supports
	// StuckAfter ends the work when no call of the run (Progress is one) was made
	// for so long; 0: ten minutes. Then the lease lapses and another worker takes
	// over.
	StuckAfter time.Duration
	// Parallel bounds how many effects of one Do run at once; 0: 16.
	Parallel int
	// RetryAfter is how long a fresh worker waits after the body failed; 0: at
	// once.
	RetryAfter time.Duration
	// OutcomesRide leaves an effect's outcome for the run's next entry instead of
	// recording it in the ledger as soon as it is known: one request less for each
	// effect, and a crash before that entry leaves the operation uncertain.
	OutcomesRide bool
	// FilledByTool names operations (on_uncertain close) whose tool fills the
	// attempt's slot in its own transaction: for them start_operation is not
	// called and the outcome is taken from the ledger.
	FilledByTool []string
}

// Ending says how a Drive ended.
type Ending string

// The endings. Those after Failed are quiet: another worker, or a person, is
// responsible now, and this one has nothing left to do.
const (
	Finished  Ending = "finished"  // completed, failed or cancelled by the body
	Waiting   Ending = "waiting"   // suspended; whatever it waits for hands it over
	Continued Ending = "continued" // given up for a fresh worker, as the body asked
	Broken    Ending = "broken"    // the body returned an error; given up for a fresh worker
	Uncertain Ending = "uncertain" // an operation's outcome is not known; given up: the next resume settles it or parks

	Parked    Ending = "parked"    // nobody may go on before Reasons are settled
	Held      Ending = "held"      // another worker owns it, for RetryAfter at least
	Overtaken Ending = "overtaken" // the hand-over came too late: it has moved on
	Lost      Ending = "lost"      // ownership was lost during the work, or could not be proved any more
	Closed    Ending = "closed"    // it has ended already, or was deleted
	Halted    Ending = "halted"    // an operator stopped it
)

// Result of a Drive.
type Result struct {
	Ending Ending
	// Version is the last one this worker knows; 0: none.
	Version int64
	Fence   int64
	// Status of the execution as far as known.
	Status execution.Status
	// Reasons why it is parked.
	Reasons []api.Reason
	// RetryAfter: Held only.
	RetryAfter time.Duration
	// Cause is the error behind a quiet ending; nil where there is none.
	Cause error
}

// Body is an agent's code between taking an execution over and giving it up. A
// body runs again from its beginning after a crash anywhere: it looks at
// Run.State to see how far it came, and declares its operations again, which
// gives recorded results instead of second effects.
//
// ctx ends when ownership is lost. An error gives the execution up for a fresh
// worker; what was committed stays.
type Body func(ctx context.Context, run *Run) (End, error)

// maxStraight is how often one Drive goes on at once after a wait for which
// everything had come already; then the hand-over decides.
const maxStraight = 8

// Drive takes an execution over, runs the body under a lease that is kept, and
// writes its ending together with what is still unwritten.
//
// A crash at any point leaves a state from which another Drive goes on: before
// the claim nothing happened; after it the lease lapses; an effect that may have
// happened is settled by evidence, by its declared way or by a person before
// anything else is done; an ending is there or is not.
//
// A quiet end (held, overtaken, lost, parked, closed, halted) is no error. The
// error is the body's, or an *execution.Error where the functions cannot be
// reached or refuse the execution itself; the Result then says what is known.
func (c *Client) Drive(ctx context.Context, id execution.ExecutionID, o DriveOptions, body Body) (*Result, error) {
	if err := c.fill(&o); err != nil {
		return &Result{}, err
	}
	for straight := 0; ; straight++ {
		result, missed, err := c.driveOnce(ctx, id, o, body)
		if missed == nil || err != nil || straight == maxStraight {
			return result, err
		}
		// What it waits for had come already. Whoever comes first goes on: this
		// worker, or the one that the hand-over starts.
		o.ExpectedVersion, o.Resume = result.Version, nil
	}
}

func (c *Client) fill(o *DriveOptions) error {
	if o.Owner == "" {
		if err := c.fresh(&o.Owner); err != nil {
			return err
		}
		o.Owner = "worker-" + o.Owner
	}
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	o.Lease = o.Lease.Round(time.Second)
	if o.StuckAfter == 0 {
		o.StuckAfter = 10 * time.Minute
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	return nil
}

// driveOnce is one ownership: from resume to ending. missed is set when a wait
// was over before it began.
func (c *Client) driveOnce(ctx context.Context, id execution.ExecutionID, o DriveOptions, body Body) (*Result, *api.Missed, error) {
	sent := c.Now()
	plan, err := c.Resume(ctx, &api.ResumeRequest{Claiming: api.Claiming{Execution: id, Owner: o.Owner, LeaseSeconds: int64(o.Lease / time.Second),
		ExpectedVersion: o.ExpectedVersion, Resume: o.Resume, Supports: o.Supports, MaxInlineBytes: wholeReply}})
	if err != nil {
		// VersionConflict here means that the hand-over was overtaken.
		result, err := quiet(&Result{}, err)
		return result, nil, err
	}
	if plan.Parked {
		return &Result{Ending: Parked, Version: plan.Version, Status: plan.Status, Reasons: plan.Reasons}, nil, nil
	}
	lease := Lease{Execution: id, Owner: o.Owner, Fence: plan.Fence, Seconds: int64(o.Lease / time.Second), Sent: sent}
	work, keeper := c.Keep(ctx, lease, KeepOptions{StuckAfter: o.StuckAfter})
	defer keeper.Stop()
	run := newRun(c, id, o, plan, keeper, sent)
	if err := run.completePlan(work); err != nil {
		return run.giveUp(ctx, work, err)
	}
	end, err := body(work, run)
	if err == nil && end.then == nil {
		err = errors.New("client: the body returned no ending")
	}
	if err != nil {
		return run.giveUp(ctx, work, err)
	}
	reply, err := run.apply(work, end.change, nil, end.then)
	if err != nil {
		return run.giveUp(ctx, work, err)
	}
	return &Result{Ending: end.ending(), Version: reply.Version, Fence: plan.Fence, Status: reply.Status}, reply.Missed, nil
}

// giveUp ends an ownership without an ending of the body's.
func (r *Run) giveUp(ctx, work context.Context, cause error) (*Result, *api.Missed, error) {
	result := &Result{Version: r.Version(), Fence: r.fence, Status: execution.StatusRunning}
	if lost := context.Cause(work); work.Err() != nil && execution.CodeOf(lost) == execution.LeaseLost {
		result, err := quiet(result, lost)
		return result, nil, err
	}
	r.mu.Lock()
	refused := r.refused
	r.mu.Unlock()
	if refused != nil {
		result, err := quiet(result, refused)
		return result, nil, err
	}
	// A caller that is shutting down still gives the lease back. Lost: the lease
	// lapses instead.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	reply, err := r.client.Release(last, &api.ReleaseRequest{Execution: r.id, Owner: r.options.Owner, Fence: r.fence, AfterSeconds: int64(r.options.RetryAfter / time.Second)})
	if err == nil {
		result.Version = reply.Version
	}
	var uncertain *UncertainError
	if errors.As(cause, &uncertain) {
		result.Ending, result.Cause = Uncertain, cause
		return result, nil, nil
	}
	result.Ending = Broken
	return result, nil, cause
}

// endings are the answers after which a worker has nothing left to do.
var endings = map[execution.Code]Ending{execution.LeaseHeld: Held, execution.VersionConflict: Overtaken, execution.LeaseLost: Lost,
	execution.ExecutionClosed: Closed, execution.Deleted: Closed, execution.Halted: Halted}

// quiet turns an answer that ends a worker's part into a Result; any other
// error it gives back.
func quiet(result *Result, err error) (*Result, error) {
	var e *execution.Error
	if !errors.As(err, &e) {
		return result, err
	}
	ending, ok := endings[e.Code]
	if !ok {
		return result, err
	}
	result.Ending, result.Cause = ending, err
	if v, ok := e.Facts["version"].(int64); ok {
		result.Version = max(result.Version, v)
	}
	if s, ok := e.Facts["status"].(string); ok {
		result.Status = execution.Status(s)
	}
	if ms, ok := e.Facts["retry_after_ms"].(int64); ok && ending == Held {
		result.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return result, nil
}

// String names the ending for logs; it holds no agent data.
func (r *Result) String() string {
	return fmt.Sprintf("%s at version %d", r.Ending, r.Version)
}
