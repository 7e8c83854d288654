package execution

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// The evidence table, row by row.
func TestJudge(t *testing.T) {
	t.Parallel()
	const w = int64(300_000) // validation window
	type e = []Evidence
	found := func(o Outcome, s Source) Evidence { return Evidence{Finding: Found, Outcome: o, Source: s} }
	tests := []struct {
		name  string
		op    func(op *Operation)
		evs   e
		want  Outcome // "": stays open
		slot  bool
		keep  int
		contr int
	}{
		{"nothing", nil, e{}, "", false, 0, 0},
		{"found succeeded", nil, e{found(OutcomeSucceeded, FromResolver)}, OutcomeSucceeded, false, 0, 0},
		{"found failed", nil, e{found(OutcomeFailed, FromCaller)}, OutcomeFailed, false, 0, 0},
		{"found rejected, sent once", nil, e{found(OutcomeRejected, FromResolver)}, OutcomeRejected, false, 0, 0},
		{"found rejected, sent twice", func(op *Operation) { op.Sends = 2 }, e{found(OutcomeRejected, FromResolver)}, "", false, 1, 0},
		{"found rejected, started twice by nonce", func(op *Operation) { op.Sends, op.OnUncertain = 2, Close }, e{found(OutcomeRejected, FromLedger)}, OutcomeRejected, false, 0, 0},
		{"found rejected after unknown", func(op *Operation) { op.SawUnknown = true }, e{found(OutcomeRejected, FromLedger)}, "", false, 1, 0},
		{"found rejected with unknown", nil, e{found(OutcomeRejected, FromLedger), {Finding: QueryFailed, Outcome: OutcomeUnknown}}, "", false, 2, 0},
		{"found rejected with duplicate refusal", nil, e{found(OutcomeRejected, FromLedger), {Finding: RejectedDuplicate}}, "", false, 2, 0},
		{"duplicate refusal alone", nil, e{{Finding: RejectedDuplicate}}, "", false, 1, 0},
		{"in progress", nil, e{{Finding: InProgress, Outcome: OutcomeInProgress}}, "", false, 0, 0},
		{"query failed", nil, e{{Finding: QueryFailed}}, "", false, 0, 0},
		{"reported unknown", nil, e{{Finding: QueryFailed, Outcome: OutcomeUnknown}}, "", false, 1, 0},
		{"several", nil, e{{Finding: Several, Count: 2}}, "", false, 1, 0},
		{"found twice", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, Count: 2}}, "", false, 1, 0},
		{"found once", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, Count: 1}}, OutcomeSucceeded, false, 0, 0},
		{"an outcome that was not found", nil, e{{Finding: QueryFailed, Outcome: OutcomeSucceeded}}, "", false, 0, 0},
		{"found, and another outcome that was not", nil, e{found(OutcomeSucceeded, FromLedger), {Finding: QueryFailed, Outcome: OutcomeFailed}}, OutcomeSucceeded, false, 0, 0},
		{"found, and found open", nil, e{found(OutcomeSucceeded, FromLedger), found(OutcomeUnknown, FromResolver)}, OutcomeSucceeded, false, 1, 0},
		{"one provider reference of two", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, ProviderRef: "a"}, {Finding: Found, Outcome: OutcomeSucceeded}}, OutcomeSucceeded, false, 0, 0},
		{"one provider reference, twice", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, ProviderRef: "a"}, {Finding: Found, Outcome: OutcomeSucceeded, ProviderRef: "a", Reason: "r"}}, OutcomeSucceeded, false, 0, 0},
		{"found rejected, an earlier attempt unknown", func(op *Operation) { op.Attempt = 2 }, e{found(OutcomeRejected, FromLedger), {Attempt: 1, Finding: QueryFailed, Outcome: OutcomeUnknown}}, OutcomeRejected, false, 0, 0},
		{"succeeded and failed", nil, e{found(OutcomeSucceeded, FromLedger), found(OutcomeFailed, FromResolver)}, "", false, 2, 0},
		{"two results", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, Result: value(`1`)}, {Finding: Found, Outcome: OutcomeSucceeded, Result: value(`2`)}}, "", false, 2, 0},
		{"two provider references", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, ProviderRef: "a"}, {Finding: Found, Outcome: OutcomeSucceeded, ProviderRef: "b"}}, "", false, 2, 0},
		{"succeeded, one with the result", nil, e{found(OutcomeSucceeded, FromResolver), {Finding: Found, Outcome: OutcomeSucceeded, Result: value(`1`)}}, OutcomeSucceeded, false, 0, 0},
		{"succeeded and not found", func(op *Operation) { op.ValidSeconds = 60 }, e{found(OutcomeSucceeded, FromLedger), {Finding: NotFoundFinding, AskedAt: t0 + 60_000 + w}}, OutcomeSucceeded, false, 0, 0},
		{"needs review stays", func(op *Operation) { op.NeedsReview = true }, e{found(OutcomeSucceeded, FromLedger)}, "", false, 0, 0},
		{"another operation's", nil, e{{Operation: "other", Finding: Found, Outcome: OutcomeSucceeded}}, "", false, 0, 0},
		{"an outcome of a newer version", nil, e{found("teleported", FromLedger)}, "", false, 1, 0},

		{"not found", nil, e{{Finding: NotFoundFinding, AskedAt: t0 + 1<<40}}, "", false, 0, 0},
		{"not found, valid window not yet over", func(op *Operation) { op.ValidSeconds = 60 }, e{{Finding: NotFoundFinding, AskedAt: t0 + 60_000 + w - 1}}, "", false, 0, 0},
		{"not found after the valid window", func(op *Operation) { op.ValidSeconds = 60 }, e{{Finding: NotFoundFinding, AskedAt: t0 + 60_000 + w}}, OutcomeNotExecuted, true, 0, 0},
		{"not found, never asked when", func(op *Operation) { op.ValidSeconds = 60 }, e{{Finding: NotFoundFinding}}, "", false, 0, 0},
		{"not found after the dedup window", func(op *Operation) { op.DedupSeconds = 3600 }, e{{Finding: NotFoundFinding, AskedAt: t0 + 3600_000 + w}}, OutcomeNotExecuted, true, 0, 0},
		{"not found before it", func(op *Operation) { op.DedupSeconds = 3600 }, e{{Finding: NotFoundFinding, AskedAt: t0 + 3600_000 + w - 1}}, "", false, 0, 0},
		{"not found by a fenced system", nil, e{{Finding: NotFoundFinding, Fenced: true}}, OutcomeNotExecuted, true, 0, 0},
		{"not found by a fenced system, and a rejection", func(op *Operation) { op.Sends = 2 }, e{found(OutcomeRejected, FromResolver), {Finding: NotFoundFinding, Fenced: true}}, OutcomeNotExecuted, true, 1, 1},
		{"found by one, several by another", nil, e{found(OutcomeSucceeded, FromResolver), {Finding: Several}}, "", false, 2, 0},
		{"fenced, but found", nil, e{{Finding: Found, Outcome: OutcomeSucceeded, Fenced: true}}, OutcomeSucceeded, false, 0, 0},
		{"a closed slot", nil, e{found(OutcomeNotExecuted, FromSlot)}, OutcomeNotExecuted, false, 0, 0},
		{"the ledger says not executed", nil, e{found(OutcomeNotExecuted, FromLedger)}, OutcomeNotExecuted, false, 0, 0},
		{"a resolver says not executed", nil, e{found(OutcomeNotExecuted, FromResolver)}, "", false, 1, 0},
		{"decided not executed", nil, e{{Finding: Decided, Outcome: OutcomeNotExecuted}}, OutcomeNotExecuted, true, 0, 0},
		{"decided abandoned", nil, e{{Finding: Decided, Outcome: OutcomeAbandoned}}, OutcomeAbandoned, true, 0, 0},
		{"decided over several", nil, e{{Finding: Several}, {Finding: Decided, Outcome: OutcomeSucceeded}}, OutcomeSucceeded, false, 0, 0},
		{"decided out of review", func(op *Operation) { op.NeedsReview = true }, e{{Finding: Decided, Outcome: OutcomeFailed}}, OutcomeFailed, false, 0, 0},
		{"decided over settled", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{{Finding: Decided, Outcome: OutcomeFailed}}, OutcomeFailed, false, 0, 0},

		{"settled: the same", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{found(OutcomeSucceeded, FromLedger)}, "", false, 0, 0},
		{"settled: another", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{found(OutcomeFailed, FromLedger)}, "", false, 0, 1},
		{"settled: two others", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{found(OutcomeFailed, FromLedger), found(OutcomeRejected, FromLedger)}, "", false, 0, 2},
		{"settled: another result", func(op *Operation) { op.Outcome, op.Result = OutcomeSucceeded, value(`1`) }, e{{Finding: Found, Outcome: OutcomeSucceeded, Result: value(`2`)}}, "", false, 0, 1},
		{"settled: open evidence", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{{Finding: QueryFailed, Outcome: OutcomeUnknown}, {Finding: Several}}, "", false, 0, 0},
		{"settled: known contradiction", func(op *Operation) {
			op.Outcome, op.Contradictions = OutcomeSucceeded, []Contradiction{{Attempt: 1, Outcome: OutcomeFailed}}
		}, e{found(OutcomeFailed, FromLedger)}, "", false, 0, 0},
		{"settled: unknown is no other outcome", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{found(OutcomeUnknown, FromLedger)}, "", false, 0, 0},
		{"settled: known of an earlier attempt", func(op *Operation) {
			op.Attempt, op.Outcome, op.Contradictions = 2, OutcomeSucceeded, []Contradiction{{Attempt: 1, Outcome: OutcomeFailed}}
		}, e{found(OutcomeFailed, FromLedger)}, "", false, 0, 1},
		{"settled: another than the known one", func(op *Operation) {
			op.Outcome, op.Contradictions = OutcomeSucceeded, []Contradiction{{Attempt: 1, Outcome: OutcomeFailed}}
		}, e{found(OutcomeRejected, FromLedger)}, "", false, 0, 1},
		{"settled: another effect than the known one", func(op *Operation) {
			op.Outcome, op.Contradictions = OutcomeSucceeded, []Contradiction{{Attempt: 1, Outcome: OutcomeFailed}}
		}, e{{Finding: Found, Outcome: OutcomeFailed, ProviderRef: "p"}}, "", false, 0, 1},
		{"settled: one other, told twice", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{{Finding: Found, Outcome: OutcomeFailed, Result: value(`1`)}, {Finding: Found, Outcome: OutcomeFailed, Result: value(`2`)}}, "", false, 0, 1},
		{"settled: two other effects", func(op *Operation) { op.Outcome = OutcomeSucceeded }, e{{Finding: Found, Outcome: OutcomeFailed, ProviderRef: "p"}, {Finding: Found, Outcome: OutcomeFailed, ProviderRef: "q"}}, "", false, 0, 2},
		{"settled: another, and an earlier attempt's", func(op *Operation) {
			op.Attempt, op.Outcome, op.Past = 2, OutcomeFailed, []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}}
		}, e{{Attempt: 1, Finding: Found, Outcome: OutcomeSucceeded}, {Attempt: 2, Finding: Found, Outcome: OutcomeSucceeded}}, "", false, 0, 2},
		{"an earlier attempt as known, and the current one", func(op *Operation) {
			op.Attempt, op.Past = 2, []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}}
		}, e{{Attempt: 1, Finding: Found, Outcome: OutcomeRejected}, {Attempt: 2, Finding: Found, Outcome: OutcomeSucceeded}}, OutcomeSucceeded, false, 0, 0},
		{"an earlier attempt after all", func(op *Operation) {
			op.Attempt, op.Past = 2, []PastAttempt{{Attempt: 1, Outcome: OutcomeNotExecuted}}
		}, e{{Attempt: 1, Finding: Found, Outcome: OutcomeSucceeded}}, "", false, 0, 1},
		{"an earlier attempt after all, and the current one", func(op *Operation) {
			op.Attempt, op.Past = 2, []PastAttempt{{Attempt: 1, Outcome: OutcomeNotExecuted}}
		}, e{{Attempt: 1, Finding: Found, Outcome: OutcomeSucceeded}, {Attempt: 2, Finding: Found, Outcome: OutcomeSucceeded}}, OutcomeSucceeded, false, 0, 1},
		{"an earlier attempt as known", func(op *Operation) {
			op.Attempt, op.Past = 2, []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}}
		}, e{{Attempt: 1, Finding: Found, Outcome: OutcomeRejected}}, "", false, 0, 0},
		{"an earlier attempt, not found", func(op *Operation) {
			op.Attempt, op.Past = 2, []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}}
		}, e{{Attempt: 1, Finding: QueryFailed, Outcome: OutcomeSucceeded}, {Attempt: 1, Finding: Found, Outcome: OutcomeUnknown}}, "", false, 0, 0},
		{"the second of three as known", func(op *Operation) {
			op.Attempt, op.Past = 3, []PastAttempt{{Attempt: 1, Outcome: OutcomeRejected}, {Attempt: 2, Outcome: OutcomeNotExecuted}}
		}, e{{Attempt: 2, Finding: Found, Outcome: OutcomeNotExecuted}}, "", false, 0, 0},
		{"a verdict on an earlier attempt", func(op *Operation) { op.Attempt = 2 }, e{{Attempt: 1, Finding: Decided, Outcome: OutcomeSucceeded}}, "", false, 0, 0},
	}
	for _, tt := range tests {
		op := &Operation{ID: "op", OnUncertain: Ask, Attempt: 1, Sends: 1, Intent: t0, KeySince: t0}
		if tt.op != nil {
			tt.op(op)
		}
		for i := range tt.evs {
			if tt.evs[i].Operation == "" {
				tt.evs[i].Operation = "op"
			}
			if tt.evs[i].Attempt == 0 {
				tt.evs[i].Attempt = op.Attempt
			}
		}
		j := Judge(op, tt.evs, t0)
		if tt.name == "found twice" || tt.name == "succeeded and failed" || tt.name == "two results" {
			for _, k := range j.Keep {
				if k.Finding != Several {
					t.Errorf("%s: kept as %s", tt.name, k.Finding)
				}
			}
		}
		got := Outcome("")
		if j.Settle != nil {
			got = j.Settle.Outcome
			if j.Settle.Attempt != op.Attempt || j.Settle.Operation != op.ID {
				t.Errorf("%s: settles %+v", tt.name, j.Settle)
			}
		}
		if got != tt.want || j.NeedsSlot != tt.slot || len(j.Keep) != tt.keep || len(j.Contradictions) != tt.contr {
			t.Errorf("%s: got %q slot %v keep %d contradictions %d, want %q %v %d %d", tt.name, got, j.NeedsSlot, len(j.Keep), len(j.Contradictions), tt.want, tt.slot, tt.keep, tt.contr)
		}
	}
}

