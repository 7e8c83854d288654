package execution

import (
	"errors"
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
			rep := Replayed(op, x.s.Fence, now, 0)
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
	if d := Replayed(op, x.s.Fence, x.now, op.IntentAt); d != Go {
		t.Errorf("unsent: %s", d)
	}
	if d := Replayed(op, x.s.Fence, x.now, 0); d != UncertainDisp {
		t.Errorf("sent: %s", d)
	}
	if d := Replayed(op, x.s.Fence+1, x.now, op.IntentAt); d != UncertainDisp {
		t.Errorf("unsent under an older fence: %s", d)
	}
	again := *op
	again.Sends = 2
	if d := Replayed(&again, x.s.Fence, x.now, op.IntentAt); d != UncertainDisp {
		t.Errorf("unsent, but given since: %s", d)
	}
	if d := Replayed(op, x.s.Fence, x.now, op.IntentAt+1); d != UncertainDisp {
		t.Errorf("declared again by the unsent request, given out by an earlier one: %s", d)
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
	y := own(t)
	yop := y.declareOp(d).Operation
	y.settle(yop.ID, OutcomeUnknown)
	if got := y.s.Operations[yop.ID]; !got.SawUnknown || got.LastFinding != QueryFailed {
		t.Errorf("unknown: %+v", got)
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
	if got := x.s.Operations[op.ID]; got.Attempt != 2 || got.Outcome != OutcomeSucceeded || got.Source != FromOwner {
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
	// What the ledger or a slot says is proof.
	for _, s := range []Source{FromLedger, FromSlot} {
		y := own(t)
		yop := y.declareOp(Declaration{Name: "pay", ValidSeconds: 600}).Operation
		p := y.do(y.stepWith(func(c *Change) {
			c.Kind, c.Evidence = KindReconciled, []Evidence{{Operation: yop.ID, Finding: Found, Outcome: OutcomeNotExecuted, Source: s}}
		}))
		if y.s.Open != 0 || len(p.Slots) != 0 {
			t.Errorf("%s: %d open, %d slots to fill", s, y.s.Open, len(p.Slots))
		}
	}
	// A verdict is on the current attempt only; what is known of an earlier one is welcome.
	z := own(t)
	zd := Declaration{Name: "pay"}
	zop := z.declareOp(zd).Operation
	z.settle(zop.ID, OutcomeRejected)
	z.declareOp(zd)
	about := func(evs ...Evidence) *Change {
		for i := range evs {
			evs[i].Operation = zop.ID
		}
		return z.stepWith(func(c *Change) { c.Kind, c.Evidence = KindReconciled, evs })
	}
	verdict := Evidence{Attempt: 2, Finding: Decided, Outcome: OutcomeSucceeded, Reason: "r"}
	seen := Evidence{Attempt: 2, Finding: Found, Outcome: OutcomeSucceeded, Source: FromCaller}
	old := verdict
	old.Attempt = 1
	if e := z.refuse(about(old), InvalidRequest); e.Facts["field"] != "evidence[0].attempt" {
		t.Errorf("%v", e.Facts)
	}
	z.refuse(about(verdict, seen, verdict), InvalidRequest)
	if e := z.refuse(about(Evidence{Finding: NotFoundFinding}), InvalidRequest); e.Facts["field"] != "evidence[0].attempt" {
		t.Errorf("no attempt where there are two: %v", e.Facts)
	}
	z.do(about(Evidence{Attempt: 2, Finding: NotFoundFinding, AskedAt: z.now})) // asked this very moment
	z.do(about(Evidence{Attempt: 1, Finding: Found, Outcome: OutcomeRejected, Source: FromCaller}))
	_, err := z.propose(about(verdict, seen))
	_, back := z.propose(about(seen, verdict))
	if err != nil || back != nil {
		t.Errorf("one verdict and a finding: %v, %v", err, back)
	}
	// Before the first claim nobody has a fence; a system that refuses older ones refuses that.
	n := newScript(t)
	n.do(created())
	nop := n.declareOp(zd).Operation
	if p := n.do(n.stepWith(func(c *Change) {
		c.Kind, c.Evidence = KindReconciled, []Evidence{{Operation: nop.ID, Finding: NotFoundFinding, Fenced: true}}
	})); len(p.Slots) != 1 {
		t.Errorf("slots %v", p.Slots)
	}
	// A fence of an execution that this one carries on is no fence of this one.
	k := newScript(t)
	c0 := created()
	c0.Created = &Creation{Workflow: "wf", IdentityRoot: &Ref{Tenant: "acme", Execution: "parent", Generation: 7}, Operations: []*Operation{{ID: "carried", Seq: 1, Attempt: 1, Sends: 1, Fence: -3}}}
	k.do(c0)
	k.do(claim("w"))
	if p := k.do(k.stepWith(func(c *Change) {
		c.Kind, c.Evidence = KindReconciled, []Evidence{{Operation: "carried", Finding: NotFoundFinding, Fenced: true}}
	})); len(p.Slots) != 0 || k.s.Open != 1 || k.s.IdentityRoot.Execution != "parent" {
		t.Errorf("slots %v, root %v", p.Slots, k.s.IdentityRoot)
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
		{"same_key, window shorter than the delay", SameKey, 0, 200, 200_000, 0, 500_000},
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
	if op.OnUncertain != Ask {
		t.Errorf("on_uncertain %q", op.OnUncertain)
	}
	if op.Uncertain(x.s.Fence, op.Intent+59_999) || !op.Uncertain(x.s.Fence, op.Intent+60_000) || !op.Uncertain(x.s.Fence+1, op.Intent) {
		t.Error("deadline or fence")
	}
	final, review := Operation{Outcome: OutcomeSucceeded, Fence: 1, SawUnknown: true}, Operation{NeedsReview: true, Fence: op.Fence}
	if final.Uncertain(2, op.Intent) || !review.Uncertain(op.Fence, op.Intent) {
		t.Error("a settled operation is certain, one under review is not")
	}
	if d := Replayed(&Operation{NeedsReview: true, OnUncertain: Always, Fence: 1, Sends: 1, IntentAt: 1}, 1, t0, 1); d != UncertainDisp {
		t.Errorf("under review: %s", d)
	}
	same := x.declareOp(Declaration{Name: "same", OnUncertain: SameKey, DedupSeconds: 3600}).Operation
	if _, d := Redeclare(same, x.s.Fence, same.RepeatBy()-1); d != Go {
		t.Errorf("inside the window: %s", d)
	}
	if _, d := Redeclare(same, x.s.Fence, same.RepeatBy()); d != UncertainDisp {
		t.Errorf("at its end: %s", d)
	}
	for _, st := range []struct {
		s    State
		now  int64
		want string
	}{{State{Owner: "w", Fence: op.Fence}, op.Intent, "declared"}, {State{Fence: op.Fence}, op.Intent, "uncertain"}, {State{Fence: op.Fence - 1, Owner: "w"}, op.Intent, "uncertain"},
		{State{Owner: "w", Fence: op.Fence, Open: -1}, op.Intent, "needs_review"}, {State{Owner: "w", Fence: op.Fence, Open: -2}, op.Intent, "failed"}, {State{Open: -3}, op.Intent, "declared"}, {State{Owner: "w", Fence: op.Fence}, op.Intent + 60_000, "uncertain"}} {
		op := *op
		switch st.s.Open { // as if it stood otherwise
		case -1:
			op.NeedsReview = true
		case -2:
			op.Outcome = OutcomeFailed
		case -3:
			op.Fence = 0
		}
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
	if e := x.refuse(x.stepWith(func(c *Change) { c.Operations = []Declaration{{Name: "pay", Key: "k", Args: value(`9`)}} }), OperationMismatch); e.Facts["field"] != "operations[0].args" {
		t.Errorf("an old name with other arguments: %v", e.Facts)
	}
	if len(x.s.Operations) != 2 || x.s.Schema.Version != 2 {
		t.Errorf("%d operations", len(x.s.Operations))
	}
	if g := x.declareOp(Declaration{Name: "charge", Args: value(`3`)}); g.Disposition != Go {
		t.Errorf("another call: %s", g.Disposition)
	}
	// A key is an identity of its own, whatever was renamed.
	if g := x.declareOp(Declaration{Name: "charge", Key: "new", Args: value(`2`)}); g.Operation.ID == plain.ID {
		t.Error("a key was taken for arguments")
	}
	// What still has the old name is another effect.
	late := x.declareOp(Declaration{Name: "pay", Args: value(`4`)}).Operation
	if g := x.declareOp(Declaration{Name: "charge", Args: value(`4`)}); g.Operation.ID == late.ID || g.Operation.Name != "charge" {
		t.Errorf("%+v", g.Operation)
	}
}

// An operation under the new name stays itself when one of the old name is
// renamed to it.
func TestRenamedOverAnother(t *testing.T) {
	t.Parallel()
	x := own(t)
	own := x.declareOp(Declaration{Name: "charge", Args: value(`1`)}).Operation
	x.declareOp(Declaration{Name: "pay", Args: value(`1`)})
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Schema, c.Renamed = KindMigrated, &Schema{Name: "s", Version: 2}, []Rename{{From: "pay", To: "charge"}}
	}))
	for range 20 { // operations have no order in memory
		if g := x.declareOp(Declaration{Name: "charge", Args: value(`1`)}); g.Operation.ID != own.ID {
			t.Fatal("the renamed one was given")
		}
	}
}

// Outcomes that this version knows.
func TestKnownOutcomes(t *testing.T) {
	t.Parallel()
	for o, want := range map[Outcome]bool{OutcomeNone: true, OutcomeUnknown: true, OutcomeInProgress: true, OutcomeSucceeded: true, OutcomeFailed: true,
		OutcomeRejected: true, OutcomeNotExecuted: true, OutcomeAbandoned: true, "teleported": false} {
		if o.Known() != want {
			t.Errorf("%q: known %v", o, o.Known())
		}
	}
}

// Several declarations in one request: each sees those before it.
func TestManyInOneRequest(t *testing.T) {
	t.Parallel()
	x := own(t)
	pay := Declaration{Name: "pay", Key: "1"}
	p := x.do(x.stepWith(func(c *Change) { c.Task, c.Operations = "t", []Declaration{pay, {Name: "ship"}, pay} }))
	if p.Given[2].Disposition != UncertainDisp || len(x.s.Operations) != 2 {
		t.Errorf("the first was given again after another: %s", p.Given[2].Disposition)
	}
	// The task of before stays until another is named.
	op := x.declareOp(Declaration{Name: "mail"}).Operation
	if op.Task != "t" || op.ID != Identify(x.s.IdentityRoot, "t", "mail", "", nil) {
		t.Errorf("task %q", op.Task)
	}
	x.settle(p.Given[0].Operation.ID, OutcomeRejected)
	x.settle(p.Given[1].Operation.ID, OutcomeSucceeded)
	p = x.do(x.stepWith(func(c *Change) { c.Operations = []Declaration{pay, {Name: "bill"}} }))
	if a, b := p.Given[0].Operation, p.Given[1].Operation; a.Attempt != 2 || b.Seq != 4 {
		t.Errorf("attempt %d, seq %d", a.Attempt, b.Seq)
	}
	if len(x.s.Settled) != 1 || x.s.Settled[0] != p.Given[0].Operation.ID && x.s.Operations[x.s.Settled[0]].Name != "ship" {
		t.Errorf("settled %v", x.s.Settled)
	}
}

// One in the fold is never taken for one that was forgotten.
func TestForgottenPrefix(t *testing.T) {
	t.Parallel()
	x := own(t)
	d := Declaration{Name: "pay", OnUncertain: Always}
	p := forgottenPrefix(x.declareOp(d).Operation.ID)
	x.s.Forgotten = append(x.s.Forgotten, p...)
	if g := x.declareOp(d); g.Disposition != Go {
		t.Errorf("%s", g.Disposition)
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

// Identifiers and texts, at their edges.
func TestIdentifiers(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"": false, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "a.b_c-d": true, "abcdefgh": true, "abcdefghi": false,
		".a": false, "_a": false, "-a": false, "a#": false, "a/": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false, "a b": false, "\u00e4": false} {
		if ValidIdentifier(s, 8) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"": true, "a b": true, "\u00e4\u00e4\u00e4\u00e4": true, "aaaaa": false, "\x1f": false, "~": true, "\x7f": false, "\u0080": false, "\u009f": false, "\u00a0": true} {
		if err := CheckNote("f", s, 4); (err == nil) != want || err != nil && CodeOf(err) != InvalidRequest {
			t.Errorf("%q: %v", s, err)
		}
	}
	if CheckText("f", "", 4) == nil || CheckText("f", "a", 4) != nil {
		t.Error("a text is not empty")
	}
	for pk, want := range map[string]bool{"a#b": true, "a": false, "a#": false, "#b": false, "a#b#c": false, "registry/0#b": false} {
		if _, _, ok := ParsePartitionKey(pk); ok != want {
			t.Errorf("%q: %v", pk, ok)
		}
	}
}

// An error is its code, and says which field it is about.
func TestErrors(t *testing.T) {
	t.Parallel()
	if e := Invalid("f", "m"); e.Error() != "InvalidRequest: f: m" || !errors.Is(e, InvalidRequest) || errors.Is(e, TooLarge) {
		t.Error(e)
	}
	if e := Errorf(Halted, "m"); e.Error() != "Halted: m" {
		t.Error(e)
	}
}

// An effect that shows itself after its attempt was settled as having none stops
// the next attempt until somebody decides, about that attempt or a later one.
func TestLateEffectStopsTheNextAttempt(t *testing.T) {
	t.Parallel()
	said := func(attempt int, o Outcome) []Contradiction { return []Contradiction{{Attempt: attempt, Outcome: o}} }
	for name, tt := range map[string]struct {
		op   Operation
		want Disposition
	}{
		"nothing":           {Operation{Attempt: 1, Outcome: OutcomeRejected, Source: FromOwner}, Go},
		"succeeded":         {Operation{Attempt: 1, Outcome: OutcomeRejected, Contradictions: said(1, OutcomeSucceeded)}, UncertainDisp},
		"failed":            {Operation{Attempt: 1, Outcome: OutcomeNotExecuted, Contradictions: said(1, OutcomeFailed)}, UncertainDisp},
		"of a newer kind":   {Operation{Attempt: 1, Outcome: OutcomeNotExecuted, Contradictions: said(1, "reversed")}, UncertainDisp},
		"no effect either":  {Operation{Attempt: 1, Outcome: OutcomeRejected, Contradictions: said(1, OutcomeNotExecuted)}, Go},
		"rejected as well":  {Operation{Attempt: 1, Outcome: OutcomeNotExecuted, Contradictions: said(1, OutcomeRejected)}, Go},
		"decided":           {Operation{Attempt: 1, Outcome: OutcomeRejected, Source: FromVerdict, Contradictions: said(1, OutcomeSucceeded)}, Go},
		"an earlier one":    {Operation{Attempt: 2, Outcome: OutcomeRejected, Past: []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}}, Contradictions: said(1, OutcomeSucceeded)}, UncertainDisp},
		"decided then":      {Operation{Attempt: 2, Outcome: OutcomeRejected, Past: []PastAttempt{{Attempt: 1, Source: FromVerdict}}, Contradictions: said(1, OutcomeSucceeded)}, Go},
		"decided before":    {Operation{Attempt: 3, Outcome: OutcomeRejected, Past: []PastAttempt{{Attempt: 1, Source: FromVerdict}, {Attempt: 2}}, Contradictions: said(2, OutcomeSucceeded)}, UncertainDisp},
		"decided after":     {Operation{Attempt: 3, Outcome: OutcomeRejected, Past: []PastAttempt{{Attempt: 1}, {Attempt: 2, Source: FromVerdict}}, Contradictions: said(1, OutcomeSucceeded)}, Go},
		"of a settled one":  {Operation{Attempt: 1, Outcome: OutcomeSucceeded, Contradictions: said(1, OutcomeFailed)}, Settled},
		"harmless to go on": {Operation{Attempt: 1, Outcome: OutcomeRejected, OnUncertain: Always, Contradictions: said(1, OutcomeSucceeded)}, UncertainDisp},
	} {
		if next, d := Redeclare(&tt.op, 1, 0); d != tt.want || (next > 0) != (tt.want == Go) {
			t.Errorf("%s: %s, attempt %d", name, d, next)
		}
	}
}

// Within one step everything counts that it says before: an outcome that nobody
// knows, and what was given out again.
func TestOneStepSeesItself(t *testing.T) {
	t.Parallel()
	x := own(t)
	d := Declaration{Name: "ship", OnUncertain: Close}
	op := x.declareOp(d).Operation
	p := x.do(x.stepWith(func(c *Change) {
		c.Outcomes, c.Operations = []Settlement{{Operation: op.ID, Outcome: OutcomeUnknown}}, []Declaration{d}
	}))
	if p.Given[0].Disposition != UncertainDisp {
		t.Errorf("reported unknown, and given to start: %s", p.Given[0].Disposition)
	}
	// After a rejection the next attempt is given once.
	y := own(t)
	pay := Declaration{Name: "pay"}
	y.settle(y.declareOp(pay).Operation.ID, OutcomeRejected)
	p = y.do(y.stepWith(func(c *Change) { c.Operations = []Declaration{pay, pay} }))
	if p.Given[0].Disposition != Go || p.Given[1].Disposition != UncertainDisp || p.Given[1].Operation.Attempt != 2 {
		t.Errorf("given twice: %s, %s, attempt %d", p.Given[0].Disposition, p.Given[1].Disposition, p.Given[1].Operation.Attempt)
	}
	// A contradiction that is said twice in a step is one.
	z := own(t)
	done := z.declareOp(pay).Operation
	z.settle(done.ID, OutcomeSucceeded)
	p = z.do(z.stepWith(func(c *Change) {
		c.Kind, c.Outcomes = KindReconciled, []Settlement{{Operation: done.ID, Outcome: OutcomeFailed}}
		c.Evidence = []Evidence{{Operation: done.ID, Finding: Found, Outcome: OutcomeFailed, Source: FromCaller}}
	}))
	if p.Contradictions != 1 || len(z.s.Operations[done.ID].Contradictions) != 1 {
		t.Errorf("%d contradictions, %v", p.Contradictions, z.s.Operations[done.ID].Contradictions)
	}
}

// Whoever gives an operation out again is the one who may go on with it.
func TestGivenAgainByAnother(t *testing.T) {
	t.Parallel()
	x := own(t)
	d := Declaration{Name: "mail", OnUncertain: Always}
	op := x.declareOp(d).Operation
	x.now += 100_000
	x.do(claim("w2"))
	if !op.Uncertain(x.s.Fence, x.now) {
		t.Error("an earlier owner's is certain")
	}
	if got := x.declareOp(d).Operation; got.Fence != x.s.Fence || got.Sends != 2 || got.Uncertain(x.s.Fence, x.now) {
		t.Errorf("%+v", got)
	}
}

// No two operations share a provider's key, in no two executions of any tenant.
func TestProviderKeys(t *testing.T) {
	t.Parallel()
	base := Operation{ID: "0123"}
	other := Operation{ID: "0124"}
	again := Operation{ID: "0123", Rejections: 1}
	seen := map[string]string{}
	for what, key := range map[string]string{"base": base.ProviderKey(testRef), "operation": other.ProviderKey(testRef), "rejected": again.ProviderKey(testRef),
		"tenant": base.ProviderKey(Ref{"acme2", testRef.Execution, testRef.Generation}), "execution": base.ProviderKey(Ref{testRef.Tenant, "order-2", testRef.Generation})} {
		if was, twice := seen[key]; twice {
			t.Errorf("%s has the key of %s", what, was)
		}
		seen[key] = what
	}
}

// A fact that is added to an error is not the error's it came from.
func TestWithCopies(t *testing.T) {
	t.Parallel()
	base := Invalid("f", "m")
	if more := base.With("limit", 3); more.Facts["limit"] != 3 || more.Facts["field"] != "f" || base.Facts["limit"] != nil {
		t.Errorf("%v %v", base.Facts, more.Facts)
	}
}
