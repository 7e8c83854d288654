package execution

import (
	"testing"
)

// executions in every standing that a writer can meet.
func standings(t testing.TB) map[string]*script {
	end := func(x *script, o Status) *script {
		x.do(x.stepWith(func(c *Change) { c.Kind, c.Complete = KindCompleted, &Completion{Outcome: o} }))
		return x
	}
	sys := func(x *script, k Kind) *script {
		x.do(&Change{Kind: k, System: true, Parked: []Reason{{Code: "uncertain"}}, MovedTo: "child", Bundle: &Bundle{Key: "k"}})
		return x
	}
	out := map[string]*script{"created": newScript(t), "owned": own(t), "completed": end(own(t), StatusCompleted), "failed": end(own(t), StatusFailed), "cancelled": end(own(t), StatusCancelled)}
	out["created"].do(created())
	w := own(t)
	w.do(w.stepWith(func(c *Change) { c.Kind, c.Wait = KindSuspended, &Wait{Signals: []string{"go"}} }))
	out["waiting"] = w
	k := own(t)
	k.do(k.stepWith(func(c *Change) { c.Kind, c.Continue = KindContinued, &Continue{} }))
	out["continued"] = k
	out["parked"], out["halted"], out["moved"], out["deleting"] = sys(own(t), KindParked), sys(own(t), KindHalted), sys(own(t), KindMoved), sys(own(t), KindDeleted)
	out["archived"] = sys(end(own(t), StatusCompleted), KindArchived)
	odd := own(t)
	odd.s.Status = "dreaming"
	out["unknown"] = odd
	return out
}

// Who may write: standing x what the caller shows.
func TestWhoMayWrite(t *testing.T) {
	t.Parallel()
	const ok = Code("")
	type row struct{ current, none, stale, foreign, system, claimed Code }
	closedRow := row{ExecutionClosed, ExecutionClosed, ExecutionClosed, ExecutionClosed, ExecutionClosed, ExecutionClosed}
	lost := row{LeaseLost, InvalidRequest, LeaseLost, LeaseLost, ok, ok}
	want := map[string]row{
		"created":   {ok, ok, LeaseLost, LeaseLost, ok, ok}, // never claimed: there is no fence to show
		"owned":     {ok, InvalidRequest, LeaseLost, LeaseLost, ok, LeaseHeld},
		"waiting":   lost,
		"continued": lost,
		"parked":    lost,
		"halted":    {Halted, Halted, Halted, Halted, ok, Halted},
		"completed": closedRow, "failed": closedRow, "cancelled": closedRow, "moved": closedRow, "archived": closedRow,
		"deleting": {Deleted, Deleted, Deleted, Deleted, Deleted, Deleted},
		"unknown":  {Integrity, Integrity, Integrity, Integrity, Integrity, Integrity},
	}
	for name, x := range standings(t) {
		w := want[name]
		check := func(what string, code Code, c *Change) {
			t.Helper()
			before := asJSON(t, x.s)
			p, err := x.propose(c)
			if CodeOf(err) != code {
				t.Errorf("%s, %s: got %v, want %q", name, what, err, code)
			}
			if err == nil && (p.Entry.Version != x.s.Version+1 || p.State.Version != x.s.Version+1) {
				t.Errorf("%s, %s: version %d", name, what, p.Entry.Version)
			}
			if err != nil {
				f := AsError(err).Facts
				if f["version"] != x.s.Version || f["status"] != string(x.s.Status) || f["execution"] != string(testRef.Execution) {
					t.Errorf("%s, %s: the error does not say where the execution stands: %v", name, what, f)
				}
				if _, fenced := f["fence"]; fenced != (x.s.Fence > 0) {
					t.Errorf("%s, %s: a fence of nobody: %v", name, what, f)
				}
			}
			if asJSON(t, x.s) != before {
				t.Errorf("%s, %s: the state was changed", name, what)
			}
			// Admit says the same before anything is read.
			if _, aerr := Admit(x.s, c, x.env); c.Kind != KindClaimed && CodeOf(aerr) != code {
				t.Errorf("%s, %s: Admit: got %v, want %q", name, what, aerr, code)
			}
		}
		at := func(f func(c *Change)) *Change {
			c := &Change{Kind: KindCheckpoint, Expected: x.s.Version, Patch: value(`[{"op":"add","path":"/x","value":1}]`)}
			f(c)
			return c
		}
		check("current fence", w.current, at(func(c *Change) { c.Fence, c.HasFence = x.s.Fence, x.s.Fence > 0 }))
		check("no fence", w.none, at(func(c *Change) {}))
		check("stale fence", w.stale, at(func(c *Change) { c.Fence, c.HasFence = x.s.Fence-1, true }))
		check("foreign fence", w.foreign, at(func(c *Change) { c.Fence, c.HasFence = 7<<40+3, true }))
		check("system", w.system, at(func(c *Change) { c.System = true }))
		check("claim", w.claimed, claim("w2"))
		// A stale fence is LeaseLost, never VersionConflict, whatever version is expected.
		if name == "owned" {
			for _, v := range []int64{1, x.s.Version, x.s.Version + 9} {
				check("stale fence, other version", LeaseLost, at(func(c *Change) { c.Expected, c.Fence, c.HasFence = v, 1<<39, true }))
			}
			check("old version", VersionConflict, at(func(c *Change) { c.Expected, c.Fence, c.HasFence = 1, x.s.Fence, true }))
			check("beyond the tip", Integrity, at(func(c *Change) { c.Expected, c.Fence, c.HasFence = x.s.Version+1, x.s.Fence, true }))
		}
		// What ended may still be archived and removed.
		if w == closedRow {
			check("delete", ok, &Change{Kind: KindDeleted, System: true})
			check("archive", ok, &Change{Kind: KindArchived, System: true, Bundle: &Bundle{}})
		}
	}
}

