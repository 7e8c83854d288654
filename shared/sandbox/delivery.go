package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// shards is how many shards the emulated stream has; a partition key is always
// in the same one.
const shards = 4

// maxRounds bounds one run: what is left then is delivered by the next.
const maxRounds = 100

// delivery is the event source mappings and the schedules.
type delivery struct {
	mu    sync.Mutex // held by a whole run
	lanes []*lane
	dead  lines
}

// lane is one shard of the stream on its way to one function.
type lane struct {
	mapping  store.Mapping
	patterns []pattern
	shard    uint32
	queue    []memory.Record
	size     int // of the next batch, halved when one fails as a whole
	failures int // of the first record in the queue
}

func (d *delivery) open(mappings []store.Mapping) error {
	d.lanes = nil
	for _, m := range mappings {
		var patterns []pattern
		for _, text := range m.Filters {
			p, err := parsePattern(text)
			if err != nil {
				return err
			}
			patterns = append(patterns, p)
		}
		for shard := range uint32(shards) {
			d.lanes = append(d.lanes, &lane{mapping: m, patterns: patterns, shard: shard, size: m.BatchSize})
		}
	}
	return nil
}

// clear forgets what was pending.
func (d *delivery) clear() {
	for _, l := range d.lanes {
		l.queue, l.size, l.failures = nil, l.mapping.BatchSize, 0
	}
	d.dead.set(nil)
}

// take distributes the store's new records to the lanes.
func (d *delivery) take(e *memory.Engine) {
	for _, r := range e.TakeRecords(0) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.Key.PK))
		shard := h.Sum32() % shards
		view := filterView(r)
		for _, l := range d.lanes {
			if l.shard == shard && l.wants(view) {
				l.queue = append(l.queue, r)
			}
		}
	}
}

// filterView is what filters may look at: name, keys, the texts of the new
// image and who removed it.
func filterView(r memory.Record) map[string]any {
	text := func(s string) map[string]any { return map[string]any{"S": s} }
	view := map[string]any{
		"eventName": r.Name(),
		"dynamodb":  map[string]any{"Keys": map[string]any{store.AttrPK: text(r.Key.PK), store.AttrSK: text(r.Key.SK)}},
	}
	if r.New != nil {
		image := map[string]any{}
		for name, v := range r.New {
			if v.Kind == store.KindS {
				image[name] = text(v.S)
			}
		}
		view["dynamodb"].(map[string]any)["NewImage"] = image
	}
	if r.ByTTL {
		view["userIdentity"] = map[string]any{"type": "Service", "principalId": "dynamodb.amazonaws.com"}
	}
	return view
}

func (l *lane) wants(view map[string]any) bool {
	for _, p := range l.patterns {
		if p.matches(view) {
			return true
		}
	}
	return false
}

// Delivered is what a run did: records that a function took and sweeps that
// found work, records that went to the dead-letter queue and sweeps that failed.
type Delivered struct {
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
	// More: the run stopped at its bound with work left.
	More bool `json:"more,omitempty"`
}

// deliver delivers pending stream records and the schedules' events until
// nothing is left to do. One run goes at a time.
func (s *Server) deliver(ctx context.Context) Delivered {
	d := &s.delivery
	d.mu.Lock()
	defer d.mu.Unlock()
	var sum Delivered
	for range maxRounds {
		before := sum.Delivered
		for d.take(s.engine); s.drain(ctx, &sum); d.take(s.engine) {
			if ctx.Err() != nil {
				return sum
			}
		}
		s.schedules(ctx, &sum)
		if ctx.Err() != nil || sum.Delivered == before && s.engine.PendingRecords() == 0 {
			return sum
		}
	}
	sum.More = true
	return sum
}

// drain delivers one batch of every lane that has records; false when none had.
func (s *Server) drain(ctx context.Context, sum *Delivered) (some bool) {
	for _, l := range s.delivery.lanes {
		if len(l.queue) > 0 && ctx.Err() == nil {
			some = true
			s.batch(ctx, l, sum)
		}
	}
	return some
}

