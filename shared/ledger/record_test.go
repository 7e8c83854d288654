package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

var journalOpen = journal.OpenOptions{Head: true}

func TestRecordOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{})
	r := w.record(w.outcome("e", op.Operation, execution.OutcomeSucceeded, `{"n":10000000000000000999,"z":null}`))
	if !r.Recorded || r.Replayed || r.Ledger.Outcome != execution.OutcomeSucceeded || r.Status != execution.StatusRunning || r.Version == 0 {
		t.Fatalf("first: %+v", r)
	}
	r = w.record(w.outcome("e", op.Operation, execution.OutcomeSucceeded, `{"z":null,"n":10000000000000000999}`))
	if r.Recorded != false || len(r.Ledger.Contradictions) > 0 {
		t.Errorf("the same with its keys in another order: %+v", r)
	}
	w.advance(time.Second)
	r = w.record(w.outcome("e", op.Operation, execution.OutcomeSucceeded, `{"n":10000000000000000999,"z":null}`))
	if r.Recorded || !r.Replayed || r.Tip == nil {
		t.Errorf("again: %+v", r)
	}
	got := w.get("e", op.Operation)
	if got.Status != "succeeded" || got.Outcome != execution.OutcomeSucceeded || text(got.Result) != `{"n":10000000000000000999,"z":null}` {
		t.Errorf("get_operation: %s %s %s", got.Status, got.Outcome, text(got.Result))
	}
	if s := w.where("e"); s.Open != 1 {
		t.Error("evidence moved the journal")
	}
	view, err := w.Checkpoint.Get(t.Context(), &api.GetRequest{Common: w.common(), Execution: "e"})
	if err != nil || view.Operations[0].Evidence == nil || view.Operations[0].Evidence.Outcome != execution.OutcomeSucceeded || view.Operations[0].Status != "declared" {
		t.Errorf("view: %+v, %v", view.Operations, err)
	}
}

func TestRecordRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	second := w.declare("e", api.OperationDeclaration{Key: "two"}).Operation
	w.apply("e", func(r *api.ApplyRequest) {
		r.Outcomes = []api.OutcomeReport{{Operation: second, Outcome: execution.OutcomeRejected}}
		r.Operations = []api.OperationDeclaration{{Name: "charge", Args: jsonx.MustParse(`{"amount":5}`), Key: "two"}}
	})
	with := func(change func(*api.RecordOutcomeRequest)) *api.RecordOutcomeRequest {
		r := w.outcome("e", op, execution.OutcomeSucceeded, "")
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		r     *api.RecordOutcomeRequest
		code  execution.Code
		field string
	}{
		"not_executed":      {with(func(r *api.RecordOutcomeRequest) { r.Outcome = execution.OutcomeNotExecuted }), execution.InvalidRequest, "outcome"},
		"abandoned":         {with(func(r *api.RecordOutcomeRequest) { r.Outcome = execution.OutcomeAbandoned }), execution.InvalidRequest, "outcome"},
		"unknown operation": {with(func(r *api.RecordOutcomeRequest) { r.Operation = "none" }), execution.NotFound, "operation"},
		"unknown execution": {with(func(r *api.RecordOutcomeRequest) { r.Execution = "none" }), execution.NotFound, ""},
		"foreign tenant":    {with(func(r *api.RecordOutcomeRequest) { r.Tenant = "other" }), execution.NotFound, ""},
		"no such attempt":   {with(func(r *api.RecordOutcomeRequest) { r.Attempt = 2 }), execution.InvalidRequest, "attempt"},
		"attempt is needed": {with(func(r *api.RecordOutcomeRequest) { r.Operation = second }), execution.InvalidRequest, "attempt"},
		"other arguments":   {with(func(r *api.RecordOutcomeRequest) { r.Args = jsonx.MustParse(`{"amount":6}`) }), execution.OperationMismatch, "args"},
		"no callback":       {with(func(r *api.RecordOutcomeRequest) { r.Callback = "AAAA" }), execution.InvalidRequest, "callback"},
	} {
		before := w.engine.Dump()
		_, err := w.Ledger.RecordOutcome(t.Context(), c.r)
		if execution.CodeOf(err) != c.code || c.field != "" && execution.AsError(err).Facts["field"] != c.field {
			t.Errorf("%s: %v, want %s %s", name, err, c.code, c.field)
		}
		if after := w.engine.Dump(); len(after.Items) != len(before.Items) || len(after.Objects) != len(before.Objects) {
			t.Errorf("%s: something was written", name)
		}
	}
	// Arguments are compared by value, and the current attempt may be named.
	w.record(with(func(r *api.RecordOutcomeRequest) { r.Args = jsonx.MustParse(`{ "amount" : 5.0 }`) }))
	w.record(with(func(r *api.RecordOutcomeRequest) { r.Operation, r.Attempt = second, 2 }))
	if got := w.get("e", second); got.Status != "succeeded" || len(got.Attempts) != 2 || got.Attempts[0].Outcome != execution.OutcomeRejected {
		t.Errorf("second attempt: %+v", got.OperationDetail)
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome execution.Outcome
		result  string
	}{"another outcome": {execution.OutcomeFailed, `1`}, "another result": {execution.OutcomeSucceeded, `2`}, "no result": {execution.OutcomeSucceeded, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.claimed("e")
			op := w.declare("e", api.OperationDeclaration{}).Operation
			w.record(w.outcome("e", op, execution.OutcomeSucceeded, `1`))
			for i := range 2 {
				r := w.record(w.outcome("e", op, c.outcome, c.result))
				if r.Recorded || r.Replayed != (i == 1) || r.Ledger.Outcome != execution.OutcomeSucceeded || text(r.Ledger.Result) != "1" || len(r.Ledger.Contradictions) == 0 {
					t.Fatalf("round %d: %+v %+v", i, r, r.Ledger)
				}
			}
			got := w.get("e", op)
			if got.Status != "needs_review" || !slices.ContainsFunc(got.Contradictions, func(x api.Contradiction) bool { return x.Outcome == c.outcome }) {
				t.Errorf("get_operation: %s %+v", got.Status, got.Contradictions)
			}
			s := w.where("e")
			evs, err := w.Ledger.Evidence(t.Context(), s, s.OpenOperations())
			if err != nil {
				t.Fatal(err)
			}
			if j := execution.Judge(s.Operation(op), evs, 0); j.Settle != nil || len(j.Keep) == 0 {
				t.Errorf("judged: %+v", j)
			}
		})
	}
}

// What the journal settled before stands, whatever comes later.
func TestContradictsTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	w.apply("e", func(r *api.ApplyRequest) {
		r.Outcomes = []api.OutcomeReport{{Operation: op, Outcome: execution.OutcomeSucceeded, Result: jsonx.MustParse(`1`)}}
	})
	r := w.record(w.outcome("e", op, execution.OutcomeFailed, ""))
	if r.Recorded || r.Ledger.Outcome != execution.OutcomeSucceeded {
		t.Fatalf("late failure: %+v %+v", r, r.Ledger)
	}
	got := w.get("e", op)
	if got.Status != "succeeded" || len(got.Contradictions) != 1 {
		t.Errorf("get_operation: %s %+v", got.Status, got.Contradictions)
	}
	// The same as the journal has it is a replay.
	if r := w.record(w.outcome("e", op, execution.OutcomeSucceeded, `1`)); r.Recorded || len(r.Ledger.Contradictions) > 0 && !r.Replayed {
		t.Errorf("same: %+v", r)
	}
}

// Open evidence may become final, never the other way; `unknown` is remembered.
func TestOpenEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	w.record(w.outcome("e", op, execution.OutcomeInProgress, ""))
	if got := w.get("e", op).Status; got != "declared" {
		t.Errorf("in progress: %s", got)
	}
	w.record(w.outcome("e", op, execution.OutcomeUnknown, ""))
	w.record(w.outcome("e", op, execution.OutcomeInProgress, ""))
	if got := w.get("e", op).Status; got != "uncertain" {
		t.Errorf("unknown, then in progress: %s", got)
	}
	w.record(w.outcome("e", op, execution.OutcomeRejected, ""))
	if got := w.get("e", op).Status; got != "uncertain" {
		t.Errorf("a rejection after unknown settled: %s", got)
	}
	other := w.declare("e", api.OperationDeclaration{Key: "b"}).Operation
	w.record(w.outcome("e", other, execution.OutcomeSucceeded, ""))
	if r := w.record(w.outcome("e", other, execution.OutcomeUnknown, "")); r.Recorded || r.Ledger.Outcome != execution.OutcomeSucceeded {
		t.Errorf("unknown after success: %+v", r.Ledger)
	}
	if got := w.get("e", other); got.Status != "succeeded" || len(got.Contradictions) > 0 {
		t.Errorf("unknown after success: %s", got.Status)
	}
}

