package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// call is one call of the port on its way through the engine: what the script
// matches and the log shows.
type call struct {
	name       string // as in the script and the log
	table      string
	keys       []store.Key // tables
	object     string      // bucket and doors
	conds      []store.Cond
	write      bool
	consistent bool
	batched    bool // a batch of gets or deletes

	struck     *Fault // a fault that shapes the answer: stale, page_1, unprocessed ...
	bytes      int
	readUnits  float64
	writeUnits float64
	date       time.Time
	outcome    string
}

// named reports whether a fault on that name is about the call.
func (c *call) named(on string) bool {
	if on == anyCall || on == c.name {
		return true
	}
	return c.batched && (on == "delete" && c.write || on == "get" && !c.write)
}

// shows reports whether the effect makes a difference to the call.
func (c *call) shows(effect string) bool {
	switch effect {
	case "stale":
		return !c.consistent && (c.name == "get" || c.name == "query" || c.batched && !c.write)
	case "unprocessed":
		return c.batched || c.name == "delete_objects"
	}
	on := effects[effect]
	return on == nil || slices.Contains(on, c.name)
}

// shaped reports whether the effect shapes the answer.
func (c *call) shaped(effect string) bool { return c.struck != nil && c.struck.Effect == effect }

func (c *call) keyText() string {
	if c.keys == nil {
		return c.object
	}
	texts := make([]string, len(c.keys))
	for i, k := range c.keys {
		texts[i] = k.PK + "/" + k.SK
	}
	return strings.Join(texts, " ")
}

func (c *call) line() Call {
	l := Call{Call: c.name, Key: c.keyText(), Bytes: c.bytes, ReadUnits: c.readUnits, WriteUnits: c.writeUnits,
		Condition: condTexts(c.conds), Consistent: c.consistent, Outcome: c.outcome}
	if c.table != Main {
		l.Table = c.table
	}
	return l
}

func (c *call) meta() store.Meta {
	return store.Meta{Date: c.date, ReadUnits: c.readUnits, WriteUnits: c.writeUnits}
}

// fail makes an error of the call.
func (c *call) fail(k store.ErrorKind, code string) *store.Error {
	return &store.Error{Call: c.name, Key: c.keyText(), Kind: k, Code: code}
}

func (c *call) invalid(code string) error { return c.fail(store.Invalid, code) }

// unknown is the error of an answer that did not come.
func (c *call) unknown(code string, cause error) error {
	err := c.fail(store.Unavailable, code)
	err.Ambiguous, err.Err = c.write, cause
	return err
}

// late refuses a write whose validation is too old.
func (c *call) late(now, validatedAt time.Time) error {
	if !validatedAt.IsZero() && now.After(validatedAt.Add(store.Window)) {
		return c.fail(store.TooLate, "ValidationTooOld")
	}
	return nil
}

// do makes the call: apply runs under the engine's lock, unless the context
// has ended, the invocation is dead or the script says that it does not happen.
// An error that comes from the script leaves no units and no date in c.
func (e *Engine) do(ctx context.Context, c *call, apply func(now time.Time) error) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	crash, err := e.locked(ctx, c, apply)
	if crash != nil {
		crash.crash() // without the lock: cancelling a context runs other code
	}
	return err
}

// begin refuses a call under an ended context or a dead invocation; it never
// reaches the store.
func (c *call) begin(ctx context.Context) error {
	if inv := invocation(ctx); inv != nil && inv.Crashed() {
		return c.unknown("Crashed", ErrCrashed)
	}
	if err := ctx.Err(); err != nil {
		stopped := c.fail(store.Stopped, "ContextEnded")
		stopped.Err = err
		return stopped
	}
	return nil
}

func (e *Engine) locked(ctx context.Context, c *call, apply func(now time.Time) error) (crash *Invocation, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.wall.IsZero() {
		e.settle()
	}
	c.date = e.clock()
	f := e.strike(c)
	if f == nil {
		err = apply(c.date)
		c.outcome = outcome(err)
		e.log.add(c)
		return nil, err
	}
	switch f.Effect {
	case "landed", "crash_after":
		_ = apply(c.date) // whatever came of it, the caller does not hear of it
	case "stale", "page_1", "unprocessed", "not_found", "cancelled":
		c.struck = f
		err = apply(c.date)
		c.outcome = f.Effect
		e.log.add(c)
		return nil, err
	}
	c.outcome = f.Effect
	e.log.add(c)
	// The log keeps what the call consumed; the caller sees none of it.
	c.readUnits, c.writeUnits = 0, 0
	crash, err = scripted(ctx, c, f.Effect)
	if store.KindOf(err) == store.Unavailable {
		c.date = time.Time{} // no answer at all
	}
	return crash, err
}

// scripted is the error of an effect that takes the answer away.
func scripted(ctx context.Context, c *call, effect string) (crash *Invocation, err error) {
	switch effect {
	case "throttle":
		return nil, c.fail(store.Throttled, "ThrottlingException")
	case "denied":
		return nil, c.fail(store.Denied, "AccessDeniedException")
	case "key_disabled":
		return nil, c.fail(store.KeyTrouble, "KMSDisabledException")
	case "landed", "lost":
		return nil, c.unknown("RequestTimeout", nil)
	case "crash_before", "crash_after":
		return invocation(ctx), c.unknown("Crashed", ErrCrashed)
	}
	return nil, c.unknown("ServiceUnavailable", nil)
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var kind *store.Error
	var failed *store.ConditionFailed
	var cancelled *store.Cancelled
	switch {
	case errors.As(err, &failed):
		return "condition_failed"
	case errors.As(err, &cancelled):
		return "cancelled"
	case errors.As(err, &kind):
		return string(kind.Kind)
	}
	return "error"
}

// Door passes a call to something outside the store (on is kms_generate,
// kms_decrypt, resolver or target) through the same script and log. do is run
// without the engine's lock, and may call the engine; its own error is
// returned as it is. Scripted errors are *store.Error, ambiguous where do may
// have taken effect.
func (e *Engine) Door(ctx context.Context, on, key string, do func() error) error {
	c := &call{name: on, table: Main, object: key, write: true}
	if err := c.begin(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	f := e.strike(c)
	e.mu.Unlock()
	var err error
	if f == nil || f.Effect == "landed" || f.Effect == "crash_after" {
		err = do()
	}
	c.outcome = outcome(err)
	if f != nil {
		c.outcome = f.Effect
	}
	e.mu.Lock()
	e.log.add(c)
	e.mu.Unlock()
	if f == nil {
		return err
	}
	crash, err := scripted(ctx, c, f.Effect)
	if crash != nil {
		crash.crash()
	}
	return err
}