// batch invokes the lane's function once. What it took leaves the queue; what
// failed too often goes to the dead-letter queue.
func (s *Server) batch(ctx context.Context, l *lane, sum *Delivered) {
	n := min(l.size, len(l.queue))
	event := memory.StreamEvent(l.queue[:n])
	if len(event) > maxPayload && n > 1 {
		l.size = n / 2
		return
	}
	out := s.invoke(context.WithoutCancel(ctx), invoked{Name: l.mapping.Function}, requestID(), event)
	taken := out.taken(l.queue[:n])
	switch {
	case taken == n:
		l.pass(n)
		sum.Delivered += n
	case taken < 0 && n > 1: // the whole batch failed: bisect
		l.size = n / 2
	default:
		if taken > 0 {
			l.pass(taken)
			sum.Delivered += taken
		}
		l.failures++
		if l.failures > l.mapping.Retries {
			s.bury(l)
			sum.Failed++
		}
	}
}

// pass takes the first n records off the queue.
func (l *lane) pass(n int) {
	clear(l.queue[:n])
	l.queue, l.size, l.failures = l.queue[n:], l.mapping.BatchSize, 0
}

// deadLetter is one line of the dump's `dead_letters`: keys, never images.
type deadLetter struct {
	Function string    `json:"function"`
	At       string    `json:"at"`
	Attempts int       `json:"attempts"`
	Sequence string    `json:"sequence_number"`
	Name     string    `json:"event_name"`
	Keys     recordKey `json:"keys"`
}

type recordKey struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

func (s *Server) bury(l *lane) {
	r := l.queue[0]
	s.delivery.dead.add(deadLetter{
		Function: l.mapping.Function, At: stamp(s.engine.Now()), Attempts: l.failures,
		Sequence: sequenceNumber(r), Name: r.Name(), Keys: recordKey{r.Key.PK, r.Key.SK},
	})
	l.pass(1)
}

// sequenceNumber is how memory.StreamEvent writes it.
func sequenceNumber(r memory.Record) string { return fmt.Sprintf("%021d", r.Sequence) }

// taken is how many of the batch's records the function took, from the first
// on; -1 when the invocation or its reply failed as a whole, which Lambda also
// makes of an item identifier that is none of the batch's.
func (r result) taken(batch []memory.Record) int {
	if r.failed {
		return -1
	}
	var reply *struct {
		Failures []struct {
			Item string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(r.payload, &reply) != nil {
		return -1
	}
	if reply == nil {
		return len(batch) // null: nothing failed
	}
	first := len(batch)
	for _, f := range reply.Failures {
		at := indexOf(batch, f.Item)
		if at < 0 {
			return -1
		}
		first = min(first, at)
	}
	return first
}

func indexOf(batch []memory.Record, sequence string) int {
	for i, r := range batch {
		if sequenceNumber(r) == sequence {
			return i
		}
	}
	return -1
}

// sweepEvent is the schedules' constant input.
const sweepEvent = `{"action":"sweep","limit":1000}`

// schedules sends the schedules' event to both functions that have one.
func (s *Server) schedules(ctx context.Context, sum *Delivered) {
	for _, name := range []string{Recover, Retention} {
		if ctx.Err() != nil || !s.functions.has(name) {
			continue
		}
		out := s.invoke(context.WithoutCancel(ctx), invoked{Name: name}, requestID(), []byte(sweepEvent))
		switch {
		case out.failed:
			sum.Failed++
		case out.worked():
			sum.Delivered++
		}
	}
}

// worked reports whether a sweep's reply says that it moved anything.
func (r result) worked() bool {
	var reply map[string]json.RawMessage
	_ = json.Unmarshal(r.payload, &reply)
	for _, field := range []string{"handed_over", "parked", "removed"} {
		var count int64
		var list []json.RawMessage
		if json.Unmarshal(reply[field], &count) == nil && count > 0 || json.Unmarshal(reply[field], &list) == nil && len(list) > 0 {
			return true
		}
	}
	return false
}

// handleStream hands a literal event to a function and gives its reply
// verbatim, as an Invoke would.
func (s *Server) handleStream(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Function string          `json:"function"`
		Event    json.RawMessage `json:"event"`
	}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if !s.functions.has(in.Function) {
		refuse(w, fmt.Errorf("function: no function %q", in.Function))
		return
	}
	if len(in.Event) == 0 {
		refuse(w, errors.New("event: required"))
		return
	}
	id := requestID()
	s.invoke(context.WithoutCancel(r.Context()), invoked{Name: in.Function}, id, in.Event).write(w)
	s.nudge()
}

func (s *Server) handleRun(w http.ResponseWriter, r *http.Request) {
	var in struct{}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	reply(w, s.deliver(r.Context()))
}
