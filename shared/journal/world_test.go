package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

const tenant = execution.TenantID("acme")

// world is a store and as many processes as a test wants.
type world struct {
	t      testing.TB
	engine *memory.Engine
	start  time.Time
	kms    *local.KMS
	// inline and snapshot override the limits of the journals made from here.
	inline, snapshot int
	sealer           *seal.Sealer
	fixed            bool // randomness that is the same in every run
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, engine: memory.New(memory.Options{NoStream: true})}
	w.start = w.engine.Now()
	w.kms = &local.KMS{Master: []byte("test")}
	return w
}

// fixedRand is a source of bytes for tests that compare two runs.
type fixedRand struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (f *fixedRand) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.Read(p)
}

// process is a Journal of its own: nothing in memory yet, but the tenant's keys.
func (w *world) process() *Journal {
	src := rand.NewChaCha8([32]byte{1})
	if !w.fixed {
		src = rand.NewChaCha8([32]byte{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32()), 5})
	}
	r := &fixedRand{r: src}
	if w.sealer == nil { // the cost of keys is not what these tests count
		w.sealer = seal.New(seal.Options{Keys: w.engine.Table(memory.Keys), KMS: w.kms, KeyID: "k", Rand: r, Now: w.engine.Now})
	}
	return New(Options{Table: w.engine.Table(memory.Main), Bucket: w.engine.Bucket(), Sealer: w.sealer, Rand: r,
		Elapsed: func() time.Duration { return w.engine.Now().Sub(w.start) }, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		InlineBody: w.inline, SnapshotBytes: w.snapshot})
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

// calls gives what was called since the last time, and begins anew.
func (w *world) calls() []memory.Call {
	l := w.engine.Log()
	w.engine.Mark()
	return l
}

func names(calls []memory.Call) string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.Call
	}
	return strings.Join(out, " ")
}

// items is the main table as it lies.
func (w *world) items(pk string) map[string]store.Item {
	w.t.Helper()
	out := map[string]store.Item{}
	q := store.Query{PK: pk, Consistent: true}
	for {
		p, _, err := w.engine.Table(memory.Main).Query(context.Background(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, it := range p.Items {
			out[it.Key().SK] = it
		}
		if p.Next == nil {
			return out
		}
		q.Start = p.Next
	}
}

// put overwrites an item behind the journal's back.
func (w *world) put(it store.Item) {
	w.t.Helper()
	if _, err := w.engine.Table(memory.Main).Put(context.Background(), store.Put{Item: it}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(pk, sk string) {
	w.t.Helper()
	if _, _, err := w.engine.Table(memory.Main).Delete(context.Background(), store.Delete{Key: store.Key{PK: pk, SK: sk}}); err != nil {
		w.t.Fatal(err)
	}
}

func request(id string) execution.RequestID { return requestWith(id, id) }

func requestWith(id, content string) execution.RequestID {
	h, d := sha256.Sum256([]byte(id)), sha256.Sum256([]byte("c"+content))
	return execution.RequestID{ID: id, Hash: execution.RequestHash(h[:16]), Digest: execution.ContentDigest(d[:16])}
}

func value(s string) *jsonx.Value { return jsonx.MustParse(s) }

// creation asks for an execution with a state, claimed by an owner if one is
// named.
func creation(e execution.ExecutionID, state, owner string) Creation {
	c := &execution.Change{Kind: execution.KindCreated, Request: request("create " + string(e)), State: value(state), Created: &execution.Creation{Workflow: "wf", Thread: "case-1"}}
	if owner != "" {
		c.Claim = &execution.ClaimRequest{Owner: owner, LeaseSeconds: 60}
	}
	return Creation{Tenant: tenant, Execution: e, Change: c, LabelTokens: []string{"lt1"}, SubjectTokens: []string{"st1", "st2"}}
}

func (w *world) create(j *Journal, e execution.ExecutionID, state, owner string) *Handle {
	w.t.Helper()
	h, replayed, err := j.Create(context.Background(), creation(e, state, owner))
	if err != nil || replayed {
		w.t.Fatalf("create: %v replayed %v", err, replayed)
	}
	return h
}

// step is a transition as the services write them: a plain put, or a
// transaction with the head where the status changes.
func (j *Journal) step(ctx context.Context, e execution.ExecutionID, c execution.Change) (*Written, error) {
	return j.Write(ctx, tenant, e, WriteOptions{AtLeast: c.Expected}, func(_ context.Context, h *Handle) (*Step, error) {
		p, err := execution.Propose(h.State, h.State.Ref, &c, execution.Environment{Now: j.Now(h), Epoch: j.Epoch})
		if err != nil || p.Replay != nil {
			return &Step{Proposal: p}, err
		}
		s := &Step{Proposal: p}
		if p.State.Status != h.State.Status || p.State.Owner != h.State.Owner {
			s.Head = &HeadChange{Due: Due{At: p.Entry.At + 7_200_000, Kind: DueWake}, Timer: "wake"}
		}
		return s, nil
	})
}

// change is an owner's apply on top of a handle.
func change(h *Handle, id, merge string) execution.Change {
	c := execution.Change{Kind: execution.KindCheckpoint, Expected: h.State.Version, Fence: h.State.Fence, HasFence: h.State.Fence > 0, Merge: value(merge)}
	if id != "" {
		c.Request = request(id)
	}
	return c
}

func (w *world) apply(j *Journal, h *Handle, id, merge string) *Handle {
	w.t.Helper()
	got, err := j.step(context.Background(), h.State.Execution, change(h, id, merge))
	if err != nil || got.Replay != nil {
		w.t.Fatalf("apply %s: %v", id, err)
	}
	return got.Handle
}

func claiming(owner, nonce string) execution.Change {
	c := execution.Change{Kind: execution.KindClaimed, Claim: &execution.ClaimRequest{Owner: owner, LeaseSeconds: 60}}
	if nonce != "" {
		c.Request = request(nonce)
		c.Claim.Nonce = c.Request.Hash
	}
	return c
}

func (w *world) open(j *Journal, e execution.ExecutionID) *Handle {
	w.t.Helper()
	h, err := j.Open(context.Background(), tenant, e, OpenOptions{Head: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// same compares two handles in everything that later steps depend on.
func same(t testing.TB, a, b *Handle) {
	t.Helper()
	if x, y := asText(t, a), asText(t, b); x != y {
		t.Fatalf("handles differ:\n%s\n%s", x, y)
	}
}

func asText(t testing.TB, h *Handle) string {
	t.Helper()
	b, err := marshal(h.State)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s\n%s\ntip %x chain %d bytes %d of %d", b, h.State.Data, h.tip, h.chain, h.chainBytes, h.snapBytes)
}

func wantCode(t testing.TB, err error, code execution.Code, facts ...string) {
	t.Helper()
	if execution.CodeOf(err) != code {
		t.Fatalf("got %v, want %q", err, code)
	}
	if err == nil {
		return
	}
	e := execution.AsError(err)
	for _, f := range facts {
		if e.Facts[f] == nil {
			t.Fatalf("%v does not say %s: %v", err, f, e.Facts)
		}
	}
}
