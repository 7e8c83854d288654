package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Effect is an attempt that may be made now.
type Effect struct {
	Operation execution.OperationID
	Name      string
	Key       string
	Args      *jsonx.Value
	Attempt   int
	// ProviderKey is the idempotency key to be shown to the provider.
	ProviderKey string
	// Fence is to be shown to systems that refuse older ones.
	Fence int64
	// SendBy is the store's time after which nothing may be started; nil: none.
	SendBy *api.Time
	// Callback is for a provider's webhook: it authorises one record_outcome or
	// signal.
	Callback string
}

// Outcome is what became of an operation.
type Outcome struct {
	Operation   execution.OperationID
	Outcome     execution.Outcome
	Reason      string
	ProviderRef string
	Result      *jsonx.Value
	// Recorded: it is an earlier attempt's, not made by this call.
	Recorded bool
}

// Succeeded reports the outcome succeeded.
func (o Outcome) Succeeded() bool { return o.Outcome == execution.OutcomeSucceeded }

// Success is the outcome of an effect that happened; result may be nil, ref is
// the provider's own reference or "".
func Success(result *jsonx.Value, ref string) Outcome {
	return Outcome{Outcome: execution.OutcomeSucceeded, Result: result, ProviderRef: ref}
}

// Refused is a definite refusal without any effect: the same operation may be
// attempted again.
func Refused(reason string) Outcome {
	return Outcome{Outcome: execution.OutcomeRejected, Reason: reason}
}

// Pending is an effect under way whose final outcome comes later as evidence
// (record_outcome, a callback): wait for it with WaitFor.
func Pending(ref string) Outcome {
	return Outcome{Outcome: execution.OutcomeInProgress, ProviderRef: ref}
}

// EffectFunc makes one attempt. It is called at most once for each attempt of
// an operation in a run (but for operations that are harmless to repeat). An
// error means that nobody knows whether the effect happened; a definite failure
// is an Outcome. Calls for several operations run at once.
type EffectFunc func(ctx context.Context, e Effect) (Outcome, error)

// UncertainError: operations whose outcome is not known and that may not be
// attempted again. A body returns it; the execution is given up, and the next
// resume settles them by evidence or parks.
type UncertainError struct{ Operations []execution.OperationID }

func (e *UncertainError) Error() string {
	return fmt.Sprintf("client: %d operations are uncertain", len(e.Operations))
}

type attemptID struct {
	operation execution.OperationID
	number    int
}

// effect is what this process remembers of an attempt: it is nowhere else.
type effect struct {
	nonce string
	made  bool // the function was called
}

// Do declares operations, together with a change (the zero one: none), makes
// those that may be made, and gives all outcomes in the order of ops. Those that
// were settled before come back as recorded, without being made again; when all
// are, and the change is nothing but a task and a note, nothing is sent.
//
// A crash before the entry: nothing happened. After it: the operations are
// uncertain for the next owner, and go on by their on_uncertain. After an effect:
// its outcome is in the ledger, or it is uncertain.
func (r *Run) Do(ctx context.Context, change api.Changes, ops []api.OperationDeclaration, f EffectFunc) ([]Outcome, error) {
	d := &doing{run: r, f: f, ops: ops, results: make([]Outcome, len(ops))}
	rest := d.recall(change.Task)
	if len(rest) == 0 {
		if !empty(&change) {
			if err := r.Commit(ctx, change); err != nil {
				return nil, err
			}
		}
		return d.results, nil
	}
	uncertain, err := d.declare(ctx, change, rest)
	if err == nil && len(uncertain) > 0 {
		// The ledger or a resolver may know. What is proved never to have happened
		// goes again as the next attempt, so it is declared again.
		if err = r.reconcile(ctx); err == nil {
			uncertain, err = d.declare(ctx, api.Changes{}, uncertain)
		}
	}
	if err == nil && len(uncertain) > 0 {
		err = d.uncertain(uncertain)
	}
	if err != nil {
		return nil, err
	}
	return d.results, nil
}

// empty reports a change without content: task and note only say what a step is.
func empty(c *api.Changes) bool {
	return c.State == nil && c.Patch == nil && c.Merge == nil && len(c.Outcomes) == 0 && len(c.Absorb) == 0 && len(c.Artifacts) == 0 &&
		len(c.Spend) == 0 && c.Labels == nil && c.Subjects == nil && c.Permissions == nil
}

