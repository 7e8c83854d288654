package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

// office is the world around the case: its clock and who starts workers. With a
// sandbox the clock is virtual and workers are started by its hand-overs. Else
// a day passes in a second and a worker is started after every event, as a queue
// or a person would.
type office struct {
	endpoint string
	virtual  bool
	seen     int // hand-overs that were followed
}

// handover is what a resume target is given.
type handover struct {
	Execution execution.ExecutionID `json:"execution"`
	Version   int64                 `json:"version"`
	Cause     string                `json:"cause"`
}

// openOffice starts a sandbox in this process, or looks what the endpoint is.
func openOffice(ctx context.Context, endpoint string) (*office, func() error, error) {
	if endpoint != "" {
		o := &office{endpoint: endpoint}
		var health struct{ Status string }
		o.virtual = endpoint != "aws" && o.kit(ctx, http.MethodGet, "health", nil, &health) == nil && health.Status == "ok"
		if o.virtual {
			_, err := o.handovers(ctx) // those of others
			return o, func() error { return nil }, err
		}
		return o, func() error { return nil }, nil
	}
	s, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions})
	if err != nil {
		return nil, nil, err
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Serve(serving, l) }()
	return &office{endpoint: sandbox.URL(l), virtual: true}, func() error { stop(); return <-done }, nil
}

// kit calls the sandbox's own interface.
func (o *office) kit(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, o.endpoint+"/sandbox/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := fetch(req, into); err != nil {
		return fmt.Errorf("sandbox: %s: %w", path, err)
	}
	return nil
}

// realDay is how long a day takes where time cannot be moved.
const realDay = time.Second

// days scales a time of the story to the clock's.
func (o *office) days(d time.Duration) time.Duration {
	if o.virtual {
		return d
	}
	return time.Duration(float64(d) / float64(24*time.Hour) * float64(realDay))
}

// lease of the workers.
func (o *office) lease() time.Duration {
	if o.virtual {
		return time.Minute
	}
	return 5 * time.Second
}

// pass lets time go by on the store's clock.
func (o *office) pass(ctx context.Context, d time.Duration) error {
	if o.virtual {
		var now any
		return o.kit(ctx, http.MethodPost, "clock", map[string]float64{"advance_seconds": d.Seconds()}, &now)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// handovers are those that came since the last look, after everything due was
// delivered.
func (o *office) handovers(ctx context.Context) ([]handover, error) {
	var ran any
	if err := o.kit(ctx, http.MethodPost, "run", struct{}{}, &ran); err != nil {
		return nil, err
	}
	var dump struct {
		Handovers []struct {
			Input   handover `json:"input"`
			Outcome string   `json:"outcome"`
		} `json:"handovers"`
	}
	if err := o.kit(ctx, http.MethodGet, "dump", nil, &dump); err != nil {
		return nil, err
	}
	var fresh []handover
	for _, h := range dump.Handovers[min(o.seen, len(dump.Handovers)):] {
		if h.Outcome == "started" {
			fresh = append(fresh, h.Input)
		}
	}
	o.seen = len(dump.Handovers)
	return fresh, nil
}

// next says whether a worker is to be started for the case, and at which
// version.
func (o *office) next(ctx context.Context, id execution.ExecutionID, event bool) (*handover, error) {
	if !o.virtual {
		if !event {
			return nil, nil
		}
		return &handover{Execution: id, Cause: "event"}, nil
	}
	all, err := o.handovers(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h handover) bool { return h.Execution != id })
	if len(all) == 0 {
		return nil, nil
	}
	return &all[len(all)-1], nil
}

// stored is what the case occupies in the table: bytes of items by their
// attributes' names and values; 0 where nobody can look.
func (o *office) stored(ctx context.Context, id execution.ExecutionID) (size, items int, err error) {
	if !o.virtual {
		return 0, 0, nil
	}
	var dump struct {
		Items []map[string]json.RawMessage `json:"items"`
	}
	if err := o.kit(ctx, http.MethodGet, "dump", nil, &dump); err != nil {
		return 0, 0, err
	}
	pk := execution.PartitionKey(tenant, id)
	for _, item := range dump.Items {
		if key := textOf(item["pk"]); key != pk {
			continue
		}
		items++
		for name, raw := range item {
			size += len(name) + attributeBytes(raw)
		}
	}
	return size, items, nil
}

// attribute is a value in DynamoDB's JSON form.
type attribute struct {
	S, N string
	B    []byte
}

func textOf(raw json.RawMessage) string {
	var a attribute
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	_ = json.Unmarshal(raw, &a) // anything else is no text
	return a.S
}

func attributeBytes(raw json.RawMessage) int {
	var a attribute
	if json.Unmarshal(raw, &a) != nil {
		return len(textOf(raw))
	}
	return max(1, len(a.S)+len(a.N)+len(a.B))
}
