package recovery

import (
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

// What a resolver's answer is, and what it is not: anything odd settles nothing.
func TestParseAnswer(t *testing.T) {
	t.Parallel()
	pad := func(n int) string {
		return `{"finding":"not_found"` + strings.Repeat(" ", n-len(`{"finding":"not_found"}`)) + `}`
	}
	tests := []struct {
		answer  string
		finding execution.Finding
		outcome execution.Outcome
		fenced  bool
	}{
		{`{"finding":"found"}`, execution.Found, execution.OutcomeSucceeded, false},
		{`{"finding":"found","count":1,"provider_ref":null,"reason":null}`, execution.Found, execution.OutcomeSucceeded, false},
		{`{"finding":"found","outcome":"rejected","fenced":true}`, execution.Found, execution.OutcomeRejected, false},
		{`{"finding":"found","outcome":"in_progress"}`, execution.InProgress, "", false},
		{`{"finding":"found","outcome":"not_executed"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","outcome":"unknown"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","outcome":7}`, execution.QueryFailed, "", false},
		{`{"finding":"found","outcome":""}`, execution.QueryFailed, "", false},
		{`{"finding":"found","count":0}`, execution.QueryFailed, "", false},
		{`{"finding":"not_found","count":2,"fenced":true}`, execution.QueryFailed, "", false},
		{`{"finding":"several","count":0}`, execution.Several, "", false},
		{`{"finding":"found","count":-1}`, execution.QueryFailed, "", false},
		{`{"finding":"found","count":1.5}`, execution.QueryFailed, "", false},
		{`{"finding":"found","provider_ref":7}`, execution.QueryFailed, "", false},
		{`{"finding":"found","provider_ref":"` + strings.Repeat("p", 1024) + `"}`, execution.Found, execution.OutcomeSucceeded, false},
		{`{"finding":"found","provider_ref":"` + strings.Repeat("p", 1025) + `"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","reason":"a\nb"}`, execution.QueryFailed, "", false},
		{`{"finding":"not_found","fenced":true}`, execution.NotFoundFinding, "", true},
		{`{"finding":"not_found","fenced":"yes"}`, execution.QueryFailed, "", false},
		{`{"finding":"not_found","count":0,"outcome":""}`, execution.NotFoundFinding, "", false},
		{`{"finding":"not_found","outcome":"succeeded"}`, execution.QueryFailed, "", false},
		{`{"finding":"not_found","outcome":null}`, execution.NotFoundFinding, "", false},
		{`{"finding":"in_progress","fenced":true}`, execution.InProgress, "", false},
		{`{"finding":"several","count":2}`, execution.Several, "", false},
		{`{"finding":"query_failed"}`, execution.QueryFailed, "", false},
		{`{"finding":"rejected_duplicate"}`, execution.RejectedDuplicate, "", false},
		{`{"finding":"decided","outcome":"succeeded"}`, execution.QueryFailed, "", false},
		{`{"finding":"decided"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","operation":"op","attempt":3,"provider_key":"pk","execution":"e","tenant":"t"}`, execution.Found, execution.OutcomeSucceeded, false},
		{`{"finding":"found","operation":"other"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","operation":null}`, execution.QueryFailed, "", false},
		{`{"finding":"not_found","fenced":true,"attempt":2}`, execution.QueryFailed, "", false},
		{`{"finding":"found","attempt":"3"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","provider_key":"pk2"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","execution":"e2"}`, execution.QueryFailed, "", false},
		{`{"finding":"found","tenant":"t2"}`, execution.QueryFailed, "", false},
		{`{}`, execution.QueryFailed, "", false},
		{`[]`, execution.QueryFailed, "", false},
		{``, execution.QueryFailed, "", false},
		{pad(maxAnswer), execution.NotFoundFinding, "", false},
		{pad(maxAnswer + 1), execution.QueryFailed, "", false},
	}
	for _, tt := range tests {
		ev, why := parseAnswer([]byte(tt.answer), Question{Tenant: "t", Execution: "e", Operation: "op", Attempt: 3, ProviderKey: "pk"})
		if ev.Finding != tt.finding || ev.Outcome != tt.outcome || ev.Fenced != tt.fenced || (why == "") == (tt.finding == execution.QueryFailed) && tt.answer != `{"finding":"query_failed"}` {
			t.Errorf("%.80s: %+v %q", tt.answer, ev, why)
		}
	}
}

// What a child's end is for its parent's operation, also once it is archived;
// one that has not ended is nothing.
func TestChildOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status, before execution.Status
		want           execution.Outcome
	}{
		{execution.StatusCompleted, "", execution.OutcomeSucceeded}, {execution.StatusFailed, "", execution.OutcomeFailed}, {execution.StatusCancelled, "", execution.OutcomeFailed},
		{execution.StatusArchived, execution.StatusCompleted, execution.OutcomeSucceeded}, {execution.StatusArchived, execution.StatusFailed, execution.OutcomeFailed},
		{execution.StatusRunning, execution.StatusCompleted, ""}, {execution.StatusMoved, "", ""}, {execution.StatusHalted, "", ""}, {"dreaming", "", ""},
	} {
		o, _, ended := childOutcome(&execution.State{Status: tt.status, Before: tt.before})
		if o != tt.want || ended != (tt.want != "") {
			t.Errorf("%s before %s: %q %v", tt.status, tt.before, o, ended)
		}
	}
	// One that has not ended, or is nobody's child, tells nobody: there is no ledger here.
	s := &Service{}
	for _, st := range []*execution.State{{Status: execution.StatusRunning, Parent: &execution.Parent{Execution: "p"}}, {Status: execution.StatusCompleted}} {
		if err := s.ChildEnded(t.Context(), st); err != nil {
			t.Error(err)
		}
	}
}

