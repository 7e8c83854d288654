package checkpoint_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// world is the product over a memory engine, one tenant.
type world struct {
	*testing.T
	e *memory.Engine
	*wiring.Services
	n int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, e: memory.New(memory.Options{})}
	w.restart()
	return w
}

// restart is a new process: no memory survives.
func (w *world) restart() {
	start := w.e.Now()
	w.Services = wiring.New(wiring.Outside{Main: w.e.Table(memory.Main), Keys: w.e.Table(memory.Keys), Bucket: w.e.Bucket(), KMS: &local.KMS{Master: make([]byte, 32)}, DataKey: "k",
		Now: w.e.Now, Elapsed: func() time.Duration { return w.e.Now().Sub(start) }, Rand: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

const tenant = execution.TenantID("t")

func (w *world) common() api.Common {
	w.n++
	return api.Common{Tenant: tenant, RequestID: fmt.Sprintf("r%d", w.n)}
}

func (w *world) create(id string, change func(*api.CreateRequest)) *api.CreateReply {
	w.Helper()
	r := &api.CreateRequest{Common: w.common(), Execution: execution.ExecutionID(id), Workflow: "wf"}
	if change != nil {
		change(r)
	}
	api.Identify(r)
	out, err := w.Checkpoint.Create(w.Context(), r)
	if err != nil {
		w.Fatalf("create %s: %v", id, err)
	}
	return out
}

// step is an apply at the version given.
func (w *world) step(id string, version int64, change func(*api.ApplyRequest)) (*api.ApplyReply, *api.ApplyRequest, error) {
	w.Helper()
	r := &api.ApplyRequest{Common: w.common(), Changes: api.Changes{Execution: execution.ExecutionID(id), ExpectedVersion: version}}
	change(r)
	api.Identify(r)
	out, err := w.Checkpoint.Apply(w.Context(), r)
	return out, r, err
}

func (w *world) apply(id string, version int64, change func(*api.ApplyRequest)) *api.ApplyReply {
	w.Helper()
	out, _, err := w.step(id, version, change)
	if err != nil {
		w.Fatalf("apply to %s at %d: %v", id, version, err)
	}
	return out
}

func (w *world) get(id string) *api.GetReply {
	w.Helper()
	out, err := w.Checkpoint.Get(w.Context(), &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: execution.ExecutionID(id), MaxInlineBytes: execution.MaxReplyBytes})
	if err != nil {
		w.Fatalf("get %s: %v", id, err)
	}
	return out
}

func (w *world) list(change func(*api.ListRequest)) (ids []string, pages int) {
	w.Helper()
	r := &api.ListRequest{Common: api.Common{Tenant: tenant}}
	change(r)
	for {
		out, err := w.Checkpoint.List(w.Context(), r)
		if err != nil {
			w.Fatal(err)
		}
		pages++
		for _, x := range out.Executions {
			ids = append(ids, string(x.Execution))
		}
		if out.Cursor == "" {
			return ids, pages
		}
		if len(out.Executions) == 0 {
			w.Fatal("an empty page with a cursor")
		}
		r.Cursor = out.Cursor
	}
}

func wantCode(t *testing.T, err error, code execution.Code) *execution.Error {
	t.Helper()
	if execution.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return execution.AsError(err)
}

func js(format string, args ...any) *jsonx.Value {
	return jsonx.MustParse(fmt.Sprintf(format, args...))
}
