package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// Lease is ownership as a claim, create or resume gave it.
type Lease struct {
	Execution execution.ExecutionID
	Owner     string
	Fence     int64
	Seconds   int64
	// Sent is the moment at which the request that gave the lease was sent (Now,
	// called before it). Never the moment of its answer.
	Sent Moment
}

// KeepOptions of a Keeper.
type KeepOptions struct {
	// StuckAfter is how long the caller may go without Progress; then the lease is
	// not renewed any more and the work ends. 0: no limit but the context's own.
	StuckAfter time.Duration
}

// Why a Keeper ended the work; both are LeaseLost for errors.Is.
var (
	ErrUnproved = execution.Errorf(execution.LeaseLost, "ownership can no longer be proved: no renewal was confirmed in time")
	ErrStuck    = execution.Errorf(execution.LeaseLost, "the work made no progress within its deadline; its lease is not renewed any more")
)

// Margins of a Keeper.
const (
	// leaseMargin is taken off the lease, for what lies between a look at the
	// clock and the act that relies on it.
	leaseMargin = time.Second
	// lookEvery is how often the clocks are compared at least: a frozen machine
	// wakes up with its timers far behind.
	lookEvery = time.Second
)

// Keeper renews one lease until it is stopped or lost. It is safe for
// concurrent use.
type Keeper struct {
	client *Client
	lease  Lease
	stuck  time.Duration
	end    context.CancelCauseFunc // of the work
	quit   context.CancelFunc      // of the keeper's own goroutines
	done   sync.WaitGroup

	mu       sync.Mutex
	proved   Moment // the confirmed request that was sent last
	progress Moment
	// tried is when a renewal was last sent; renewing: it is still under way.
	tried    Moment
	renewing bool
	lost     error
}

// Now is the present on the client's clock, to be taken before a request whose
// answer gives a lease.
func (c *Client) Now() Moment { return momentOf(c.options.Clock) }

// Keep renews a lease at each third of it and gives the context for the work:
// it ends, with a cause that is LeaseLost or says what else closed the
// execution, the moment ownership is lost, cannot be proved any more, or the
// work is stuck. Stop the keeper when the work is done.
func (c *Client) Keep(ctx context.Context, l Lease, o KeepOptions) (context.Context, *Keeper) {
	work, end := context.WithCancelCause(ctx)
	own, quit := context.WithCancel(ctx)
	k := &Keeper{client: c, lease: l, stuck: o.StuckAfter, end: end, quit: quit, proved: l.Sent, tried: l.Sent, progress: c.Now()}
	k.done.Go(func() {
		for {
			wait, ok := k.look(own)
			if !ok || c.options.Clock.Sleep(own, wait) != nil {
				return
			}
		}
	})
	return work, k
}

// length is how long the owner may believe in a confirmation.
func (k *Keeper) length() time.Duration {
	return time.Duration(k.lease.Seconds)*time.Second - leaseMargin
}

// look decides what is to be done now and when to look again; false: nothing
// any more.
func (k *Keeper) look(ctx context.Context) (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.check() != nil {
		return 0, false
	}
	clock := k.client.options.Clock
	third := time.Duration(k.lease.Seconds) * time.Second / 3
	since := k.proved.since(clock)
	wait := min(k.length()-since, lookEvery)
	if k.stuck > 0 {
		wait = min(wait, k.stuck-k.progress.since(clock))
	}
	due := third - since
	if k.proved != k.tried {
		// A renewal that failed is tried again after a twelfth of the lease.
		due = max(due, third/4-k.tried.since(clock))
	}
	if due > 0 {
		wait = min(wait, due)
	} else if !k.renewing {
		k.renew(ctx)
	}
	return max(wait, time.Millisecond), true
}

// check says whether ownership is proved now, and ends the work when it is not.
func (k *Keeper) check() error {
	clock := k.client.options.Clock
	switch {
	case k.lost != nil:
	case k.proved.since(clock) >= k.length():
		k.lose(ErrUnproved)
	case k.stuck > 0 && k.progress.since(clock) >= k.stuck:
		k.lose(ErrStuck)
	}
	return k.lost
}

func (k *Keeper) lose(err error) {
	if k.lost == nil {
		k.lost = err
		k.end(err)
	}
}

// renew sends one renewal, beside everything else: one that hangs must not keep
// the keeper from seeing that the lease is over. It may take a quarter of the
// lease. Called with mu held.
func (k *Keeper) renew(ctx context.Context) {
	sent := k.client.Now()
	k.renewing, k.tried = true, sent
	k.done.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		k.done.Go(func() { // a time limit on the injected clock
			if k.client.options.Clock.Sleep(ctx, time.Duration(k.lease.Seconds)*time.Second/4) == nil {
				cancel()
			}
		})
		_, err := k.client.Renew(ctx, &api.RenewRequest{Execution: k.lease.Execution, Owner: k.lease.Owner, Fence: k.lease.Fence, LeaseSeconds: k.lease.Seconds})
		k.mu.Lock()
		defer k.mu.Unlock()
		k.renewing = false
		var e *execution.Error
		switch {
		case err == nil:
			k.extend(sent)
		case errors.As(err, &e) && !e.Code.Retryable():
			// Definite: another owner, an end, a halt. LeaseLost is what it means for
			// the work, whatever the code.
			k.lose(lostBy(e))
		}
	})
}

// lostBy is LeaseLost with another definite answer as its cause.
func lostBy(e *execution.Error) error {
	if e.Code == execution.LeaseLost {
		return e
	}
	return execution.Errorf(execution.LeaseLost, "the execution is no longer owned by this worker: %s", e.Code).Because(e)
}

// Extend notes that a request of the owner that was sent at that moment
// succeeded: every entry by the owner extends the lease as a renewal does.
func (k *Keeper) Extend(sent Moment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.extend(sent)
	k.progress = k.client.Now()
}

func (k *Keeper) extend(sent Moment) {
	clock := k.client.options.Clock
	if sent.since(clock) < k.proved.since(clock) {
		k.proved = sent
		if k.tried.since(clock) > sent.since(clock) {
			k.tried = sent
		}
	}
}

// Progress says that the work is alive.
func (k *Keeper) Progress() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.progress = k.client.Now()
}

// Check gives nil while ownership is proved, to be called right before an act
// that relies on it. Else the work's context has ended for the reason that it
// gives.
func (k *Keeper) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.check()
}

// Stop ends the renewals and waits for the one under way; the work's context
// ends too. The lease itself stays until it lapses or is given up.
func (k *Keeper) Stop() {
	k.quit()
	k.done.Wait()
	k.end(context.Canceled)
}
