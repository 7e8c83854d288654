package execution

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/jsonx"
)

var updateGolden = flag.Bool("new-format", false, "write golden files that are missing")

// goldenEntries has one entry of every kind, with fixed inputs that fill in
// every field of its body.
func goldenEntries(t testing.TB) map[Kind]*Entry {
	x := newScript(t)
	c := created()
	c.Created = &Creation{Thread: "case-7", Workflow: "wf", Schema: Schema{Name: "s", Version: 1}, Input: value(`{"amount":1.50,"z":null}`), Policy: "p", Budgets: map[string]string{"usd": "10"},
		Parent: &Parent{Execution: "up", Generation: 4, Operation: "0123", Attempt: 2}}
	c.Actor, c.Labels, c.Subjects = &Actor{Kind: "human", ID: "ann", Via: "ui", Verified: true}, map[string]string{"b": "2", "a": "1"}, []string{"cust-9"}
	c.Permissions, c.Note = &Permissions{Principal: "p", Scopes: []string{"read"}, ExpiresAt: t0, Ref: "r"}, "n"
	x.do(c)
	cl := claim("w1")
	cl.Request, cl.Claim.Nonce, cl.Claim.Resume = request("nonce", ""), request("nonce", "").Hash, value(`null`)
	x.do(cl)
	x.do(x.stepWith(func(c *Change) {
		c.Request, c.Task, c.Patch = request("r1", "1"), "t1", value(`[{"op":"replace","path":"/n","value":10000000000000000999}]`)
		c.Operations = []Declaration{{Name: "pay", Key: "k", Args: value(`{"iban":"\u00e9\u0000\ud800"}`), OnUncertain: SameKey, DedupSeconds: 3600, DeadlineSeconds: 5, Resolver: "bank"},
			{Name: "mail", Args: value(`[]`), OnUncertain: Close, ValidSeconds: 9}}
		c.Artifacts = []Artifact{{Digest: strings.Repeat("ab", 32), Bytes: 9, Name: "a.pdf", MediaType: "application/pdf"}}
		c.Spend, c.Absorb = map[string]string{"usd": "0.1"}, []SignalRef{{Name: "doc", Key: "1", Actor: &Actor{Kind: "tool", ID: "x"}, At: t0}}
	}))
	pay, mail := x.s.OperationsInOrder()[0].ID, x.s.OperationsInOrder()[1].ID
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Checks = KindReconciled, []Check{{Operation: pay, At: t0, Next: t0 + 1, Finding: InProgress, Detail: "d"}}
		c.Evidence = []Evidence{{Operation: pay, Finding: Several, Source: FromResolver, AskedAt: t0, Count: 2, ProviderRef: "p", Reason: "d", Reference: "e", Actor: &Actor{Kind: "system", ID: "s"}},
			{Operation: mail, Finding: Found, Outcome: OutcomeSucceeded, Source: FromLedger, Result: value(`null`), ProviderRef: "m-1"}}
		c.Emptied = []SignalRef{{Name: "doc", Key: "1"}}
	}))
	x.do(&Change{Kind: KindVerdict, System: true, Evidence: []Evidence{{Operation: pay, Finding: Decided, Outcome: OutcomeNotExecuted, Reason: "seen", Reference: "T-1", Force: true, Actor: &Actor{Kind: "human", ID: "ann"}}}})
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Schema, c.Renamed, c.Request = KindMigrated, &Schema{Name: "s", Version: 2}, []Rename{{From: "pay", To: "charge"}}, request("", "m")
		c.State = value(`{"new":true}`)
	}))
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Wait = KindSuspended, &Wait{Operations: []OperationID{pay}, Signals: []string{"doc"}, Until: t0, WaitingFor: value(`null`), TaskToken: "token"}
	}))
	x.do(&Change{Kind: KindParked, System: true, Parked: []Reason{{Code: "uncertain", Operation: pay, Name: "charge", Detail: "d"}}})
	x.do(&Change{Kind: KindHalted, System: true, Reason: "stop"})
	x.do(&Change{Kind: KindUnhalted, System: true, Reason: "go"})
	cl2 := claim("w2")
	cl2.Claim.Force, cl2.Handovers = "late", 2
	x.do(cl2)
	x.do(x.stepWith(func(c *Change) { c.Kind, c.Continue = KindContinued, &Continue{AfterSeconds: 7} }))
	x.do(claim("w3"))
	x.do(x.stepWith(func(c *Change) {
		c.Kind, c.Complete = KindCompleted, &Completion{Outcome: StatusFailed, Result: value(`null`), Error: value(`{"why":1e2}`)}
	}))
	x.do(&Change{Kind: KindArchived, System: true, Bundle: &Bundle{Key: "b", Digest: "d", Bytes: 1, Version: 3}})
	p := x.do(&Change{Kind: KindRestored, System: true, Bundle: &Bundle{Key: "b", Digest: "d", Bytes: 1, Version: 3}})
	snap, _ := SnapshotOf(x.s)
	snap.Handovers = 2
	p.Entry.Body.Snapshot, p.Entry.Body.State = snap, x.s.Data
	x.do(&Change{Kind: KindDeleted, System: true, Reason: "why"})
	y := own(t)
	y.do(&Change{Kind: KindMoved, System: true, MovedTo: "child"})
	out := map[Kind]*Entry{KindMoved: y.log[2]}
	for _, e := range x.log {
		if out[e.Kind] == nil {
			out[e.Kind] = e
		}
	}
	// A fork that carries, beside the plain creation.
	z := newScript(t)
	f := created()
	f.Created.IdentityRoot, f.Created.Operations, f.Created.Forgotten = &Ref{Tenant: "acme", Execution: "up", Generation: 4}, x.s.OperationsInOrder(), []byte("12345678")
	f.Created.ForkedFrom = &ForkPoint{Execution: "up", Generation: 4, Version: 9, Carry: true}
	z.do(f)
	out["created-fork"] = z.log[0]
	return out
}

