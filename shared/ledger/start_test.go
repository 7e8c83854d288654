package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

func (w *world) starting(op execution.OperationID, attempt int, fence int64, nonce string) *api.StartOperationRequest {
	return identified(&api.StartOperationRequest{Common: w.common(), Execution: "e", Operation: op, Attempt: attempt, Fence: fence, Nonce: nonce})
}

func TestStartOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fence := w.claimed("e").Fence
	op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close, ValidSeconds: 600})
	if op.Disposition != api.Start {
		t.Fatalf("disposition %s", op.Disposition)
	}
	try := func(attempt int, fence int64, nonce string) (*api.StartOperationReply, error) {
		return w.Ledger.StartOperation(t.Context(), w.starting(op.Operation, attempt, fence, nonce))
	}
	for range 2 {
		r, err := try(1, fence, "n1")
		if err != nil || r.Disposition != api.Go || r.ProviderKey != op.ProviderKey || r.SendBy == nil || *r.SendBy != *op.SendBy {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	_, err := try(1, fence, "n2")
	refused(t, err, execution.OperationMismatch, "nonce")
	_, err = try(2, fence, "n1")
	refused(t, err, execution.InvalidRequest, "attempt")
	_, err = try(1, fence+1, "n1")
	refused(t, err, execution.LeaseLost, "")
	_, err = w.Ledger.StartOperation(t.Context(), w.starting("none", 1, fence, "n1"))
	refused(t, err, execution.NotFound, "operation")
	for _, it := range w.engine.Dump().Items {
		if bytes.Contains(it, []byte(`"n1"`)) {
			t.Error("the nonce itself is stored")
		}
	}
	w.advance(601 * time.Second)
	_, err = try(1, fence, "n1")
	refused(t, err, execution.LeaseLost, "")
	if execution.AsError(err).Facts["send_by"] != op.SendBy.String() {
		t.Errorf("facts %v", execution.AsError(err).Facts)
	}
	if got := w.get("e", op.Operation); len(got.Evidence) != 1 || !got.Evidence[0].Started || got.Evidence[0].Outcome != "" {
		t.Errorf("evidence %+v", got.Evidence)
	}
}

// A closed slot, a past attempt, an operation of an earlier owner, an execution
// given up: nothing starts.
func TestStartRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		how    execution.OnUncertain
		before func(w *world, op execution.OperationID, fence int64) int64 // gives the fence to show
		code   execution.Code
	}{
		"closed by recovery": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			h, err := w.Journal.Open(context.Background(), w.tenant, "e", journal.OpenOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
			got, err := w.Ledger.Settle(context.Background(), h, []execution.Settlement{{Operation: op, Attempt: 1, Outcome: execution.OutcomeNotExecuted, Source: execution.FromSlot}})
			if err != nil || len(got) != 1 || got[0].Outcome != execution.OutcomeNotExecuted {
				w.t.Fatalf("%+v, %v", got, err)
			}
			return f
		}, execution.LeaseLost},
		"evidence came": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			w.record(w.outcome("e", op, execution.OutcomeUnknown, ""))
			return f
		}, execution.LeaseLost},
		"rejected attempt": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			w.apply("e", func(r *api.ApplyRequest) {
				r.Outcomes = []api.OutcomeReport{{Operation: op, Outcome: execution.OutcomeRejected}}
				r.Operations = []api.OperationDeclaration{{Name: "charge", Args: jsonx.MustParse(`{"amount":5}`), OnUncertain: execution.Close}}
			})
			return f
		}, execution.LeaseLost},
		"settled": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			w.apply("e", func(r *api.ApplyRequest) {
				r.Outcomes = []api.OutcomeReport{{Operation: op, Outcome: execution.OutcomeSucceeded}}
			})
			return f
		}, execution.LeaseLost},
		"earlier owner's, close": {execution.Close, takeOver, execution.LeaseLost},
		"earlier owner's, ask":   {execution.Ask, takeOver, execution.LeaseLost},
		"given up": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			w.apply("e", func(r *api.ApplyRequest) { r.Then = &api.Then{Continue: &api.Continue{}} })
			return f
		}, execution.LeaseLost},
		"old fence": {execution.Close, func(w *world, op execution.OperationID, f int64) int64 {
			takeOver(w, op, f)
			return f
		}, execution.LeaseLost},
		"after its deadline": {execution.Ask, func(w *world, op execution.OperationID, f int64) int64 {
			w.advance(time.Minute)
			return f
		}, execution.LeaseLost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			fence := w.claimed("e").Fence
			op := w.declare("e", api.OperationDeclaration{OnUncertain: c.how, DeadlineSeconds: 30}).Operation
			fence = c.before(w, op, fence)
			_, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n"))
			refused(t, err, c.code, "")
			slots, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op)
			if err != nil || slots[1] != nil && slots[1].Started() {
				t.Errorf("slot %+v, %v", slots[1], err)
			}
		})
	}
}

