package recovery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
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

// What an operation's own protection is good for, and when a parked execution
// is looked at again.
func TestGoesAgain(t *testing.T) {
	t.Parallel()
	same := execution.Operation{OnUncertain: execution.SameKey, DedupSeconds: 3600, KeySince: 1000}
	for _, tt := range []struct {
		op   execution.Operation
		now  int64
		want bool
	}{{execution.Operation{OnUncertain: execution.Always}, 5, true}, {execution.Operation{OnUncertain: execution.Ask, DedupSeconds: 3600, KeySince: 1000}, 5000, false},
		{same, same.RepeatBy() - 1, true}, {same, same.RepeatBy(), false}, {execution.Operation{OnUncertain: execution.Close}, 5, false}} {
		if goesAgain(&tt.op, tt.now) != tt.want {
			t.Errorf("%+v at %d: %v", tt.op, tt.now, !tt.want)
		}
	}
}

func TestNextLook(t *testing.T) {
	t.Parallel()
	ops := func(list ...execution.Operation) *execution.State {
		st := &execution.State{Operations: map[execution.OperationID]*execution.Operation{}}
		for i := range list {
			st.Operations[execution.OperationID(rune('a'+i))] = &list[i]
		}
		return st
	}
	for name, tt := range map[string]struct {
		st   *execution.State
		want int64
	}{
		"nothing": {ops(), 0}, "never": {ops(execution.Operation{}), 0}, "the sooner": {ops(execution.Operation{NextCheck: 7}, execution.Operation{NextCheck: 5}, execution.Operation{}), 5},
		"not one that is settled":    {ops(execution.Operation{NextCheck: 5, Outcome: execution.OutcomeFailed}, execution.Operation{NextCheck: 7}), 7},
		"nor one that waits for man": {ops(execution.Operation{NextCheck: 5, NeedsReview: true}, execution.Operation{NextCheck: 7}), 7},
	} {
		if got := nextLook(tt.st); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// Why nobody can go on: every open operation but those that are the owner's own,
// or protect themselves.
func TestStuck(t *testing.T) {
	t.Parallel()
	s := &Service{Journal: journal.New(journal.Options{Elapsed: func() time.Duration { return 0 }})}
	op := func(f func(op *execution.Operation)) *execution.Operation {
		o := &execution.Operation{ID: "a", Attempt: 1, Fence: 5, OnUncertain: execution.Ask}
		f(o)
		return o
	}
	none := func(*execution.Operation) {}
	review := func(o *execution.Operation) { o.NeedsReview, o.LastFinding = true, execution.Several }
	for name, tt := range map[string]struct {
		owner string
		fence int64
		op    *execution.Operation
		code  string
		text  string
	}{
		"nobody's":                  {"", 5, op(none), "uncertain", "nobody can be asked"},
		"the owner's":               {"w", 5, op(none), "", ""},
		"the owner's, under review": {"w", 5, op(review), "", ""},
		"an earlier owner's":        {"w", 6, op(none), "uncertain", "nobody can be asked"},
		"never claimed":             {"", 0, op(func(o *execution.Operation) { o.Fence = 0 }), "", ""},
		"under review":              {"", 5, op(review), "needs_review", "several"},
		"always, under review":      {"", 5, op(func(o *execution.Operation) { review(o); o.OnUncertain = execution.Always }), "needs_review", "several"},
		"always":                    {"", 5, op(func(o *execution.Operation) { o.OnUncertain = execution.Always }), "", ""},
		"asked":                     {"", 5, op(func(o *execution.Operation) { o.LastFinding = execution.QueryFailed }), "uncertain", "query_failed: no answer"},
	} {
		st := &execution.State{Owner: tt.owner, Fence: tt.fence, Open: 1, Operations: map[execution.OperationID]*execution.Operation{"a": tt.op}}
		var checks []execution.Check
		if name == "asked" {
			checks = []execution.Check{{Operation: "b", Detail: "another"}, {Operation: "a"}, {Operation: "a", Detail: "no answer"}}
		}
		got := s.stuck(&journal.Handle{State: st}, checks)
		if len(got) != min(len(tt.code), 1) || len(got) == 1 && (got[0].Code != tt.code || got[0].Detail != tt.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	many := &execution.State{Fence: 5, Open: maxReasons + 1, Operations: map[execution.OperationID]*execution.Operation{}}
	for i := range maxReasons + 1 {
		many.Operations[execution.OperationID(rune('a'+i))] = op(none)
	}
	if got := s.stuck(&journal.Handle{State: many}, nil); len(got) != maxReasons {
		t.Errorf("%d reasons", len(got))
	}
}

// Which records of the stream tell that something may be due.
func TestRings(t *testing.T) {
	t.Parallel()
	const pk, head = `"pk":{"S":"bank#e"}`, `"sk":{"S":"head"}`
	rec := func(name, keys, more string) string {
		return `{"eventName":"` + name + `","dynamodb":{"SequenceNumber":"7","Keys":{` + keys + `}` + more + `}}`
	}
	for what, tt := range map[string]struct {
		raw       string
		ok, rings bool
	}{
		"a timer":                  {rec("REMOVE", pk+`,"sk":{"S":"timer#lease"}`, ""), true, true},
		"a wake-up":                {rec("REMOVE", pk+`,"sk":{"S":"timer#wake"}`, ""), true, true},
		"a reconcile timer":        {rec("REMOVE", pk+`,"sk":{"S":"timer#reconcile"}`, ""), true, true},
		"retention's timer":        {rec("REMOVE", pk+`,"sk":{"S":"timer#retention"}`, ""), true, false},
		"a timer that is set":      {rec("INSERT", pk+`,"sk":{"S":"timer#lease"}`, ""), true, false},
		"an entry":                 {rec("INSERT", pk+`,"sk":{"S":"j#00000000000000000001"}`, ""), true, false},
		"a head":                   {rec("MODIFY", pk+","+head, ""), true, true},
		"a head that goes":         {rec("REMOVE", pk+","+head, ""), true, false},
		"a head with nothing due":  {rec("MODIFY", pk+","+head, `,"NewImage":{"fence":{"N":"1"}}`), true, false},
		"a head that is due":       {rec("MODIFY", pk+","+head, `,"ApproximateCreationDateTime":1700000000,"NewImage":{"due":{"N":"1700000002000"}}`), true, true},
		"a head that is due later": {rec("MODIFY", pk+","+head, `,"ApproximateCreationDateTime":1700000000,"NewImage":{"due":{"N":"1700000002001"}}`), true, false},
		"the same in milliseconds": {rec("MODIFY", pk+","+head, `,"ApproximateCreationDateTime":1700000000000,"NewImage":{"due":{"N":"1700000002001"}}`), true, false},
		"due, nobody knows when":   {rec("MODIFY", pk+","+head, `,"NewImage":{"due":{"N":"1700000002001"}}`), true, true},
		"a registry row":           {rec("INSERT", `"pk":{"S":"bank#~1"},`+head, ""), true, false},
		"no key":                   {rec("MODIFY", pk, ""), false, false},
		"no partition":             {rec("MODIFY", head, ""), false, false},
		"no name":                  {`{"dynamodb":{"SequenceNumber":"7","Keys":{` + pk + `,` + head + `}}}`, false, false},
		"no number":                {`{"eventName":"MODIFY","dynamodb":{"Keys":{` + pk + `,` + head + `}}}`, false, false},
		"no JSON":                  {`{`, false, false},
	} {
		r, ok := parseRecord(json.RawMessage(tt.raw))
		if ok != tt.ok {
			t.Errorf("%s: parsed %v", what, ok)
		}
		if !ok {
			continue
		}
		if _, _, rings := r.rings(); rings != tt.rings {
			t.Errorf("%s: rings %v", what, rings)
		}
	}
}

// A time that grows up to its most.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int64{-1: 1000, 0: 1000, 1: 2000, 3: 8000, 4: 10_000, 15: 10_000, 16: 10_000, 1 << 40: 10_000} {
		if got := backoff(n, time.Second, 10*time.Second); got != want {
			t.Errorf("%d: %d ms, want %d", n, got, want)
		}
	}
}