// An outcome of a newer version is uncertain here, stays as it is, and loses no
// evidence.
func TestUnknownOutcomeWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	w.record(w.outcome("e", op, execution.OutcomeUnknown, ""))
	key := journal.SlotKey("bank#e", op, 1)
	if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: key, Actions: []store.Action{store.Set{Attr: journal.SlotOutcome, Value: store.S("maybe")}}}); err != nil {
		t.Fatal(err)
	}
	if got := w.get("e", op); got.Status != "uncertain" {
		t.Errorf("maybe: %s", got.Status)
	}
	if r := w.record(w.outcome("e", op, execution.OutcomeSucceeded, `1`)); !r.Recorded {
		t.Errorf("evidence beside maybe: %+v", r)
	}
	it, _, _ := w.engine.Table(memory.Main).Get(t.Context(), store.Get{Key: key, Consistent: true})
	if it.Str(journal.SlotOutcome) != "maybe" {
		t.Error("a newer version's outcome was overwritten")
	}
	if got := w.get("e", op); got.Status != "succeeded" {
		t.Errorf("succeeded beside maybe: %s", got.Status)
	}
}

func TestLargeResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	big := `{"s":"` + strings.Repeat("x1y2", 300_000) + `"}`
	r := w.record(w.outcome("e", op, execution.OutcomeSucceeded, big))
	if r.Ledger.Result != nil || r.Ledger.ResultRef == nil || r.Ledger.ResultRef.Bytes != int64(len(big)) {
		t.Fatalf("%+v", r.Ledger)
	}
	got := w.get("e", op)
	if got.Result != nil || got.ResultRef == nil || got.ResultRef.URL == "" {
		t.Errorf("get_operation shows %d bytes inline", got.Result.Size())
	}
	s := w.where("e")
	evs, err := w.Ledger.Evidence(t.Context(), s, s.OpenOperations())
	if err != nil || len(evs) != 1 || evs[0].ResultRef == nil {
		t.Fatalf("%v %v", evs, err)
	}
	v, err := w.Ledger.Expand(t.Context(), s.Ref, evs[0].ResultRef)
	if err != nil || text(v) != big {
		t.Errorf("expanded to %d bytes: %v", v.Size(), err)
	}
	refs, err := w.Journal.ResultRefs(t.Context(), s.Ref)
	if _, ok := refs[evs[0].ResultRef.Digest]; !ok || err != nil {
		t.Errorf("the orphan sweep would take it: %v %v", refs, err)
	}
	// A medium one comes whole to who has room for it.
	op = w.declare("e", api.OperationDeclaration{Key: "m"}).Operation
	medium := `"` + strings.Repeat("z", 20_000) + `"`
	w.record(w.outcome("e", op, execution.OutcomeSucceeded, medium))
	if got := w.get("e", op); text(got.Result) != medium {
		t.Errorf("20 KB: %d bytes, %+v", got.Result.Size(), got.ResultRef)
	}
	w.record(w.outcome("e", op, execution.OutcomeSucceeded, medium))
}

