package execution

import (
	"testing"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	base := Identify(testRef, "t", "pay", "", value(`{"a":1,"b":[1,2]}`))
	same := []string{`{"b":[1,2],"a":1}`, `{ "a" : 1.0 , "b" : [1e0, 20e-1] }`, `{"\u0061":1,"b":[1,2]}`}
	for _, a := range same {
		if got := Identify(testRef, "t", "pay", "", value(a)); got != base {
			t.Errorf("%s: another identity", a)
		}
	}
	other := map[string]OperationID{
		"array order": Identify(testRef, "t", "pay", "", value(`{"a":1,"b":[2,1]}`)),
		"value":       Identify(testRef, "t", "pay", "", value(`{"a":"1","b":[1,2]}`)),
		"name":        Identify(testRef, "t", "pay2", "", value(`{"a":1,"b":[1,2]}`)),
		"task":        Identify(testRef, "u", "pay", "", value(`{"a":1,"b":[1,2]}`)),
		"generation":  Identify(Ref{testRef.Tenant, testRef.Execution, testRef.Generation + 1}, "t", "pay", "", value(`{"a":1,"b":[1,2]}`)),
		"tenant":      Identify(Ref{"acme2", testRef.Execution, testRef.Generation}, "t", "pay", "", value(`{"a":1,"b":[1,2]}`)),
		"key":         Identify(testRef, "t", "pay", "k", value(`{"a":1,"b":[1,2]}`)),
		"no args":     Identify(testRef, "t", "pay", "", nil),
		"boundaries":  Identify(testRef, "tp", "ay", "", value(`{"a":1,"b":[1,2]}`)),
	}
	seen := map[OperationID]string{base: "base"}
	for what, id := range other {
		if was, twice := seen[id]; twice {
			t.Errorf("%s has the identity of %s", what, was)
		}
		seen[id] = what
		if len(id) != 32 {
			t.Errorf("%s: %q", what, id)
		}
	}
	if Identify(testRef, "t", "a", "k", value(`1`)) != Identify(testRef, "t", "b", "k", value(`2`)) {
		t.Error("a key is the whole identity in its task")
	}
	if Identify(testRef, "t", "a", "", nil) != Identify(testRef, "t", "a", "", value(`null`)) {
		t.Error("no arguments and null are one call")
	}
}

func TestProviderKeyChangesOnlyAfterARejection(t *testing.T) {
	t.Parallel()
	x := own(t)
	d := Declaration{Name: "pay", Args: value(`1`)}
	op := x.declareOp(d).Operation
	key := op.ProviderKey(x.s.IdentityRoot)
	x.settle(op.ID, OutcomeNotExecuted)
	if got := x.declareOp(d).Operation; got.Attempt != 2 || got.ProviderKey(x.s.IdentityRoot) != key {
		t.Errorf("attempt %d has another key after not_executed", got.Attempt)
	}
	x.do(x.stepWith(func(c *Change) { c.Outcomes = []Settlement{{Operation: op.ID, Attempt: 2, Outcome: OutcomeRejected}} }))
	got := x.declareOp(d).Operation
	if got.Attempt != 3 || got.Rejections != 1 || got.ProviderKey(x.s.IdentityRoot) == key || got.KeySince != got.Intent {
		t.Errorf("after a rejection: %+v", got)
	}
}

