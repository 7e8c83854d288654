package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// Meter writes metrics as CloudWatch embedded metrics, one JSON line each. Safe
// for concurrent use; a nil *Meter writes nothing.
type Meter struct {
	mu    sync.Mutex
	w     io.Writer
	table string
	now   func() time.Time
}

// NewMeter writes to w (standard output in a function). table is the value of
// Dimension; now is the wall clock of the lines.
func NewMeter(w io.Writer, table string, now func() time.Time) *Meter {
	return &Meter{w: w, table: table, now: now}
}

// emf is the specification's envelope (CloudWatch embedded metric format).
type emf struct {
	Timestamp         int64       `json:"Timestamp"`
	CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
}

type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []metric   `json:"Metrics"`
}

type metric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// Count records a value of a metric named in this package. A line that cannot
// be written is lost: a metric never fails a request.
func (m *Meter) Count(name string, value float64) {
	if m == nil {
		return
	}
	line, err := json.Marshal(map[string]any{
		"_aws":    emf{m.now().UnixMilli(), []directive{{Namespace, [][]string{{Dimension}}, []metric{{name, unit(name)}}}}},
		Dimension: m.table, name: value,
	})
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.w.Write(append(line, '\n'))
}

func unit(name string) string {
	switch {
	case strings.HasSuffix(name, "Bytes"):
		return "Bytes"
	case strings.HasSuffix(name, "Age"), strings.HasSuffix(name, "Delay"):
		return "Seconds"
	}
	return "Count"
}

// Done counts what a request's error says about the system: key trouble,
// throttling, lost races. It fits door.Options.Done.
func (m *Meter) Done(_ context.Context, _ string, err error) {
	switch execution.CodeOf(err) {
	case execution.KeyUnavailable:
		m.Count(KeyErrors, 1)
	case execution.Throttled:
		m.Count(Throttles, 1)
	case execution.LeaseLost:
		m.Count(StateConflicts, 1)
	}
}
