package recovery

import (
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

// A round that says nothing new writes nothing; what is new in it is written.
func TestLearned(t *testing.T) {
	t.Parallel()
	base := execution.Operation{ID: "a", Attempt: 1, LastFinding: execution.QueryFailed}
	changed := func(f func(op *execution.Operation)) *execution.Operation { op := base; f(&op); return &op }
	for name, tt := range map[string]struct {
		op      *execution.Operation
		outcome bool
		checked bool
		quiet   bool
		want    bool
	}{
		"nothing":               {op: &base},
		"the same said again":   {op: changed(func(op *execution.Operation) { op.Checks++ })},
		"an outcome":            {op: &base, outcome: true, want: true},
		"a question":            {op: &base, checked: true, want: true},
		"a question, in quiet":  {op: &base, checked: true, quiet: true},
		"an outcome, in quiet":  {op: &base, outcome: true, quiet: true, want: true},
		"review":                {op: changed(func(op *execution.Operation) { op.NeedsReview = true }), quiet: true, want: true},
		"unknown":               {op: changed(func(op *execution.Operation) { op.SawUnknown = true }), quiet: true, want: true},
		"another finding":       {op: changed(func(op *execution.Operation) { op.LastFinding = execution.InProgress }), quiet: true, want: true},
		"one that is new there": {op: &execution.Operation{ID: "b", SawUnknown: true}},
	} {
		st := &execution.State{Operations: map[execution.OperationID]*execution.Operation{"a": &base}}
		p := &execution.Proposal{Entry: &execution.Entry{}, State: &execution.State{Operations: map[execution.OperationID]*execution.Operation{tt.op.ID: tt.op}}}
		if tt.outcome {
			p.Entry.Body.Outcomes = []execution.Settlement{{}}
		}
		if tt.checked {
			p.Entry.Body.Checked = []execution.Check{{}}
		}
		if learned(st, p, tt.quiet) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// What a waiting execution is woken by: an outcome that it waits for.
func TestAwaited(t *testing.T) {
	t.Parallel()
	wait := &execution.Wait{Operations: []execution.OperationID{"a", "b"}}
	of := func(ids ...execution.OperationID) (ts []execution.Settlement) {
		for _, id := range ids {
			ts = append(ts, execution.Settlement{Operation: id})
		}
		return ts
	}
	for name, tt := range map[string]struct {
		w    *execution.Wait
		ts   []execution.Settlement
		want bool
	}{"no wait": {nil, of("a"), false}, "nothing": {wait, nil, false}, "another": {wait, of("c"), false}, "one of them": {wait, of("c", "b"), true}} {
		if awaited(&execution.State{Wait: tt.w}, tt.ts) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// What a slot holds takes the place of what was to be proved about its own
// operation, and of nothing else.
func TestConcede(t *testing.T) {
	t.Parallel()
	said := func(op execution.OperationID, f execution.Finding, o execution.Outcome) execution.Evidence {
		return execution.Evidence{Operation: op, Attempt: 1, Finding: f, Outcome: o}
	}
	for name, tt := range map[string]struct {
		evidence  []execution.Evidence
		found     execution.Settlement
		undecided bool
		want      []execution.Evidence
	}{
		"proof": {[]execution.Evidence{said("a", execution.NotFoundFinding, ""), said("b", execution.NotFoundFinding, "")}, execution.Settlement{Operation: "a", Attempt: 1, Outcome: execution.OutcomeSucceeded}, false,
			[]execution.Evidence{said("b", execution.NotFoundFinding, ""), said("a", execution.Found, execution.OutcomeSucceeded)}},
		"a closed slot": {[]execution.Evidence{said("a", execution.Found, execution.OutcomeNotExecuted), said("a", execution.Found, execution.OutcomeFailed)}, execution.Settlement{Operation: "a", Attempt: 1, Outcome: execution.OutcomeSucceeded}, false,
			[]execution.Evidence{said("a", execution.Found, execution.OutcomeFailed), said("a", execution.Found, execution.OutcomeSucceeded)}},
		"let nothing in": {[]execution.Evidence{said("a", execution.NotFoundFinding, ""), said("a", execution.InProgress, "")}, execution.Settlement{Operation: "a", Attempt: 1}, false,
			[]execution.Evidence{said("a", execution.InProgress, "")}},
		"a verdict": {[]execution.Evidence{said("a", execution.Decided, execution.OutcomeAbandoned)}, execution.Settlement{Operation: "a", Attempt: 1, Outcome: execution.OutcomeSucceeded}, false,
			[]execution.Evidence{said("a", execution.Found, execution.OutcomeSucceeded)}},
		"a verdict over what decides nothing": {[]execution.Evidence{said("b", execution.Decided, execution.OutcomeAbandoned), said("a", execution.Decided, execution.OutcomeAbandoned)}, execution.Settlement{Operation: "a", Attempt: 1, Outcome: execution.OutcomeRejected}, true,
			[]execution.Evidence{said("b", execution.Decided, execution.OutcomeAbandoned), said("a", execution.Decided, execution.OutcomeRejected)}},
		"no verdict over what decides nothing": {[]execution.Evidence{said("a", execution.NotFoundFinding, "")}, execution.Settlement{Operation: "a", Attempt: 1, Outcome: execution.OutcomeRejected}, true,
			[]execution.Evidence{said("a", execution.Found, execution.OutcomeRejected)}},
	} {
		rd := &round{evidence: tt.evidence}
		rd.concede(&slotsWon{[]execution.Settlement{tt.found}, map[execution.OperationID]bool{"a": tt.undecided}})
		if len(rd.evidence) != len(tt.want) {
			t.Errorf("%s: %+v", name, rd.evidence)
			continue
		}
		for i, ev := range rd.evidence {
			if ev.Operation != tt.want[i].Operation || ev.Finding != tt.want[i].Finding || ev.Outcome != tt.want[i].Outcome {
				t.Errorf("%s: %+v, want %+v", name, ev, tt.want[i])
			}
		}
	}
}
