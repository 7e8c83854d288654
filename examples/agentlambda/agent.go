package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// memory is the agent's state.
type memory struct {
	Complaint complaint `json:"complaint"`
	// Asked is what the model wants done now; it was asked for it once.
	Asked []call `json:"asked"`
	Turns []turn `json:"turns"`
}

type complaint struct {
	Customer string `json:"customer"`
	Account  string `json:"account"`
	Cents    int64  `json:"cents"`
}

// call is a tool call of the model's.
type call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// turn is what came of the calls of an answer.
type turn struct {
	Calls   []call            `json:"calls"`
	Results []json.RawMessage `json:"results"`
}

// agent is the loop with its tools.
type agent struct {
	model func(*memory) (calls []call, answer string)
	bank  *bank
}

// maxTurns ends an agent that goes round in circles.
const maxTurns = 20

// work is the loop. It begins at its beginning after every crash: the state says
// how far it came, and tools that have run are known by their recorded results.
func (a *agent) work(ctx context.Context, run *client.Run) (client.End, error) {
	var m memory
	if err := run.Load(&m); err != nil {
		return client.End{}, err
	}
	for len(m.Turns) < maxTurns {
		change := api.Changes{Task: execution.TaskID(fmt.Sprintf("turn-%d", len(m.Turns)+1))}
		if len(m.Asked) == 0 {
			calls, answer := a.model(&m)
			if len(calls) == 0 {
				return client.Done(client.JSON(map[string]string{"answer": answer})).With(api.Changes{Note: "answered"}), nil
			}
			m.Asked = calls
			change.State = client.JSON(m) // the same entry that declares the operations
		}
		results, err := a.act(ctx, run, change, m.Asked)
		if err != nil {
			return client.End{}, err
		}
		m.Turns, m.Asked = append(m.Turns, turn{m.Asked, results}), nil
		if err := run.Commit(ctx, api.Changes{State: client.JSON(m), Note: fmt.Sprintf("%d tools ran", len(results))}); err != nil {
			return client.End{}, err
		}
	}
	return client.Failed(client.JSON("too many turns")), nil
}

// act runs all tools of a turn in parallel and gives their results in order.
func (a *agent) act(ctx context.Context, run *client.Run, change api.Changes, calls []call) ([]json.RawMessage, error) {
	results, errs := make([]json.RawMessage, len(calls)), make([]error, len(calls)+1)
	var reads sync.WaitGroup
	var effects []api.OperationDeclaration
	var at []int // of each effect among the calls
	for i, c := range calls {
		switch declaration := declare(c); {
		case declaration != nil:
			effects, at = append(effects, *declaration), append(at, i)
		case c.Tool == checkAccount:
			reads.Go(func() { results[i], errs[i] = a.bank.check(ctx, c.Args) })
		default:
			results[i] = json.RawMessage(`{"error":"there is no such tool"}`) // for the model to read
		}
	}
	if len(effects) > 0 || change.State != nil {
		outcomes, err := run.Do(ctx, change, effects, a.effect)
		errs[len(calls)] = err
		for n, o := range outcomes {
			results[at[n]], errs[at[n]] = resultOf(o)
		}
	}
	reads.Wait()
	return results, errors.Join(errs...)
}

func resultOf(o client.Outcome) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"outcome": o.Outcome, "reason": o.Reason, "result": o.Result})
}

// declare says what may be done about a tool whose outcome was never learned;
// nil: the tool only reads, or there is none.
func declare(c call) *api.OperationDeclaration {
	d := &api.OperationDeclaration{Name: c.Tool, Args: client.JSON(c.Args)}
	switch c.Tool {
	case creditAccount:
		d.OnUncertain = execution.Close
	case sendNote:
		d.OnUncertain, d.DedupSeconds = execution.SameKey, 7*24*3600
	default:
		return nil
	}
	return d
}

// effect makes one attempt of a tool that does something.
func (a *agent) effect(ctx context.Context, e client.Effect) (client.Outcome, error) {
	if e.Name == creditAccount {
		return a.bank.credit(ctx, e)
	}
	return a.bank.note(ctx, e)
}

// script stands for a model.
func script(m *memory) (calls []call, answer string) {
	args := func(v any) json.RawMessage { return client.JSON(v).Bytes() }
	switch c := m.Complaint; len(m.Turns) {
	case 0:
		return []call{{checkAccount, args(map[string]any{"account": c.Account})}}, ""
	case 1:
		return []call{
			{creditAccount, args(map[string]any{"account": c.Account, "cents": c.Cents})},
			{sendNote, args(map[string]any{"to": c.Customer, "text": "We have refunded the fee."})},
			{checkAccount, args(map[string]any{"account": c.Account})},
		}, ""
	}
	return nil, "refunded"
}
