package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/recovery"
)

// airline is the business system of one run: it answers as recorded, counts what
// it really does, says what became of a key, and refuses workers whose fence is
// older than the newest it has seen.
type airline struct {
	mu      sync.Mutex
	answers map[string][]*jsonx.Value // by effect, in the order of the recording
	byKey   map[string]*jsonx.Value   // by provider key
	done    map[string]int            // effects that really happened
	again   int                       // effects that were asked for again after they had happened
	fence   int64
}

func newAirline(r *recording) (*airline, error) {
	a := &airline{answers: map[string][]*jsonx.Value{}, byKey: map[string]*jsonx.Value{}, done: map[string]int{}}
	for i, m := range r.messages {
		e, err := effectOf(m)
		if err != nil {
			return nil, err
		}
		if e != nil && i+1 < len(r.messages) {
			a.answers[e.identity()] = append(a.answers[e.identity()], r.messages[i+1].Get("content"))
		}
	}
	return a, nil
}

var errFenced = errors.New("airline: another worker has taken over")

// execute does what an effect asks for.
func (a *airline) execute(_ context.Context, e client.Effect) (client.Outcome, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Fence < a.fence {
		return client.Outcome{}, errFenced
	}
	a.fence = e.Fence
	what := effect{e.Name, e.Args}
	answer, known := a.byKey[e.ProviderKey]
	if !known {
		list := a.answers[what.identity()]
		if len(list) == 0 {
			return client.Outcome{}, fmt.Errorf("airline: %s was not recorded so often", e.Name)
		}
		answer, a.answers[what.identity()] = list[0], list[1:]
		a.byKey[e.ProviderKey] = answer
	}
	text, _ := answer.Text()
	if refused(text) {
		return client.Outcome{Outcome: "rejected", Reason: "refused by the airline", Result: answer}, nil
	}
	if known {
		a.again++
	} else {
		a.done[what.identity()]++
	}
	return client.Success(answer, ""), nil
}

// Ask implements recovery.Resolver: the airline's own answer about a key. Having
// seen the asker's fence it lets no older worker act any more, so that "not
// found" is proof.
func (a *airline) Ask(_ context.Context, q recovery.Question) (recovery.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fence = max(a.fence, q.Fence)
	answer, known := a.byKey[q.ProviderKey]
	if text, _ := answer.Text(); !known || refused(text) {
		return recovery.Answer{JSON: fmt.Appendf(nil, `{"finding":"not_found","fenced":%t}`, q.Fence > 0)}, nil
	}
	return recovery.Answer{JSON: fmt.Appendf(nil, `{"finding":"found","result":%s}`, answer)}, nil
}

// check says whether everything happened that was to happen, once.
func (a *airline) check(r *recording) error {
	want := map[string]bool{}
	for i, m := range r.messages[:len(r.messages)-1] {
		if e, _ := effectOf(m); e != nil && !refused(content(r.messages[i+1])) {
			want[e.identity()] = true
		}
	}
	if len(a.done) != len(want) {
		return fmt.Errorf("%d different effects happened, should be %d", len(a.done), len(want))
	}
	for id, n := range a.done {
		if n != 1 || !want[id] {
			return fmt.Errorf("an effect happened %d times", n)
		}
	}
	if a.again > 0 {
		return fmt.Errorf("effects were asked for %d times after they had happened", a.again)
	}
	return nil
}
