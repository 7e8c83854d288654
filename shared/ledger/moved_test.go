package ledger_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// carry moves the right to act to a fork.
func (w *world) carry(id, child string) {
	w.t.Helper()
	r := &api.ForkRequest{Common: w.common(), Execution: execution.ExecutionID(id), AtVersion: w.where(id).Version, NewExecution: execution.ExecutionID(child), Operations: "carry"}
	r.RequestID = "carry-" + child
	if _, err := w.Checkpoint.Fork(w.t.Context(), identified(r)); err != nil {
		w.t.Fatalf("carry: %v", err)
	}
}

// Evidence that reaches the parent, by its id or a callback, however late,
// reaches the fork that has the right to act, and its forks.
func TestEvidenceIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	before := w.declare("e", api.OperationDeclaration{Key: "before"})
	after := w.declare("e", api.OperationDeclaration{Key: "after"})
	hook := w.declare("e", api.OperationDeclaration{Key: "hook"})
	message := w.declare("e", api.OperationDeclaration{Key: "message"})
	big := `"` + strings.Repeat("b", 20_000) + `"`
	w.record(w.outcome("e", before.Operation, execution.OutcomeSucceeded, `1`))
	w.carry("e", "f")
	w.carry("f", "g")

	if r := w.record(w.outcome("e", before.Operation, execution.OutcomeSucceeded, `1`)); r.Execution != "g" || r.Recorded {
		t.Errorf("recorded before the move, again: %+v", r)
	}
	if r := w.record(w.outcome("e", after.Operation, execution.OutcomeSucceeded, big)); r.Execution != "g" || !r.Recorded {
		t.Errorf("after the move: %+v", r)
	}
	cb := identified(&api.RecordOutcomeRequest{Common: w.common(), Callback: hook.Callback, Outcome: execution.OutcomeFailed})
	for range 2 {
		if r, err := w.Ledger.RecordOutcome(t.Context(), cb); err != nil || r.Execution != "g" {
			t.Errorf("by callback: %+v, %v", r, err)
		}
	}
	for op, status := range map[execution.OperationID]string{before.Operation: "succeeded", after.Operation: "succeeded", hook.Operation: "failed"} {
		if got := w.get("g", op); got.Status != status || len(got.Contradictions) != 0 {
			t.Errorf("at the fork: %s, want %s, %+v", got.Status, status, got.Contradictions)
		}
	}
	if got := w.get("g", after.Operation); text(got.Result) != big {
		t.Errorf("large result: %d bytes", got.Result.Size())
	}
	s := w.signal("", "answer", "k", `1`)
	s.Callback = message.Callback
	for i := range 2 {
		r, err := w.Ledger.Signal(t.Context(), identified(s))
		if err != nil || r.Execution != "g" || r.Recorded != (i == 0) {
			t.Errorf("signal by callback: %+v, %v", r, err)
		}
	}
	if inbox, err := w.Ledger.Inbox(t.Context(), w.where("g")); err != nil || len(inbox.Open) != 1 {
		t.Errorf("inbox of the fork: %+v, %v", inbox, err)
	}
	// Without a callback the sender is told where to.
	_, err := w.Ledger.Signal(t.Context(), w.signal("e", "answer", "other", `1`))
	refused(t, err, execution.ExecutionClosed, "")
	_, err = w.Ledger.StartOperation(t.Context(), w.starting(after.Operation, 1, 1, "n"))
	refused(t, err, execution.ExecutionClosed, "")
}

// Recorders and the move at the same time: whoever was first, the fork ends with
// every outcome.
func TestRecordRacesMove(t *testing.T) {
	t.Parallel()
	for range 15 {
		w := newWorld(t)
		w.claimed("e")
		var ops []execution.OperationID
		for _, key := range []string{"a", "b", "c", "d"} {
			ops = append(ops, w.declare("e", api.OperationDeclaration{Key: key}).Operation)
		}
		var wg sync.WaitGroup
		for _, op := range ops {
			p := w.process()
			wg.Go(func() {
				if _, err := p.Ledger.RecordOutcome(context.Background(), w.outcome("e", op, execution.OutcomeSucceeded, `1`)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { w.carry("e", "f") })
		wg.Wait()
		for _, op := range ops {
			if got := w.get("f", op); got.Status != "succeeded" || len(got.Contradictions) != 0 {
				t.Errorf("at the fork: %s %+v", got.Status, got.Contradictions)
			}
		}
	}
}
