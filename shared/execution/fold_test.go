package execution

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genChange draws a change of any kind; many are refused, which is fine.
func genChange(t *rapid.T, x *script) *Change {
	n := rapid.IntRange(0, 1<<20).Draw(t, "n")
	if x.s == nil {
		c := created()
		c.Created.Input = value(rapid.SampledFrom([]string{`null`, `{"a":1}`}).Draw(t, "input"))
		if rapid.Bool().Draw(t, "claimed") {
			c.Claim = &ClaimRequest{Owner: "w0", LeaseSeconds: 60}
		}
		return c
	}
	c := x.step()
	if rapid.IntRange(0, 3).Draw(t, "identified") > 0 {
		c.Request = request(fmt.Sprint("r", n), "c")
	}
	c.Note = rapid.SampledFrom([]string{"", "note"}).Draw(t, "note")
	ids := slices.Sorted(maps.Keys(x.s.Operations))
	pick := func() OperationID {
		if len(ids) == 0 {
			return "none"
		}
		return rapid.SampledFrom(ids).Draw(t, "op")
	}
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		switch rapid.IntRange(0, 17).Draw(t, "what") {
		case 0:
			c.Merge, c.Patch, c.State = value(fmt.Sprintf(`{"k%d":{"v":[%d]},"n":null}`, n%7, n)), nil, nil
		case 1:
			c.Patch, c.Merge, c.State = value(fmt.Sprintf(`[{"op":"add","path":"/list","value":[]},{"op":"add","path":"/list/-","value":%d}]`, n)), nil, nil
		case 2:
			c.State, c.Patch, c.Merge = value(fmt.Sprintf(`{"b":1.0,"a":"\u0000x","n":%d}`, n)), nil, nil
		case 3, 4:
			u := rapid.SampledFrom([]OnUncertain{Ask, Close, SameKey, Always}).Draw(t, "u")
			c.Operations = append(c.Operations, Declaration{Name: "op" + string(u), Args: value(fmt.Sprint(n % 5)), OnUncertain: u, DedupSeconds: 3600})
		case 5, 6:
			c.Outcomes = append(c.Outcomes, Settlement{Operation: pick(), Outcome: rapid.SampledFrom([]Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeRejected, OutcomeUnknown}).Draw(t, "o"), Result: value("null")})
		case 7:
			c.Kind, c.Evidence = KindReconciled, []Evidence{{Operation: pick(), Finding: rapid.SampledFrom([]Finding{Several, Decided, NotFoundFinding, RejectedDuplicate}).Draw(t, "f"), Outcome: OutcomeNotExecuted, Force: true, Fenced: true, Reason: "r"}}
			c.Checks = []Check{{Operation: pick(), At: x.now, Next: x.now + 5}}
		case 8:
			c.Absorb = append(c.Absorb, SignalRef{Name: "s", Key: fmt.Sprint(n % 20), At: x.now})
		case 9:
			for k := range x.s.Absorbed {
				name, key, _ := strings.Cut(k, "\x00")
				c.Emptied = append(c.Emptied, SignalRef{Name: name, Key: key})
				break
			}
		case 10:
			c.Artifacts = append(c.Artifacts, Artifact{Digest: fmt.Sprintf("%064x", n), Bytes: 3, Name: fmt.Sprint("a", n%3)})
		case 11:
			c.Labels, c.Subjects, c.Spend = map[string]string{fmt.Sprint("l", n%5): fmt.Sprint(n)}, []string{fmt.Sprint("sub", n%5)}, map[string]string{"usd": "0.001"}
		case 12:
			c.Task, c.Permissions = TaskID(fmt.Sprint("t", n%2)), &Permissions{Principal: "p", Scopes: []string{"a"}}
		case 13:
			c.Kind, c.Wait = KindSuspended, &Wait{Signals: []string{"s"}, WaitingFor: value("null"), TaskToken: "tok"}
		case 14:
			c.Kind, c.Continue = KindContinued, &Continue{AfterSeconds: 3}
		case 15:
			k := rapid.SampledFrom([]Kind{KindParked, KindHalted, KindUnhalted, KindHalted, KindUnhalted}).Draw(t, "kind")
			return &Change{Kind: k, System: true, Parked: []Reason{{Code: "x", Operation: pick()}}, Reason: "why"}
		case 16:
			return &Change{Kind: KindClaimed, Request: c.Request, Handovers: 1, Claim: &ClaimRequest{Owner: fmt.Sprint("w", n%3), LeaseSeconds: 60, Nonce: c.Request.Hash, Force: "f", Resume: value("null")}}
		case 17:
			c.Kind, c.Schema, c.Renamed = KindMigrated, &Schema{Name: "s", Version: x.s.Schema.Version + 1}, []Rename{{From: "opask", To: "opask2"}}
		}
	}
	return c
}

