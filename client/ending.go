package client

import (
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// End is what a body returns: how its step ends and, in the same entry, the
// last change. Make it with one of the functions below.
type End struct {
	then   *api.Then
	change api.Changes
}

// With puts a change into the ending's entry.
func (e End) With(change api.Changes) End {
	e.change = change
	return e
}

// Done completes the execution; result may be nil.
func Done(result *jsonx.Value) End {
	return End{then: &api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted, Result: result}}}
}

// Failed ends the execution as failed; reason may be nil.
func Failed(reason *jsonx.Value) End {
	return End{then: &api.Then{Complete: &api.Completion{Outcome: execution.StatusFailed, Error: reason}}}
}

// Cancelled ends the execution as cancelled; reason may be nil.
func Cancelled(reason *jsonx.Value) End {
	return End{then: &api.Then{Complete: &api.Completion{Outcome: execution.StatusCancelled, Error: reason}}}
}

// WaitFor suspends until an awaited operation has final evidence, an awaited
// signal is in the inbox, or Until has passed; with nothing awaited until
// someone claims it.
func WaitFor(w api.Wait) End {
	return End{then: &api.Then{Suspend: &w}}
}

// Continue gives the execution up for a fresh worker, after a while (0: at
// once): for a body that has done its share, or whose process must end.
func Continue(after time.Duration) End {
	return End{then: &api.Then{Continue: &api.Continue{AfterSeconds: int64(after / time.Second)}}}
}

func (e End) ending() Ending {
	switch {
	case e.then.Suspend != nil:
		return Waiting
	case e.then.Continue != nil:
		return Continued
	}
	return Finished
}