func genOperation(t *rapid.T) *Operation {
	op := &Operation{ID: "op", Seq: 1, Name: "n", Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"), Sends: rapid.IntRange(1, 2).Draw(t, "sends"), Intent: t0, KeySince: t0, Fence: 2,
		OnUncertain: rapid.SampledFrom([]OnUncertain{Ask, Close, SameKey, Always}).Draw(t, "u"), SawUnknown: rapid.Bool().Draw(t, "unknown"), NeedsReview: rapid.Bool().Draw(t, "review"),
		ValidSeconds: rapid.SampledFrom([]int64{0, 60}).Draw(t, "valid"), DedupSeconds: rapid.SampledFrom([]int64{0, 3600}).Draw(t, "dedup"),
		Outcome: rapid.SampledFrom([]Outcome{"", "", OutcomeSucceeded, OutcomeNotExecuted}).Draw(t, "outcome")}
	if op.Attempt == 2 {
		op.Past = []PastAttempt{{Attempt: 1, Outcome: OutcomeNotExecuted}}
	}
	if op.Final() {
		op.NeedsReview = false
	}
	return op
}

func genEvidence(t *rapid.T) Evidence {
	ev := Evidence{Operation: rapid.SampledFrom([]OperationID{"op", "op", "op", "other"}).Draw(t, "op"), Attempt: rapid.IntRange(1, 2).Draw(t, "n"),
		Finding: rapid.SampledFrom([]Finding{NotFoundFinding, InProgress, Found, Found, Found, Several, QueryFailed, RejectedDuplicate, "odd"}).Draw(t, "finding"),
		Source:  rapid.SampledFrom([]Source{FromOwner, FromLedger, FromResolver, FromCaller, FromVerdict, FromSlot}).Draw(t, "source"),
		Outcome: rapid.SampledFrom([]Outcome{"", OutcomeUnknown, OutcomeInProgress, OutcomeSucceeded, OutcomeFailed, OutcomeRejected, OutcomeNotExecuted, OutcomeAbandoned, "odd"}).Draw(t, "outcome"),
		AskedAt: rapid.SampledFrom([]int64{0, t0, t0 + 360_000, t0 + 3900_000}).Draw(t, "asked"), Fenced: rapid.Bool().Draw(t, "fenced"), Count: rapid.Int64Range(0, 2).Draw(t, "count"),
		ProviderRef: rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "ref"), Reason: rapid.SampledFrom([]string{"", "r"}).Draw(t, "reason")}
	if r := rapid.SampledFrom([]string{"", "1", "1.0", `{"a":null}`}).Draw(t, "result"); r != "" {
		ev.Result = value(r)
	}
	return ev
}

