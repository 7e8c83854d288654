package ledger_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// world is one store with any number of processes over it.
type world struct {
	t      testing.TB
	engine *memory.Engine
	start  time.Time
	kms    *local.KMS
	tenant execution.TenantID
	*wiring.Services
	requests atomic.Int64
}

func newWorld(t testing.TB) *world {
	e := memory.New(memory.Options{})
	w := &world{t: t, engine: e, start: e.Now(), kms: &local.KMS{Master: []byte("master")}, tenant: "bank"}
	w.restart()
	return w
}

// process is a new process over the same store.
func (w *world) process() *wiring.Services {
	return wiring.New(wiring.Outside{Main: w.engine.Table(memory.Main), Keys: w.engine.Table(memory.Keys), Bucket: w.engine.Bucket(), KMS: w.kms, DataKey: "stack",
		Now: w.engine.Now, Elapsed: func() time.Duration { return w.engine.Now().Sub(w.start) }, Rand: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

func (w *world) restart() { w.Services = w.process() }

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	if err := w.engine.Advance(d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) faults(f ...memory.Fault) {
	w.t.Helper()
	if err := w.engine.SetFaults(f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) common() api.Common { return api.Common{Tenant: w.tenant} }

// identified gives a request its identity, as the door does.
func identified[R any](r *R) *R {
	api.Identify(r)
	return r
}

// claimed creates an execution with an owner.
func (w *world) claimed(id string) *api.CreateReply {
	w.t.Helper()
	r, err := w.Checkpoint.Create(w.t.Context(), identified(&api.CreateRequest{Common: w.common(), Execution: execution.ExecutionID(id), Workflow: "wf",
		Claim: &api.CreateClaim{Owner: "w", LeaseSeconds: 3600}}))
	if err != nil {
		w.t.Fatalf("create: %v", err)
	}
	return r
}

// where is the execution's tip.
func (w *world) where(id string) *execution.State {
	w.t.Helper()
	h, err := w.process().Journal.Open(w.t.Context(), w.tenant, execution.ExecutionID(id), journalOpen)
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	return h.State
}

// apply writes a step by the owner.
func (w *world) apply(id string, change func(*api.ApplyRequest)) *api.ApplyReply {
	w.t.Helper()
	s := w.where(id)
	r := &api.ApplyRequest{Common: w.common(), Changes: api.Changes{Execution: execution.ExecutionID(id), ExpectedVersion: s.Version, Fence: s.Fence}}
	r.RequestID = fmt.Sprintf("r%d", w.requests.Add(1))
	change(r)
	out, err := w.Checkpoint.Apply(w.t.Context(), identified(r))
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return out
}

// declare declares one operation.
func (w *world) declare(id string, d api.OperationDeclaration) api.OperationReply {
	w.t.Helper()
	if d.Name == "" {
		d.Name = "charge"
	}
	if d.Args == nil {
		d.Args = jsonx.MustParse(`{"amount":5}`)
	}
	return w.apply(id, func(r *api.ApplyRequest) { r.Operations = []api.OperationDeclaration{d} }).Operations[0]
}

func (w *world) outcome(id string, op execution.OperationID, o execution.Outcome, result string) *api.RecordOutcomeRequest {
	r := &api.RecordOutcomeRequest{Common: w.common(), Execution: execution.ExecutionID(id), Operation: op, Outcome: o}
	if result != "" {
		r.Result = jsonx.MustParse(result)
	}
	return identified(r)
}

func (w *world) record(r *api.RecordOutcomeRequest) *api.RecordOutcomeReply {
	w.t.Helper()
	out, err := w.Ledger.RecordOutcome(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("record_outcome: %v", err)
	}
	return out
}

func (w *world) get(id string, op execution.OperationID) *api.GetOperationReply {
	w.t.Helper()
	out, err := w.Ledger.GetOperation(w.t.Context(), &api.GetOperationRequest{Common: w.common(), Execution: execution.ExecutionID(id), Operation: op})
	if err != nil {
		w.t.Fatalf("get_operation: %v", err)
	}
	return out
}

// head is the raw head item.
func (w *world) head(id string) store.Item {
	w.t.Helper()
	it, _, err := w.engine.Table(memory.Main).Get(w.t.Context(), store.Get{Key: store.Key{PK: string(w.tenant) + "#" + id, SK: "head"}, Consistent: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return it
}

// refused fails the test unless err has the code, and the field where one is
// named.
func refused(t testing.TB, err error, code execution.Code, field string) {
	t.Helper()
	if execution.CodeOf(err) != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	if got := execution.AsError(err).Facts["field"]; field != "" && got != field {
		t.Fatalf("field %v, want %s: %v", got, field, err)
	}
}

func text(v *jsonx.Value) string {
	if v == nil {
		return "absent"
	}
	return string(v.Bytes())
}

// attempt makes a call in an invocation that a scripted crash may end.
func attempt[R any](t testing.TB, call func(ctx context.Context) (R, error)) (R, error) {
	ctx, inv := memory.WithInvocation(t.Context())
	defer inv.End()
	return call(ctx)
}

// everyFault runs f with each call failing in each way, from its first to its
// third.
func everyFault(t *testing.T, calls []string, f func(t *testing.T, fault memory.Fault)) {
	for _, on := range calls {
		for _, effect := range []string{"lost", "landed", "throttle", "unavailable", "crash_before", "crash_after"} {
			for nth := 1; nth <= 3; nth++ {
				t.Run(fmt.Sprintf("%s/%s/%d", on, effect, nth), func(t *testing.T) { f(t, memory.Fault{On: on, Effect: effect, Nth: nth}) })
			}
		}
	}
}