// What lies in tables must stay readable for ever: a change of these bytes
// needs a new format version, not new golden files.
func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	entries := goldenEntries(t)
	kinds := []Kind{KindCreated, "created-fork", KindCheckpoint, KindClaimed, KindSuspended, KindContinued, KindCompleted, KindParked, KindHalted, KindUnhalted, KindVerdict, KindReconciled,
		KindMigrated, KindMoved, KindArchived, KindRestored, KindDeleted}
	for _, k := range kinds {
		e := entries[k]
		if e == nil {
			t.Fatalf("no entry of kind %s", k)
		}
		got, err := EncodeBody(&e.Body)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "body-1", string(k)+".hex")
		want, err := os.ReadFile(file)
		if os.IsNotExist(err) && *updateGolden {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(hex.Dump(got)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if hex.Dump(got) != string(want) {
			t.Errorf("%s: the stored form changed; a new form needs a new format version and must leave version %d readable\n%q", k, bodyFormat, got)
		}
		stored := undump(t, string(want))
		b, err := DecodeBody(stored)
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		back, err := EncodeBody(b)
		if err != nil || !bytes.Equal(back, stored) {
			t.Errorf("%s does not come back: %v\n%s\n%s", k, err, stored, back)
		}
	}
}

func undump(t *testing.T, s string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(s) {
		if len(line) < 60 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// A recorded null is not an absent value, wherever agent data stand.
func TestExplicitNulls(t *testing.T) {
	t.Parallel()
	null := value(`null`)
	for _, on := range []bool{false, true} {
		v := (*jsonx.Value)(nil)
		if on {
			v = null
		}
		b := &Body{Created: &Creation{Input: v}, Claim: &Claim{Owner: "w", Resume: v}, Wait: &Wait{WaitingFor: v}, Complete: &Completion{Result: v, Error: v},
			Outcomes: []Settlement{{Result: v}}, Evidence: []Evidence{{Result: v}}, Declared: []Declared{{Operation: &Operation{Args: v, Result: v}}},
			Snapshot: &State{Input: v, Resume: v, Operations: map[OperationID]*Operation{"o": {ID: "o", Args: v, Result: v}}, Wait: &Wait{WaitingFor: v}, Completion: &Completion{Result: v, Error: v}}}
		p, err := EncodeBody(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBody(p)
		if err != nil {
			t.Fatal(err)
		}
		o, s := got.Declared[0].Operation, got.Snapshot
		for name, g := range map[string]*jsonx.Value{"input": got.Created.Input, "resume": got.Claim.Resume, "waiting_for": got.Wait.WaitingFor, "result": got.Complete.Result, "error": got.Complete.Error,
			"outcome": got.Outcomes[0].Result, "evidence": got.Evidence[0].Result, "args": o.Args, "operation's result": o.Result, "snapshot input": s.Input, "snapshot resume": s.Resume,
			"snapshot args": s.Operations["o"].Args, "snapshot result": s.Operations["o"].Result, "snapshot wait": s.Wait.WaitingFor, "snapshot end": s.Completion.Result} {
			if (g != nil) != on {
				t.Errorf("%s: %v, want null: %v", name, g, on)
			}
		}
	}
	// A null inside agent data, beside an absent one.
	p, _ := EncodeBody(&Body{Complete: &Completion{Result: value(`{"e":null,"r":null}`)}})
	if got, err := DecodeBody(p); err != nil || got.Complete.Error != nil || got.Complete.Result.String() != `{"e":null,"r":null}` {
		t.Errorf("%+v %v", got.Complete, err)
	}
}

func TestDecodeBodyRefuses(t *testing.T) {
	t.Parallel()
	body := func(kind byte, control, text string) []byte {
		b := []byte{1, kind, byte(len(control))}
		return append(append(b, control...), text...)
	}
	tests := map[string]struct {
		p    []byte
		code Code
	}{
		"good":                   {body(0, `{"n":"x"}`, ""), ""},
		"good state":             {body(1, `{}`, `{"a":1}`), ""},
		"empty":                  {nil, Integrity},
		"cut":                    {body(0, `{"n":"x"}`, "")[:8], Integrity},
		"no record":              {[]byte{1, 0, 0}, Integrity},
		"no length":              {[]byte{1, 0, 128}, Integrity},
		"length of eleven bytes": {append([]byte{1, 0}, bytes.Repeat([]byte{255}, 12)...), Integrity},
		"bad syntax":             {body(0, `{"n":x}`, ""), Integrity},
		"length beyond the end":  {[]byte{1, 0, 200, 200, 200}, Integrity},
		"newer format":           {append([]byte{2}, body(0, `{}`, "")[1:]...), SchemaTooNew},
		"newer field":            {body(0, `{"future":1}`, ""), SchemaTooNew},
		"newer field, nested":    {body(0, `{"cl":{"o":"w","l":1,"future":1}}`, ""), SchemaTooNew},
		"newer field, snapshot":  {body(0, `{"ss":{"v":1,"future":1}}`, ""), SchemaTooNew},
		"newer type":             {body(0, `{"n":{"text":"x"}}`, ""), SchemaTooNew},
		"newer text kind":        {body(3, `{}`, `{}`), SchemaTooNew},
		"no JSON":                {body(0, `{"n":`, ""), Integrity},
		"two records":            {body(0, `{}{}`, ""), Integrity},
		"text without kind":      {body(0, `{}`, `{}`), SchemaTooNew},
		"kind without text":      {body(1, `{}`, ``), Integrity},
		"text is no JSON":        {body(1, `{}`, `{"a":}`), Integrity},
		"duplicate key":          {body(1, `{}`, `{"a":1,"a":2}`), Integrity},
		"duplicate key in agent": {body(0, `{"cl":{"o":"w","l":1,"r":{"a":1,"a":2}}}`, ""), Integrity},
		"wrong digest":           {body(0, `{"cl":{"o":"w","l":1,"nh":"AA"}}`, ""), Integrity},
	}
	for name, tt := range tests {
		if _, err := DecodeBody(tt.p); CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
	}
}

// Any bytes: an error or a body, which folds or is refused, and comes back.
func FuzzDecodeBody(f *testing.F) {
	for _, e := range goldenEntries(f) {
		b, err := EncodeBody(&e.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, string(e.Kind))
	}
	f.Add([]byte("\x01\x00\x02{}"), "checkpoint")
	x := own(f)
	f.Fuzz(func(t *testing.T, p []byte, kind string) {
		b, err := DecodeBody(p)
		if err != nil {
			return
		}
		again, err := EncodeBody(b)
		if err != nil {
			t.Fatal(err)
		}
		c, err := DecodeBody(again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if twice, _ := EncodeBody(c); !bytes.Equal(again, twice) {
			t.Fatalf("encoding is not stable:\n%s\n%s", again, twice)
		}
		for _, base := range []*State{nil, x.s} {
			e := &Entry{Version: 1, Kind: Kind(kind), Generation: testRef.Generation, Fence: 2, Body: *b}
			if base != nil {
				e.Version = base.Version + 1
			}
			s, err := Fold(base, e)
			if err != nil {
				continue
			}
			// Whatever came out can be written down, extended and asked.
			if _, err := json.Marshal(s); err != nil {
				t.Fatal(err)
			}
			SnapshotOf(s)
			s.OpenOperations()
			if p, err := Propose(s, s.Ref, &Change{Kind: KindCheckpoint, System: true, Merge: value(`{"x":1}`), Spend: map[string]string{"usd": "1"}}, Environment{Now: t0}); err == nil && p.Replay == nil {
				if _, err := Fold(s, p.Entry); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// An agent's tokens stay as they are, wherever they stand in a body.
func TestBodiesKeepTokens(t *testing.T) {
	t.Parallel()
	v := value(`{"<a>":"&\u2028","n":1.0e0}`)
	b := &Body{Note: "<&>", Outcomes: []Settlement{{Operation: "op", Outcome: OutcomeSucceeded, Result: v}}, State: v}
	p, err := EncodeBody(b)
	if err != nil || !bytes.Contains(p, []byte("<&>")) {
		t.Fatalf("%s %v", p, err)
	}
	got, err := DecodeBody(p)
	if err != nil || got.Outcomes[0].Result.String() != v.String() || got.State.String() != v.String() || got.Note != "<&>" {
		t.Errorf("%+v %v", got, err)
	}
}