func judgement(t rapid.TB, j Judgement) string {
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// taken is an operation after a judgement was folded in.
func taken(op *Operation, j Judgement) *Operation {
	f := Folder{s: State{Operations: map[OperationID]*Operation{op.ID: op}, Open: 1}}
	e := &Entry{Version: 9, At: t0 + 9}
	if j.Settle != nil {
		f.settle(j.Settle, e)
	}
	for i := range j.Contradictions {
		f.settle(&j.Contradictions[i], e)
	}
	for i := range j.Keep {
		f.evidence(&j.Keep[i])
	}
	return f.s.Operations[op.ID]
}

func TestJudgeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		op := genOperation(t)
		evs := rapid.SliceOfN(rapid.Custom(genEvidence), 0, 6).Draw(t, "evs")
		j := Judge(op, evs, t0)
		want := judgement(t, j)

		shuffled := rapid.Permutation(evs).Draw(t, "order")
		if len(evs) > 0 { // order and repeats change nothing
			shuffled = append(shuffled, rapid.SliceOfN(rapid.SampledFrom(evs), 0, 3).Draw(t, "repeats")...)
		}
		if got := judgement(t, Judge(op, shuffled, t0)); got != want {
			t.Fatalf("order matters:\n%s\n%s", want, got)
		}
		// What is settled stays settled: there is no verdict here.
		after := taken(op, j)
		if op.Final() && (after.Outcome != op.Outcome || j.Settle != nil) {
			t.Fatalf("%s became %s", op.Outcome, after.Outcome)
		}
		// The same evidence again settles nothing new and contradicts nothing.
		again := Judge(after, evs, t0)
		later := taken(after, again)
		if later.Outcome != after.Outcome || len(later.Contradictions) != len(after.Contradictions) || later.NeedsReview != after.NeedsReview || later.SawUnknown != after.SawUnknown {
			t.Fatalf("a repeat changed something:\n%+v\n%+v", after, later)
		}
		// not_executed comes from the four sound sources only, and counts only in its slot.
		if j.Settle != nil && slotBound(j.Settle.Outcome) {
			sound, inSlot := false, false
			for _, ev := range evs {
				if ev.Operation != op.ID || ev.Attempt != op.Attempt {
					continue
				}
				limit := op.ImpossibleAfter()
				closed := ev.Finding == Found && (ev.Source == FromLedger || ev.Source == FromSlot) && slotBound(ev.Outcome)
				sound = sound || closed || ev.Finding == NotFoundFinding && (ev.Fenced || limit > 0 && ev.AskedAt >= limit+300_000)
				inSlot = inSlot || closed
			}
			if !sound || !inSlot && !j.NeedsSlot {
				t.Fatalf("%s without proof or without its slot: %s", j.Settle.Outcome, want)
			}
		}
		// Review is left by verdicts only.
		if op.NeedsReview && (j.Settle != nil || !after.NeedsReview) {
			t.Fatal("review was left without a verdict")
		}
		// A rejection settles only what went once and of which nobody knows nothing.
		if j.Settle != nil && j.Settle.Outcome == OutcomeRejected && (op.SawUnknown || op.Sends > 1 && op.OnUncertain != Close) {
			t.Fatalf("rejected: %s", want)
		}
	})
}

