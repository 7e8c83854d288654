package execution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/jsonx"
)

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat("}", depth-1)
}

// Changes of the agent's state: what comes out, and what is written down.
func TestStateChanges(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	base := `{"list":[1,2,3],"text":"` + long + `","n":1.0}`
	tests := []struct {
		name               string
		state, patch, merg string
		want               string // "" means unchanged
		stored             string // state, patch or nothing
	}{
		{"nothing", "", "", "", "", "nothing"},
		{"whole state, little changed", `{"list":[1,2,3,4],"text":"` + long + `","n":1.0}`, "", "", `{"list":[1,2,3,4],"text":"` + long + `","n":1.0}`, "patch"},
		{"whole state, all changed", `{"a":1}`, "", "", `{"a":1}`, "state"},
		{"whole state, the same", base, "", "", "", "nothing"},
		{"another token of a number", strings.Replace(base, "1.0", "1.00", 1), "", "", strings.Replace(base, "1.0", "1.00", 1), "patch"},
		{"another order of keys", `{"n":1.0,"list":[1,2,3],"text":"` + long + `"}`, "", "", `{"n":1.0,"list":[1,2,3],"text":"` + long + `"}`, "patch or state"},
		{"patch", "", `[{"op":"add","path":"/list/-","value":4}]`, "", `{"list":[1,2,3,4],"text":"` + long + `","n":1.0}`, "patch"},
		{"patch larger than the state", "", `[{"op":"test","path":"/text","value":"` + long + `"},{"op":"remove","path":"/text"},{"op":"add","path":"/m","value":1}]`, "", `{"list":[1,2,3],"n":1.0,"m":1}`, "state"},
		{"empty patch", "", `[]`, "", "", "nothing"},
		{"merge", "", "", `{"n":null,"list":[9]}`, `{"list":[9],"text":"` + long + `"}`, "patch"},
		{"merge of nothing", "", "", `{}`, "", "nothing"},
		{"depth 500", nested(500), "", "", nested(500), "patch or state"},
	}
	for _, tt := range tests {
		x := newScript(t)
		c := created()
		c.State = value(base)
		x.do(c)
		s := x.step()
		if tt.state != "" {
			v, err := jsonx.ParseString(tt.state)
			if err != nil {
				t.Fatal(err)
			}
			s.State = v
		}
		if tt.patch != "" {
			s.Patch = value(tt.patch)
		}
		if tt.merg != "" {
			s.Merge = value(tt.merg)
		}
		p := x.do(s)
		want := tt.want
		if want == "" {
			want = base
		}
		if got := x.s.Data.String(); got != want {
			t.Errorf("%s: got %.200s", tt.name, got)
		}
		stored := "nothing"
		if p.Entry.Body.State != nil {
			stored = "state"
		} else if p.Entry.Body.Patch != nil {
			stored = "patch"
		}
		if !strings.Contains(tt.stored, stored) || p.Entry.Body.StateChanged != (stored != "nothing") {
			t.Errorf("%s: stored as %s (changed %v), want %s", tt.name, stored, p.Entry.Body.StateChanged, tt.stored)
		}
	}
}

