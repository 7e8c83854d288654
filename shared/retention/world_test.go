package retention_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
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
	// hookedServices are another process (over).
	hookedServices *wiring.Services
	requests       *atomic.Int64
	epoch          int64
}

func newWorld(t testing.TB) *world { return newWorldAt(t, time.Time{}) }

func newWorldAt(t testing.TB, start time.Time) *world {
	e := memory.New(memory.Options{NoStream: true, Start: start})
	w := &world{t: t, engine: e, start: e.Now(), kms: &local.KMS{Master: []byte("master")}, tenant: "bank", requests: &atomic.Int64{}}
	w.restart()
	return w
}

// copyOf is another world with the same content at the same time.
func copyOf(t testing.TB, w *world) *world {
	t.Helper()
	e := memory.New(memory.Options{NoStream: true, Start: w.engine.Now()})
	if err := e.Load(w.engine.Dump()); err != nil {
		t.Fatal(err)
	}
	c := &world{t: t, engine: e, start: e.Now(), kms: &local.KMS{Master: []byte("master")}, tenant: w.tenant, requests: w.requests}
	c.restart()
	return c
}

// process is a new process over a main table.
func (w *world) process(main store.Table) *wiring.Services {
	return w.processOver(main, w.engine.Bucket())
}

func (w *world) processOver(main store.Table, bucket store.Bucket) *wiring.Services {
	return wiring.New(wiring.Outside{Main: main, Keys: w.engine.Table(memory.Keys), Bucket: bucket, KMS: w.kms, DataKey: "stack", Epoch: w.epoch,
		Now: w.engine.Now, Elapsed: func() time.Duration { return w.engine.Now().Sub(w.start) }, Rand: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

func (w *world) restart() { w.Services = w.process(w.engine.Table(memory.Main)) }

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

// noise is JSON text that does not compress.
func noise(seed uint64, n int) string {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	r := mathrand.NewChaCha8(key)
	b := make([]byte, n*3/4+3)
	_, _ = r.Read(b)
	return base64.StdEncoding.EncodeToString(b)[:n]
}

// stride is how many calls a matrix of faults moves on at a time: under the race
// detector, which looks for something else, not every one.
func stride() int {
	if raceEnabled {
		return 5
	}
	return 1
}

type ctxt = context.Context

// fields are a request's or reply's fields.
type fields map[string]any

// do calls a function through its handler, as every caller does.
func (w *world) do(ctx context.Context, function, action string, f fields) (fields, error) {
	w.t.Helper()
	req := fields{"action": action, "tenant": string(w.tenant)}
	if v, ok := api.Lookup(function, action); ok && !v.ReadOnly {
		req["request_id"] = fmt.Sprintf("r%d", w.requests.Add(1))
	}
	for k, v := range f {
		req[k] = v
	}
	raw, err := json.Marshal(req)
	if err != nil {
		w.t.Fatal(err)
	}
	reply, err := w.Functions()[function](ctx, raw)
	if err != nil {
		return nil, lambdaError(err)
	}
	var out fields
	if err := json.Unmarshal(reply, &out); err != nil {
		w.t.Fatal(err)
	}
	return out, nil
}

// lambdaError gives back the error that a Lambda error stands for.
func lambdaError(err error) error {
	var e messages.InvokeResponse_Error
	if !errors.As(err, &e) {
		return err
	}
	var facts map[string]any
	_ = json.Unmarshal([]byte(e.Message), &facts)
	text, _ := facts["message"].(string)
	return &execution.Error{Code: execution.Code(e.Type), Message: text, Facts: facts}
}

func (w *world) ok(function, action string, f fields) fields {
	w.t.Helper()
	out, err := w.do(w.t.Context(), function, action, f)
	if err != nil {
		w.t.Fatalf("%s: %v", action, err)
	}
	return out
}

// code is the code of a call's error, "" for success.
func (w *world) code(function, action string, f fields) execution.Code {
	w.t.Helper()
	_, err := w.do(w.t.Context(), function, action, f)
	return execution.CodeOf(err)
}

func (w *world) create(e string, f fields) {
	w.t.Helper()
	r := fields{"execution": e, "workflow": "wf"}
	for k, v := range f {
		r[k] = v
	}
	w.ok("checkpoint", "create", r)
}

func (w *world) get(e string) fields {
	w.t.Helper()
	return w.ok("checkpoint", "get", fields{"execution": e, "max_inline_bytes": 5_000_000})
}

func (w *world) getCode(e string) execution.Code {
	return w.code("checkpoint", "get", fields{"execution": e})
}

// apply writes a step at the tip.
func (w *world) apply(e string, f fields) fields {
	w.t.Helper()
	at := w.ok("checkpoint", "get", fields{"execution": e, "include": []string{}})
	r := fields{"execution": e, "expected_version": at["version"]}
	if at["fence"] != nil && at["fence"].(float64) > 0 {
		r["fence"] = at["fence"]
	}
	for k, v := range f {
		r[k] = v
	}
	return w.ok("checkpoint", "apply", r)
}

func (w *world) complete(e string) {
	w.t.Helper()
	w.apply(e, fields{"then": fields{"complete": fields{"outcome": "completed"}}})
}

// rich makes an execution with everything that a deletion must reach: inline and
// oversize entries, an artifact, a slot, a signal, labels, subjects, timers.
func (w *world) rich(e string, f fields) {
	w.t.Helper()
	r := fields{"claim": fields{"owner": "w", "lease_seconds": 7200}, "labels": fields{"kind": "loan"}, "subjects": []string{"customer-1"}}
	for k, v := range f {
		r[k] = v
	}
	w.create(e, r)
	fence := w.get(e)["fence"]
	a := w.ok("checkpoint", "put_artifact", fields{"execution": e, "fence": fence, "name": "doc", "media_type": "text/plain", "body": []byte("artifact of " + e)})
	digest := a["artifact"].(map[string]any)["digest"]
	seed := uint64(len(e))<<8 + uint64(e[len(e)-1])
	w.apply(e, fields{"state": fields{"big": noise(seed, 60_000)}, "artifacts": []any{digest}})
	o := w.apply(e, fields{"operations": []any{fields{"name": "pay", "key": "k", "args": fields{}}}})
	op := o["operations"].([]any)[0].(map[string]any)["operation"]
	w.ok("checkpoint", "record_outcome", fields{"execution": e, "operation": op, "outcome": "succeeded", "result": fields{"r": 1}})
	w.ok("checkpoint", "signal", fields{"execution": e, "name": "paper", "key": "1", "body": fields{"s": 1}})
	w.apply(e, fields{"outcomes": []any{fields{"operation": op}}})
}

// items are the table's items as "pk/sk" -> their JSON, for comparisons.
func (w *world) items() map[string]string {
	out := map[string]string{}
	for _, raw := range w.engine.Dump().Items {
		var k struct {
			PK struct{ S string } `json:"pk"`
			SK struct{ S string } `json:"sk"`
		}
		if err := json.Unmarshal(raw, &k); err != nil {
			w.t.Fatal(err)
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw)
		out[k.PK.S+"/"+k.SK.S] = compact.String()
	}
	return out
}

// objects are the bucket's versions as "key" -> their content.
func (w *world) objects() map[string]string {
	out := map[string]string{}
	for _, o := range w.engine.Dump().Objects {
		b, _ := json.Marshal(o.Body)
		out[o.Key] = fmt.Sprintf("%v %s", o.DeleteMarker, b)
	}
	return out
}

// of lists the keys that belong to a tenant or execution.
func of(m map[string]string, prefix string) []string {
	var out []string
	for k := range m {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// crash runs f in an invocation that a scripted crash can end.
func (w *world) crash(f func(ctx context.Context) error) error {
	ctx, inv := memory.WithInvocation(w.t.Context())
	defer inv.End()
	return f(ctx)
}

func (w *world) query(pk string) []store.Item {
	w.t.Helper()
	var out []store.Item
	q := store.Query{PK: pk, Consistent: true}
	for {
		p, _, err := w.engine.Table(memory.Main).Query(w.t.Context(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, p.Items...)
		if p.Next == nil {
			return out
		}
		q.Start = p.Next
	}
}

func (w *world) sweep() fields {
	w.t.Helper()
	return w.ok("retention", "sweep", nil)
}

// settle sweeps until nothing is done any more.
func (w *world) settle() {
	w.t.Helper()
	for range 50 {
		r := w.sweep()
		if n, _ := r["failures"].([]any); len(n) > 0 {
			w.t.Fatalf("sweep: %v", n)
		}
		if r["removed"].(float64) == 0 {
			return
		}
	}
	w.t.Fatal("the sweep never comes to an end")
}

func ref(w *world, e string) execution.Ref {
	w.t.Helper()
	h, _, err := w.Journal.ReadHead(w.t.Context(), w.tenant, execution.ExecutionID(e))
	if err != nil || h == nil {
		w.t.Fatalf("head of %s: %v %v", e, h, err)
	}
	return h.Ref
}