// Evidence in two rounds: what the first settled is what stands.
func TestJudgeIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		op := genOperation(t)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			j := Judge(op, rapid.SliceOfN(rapid.Custom(genEvidence), 0, 4).Draw(t, "evs"), t0)
			after := taken(op, j)
			if op.Final() && (after.Outcome != op.Outcome || after.Source != op.Source || after.NeedsReview) {
				t.Fatalf("%+v became %+v", op, after)
			}
			if len(after.Contradictions) < len(op.Contradictions) || op.SawUnknown && !after.Final() && !after.SawUnknown {
				t.Fatal("something was forgotten")
			}
			op = after
		}
	})
}

// What settles nothing leaves its mark on an open operation, and on no other.
func TestOpenEvidence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		op              Operation
		ev              Evidence
		review, unknown bool
		last            Finding
	}{
		{"several", Operation{}, Evidence{Finding: Several}, true, false, Several},
		{"another outcome", Operation{}, Evidence{Finding: Found, Outcome: OutcomeSucceeded}, true, false, Found},
		{"a rejection that proves nothing", Operation{}, Evidence{Finding: Found, Outcome: OutcomeRejected}, false, true, Found},
		{"a duplicate refusal", Operation{}, Evidence{Finding: RejectedDuplicate}, false, true, RejectedDuplicate},
		{"unknown", Operation{}, Evidence{Finding: QueryFailed, Outcome: OutcomeUnknown}, false, true, QueryFailed},
		{"in progress", Operation{}, Evidence{Finding: InProgress, Outcome: OutcomeInProgress}, false, false, InProgress},
		{"hearsay about an outcome", Operation{}, Evidence{Finding: QueryFailed, Outcome: OutcomeSucceeded}, false, false, QueryFailed},
		{"an outcome of a newer version", Operation{}, Evidence{Finding: Found, Outcome: "teleported"}, false, false, Found},
		{"of an earlier attempt", Operation{Attempt: 2}, Evidence{Attempt: 1, Finding: Several}, false, false, ""},
		{"after the end", Operation{Outcome: OutcomeSucceeded}, Evidence{Finding: Several}, false, false, ""},
	}
	for _, tt := range tests {
		op := tt.op
		op.ID, op.Attempt = "op", max(op.Attempt, 1)
		f := Folder{s: State{Operations: map[OperationID]*Operation{"op": &op}}}
		ev := tt.ev
		ev.Operation, ev.Attempt = "op", max(ev.Attempt, 1)
		f.evidence(&ev)
		if got := f.s.Operations["op"]; got.NeedsReview != tt.review || got.SawUnknown != tt.unknown || got.LastFinding != tt.last {
			t.Errorf("%s: review %v, unknown %v, last %q", tt.name, got.NeedsReview, got.SawUnknown, got.LastFinding)
		}
		f.checked(&Check{Operation: "op", Next: 7, Finding: NotFoundFinding})
		f.checked(&Check{Operation: "other"})
		if got := f.s.Operations["op"]; op.Final() != (got.NextCheck == 0) || op.Final() != (got.Checks == 0) {
			t.Errorf("%s: next check %d after %d", tt.name, got.NextCheck, got.Checks)
		}
	}
}

