package client

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// seeded is reproducible randomness.
func seeded(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	return rand.NewChaCha8(key)
}

// fakeClock moves only when told. Both clocks run together unless one is
// moved by itself.
type fakeClock struct {
	mu        sync.Mutex
	wall      time.Time
	monotonic time.Duration
	sleepers  map[*sleeper]struct{}
	changed   *sync.Cond
}

type sleeper struct {
	until time.Duration
	done  chan struct{}
}

func newFakeClock() *fakeClock {
	c := &fakeClock{wall: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), sleepers: map[*sleeper]struct{}{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *fakeClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monotonic
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	s := &sleeper{c.monotonic + d, make(chan struct{})}
	c.sleepers[s] = struct{}{}
	c.changed.Broadcast()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.sleepers, s)
		c.changed.Broadcast()
		c.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return nil
	}
}

// advance moves both clocks and wakes who is due.
func (c *fakeClock) advance(d time.Duration) { c.move(d, d) }

func (c *fakeClock) move(wall, monotonic time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.monotonic = c.wall.Add(wall), c.monotonic+monotonic
	for s := range c.sleepers {
		if s.until <= c.monotonic {
			delete(c.sleepers, s)
			close(s.done)
		}
	}
}

// settle waits until n goroutines sleep.
func (c *fakeClock) settle(t *testing.T, n int) {
	t.Helper()
	stop := time.AfterFunc(10*time.Second, c.changed.Broadcast)
	defer stop.Stop()
	start := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.sleepers) != n {
		if time.Since(start) > 9*time.Second {
			t.Fatalf("%d sleepers, want %d", len(c.sleepers), n)
		}
		c.changed.Wait()
	}
}

// call is one invocation as a door saw it.
type call struct {
	function, action string
	payload          []byte
	request          any
}

// fakeDoor answers by a function and keeps what it was asked.
type fakeDoor struct {
	t      *testing.T
	answer func(n int, c call) (any, error)
	mu     sync.Mutex
	calls  []call
}

func (d *fakeDoor) Invoke(_ context.Context, function string, payload []byte) ([]byte, error) {
	action, req, err := api.Decode(function, payload)
	if err != nil {
		return nil, err
	}
	c := call{function, action, bytes.Clone(payload), req}
	d.mu.Lock()
	d.calls = append(d.calls, c)
	n := len(d.calls)
	d.mu.Unlock()
	reply, err := d.answer(n, c)
	if err != nil {
		return nil, err
	}
	return api.EncodeReply(reply)
}

func (d *fakeDoor) seen() []call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]call{}, d.calls...)
}

func code(c execution.Code) *execution.Error { return execution.Errorf(c, "test") }