func TestStateRefusals(t *testing.T) {
	t.Parallel()
	big := `{"a":"` + strings.Repeat("x", MaxStateBytes-8) + `"}`
	if len(big) != MaxStateBytes {
		t.Fatal(len(big))
	}
	deep, err := jsonx.ParseLimits([]byte(nested(501)), jsonx.Limits{Depth: 600})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(c *Change)
		code   Code
		field  string
		path   string
	}{
		{"no object", func(c *Change) { c.State = value(`[]`) }, InvalidRequest, "state", ""},
		{"patched to no object", func(c *Change) { c.Patch = value(`[{"op":"replace","path":"","value":1}]`) }, InvalidRequest, "state", ""},
		{"merged to no object", func(c *Change) { c.Merge = value(`3`) }, InvalidRequest, "state", ""},
		{"patch that does not fit", func(c *Change) {
			c.Patch = value(`[{"op":"add","path":"/x","value":1},{"op":"remove","path":"/nope"}]`)
		}, InvalidRequest, "patch[1]", "/nope"},
		{"failed test", func(c *Change) { c.Patch = value(`[{"op":"test","path":"/n","value":7}]`) }, InvalidRequest, "patch[0]", "/n"},
		{"patch that is none", func(c *Change) { c.Patch = value(`{"op":"add"}`) }, InvalidRequest, "", ""},
		{"one byte too large", func(c *Change) { c.State = value(strings.Replace(big, "x", "xx", 1)) }, TooLarge, "state", ""},
		{"patched too large", func(c *Change) {
			c.Patch = value(`[{"op":"add","path":"/b","value":"` + strings.Repeat("y", MaxStateBytes) + `"}]`)
		}, TooLarge, "patch", ""},
		{"merged too large", func(c *Change) { c.Merge = value(`{"b":"` + strings.Repeat("y", MaxStateBytes) + `"}`) }, TooLarge, "state", ""},
		{"501 deep", func(c *Change) { c.State = deep }, InvalidRequest, "state", ""},
		{"patched 501 deep", func(c *Change) {
			v, _ := jsonx.ParseLimits([]byte(`[{"op":"add","path":"/x","value":`+nested(500)+`}]`), jsonx.Limits{Depth: 600})
			c.Patch = v
		}, InvalidRequest, "", ""},
	}
	for _, tt := range tests {
		x := own(t)
		before := asJSON(t, x.s)
		e := x.refuse(x.stepWith(tt.change), tt.code)
		if tt.field != "" && e.Facts["field"] != tt.field {
			t.Errorf("%s: field %v", tt.name, e.Facts)
		}
		if tt.path != "" && e.Facts["path"] != tt.path {
			t.Errorf("%s: path %v", tt.name, e.Facts)
		}
		if asJSON(t, x.s) != before {
			t.Errorf("%s: the state was changed", tt.name)
		}
	}
	x := own(t)
	x.do(x.stepWith(func(c *Change) { c.State = value(big) })) // the limit itself
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	spend := func(n string) func(*Change) { return func(c *Change) { c.Spend = map[string]string{"usd": n} } }
	x := own(t)
	x.do(x.stepWith(spend("0.1")))
	x.do(x.stepWith(spend("0.2")))
	if got := x.s.Budgets["usd"].Spent; got != "0.3" {
		t.Fatalf("0.1 + 0.2 = %s", got)
	}
	e := x.refuse(x.stepWith(spend("9.7000000000000000000000000000000000001")), BudgetExceeded)
	if e.Facts["budget"] != "usd" || e.Facts["limit"] != "10" || e.Facts["spent"] != "0.3" {
		t.Errorf("facts %v", e.Facts)
	}
	x.do(x.stepWith(spend("9.7"))) // the limit itself
	x.do(x.stepWith(spend("0")))
	x.refuse(x.stepWith(spend("0.0001")), BudgetExceeded)
	if e := x.refuse(x.stepWith(func(c *Change) { c.Spend = map[string]string{"eur": "1"} }), InvalidRequest); e.Facts["field"] != "spend.eur" {
		t.Errorf("facts %v", e.Facts)
	}
	// Of several refusals always the same one.
	for range 20 {
		e := x.refuse(x.stepWith(func(c *Change) { c.Spend = map[string]string{"b": "1", "a": "1", "c": "1"} }), InvalidRequest)
		if e.Facts["field"] != "spend.a" {
			t.Fatalf("facts %v", e.Facts)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"0": "0", "1e2": "100", "10000000000000000999": "10000000000000000999", "0.10": "0.10", "1E-3": "0.001", "1e100": "1" + strings.Repeat("0", 100), "-0": "-0", "1e-100": "0." + strings.Repeat("0", 99) + "1", strings.Repeat("9", 200): strings.Repeat("9", 200)} {
		if got, err := ParseDecimal("f", in, false); err != nil || got != want {
			t.Errorf("%s: %s %v", in, got, err)
		}
	}
	for _, in := range []string{"1e101", "1e9999", "-1", "NaN", "Infinity", "", "x", "1e-101", strings.Repeat("9", 201)} {
		if _, err := ParseDecimal("f", in, false); CodeOf(err) != InvalidRequest {
			t.Errorf("%s: %v", in, err)
		}
	}
	if got, err := ParseDecimal("f", "-1", true); err != nil || got != "-1" {
		t.Errorf("%s %v", got, err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	labels := func(from, n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("l", from+i)] = "v"
		}
		return m
	}
	x := own(t)
	x.do(x.stepWith(func(c *Change) { c.Labels, c.Subjects = labels(0, 30), []string{"s1", "s1", "s2"} }))
	x.do(x.stepWith(func(c *Change) { c.Labels, c.Subjects = labels(0, 38), []string{"s1"} })) // replaced ones count once
	if len(x.s.Labels) != 38 || len(x.s.Subjects) != 2 {
		t.Fatalf("%d labels, %d subjects", len(x.s.Labels), len(x.s.Subjects))
	}
	x.refuse(x.stepWith(func(c *Change) { c.Subjects = []string{"s3"} }), InvalidRequest)
	x.refuse(x.stepWith(func(c *Change) { c.Labels = labels(38, 1) }), InvalidRequest)
	x.do(x.stepWith(func(c *Change) { c.Labels = map[string]string{"l0": "w"} }))
	if len(x.s.Labels) != 38 || x.s.Labels["l0"] != "w" {
		t.Fatalf("labels %v", x.s.Labels)
	}
	many := created()
	many.Labels = labels(0, 41)
	newScript(t).refuse(many, InvalidRequest)
}

