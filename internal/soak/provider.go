package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// Kinds of providers.
const (
	byKey   = "by-key" // deduplicates by idempotency key
	byQuery = "query"  // says what became of a key, and refuses fences older than one it has seen
	byHand  = "hand"   // neither; a person can look, and cancel what has not happened
)

// wish is a request for an effect.
type wish struct {
	Kind      string                `json:"kind"`
	Key       string                `json:"key"`
	Effect    string                `json:"effect"` // the logical effect, whatever the key
	Execution execution.ExecutionID `json:"execution"`
	Fence     int64                 `json:"fence"`
}

// provider is the business systems behind the operations; it counts what really
// happened.
type provider struct {
	faulty atomic.Bool

	mu       sync.Mutex
	random   *rand.Rand
	happened map[string]int // by logical effect
	keys     map[string]bool
	voided   map[string]int64 // by key: fences up to this one are refused
	fences   map[execution.ExecutionID]int64
	counts   providerCounts
}

// providerCounts are what the table shows.
type providerCounts struct {
	Effects    int // that happened
	Recognised int // requests whose key was known: a duplicate prevented here
	Found      int // questions answered with an effect: a duplicate prevented by recovery
	Fenced     int // requests refused for their old fence
	Broken     int // requests that got no answer
	Decided    int // effects that a person found, or cancelled
}

func newProvider(seed uint64) *provider {
	return &provider{random: rand.New(rand.NewPCG(seed, 2)), happened: map[string]int{}, keys: map[string]bool{}, voided: map[string]int64{}, fences: map[execution.ExecutionID]int64{}}
}

func (p *provider) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /effects", p.post)
	mux.HandleFunc("GET /effects/{key}", p.query)
}

// draw decides what goes wrong with a request: before it is carried out, after.
func (p *provider) draw() (before, after bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.faulty.Load() {
		return false, false, 0
	}
	n := p.random.IntN(100)
	if n >= 90 {
		wait = time.Duration(p.random.IntN(1000)) * time.Millisecond
	}
	before, after = n < 2, n >= 2 && n < 6
	if before || after {
		p.counts.Broken++
	}
	return before, after, wait
}

func (p *provider) post(w http.ResponseWriter, r *http.Request) {
	var ask wish
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&ask); err != nil || ask.Key == "" || ask.Effect == "" {
		http.Error(w, "a key and an effect, please", http.StatusBadRequest)
		return
	}
	before, after, wait := p.draw()
	if before {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(wait)
	refused := p.carryOut(ask)
	if after {
		panic(http.ErrAbortHandler)
	}
	if refused {
		http.Error(w, "refused", http.StatusConflict)
		return
	}
	answer(w, map[string]string{"reference": ask.Key[:min(8, len(ask.Key))]})
}

// carryOut makes the effect happen, as the kind of provider does.
func (p *provider) carryOut(ask wish) (refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ask.Kind == byKey && p.keys[ask.Key]:
		p.counts.Recognised++
		return false
	case ask.Kind == byHand && ask.Fence <= p.voided[ask.Key]:
		return true
	case ask.Kind == byQuery && ask.Fence < p.fences[ask.Execution]:
		p.counts.Fenced++
		return true
	case ask.Kind == byQuery:
		p.fences[ask.Execution] = ask.Fence
	}
	p.keys[ask.Key] = true
	p.happened[ask.Effect]++
	p.counts.Effects++
	return false
}

// query answers a resolver: found, or not found and closed to older fences.
func (p *provider) query(w http.ResponseWriter, r *http.Request) {
	fence, _ := strconv.ParseInt(r.FormValue("fence"), 10, 64)
	id := execution.ExecutionID(r.FormValue("execution"))
	before, after, wait := p.draw()
	if before || after {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(wait)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[r.PathValue("key")] {
		p.counts.Found++
		answer(w, map[string]any{"finding": execution.Found})
		return
	}
	p.fences[id] = max(p.fences[id], fence)
	answer(w, map[string]any{"finding": execution.NotFoundFinding, "fenced": fence > 0})
}

// look is a person's: what has not happened is cancelled, so that no owner up to
// now will make it happen.
func (p *provider) look(key string, fence int64) (happened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Decided++
	if !p.keys[key] {
		p.voided[key] = fence
	}
	return p.keys[key]
}

func (p *provider) times(effect string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.happened[effect]
}

func (p *provider) total() providerCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
