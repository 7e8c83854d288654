package artifact_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// world is one store with a server for presigned URLs.
type world struct {
	t      testing.TB
	engine *memory.Engine
	start  time.Time
	kms    *local.KMS
	*wiring.Services
	ref execution.Ref
	n   int
}

func newWorld(t testing.TB) *world {
	e := memory.New(memory.Options{})
	server := httptest.NewServer(http.HandlerFunc(e.ServePresigned))
	t.Cleanup(server.Close)
	e.SetBaseURL(server.URL + "/")
	w := &world{t: t, engine: e, start: e.Now(), kms: &local.KMS{Master: []byte("master")}}
	w.restart()
	w.ref = w.create("e")
	return w
}

func (w *world) restart() {
	w.Services = wiring.New(wiring.Outside{Main: w.engine.Table(memory.Main), Keys: w.engine.Table(memory.Keys), Bucket: w.engine.Bucket(), KMS: w.kms, DataKey: "stack",
		Now: w.engine.Now, Elapsed: func() time.Duration { return w.engine.Now().Sub(w.start) }, Rand: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

func (w *world) create(id string) execution.Ref {
	w.t.Helper()
	r := &api.CreateRequest{Common: api.Common{Tenant: "bank"}, Execution: execution.ExecutionID(id), Workflow: "wf", Claim: &api.CreateClaim{Owner: "w", LeaseSeconds: 86400}}
	api.Identify(r)
	out, err := w.Checkpoint.Create(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return execution.Ref{Tenant: "bank", Execution: execution.ExecutionID(id), Generation: out.Generation}
}

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

func request(name string, body []byte) *api.PutArtifactRequest {
	return &api.PutArtifactRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Name: name, MediaType: "text/plain", Body: body}
}

func (w *world) put(name string, body []byte) api.Artifact {
	w.t.Helper()
	out, err := w.Artifacts.Put(w.t.Context(), request(name, body))
	if err != nil {
		w.t.Fatalf("put_artifact: %v", err)
	}
	return out.Artifact
}

// accept writes an entry that accepts; it gives the entry's version.
func (w *world) accept(refs ...api.ArtifactRef) int64 {
	w.t.Helper()
	h, err := w.Journal.Open(w.t.Context(), "bank", "e", journal.OpenOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.n++
	r := &api.ApplyRequest{Common: api.Common{Tenant: "bank", RequestID: fmt.Sprint("r", w.n)}, Changes: api.Changes{Execution: "e", ExpectedVersion: h.State.Version, Fence: h.State.Fence, Artifacts: refs}}
	api.Identify(r)
	out, err := w.Checkpoint.Apply(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return out.Version
}

func (w *world) get(change func(*api.GetArtifactRequest)) (*api.GetArtifactReply, error) {
	r := &api.GetArtifactRequest{Common: api.Common{Tenant: "bank"}, Execution: "e"}
	change(r)
	return w.Artifacts.Get(w.t.Context(), r)
}

func (w *world) named(name string, version int64) (string, error) {
	r, err := w.get(func(r *api.GetArtifactRequest) { r.Name, r.Version = name, version })
	if err != nil {
		return "", err
	}
	return string(r.Body), nil
}

func (w *world) objects() []store.ObjectInfo {
	w.t.Helper()
	page, _, err := w.engine.Bucket().Versions(w.t.Context(), store.ListObjects{Prefix: journal.ObjectPrefix(w.ref) + "artifacts/"})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Objects
}

// fetch uses a URL as a client does.
func fetch(t testing.TB, method, url string, headers map[string]string, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func refused(t testing.TB, err error, code execution.Code, field string) {
	t.Helper()
	if execution.CodeOf(err) != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	if got := execution.AsError(err).Facts["field"]; field != "" && got != field {
		t.Fatalf("field %v, want %s: %v", got, field, err)
	}
}
