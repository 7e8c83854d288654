package store

import (
	"context"
	"sync"
)

// Cost is what a request spent on storage.
type Cost struct {
	Reads, Writes         int // table requests
	ReadUnits, WriteUnits float64
	ObjectRequests        int
}

// Meter adds up the cost of one request. Safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	cost Cost
}

// Cost is the sum so far.
func (m *Meter) Cost() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cost
}

func (m *Meter) add(c Cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.Reads += c.Reads
	m.cost.Writes += c.Writes
	m.cost.ReadUnits += c.ReadUnits
	m.cost.WriteUnits += c.WriteUnits
	m.cost.ObjectRequests += c.ObjectRequests
}

type meterKey struct{}

// WithMeter gives a context in which metered stores (Metered, MeteredBucket)
// add their cost to m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// CostOf is the cost that ctx's meter has seen; zero without a meter.
func CostOf(ctx context.Context) Cost {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		return m.Cost()
	}
	return Cost{}
}

func charge(ctx context.Context, c Cost) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.add(c)
	}
}
