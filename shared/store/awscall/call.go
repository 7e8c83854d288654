package awscall

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	awsmw "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/cairnstate/cairn/shared/store"
)

// Call is one call of an adapter with all the attempts that the SDK makes for
// it. It belongs to one goroutine.
type Call struct {
	Name  string // as in store.Error.Call
	Key   string // as in store.Error.Key
	Write bool   // the call changes something, so its outcome can be unknown
	KMS   bool   // the call is about a key: a refusal is trouble with the key
	// ValidatedAt is the store time of the read that justifies the write; zero:
	// no bound.
	ValidatedAt time.Time

	clock     *Clock
	date      time.Time
	attempts  int
	ambiguous bool
}

type callKey struct{}

// Begin gives the context for the SDK calls that belong to c (one or several).
// It refuses, with kind TooLate and nothing sent, a write that is surely older
// than store.Window by now.
func Begin(ctx context.Context, clock *Clock, c Call) (context.Context, *Call, error) {
	c.clock = clock
	call := &c
	if err := call.CheckWindow(); err != nil {
		return ctx, call, err
	}
	return context.WithValue(ctx, callKey{}, call), call, nil
}

// CheckWindow is the refusal that Begin makes, for calls that go on for a
// while.
func (c *Call) CheckWindow() error {
	if c.ValidatedAt.IsZero() {
		return nil
	}
	now, ok := c.clock.AtLeast()
	if ok && now.Sub(c.ValidatedAt) > store.Window {
		return c.failure(store.TooLate, "ValidationExpired", nil)
	}
	return nil
}

// Date is the service's clock at its last answer, zero when there was none.
func (c *Call) Date() time.Time { return c.date }

// Attempts counts the requests made so far.
func (c *Call) Attempts() int { return c.attempts }

// Count adds the attempts of another call that was made for this one.
func (c *Call) Count(part *Call) {
	c.attempts += part.attempts
	if part.date.After(c.date) {
		c.date = part.date
	}
}

// Ambiguous reports whether an attempt so far may have changed something
// without a definite answer.
func (c *Call) Ambiguous() bool { return c.ambiguous }

// Fail is what the call ended with, for an error that the SDK returned.
func (c *Call) Fail(err error) *store.Error {
	v := Classify(err)
	if c.KMS {
		v.Kind = kmsKind(v)
	}
	if v.Kind == store.Denied && c.expired(v.Code) {
		v.Kind = store.TooLate
	}
	return c.failure(v.Kind, v.Code, err)
}

// Refuse is an error about a request that was not sent because its form is
// wrong or too large.
func (c *Call) Refuse(kind store.ErrorKind, code string) *store.Error {
	return c.failure(kind, code, nil)
}

// failure holds the one rule about ambiguity: when an attempt may have landed,
// "throttled" or "denied" by a later attempt says nothing about it.
func (c *Call) failure(kind store.ErrorKind, code string, err error) *store.Error {
	// "Exists" is news of it: the object is there, made by whichever attempt or
	// by another, and no attempt that is still under way can make it again.
	ambiguous := c.ambiguous && kind != store.Exists
	if ambiguous && kind != store.Stopped {
		kind = store.Unavailable
	}
	e := &store.Error{Call: c.Name, Key: c.Key, Kind: kind, Ambiguous: ambiguous, Code: code}
	// Of the cause only what callers may test for travels on: the SDK's texts may
	// hold values.
	switch {
	case kind != store.Stopped:
	case errors.Is(err, context.DeadlineExceeded):
		e.Err = context.DeadlineExceeded
	default:
		e.Err = context.Canceled
	}
	return e
}

// expired reports whether a refused signature was refused for its age. The
// code is the same as for a wrong secret, so the service's clock decides.
func (c *Call) expired(code string) bool {
	if c.ValidatedAt.IsZero() {
		return false
	}
	if code == "RequestTimeTooSkewed" {
		return true
	}
	// The Date header has whole seconds: one second of tolerance.
	return signatureRefused[code] && !c.date.IsZero() && c.date.Sub(c.ValidatedAt) >= store.Window-time.Second
}

// Middleware records every attempt in the Call of its context. It stands
// inside the SDK's retry loop.
func Middleware(stack *middleware.Stack) error {
	m := middleware.FinalizeMiddlewareFunc("CairnAttempt", recordAttempt)
	if _, ok := stack.Finalize.Get("Retry"); ok {
		return stack.Finalize.Insert(m, "Retry", middleware.After)
	}
	return stack.Finalize.Add(m, middleware.Before) // presigning has no retry loop
}

func recordAttempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	c, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		return next.HandleFinalize(ctx, in)
	}
	var asked, got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	out, md, err := next.HandleFinalize(ctx, in)
	c.attempts++
	if date, ok := awsmw.GetServerTime(md); ok {
		c.date = date.UTC()
		c.clock.Observe(c.date)
	}
	// Without a connection nothing was sent, whatever the error looks like. A
	// transport that reports no connections at all (a stub) counts as sent.
	unsent := asked.Load() && !got.Load()
	if err != nil && c.Write && !unsent && Classify(err).Unknown {
		c.ambiguous = true
	}
	return out, md, err
}