// reread is an entry after it went through its stored form.
func reread(t fataler, e *Entry) *Entry {
	t.Helper()
	b, err := EncodeBody(&e.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := DecodeBody(b)
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	c := *e
	c.Body = *body
	return &c
}

// Whatever changes come: folding what was stored gives what Propose said, step
// by step, from the beginning and from every snapshot; and no state that was
// handed out ever changes.
func TestFoldIsWhatProposeSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := &script{t: quiet{t}, now: t0}
		type seen struct {
			s    *State
			text string
		}
		var states []seen
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for range steps {
			c := genChange(t, x)
			x.env.Now = x.now
			var p *Proposal
			var err error
			if x.s == nil {
				p, err = Propose(nil, testRef, c, x.env)
			} else {
				p, err = Propose(x.s, x.s.Ref, c, x.env)
			}
			x.now += int64(rapid.IntRange(0, 40_000).Draw(t, "ms"))
			if err != nil || p.Replay != nil {
				continue
			}
			e := p.Entry
			if rapid.IntRange(0, 9).Draw(t, "snapshot") == 0 && e.Version > 1 {
				snap, dropped := SnapshotOf(p.State)
				if len(dropped) > 0 {
					t.Fatal("dropped something")
				}
				e.Body.Snapshot, e.Body.State, e.Body.Patch = snap, p.State.Data, nil
				p.State = snap
			}
			x.s = p.State
			x.log = append(x.log, reread(quiet{t}, e))
			states = append(states, seen{p.State, asJSON(quiet{t}, p.State)})
		}
		if x.s == nil {
			return
		}
		base := &State{Ref: testRef}
		for i := range x.log {
			if s, err := Fold(base, x.log[:i+1]...); err != nil || asJSON(quiet{t}, s) != states[i].text {
				t.Fatalf("fold of %d entries: %v\n%s\n%s", i+1, err, asJSON(quiet{t}, s), states[i].text)
			}
			if x.log[i].Body.Snapshot == nil {
				continue
			}
			s, err := Fold(&State{Ref: testRef}, x.log[i:]...)
			if err != nil || asJSON(quiet{t}, s) != states[len(states)-1].text {
				t.Fatalf("fold from the snapshot at %d: %v\n%s\n%s", x.log[i].Version, err, asJSON(quiet{t}, s), states[len(states)-1].text)
			}
		}
		// One folder step by step, and two futures of one state.
		if s, err := Fold(x.firstOf(len(x.log)/2, base), x.log[len(x.log)/2:]...); err != nil || asJSON(quiet{t}, s) != states[len(states)-1].text {
			t.Fatalf("folding the second half: %v", err)
		}
		f := NewFolder(base)
		for i, e := range x.log {
			if err := f.Apply(e); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				states = append(states, seen{f.State(), states[i].text})
			}
		}
		for i := range states {
			_, _ = Propose(states[i].s, testRef, genChange(t, &script{t: quiet{t}, s: states[i].s, now: x.now}), Environment{Now: x.now})
		}
		for i, st := range states {
			if asJSON(quiet{t}, st.s) != st.text {
				t.Fatalf("the state at version %d changed after it was handed out", i+1)
			}
		}
		if len(x.s.Requests) > MaxRequestMemory {
			t.Fatalf("%d requests remembered", len(x.s.Requests))
		}
	})
}

