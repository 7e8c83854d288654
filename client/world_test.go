package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

// world is a sandbox with the real functions.
type world struct {
	t      *testing.T
	server *sandbox.Server
	url    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	s.Engine().SetBaseURL(h.URL + "/sandbox/objects/")
	return &world{t, s, h.URL}
}

// client is an ordinary one.
func (w *world) client() *client.Client { return w.through(client.HTTP{URL: w.url}) }

func (w *world) through(d client.Door) *client.Client {
	return client.New(client.Options{Door: d, Tenant: "acme", Clock: quickClock{client.HostClock()}, Attempts: 4})
}

// quickClock is the machine's clock, with short pauses between attempts.
type quickClock struct{ client.Clock }

func (c quickClock) Sleep(ctx context.Context, d time.Duration) error {
	if d < 10*time.Second && d > 0 {
		d = min(d, 5*time.Millisecond)
	}
	return c.Clock.Sleep(ctx, d)
}

// create makes an execution with a state.
func (w *world) create(id execution.ExecutionID, state string) {
	w.t.Helper()
	_, err := w.client().Create(w.t.Context(), &api.CreateRequest{Execution: id, Workflow: "case", State: jsonx.MustParse(state)})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	if err := w.server.Engine().Advance(d); err != nil {
		w.t.Fatal(err)
	}
}

// run delivers everything that is due.
func (w *world) run() {
	w.t.Helper()
	resp, err := http.Post(w.url+"/sandbox/run", "application/json", bytes.NewReader([]byte("{}")))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Delivered, Failed int }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Failed != 0 {
		body, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("run: %+v %v %s", out, err, body)
	}
}

func (w *world) signal(id execution.ExecutionID, name, key, body string) {
	w.t.Helper()
	_, err := w.client().Signal(w.t.Context(), &api.SignalRequest{Execution: id, Name: name, Key: key, Body: jsonx.MustParse(body)})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(id execution.ExecutionID) *api.GetReply {
	w.t.Helper()
	got, err := w.client().Get(context.WithoutCancel(w.t.Context()), &api.GetRequest{Execution: id})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// business counts what really happened.
type business struct {
	mu       sync.Mutex
	executed map[string]int // by operation name and key
	byKey    map[string]int // by provider key, for the system that deduplicates
}

func newBusiness() *business {
	return &business{executed: map[string]int{}, byKey: map[string]int{}}
}

// run makes an effect. A `same_key` system does nothing for a key that it knows.
func (b *business) run(e client.Effect) client.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey[e.ProviderKey]++; e.Name != "mail" || b.byKey[e.ProviderKey] == 1 {
		b.executed[e.Name+"/"+e.Key]++
	}
	return client.Success(jsonx.MustParse(fmt.Sprintf(`{"done":%q,"amount":1.50}`, e.Name+"/"+e.Key)), "ref-"+e.Key)
}

func (b *business) happened(name, key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.executed[name+"/"+key]
}

// mortal is a process that dies at its n-th point: before or after a call or an
// effect. Whatever it does after that has no effect.
type mortal struct {
	mu   sync.Mutex
	left int // 0: immortal
	dead bool
	seen int
}

var errDead = execution.Errorf(execution.InvalidRequest, "the process is dead")

func (m *mortal) point() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	m.seen++
	if m.left > 0 && m.seen == m.left {
		m.dead = true
		return errDead
	}
	return nil
}

// door dies before or after calls.
type mortalDoor struct {
	*mortal
	inner client.Door
}

func (d mortalDoor) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	if err := d.point(); err != nil {
		return nil, err
	}
	reply, err := d.inner.Invoke(context.WithoutCancel(ctx), function, payload)
	return reply, errors.Join(d.point(), err)
}
