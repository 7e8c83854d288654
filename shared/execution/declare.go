package execution

import (
	"fmt"
	"slices"
)

// outcomes takes in what the owner learned.
func (p *proposer) outcomes() error {
	for i := range p.c.Outcomes {
		t := p.c.Outcomes[i]
		field := fmt.Sprintf("outcomes[%d]", i)
		op := p.operation(t.Operation)
		if op == nil {
			return Invalid(field+".operation", "no such operation").With("operation", string(t.Operation))
		}
		if t.Attempt == 0 {
			t.Attempt = op.Attempt // the owner, under the current fence, speaks of what it was given
		}
		if t.Attempt > op.Attempt {
			return Invalid(field+".attempt", "no such attempt").With("attempt", op.Attempt)
		}
		if slotBound(t.Outcome) && t.Source != FromLedger {
			return Invalid(field+".outcome", "comes from reconcile only: it must be proved or decided")
		}
		if t.Source == "" {
			t.Source = FromOwner
		}
		p.take(op, append(slices.Clone(p.c.Ledger), Evidence{Operation: op.ID, Attempt: t.Attempt, Finding: findingOf(t.Outcome), Outcome: t.Outcome, Source: t.Source,
			ProviderRef: t.ProviderRef, Result: t.Result, ResultRef: t.ResultRef, Reason: t.Reason}))
	}
	return nil
}

// findingOf says an outcome in the words of the evidence table.
func findingOf(o Outcome) Finding {
	switch {
	case o.Final():
		return Found
	case o == OutcomeInProgress:
		return InProgress
	}
	return QueryFailed
}

// judge takes in the evidence of a reconciliation, all of an operation's
// together.
func (p *proposer) judge() error {
	seen, verdicts := map[OperationID]bool{}, map[OperationID]bool{}
	evidence := slices.Clone(p.c.Evidence)
	for i := range evidence {
		ev := &evidence[i]
		field := fmt.Sprintf("evidence[%d]", i)
		op := p.operation(ev.Operation)
		if op == nil {
			return Invalid(field+".operation", "no such operation").With("operation", string(ev.Operation))
		}
		if ev.Attempt == 0 {
			if op.Attempt > 1 {
				return Invalid(field+".attempt", "is required once there is a second attempt").With("attempt", op.Attempt)
			}
			ev.Attempt = op.Attempt
		}
		if ev.Attempt > op.Attempt || ev.Finding == Decided && ev.Attempt != op.Attempt {
			return Invalid(field+".attempt", "must be the current attempt").With("attempt", op.Attempt)
		}
		if ev.Finding == Decided && verdicts[ev.Operation] {
			return Invalid(field, "a second verdict on one operation")
		}
		verdicts[ev.Operation] = verdicts[ev.Operation] || ev.Finding == Decided
		if ev.Finding == Found && slotBound(ev.Outcome) && ev.Source != FromLedger && ev.Source != FromSlot {
			return Invalid(field+".outcome", "comes from proof or a verdict only: say not_found, or decided")
		}
		if ev.AskedAt > p.env.Now {
			return Invalid(field+".asked_at", "lies in the future of the store's clock")
		}
		if ev.Finding == Decided && ev.Outcome == OutcomeNotExecuted && !ev.Force && p.env.Now < op.SendBy()+NetworkDelay.Milliseconds() {
			return Invalid(field+".force", "the effect may still happen: not_executed before send_by and the network delay needs force").With("send_by", op.SendBy())
		}
		// A system that refuses this execution's older fences does not refuse those of
		// an execution that this one carries on.
		ev.Fenced = ev.Fenced && op.Fence >= 0
		// Nor does one that refuses older fences refuse the newest, under which the
		// attempt itself went out.
		if op.Fence > 0 && op.Fence >= p.s.Fence {
			ev.Fenced = false
		}
		seen[ev.Operation] = true
	}
	for _, id := range sortedIDs(seen) {
		p.take(p.operation(id), evidence)
	}
	return nil
}

