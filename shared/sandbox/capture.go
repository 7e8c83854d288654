package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// maxCaptured bounds each captured list; the oldest lines go first.
const maxCaptured = 20_000

// capture keeps what the functions said to the outside.
type capture struct {
	logs, metrics, events lines
}

func (c *capture) clear() {
	c.logs.set(nil)
	c.metrics.set(nil)
	c.events.set(nil)
}

// handler gives a slog.Handler that keeps every record as a line of JSON under
// the virtual time.
func (c *capture) handler(now func() time.Time) slog.Handler {
	return slog.NewJSONHandler(&c.logs, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				a.Value = slog.StringValue(stamp(now()))
			}
			return a
		},
	})
}

// lines keeps JSON values, one a line. Safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	kept []json.RawMessage
	rest []byte // a line that has not ended yet
}

// Write takes text; each whole line in it becomes one kept value, as a JSON
// string when it is no JSON.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.keep(bytes.Clone(line))
		}
		l.rest = bytes.Clone(rest)
	}
}

func (l *lines) add(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null") // only values of our own types come here
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(text)
}

func (l *lines) keep(line []byte) {
	if !json.Valid(line) {
		line, _ = json.Marshal(string(line))
	}
	if len(l.kept) >= maxCaptured {
		l.kept = slices.Delete(l.kept, 0, maxCaptured/10)
	}
	l.kept = append(l.kept, line)
}

// all gives what is kept, never nil.
func (l *lines) all() []json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]json.RawMessage{}, l.kept...)
}

func (l *lines) set(kept []json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.rest = slices.Clone(kept), nil
}

// event is one line of the dump's `events`.
type event struct {
	At         string          `json:"at"`
	DetailType string          `json:"detail_type"`
	Detail     json.RawMessage `json:"detail"`
}

func (s *Server) emit(_ context.Context, detailType string, detail []byte) error {
	if !json.Valid(detail) {
		detail, _ = json.Marshal(string(detail))
	}
	s.capture.events.add(event{At: stamp(s.engine.Now()), DetailType: detailType, Detail: detail})
	return nil
}

// stamp is a time as the interface writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