// Sixteen recorders, several processes: one outcome stands, every other one is
// kept, nobody is told that two were first.
func TestRecordRace(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		w := newWorld(t)
		w.claimed("e")
		op := w.declare("e", api.OperationDeclaration{}).Operation
		outcomes := []execution.Outcome{execution.OutcomeSucceeded, execution.OutcomeFailed}
		var wg sync.WaitGroup
		replies := make([]*api.RecordOutcomeReply, 16)
		for i := range 16 {
			p := w.process()
			wg.Go(func() {
				r, err := p.Ledger.RecordOutcome(context.Background(), w.outcome("e", op, outcomes[(i+round)%2], fmt.Sprint(i%4)))
				if err != nil {
					t.Error(err)
				}
				replies[i] = r
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		got := w.get("e", op)
		if len(got.Evidence) != 1 {
			t.Fatalf("%d slots", len(got.Evidence))
		}
		first := map[string]bool{}
		for i, r := range replies {
			if r.Ledger.Outcome != got.Evidence[0].Outcome || text(r.Ledger.Result) != text(got.Evidence[0].Result) {
				t.Errorf("recorder %d was shown %s %s", i, r.Ledger.Outcome, text(r.Ledger.Result))
			}
			if r.Recorded {
				first[string(outcomes[(i+round)%2])+fmt.Sprint(i%4)] = true
			}
		}
		if len(first) != 1 {
			t.Errorf("%d different firsts", len(first))
		}
		if all, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op); err != nil || len(all[1].Contradictions) != 3 {
			t.Errorf("%d contradictions, %v", len(all[1].Contradictions), err)
		}
	}
}

// Each storage call of a recording fails in each way; the repeat ends with the
// outcome recorded once and the waiting execution due.
func TestRecordFaults(t *testing.T) {
	t.Parallel()
	for _, waiting := range []bool{false, true} {
		everyFault(t, []string{"get", "query", "update", "put_object", "transact"}, func(t *testing.T, f memory.Fault) { recordFault(t, waiting, f) })
	}
}

func recordFault(t *testing.T, waiting bool, f memory.Fault) {
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	if waiting {
		w.apply("e", func(r *api.ApplyRequest) {
			r.Then = &api.Then{Suspend: &api.Wait{Operations: []execution.OperationID{op}}}
		})
	}
	result := `"` + strings.Repeat("r", 20_000) + `"`
	w.restart()
	w.faults(f)
	_, err := attempt(t, func(ctx context.Context) (*api.RecordOutcomeReply, error) {
		return w.Ledger.RecordOutcome(ctx, w.outcome("e", op, execution.OutcomeSucceeded, result))
	})
	if err != nil && !execution.CodeOf(err).Retryable() {
		t.Fatalf("not retryable: %v", err)
	}
	w.faults()
	w.restart()
	r, err := w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, result))
	if err != nil || r.Ledger.Outcome != execution.OutcomeSucceeded || len(r.Ledger.Contradictions) > 0 {
		t.Fatalf("repeat: %+v, %v", r, err)
	}
	got := w.get("e", op)
	if got.Status != "succeeded" || text(got.Result) != result || len(got.Evidence) != 1 || len(got.Contradictions) != 0 {
		t.Errorf("after it: %s, %d slots, %d contradictions", got.Status, len(got.Evidence), len(got.Contradictions))
	}
	if head := w.head("e"); waiting && (head.Int(journal.HeadDue) > w.engine.Now().UnixMilli() || head.Str(journal.HeadDueKind) != journal.DueEvidence) {
		t.Errorf("not due: %d %s", head.Int(journal.HeadDue), head.Str(journal.HeadDueKind))
	}
}

// Gone while the evidence was being written: refused, on a replay too.
func TestClosingMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	w.record(w.outcome("e", op, execution.OutcomeSucceeded, ""))
	set := func(attr string, v store.Value) {
		t.Helper()
		_, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: store.Key{PK: "bank#e", SK: "head"}, Actions: []store.Action{store.Set{Attr: attr, Value: v}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(journal.HeadStatus, store.S("deleting"))
	_, err := w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, ""))
	refused(t, err, execution.Deleted, "")
	set(journal.HeadStatus, store.S("suspended_v2"))
	_, err = w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, ""))
	refused(t, err, execution.Integrity, "")
	set(journal.HeadStatus, store.S("completed"))
	set(journal.HeadExpires, store.N(1))
	_, err = w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, execution.OutcomeSucceeded, ""))
	refused(t, err, execution.Deleted, "")
	if execution.AsError(err).Facts["expired"] != true {
		t.Errorf("facts: %v", execution.AsError(err).Facts)
	}
}