// Under whose name a child may have been made.
func TestBearers(t *testing.T) {
	t.Parallel()
	own, from, root := execution.Ref{Tenant: "t", Execution: "e", Generation: 3}, execution.Ref{Tenant: "t", Execution: "p", Generation: 2}, execution.Ref{Tenant: "t", Execution: "r", Generation: 1}
	fork := func(carry bool) *execution.ForkPoint {
		return &execution.ForkPoint{Execution: "p", Generation: 2, Carry: carry}
	}
	for _, tt := range []struct {
		st   execution.State
		want []execution.Ref
	}{
		{execution.State{Ref: own, IdentityRoot: own}, []execution.Ref{own}}, {execution.State{Ref: own, IdentityRoot: root, ForkedFrom: fork(true)}, []execution.Ref{own, from, root}},
		{execution.State{Ref: own, IdentityRoot: from, ForkedFrom: fork(true)}, []execution.Ref{own, from}}, {execution.State{Ref: own, IdentityRoot: own, ForkedFrom: fork(false)}, []execution.Ref{own}},
	} {
		got := bearers(&tt.st)
		if len(got) != len(tt.want) {
			t.Fatalf("%v, want %v", got, tt.want)
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%v, want %v", got, tt.want)
			}
		}
	}
}

// Whose turn it is to be asked about: nobody may take an open operation for
// certain while nobody owns the execution.
func TestUncertainToWhom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		owner       string
		fence, mine int64
		want        bool
	}{{"w", 5, 5, false}, {"w", 6, 5, true}, {"", 5, 5, true}, {"", 0, 0, false}} {
		if got := uncertain(&execution.State{Owner: tt.owner, Fence: tt.fence}, &execution.Operation{Fence: tt.mine}, 1); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// The next question comes right when a not_found begins to prove something, if
// that is sooner.
func TestNextCheck(t *testing.T) {
	t.Parallel()
	s := &Service{}
	const now = int64(1_700_000_000_000)
	plain := s.nextCheck(&execution.Operation{Checks: 20}, now)
	if plain <= now {
		t.Fatal(plain)
	}
	proof := validation.Milliseconds()
	for name, tt := range map[string]struct {
		intent int64
		want   int64
	}{
		"soon":           {now - proof - 1000 + 1, now + 1},
		"this moment":    {now - proof - 1000, plain},
		"past":           {now - proof - 9000, plain},
		"after the next": {plain - proof, plain},
	} {
		if got := s.nextCheck(&execution.Operation{Checks: 20, ValidSeconds: 1, Intent: tt.intent}, now); got != tt.want {
			t.Errorf("%s: in %d ms, want %d", name, got-now, tt.want-now)
		}
	}
}
