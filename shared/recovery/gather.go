package recovery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// gathered is what a round of asking found out.
type gathered struct {
	mu       sync.Mutex
	evidence []execution.Evidence
	checks   []execution.Check
}

func (g *gathered) add(ev ...execution.Evidence) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.evidence = append(g.evidence, ev...)
}

// gather asks about the open operations: the ledger first, for all of them; then,
// for those that are uncertain, the slots of `close` operations, children and
// the resolvers, in parallel. early also asks operations before their next check.
//
// It writes nothing but not_executed into empty slots of `close` operations,
// which is exact whenever it lands.
func (s *Service) gather(ctx context.Context, h *journal.Handle, early bool) (*gathered, error) {
	st, now := h.State, s.Journal.Now(h)
	g := &gathered{}
	ops := st.OpenOperations()
	if len(ops) == 0 {
		return g, nil
	}
	ledger, err := s.Ledger.Evidence(ctx, st, ops)
	if err != nil {
		return nil, err
	}
	g.add(ledger...)
	said := map[execution.OperationID]slotSays{}
	for i := range ledger {
		ev := &ledger[i]
		if op := st.Operations[ev.Operation]; op != nil && ev.Attempt == op.Attempt {
			says := said[ev.Operation]
			says.there = true
			says.final = says.final || ev.Finding == execution.Found && ev.Outcome.Final()
			says.open = says.open || ev.Outcome == execution.OutcomeUnknown
			says.started = says.started || ev.Started
			said[ev.Operation] = says
		}
	}
	var empty []*execution.Operation
	var ask []asking
	for _, op := range ops {
		says := said[op.ID]
		switch {
		case op.NeedsReview || says.final || !uncertain(st, op, now) && !says.open:
		case op.OnUncertain == execution.Close && !says.there:
			empty = append(empty, op)
		case early || op.NextCheck <= now:
			ask = append(ask, asking{op, says.started})
		}
	}
	started, err := s.closeEmpty(ctx, h, empty, g)
	if err != nil {
		return nil, err
	}
	for _, op := range started {
		ask = append(ask, asking{op, true})
	}
	return g, s.askAll(ctx, h, ask, g)
}

// asking is an operation that somebody is to be asked about; started: its slot
// says so, as that of an operation with a child always does.
type asking struct {
	*execution.Operation
	started bool
}

// slotSays is what the ledger holds about an operation's current attempt.
type slotSays struct{ there, final, open, started bool }

// uncertain reports whether an open operation's outcome is unknown to whoever may
// act now: with nobody owning a claimed execution, all are.
func uncertain(st *execution.State, op *execution.Operation, now int64) bool {
	return st.Owner == "" && st.Fence > 0 || op.Uncertain(st.Fence, now)
}

// closeEmpty closes the empty slots of `close` operations: what was never started
// can never start any more. It returns those that turn out to be started.
//
// Lost: the slot is empty and the next round closes it. Landed, reply lost: a
// repeat finds not_executed there, which is what it wanted. A crash right after:
// the next round finds it in the ledger.
func (s *Service) closeEmpty(ctx context.Context, h *journal.Handle, ops []*execution.Operation, g *gathered) (started []*execution.Operation, err error) {
	slots := make([]*journal.Slot, len(ops))
	for i, op := range ops {
		slots[i] = &journal.Slot{Operation: op.ID, Attempt: op.Attempt, Generation: h.State.Generation, Outcome: execution.OutcomeNotExecuted, At: s.Journal.Now(h),
			Reason: "the attempt had not been started", Source: execution.FromSlot, Args: op.ArgsDigest[:]}
	}
	got, err := s.Journal.FillSlots(ctx, h.State.Ref, slots, journal.FillOptions{OnlyEmpty: true, ValidatedAt: h.ValidatedAt()})
	if err != nil {
		return nil, err
	}
	for i, f := range got {
		if f.Filled || f.Now.Outcome.Final() {
			g.add(slotEvidence(ops[i], f.Now))
		} else {
			started = append(started, ops[i])
		}
	}
	return started, nil
}

// slotEvidence is a final slot as evidence.
func slotEvidence(op *execution.Operation, slot *journal.Slot) execution.Evidence {
	ev := execution.Evidence{Operation: op.ID, Attempt: slot.Attempt, Finding: execution.Found, Outcome: slot.Outcome, Source: execution.FromLedger,
		ProviderRef: slot.ProviderRef, Result: slot.Result, ResultRef: slot.ResultRef, Reason: slot.Reason}
	if slot.Source == execution.FromSlot {
		ev.Source, ev.SlotClosed = execution.FromSlot, true
	}
	return ev
}