// Declared again: standing of the operation x on_uncertain.
func TestRedeclare(t *testing.T) {
	t.Parallel()
	type want struct {
		disp    Disposition
		attempt int
	}
	ways := []OnUncertain{"", Ask, Close, SameKey, Always}
	first := func(u OnUncertain) Disposition {
		if u == Close {
			return StartFirst
		}
		return Go
	}
	cases := []struct {
		name string
		do   func(x *script, op *Operation)
		want func(u OnUncertain) want
	}{
		{"open, same owner", func(x *script, op *Operation) {}, func(u OnUncertain) want {
			switch u {
			case Close:
				return want{StartFirst, 1}
			case SameKey, Always:
				return want{Go, 1}
			}
			return want{UncertainDisp, 1}
		}},
		{"open, next owner", func(x *script, op *Operation) { x.now += 100_000; x.do(claim("w2")) }, func(u OnUncertain) want {
			if u == SameKey || u == Always {
				return want{Go, 1}
			}
			return want{UncertainDisp, 1}
		}},
		{"open, past the dedup window", func(x *script, op *Operation) { x.now += 3600_000 - NetworkDelay.Milliseconds() }, func(u OnUncertain) want {
			switch u {
			case Close:
				return want{StartFirst, 1}
			case Always:
				return want{Go, 1}
			}
			return want{UncertainDisp, 1}
		}},
		{"reported unknown", func(x *script, op *Operation) { x.settle(op.ID, OutcomeUnknown) }, func(u OnUncertain) want {
			if u == SameKey || u == Always {
				return want{Go, 1}
			}
			return want{UncertainDisp, 1}
		}},
		{"needs review", func(x *script, op *Operation) {
			x.do(x.stepWith(func(c *Change) {
				c.Kind, c.Evidence = KindReconciled, []Evidence{{Operation: op.ID, Finding: Several, Count: 2}}
			}))
		}, func(u OnUncertain) want { return want{UncertainDisp, 1} }},
		{"succeeded", func(x *script, op *Operation) { x.settle(op.ID, OutcomeSucceeded) }, func(u OnUncertain) want { return want{Settled, 1} }},
		{"failed", func(x *script, op *Operation) { x.settle(op.ID, OutcomeFailed) }, func(u OnUncertain) want { return want{Settled, 1} }},
		{"abandoned", func(x *script, op *Operation) { x.settle(op.ID, OutcomeAbandoned) }, func(u OnUncertain) want { return want{Settled, 1} }},
		{"rejected", func(x *script, op *Operation) { x.settle(op.ID, OutcomeRejected) }, func(u OnUncertain) want { return want{first(u), 2} }},
		{"not executed", func(x *script, op *Operation) { x.settle(op.ID, OutcomeNotExecuted) }, func(u OnUncertain) want { return want{first(u), 2} }},
	}
	for _, u := range ways {
		for _, tt := range cases {
			x := own(t)
			d := Declaration{Name: "pay", Key: "k", Args: value(`{"n":1}`), OnUncertain: u}
			if u == SameKey {
				d.DedupSeconds = 3600
			}
			g := x.declareOp(d)
			if g.Disposition != first(u) || g.Operation.Attempt != 1 || x.s.Open != 1 {
				t.Fatalf("%s: first %s", u, g.Disposition)
			}
			tt.do(x, g.Operation)
			op, now := x.s.Operations[g.Operation.ID], x.now
			// A repeated request gives nothing that its own operation does not make harmless.
			rep := Replayed(op, x.s.Fence, now, false)
			got, w := x.declareOp(d), tt.want(u)
			if got.Disposition != w.disp || got.Operation.Attempt != w.attempt {
				t.Errorf("%q, %s: %s attempt %d, want %s attempt %d", u, tt.name, got.Disposition, got.Operation.Attempt, w.disp, w.attempt)
			}
			if op.Final() && rep != Settled || !op.Final() && rep == Go && u != SameKey && u != Always {
				t.Errorf("%q, %s: a repeat of the first request gets %s", u, tt.name, rep)
			}
			open := 0
			for _, o := range x.s.Operations {
				if !o.Final() {
					open++
				}
			}
			if open != x.s.Open || len(x.s.Settled) != len(x.s.Operations)-open {
				t.Errorf("%q, %s: %d open, counted %d; settled %v", u, tt.name, open, x.s.Open, x.s.Settled)
			}
			// Other arguments or another name under the same key: never, in any standing.
			bad := d
			bad.Args = value(`{"n":2}`)
			e := x.refuse(x.stepWith(func(c *Change) { c.Operations = []Declaration{bad} }), OperationMismatch)
			if e.Facts["field"] != "operations[0].args" || e.Facts["operation"] != string(op.ID) {
				t.Errorf("%q, %s: %v", u, tt.name, e.Facts)
			}
			bad = d
			bad.Name = "refund"
			if e := x.refuse(x.stepWith(func(c *Change) { c.Operations = []Declaration{bad} }), OperationMismatch); e.Facts["field"] != "operations[0].name" {
				t.Errorf("%q, %s: %v", u, tt.name, e.Facts)
			}
			good := d
			good.Args = value(`{"n":1.0}`) // by value
			x.declareOp(good)
		}
	}
}

