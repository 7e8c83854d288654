package memory

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrCrashed is the cause (errors.Is) of every error that a call returns at and
// after a scripted crash. It comes inside a *store.Error of kind Unavailable,
// which callers treat as any unknown outcome; whoever runs the invocation
// discards its reply and reports that it died.
var ErrCrashed = errors.New("memory: the invocation died here")

// Invocation is one run of a function, which a scripted crash ends: from then
// on every call under its context fails with ErrCrashed and does nothing, and
// the context is cancelled.
type Invocation struct {
	crashed atomic.Bool
	cancel  context.CancelCauseFunc
}

type invocationKey struct{}

// WithInvocation begins an invocation. End must be called after it.
func WithInvocation(ctx context.Context) (context.Context, *Invocation) {
	ctx, cancel := context.WithCancelCause(ctx)
	inv := &Invocation{cancel: cancel}
	return context.WithValue(ctx, invocationKey{}, inv), inv
}

// Crashed reports whether a scripted crash ended the invocation.
func (i *Invocation) Crashed() bool { return i.crashed.Load() }

// End releases the invocation's context.
func (i *Invocation) End() { i.cancel(context.Canceled) }

func (i *Invocation) crash() {
	i.crashed.Store(true)
	i.cancel(ErrCrashed)
}

// invocation is the one that ctx belongs to, nil when none.
func invocation(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(invocationKey{}).(*Invocation)
	return inv
}
