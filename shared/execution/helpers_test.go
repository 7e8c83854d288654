package execution

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/cairnstate/cairn/shared/jsonx"
)

var testRef = Ref{Tenant: "acme", Execution: "order-1", Generation: 1_700_000_000_000}

const t0 = int64(1_700_000_000_000)

// script drives one execution through Propose.
type script struct {
	t   fataler
	s   *State
	now int64
	log []*Entry
	env Environment
}

func newScript(t testing.TB) *script { return &script{t: t, now: t0} }

func request(id, content string) RequestID {
	r := RequestID{ID: id}
	if id != "" {
		h := sha256.Sum256([]byte(id))
		r.Hash = RequestHash(h[:16])
	}
	d := sha256.Sum256([]byte("content " + content))
	r.Digest = ContentDigest(d[:16])
	return r
}

func value(s string) *jsonx.Value { return jsonx.MustParse(s) }

// propose tries a change without taking it over.
func (x *script) propose(c *Change) (*Proposal, error) {
	x.env.Now = x.now
	return Propose(x.s, testRef, c, x.env)
}

// do takes a change over; it must be accepted.
func (x *script) do(c *Change) *Proposal {
	x.t.Helper()
	p, err := x.propose(c)
	if err != nil {
		x.t.Fatalf("%s at version %d: %v", c.Kind, x.version(), err)
	}
	if p.Replay != nil {
		x.t.Fatalf("%s at version %d: a replay of %d", c.Kind, x.version(), p.Replay.Version)
	}
	x.s = p.State
	x.log = append(x.log, p.Entry)
	x.now += 1000
	return p
}

func (x *script) version() int64 {
	if x.s == nil {
		return 0
	}
	return x.s.Version
}

// refuse holds an answer against a code.
func (x *script) refuse(c *Change, code Code) *Error {
	x.t.Helper()
	p, err := x.propose(c)
	if err == nil {
		x.t.Fatalf("%s was accepted (replay %v), want %s", c.Kind, p.Replay, code)
	}
	if CodeOf(err) != code {
		x.t.Fatalf("got %v, want %s", err, code)
	}
	return AsError(err)
}

func created() *Change {
	return &Change{Kind: KindCreated, Request: request("create", ""), Created: &Creation{Workflow: "wf", Budgets: map[string]string{"usd": "10"}}, State: value(`{"n":0}`)}
}

func claim(owner string) *Change {
	return &Change{Kind: KindClaimed, Claim: &ClaimRequest{Owner: owner, LeaseSeconds: 60}}
}

// own creates and claims.
func own(t testing.TB) *script {
	x := newScript(t)
	x.do(created())
	x.do(claim("w1"))
	return x
}

// step is an owner's apply at the tip.
func (x *script) step() *Change {
	return &Change{Kind: KindCheckpoint, Expected: x.s.Version, Fence: x.s.Fence, HasFence: x.s.Fence > 0}
}

func (x *script) stepWith(f func(c *Change)) *Change {
	c := x.step()
	f(c)
	return c
}

// asJSON is everything of a state, for comparison.
func asJSON(t fataler, s *State) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Data != nil {
		b = append(append(b, '\n'), s.Data.Bytes()...)
	}
	return string(b)
}

// declareOp declares one operation and gives it.
func (x *script) declareOp(d Declaration) Given {
	x.t.Helper()
	return x.do(x.stepWith(func(c *Change) { c.Operations = []Declaration{d} })).Given[0]
}

func (x *script) settle(id OperationID, o Outcome) {
	x.t.Helper()
	if slotBound(o) {
		x.do(x.stepWith(func(c *Change) {
			c.Kind = KindReconciled
			c.Evidence = []Evidence{{Operation: id, Finding: Decided, Outcome: o, Force: true, Reason: "r"}}
		}))
		return
	}
	x.do(x.stepWith(func(c *Change) { c.Outcomes = []Settlement{{Operation: id, Outcome: o}} }))
}
