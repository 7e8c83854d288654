package catalog

import (
	"sync"

	"github.com/cairnstate/cairn/shared/api"
)

// parsed keeps workflows by their texts: every claim, wait and hand-over reads its
// execution's, and to parse one takes longer than all the rest of that.
type parsed struct {
	mu sync.Mutex
	by map[string]*api.Workflow
}

// parsedMost is how many are kept, parsedText how long a text may be, in bytes:
// together a few megabytes.
const (
	parsedMost = 256
	parsedText = 16 << 10
)

func (p *parsed) get(text string) *api.Workflow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[text]
}

func (p *parsed) put(text string, w *api.Workflow) {
	if len(text) > parsedText {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= parsedMost {
		p.by = map[string]*api.Workflow{}
	}
	p.by[text] = w
}