func sortedIDs(m map[OperationID]bool) []OperationID {
	ids := make([]OperationID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// take puts a judgement into the entry and into the proposer's own view.
func (p *proposer) take(op *Operation, evs []Evidence) {
	j := Judge(op, evs, p.env.Now)
	b := &p.entry.Body
	p.out.Contradictions += len(j.Contradictions)
	if j.Settle != nil {
		b.Outcomes = append(b.Outcomes, *j.Settle)
		if j.NeedsSlot {
			p.out.Slots = append(p.out.Slots, *j.Settle)
		}
	}
	b.Outcomes = append(b.Outcomes, j.Contradictions...)
	b.Evidence = append(b.Evidence, j.Keep...)
	f := Folder{s: State{Operations: map[OperationID]*Operation{op.ID: op}, Open: 1}}
	f.own.ops = true
	if j.Settle != nil {
		f.settle(j.Settle, p.entry)
	}
	for i := range j.Contradictions {
		f.settle(&j.Contradictions[i], p.entry)
	}
	for i := range j.Keep {
		f.evidence(&j.Keep[i])
	}
	p.set(f.s.Operations[op.ID])
}

// operation is an operation as this proposal leaves it so far.
func (p *proposer) operation(id OperationID) *Operation {
	if op := p.ops[id]; op != nil {
		return op
	}
	return p.s.Operations[id]
}

func (p *proposer) set(op *Operation) {
	if p.ops == nil {
		p.ops = map[OperationID]*Operation{}
	}
	p.ops[op.ID] = op
}

// declare takes in the operations that will be attempted next.
func (p *proposer) declare() error {
	task := p.c.Task
	if task == "" {
		task = p.s.Task
	}
	for i := range p.c.Operations {
		d := &p.c.Operations[i]
		op, err := p.declareOne(d, task, fmt.Sprintf("operations[%d]", i))
		if err != nil {
			return err
		}
		p.given = append(p.given, op)
	}
	return nil
}

func (p *proposer) declareOne(d *Declaration, task TaskID, field string) (OperationID, error) {
	id := p.s.OperationID(task, d)
	op := p.operation(id)
	switch {
	case op == nil && p.s.MayBeForgotten(id) && !p.c.NotForgotten[id]:
		// Its slot holds the outcome; the service reads it before it proposes and
		// never lets such a declaration through.
		return "", Errorf(OperationMismatch, "the operation was settled long ago; its outcome stands in the ledger").With("operation", string(id))
	case op == nil:
		op = p.newOperation(id, d, task)
		p.entry.Body.Declared = append(p.entry.Body.Declared, Declared{Operation: op})
		p.set(op)
		p.disp = append(p.disp, firstDisposition(op))
		return id, nil
	}
	if err := op.Matches(d, field); err != nil {
		return "", err
	}
	if op.Final() && len(p.c.Ledger) > 0 { // contradictions that came after it was settled
		p.take(op, p.c.Ledger)
		op = p.operation(id)
	}
	next, disp := Redeclare(op, p.entry.Fence, p.env.Now)
	p.disp = append(p.disp, disp)
	if next > 0 {
		p.entry.Body.Declared = append(p.entry.Body.Declared, Declared{ID: id, Attempt: next})
		f := Folder{s: State{Operations: map[OperationID]*Operation{id: op}}}
		f.own.ops = true
		f.declare(&Declared{ID: id, Attempt: next}, p.entry)
		p.set(f.s.Operations[id])
	}
	return id, nil
}

func (p *proposer) newOperation(id OperationID, d *Declaration, task TaskID) *Operation {
	how := d.OnUncertain
	if how == "" {
		how = Ask
	}
	seq := p.s.OpSeq + 1
	for i := range p.entry.Body.Declared {
		if p.entry.Body.Declared[i].Operation != nil {
			seq++
		}
	}
	return &Operation{ID: id, Seq: seq, Task: task, Name: d.Name, Key: d.Key, Args: d.Args, ArgsDigest: DigestArgs(d.Args), OnUncertain: how,
		DedupSeconds: d.DedupSeconds, ValidSeconds: d.ValidSeconds, DeadlineSeconds: d.DeadlineSeconds, Resolver: d.Resolver,
		Attempt: 1, Sends: 1, Intent: p.entry.At, IntentAt: p.entry.Version, Fence: p.entry.Fence, KeySince: p.entry.At}
}

func firstDisposition(op *Operation) Disposition {
	if op.OnUncertain == Close {
		return StartFirst
	}
	return Go
}

// Matches is OperationMismatch when a declaration under the same identity has
// another name or other arguments, in every state of the operation.
func (op *Operation) Matches(d *Declaration, field string) error {
	if (op.Name == d.Name || slices.Contains(op.OldNames, d.Name)) && op.ArgsDigest == DigestArgs(d.Args) {
		return nil
	}
	what := "args"
	if op.Name != d.Name && !slices.Contains(op.OldNames, d.Name) {
		what = "name"
	}
	return Errorf(OperationMismatch, "the operation was declared before with another %s", what).With("operation", string(op.ID)).With("field", field+"."+what)
}

// Redeclare decides about an operation that is declared again under a fence:
// next is the attempt to give out (the current one: once more; 0: none).
//
// The same identity never gets a second `go` while the first may have happened,
// unless its own protection makes that harmless: evidence of an effect that came
// after an attempt was settled as having none stops it, until a person decides.
func Redeclare(op *Operation, fence, now int64) (next int, d Disposition) {
	switch {
	case op.NeedsReview, op.contradicted():
		return 0, UncertainDisp
	case op.Outcome.Effectless():
		return op.Attempt + 1, firstDisposition(op)
	case op.Final():
		return 0, Settled
	}
	return again(op, fence, now)
}

// contradicted reports evidence of an effect against an outcome that says there
// was none, on which nobody has decided.
func (op *Operation) contradicted() bool {
	if !op.Outcome.Effectless() || op.Source == FromVerdict {
		return false
	}
	return slices.ContainsFunc(op.Contradictions, func(c Contradiction) bool {
		return !c.Outcome.Effectless() && !slices.ContainsFunc(op.Past, func(p PastAttempt) bool { return p.Attempt >= c.Attempt && p.Source == FromVerdict })
	})
}

// again decides about an open operation.
func again(op *Operation, fence, now int64) (int, Disposition) {
	switch op.OnUncertain {
	case Always:
		return op.Attempt, Go
	case SameKey:
		if now < op.RepeatBy() {
			return op.Attempt, Go
		}
	case Close:
		// Nothing runs before the slot is filled, and only one nonce can fill it.
		if !op.Uncertain(fence, now) {
			return 0, StartFirst
		}
	}
	return 0, UncertainDisp
}

// Replayed is the disposition of an operation in the answer to a repeated
// request: computed from the fold at the tip, never replayed (M). unsent is the
// version of the request's entry where this very process's own put was ambiguous
// and its answer never went out; else 0. An attempt that this entry declared was
// then never given out; one that an earlier entry declared was, under that
// entry's answer.
func Replayed(op *Operation, fence, now, unsent int64) Disposition {
	switch {
	case op.NeedsReview:
		return UncertainDisp
	case op.Final():
		return Settled
	case unsent > 0 && op.IntentAt == unsent && op.Fence == fence && op.Sends == 1:
		return firstDisposition(op)
	}
	_, d := again(op, fence, now)
	return d
}
