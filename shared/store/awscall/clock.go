package awscall

import (
	"sync"
	"time"
)

// Clock is a lower bound of the store's time: the Date of an answer plus what
// has passed since on this process's monotonic clock. It never runs ahead of
// the store (a Date is the past when it arrives, and a frozen process's
// monotonic clock can only lag), so what it calls too late is too late. Safe
// for concurrent use.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	date time.Time // the best Date seen
	at   time.Time // this process's clock when it arrived
}

// NewClock makes a clock that has seen no answer yet. now is this process's
// clock with its monotonic reading; nil means time.Now.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// Observe takes in the Date of an answer that has just arrived.
func (c *Clock) Observe(date time.Time) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() || date.After(c.date.Add(now.Sub(c.at))) {
		c.date, c.at = date, now
	}
}

// AtLeast is a time that the store's clock has reached; false before the first
// answer.
func (c *Clock) AtLeast() (time.Time, bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Time{}, false
	}
	return c.date.Add(now.Sub(c.at)), true
}
