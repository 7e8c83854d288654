package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// GoneToken is how a task token begins that nobody waits behind: the first
// answer to it is Gone already. Any other token takes one answer.
const GoneToken = "gone"

// handover is one line of the dump's `handovers`.
type handover struct {
	Target    *handoverTarget `json:"target,omitempty"`
	TaskToken bool            `json:"task_token,omitempty"` // it was the answer to one; the token itself is never shown
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input"`
	At        string          `json:"at"`
	// Outcome is started, existed or gone; failed: it never arrived; timeout: it
	// arrived and the caller does not know.
	Outcome string `json:"outcome"`
}

type handoverTarget struct {
	Kind string `json:"kind"`
	ARN  string `json:"arn"`
}

// handovers records what was started. Safe for concurrent use.
type handovers struct {
	mu      sync.Mutex
	lines   lines
	started map[string]bool   // kind, ARN and name
	tokens  map[[32]byte]bool // digests of answered tokens
}

func (h *handovers) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.tokens = nil, nil
	h.lines.set(nil)
}

// restore takes the list of a dump. Names that it shows as started stay
// started; which tokens were used is not in a dump.
func (h *handovers) restore(kept []json.RawMessage) {
	h.clear()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.set(kept)
	for _, line := range kept {
		var l handover
		if json.Unmarshal(line, &l) == nil && l.Target != nil && (l.Outcome == string(recovery.Started) || l.Outcome == "timeout") {
			h.first(startKey(l.Target.Kind, l.Target.ARN, l.Name))
		}
	}
}

func startKey(kind, arn, name string) string { return strings.Join([]string{kind, arn, name}, "\x00") }

func (h *handovers) first(key string) bool {
	if h.started == nil {
		h.started = map[string]bool{}
	}
	if h.started[key] {
		return false
	}
	h.started[key] = true
	return true
}

func (h *handovers) start(to recovery.Handover) recovery.StartOutcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first(startKey(to.Kind, to.ARN, to.Name)) {
		return recovery.Started
	}
	return recovery.Existed
}

func (h *handovers) answer(token string) recovery.StartOutcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	digest := sha256.Sum256([]byte(token))
	if h.tokens[digest] || strings.HasPrefix(token, GoneToken) {
		return recovery.Gone
	}
	if h.tokens == nil {
		h.tokens = map[[32]byte]bool{}
	}
	h.tokens[digest] = true
	return recovery.Started
}

// targetDoor implements recovery.Target by records. The engine's faults on
// target strike it; their key is "<kind>:<arn>/<name>", or "task_token".
type targetDoor struct {
	engine *memory.Engine
	all    *handovers
}

// Start implements recovery.Target.
func (d targetDoor) Start(ctx context.Context, to recovery.Handover) (recovery.StartOutcome, error) {
	line := handover{Target: &handoverTarget{to.Kind, to.ARN}, Name: to.Name, Input: to.Input}
	return d.through(ctx, to.Kind+":"+to.ARN+"/"+to.Name, line, func() recovery.StartOutcome { return d.all.start(to) })
}

// AnswerToken implements recovery.Target.
func (d targetDoor) AnswerToken(ctx context.Context, token string, input []byte) (recovery.StartOutcome, error) {
	line := handover{TaskToken: true, Input: input}
	return d.through(ctx, "task_token", line, func() recovery.StartOutcome { return d.all.answer(token) })
}

func (d targetDoor) through(ctx context.Context, key string, line handover, do func() recovery.StartOutcome) (recovery.StartOutcome, error) {
	var outcome recovery.StartOutcome
	err := d.engine.Door(ctx, "target", key, func() error {
		outcome = do()
		return nil
	})
	switch {
	case err == nil:
		line.Outcome = string(outcome)
	case outcome != "":
		line.Outcome = "timeout"
	case store.KindOf(err) == store.Stopped:
		return "", err // it was never tried
	default:
		line.Outcome = "failed"
	}
	if !json.Valid(line.Input) {
		line.Input, _ = json.Marshal(string(line.Input))
	}
	line.At = stamp(d.engine.Now())
	d.all.lines.add(line)
	if err != nil {
		return "", err
	}
	return outcome, nil
}