// Of evidence that agrees the ledger's is taken, then what says most; a proof
// of absence says why.
func TestJudgePicks(t *testing.T) {
	t.Parallel()
	op := &Operation{ID: "op", Attempt: 1, Sends: 1, Intent: t0, ValidSeconds: 60}
	ok := Evidence{Operation: "op", Attempt: 1, Finding: Found, Outcome: OutcomeSucceeded, Source: FromResolver}
	with := func(f func(ev *Evidence)) Evidence { ev := ok; f(&ev); return ev }
	result := with(func(ev *Evidence) { ev.Result = value(`1`) })
	ref := with(func(ev *Evidence) { ev.ResultRef = &Artifact{Digest: "d"} })
	named := with(func(ev *Evidence) { ev.ProviderRef = "p" })
	for _, tt := range []struct {
		name         string
		best, second Evidence
	}{
		{"the ledger before a result", with(func(ev *Evidence) { ev.Source = FromLedger }), result},
		{"a slot before a result", with(func(ev *Evidence) { ev.Source = FromSlot }), result},
		{"a result before a name", result, named},
		{"a large result before a name", ref, named},
		{"a name", named, ok},
	} {
		for _, evs := range [][]Evidence{{tt.best, tt.second}, {tt.second, tt.best}} {
			if j := Judge(op, evs, t0); j.Settle == nil || j.Settle.Source != tt.best.Source || j.Settle.Result != tt.best.Result || j.Settle.ResultRef != tt.best.ResultRef || j.Settle.ProviderRef != tt.best.ProviderRef {
				t.Errorf("%s: %+v", tt.name, j.Settle)
			}
		}
	}
	late := Evidence{Operation: "op", Attempt: 1, Finding: NotFoundFinding, AskedAt: t0 + 1<<40}
	fenced, said := late, late
	fenced.Fenced, said.Reason = true, "asked twice"
	for want, ev := range map[string]Evidence{"not found after the effect had become impossible": late, "not found by a system that refuses older fences": fenced, "asked twice": said} {
		if j := Judge(op, []Evidence{ev}, t0); j.Settle == nil || j.Settle.Reason != want {
			t.Errorf("%+v, want %q", j.Settle, want)
		}
	}
}
