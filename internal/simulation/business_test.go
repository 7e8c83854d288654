package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/store"
)

// The kinds of providers, by the names of the operations that use them.
const (
	plain   = "plain"   // every request is an effect; only asking helps
	expires = "expires" // refuses a request after its expiry (valid_seconds)
	windows = "windows" // recognises its key for a while (dedup_seconds), asked about
	samekey = "samekey" // the same, and the request is repeated under its key
	closes  = "closes"  // the worker fills the slot right before the effect
	tool    = "tool"    // effect and evidence in one transaction
	always  = "always"  // harmless to repeat
	fenced  = "fenced"  // remembers the highest fence and refuses older ones
	child   = "child"   // the effect is an execution
)

const (
	dedupSeconds = 420 // leaves two minutes for a repeat
	validSeconds = 240
)

// declared are the provider's promises in a declaration.
func declared(kind string) (on execution.OnUncertain, dedup, valid int64) {
	switch kind {
	case expires:
		return execution.Ask, 0, validSeconds
	case windows:
		return execution.Ask, dedupSeconds, 0
	case samekey:
		return execution.SameKey, dedupSeconds, 0
	case closes, tool:
		return execution.Close, 0, 0
	case always:
		return execution.Always, 0, 0
	}
	return execution.Ask, 0, 0
}

// message is a request to the business system.
type message struct {
	kind      string
	execution execution.ExecutionID
	operation execution.OperationID
	attempt   int
	key       string // the provider's key
	fence     int64
	expiry    int64     // ms; 0: none
	ready     time.Time // it does not arrive before
	deadline  time.Time // the network has lost it by then
	callback  string

	arrived bool
	outcome execution.Outcome // of the answer; "": refused without one
}

// effect is what really happened.
type effect struct {
	at      time.Time
	attempt int
	key     string
	outcome execution.Outcome
}

// business is the outside world: a provider of each kind. Every effect it has is
// remembered.
type business struct {
	w        *world
	flights  []*message
	effects  map[execution.OperationID][]effect
	byKey    map[string]effect
	refusals map[string]bool // keys that were rejected
	fences   map[execution.ExecutionID]int64
	deaf     bool // answers no questions
}

func newBusiness(w *world) business {
	return business{w: w, effects: map[execution.OperationID][]effect{}, byKey: map[string]effect{}, refusals: map[string]bool{}, fences: map[execution.ExecutionID]int64{}}
}

// decides is what the provider does with a request under that key.
func (b *business) decides(m *message) execution.Outcome {
	h := fnv.New32a()
	fmt.Fprint(h, b.w.Seed, m.key)
	switch n := h.Sum32() % 10; {
	case n < 1 && m.attempt < 3:
		return execution.OutcomeRejected
	case n < 2:
		return execution.OutcomeFailed
	}
	return execution.OutcomeSucceeded
}

// due lists the requests that may arrive now.
func (b *business) due() (out []int) {
	for i, m := range b.flights {
		if !m.ready.After(b.w.engine.Now()) || b.w.healing {
			out = append(out, i)
		}
	}
	return out
}

// deliver lets a request arrive; a copy may stay in the network.
func (b *business) deliver(i int) {
	w, m := b.w, b.flights[i]
	copied := !m.arrived && m.key != "" && (m.kind == samekey || m.kind == windows || m.kind == always) && !w.healing && w.rng.IntN(8) == 0
	if copied {
		m.ready = w.engine.Now().Add(time.Duration(w.rng.IntN(200)) * time.Second)
	} else {
		b.flights = append(b.flights[:i:i], b.flights[i+1:]...)
	}
	if w.engine.Now().After(m.deadline) {
		w.note("the network has lost %s of %s", m.kind, short(m.execution))
		m.arrived = true
		return
	}
	out := b.arrives(m)
	w.note("%s of %s/%.6s arrives under fence %d: %s", m.kind, short(m.execution), m.operation, m.fence, out)
	if !m.arrived {
		m.arrived, m.outcome = true, out
	}
	w.truth.effects(m.operation, m.kind)
}

func (b *business) arrives(m *message) execution.Outcome {
	now := b.w.engine.Now()
	switch m.kind {
	case expires:
		if m.expiry > 0 && now.UnixMilli() >= m.expiry {
			return ""
		}
	case windows, samekey:
		if e, ok := b.byKey[m.key]; ok && now.Before(e.at.Add(dedupSeconds*time.Second)) {
			return e.outcome
		}
	case fenced:
		if m.fence < b.fences[m.execution] {
			return ""
		}
		b.fences[m.execution] = m.fence
	}
	out := b.decides(m)
	if out == execution.OutcomeRejected {
		b.refusals[m.key] = true
		return out
	}
	e := effect{at: now, attempt: m.attempt, key: m.key, outcome: out}
	b.effects[m.operation], b.byKey[m.key] = append(b.effects[m.operation], e), e
	return out
}

// mayStill reports whether an effect may still come into being.
func (b *business) mayStill(op execution.OperationID, e execution.ExecutionID) bool {
	for _, m := range b.flights {
		if m.operation == op {
			return true
		}
	}
	for _, a := range b.w.actors {
		if !a.done && a.execution == e {
			return true
		}
	}
	return false
}

// Ask answers a resolver's question with the truth, if at all.
func (b *business) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	switch err := b.w.read(ctx, "ask", q.Name, string(q.Operation)); {
	case store.KindOf(err) == store.Throttled, err == nil && b.deaf:
		return recovery.Answer{JSON: []byte("out of order")}, nil
	case err != nil:
		return recovery.Answer{}, err
	}
	return recovery.Answer{JSON: []byte(b.answer(q))}, nil
}

func (b *business) answer(q recovery.Question) string {
	count := 0
	var last effect
	for _, e := range b.effects[q.Operation] {
		if e.key == q.ProviderKey {
			count++
			last = e
		}
	}
	switch {
	case q.Name == always && count > 0:
		return fmt.Sprintf(`{"finding":"found","outcome":%q}`, last.outcome)
	case count > 1:
		return fmt.Sprintf(`{"finding":"several","count":%d}`, count)
	case count == 1:
		return fmt.Sprintf(`{"finding":"found","outcome":%q}`, last.outcome)
	case b.refusals[q.ProviderKey] && q.Name != fenced:
		return `{"finding":"found","outcome":"rejected"}`
	case q.Name == fenced && q.Fence > 0:
		b.fences[q.Execution] = max(b.fences[q.Execution], q.Fence)
		return `{"finding":"not_found","fenced":true}`
	}
	return `{"finding":"not_found"}`
}

// settledBy sees the evidence of a tool's own transaction: the effect is in it.
func (b *business) settledBy(op execution.OperationID, attempt int, out execution.Outcome) {
	if out == execution.OutcomeSucceeded {
		b.effects[op] = append(b.effects[op], effect{at: b.w.engine.Now(), attempt: attempt, key: fmt.Sprint("attempt ", attempt), outcome: out})
	}
}