func TestSignalsAreAbsorbedOnce(t *testing.T) {
	t.Parallel()
	x := own(t)
	absorb := func(keys ...string) *Change {
		return x.stepWith(func(c *Change) {
			for _, k := range keys {
				c.Absorb = append(c.Absorb, SignalRef{Name: "doc", Key: k})
			}
		})
	}
	x.do(absorb("a", "b"))
	if e := x.refuse(absorb("c", "a"), InvalidRequest); e.Facts["field"] != "absorb[1]" {
		t.Errorf("facts %v", e.Facts)
	}
	x.refuse(absorb("c", "c"), InvalidRequest)
	full := *x.s
	full.Absorbed = map[string]struct{}{}
	for i := range 2*MaxUnabsorbedSignals - 1 {
		full.Absorbed[SignalKey("many", fmt.Sprint(i))] = struct{}{}
	}
	y := &script{t: t, s: &full, now: x.now}
	y.refuse(absorb("y", "z"), TooLarge)
	y.do(absorb("z")) // the limit itself
	x.do(x.stepWith(func(c *Change) { c.Emptied = []SignalRef{{Name: "doc", Key: "a"}} }))
	if _, a := x.s.Absorbed[SignalKey("doc", "a")]; a || len(x.s.Absorbed) != 1 {
		t.Errorf("absorbed %v", x.s.Absorbed)
	}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay", Args: value(`1`)}).Operation
	complete := func(c *Change) {
		c.Kind, c.Complete = KindCompleted, &Completion{Outcome: StatusCompleted, Result: value(`7`)}
	}
	for _, o := range []Status{StatusCompleted, StatusFailed, StatusCancelled} {
		e := x.refuse(x.stepWith(func(c *Change) { c.Kind, c.Complete = KindCompleted, &Completion{Outcome: o} }), OperationsOpen)
		if ids := e.Facts["operations"].([]string); len(ids) != 1 || ids[0] != string(op.ID) || e.Facts["open"] != 1 {
			t.Errorf("facts %v", e.Facts)
		}
	}
	// Also one that the very same step declares.
	y := own(t)
	y.refuse(y.stepWith(func(c *Change) { complete(c); c.Operations = []Declaration{{Name: "pay"}} }), OperationsOpen)
	if e := x.refuse(x.stepWith(func(c *Change) { c.Kind, c.Wait = KindSuspended, &Wait{Operations: []OperationID{"nope"}} }), InvalidRequest); e.Facts["field"] != "wait.operations" {
		t.Errorf("facts %v", e.Facts)
	}
	x.do(x.stepWith(func(c *Change) { c.Kind, c.Wait = KindSuspended, &Wait{Operations: []OperationID{op.ID}} }))
	if x.s.Status != StatusWaiting || x.s.Owner != "" || x.s.Wait == nil {
		t.Fatalf("%+v", x.s)
	}
	x.do(claim("w2"))
	if x.s.Status != StatusRunning || x.s.Wait != nil {
		t.Fatalf("%+v", x.s)
	}
	// Settled in the step that ends.
	x.do(x.stepWith(func(c *Change) { complete(c); c.Outcomes = []Settlement{{Operation: op.ID, Outcome: OutcomeSucceeded}} }))
	if x.s.Status != StatusCompleted || x.s.EndedAt == 0 || x.s.Completion.Result.String() != "7" || x.s.Open != 0 {
		t.Fatalf("%+v", x.s)
	}
}