// A warm process costs two reads and one write for an outcome; nothing else.
func TestRecordCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{}).Operation
	meter := &store.Meter{}
	r := w.outcome("e", op, execution.OutcomeSucceeded, `{"ok":true}`)
	r.Attempt = 1
	if _, err := w.Ledger.RecordOutcome(store.WithMeter(t.Context(), meter), r); err != nil {
		t.Fatal(err)
	}
	if c := meter.Cost(); c.Reads != 2 || c.Writes != 1 || c.ObjectRequests != 0 {
		t.Errorf("cost %+v", c)
	}
}

// Whatever comes in whatever order, by whatever process: the first final outcome
// stands, every other one is kept, `unknown` is remembered, and the journal does
// not move.
func TestRecordProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.claimed("e")
		op := w.declare("e", api.OperationDeclaration{}).Operation
		version := w.where("e").Version
		var first string
		others := map[string]bool{}
		unknown := false
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			o := rapid.SampledFrom([]execution.Outcome{execution.OutcomeUnknown, execution.OutcomeInProgress, execution.OutcomeSucceeded, execution.OutcomeFailed, execution.OutcomeRejected}).Draw(rt, "outcome")
			result := ""
			if o.Final() {
				result = rapid.SampledFrom([]string{"", `1`, `1.0`, `null`}).Draw(rt, "result")
			}
			if rapid.Bool().Draw(rt, "restart") {
				w.restart()
			}
			if fault := rapid.SampledFrom([]string{"", "", "lost", "landed"}).Draw(rt, "fault"); fault != "" {
				w.faults(memory.Fault{On: rapid.SampledFrom([]string{"update", "transact", "get"}).Draw(rt, "on"), Effect: fault})
			}
			if _, err := w.Ledger.RecordOutcome(t.Context(), w.outcome("e", op, o, result)); err != nil {
				if !execution.CodeOf(err).Retryable() {
					rt.Fatal(err)
				}
				w.record(w.outcome("e", op, o, result)) // the fault strikes once
			}
			w.faults()
			said := string(o) + " " + result
			switch {
			case !o.Final():
				unknown = unknown || o == execution.OutcomeUnknown && first == ""
			case first == "":
				first = said
			case said != first:
				others[said] = true
			}
		}
		s := w.where("e")
		slots, err := w.Journal.ReadSlots(t.Context(), s.Ref, op)
		if err != nil || s.Version != version {
			rt.Fatalf("version %d, %v", s.Version, err)
		}
		slot := slots[1]
		if got := string(slot.Outcome) + " "; first != "" && got+strings.TrimPrefix(text(slot.Result), "absent") != first {
			rt.Fatalf("the slot has %s%s, first was %s", got, text(slot.Result), first)
		}
		if len(slot.Contradictions) != len(others) || slot.Contradicted != (len(others) > 0) || slot.SawUnknown != unknown {
			rt.Fatalf("%d contradictions, want %d; unknown %v, want %v", len(slot.Contradictions), len(others), slot.SawUnknown, unknown)
		}
	})
}

// A process that knows the execution from before finds what was declared since,
// and which attempt it is at.
func TestRecordInAStaleProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	stale := w.process()
	record := func(op execution.OperationID, attempt int, o execution.Outcome) {
		t.Helper()
		r := w.outcome("e", op, o, "")
		r.Attempt = attempt
		if out, err := stale.Ledger.RecordOutcome(t.Context(), identified(r)); err != nil || !out.Recorded {
			t.Errorf("%s of attempt %d: %+v, %v", o, attempt, out, err)
		}
	}
	first := w.declare("e", api.OperationDeclaration{Key: "1"})
	record(first.Operation, 1, execution.OutcomeRejected)
	w.apply("e", func(r *api.ApplyRequest) { r.Outcomes = []api.OutcomeReport{{Operation: first.Operation}} })
	if again := w.declare("e", api.OperationDeclaration{Key: "1"}); again.Attempt != 2 {
		t.Fatalf("%+v", again)
	}
	record(first.Operation, 2, execution.OutcomeSucceeded)
	record(w.declare("e", api.OperationDeclaration{Key: "2"}).Operation, 1, execution.OutcomeSucceeded)
}
