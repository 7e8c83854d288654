package memory

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one line of the script. A call matches when its name is On and its
// key contains Match; from the Nth matching call on, the fault strikes Count
// times. Where several would strike one call the first does, and the others
// keep their strikes.
type Fault struct {
	On      string    `json:"on"`
	Match   string    `json:"match,omitempty"`
	Nth     int       `json:"nth,omitempty"`   // 0: the first
	Count   int       `json:"count,omitempty"` // 0: once
	Effect  string    `json:"effect"`
	Reasons []*string `json:"reasons,omitempty"` // of cancelled, in DynamoDB's codes; nil: none
}

// Any matches every call.
const anyCall = "*"

// effects lists what may strike, and on which calls; nil: on every call.
// An effect that a call cannot show (stale on a consistent read) leaves that
// call alone and does not count it.
var effects = map[string][]string{
	"lost": nil, "landed": nil, "throttle": nil, "unavailable": nil, "denied": nil, "key_disabled": nil,
	"crash_before": nil, "crash_after": nil,
	"stale":       {"get", "query", "batch"},
	"page_1":      {"query", "list_objects"},
	"unprocessed": {"batch", "delete", "get", "delete_objects"}, // delete and get: their batches
	"not_found":   {"get_object", "head_object"},
	"cancelled":   {"transact"},
}

var calls = []string{anyCall, "put", "update", "transact", "query", "get", "delete", "batch",
	"put_object", "get_object", "delete_objects", "head_object", "list_objects",
	"kms_generate", "kms_decrypt", "resolver", "target"}

// armed is a fault with what it has seen.
type armed struct {
	Fault
	seen, struck int
}

// SetFaults replaces the script; nil clears it. A fault that could never
// strike is an error that names it, and the old script stays.
func (e *Engine) SetFaults(faults []Fault) error {
	script := make([]*armed, 0, len(faults))
	for i, f := range faults {
		if err := f.check(); err != nil {
			return fmt.Errorf("memory: fault %d: %w", i, err)
		}
		f.Nth, f.Count = max(f.Nth, 1), max(f.Count, 1)
		script = append(script, &armed{Fault: f})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = script
	return nil
}

func (f Fault) check() error {
	on, known := effects[f.Effect]
	switch {
	case !slices.Contains(calls, f.On):
		return fmt.Errorf("on: no such call %q", f.On)
	case !known:
		return fmt.Errorf("effect: no such effect %q", f.Effect)
	case on != nil && f.On != anyCall && !slices.Contains(on, f.On):
		return fmt.Errorf("effect: %s cannot strike %s", f.Effect, f.On)
	case f.Nth < 0:
		return fmt.Errorf("nth: %d is negative", f.Nth)
	case f.Count < 0:
		return fmt.Errorf("count: %d is negative", f.Count)
	case f.Effect == "cancelled" && len(f.Reasons) == 0:
		return fmt.Errorf("reasons: cancelled needs them")
	case f.Effect != "cancelled" && f.Reasons != nil:
		return fmt.Errorf("reasons: only for cancelled")
	}
	return nil
}

// strike gives the fault that strikes the call, nil when none does.
func (e *Engine) strike(c *call) *Fault {
	var hit *armed
	for _, f := range e.faults {
		if !c.named(f.On) || !c.shows(f.Effect) || (f.Match != "" && !strings.Contains(c.keyText(), f.Match)) {
			continue
		}
		f.seen++
		if hit == nil && f.seen >= f.Nth && f.struck < f.Count {
			hit = f
		}
	}
	if hit == nil {
		return nil
	}
	hit.struck++
	return &hit.Fault
}
