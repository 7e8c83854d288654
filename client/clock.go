package client

import (
	"context"
	"time"
)

// Clock is the time of the caller's machine. It must be safe for concurrent
// use.
type Clock interface {
	// Wall is the calendar time; it may jump.
	Wall() time.Time
	// Monotonic is the time gone by since an arbitrary zero; it may stand still
	// while the machine is frozen.
	Monotonic() time.Duration
	// Sleep waits for d, or until ctx ends and then gives its error.
	Sleep(ctx context.Context, d time.Duration) error
}

// HostClock is the machine's own clock.
func HostClock() Clock { return hostClock{time.Now()} }

type hostClock struct{ start time.Time }

func (c hostClock) Wall() time.Time { return time.Now().Round(0) } // without the monotonic reading

func (c hostClock) Monotonic() time.Duration { return time.Since(c.start) }

func (c hostClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Moment is a point in time on both clocks.
type Moment struct {
	wall      time.Time
	monotonic time.Duration
}

func momentOf(c Clock) Moment { return Moment{c.Wall(), c.Monotonic()} }

// since is how long ago a moment was, on whichever clock ran further: the
// monotonic one stands still in a frozen machine, the other one may be set back.
func (m Moment) since(c Clock) time.Duration {
	return max(c.Monotonic()-m.monotonic, c.Wall().Sub(m.wall))
}