// doing is one Do.
type doing struct {
	run     *Run
	f       EffectFunc
	ops     []api.OperationDeclaration
	ids     []execution.OperationID // by the run's own computing, "" where declared
	results []Outcome
	mu      sync.Mutex
	errs    []error
}

// recall fills in what is settled and gives the positions of the rest, each
// operation once.
func (d *doing) recall(task execution.TaskID) (rest []int) {
	r := d.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if task == "" {
		task = r.task
	}
	d.ids = make([]execution.OperationID, len(d.ops))
	for i, op := range d.ops {
		id := execution.Identify(r.root, task, op.Name, op.Key, op.Args)
		d.ids[i] = id
		if o, ok := r.settled[id]; ok {
			d.results[i] = o
		} else if !slices.Contains(d.ids[:i], id) {
			rest = append(rest, i)
		}
	}
	return rest
}

// set notes an outcome for every position of the same operation.
func (d *doing) set(i int, o Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.ids {
		if d.ids[k] == d.ids[i] {
			d.results[k] = o
		}
	}
}

func (d *doing) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
}

// declare writes the entry and makes what may be made; it gives the positions
// of what is uncertain.
func (d *doing) declare(ctx context.Context, change api.Changes, rest []int) (uncertain []int, err error) {
	r := d.run
	ops := make([]api.OperationDeclaration, len(rest))
	for n, i := range rest {
		ops[n] = d.ops[i]
	}
	reply, err := r.apply(ctx, change, ops, nil)
	if err != nil {
		return nil, err
	}
	if len(reply.Operations) != len(ops) {
		return nil, execution.Errorf(execution.Internal, "the reply does not name all operations")
	}
	var made sync.WaitGroup
	slots := make(chan struct{}, r.options.Parallel)
	for n, i := range rest {
		given := &reply.Operations[n]
		switch given.Disposition {
		case api.Settled:
			o, err := r.recorded(ctx, given)
			if err != nil {
				d.fail(err)
			}
			d.set(i, o)
		case api.Go, api.Start:
			if !r.mayMake(given, &d.ops[i]) {
				uncertain = append(uncertain, i)
				continue
			}
			made.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if o, err := r.attempt(ctx, given, d.ops[i].Args, d.f); err != nil {
					d.fail(err)
				} else {
					d.set(i, o)
				}
			})
		default:
			uncertain = append(uncertain, i)
		}
	}
	made.Wait()
	return uncertain, errors.Join(d.errs...)
}

// recorded is a settled operation as the reply has it, its result fetched where
// it is too long for one.
func (r *Run) recorded(ctx context.Context, given *api.OperationReply) (Outcome, error) {
	o := Outcome{Operation: given.Operation, Outcome: given.Outcome, Reason: given.Reason, ProviderRef: given.ProviderRef, Result: given.Result, Recorded: true}
	if given.ResultRef != nil {
		got, err := r.client.GetOperation(ctx, &api.GetOperationRequest{Execution: r.id, Operation: given.Operation, MaxInlineBytes: wholeReply})
		if err != nil {
			return o, err
		}
		o.Result = got.Result
	}
	r.remember(o)
	return o, nil
}

func (r *Run) remember(o Outcome) {
	if !keeps(o.Outcome) {
		return
	}
	o.Recorded = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled[o.Operation] = o
}

// mayMake reports whether an attempt that was given out may be made: not if
// this process made it already, unless a repeat is harmless.
func (r *Run) mayMake(given *api.OperationReply, op *api.OperationDeclaration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.effects[attemptID{given.Operation, given.Attempt}]
	return e == nil || !e.made || op.OnUncertain == execution.SameKey || op.OnUncertain == execution.Always
}