func TestMovedNamesTheChild(t *testing.T) {
	t.Parallel()
	x := standings(t)["moved"]
	if e := x.refuse(x.step(), ExecutionClosed); e.Facts["moved_to"] != "child" {
		t.Errorf("facts %v", e.Facts)
	}
}

func TestHaltKeepsWhereItCameFrom(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"created", "owned", "waiting", "parked", "continued"} {
		x := standings(t)[name]
		was := x.s.Status
		x.do(&Change{Kind: KindHalted, System: true, Reason: "stop"})
		if x.s.Owner != "" || x.s.Status != StatusHalted || x.s.HaltReason != "stop" {
			t.Errorf("%s: %+v", name, x.s)
		}
		x.do(&Change{Kind: KindHalted, System: true, Reason: "stop again"})
		x.do(&Change{Kind: KindUnhalted, System: true, Expected: x.s.Version})
		if x.s.Status != was || x.s.HaltReason != "" {
			t.Errorf("%s: %s after unhalt", name, x.s.Status)
		}
	}
}

func TestArchiveAndRestoreKeepTheEnd(t *testing.T) {
	t.Parallel()
	x := standings(t)["archived"]
	if x.s.Status != StatusArchived || x.s.Before != StatusCompleted {
		t.Fatalf("%s before %s", x.s.Status, x.s.Before)
	}
	x.do(&Change{Kind: KindRestored, System: true, Bundle: &Bundle{Key: "k"}})
	if x.s.Status != StatusCompleted || x.s.Before != "" || x.s.Bundle.Key != "k" {
		t.Errorf("%+v", x.s)
	}
}

// A repeat of a request.
func TestReplay(t *testing.T) {
	t.Parallel()
	x := own(t)
	first := x.stepWith(func(c *Change) { c.Request, c.Merge = request("a", "1"), value(`{"a":1}`) })
	x.do(first)
	done := x.s.Version
	plain := x.stepWith(func(c *Change) { c.Request, c.Merge = request("", "2"), value(`{"b":1}`) })
	x.do(plain)
	x.do(x.stepWith(func(c *Change) { c.Merge = value(`{"c":1}`) }))

	replayed := func(what string, c *Change, v int64) {
		t.Helper()
		p, err := x.propose(c)
		if err != nil || p.Replay == nil || p.Replay.Version != v || p.Entry != nil || p.State != nil {
			t.Errorf("%s: %+v %v", what, p, err)
		}
		if m, err := Admit(x.s, c, x.env); err != nil || m == nil || m.Version != v {
			t.Errorf("%s: Admit: %+v %v", what, m, err)
		}
	}
	replayed("at its own version", first, done)
	rebased := *first
	rebased.Expected, rebased.First = x.s.Version, first.Expected
	replayed("rebased", &rebased, done)
	stale := *first
	stale.Fence = 1 << 41
	replayed("under another fence", &stale, done) // fence is no content
	replayed("by content alone", plain, done+1)

	other := *first
	other.Request = request("a", "other")
	if e := x.refuse(&other, RequestMismatch); e.Facts["done_at"] != done {
		t.Errorf("facts %v", e.Facts)
	}
	if _, err := Admit(x.s, &other, x.env); CodeOf(err) != RequestMismatch {
		t.Errorf("Admit: %v", err)
	}
	changed := *plain
	changed.Request = request("", "other") // at its version, but not its content
	x.refuse(&changed, VersionConflict)
	anonymous := *first
	anonymous.Request = request("", "1") // the content of one that has a name
	x.refuse(&anonymous, VersionConflict)
	elsewhere := *plain
	elsewhere.Expected = plain.Expected - 1 // content alone is an identity at its version only
	x.refuse(&elsewhere, VersionConflict)
	x.do(x.stepWith(func(c *Change) { c.Kind, c.Complete = KindCompleted, &Completion{Outcome: StatusCompleted} }))
	replayed("after the end", first, done)
	stale.Request = request("b", "x")
	x.refuse(&stale, ExecutionClosed)

	// Without a version content is no identity; a hash alone is one.
	y := newScript(t)
	c := created()
	c.Request = request("", "create")
	y.do(c)
	y.do(&Change{Kind: KindHalted, System: true, Request: request("", "create")})
	hash := &Change{Kind: KindHalted, System: true, Request: RequestID{Hash: request("h", "").Hash}}
	y.do(hash)
	if p, err := y.propose(hash); err != nil || p.Replay == nil || p.Replay.Version != y.s.Version {
		t.Errorf("a hash without content: %+v %v", p, err)
	}
}