func TestOpenOperationsAreBounded(t *testing.T) {
	t.Parallel()
	x := own(t)
	ops := make([]Declaration, MaxOpenOperations)
	for i := range ops {
		ops[i] = Declaration{Name: "op", Key: fmt.Sprint(i)}
	}
	x.do(x.stepWith(func(c *Change) { c.Operations = ops }))
	x.refuse(x.stepWith(func(c *Change) { c.Operations = []Declaration{{Name: "op", Key: "more"}} }), TooLarge)
	e := x.refuse(x.stepWith(func(c *Change) { c.Kind, c.Complete = KindCompleted, &Completion{Outcome: StatusFailed} }), OperationsOpen)
	if len(e.Facts["operations"].([]string)) != 50 || e.Facts["open"] != MaxOpenOperations {
		t.Errorf("%v named, %v open", len(e.Facts["operations"].([]string)), e.Facts["open"])
	}
}

// Claims: whose turn it is, by the store's clock.
func TestClaims(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		after  int64 // ms since the owner's last entry
		head   int64 // the head's expiry, relative to that entry; 0: none read
		change func(r *ClaimRequest)
		ok     bool
		wait   int64
	}{
		{"live by its own entry", 59_999, 0, nil, false, 1},
		{"lapsed", 60_000, 0, nil, true, 0},
		{"live by a renewal", 60_000, 75_000, nil, false, 15_000},
		{"the head lags behind the tip", 59_999, 1, nil, false, 1},
		{"lapsed by both", 75_000, 75_000, nil, true, 0},
		{"same owner, no supersede", 1, 0, func(r *ClaimRequest) { r.Owner = "w1" }, false, 59_999},
		{"lapsed, the same owner", 60_000, 0, func(r *ClaimRequest) { r.Owner = "w1" }, true, 0},
		{"lapsed, another would supersede", 60_000, 0, func(r *ClaimRequest) { r.Supersede = true }, true, 0},
		{"same owner supersedes itself", 1, 0, func(r *ClaimRequest) { r.Owner, r.Supersede = "w1", true }, true, 0},
		{"another does not", 1, 0, func(r *ClaimRequest) { r.Supersede = true }, false, 59_999},
		{"force", 1, 0, func(r *ClaimRequest) { r.Force = "operator" }, true, 0},
	}
	for _, tt := range tests {
		x := own(t)
		fence, tip := x.s.Fence, x.s.TipAt
		x.now = tip + tt.after
		c := claim("w2")
		if tt.head != 0 {
			c.Claim.HeadExpiry = tip + tt.head
		}
		if tt.change != nil {
			tt.change(c.Claim)
		}
		if !tt.ok {
			if e := x.refuse(c, LeaseHeld); e.Facts["retry_after_ms"] != tt.wait || e.Facts["owner"] != "w1" {
				t.Errorf("%s: %v", tt.name, e.Facts)
			}
			continue
		}
		p := x.do(c)
		if x.s.Fence <= fence || x.s.Fence != x.s.Version || x.s.Owner != c.Claim.Owner || p.Entry.Fence != x.s.Fence {
			t.Errorf("%s: fence %d -> %d, owner %s", tt.name, fence, x.s.Fence, x.s.Owner)
		}
		if sup := p.Entry.Body.Claim.Superseded; sup != (c.Claim.Supersede && c.Claim.Owner == "w1") {
			t.Errorf("%s: superseded %v", tt.name, sup)
		}
	}
	// A verdict is no progress of the owner; its own entries are.
	x := own(t)
	op := x.declareOp(Declaration{Name: "pay"}).Operation
	tip := x.s.TipAt
	x.now = tip + 30_000
	x.do(&Change{Kind: KindVerdict, System: true, Evidence: []Evidence{{Operation: op.ID, Finding: Decided, Outcome: OutcomeFailed, Reason: "r"}}})
	if x.s.TipByOwner || x.s.LeaseEnd(tip+60_000) != tip+60_000 {
		t.Errorf("a verdict renewed the lease")
	}
}

