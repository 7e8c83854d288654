package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// settingsFor is how long settings are used that another process may have
// changed; most is for how many tenants they are remembered.
const (
	settingsFor  = time.Minute
	settingsMost = 10_000
)

// remembered are settings as they were read.
type remembered struct {
	mu sync.Mutex
	by map[execution.TenantID]settingsAt
}

type settingsAt struct {
	settings api.Settings
	at       time.Duration
}

// Current is Settings for the hot path: at most a minute old, and never older
// than what this process has set. Its read, once a minute, is charged to no
// request (store.Meter): two like requests cost the same. Without Elapsed it
// always reads.
func (c *Catalog) Current(ctx context.Context, t execution.TenantID) (api.Settings, error) {
	if c.Elapsed == nil {
		return c.Settings(ctx, t)
	}
	now := c.Elapsed()
	c.known.mu.Lock()
	s, ok := c.known.by[t]
	c.known.mu.Unlock()
	if ok && now-s.at < settingsFor {
		return s.settings, nil
	}
	settings, err := c.Settings(store.WithMeter(ctx, &store.Meter{}), t)
	if err != nil {
		return api.Settings{}, err
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if c.known.by == nil || len(c.known.by) >= settingsMost {
		c.known.by = map[execution.TenantID]settingsAt{}
	}
	c.known.by[t] = settingsAt{settings, now}
	return settings, nil
}

func (c *Catalog) forget(t execution.TenantID) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	delete(c.known.by, t)
}
