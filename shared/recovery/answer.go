package recovery

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// maxAnswer bounds what a resolver may say.
const maxAnswer = 1 << 20

// parseAnswer reads a resolver's answer about an attempt as evidence. why is ""
// when it is one; otherwise the finding is query_failed, which settles nothing,
// and why says in constant words what was wrong. It never fails and never
// panics, whatever the bytes are.
func parseAnswer(b []byte, q Question) (ev execution.Evidence, why string) {
	ev = execution.Evidence{Operation: q.Operation, Attempt: q.Attempt, Source: execution.FromResolver}
	failed := func(why string) (execution.Evidence, string) {
		return execution.Evidence{Operation: q.Operation, Attempt: q.Attempt, Source: execution.FromResolver, Finding: execution.QueryFailed}, why
	}
	if len(b) > maxAnswer {
		return failed("the answer is too large")
	}
	v, err := jsonx.Parse(b)
	if err != nil || v.Kind() != jsonx.Object {
		return failed("the answer is no JSON object")
	}
	if name := aboutAnother(v, q); name != "" {
		return failed("the answer is about another " + name)
	}
	finding, _ := v.Get("finding").Text()
	ev.Finding = execution.Finding(finding)
	for _, f := range []struct {
		name string
		to   *string
		max  int
	}{{"provider_ref", &ev.ProviderRef, 1024}, {"reason", &ev.Reason, 1024}} {
		m := v.Get(f.name)
		if m == nil || m.Kind() == jsonx.Null {
			continue
		}
		text, ok := m.Text()
		if !ok || execution.CheckNote(f.name, text, f.max) != nil {
			return failed("the answer's " + f.name + " is no short text")
		}
		*f.to = text
	}
	if m := v.Get("count"); m != nil {
		n, ok := m.IsInt64()
		if !ok || n < 0 {
			return failed("the answer's count is no number of effects")
		}
		ev.Count = n
	}
	if m := v.Get("fenced"); m != nil {
		said, ok := m.Bool()
		if !ok {
			return failed("the answer's fenced is neither true nor false")
		}
		ev.Fenced = said
	}
	if v.Get("count") != nil && !execution.Counted(ev.Finding, ev.Count) {
		return failed("the answer's count contradicts its finding")
	}
	outcome, hasOutcome := v.Get("outcome").Text()
	switch ev.Finding {
	case execution.Found:
		ev.Outcome = execution.OutcomeSucceeded
		if v.Get("outcome") != nil {
			ev.Outcome = execution.Outcome(outcome)
		}
		switch ev.Outcome {
		case execution.OutcomeSucceeded, execution.OutcomeFailed, execution.OutcomeRejected:
		case execution.OutcomeInProgress:
			ev.Finding, ev.Outcome = execution.InProgress, ""
		default:
			return failed("the answer's outcome is none that can be found")
		}
		ev.Result = v.Get("result")
	case execution.NotFoundFinding, execution.InProgress, execution.Several, execution.QueryFailed, execution.RejectedDuplicate:
		if hasOutcome && outcome != "" {
			return failed("the answer has an outcome and did not find one")
		}
	default:
		// Also `decided`: a verdict is a person's, and comes by reconcile.
		return failed("the answer's finding is none of the known ones")
	}
	if ev.Finding != execution.NotFoundFinding {
		ev.Fenced = false
	}
	return ev, ""
}

// aboutAnother names what an answer repeats of its question and has otherwise.
func aboutAnother(v *jsonx.Value, q Question) string {
	for _, f := range []struct{ name, want string }{{"operation", string(q.Operation)}, {"execution", string(q.Execution)}, {"tenant", string(q.Tenant)}, {"provider_key", q.ProviderKey}} {
		if m := v.Get(f.name); m != nil {
			if got, _ := m.Text(); got != f.want {
				return f.name
			}
		}
	}
	if m := v.Get("attempt"); m != nil {
		if n, ok := m.IsInt64(); !ok || n != int64(q.Attempt) {
			return "attempt"
		}
	}
	return ""
}

// askedWrong says in constant words why there was no answer.
func askedWrong(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the resolver did not answer in time"
	}
	return "the resolver gave no answer"
}