func takeOver(w *world, _ execution.OperationID, _ int64) int64 {
	w.t.Helper()
	wr, err := w.process().Journal.Claim(context.Background(), w.tenant, "e", execution.Change{Kind: execution.KindClaimed,
		Claim: &execution.ClaimRequest{Owner: "w2", LeaseSeconds: 60, Force: "test"}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return wr.Handle.State.Fence
}

// The head moves between the read and the transaction: the check refuses.
func TestStartIsFenced(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := newWorld(t)
		fence := w.claimed("e").Fence
		op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
		var wg sync.WaitGroup
		var startErr error
		var claimed int64
		wg.Go(func() { _, startErr = w.Ledger.StartOperation(context.Background(), w.starting(op, 1, fence, "n")) })
		wg.Go(func() { claimed = takeOver(w, op, fence) })
		wg.Wait()
		slots, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op)
		if err != nil {
			t.Fatal(err)
		}
		started := slots[1] != nil && slots[1].Started()
		if started != (startErr == nil) {
			t.Fatalf("started %v, told %v", started, startErr)
		}
		if started && slots[1].Fence != fence || claimed <= fence {
			t.Fatalf("slot %+v, claimed %d", slots[1], claimed)
		}
	}
}

// Another owner that comes between the read and the transaction: the head refuses
// the start, although the journal as read and the slot would let it through.
func TestStartBehindATakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fence := w.claimed("e").Fence
	op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
	other := w.process()
	b := &storetest.BeforeTransact{Table: w.Journal.Table}
	b.What = func() {
		_, err := other.Recovery.Claim(t.Context(), identified(&api.ClaimRequest{Common: w.common(), Claiming: api.Claiming{Execution: "e", Owner: "x", LeaseSeconds: 60, Force: &api.Force{Reason: "r"}}}))
		if err != nil {
			t.Error(err)
		}
	}
	w.Journal.Table = b
	if _, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n")); execution.CodeOf(err) != execution.LeaseLost {
		t.Fatalf("%v", err)
	}
	if slots, err := w.Journal.ReadSlots(t.Context(), w.where("e").Ref, op); err != nil || slots[1] != nil {
		t.Fatalf("%+v %v", slots[1], err)
	}
}

// Of sixteen processes with nonces of their own one gets `go`; recovery that
// closes the slot at the same time either wins alone or comes too late.
func TestStartRace(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		w := newWorld(t)
		fence := w.claimed("e").Fence
		op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
		h, err := w.Journal.Open(t.Context(), w.tenant, "e", journal.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		gone, closed := 0, false
		for i := range 16 {
			p := w.process()
			wg.Go(func() {
				if i == round {
					got, err := p.Ledger.Settle(context.Background(), h, []execution.Settlement{{Operation: op, Attempt: 1, Outcome: execution.OutcomeNotExecuted, Source: execution.FromSlot}})
					if err != nil {
						t.Error(err)
					}
					closed = len(got) == 1
					return
				}
				_, err := p.Ledger.StartOperation(context.Background(), w.starting(op, 1, fence, fmt.Sprint("n", i)))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					gone++
				}
			})
		}
		wg.Wait()
		if closed && gone != 0 || !closed && gone != 1 {
			t.Errorf("closed %v, %d times go", closed, gone)
		}
	}
}