// attempt starts and makes one attempt and sees to its outcome.
func (r *Run) attempt(ctx context.Context, given *api.OperationReply, args *jsonx.Value, f EffectFunc) (Outcome, error) {
	e, err := r.begin(given)
	if err != nil {
		return Outcome{}, err
	}
	byTool := slices.Contains(r.options.FilledByTool, given.Name)
	if given.Disposition == api.Start && !byTool {
		// Lost: nothing started, the same nonce may come again. Landed, reply lost:
		// the same nonce is given `go` again. A crash right after: started without
		// outcome, truly uncertain.
		_, err := r.client.StartOperation(ctx, &api.StartOperationRequest{Execution: r.id, Operation: given.Operation, Attempt: given.Attempt, Fence: r.fence, Nonce: e.nonce})
		if by, late := execution.AsError(err).Facts["send_by"]; err != nil && late && by != nil {
			return Outcome{}, &UncertainError{Operations: []execution.OperationID{given.Operation}}
		}
		if err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			return Outcome{}, r.refuse(err)
		}
	}
	if err := r.allow(ctx, given); err != nil {
		return Outcome{}, err
	}
	r.mu.Lock()
	e.made = true
	r.mu.Unlock()
	o, err := f(ctx, Effect{Operation: given.Operation, Name: given.Name, Key: given.Key, Args: args, Attempt: given.Attempt, ProviderKey: given.ProviderKey,
		Fence: r.fence, SendBy: given.SendBy, Callback: given.Callback})
	r.keeper.Progress()
	if err != nil {
		return Outcome{}, err
	}
	if o.Outcome == execution.OutcomeNone {
		return Outcome{}, errors.New("client: an effect returned neither an outcome nor an error")
	}
	o.Operation, o.Recorded = given.Operation, false
	return r.record(ctx, given, o, byTool)
}

// begin gives the process's memory of an attempt.
func (r *Run) begin(given *api.OperationReply) (*effect, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := attemptID{given.Operation, given.Attempt}
	e := r.effects[at]
	if e == nil {
		e = &effect{}
		if err := r.client.fresh(&e.nonce); err != nil {
			return nil, err
		}
		r.effects[at] = e
	}
	return e, nil
}

// allow is the last look before an effect: ownership is proved, and the time to
// start it has not passed.
func (r *Run) allow(ctx context.Context, given *api.OperationReply) error {
	if err := r.keeper.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	// Now is the latest that it can be at the store: the plan's time was written
	// after the plan was asked for.
	if given.SendBy != nil && r.Now().UnixMilli() >= given.SendBy.Millis() {
		return &UncertainError{Operations: []execution.OperationID{given.Operation}}
	}
	return nil
}

// record delivers an outcome to the ledger, and leaves it for the next entry,
// which settles the operation. An outcome is evidence: it is delivered even when
// ownership was lost meanwhile.
func (r *Run) record(ctx context.Context, given *api.OperationReply, o Outcome, byTool bool) (Outcome, error) {
	report := api.OutcomeReport{Operation: given.Operation, Attempt: given.Attempt, Outcome: o.Outcome, Reason: o.Reason, ProviderRef: o.ProviderRef, Result: o.Result}
	if byTool {
		report = api.OutcomeReport{Operation: given.Operation, Attempt: given.Attempt}
	}
	if !byTool && (!r.options.OutcomesRide || !o.Outcome.Final()) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		reply, err := r.client.RecordOutcome(last, &api.RecordOutcomeRequest{Execution: r.id, Operation: given.Operation, Attempt: given.Attempt,
			Outcome: o.Outcome, Reason: o.Reason, ProviderRef: o.ProviderRef, Result: o.Result})
		switch {
		case err != nil && !o.Outcome.Final():
			return o, err
		case err != nil && !execution.CodeOf(err).Retryable():
			return o, err
		case err == nil && reply.Ledger != nil && reply.Ledger.Outcome.Final() && reply.Ledger.Outcome != o.Outcome:
			// Another final outcome came first: the evidence contradicts itself, and a
			// person decides.
			return o, &UncertainError{Operations: []execution.OperationID{given.Operation}}
		}
		// Not delivered: the next entry carries it all the same.
	}
	if o.Outcome.Final() {
		r.mu.Lock()
		r.outcomes = append(r.outcomes, report)
		r.mu.Unlock()
		r.remember(o)
	}
	return o, nil
}

// reconcile asks the ledger and the resolvers about all uncertain operations.
func (r *Run) reconcile(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.client.Now()
	reply, err := r.client.Reconcile(ctx, &api.ReconcileRequest{Execution: r.id, Fence: r.fence})
	if err != nil {
		return r.refuse(err)
	}
	if reply.Version > r.version {
		r.version = reply.Version
		r.keeper.Extend(sent) // it wrote an entry
	}
	return nil
}

// uncertain is the error for operations that stay uncertain.
func (d *doing) uncertain(rest []int) error {
	e := &UncertainError{}
	for _, i := range rest {
		e.Operations = append(e.Operations, d.ids[i])
	}
	return e
}
