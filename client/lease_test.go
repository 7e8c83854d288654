package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// kept is a keeper of a 30-second lease on a clock of its own.
type kept struct {
	t      *testing.T
	clock  *fakeClock
	work   context.Context
	keeper *Keeper
	renews atomic.Int64
}

func keep(t *testing.T, o KeepOptions, renew func(n int64) error) *kept {
	t.Helper()
	k := &kept{t: t, clock: newFakeClock()}
	door := &fakeDoor{t: t, answer: func(_ int, c call) (any, error) {
		r := c.request.(*api.RenewRequest)
		if r.Execution != "e" || r.Owner != "w" || r.Fence != 5 || r.LeaseSeconds != 30 {
			t.Errorf("renews %s", c.payload)
		}
		if err := renew(k.renews.Add(1)); err != nil {
			return nil, err
		}
		return &api.RenewReply{}, nil
	}}
	c := New(Options{Door: door, Tenant: "t", Clock: k.clock, Attempts: 1})
	k.work, k.keeper = c.Keep(t.Context(), Lease{Execution: "e", Owner: "w", Fence: 5, Seconds: 30, Sent: c.Now()}, o)
	t.Cleanup(k.keeper.Stop)
	return k
}

// pass lets time go by a step at a time, so that the keeper sees each.
func (k *kept) pass(d time.Duration) {
	k.t.Helper()
	for ; d > 0; d -= 250 * time.Millisecond {
		time.Sleep(200 * time.Microsecond) // let a renewal under way finish
		k.clock.advance(250 * time.Millisecond)
	}
	time.Sleep(2 * time.Millisecond)
}

func (k *kept) alive(what string) {
	k.t.Helper()
	if err := k.keeper.Check(); err != nil || k.work.Err() != nil {
		k.t.Fatalf("%s: lost: %v, %v", what, err, context.Cause(k.work))
	}
}

func (k *kept) lost(what string, cause error) {
	k.t.Helper()
	err := k.keeper.Check()
	if !errors.Is(err, execution.LeaseLost) {
		k.t.Fatalf("%s: not lost: %v", what, err)
	}
	if k.work.Err() == nil || !errors.Is(context.Cause(k.work), execution.LeaseLost) {
		k.t.Errorf("%s: the work goes on: %v", what, context.Cause(k.work))
	}
	if cause != nil && !errors.Is(err, cause) {
		k.t.Errorf("%s: cause %v, want %v", what, err, cause)
	}
}

func TestRenewsAtAThird(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return nil })
	k.pass(9 * time.Second)
	if n := k.renews.Load(); n != 0 {
		t.Fatalf("%d renewals after 9 s", n)
	}
	k.pass(111 * time.Second)
	k.alive("after two minutes")
	if n := k.renews.Load(); n < 10 || n > 12 {
		t.Errorf("%d renewals in 120 s of a 30 s lease", n)
	}
}

func TestProgressOfTheOwnerRenews(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return nil })
	for range 20 {
		k.pass(5 * time.Second)
		k.keeper.Extend(k.keeper.client.Now())
	}
	k.alive("with entries every 5 s")
	if n := k.renews.Load(); n != 0 {
		t.Errorf("%d renewals beside the owner's entries", n)
	}
}

func TestLostRenewals(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return errors.New("reset") })
	k.pass(28500 * time.Millisecond)
	k.alive("a moment before the lease less a second")
	if n := k.renews.Load(); n < 5 || n > 9 {
		t.Errorf("%d attempts to renew", n)
	}
	k.pass(time.Second)
	k.lost("at the lease less a second", ErrUnproved)
}

func TestRenewalHealsInTime(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(n int64) error {
		if n < 4 {
			return code(execution.Unavailable)
		}
		return nil
	})
	k.pass(60 * time.Second)
	k.alive("after the fourth attempt succeeded")
}

func TestDefiniteAnswersEndTheWork(t *testing.T) {
	for _, c := range []execution.Code{execution.LeaseLost, execution.Halted, execution.ExecutionClosed, execution.Deleted, execution.NotFound, execution.Integrity} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			k := keep(t, KeepOptions{}, func(int64) error { return code(c) })
			k.pass(11 * time.Second)
			k.lost("after the answer", c)
		})
	}
}

// The machine stands still: its monotonic clock did not move, the calendar did.
func TestFrozenMachine(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return nil })
	k.pass(3 * time.Second)
	k.clock.move(time.Hour, 0)
	// Asked before any timer rings.
	k.lost("after an hour of standing still", ErrUnproved)
	if n := k.renews.Load(); n != 0 {
		t.Errorf("%d renewals after the lease was over", n)
	}
}

func TestFrozenMachineWithoutAsking(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return nil })
	k.clock.settle(t, 1)
	k.clock.move(time.Hour, lookEvery)
	select {
	case <-k.work.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the work goes on a second after the thaw")
	}
	k.lost("after the thaw", ErrUnproved)
}

// The calendar is set back: the monotonic clock still counts.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{}, func(int64) error { return errors.New("reset") })
	k.clock.move(-24*time.Hour, 0)
	k.pass(28 * time.Second)
	k.alive("before the lease less a second")
	k.pass(2 * time.Second)
	k.lost("after it", ErrUnproved)
}

// A constant error of the calendar is no matter.
func TestSkew(t *testing.T) {
	t.Parallel()
	k := &kept{t: t, clock: newFakeClock()}
	k.clock.move(-5*time.Minute, 0)
	c := New(Options{Door: &fakeDoor{t: t, answer: func(int, call) (any, error) { return &api.RenewReply{}, nil }}, Tenant: "t", Clock: k.clock})
	k.work, k.keeper = c.Keep(t.Context(), Lease{Execution: "e", Owner: "w", Fence: 5, Seconds: 30, Sent: c.Now()}, KeepOptions{})
	defer k.keeper.Stop()
	k.pass(90 * time.Second)
	k.alive("five minutes behind")
}

// A renewal whose answer takes long counts from the moment it was sent.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	k := keep(t, KeepOptions{}, func(n int64) error {
		if n == 1 {
			<-answer
			return nil
		}
		return errors.New("reset")
	})
	k.pass(16 * time.Second) // sent at 10 s
	close(answer)
	k.pass(22500 * time.Millisecond)
	k.alive("28.5 s after the renewal was sent")
	k.pass(time.Second)
	k.lost("29.5 s after the renewal was sent", ErrUnproved)
}

// A hanging renewal keeps the keeper from nothing.
func TestHangingRenewal(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	k := keep(t, KeepOptions{}, func(int64) error { <-hang; return nil })
	defer close(hang)
	k.pass(30 * time.Second)
	k.lost("while the renewal hangs", ErrUnproved)
}

func TestStuckWorkIsNotRenewed(t *testing.T) {
	t.Parallel()
	k := keep(t, KeepOptions{StuckAfter: 50 * time.Second}, func(int64) error { return nil })
	k.pass(45 * time.Second)
	k.keeper.Progress()
	k.pass(49 * time.Second)
	k.alive("49 s after progress")
	k.pass(2 * time.Second)
	k.lost("51 s after progress", ErrStuck)
	n := k.renews.Load()
	k.pass(60 * time.Second)
	if k.renews.Load() != n {
		t.Error("renewed after it was stuck")
	}
}