// The first `go` was never given only where this process says so.
func TestReplayedDispositions(t *testing.T) {
	t.Parallel()
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay"}).Operation
	if d := Replayed(op, x.s.Fence, x.now, true); d != Go {
		t.Errorf("unsent: %s", d)
	}
	if d := Replayed(op, x.s.Fence, x.now, false); d != UncertainDisp {
		t.Errorf("sent: %s", d)
	}
	if d := Replayed(op, x.s.Fence+1, x.now, true); d != UncertainDisp {
		t.Errorf("unsent under an older fence: %s", d)
	}
	again := *op
	again.Sends = 2
	if d := Replayed(&again, x.s.Fence, x.now, true); d != UncertainDisp {
		t.Errorf("unsent, but given before: %s", d)
	}
}

func TestTwiceInOneRequest(t *testing.T) {
	t.Parallel()
	x := own(t)
	for _, u := range []OnUncertain{Ask, Always} {
		p := x.do(x.stepWith(func(c *Change) {
			c.Operations = []Declaration{{Name: "pay", Key: string(u), OnUncertain: u}, {Name: "pay", Key: string(u), OnUncertain: u}}
		}))
		want := UncertainDisp
		if u == Always {
			want = Go
		}
		if p.Given[0].Disposition != Go || p.Given[1].Disposition != want {
			t.Errorf("%s: %s, %s", u, p.Given[0].Disposition, p.Given[1].Disposition)
		}
	}
	if x.s.Open != 2 || x.s.OpSeq != 2 {
		t.Errorf("%d open, seq %d", x.s.Open, x.s.OpSeq)
	}
}