// askAll puts the question about each operation to whoever can answer it, at most
// maxConcurrent at a time, and keeps time free for the write.
func (s *Service) askAll(ctx context.Context, h *journal.Handle, ops []asking, g *gathered) error {
	if len(ops) == 0 {
		return nil
	}
	w, err := s.Catalog.Workflow(ctx, h.State.Tenant, h.State.Workflow)
	if err != nil && execution.CodeOf(err) != execution.Integrity {
		return err // a damaged record has no resolvers; everything else may pass
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-writeReserve))
		defer cancel()
	}
	// Those that were asked least often go first: where there is no time for all,
	// the next round asks the others.
	slices.SortStableFunc(ops, func(a, b asking) int { return a.Checks - b.Checks })
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for _, op := range ops {
		group.Go(func() error {
			if ctx.Err() == nil {
				s.askOne(ctx, h, w, op, g)
			}
			return nil
		})
	}
	return group.Wait()
}

// askOne asks about one operation. Nobody to ask: nothing is learned.
func (s *Service) askOne(ctx context.Context, h *journal.Handle, w *api.Workflow, op asking, g *gathered) {
	asked := s.Journal.Now(h) // before the question: what may still happen after it is not ruled out by it
	var ev execution.Evidence
	var why string
	someone := false
	if op.started {
		ev, why, someone = s.askChild(ctx, h, op.Operation)
	}
	if !someone {
		ev, why, someone = s.askResolver(ctx, h, w, op.Operation)
	}
	if !someone {
		return
	}
	ev.AskedAt = asked
	g.mu.Lock()
	defer g.mu.Unlock()
	g.evidence = append(g.evidence, ev)
	g.checks = append(g.checks, execution.Check{Operation: op.ID, At: asked, Next: s.nextCheck(op.Operation, asked), Finding: ev.Finding, Detail: why})
}

// nextCheck is when an operation that stays open is asked about again: later each
// time, but right when a not_found begins to prove something.
func (s *Service) nextCheck(op *execution.Operation, now int64) int64 {
	next := now + s.jitter(backoff(int64(op.Checks), askFirst, askMost))
	if limit := op.ImpossibleAfter(); limit > 0 {
		if proof := limit + validation.Milliseconds(); now < proof && proof < next {
			next = proof
		}
	}
	return next
}

// validation is how long after a limit a question must be asked to prove that
// nothing happened (execution.Judge).
const validation = 5 * time.Minute

// askResolver asks the operation's resolver; someone false: it has none.
func (s *Service) askResolver(ctx context.Context, h *journal.Handle, w *api.Workflow, op *execution.Operation) (ev execution.Evidence, why string, someone bool) {
	r, ok := resolverOf(w, op)
	if !ok {
		return ev, "", false
	}
	st := h.State
	q := Question{Tenant: st.Tenant, Execution: st.Execution, Generation: st.Generation, Operation: op.ID, Attempt: op.Attempt, Name: op.Name,
		ProviderKey: op.ProviderKey(st.IdentityRoot), ProviderRef: op.ProviderRef, Config: ResolverConfig{Kind: r.Kind, Target: r.Target, Timeout: time.Duration(r.TimeoutSeconds) * time.Second}}
	if st.Owner != "" {
		q.Fence = st.Fence
	}
	ev, why = s.put(ctx, q)
	// A system that refuses fences older than the asker's does not refuse the
	// attempt's own.
	if q.Fence <= op.Fence {
		ev.Fenced = false
	}
	if ev.Result == nil {
		return ev, why, true
	}
	result := ev.Result
	var err error
	if s.Redact != nil {
		result, err = s.Redact(ctx, st.Tenant, result, "/result")
	}
	if err == nil {
		ev.Result, ev.ResultRef, err = s.Ledger.Shrink(ctx, st.Ref, result)
	}
	if err != nil { // without its result the outcome would be kept for ever as if it had none
		return execution.Evidence{Operation: op.ID, Attempt: op.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}, "the answer's result could not be kept", true
	}
	return ev, why, true
}

// put puts a question. A resolver that panics has not answered.
func (s *Service) put(ctx context.Context, q Question) (ev execution.Evidence, why string) {
	none := execution.Evidence{Operation: q.Operation, Attempt: q.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}
	defer func() {
		if recover() != nil {
			ev, why = none, "the resolver failed"
		}
	}()
	r := s.Resolvers[q.Config.Kind]
	if r == nil {
		return none, fmt.Sprintf("no resolver of kind %s can be reached from here", q.Config.Kind)
	}
	timeout := q.Config.Timeout
	if timeout == 0 {
		timeout = askTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := r.Ask(ctx, q)
	if err != nil {
		return none, askedWrong(err)
	}
	return parseAnswer(a.JSON, q)
}

// resolverOf finds the workflow's resolver for an operation: the one it named, or
// the one for its name, also for a name that it had before a migration.
func resolverOf(w *api.Workflow, op *execution.Operation) (api.Resolver, bool) {
	if w == nil {
		return api.Resolver{}, false
	}
	names := append([]string{op.Name}, op.OldNames...)
	if op.Resolver != "" {
		names = []string{op.Resolver}
	}
	for _, n := range names {
		if r, ok := w.Resolvers[n]; ok {
			return r, true
		}
	}
	return api.Resolver{}, false
}
