package recovery

import (
	"context"
	"errors"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Reconcile takes in evidence about operations, or asks for it: one entry for the
// whole round, none when nothing was learned. The owner shows its fence; without
// one it is possible while nobody owns the execution (parked, waiting, given up).
//
// Errors: LeaseLost, InvalidRequest {field}, Halted, ExecutionClosed.
func (s *Service) Reconcile(ctx context.Context, r *api.ReconcileRequest) (*api.ReconcileReply, error) {
	rd := &round{tenant: r.Tenant, execution: r.Execution, request: request(&r.Common, 0), actor: r.Actor.Execution(), fence: r.Fence, hasFence: r.Fence != 0}
	h, err := s.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{Head: true})
	if err != nil {
		return nil, err
	}
	if err := s.usable(h); err != nil {
		return nil, err
	}
	if rd.hasFence {
		rd.owned = h
	}
	if err := s.admit(h, rd); err != nil {
		return nil, err
	}
	if len(r.Evidence) > 0 {
		rd.fromCaller = true
		rd.evidence, err = s.callersEvidence(ctx, h, r)
	} else {
		var g *gathered
		if g, err = s.gather(ctx, h, true); err == nil {
			rd.evidence, rd.checks = g.evidence, g.checks
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := s.absorb(ctx, rd)
	if err != nil {
		return nil, err
	}
	return &api.ReconcileReply{Standing: s.standing(w), Operations: s.reconciled(h, w.Handle, rd)}, nil
}

// callersEvidence is what the request brings, results too large for an entry
// moved to artifacts.
func (s *Service) callersEvidence(ctx context.Context, h *journal.Handle, r *api.ReconcileRequest) ([]execution.Evidence, error) {
	out := make([]execution.Evidence, 0, len(r.Evidence))
	for i := range r.Evidence {
		e := &r.Evidence[i]
		ev := execution.Evidence{Operation: e.Operation, Attempt: e.Attempt, Finding: e.Finding, Outcome: e.Outcome, Source: execution.FromCaller, AskedAt: e.AskedAt.Millis(),
			Count: counted(e.Count), ProviderRef: e.ProviderRef, Result: e.Result, Fenced: e.Fenced, Reason: e.Reason, Reference: e.Reference, Force: e.Force, Actor: r.Actor.Execution()}
		switch {
		case ev.Finding == execution.Found && ev.Outcome == "":
			ev.Outcome = execution.OutcomeSucceeded
		case ev.Finding == execution.Decided:
			ev.Source = execution.FromVerdict
		}
		if ev.Result != nil {
			var err error
			if ev.Result, ev.ResultRef, err = s.Ledger.Shrink(ctx, h.State.Ref, ev.Result); err != nil {
				return nil, err
			}
		}
		out = append(out, ev)
	}
	return s.withLedger(ctx, h.State, out)
}

func counted(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// withLedger adds what the ledger says about the open operations that a caller
// brings evidence of, so that the two are judged together. A person's verdict
// outranks both.
func (s *Service) withLedger(ctx context.Context, st *execution.State, evs []execution.Evidence) ([]execution.Evidence, error) {
	var ops []*execution.Operation
	for i := range evs {
		op := st.Operation(evs[i].Operation)
		if op != nil && !op.Final() && evs[i].Finding != execution.Decided && !slices.Contains(ops, op) {
			ops = append(ops, op)
		}
	}
	said, err := s.Ledger.Evidence(ctx, st, ops)
	return append(evs, said...), err
}

// round is one round of evidence about one execution.
type round struct {
	tenant     execution.TenantID
	execution  execution.ExecutionID
	request    execution.RequestID
	actor      *execution.Actor
	fence      int64
	hasFence   bool
	evidence   []execution.Evidence
	checks     []execution.Check
	fromCaller bool
	expected   int64 // the version that the entry extends; 0: whatever is there
	// owned is the execution as its owner found it, with its head; nil without a
	// fence.
	owned *journal.Handle
	// quiet: answers that change nothing are not worth an entry (polls).
	quiet bool
}

// admit refuses who may not write; without a fence only while nobody owns it.
func (s *Service) admit(h *journal.Handle, rd *round) error {
	c := rd.change(h)
	replay, err := execution.Admit(h.State, &c, execution.Environment{Now: s.Journal.Now(h), Epoch: s.Journal.Epoch})
	if err != nil || replay != nil {
		return err
	}
	if err := closed(h.State); err != nil {
		return err
	}
	return halted(h.State)
}

// change is the round as a change of the journal at h.
func (rd *round) change(h *journal.Handle) execution.Change {
	c := execution.Change{Kind: execution.KindReconciled, Actor: rd.actor, Request: rd.request, Fence: rd.fence, HasFence: rd.hasFence, Checks: rd.checks, Expected: rd.expected}
	// Nobody owns it, so that no fence can be shown; the version that the entry
	// extends is the only condition that is needed.
	c.System = !rd.hasFence && h.State.Owner == ""
	c.Evidence = slices.Clone(rd.evidence)
	if slices.ContainsFunc(c.Evidence, func(ev execution.Evidence) bool { return ev.Finding == execution.Decided }) {
		c.Kind = execution.KindVerdict
	}
	return c
}

// absorb writes a round as one entry. Nothing learned: nothing is written.
//
// not_executed and abandoned are written into their slots before the entry (M);
// an outcome found there wins and the round is judged anew. A crash in between
// leaves slots that say what the next round will find.
func (s *Service) absorb(ctx context.Context, rd *round) (*journal.Written, error) {
	for range maxSlotRounds {
		w, err := s.writeFrom(ctx, rd.tenant, rd.execution, rd.owned, func(h *journal.Handle) (*journal.Step, error) { return s.absorbStep(h, rd) })
		var won *slotsWon
		if errors.As(err, &won) {
			rd.concede(won)
			continue
		}
		if err == nil && w.Proposal != nil && w.Proposal.Contradictions > 0 {
			s.count(telemetry.Contradictions, float64(w.Proposal.Contradictions))
			s.emit(ctx, "contradiction", w.Handle.State.Ref, map[string]any{"contradictions": w.Proposal.Contradictions})
		}
		return w, err
	}
	return nil, execution.Errorf(execution.Unavailable, "outcomes keep arriving: repeat the same request").With("execution", string(rd.execution))
}

const maxSlotRounds = 8

// absorbStep is one attempt of absorb.
func (s *Service) absorbStep(h *journal.Handle, rd *round) (*journal.Step, error) {
	c := rd.change(h)
	now := s.Journal.Now(h)
	for i := range c.Evidence {
		ev := &c.Evidence[i]
		switch {
		case rd.fromCaller && ev.AskedAt == 0:
			ev.AskedAt = min(h.State.ClaimedAt, now)
		case !rd.fromCaller || ev.Source == execution.FromLedger:
			// A later read may show a little less time than the earlier one; earlier is
			// the safe side.
			ev.AskedAt = min(ev.AskedAt, now)
		}
	}
	p, err := s.propose(h, &c)
	if err != nil || p.Replay != nil {
		return &journal.Step{Proposal: p}, err
	}
	if err := closed(h.State); err != nil {
		return nil, err
	}
	if err := halted(h.State); err != nil {
		return nil, err
	}
	b := &p.Entry.Body
	b.Checked = slices.DeleteFunc(b.Checked, func(c execution.Check) bool {
		return p.State.Operations[c.Operation] == nil || p.State.Operations[c.Operation].Final()
	})
	if !learned(h.State, p, rd.quiet) {
		return nil, &unchanged{h}
	}
	step := &journal.Step{Proposal: p, Head: s.wakes(h, p, c.Kind)}
	if len(p.Slots) > 0 {
		step.Before = func(ctx context.Context) error { return s.settleSlots(ctx, h, p.Slots) }
	}
	return step, nil
}

// learned reports whether a proposal says anything that the fold does not have.
func learned(st *execution.State, p *execution.Proposal, quiet bool) bool {
	b := &p.Entry.Body
	if len(b.Outcomes) > 0 || len(b.Checked) > 0 && !quiet {
		return true
	}
	for id, op := range p.State.Operations {
		was := st.Operations[id]
		if was == nil || was == op {
			continue
		}
		if was.NeedsReview != op.NeedsReview || was.SawUnknown != op.SawUnknown || was.LastFinding != op.LastFinding {
			return true
		}
	}
	return false
}

// wakes is the change of the head when what was learned lets an execution that
// nobody owns go on: it is due at once. nil: the entry alone is written.
func (s *Service) wakes(h *journal.Handle, p *execution.Proposal, kind execution.Kind) *journal.HeadChange {
	due := journal.DueEvidence
	if kind == execution.KindVerdict {
		due = journal.DueVerdict
	}
	switch st := h.State; {
	case st.Status == execution.StatusParked && len(p.Entry.Body.Outcomes) > 0:
	case st.Status == execution.StatusWaiting && (kind == execution.KindVerdict || awaited(st, p.Entry.Body.Outcomes)):
	default:
		return nil
	}
	return &journal.HeadChange{Due: journal.Due{At: p.Entry.At, Kind: due}}
}

func awaited(st *execution.State, ts []execution.Settlement) bool {
	return st.Wait != nil && slices.ContainsFunc(ts, func(t execution.Settlement) bool { return slices.Contains(st.Wait.Operations, t.Operation) })
}

// slotsWon are outcomes that stood in slots where not_executed or abandoned was
// to be written. undecided are those that settle nothing by themselves (a
// rejection of one of several sendings, or where only a verdict leads out): with
// them a person's verdict is what decides, in the words of the slot.
type slotsWon struct {
	found     []execution.Settlement
	undecided map[execution.OperationID]bool
}

func (*slotsWon) Error() string { return "recovery: slots hold other outcomes" }

// settleSlots writes settlements into their slots before they count.
func (s *Service) settleSlots(ctx context.Context, h *journal.Handle, ts []execution.Settlement) error {
	found, err := s.Ledger.Settle(ctx, h, ts)
	if err != nil {
		return err
	}
	got := map[execution.OperationID]execution.Settlement{}
	for _, f := range found {
		got[f.Operation] = f
	}
	var won []execution.Settlement
	undecided := map[execution.OperationID]bool{}
	for _, t := range ts {
		f, ok := got[t.Operation]
		if !ok { // the slot let nothing in: what was to be proved is not
			won = append(won, execution.Settlement{Operation: t.Operation, Attempt: t.Attempt})
		} else if f.Outcome != t.Outcome {
			won = append(won, f)
			op := h.State.Operations[t.Operation]
			undecided[t.Operation] = f.Outcome == execution.OutcomeRejected || op != nil && op.NeedsReview
		}
	}
	if len(won) > 0 {
		return &slotsWon{won, undecided}
	}
	return nil
}

// concede replaces what was said about attempts by what their slots hold.
func (rd *round) concede(won *slotsWon) {
	for _, t := range won.found {
		verdict := slices.IndexFunc(rd.evidence, func(ev execution.Evidence) bool {
			return ev.Operation == t.Operation && ev.Finding == execution.Decided
		})
		if verdict >= 0 && won.undecided[t.Operation] {
			ev := &rd.evidence[verdict]
			ev.Outcome, ev.ProviderRef, ev.Result, ev.ResultRef = t.Outcome, t.ProviderRef, t.Result, t.ResultRef
			continue
		}
		rd.evidence = slices.DeleteFunc(rd.evidence, func(ev execution.Evidence) bool {
			return ev.Operation == t.Operation && (ev.Finding == execution.Decided || ev.Finding == execution.NotFoundFinding || ev.Finding == execution.Found && ev.Outcome == execution.OutcomeNotExecuted)
		})
		if t.Outcome != "" {
			rd.evidence = append(rd.evidence, execution.Evidence{Operation: t.Operation, Attempt: t.Attempt, Finding: execution.Found, Outcome: t.Outcome, Source: execution.FromLedger,
				ProviderRef: t.ProviderRef, Result: t.Result, ResultRef: t.ResultRef, Reason: t.Reason})
		}
	}
}

// reconciled says per operation what is known after a round: of those that the
// round was about, in the order of their declaration.
func (s *Service) reconciled(before, after *journal.Handle, rd *round) []api.Reconciled {
	about := map[execution.OperationID]bool{}
	for _, ev := range rd.evidence {
		about[ev.Operation] = true
	}
	if !rd.fromCaller {
		for _, op := range before.State.OpenOperations() {
			about[op.ID] = true
		}
	}
	detail := map[execution.OperationID]string{}
	for _, c := range rd.checks {
		detail[c.Operation] = c.Detail
	}
	out := []api.Reconciled{}
	now := s.Journal.Now(after)
	for _, op := range after.State.OperationsInOrder() {
		if !about[op.ID] {
			continue
		}
		r := api.Reconciled{Operation: op.ID, Name: op.Name, Attempt: op.Attempt, Status: op.ViewStatus(after.State, now), Outcome: op.Outcome, Finding: op.LastFinding}
		if !op.Final() && !op.NeedsReview { // those only a person can move
			r.NextCheckAt, r.Detail = api.TimeOrNil(op.NextCheck), detail[op.ID]
		}
		out = append(out, r)
	}
	return out
}