func TestOutcomesOfTheOwner(t *testing.T) {
	t.Parallel()
	x := own(t)
	d := Declaration{Name: "pay"}
	op := x.declareOp(d).Operation
	report := func(s Settlement) *Change { return x.stepWith(func(c *Change) { c.Outcomes = []Settlement{s} }) }
	x.refuse(report(Settlement{Operation: "nope", Outcome: OutcomeSucceeded}), InvalidRequest)
	x.refuse(report(Settlement{Operation: op.ID, Attempt: 2, Outcome: OutcomeSucceeded}), InvalidRequest)
	// Absence is proved or decided, never claimed; the ledger has proofs.
	for _, o := range []Outcome{OutcomeNotExecuted, OutcomeAbandoned} {
		x.refuse(report(Settlement{Operation: op.ID, Outcome: o}), InvalidRequest)
	}
	x.do(report(Settlement{Operation: op.ID, Outcome: OutcomeInProgress}))
	if x.s.Open != 1 || x.s.Operations[op.ID].SawUnknown {
		t.Errorf("in_progress changed something")
	}
	x.do(report(Settlement{Operation: op.ID, Outcome: OutcomeNotExecuted, Source: FromLedger}))
	x.declareOp(d)
	// The first attempt's effect is seen after all: a contradiction, nothing is unsettled.
	p := x.do(report(Settlement{Operation: op.ID, Attempt: 1, Outcome: OutcomeSucceeded, ProviderRef: "p1"}))
	got := x.s.Operations[op.ID]
	if p.Contradictions != 1 || len(got.Contradictions) != 1 || got.Contradictions[0].Attempt != 1 || got.Final() || got.Past[0].Outcome != OutcomeNotExecuted {
		t.Errorf("%+v", got)
	}
	p = x.do(report(Settlement{Operation: op.ID, Attempt: 1, Outcome: OutcomeSucceeded, ProviderRef: "p1"}))
	if p.Contradictions != 0 || len(x.s.Operations[op.ID].Contradictions) != 1 {
		t.Error("a contradiction was counted twice")
	}
	// Without an attempt the owner speaks of the current one.
	x.do(report(Settlement{Operation: op.ID, Outcome: OutcomeSucceeded, Result: value(`{"r":1}`)}))
	if got := x.s.Operations[op.ID]; got.Attempt != 2 || got.Outcome != OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
	p = x.do(report(Settlement{Operation: op.ID, Attempt: 2, Outcome: OutcomeSucceeded, Result: value(`{"r":1}`)}))
	if p.Contradictions != 0 {
		t.Error("the same again is no contradiction")
	}
	p = x.do(report(Settlement{Operation: op.ID, Attempt: 2, Outcome: OutcomeSucceeded, Result: value(`{"r":2}`)}))
	got = x.s.Operations[op.ID]
	if p.Contradictions != 1 || got.Result.String() != `{"r":1}` || got.Outcome != OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay", ValidSeconds: 600}).Operation
	x.do(&Change{Kind: KindParked, System: true, Parked: []Reason{{Code: "uncertain"}}})
	decide := func(o Outcome, f func(ev *Evidence)) *Change {
		ev := Evidence{Operation: op.ID, Finding: Decided, Outcome: o, Reason: "seen", Reference: "T-1", Actor: &Actor{Kind: "human", ID: "ann"}}
		if f != nil {
			f(&ev)
		}
		return &Change{Kind: KindVerdict, System: true, Evidence: []Evidence{ev}}
	}
	x.refuse(decide(OutcomeNotExecuted, nil), InvalidRequest) // it may still happen
	x.refuse(decide(OutcomeSucceeded, func(ev *Evidence) { ev.Attempt = 2 }), InvalidRequest)
	twice := decide(OutcomeSucceeded, nil)
	twice.Evidence = append(twice.Evidence, twice.Evidence[0])
	x.refuse(twice, InvalidRequest)
	p := x.do(decide(OutcomeNotExecuted, func(ev *Evidence) { ev.Force = true }))
	if len(p.Slots) != 1 || p.Slots[0].Outcome != OutcomeNotExecuted {
		t.Errorf("not_executed counts only when it stands in the slot: %v", p.Slots)
	}
	// Superseded by another; the way out of everything.
	p = x.do(decide(OutcomeSucceeded, nil))
	got := x.s.Operations[op.ID]
	if got.Outcome != OutcomeSucceeded || got.Verdict == nil || got.Verdict.Actor.ID != "ann" || got.Verdict.Reference != "T-1" || got.Source != FromVerdict || len(p.Slots) != 0 || x.s.Open != 0 {
		t.Errorf("%+v", got)
	}
	// Evidence does not unsettle it.
	p = x.do(&Change{Kind: KindReconciled, System: true, Evidence: []Evidence{{Operation: op.ID, Finding: Found, Outcome: OutcomeFailed, Source: FromVerdict}}})
	if p.Contradictions != 1 || x.s.Operations[op.ID].Outcome != OutcomeSucceeded {
		t.Errorf("%+v", x.s.Operations[op.ID])
	}
	// After send_by and the network delay no force is needed.
	y := own(t)
	yop := y.declareOp(Declaration{Name: "pay", ValidSeconds: 600}).Operation
	y.now = yop.SendBy() + NetworkDelay.Milliseconds() - 1
	late := decide(OutcomeNotExecuted, nil)
	late.Evidence[0].Operation = yop.ID
	y.refuse(late, InvalidRequest)
	y.now++
	y.do(late)
}

func TestEvidenceRefusals(t *testing.T) {
	t.Parallel()
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay"}).Operation
	try := func(ev Evidence) *Change {
		return x.stepWith(func(c *Change) { c.Kind, c.Evidence = KindReconciled, []Evidence{ev} })
	}
	for field, ev := range map[string]Evidence{
		"evidence[0].operation": {Operation: "nope", Finding: NotFoundFinding},
		"evidence[0].attempt":   {Operation: op.ID, Attempt: 2, Finding: NotFoundFinding},
		"evidence[0].outcome":   {Operation: op.ID, Finding: Found, Outcome: OutcomeNotExecuted, Source: FromCaller},
		"evidence[0].asked_at":  {Operation: op.ID, Finding: NotFoundFinding, AskedAt: x.now + 1},
	} {
		if e := x.refuse(try(ev), InvalidRequest); e.Facts["field"] != field {
			t.Errorf("%s: %v", field, e.Facts)
		}
	}
	// A change is not changed by being proposed: the attempt is filled in elsewhere.
	c := try(Evidence{Operation: op.ID, Finding: Found, Outcome: OutcomeSucceeded, Source: FromCaller})
	x.do(c)
	if c.Evidence[0].Attempt != 0 {
		t.Error("the change was changed")
	}
}