// Force never overrides halted; nothing overrides an end.
func TestForceIsNoMasterKey(t *testing.T) {
	t.Parallel()
	for name, x := range standings(t) {
		c := claim("w9")
		c.Claim.Force, c.Claim.Supersede = "operator", true
		_, err := x.propose(c)
		want := map[string]Code{"halted": Halted, "completed": ExecutionClosed, "failed": ExecutionClosed, "cancelled": ExecutionClosed, "archived": ExecutionClosed,
			"moved": ExecutionClosed, "deleting": Deleted, "unknown": Integrity}[name]
		if CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A hand-over's target claims at a version only: a late one takes nothing.
func TestClaimAtAVersion(t *testing.T) {
	t.Parallel()
	x := standings(t)["waiting"]
	at := x.s.Version
	late := claim("late")
	late.Expected = at - 1
	x.refuse(late, VersionConflict)
	late.Expected = at
	x.do(late)
	x.refuse(late, VersionConflict)
}

// A restored table with a higher epoch outranks every older fence; one with a
// lower epoch is refused.
func TestEpochs(t *testing.T) {
	t.Parallel()
	x := own(t)
	old := x.s.Fence
	x.env.Epoch = 3
	c := claim("w2")
	c.Claim.Force = "r"
	x.do(c)
	if x.s.Fence != 3<<40+x.s.Version || x.s.Fence <= old {
		t.Fatalf("fence %d", x.s.Fence)
	}
	x.env.Epoch = 2
	x.refuse(c, Integrity)
	// Nor may it be given a second time.
	y := own(t)
	y.s.Fence = y.s.Version + 1
	again := claim("w2")
	again.Claim.Force = "r"
	y.refuse(again, Integrity)
	if got := new(State).LeaseEnd(t0); got != 0 {
		t.Errorf("nobody's lease ends at %d", got)
	}
}

func TestHandoversAreCountedUntilProgress(t *testing.T) {
	t.Parallel()
	x := own(t)
	for n := range int64(3) {
		x.now += 100_000
		c := claim("w")
		c.Handovers = 1
		x.do(c)
		if x.s.Handovers != n+1 {
			t.Fatalf("%d hand-overs, want %d", x.s.Handovers, n+1)
		}
	}
	x.do(x.step())
	if x.s.Handovers != 0 {
		t.Errorf("%d hand-overs after progress", x.s.Handovers)
	}
	// Giving it up in order is progress too: an agent that polls is no crash loop.
	c := claim("w")
	c.Handovers, c.Claim.Force = 1, "r"
	x.do(c)
	x.do(x.stepWith(func(c *Change) { c.Kind, c.Continue = KindContinued, &Continue{AfterSeconds: 60} }))
	if x.s.Handovers != 0 {
		t.Errorf("%d hand-overs after continue", x.s.Handovers)
	}
}
