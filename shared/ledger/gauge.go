package ledger

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// gauges bound inboxes without counting at every signal: a process knows how
// many signals it has added since it last counted, and counts (the items
// themselves, consistently) when that could have filled the inbox.
type gauges struct {
	mu sync.Mutex
	by map[execution.Ref]*gauge
}

// gauge is what a process knows about one inbox.
type gauge struct {
	counted bool
	count   int           // full items when it was counted
	since   int           // added by this process since
	at      time.Duration // of the count, by Journal.Elapsed
}

const (
	gaugesMost = 10_000      // inboxes remembered
	countAfter = 64          // signals of a process before it counts for the first time
	countOneIn = 64          // keys that make any process count
	fullFor    = time.Second // a full inbox is not counted again before
)

// full is the refusal of one more signal, nil when there is room. The count is
// of full items: those that are absorbed and not emptied yet are among them.
func (g *gauges) full(ctx context.Context, l *Ledger, ref execution.Ref, key store.Key) (refused, err error) {
	now := l.Journal.Elapsed()
	g.mu.Lock()
	known := *g.of(ref)
	g.mu.Unlock()
	sum := known.count + known.since
	justFull := known.counted && known.count >= execution.MaxUnabsorbedSignals && now-known.at < fullFor
	if !justFull && (sum >= execution.MaxUnabsorbedSignals || sampled(key) || !known.counted && known.since >= countAfter) {
		sum = 0
		if err := l.eachSignal(ctx, ref, func(it store.Item) error {
			if it.Has(sigBody) {
				sum++
			}
			return nil
		}); err != nil {
			return nil, err
		}
		g.mu.Lock()
		*g.of(ref) = gauge{counted: true, count: sum, at: now}
		g.mu.Unlock()
	}
	if sum >= execution.MaxUnabsorbedSignals {
		return execution.Errorf(execution.TooLarge, "the inbox is full: signals must be absorbed first").With("execution", string(ref.Execution)).With("limit", execution.MaxUnabsorbedSignals), nil
	}
	return nil, nil
}

// sampled says whether a signal makes the process count, by the hash that ends
// its key.
func sampled(key store.Key) bool {
	n, err := strconv.ParseUint(key.SK[max(0, len(key.SK)-2):], 16, 8)
	return err != nil || n%countOneIn == 0
}

// added counts a signal of this process.
func (g *gauges) added(ref execution.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(ref).since++
}

// emptied counts n signals that this process took out.
func (g *gauges) emptied(ref execution.Ref, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(ref)
	k.count = max(0, k.count-n)
}

// of gives the gauge of an inbox; the caller holds mu.
func (g *gauges) of(ref execution.Ref) *gauge {
	if k := g.by[ref]; k != nil {
		return k
	}
	if g.by == nil || len(g.by) >= gaugesMost {
		g.by = map[execution.Ref]*gauge{}
	}
	k := &gauge{}
	g.by[ref] = k
	return k
}