// Times: until when it may be sent, repeated, and from when it cannot come into
// being.
func TestOperationTimes(t *testing.T) {
	t.Parallel()
	const hour, delay = 3600_000, int64(300_000)
	tests := []struct {
		name                       string
		u                          OnUncertain
		valid, dedup               int64
		sendBy, repeatBy, possible int64 // relative to the intent; 0: none
	}{
		{"nothing declared", Ask, 0, 0, 0, 0, 0},
		{"always", Always, 0, 0, 0, 0, 0},
		{"valid", Ask, 600, 0, 600_000, 0, 600_000},
		{"dedup", Ask, 0, 3600, hour - delay, 0, hour},
		{"same_key", SameKey, 0, 3600, hour - delay, hour - delay, hour},
		{"same_key, window no longer than the delay", SameKey, 0, 300, 300_000, 0, 600_000},
		{"same_key, a second more", SameKey, 0, 301, 1_000, 1_000, 301_000},
		{"both, valid first", SameKey, 60, 3600, 60_000, hour - delay, 60_000},
		{"both, dedup first", SameKey, 7200, 3600, hour - delay, hour - delay, 2 * hour},
	}
	for _, tt := range tests {
		x := own(t)
		op := x.declareOp(Declaration{Name: "pay", OnUncertain: tt.u, ValidSeconds: tt.valid, DedupSeconds: tt.dedup}).Operation
		rel := func(at int64) int64 {
			if at == 0 {
				return 0
			}
			return at - op.Intent
		}
		if a, b, c := rel(op.SendBy()), rel(op.RepeatBy()), rel(op.ImpossibleAfter()); a != tt.sendBy || b != tt.repeatBy || c != tt.possible {
			t.Errorf("%s: %d %d %d, want %d %d %d", tt.name, a, b, c, tt.sendBy, tt.repeatBy, tt.possible)
		}
	}
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay", DeadlineSeconds: 60}).Operation
	if op.Uncertain(x.s.Fence, op.Intent+59_999) || !op.Uncertain(x.s.Fence, op.Intent+60_000) || !op.Uncertain(x.s.Fence+1, op.Intent) {
		t.Error("deadline or fence")
	}
	for _, st := range []struct {
		s    State
		now  int64
		want string
	}{{State{Owner: "w", Fence: op.Fence}, op.Intent, "declared"}, {State{Fence: op.Fence}, op.Intent, "uncertain"}, {State{Owner: "w", Fence: op.Fence}, op.Intent + 60_000, "uncertain"}} {
		if got := op.ViewStatus(&st.s, st.now); got != st.want {
			t.Errorf("%s, want %s", got, st.want)
		}
	}
}

// A migration renames operations; what was declared stays the same effect.
func TestRenamedOperations(t *testing.T) {
	t.Parallel()
	x := own(t)
	keyed := x.declareOp(Declaration{Name: "pay", Key: "k", Args: value(`1`)}).Operation
	plain := x.declareOp(Declaration{Name: "pay", Args: value(`2`)}).Operation
	x.settle(keyed.ID, OutcomeSucceeded)
	x.settle(plain.ID, OutcomeSucceeded)
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Schema, c.Renamed = KindMigrated, &Schema{Name: "s", Version: 2}, []Rename{{From: "pay", To: "charge"}}
	}))
	for _, name := range []string{"pay", "charge"} { // old code and new
		for _, d := range []Declaration{{Name: name, Key: "k", Args: value(`1`)}, {Name: name, Args: value(`2`)}} {
			if g := x.declareOp(d); g.Disposition != Settled || g.Operation.Name != "charge" {
				t.Errorf("%s %q: %s", name, d.Key, g.Disposition)
			}
		}
	}
	if len(x.s.Operations) != 2 || x.s.Schema.Version != 2 {
		t.Errorf("%d operations", len(x.s.Operations))
	}
	if g := x.declareOp(Declaration{Name: "charge", Args: value(`3`)}); g.Disposition != Go {
		t.Errorf("another call: %s", g.Disposition)
	}
}

// A provider that remembers keys for long must not take an operation of a
// recreated execution for one of its predecessor.
func TestProviderKeyOfAnotherGeneration(t *testing.T) {
	t.Parallel()
	op, next := Operation{ID: "0123"}, testRef
	next.Generation++
	if op.ProviderKey(testRef) == op.ProviderKey(next) {
		t.Fatal("two generations share a key")
	}
}
