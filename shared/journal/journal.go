package journal

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// Options configure a Journal. Table, Bucket, Sealer, Elapsed and Rand are
// required.
type Options struct {
	Table  store.Table
	Bucket store.Bucket
	Sealer *seal.Sealer
	// Elapsed is a clock that only measures time gone by; its zero is anywhere.
	Elapsed func() time.Duration
	// Rand gives transaction tokens and generated generations.
	Rand io.Reader
	// Sleep waits between attempts; nil: a timer that the context can end.
	Sleep func(ctx context.Context, d time.Duration) error
	// Vault serves entries that lie in an archive; nil: there are no archives.
	Vault Vault
	// Epoch ranks fences above all older ones (restore of the table).
	Epoch int64
	// InlineBody and SnapshotBytes override the limits of the same name; 0: those.
	InlineBody, SnapshotBytes int
	// WarmHandles is how many executions stay open in memory; 0: 256, negative: none.
	WarmHandles int
}

// Journal runs the protocols over one table and bucket. Safe for concurrent
// use.
type Journal struct {
	Options
	warm   warm
	unsent unsent
	randMu sync.Mutex
}

// New makes a Journal; it makes no call.
func New(o Options) *Journal {
	if o.InlineBody == 0 {
		o.InlineBody = execution.MaxInlineBody
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = execution.SnapshotBytes
	}
	if o.WarmHandles == 0 {
		o.WarmHandles = 256
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	j := &Journal{Options: o}
	j.warm.limit = o.WarmHandles
	return j
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// token is a fresh transaction token.
func (j *Journal) token() (string, error) {
	var b [16]byte
	j.randMu.Lock()
	defer j.randMu.Unlock()
	if _, err := io.ReadFull(j.Rand, b[:]); err != nil {
		return "", execution.Errorf(execution.Internal, "no randomness").Because(err)
	}
	return hexString(b[:]), nil
}

func hexString(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// Clock is a reading of the store's clock that can be carried forward.
type Clock struct {
	date    time.Time
	elapsed time.Duration
	slow    bool
}

// slowest is how long a call may take and still tell the time. Its Date is from
// somewhen in between, and counting from the call's beginning is too much by as
// long as the request was on its way: in a process that froze right there, by
// hours. A lease would count as over that runs, an entry would stand in the
// future, and a system would count as asked when it no longer could act (M). A
// minute is well within every margin.
const slowest = time.Minute

// clock notes a Date. No Date at all, or one of a call that took too long, is
// Unavailable: nothing may be judged without the store's time.
func (j *Journal) clock(m store.Meta, before time.Duration) (Clock, error) {
	if m.Date.IsZero() {
		return Clock{}, execution.Errorf(execution.Unavailable, "the store's answer carried no time")
	}
	c := j.acknowledged(m, before)
	if c.slow {
		return Clock{}, execution.Errorf(execution.Unavailable, "the store's answer took too long to tell the time: repeat the same request")
	}
	return c, nil
}

// acknowledged notes the Date of a write that was made, however long that took;
// after a slow one nothing is decided without a read.
func (j *Journal) acknowledged(m store.Meta, before time.Duration) Clock {
	return Clock{date: m.Date, elapsed: before, slow: j.Elapsed()-before > slowest}
}

// NowOf gives the store's time in milliseconds, carried forward from a
// reading.
func (j *Journal) NowOf(c Clock) int64 {
	return c.date.UnixMilli() + (j.Elapsed() - c.elapsed).Milliseconds()
}

// Fail turns a store error into one of the closed codes, naming the execution.
// An error that has a code already keeps it.
func Fail(err error, ref execution.Ref) error {
	if err == nil {
		return nil
	}
	var own *execution.Error
	if errors.As(err, &own) {
		return own
	}
	code, text := execution.Internal, "the store refused the request"
	switch store.KindOf(err) {
	case store.Throttled:
		code, text = execution.Throttled, "the store is throttling"
	case store.Unavailable, store.Stopped, store.Conflict, store.TooLate:
		code, text = execution.Unavailable, "the store did not answer in time: repeat the same request"
	case store.KeyTrouble, store.Denied:
		code, text = execution.KeyUnavailable, "the encryption key or the right to use it is missing"
	case store.TooLarge:
		code, text = execution.TooLarge, "over a size limit of the store"
	case "":
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			code, text = execution.Unavailable, "out of time: repeat the same request"
		}
	}
	e := execution.Errorf(code, "%s", text).Because(err)
	if ref.Execution != "" {
		e = e.With("execution", string(ref.Execution))
	}
	return e
}

// Unknown is Unavailable with the outcome unknown.
func unknown(ref execution.Ref, err error) error {
	return execution.Errorf(execution.Unavailable, "the outcome is unknown: repeat the same request").With("execution", string(ref.Execution)).Because(err)
}

// Integrity is the error for stored bytes that are not what was written.
func integrity(ref execution.Ref, version int64, text string) *execution.Error {
	return execution.Errorf(execution.Integrity, "%s", text).With("execution", string(ref.Execution)).With("version", version)
}