func TestStartFaults(t *testing.T) {
	t.Parallel()
	everyFault(t, []string{"query", "transact"}, func(t *testing.T, f memory.Fault) {
		w := newWorld(t)
		fence := w.claimed("e").Fence
		op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
		w.faults(f)
		_, err := attempt(t, func(ctx context.Context) (*api.StartOperationReply, error) {
			return w.Ledger.StartOperation(ctx, w.starting(op, 1, fence, "n"))
		})
		if err != nil && !execution.CodeOf(err).Retryable() {
			t.Fatalf("not retryable: %v", err)
		}
		w.faults()
		w.restart()
		// The process that died never comes back with its nonce; one that lives does.
		if r, err := w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "n")); err != nil || r.Disposition != api.Go {
			t.Fatalf("%+v, %v", r, err)
		}
		_, err = w.Ledger.StartOperation(t.Context(), w.starting(op, 1, fence, "other"))
		refused(t, err, execution.OperationMismatch, "nonce")
	})
}

// What stands in a slot wins over a settlement; what cannot count is left out.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w *world, op execution.OperationID, fence int64)
		t      execution.Settlement
		want   string
	}{
		"empty":              {nil, execution.Settlement{Outcome: execution.OutcomeNotExecuted, Source: execution.FromSlot}, "not_executed slot"},
		"verdict on started": {starts, execution.Settlement{Outcome: execution.OutcomeAbandoned, Source: execution.FromVerdict}, "abandoned verdict"},
		"slot on started":    {starts, execution.Settlement{Outcome: execution.OutcomeNotExecuted, Source: execution.FromSlot}, ""},
		"outcome is there": {func(w *world, op execution.OperationID, _ int64) {
			w.record(w.outcome("e", op, execution.OutcomeSucceeded, `7`))
		}, execution.Settlement{Outcome: execution.OutcomeNotExecuted, Source: execution.FromCaller}, "succeeded ledger"},
		"not bound to a slot": {nil, execution.Settlement{Outcome: execution.OutcomeSucceeded, Source: execution.FromResolver}, "succeeded resolver"},
		"moved": {func(w *world, op execution.OperationID, _ int64) {
			k := journal.SlotKey("bank#e", op, 1)
			it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.SlotGeneration: store.N(w.where("e").Generation), journal.SlotOutcome: store.S("moved")}
			if _, err := w.engine.Table(memory.Main).Put(context.Background(), store.Put{Item: it}); err != nil {
				w.t.Fatal(err)
			}
		}, execution.Settlement{Outcome: execution.OutcomeNotExecuted, Source: execution.FromVerdict}, "ExecutionClosed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			fence := w.claimed("e").Fence
			op := w.declare("e", api.OperationDeclaration{OnUncertain: execution.Close}).Operation
			if c.before != nil {
				c.before(w, op, fence)
			}
			h, err := w.Journal.Open(t.Context(), w.tenant, "e", journal.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c.t.Operation, c.t.Attempt = op, 1
			for range 2 {
				got, err := w.Ledger.Settle(t.Context(), h, []execution.Settlement{c.t})
				s := string(execution.CodeOf(err))
				if len(got) == 1 {
					s = string(got[0].Outcome) + " " + string(got[0].Source)
				}
				if s != c.want {
					t.Errorf("settled %q, want %q (%v)", s, c.want, err)
				}
			}
		})
	}
}

func starts(w *world, op execution.OperationID, fence int64) {
	w.t.Helper()
	if _, err := w.Ledger.StartOperation(context.Background(), w.starting(op, 1, fence, "n")); err != nil {
		w.t.Fatal(err)
	}
}