// Two futures of one state share nothing that either of them changes.
func TestTwoFutures(t *testing.T) {
	t.Parallel()
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay"}).Operation
	grow := func(tag string) *Change {
		return x.stepWith(func(c *Change) {
			c.Request, c.Artifacts, c.Subjects = request(tag, ""), []Artifact{{Digest: tag}}, []string{tag}
			c.Labels, c.Spend, c.Absorb = map[string]string{tag: tag}, map[string]string{"usd": "1"}, []SignalRef{{Name: "s", Key: tag}}
			c.Operations = []Declaration{{Name: tag}}
			c.Outcomes = []Settlement{{Operation: op.ID, Outcome: OutcomeUnknown}}
		})
	}
	for i := range 3 { // room behind every slice
		x.do(grow(fmt.Sprint("r", i)))
	}
	base, before := x.s, asJSON(t, x.s)
	var futures []*State
	var texts []string
	for i := range 3 {
		p, err := x.propose(grow(fmt.Sprint("f", i)))
		if err != nil {
			t.Fatal(err)
		}
		futures, texts = append(futures, p.State), append(texts, asJSON(t, p.State))
	}
	for i, s := range futures {
		if asJSON(t, s) != texts[i] {
			t.Errorf("future %d was changed by another", i)
		}
	}
	if asJSON(t, base) != before {
		t.Error("the past was changed")
	}
}

// firstOf folds the first n entries.
func (x *script) firstOf(n int, base *State) *State {
	if n == 0 {
		return base
	}
	s, err := Fold(base, x.log[:n]...)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// quiet makes a rapid.T usable where a testing.TB is wanted.
type quiet struct{ *rapid.T }

func (q quiet) Fatal(a ...any)            { q.T.Fatal(a...) }
func (q quiet) Fatalf(f string, a ...any) { q.T.Fatalf(f, a...) }
func (q quiet) Helper()                   {}

var _ fataler = quiet{}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
	Helper()
}

// The memory of an execution's past is bounded.
func TestSettledMemory(t *testing.T) {
	t.Parallel()
	x := own(t)
	var ids []OperationID
	const total = MaxSettledMemory + 300
	for i := range total {
		g := x.declareOp(Declaration{Name: "pay", Key: fmt.Sprint(i)})
		ids = append(ids, g.Operation.ID)
		x.settle(g.Operation.ID, OutcomeSucceeded)
	}
	stays := x.declareOp(Declaration{Name: "open"}).Operation
	p, err := x.propose(x.step())
	if err != nil {
		t.Fatal(err)
	}
	snap, dropped := SnapshotOf(p.State)
	if len(dropped) != 300 || dropped[0].ID != ids[0] || len(snap.Settled) != MaxSettledMemory || len(snap.Operations) != MaxSettledMemory+1 || len(snap.Forgotten) != 300*8 {
		t.Fatalf("%d dropped, %d kept of %d, %d bytes of prefixes", len(dropped), len(snap.Settled), len(snap.Operations), len(snap.Forgotten))
	}
	if len(p.State.Operations) != total+1 || snap.Operations[stays.ID] == nil {
		t.Fatal("the state was changed, or an open operation dropped")
	}
	p.Entry.Body.Snapshot, p.Entry.Body.State = snap, p.State.Data
	// Folding over the snapshot forgets the same.
	over, err := Fold(x.s, p.Entry)
	if err != nil || asJSON(t, over) != asJSON(t, snap) {
		t.Fatalf("folding over the snapshot gives another state: %v", err)
	}
	from, err := Fold(&State{Ref: testRef}, reread(t, p.Entry))
	if err != nil || asJSON(t, from) != asJSON(t, snap) {
		t.Fatalf("folding from the snapshot gives another state: %v", err)
	}
	x.s = over
	x.now += 1000
	for i, id := range ids {
		if got := x.s.MayBeForgotten(id); got != (i < 300) {
			t.Fatalf("operation %d: forgotten %v", i, got)
		}
	}
	if x.s.MayBeForgotten(stays.ID) {
		t.Error("an open operation counts as forgotten")
	}
	// Its slot has the outcome; without it nothing is given out.
	again := x.stepWith(func(c *Change) { c.Operations = []Declaration{{Name: "pay", Key: "0"}} })
	x.refuse(again, OperationMismatch)
	again.NotForgotten = map[OperationID]bool{ids[0]: true} // an equal prefix only
	if p := x.do(again); p.Given[0].Disposition != Go {
		t.Errorf("%s", p.Given[0].Disposition)
	}
	// A second round adds to the prefixes.
	for i := total; i < total+50; i++ {
		g := x.declareOp(Declaration{Name: "pay", Key: fmt.Sprint(i)})
		x.settle(g.Operation.ID, OutcomeSucceeded)
	}
	snap2, dropped := SnapshotOf(x.s)
	if len(dropped) != 50 || len(snap2.Forgotten) != 350*8 {
		t.Errorf("%d dropped, %d prefixes", len(dropped), len(snap2.Forgotten)/8)
	}
	// Waiting for one that was forgotten is no mistake.
	x.do(x.stepWith(func(c *Change) { c.Kind, c.Wait = KindSuspended, &Wait{Operations: []OperationID{ids[1]}} }))
}