// Where the memory no longer reaches, nobody may think that it was not done.
func TestForgottenRequests(t *testing.T) {
	t.Parallel()
	x := own(t)
	first := x.stepWith(func(c *Change) { c.Request = request("first", "") })
	x.do(first)
	content := x.stepWith(func(c *Change) { c.Request = request("", "content") })
	x.do(content)
	for i := range MaxRequestMemory {
		x.do(x.stepWith(func(c *Change) { c.Request = request("r"+string(rune('0'+i%10))+string(rune('a'+i/10)), "") }))
	}
	if len(x.s.Requests) != MaxRequestMemory || x.s.RequestFloor != content.Expected+2 {
		t.Fatalf("%d remembered, floor %d", len(x.s.Requests), x.s.RequestFloor)
	}
	if e := x.refuse(first, RequestForgotten); e.Facts["remembered_from"] != x.s.RequestFloor {
		t.Errorf("facts %v", e.Facts)
	}
	x.refuse(content, RequestForgotten)
	rebased := *first
	rebased.Expected = x.s.Version
	rebased.First = first.Expected
	x.refuse(&rebased, RequestForgotten)
	// One that was never aimed below the floor is simply late, or new.
	fresh := *first
	fresh.Request = request("new", "")
	fresh.Expected = x.s.RequestFloor - 1
	x.refuse(&fresh, VersionConflict)
	fresh.Expected = x.s.Version
	x.do(&fresh)
	hash := *first
	hash.Request.Digest = ContentDigest{}
	x.refuse(&hash, RequestForgotten)
	x.do(&Change{Kind: KindVerdict, System: true, Request: request("system", "")}) // aimed at no version
	// Without any identity there is nothing to remember.
	x.refuse(&Change{Kind: KindCheckpoint, Expected: 2, Fence: x.s.Fence, HasFence: true}, VersionConflict)
}

// A claim is known by its nonce as long as its fence is current, however much
// the owner wrote since.
func TestClaimIsRememberedByItsNonce(t *testing.T) {
	t.Parallel()
	x := newScript(t)
	x.do(created())
	r := request("nonce", "claim")
	c := claim("w1")
	c.Request, c.Claim.Nonce = r, r.Hash
	x.do(c)
	at := x.s.Version
	other := *c
	other.Request.Digest = request("nonce", "other claim").Digest
	x.refuse(&other, RequestMismatch)
	for i := range MaxRequestMemory + 5 {
		x.do(x.stepWith(func(c *Change) { c.Request = request("q"+string(rune('!'+i)), "") }))
	}
	p, err := x.propose(c)
	if err != nil || p.Replay == nil || p.Replay.Version != at {
		t.Fatalf("%+v %v", p, err)
	}
	// To nothing else is the nonce a request.
	if p, err := x.propose(x.stepWith(func(c *Change) { c.Request = r })); err != nil || p.Replay != nil {
		t.Fatalf("%+v %v", p, err)
	}
}

// The store's clock as one process knows it may lag behind another's: the times of
// a journal do not go back, so that a lease counts from the newest entry.
func TestTimesDoNotGoBack(t *testing.T) {
	t.Parallel()
	x := own(t)
	tip := x.s.TipAt
	x.now = tip - 5000
	if p := x.do(x.step()); p.Entry.At != tip || x.s.TipAt != tip {
		t.Fatalf("an entry at %d after one at %d", p.Entry.At, tip)
	}
}

// Whatever ends an ownership ends it: nobody owns it, and the value that it was
// resumed with is its owner's only.
func TestDisowned(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(c *Change){
		"suspended": func(c *Change) { c.Kind, c.Wait = KindSuspended, &Wait{} }, "continued": func(c *Change) { c.Kind, c.Continue = KindContinued, &Continue{} },
		"completed": func(c *Change) { c.Kind, c.Complete = KindCompleted, &Completion{Outcome: StatusFailed} }, "parked": func(c *Change) { c.Kind, c.System, c.Parked = KindParked, true, []Reason{{Code: "r"}} },
		"halted": func(c *Change) { c.Kind, c.System = KindHalted, true }, "moved": func(c *Change) { c.Kind, c.System, c.MovedTo = KindMoved, true, "child" },
		"deleted": func(c *Change) { c.Kind, c.System = KindDeleted, true },
	} {
		x := newScript(t)
		x.do(created())
		c := claim("w1")
		c.Claim.Resume = value(`{"resume":1}`)
		x.do(c)
		fence := x.s.Fence
		if x.s.Resume == nil {
			t.Fatal("no resume value")
		}
		x.do(x.stepWith(f))
		if x.s.Owner != "" || x.s.Resume != nil || x.s.Fence != fence || x.s.TipByOwner || x.s.LeaseEnd(x.now) != 0 {
			t.Errorf("%s: %+v", name, x.s)
		}
	}
}
