package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
)

// job is one start of a worker for an execution at a version.
type job struct {
	ID        int64                 `json:"id"`
	Execution execution.ExecutionID `json:"execution"`
	Version   int64                 `json:"version"`
	// Durable jobs come again until somebody has done them. A hand-over is sent
	// once in a long run, and its loss is the product's to notice: after a minute.
	durable bool
	due     time.Time
}

// ack is a step that a worker was told has been written.
type ack struct {
	Execution execution.ExecutionID `json:"execution"`
	Version   int64                 `json:"version"`
	Note      string                `json:"note"`
}

// trouble is an answer that a worker did not expect.
type trouble struct {
	Where string `json:"where"`
	Code  string `json:"code"`
	Text  string `json:"text"`
}

// queue is what stands between those who want executions driven and the workers:
// it delivers at least once or, of hand-overs, at most twice and sometimes never.
type queue struct {
	faulty atomic.Bool
	// again is when a durable job that was given out comes again; durable makes
	// hand-overs so too.
	again   time.Duration
	durable bool

	mu       sync.Mutex
	random   *rand.Rand
	last     int64
	jobs     map[int64]*job
	started  map[string]bool
	acks     []ack
	troubles []trouble
	lost     int
	doubled  int
	endings  map[string]int
}

func newQueue(seed uint64, again time.Duration, durable bool) *queue {
	return &queue{again: again, durable: durable, random: rand.New(rand.NewPCG(seed, 3)), jobs: map[int64]*job{}, started: map[string]bool{}, endings: map[string]int{}}
}

func (q *queue) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /next", q.next)
	mux.HandleFunc("POST /done", decode(func(d struct {
		ID     int64  `json:"id"`
		Ending string `json:"ending"`
	}) any {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.jobs, d.ID)
		q.endings[d.Ending]++
		return struct{}{}
	}))
	mux.HandleFunc("POST /ack", decode(func(a ack) any {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.acks = append(q.acks, a)
		return struct{}{}
	}))
	mux.HandleFunc("POST /trouble", decode(func(t trouble) any {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.troubles = append(q.troubles, t)
		return struct{}{}
	}))
	mux.HandleFunc("POST /start", decode(func(h recovery.Handover) any { return q.start(h) }))
}

func decode[T any](f func(T) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var v T
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&v); err != nil {
			http.Error(w, "no such request", http.StatusBadRequest)
			return
		}
		answer(w, f(v))
	}
}

// add puts a durable job in.
func (q *queue) add(id execution.ExecutionID, version int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put(job{Execution: id, Version: version, durable: true})
}

func (q *queue) put(j job) {
	q.last++
	j.ID = q.last
	q.jobs[j.ID] = &j
}

// start is the resume target of every workflow here.
func (q *queue) start(h recovery.Handover) recovery.StartOutcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	var j job
	if q.started[h.Name] || json.Unmarshal(h.Input, &j) != nil {
		return recovery.Existed
	}
	q.started[h.Name] = true
	j.durable = q.durable
	if q.faulty.Load() {
		switch n := q.random.IntN(100); {
		case n < 2:
			q.lost++
			return recovery.Started
		case n < 7:
			q.doubled++
			q.put(j)
		}
	}
	q.put(j)
	return recovery.Started
}

// next gives a job out, waiting a moment for one.
func (q *queue) next(w http.ResponseWriter, r *http.Request) {
	for range 20 {
		if j := q.take(); j != nil {
			answer(w, j)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (q *queue) take() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	var first *job
	for _, j := range q.jobs {
		if !j.due.After(now) && (first == nil || j.ID < first.ID) {
			first = j
		}
	}
	if first == nil {
		return nil
	}
	if first.durable {
		first.due = now.Add(q.again)
	} else {
		delete(q.jobs, first.ID)
	}
	given := *first
	return &given
}
