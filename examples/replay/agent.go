package main

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// agent replays a recording: it goes on after the last message of the state. An
// effect is declared in the entry of the message that asks for it, and its
// outcome stands in the entry of the answer.
type agent struct {
	recording *recording
	execute   client.EffectFunc
	reached   int // messages of the state when it last looked
}

func (a *agent) work(ctx context.Context, run *client.Run) (client.End, error) {
	for {
		n := run.State().Get("messages").Len()
		a.reached = n
		if n == len(a.recording.messages) {
			return client.Done(nil), nil
		}
		if err := a.step(ctx, run, n); err != nil {
			return client.End{}, err
		}
	}
}

// step adds message n, and the answer of the effect that it asks for. A worker
// that finds a state whose last message asks for an effect begins there.
func (a *agent) step(ctx context.Context, run *client.Run, n int) error {
	asked, change := n, appending(a.recording.messages[n])
	if n > 0 {
		if e, err := effectOf(a.recording.messages[n-1]); err != nil {
			return err
		} else if e != nil {
			asked, change = n-1, api.Changes{}
		}
	}
	e, err := effectOf(a.recording.messages[asked])
	if err != nil {
		return err
	}
	if e == nil || asked+1 == len(a.recording.messages) {
		return run.Commit(ctx, change)
	}
	outcomes, err := run.Do(ctx, change, []api.OperationDeclaration{{Name: e.name, Args: e.args}}, a.execute)
	if err != nil {
		return err
	}
	answer := outcomes[0].Result
	if answer == nil {
		return errors.New("an outcome without the airline's answer")
	}
	return run.Commit(ctx, appending(answered(a.recording.messages[asked+1], answer)))
}

// appending is the change that adds a message.
func appending(message *jsonx.Value) api.Changes {
	op := jsonx.NewObject(jsonx.Member{Key: `"op"`, Value: jsonx.NewString("add")}, jsonx.Member{Key: `"path"`, Value: jsonx.NewString("/messages/-")},
		jsonx.Member{Key: `"value"`, Value: message})
	return api.Changes{Patch: jsonx.NewArray(op)}
}