// What cannot be this execution's journal.
func TestFoldRefuses(t *testing.T) {
	t.Parallel()
	x := own(t)
	x.do(x.stepWith(func(c *Change) { c.Merge = value(`{"a":1}`) }))
	edit := func(i int, f func(e *Entry)) []*Entry {
		out := make([]*Entry, len(x.log))
		for k, e := range x.log {
			c := *e
			out[k] = &c
		}
		f(out[i])
		return out
	}
	snapshot := func(f func(s *State)) []*Entry {
		s, _ := SnapshotOf(x.s)
		f(s)
		e := *x.log[2]
		e.Body.Snapshot, e.Body.State, e.Body.Patch = s, x.s.Data, nil
		return []*Entry{&e}
	}
	set := func(e *Entry, patch string) *Entry {
		e.Body.State, e.Body.Patch = nil, value(patch)
		return e
	}
	fourth := *x.log[2]
	fourth.Version++
	three := edit(2, func(e *Entry) { set(e, `{"op":"add","path":"/z","value":1}`) })
	ops := func(ids ...OperationID) map[OperationID]*Operation {
		m := map[OperationID]*Operation{}
		for _, id := range ids {
			m[id] = &Operation{ID: id, Outcome: OutcomeSucceeded}
		}
		return m
	}
	tests := map[string]struct {
		log  []*Entry
		code Code
	}{
		"version 0":                   {edit(0, func(e *Entry) { e.Version = 0 })[:1], Integrity},
		"version -1":                  {edit(0, func(e *Entry) { e.Version = -1 })[:1], Integrity},
		"another kind with creation":  {edit(0, func(e *Entry) { e.Kind = KindCheckpoint }), Integrity},
		"null, then an operation":     {edit(0, func(e *Entry) { e.Body.Created = &Creation{Operations: []*Operation{nil, {ID: "a"}}} }), Integrity},
		"a claim beside a snapshot":   {edit(2, func(e *Entry) { e.Body.Claim, e.Body.Snapshot = &Claim{}, snapshot(func(*State) {})[0].Body.Snapshot }), Integrity},
		"one of two is no patch":      {append(three, set(&fourth, `[{"op":"add","path":"/y","value":1}]`)), Integrity},
		"snapshot, wrong id":          {snapshot(func(s *State) { s.Operations = map[OperationID]*Operation{"x": {ID: "y"}} }), Integrity},
		"snapshot, wrong in two ways": {snapshot(func(s *State) { s.Version, s.Operations = s.Version+1, ops("a") }), Integrity},
		"snapshot, unknown and known": {snapshot(func(s *State) { s.Operations, s.Settled = ops("a"), []OperationID{"x", "a"} }), Integrity},
		"snapshot, known":             {snapshot(func(s *State) { s.Operations, s.Settled = ops("a"), []OperationID{"a"} }), ""},
		"good":                        {x.log, ""},
		"good snapshot":               {snapshot(func(s *State) {}), ""},
		"gap":                         {[]*Entry{x.log[0], x.log[2]}, Integrity},
		"no beginning":                {x.log[1:], Integrity},
		"twice":                       {[]*Entry{x.log[0], x.log[1], x.log[1]}, Integrity},
		"order":                       {[]*Entry{x.log[1], x.log[0]}, Integrity},
		"created twice":               {edit(1, func(e *Entry) { e.Kind, e.Body.Created = KindCreated, &Creation{} }), Integrity},
		"creation without its record": {edit(0, func(e *Entry) { e.Body.Created = nil }), Integrity},
		"creation in a checkpoint":    {edit(2, func(e *Entry) { e.Body.Created = &Creation{} }), Integrity},
		"claim in a checkpoint":       {edit(2, func(e *Entry) { e.Body.Claim = &Claim{} }), Integrity},
		"another generation":          {edit(1, func(e *Entry) { e.Generation++ }), Integrity},
		"newer kind":                  {edit(1, func(e *Entry) { e.Kind = "levitated" }), SchemaTooNew},
		"patch that does not fit":     {edit(2, func(e *Entry) { e.Body.State, e.Body.Patch = nil, value(`[{"op":"remove","path":"/zz"}]`) }), Integrity},
		"completed without an end":    {edit(2, func(e *Entry) { e.Kind = KindCompleted }), Integrity},
		"an operation that is null":   {edit(0, func(e *Entry) { e.Body.Created = &Creation{Operations: []*Operation{nil}} }), Integrity},
		"snapshot of another version": {snapshot(func(s *State) { s.Version++ }), Integrity},
		"snapshot of another life":    {snapshot(func(s *State) { s.Generation++ }), Integrity},
		"snapshot with null":          {snapshot(func(s *State) { s.Operations = map[OperationID]*Operation{"x": nil} }), Integrity},
		"snapshot, settled unknown":   {snapshot(func(s *State) { s.Settled = []OperationID{"x"} }), Integrity},
		"snapshot, half a prefix":     {snapshot(func(s *State) { s.Forgotten = []byte{1} }), Integrity},
	}
	for name, tt := range tests {
		s, err := Fold(&State{Ref: testRef}, tt.log...)
		if CodeOf(err) != tt.code || (err != nil) == (s != nil) {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
	}
}

// An unknown status in a snapshot is carried, and nothing may be done with it.
func TestUnknownStatusInASnapshot(t *testing.T) {
	t.Parallel()
	x := own(t)
	p := x.do(x.step())
	s, _ := SnapshotOf(x.s)
	s.Status = "dreaming"
	p.Entry.Body.Snapshot, p.Entry.Body.State = s, x.s.Data
	got, err := Fold(&State{Ref: testRef}, reread(t, p.Entry))
	if err != nil || got.Status != "dreaming" || got.Status.Ended() {
		t.Fatalf("%+v %v", got, err)
	}
	x.s = got
	x.refuse(x.step(), Integrity)
	x.refuse(claim("w2"), Integrity)
}

// What Propose never writes, but sealed bytes may hold: taken in without harm.
func TestFoldOfOddEntries(t *testing.T) {
	t.Parallel()
	x := newScript(t)
	c := created()
	c.Created = &Creation{Workflow: "wf", Forgotten: []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}, Operations: []*Operation{{ID: "b", Seq: 5, Outcome: OutcomeSucceeded}, {ID: "a", Seq: 3}}}
	x.do(c)
	if x.s.OpSeq != 5 || x.s.Open != 1 || len(x.s.Settled) != 1 || x.s.Settled[0] != "b" {
		t.Fatalf("carried: %+v", x.s)
	}
	if !x.s.MayBeForgotten("0123456789abcdef0000000000000000") || x.s.MayBeForgotten("1123456789abcdef0000000000000000") {
		t.Error("what the parent forgot is not carried along")
	}
	x.do(claim("w"))
	odd := func(f func(e *Entry)) *State {
		t.Helper()
		e := &Entry{Version: x.s.Version + 1, Kind: KindCheckpoint, Generation: testRef.Generation, Fence: x.s.Fence, At: x.now}
		f(e)
		s, err := Fold(x.s, e)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := odd(func(e *Entry) { e.Body.Spent = map[string]string{"usd": "1"} }); s.Budgets["usd"].Spent != "1" {
		t.Errorf("spent without a budget: %v", s.Budgets)
	}
	if s := odd(func(e *Entry) { e.Body.Declared = []Declared{{ID: "nope", Attempt: 1}} }); len(s.Operations) != 2 || s.Open != 1 {
		t.Errorf("an unknown operation given again: %+v", s.Operations)
	}
	if s := odd(func(e *Entry) { e.Body.Declared = []Declared{{Operation: &Operation{ID: "c", Seq: 2}}} }); s.OpSeq != 5 {
		t.Errorf("the count of operations went back to %d", s.OpSeq)
	}
	if s := odd(func(e *Entry) {}); !s.TipByOwner {
		t.Error("the owner's entry is not the owner's")
	}
	if s := odd(func(e *Entry) { e.Fence-- }); s.TipByOwner {
		t.Error("an entry under an older fence renews the lease")
	}
	if NewFolder(nil).State() != nil {
		t.Error("a state of nothing")
	}
}

// A snapshot that is a beginning: it stands where the base says, not where it
// was made; a creation is one whatever rides along.
func TestSnapshotsBegin(t *testing.T) {
	t.Parallel()
	x := own(t)
	x.do(x.step())
	snap, _ := SnapshotOf(x.s)
	snap.Tenant, snap.Operations = "made-elsewhere", nil
	e := *x.log[2]
	e.Body.Snapshot, e.Body.State, e.Body.Patch = snap, nil, nil
	s, err := Fold(&State{Ref: testRef}, &e)
	if err != nil || s.Tenant != testRef.Tenant || s.Data.String() != "{}" {
		t.Fatalf("%+v %v", s, err)
	}
	op := Declared{Operation: &Operation{ID: "a", Seq: 1}}
	next := &Entry{Version: e.Version + 1, Kind: KindCheckpoint, Generation: e.Generation, Body: Body{Declared: []Declared{op}}}
	if s, err := Fold(s, next); err != nil || s.Open != 1 {
		t.Fatalf("%+v %v", s, err)
	}
	if s, err := Fold(nil, &e); err != nil || s.Tenant != "made-elsewhere" {
		t.Fatalf("%+v %v", s, err)
	}
	first := *x.log[0]
	first.Body.Snapshot = &State{Ref: testRef, Version: 1, Workflow: "another"}
	if s, err := Fold(&State{Ref: testRef}, &first); err != nil || s.Workflow != "wf" {
		t.Fatalf("%+v %v", s, err)
	}
}

// Forgetting, too, leaves the state before as it was; so does settling.
func TestForgettingSharesNothing(t *testing.T) {
	t.Parallel()
	x := own(t)
	var ops []OperationID
	for i := range 7 {
		ops = append(ops, x.declareOp(Declaration{Name: "pay", Key: fmt.Sprint(i)}).Operation.ID)
	}
	for _, id := range ops[:5] { // room behind the slice of settled ones
		x.settle(id, OutcomeSucceeded)
	}
	settle := func(id OperationID) *State {
		p, err := x.propose(x.stepWith(func(c *Change) { c.Outcomes = []Settlement{{Operation: id, Outcome: OutcomeFailed}} }))
		if err != nil {
			t.Fatal(err)
		}
		return p.State
	}
	a, b := settle(ops[5]), settle(ops[6])
	if a.Settled[5] != ops[5] || b.Settled[5] != ops[6] {
		t.Error("two futures share their settled operations")
	}
	p, err := x.propose(x.step())
	if err != nil {
		t.Fatal(err)
	}
	snap := *p.State
	snap.Operations = map[OperationID]*Operation{ops[5]: x.s.Operations[ops[5]], ops[6]: x.s.Operations[ops[6]]}
	snap.Settled, snap.Forgotten = nil, make([]byte, 5*8)
	p.Entry.Body.Snapshot, p.Entry.Body.State = &snap, p.State.Data
	s, err := Fold(x.s, p.Entry)
	if err != nil || len(s.Operations) != 2 || len(x.s.Operations) != 7 {
		t.Errorf("%d operations after forgetting, %d before: %v", len(s.Operations), len(x.s.Operations), err)
	}
}

// A recreated execution goes on counting; of artifacts the newest is meant.
func TestFirstVersionAndArtifacts(t *testing.T) {
	t.Parallel()
	x := newScript(t)
	c := created()
	c.FirstVersion = 10
	c.Artifacts = []Artifact{{Name: "a", Digest: "1"}, {Name: "b", Digest: "2"}, {Name: "a", Digest: "3"}, {Name: "c", Digest: "4"}}
	x.do(c)
	if x.s.Version != 10 || x.s.RequestFloor != 10 || x.s.Artifacts[0].Version != 10 {
		t.Errorf("version %d, floor %d", x.s.Version, x.s.RequestFloor)
	}
	if a := x.s.ArtifactNamed("a"); a == nil || a.Digest != "3" || x.s.ArtifactNamed("d") != nil {
		t.Errorf("%+v", a)
	}
	if a := x.s.ArtifactByDigest("2"); a == nil || a.Name != "b" || x.s.ArtifactByDigest("5") != nil {
		t.Errorf("%+v", a)
	}
}
