package execution

import (
	"maps"
	"slices"
)

// edit gives a copy of an operation that may be changed and puts it in place;
// nil when the fold does not have it.
func (f *Folder) edit(id OperationID) *Operation {
	op := f.s.Operations[id]
	if op == nil {
		return nil
	}
	c := *op
	f.put(&c)
	return &c
}

func (f *Folder) put(op *Operation) {
	if !f.own.ops {
		f.s.Operations = maps.Clone(f.s.Operations)
		if f.s.Operations == nil {
			f.s.Operations = map[OperationID]*Operation{}
		}
		f.own.ops = true
	}
	f.s.Operations[op.ID] = op
}

// settle takes in a final outcome. A second one of a settled attempt is a
// contradiction: the first stands, unless a person decided otherwise.
func (f *Folder) settle(t *Settlement, e *Entry) {
	op := f.edit(t.Operation)
	if op == nil {
		return
	}
	if t.Attempt != op.Attempt || op.Final() && t.Source != FromVerdict {
		op.Contradictions = append(slices.Clip(op.Contradictions), Contradiction{Attempt: t.Attempt, Outcome: t.Outcome, ProviderRef: t.ProviderRef, Source: t.Source, At: e.At})
		return
	}
	if !op.Final() {
		f.s.Open--
		if !f.own.settled {
			f.s.Settled = slices.Clone(f.s.Settled)
			f.own.settled = true
		}
		f.s.Settled = append(f.s.Settled, op.ID)
	}
	op.Outcome, op.Reason, op.ProviderRef, op.Result, op.ResultRef = t.Outcome, t.Reason, t.ProviderRef, t.Result, t.ResultRef
	op.Source, op.Verdict, op.SettledAt = t.Source, t.Verdict, e.Version
	op.NeedsReview, op.NextCheck = false, 0
}

// evidence takes in what settles nothing.
func (f *Folder) evidence(ev *Evidence) {
	op := f.edit(ev.Operation)
	if op == nil || ev.Attempt != op.Attempt || op.Final() {
		return
	}
	op.LastFinding = ev.Finding
	switch {
	case ev.Finding == Several, ev.Finding == Found && ev.Outcome.Final() && ev.Outcome != OutcomeRejected:
		op.NeedsReview = true // several effects, or outcomes that contradict each other
		c := Contradiction{Attempt: ev.Attempt, Outcome: ev.Outcome, ProviderRef: ev.ProviderRef, Source: ev.Source, At: ev.AskedAt}
		if ev.Outcome.Final() && !slices.Contains(op.Contradictions, c) {
			op.Contradictions = append(slices.Clip(op.Contradictions), c)
		}
	case ev.Finding == RejectedDuplicate, ev.Outcome == OutcomeUnknown, ev.Outcome == OutcomeRejected:
		op.SawUnknown = true
	}
}

func (f *Folder) checked(c *Check) {
	if op := f.edit(c.Operation); op != nil && !op.Final() {
		op.Checks++
		op.NextCheck = c.Next
		op.LastFinding = c.Finding
	}
}

func (f *Folder) declare(d *Declared, e *Entry) {
	s := &f.s
	if d.Operation != nil {
		op := *d.Operation
		f.put(&op)
		s.OpSeq = max(s.OpSeq, op.Seq)
		s.Open++
		return
	}
	op := f.edit(d.ID)
	if op == nil {
		return
	}
	op.Fence = e.Fence
	if d.Attempt == op.Attempt {
		op.Sends++
		return
	}
	op.Past = append(slices.Clip(op.Past), PastAttempt{Attempt: op.Attempt, Outcome: op.Outcome, Reason: op.Reason, Source: op.Source})
	switch op.Outcome {
	case OutcomeRejected:
		op.Rejections++
		op.KeySince = e.At
	case OutcomeNotExecuted:
		// Nothing of the key arrived and nothing more can: its window begins anew.
		op.KeySince = e.At
	}
	*op = Operation{ID: op.ID, Seq: op.Seq, Task: op.Task, Name: op.Name, OldNames: op.OldNames, Key: op.Key, Args: op.Args, ArgsDigest: op.ArgsDigest,
		OnUncertain: op.OnUncertain, DedupSeconds: op.DedupSeconds, ValidSeconds: op.ValidSeconds, DeadlineSeconds: op.DeadlineSeconds, Resolver: op.Resolver,
		Attempt: d.Attempt, Rejections: op.Rejections, Sends: 1, Intent: e.At, IntentAt: e.Version, Fence: e.Fence, KeySince: op.KeySince,
		Contradictions: op.Contradictions, Past: op.Past}
	s.Open++
	s.Settled = slices.DeleteFunc(slices.Clone(s.Settled), func(id OperationID) bool { return id == op.ID })
	f.own.settled = true
}

func (f *Folder) migrate(b *Body) {
	if b.Schema == nil {
		return
	}
	f.s.Schema = *b.Schema
	for _, r := range b.Renamed {
		for id, op := range f.s.Operations {
			if op.Name == r.From {
				c := f.edit(id)
				c.Name, c.OldNames = r.To, append(slices.Clip(op.OldNames), r.From)
			}
		}
	}
}
