package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// Attributes of a ledger slot (docs/FORMAT.md). The outcome is plain, so that
// conditions can look at it; the rest is sealed.
const (
	SlotGeneration = "generation"
	SlotOutcome    = "outcome"    // absent: only started
	SlotArgs       = "args"       // digest of the canonical arguments, if known
	SlotNonce      = "nonce"      // hash of the nonce that started it
	SlotFence      = "fence"      // under which it was started
	SlotStarted    = "started_at" // ms
	SlotAt         = "at"         // ms, of the outcome
	SlotBody       = "b"          // sealed slotBody
	SlotUnknown    = "unknown"    // somebody reported `unknown`, whatever came later
	SlotContra     = "contra"     // there are contradictions beside it
	SlotCallback   = "callback"   // MAC of what the attempt's callback was used for
)

// Slot is an attempt's place in the ledger: evidence without a fence, first
// final write wins.
type Slot struct {
	Operation  execution.OperationID
	Attempt    int
	Generation int64
	// Outcome as stored; one that this version does not know is open.
	Outcome   execution.Outcome
	Args      []byte
	Nonce     []byte
	Fence     int64
	StartedAt int64
	At        int64

	Reason      string
	ProviderRef string
	Result      *jsonx.Value
	ResultRef   *execution.Artifact
	Actor       *execution.Actor
	Source      execution.Source
	// SawUnknown: somebody reported `unknown` about this attempt, whatever came
	// later: a `rejected` settles nothing then (M).
	SawUnknown bool
	// Contradicted: other final outcomes stand beside the first.
	Contradicted bool
	// Callback says what the attempt's callback was used for; nil: not used.
	Callback []byte
	// Contradictions are final outcomes that came after the first; only ReadSlots
	// and ReadAllSlots fill them in.
	Contradictions []execution.Contradiction
}

// Started reports whether the effect was begun (or may have been).
func (s *Slot) Started() bool { return s.StartedAt != 0 || s.Nonce != nil }

// slotBody is the sealed part of a slot or of a contradiction.
type slotBody struct {
	Reason      string              `json:"d,omitempty"`
	ProviderRef string              `json:"p,omitempty"`
	Result      *jsonx.Value        `json:"r,omitempty"`
	ResultRef   *execution.Artifact `json:"rr,omitempty"`
	Actor       *execution.Actor    `json:"a,omitempty"`
	Source      execution.Source    `json:"s,omitempty"`
}

// UnmarshalJSON keeps an explicit null of the result, which encoding/json would
// make absent.
func (b *slotBody) UnmarshalJSON(p []byte) error {
	type plain slotBody
	if err := json.Unmarshal(p, (*plain)(b)); err != nil || b.Result != nil {
		return err
	}
	var raw struct {
		Result json.RawMessage `json:"r"`
	}
	if err := json.Unmarshal(p, &raw); err != nil {
		return err
	}
	if string(raw.Result) == "null" {
		b.Result = jsonx.NewNull()
	}
	return nil
}

func slotPlace(ref execution.Ref, s *Slot, kind string) seal.Place {
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.At))
	plain = append(plain, s.Outcome...)
	return seal.Place{Tenant: string(ref.Tenant), Execution: string(ref.Execution), Generation: s.Generation, Kind: kind, Name: fmt.Sprintf("%s#%d", s.Operation, s.Attempt), Plain: plain}
}

func (j *Journal) sealSlot(ctx context.Context, ref execution.Ref, s *Slot, kind string) ([]byte, error) {
	return sealSlot(ctx, j.Sealer, ref, s, kind)
}

func sealSlot(ctx context.Context, sealer *seal.Sealer, ref execution.Ref, s *Slot, kind string) ([]byte, error) {
	plain, err := marshal(slotBody{s.Reason, s.ProviderRef, s.Result, s.ResultRef, s.Actor, s.Source})
	if err != nil {
		return nil, err
	}
	b, err := sealer.Seal(ctx, slotPlace(ref, s, kind), plain)
	if err != nil {
		return nil, execution.AsError(err).With("execution", string(ref.Execution))
	}
	return b, nil
}

// marshal is JSON without HTML escaping: agent tokens stay as they are.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, execution.Errorf(execution.Internal, "a record cannot be encoded").Because(err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// contradictionMark separates a contradiction's item from the slot's own.
const contradictionMark = "#x#"

// parseSlot reads a slot's plain part.
func parseSlot(it store.Item) (*Slot, bool) {
	rest, ok := strings.CutPrefix(it.Key().SK, SlotPrefix)
	rest, _, _ = strings.Cut(rest, contradictionMark)
	op, n, ok2 := strings.Cut(rest, "#")
	attempt, err := strconv.Atoi(n)
	if !ok || !ok2 || err != nil || attempt < 1 {
		return nil, false
	}
	return &Slot{Operation: execution.OperationID(op), Attempt: attempt, Generation: it.Int(SlotGeneration), Outcome: execution.Outcome(it.Str(SlotOutcome)), Args: it.Bytes(SlotArgs),
		Nonce: it.Bytes(SlotNonce), Fence: it.Int(SlotFence), StartedAt: it.Int(SlotStarted), At: it.Int(SlotAt),
		SawUnknown: it.Has(SlotUnknown), Contradicted: it.Has(SlotContra), Callback: it.Bytes(SlotCallback)}, true
}

// openSlot reads the sealed part, if the outcome is one that this version
// knows.
func (j *Journal) openSlot(ctx context.Context, ref execution.Ref, it store.Item, kind string) (*Slot, error) {
	s, ok := parseSlot(it)
	if !ok {
		return nil, integrity(ref, 0, "an item is no slot: "+it.Key().SK)
	}
	if s.Outcome == execution.OutcomeNone || !s.Outcome.Known() {
		return s, nil
	}
	sealed := it.Bytes(SlotBody) // binds the outcome: without it nothing says that it was recorded
	if sealed == nil {
		return nil, integrity(ref, 0, "a slot's body is missing").With("operation", string(s.Operation))
	}
	plain, err := j.Sealer.Open(ctx, slotPlace(ref, s, kind), sealed)
	if err != nil {
		return nil, execution.AsError(err).With("execution", string(ref.Execution)).With("operation", string(s.Operation))
	}
	var b slotBody
	if err := json.Unmarshal(plain, &b); err != nil {
		return nil, integrity(ref, 0, "a slot's body is no record")
	}
	s.Reason, s.ProviderRef, s.Result, s.ResultRef, s.Actor, s.Source = b.Reason, b.ProviderRef, b.Result, b.ResultRef, b.Actor, b.Source
	return s, nil
}

// ReadSlots reads all slots of one operation of the generation in ref, by
// attempt. Slots of another generation are not there.
func (j *Journal) ReadSlots(ctx context.Context, ref execution.Ref, op execution.OperationID) (map[int]*Slot, error) {
	all, err := j.slots(ctx, ref, fmt.Sprintf("%s%s#", SlotPrefix, op))
	if err != nil {
		return nil, err
	}
	if m := all[op]; m != nil {
		return m, nil
	}
	return map[int]*Slot{}, nil
}

// ReadAllSlots reads every slot of an execution: op -> attempt -> slot. It
// costs what the ledger holds; for a few operations use ReadSlots or GetSlots.
func (j *Journal) ReadAllSlots(ctx context.Context, ref execution.Ref) (map[execution.OperationID]map[int]*Slot, error) {
	return j.slots(ctx, ref, SlotPrefix)
}

func (j *Journal) slots(ctx context.Context, ref execution.Ref, prefix string) (map[execution.OperationID]map[int]*Slot, error) {
	out := map[execution.OperationID]map[int]*Slot{}
	q := store.Query{PK: ref.PK(), Prefix: prefix, Consistent: true}
	for {
		page, _, err := j.Table.Query(ctx, q)
		if err != nil {
			return nil, Fail(err, ref)
		}
		for _, it := range page.Items {
			if err := j.addSlot(ctx, ref, it, out); err != nil {
				return nil, err
			}
		}
		if page.Next == nil {
			return out, nil
		}
		q.Start = page.Next
	}
}

func (j *Journal) addSlot(ctx context.Context, ref execution.Ref, it store.Item, out map[execution.OperationID]map[int]*Slot) error {
	kind := "slot"
	if strings.Contains(it.Key().SK, contradictionMark) {
		kind = "contradiction"
	}
	if it.Int(SlotGeneration) != ref.Generation {
		return nil
	}
	s, err := j.openSlot(ctx, ref, it, kind)
	if err != nil {
		return err
	}
	if out[s.Operation] == nil {
		out[s.Operation] = map[int]*Slot{}
	}
	if kind == "slot" {
		if was := out[s.Operation][s.Attempt]; was != nil {
			s.Contradictions = was.Contradictions
		}
		out[s.Operation][s.Attempt] = s
		return nil
	}
	first := out[s.Operation][s.Attempt]
	if first == nil { // sorted after its slot; a page boundary changes nothing
		first = &Slot{Operation: s.Operation, Attempt: s.Attempt, Generation: s.Generation}
		out[s.Operation][s.Attempt] = first
	}
	first.Contradictions = append(first.Contradictions, execution.Contradiction{Attempt: s.Attempt, Outcome: s.Outcome, ProviderRef: s.ProviderRef, Source: s.Source, At: s.At})
	return nil
}

// GetSlots reads the current attempts' slots of some operations, up to 100 a
// request.
func (j *Journal) GetSlots(ctx context.Context, ref execution.Ref, ops []*execution.Operation) (map[execution.OperationID]*Slot, error) {
	keys := make([]store.Key, len(ops))
	for i, op := range ops {
		keys[i] = SlotKey(ref.PK(), op.ID, op.Attempt)
	}
	out := map[execution.OperationID]*Slot{}
	return out, j.batch(ctx, ref, keys, func(it store.Item) error { return j.takeSlot(ctx, ref, it, out) })
}

// takeSlot adds a slot of the generation in ref.
func (j *Journal) takeSlot(ctx context.Context, ref execution.Ref, it store.Item, out map[execution.OperationID]*Slot) error {
	if it.Int(SlotGeneration) != ref.Generation {
		return nil
	}
	s, err := j.openSlot(ctx, ref, it, "slot")
	if err == nil {
		out[s.Operation] = s
	}
	return err
}

// batch reads items consistently, up to 100 a request, in no order.
func (j *Journal) batch(ctx context.Context, ref execution.Ref, keys []store.Key, take func(store.Item) error) error {
	for len(keys) > 0 {
		n := min(len(keys), store.MaxBatchGet)
		part := keys[:n]
		keys = keys[n:]
		for try := 0; len(part) > 0; try++ {
			items, left, _, err := j.Table.BatchGet(ctx, part, true)
			if err != nil {
				return Fail(err, ref)
			}
			for _, it := range items {
				if err := take(it); err != nil {
					return err
				}
			}
			part = left
			if len(part) == 0 {
				break
			}
			if try == 8 {
				return execution.Errorf(execution.Throttled, "the ledger could not be read whole").With("execution", string(ref.Execution))
			}
			if err := j.Sleep(ctx, time.Duration(try+1)*20*time.Millisecond); err != nil {
				return Fail(err, ref)
			}
		}
	}
	return nil
}

// FillOptions say when a slot may be filled.
type FillOptions struct {
	// OnlyEmpty: nothing was started and no outcome stands there (recovery closing
	// an attempt of a `close` operation: a started one is truly uncertain).
	OnlyEmpty bool
	// Callback: written through the attempt's callback, for this content; a second
	// use with other content is RequestMismatch. nil: not through it.
	Callback []byte
	// ValidatedAt as in store.Put.
	ValidatedAt time.Time
}

// FillSlot writes an outcome into an attempt's slot. Final wins over open and
// over started, the first final one stands. It returns the slot as it stands
// afterwards (s itself when this call wrote it); filled says that it says what
// was given, now or before.
//
// Lost: nothing is there, repeating is safe. Landed, reply lost: a repeat finds
// the same outcome, which counts as filled. A crash right after: the evidence
// lies in the ledger until an owner takes it in.
func (j *Journal) FillSlot(ctx context.Context, ref execution.Ref, s *Slot, o FillOptions) (now *Slot, filled bool, err error) {
	up, err := j.fillUpdate(ctx, ref, s, o)
	if err != nil {
		return nil, false, err
	}
	for try := 0; ; try++ {
		_, _, err := j.Table.Update(ctx, *up)
		if err == nil {
			return s, true, nil
		}
		var cf *store.ConditionFailed
		if errors.As(err, &cf) {
			if b := cf.Old.Bytes(SlotBody); b != nil && bytes.Equal(b, sealedIn(up)) {
				return s, true, nil // an earlier try of ours had landed (random salt: nobody else's)
			}
			return j.stands(ctx, ref, s, o, cf.Old)
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return nil, false, Fail(err, ref)
		}
	}
}

// sealedIn is the sealed part that a fill writes.
func sealedIn(up *store.Update) []byte {
	for _, a := range up.Actions {
		if set, ok := a.(store.Set); ok && set.Attr == SlotBody {
			return set.Value.B
		}
	}
	return nil
}

// FillWrite is the write of an outcome into an attempt's slot, conditional on
// there being no final one.
func FillWrite(ctx context.Context, sealer *seal.Sealer, ref execution.Ref, s *Slot) (*store.Update, error) {
	body, err := sealSlot(ctx, sealer, ref, s, "slot")
	if err != nil {
		return nil, err
	}
	open := store.All{store.Eq(SlotGeneration, store.N(s.Generation)), store.Any{store.Absent{Attr: SlotOutcome},
		store.Eq(SlotOutcome, store.S(string(execution.OutcomeUnknown))), store.Eq(SlotOutcome, store.S(string(execution.OutcomeInProgress)))}}
	up := &store.Update{Key: SlotKey(ref.PK(), s.Operation, s.Attempt), Cond: store.Any{store.NotThere(), open},
		Actions: []store.Action{store.Set{Attr: SlotGeneration, Value: store.N(s.Generation)}, store.Set{Attr: SlotOutcome, Value: store.S(string(s.Outcome))},
			store.Set{Attr: SlotAt, Value: store.N(s.At)}, store.Set{Attr: SlotBody, Value: store.B(body)}}}
	if s.Args != nil {
		up.Actions = append(up.Actions, store.Set{Attr: SlotArgs, Value: store.B(s.Args)})
	}
	if s.Outcome == execution.OutcomeUnknown {
		up.Actions = append(up.Actions, store.Set{Attr: SlotUnknown, Value: store.Bool(true)})
	}
	return up, nil
}

// fillUpdate is the write of FillSlot.
func (j *Journal) fillUpdate(ctx context.Context, ref execution.Ref, s *Slot, o FillOptions) (*store.Update, error) {
	up, err := FillWrite(ctx, j.Sealer, ref, s)
	if err != nil {
		return nil, err
	}
	up.ValidatedAt = o.ValidatedAt
	if o.OnlyEmpty {
		// One that only remembers a used callback is as empty as one that is not there.
		up.Cond = store.Any{store.NotThere(), store.All{store.Eq(SlotGeneration, store.N(s.Generation)), store.Absent{Attr: SlotOutcome}, store.Absent{Attr: SlotStarted}, store.Absent{Attr: SlotNonce}}}
	}
	if o.Callback != nil {
		up.Cond = store.All{up.Cond, unusedOr(o.Callback)}
		up.Actions = append(up.Actions, store.Set{Attr: SlotCallback, Value: store.B(o.Callback)})
	}
	return up, nil
}

// stands says what a fill that was refused found in the slot.
func (j *Journal) stands(ctx context.Context, ref execution.Ref, s *Slot, o FillOptions, was store.Item) (now *Slot, filled bool, err error) {
	if was == nil || was.Int(SlotGeneration) != s.Generation {
		return nil, false, execution.Errorf(execution.Deleted, "the slot belongs to another generation").With("execution", string(ref.Execution))
	}
	if used := was.Bytes(SlotCallback); o.Callback != nil && used != nil && !bytes.Equal(used, o.Callback) {
		return nil, false, callbackUsed(ref, s.Operation)
	}
	old, err := j.openSlot(ctx, ref, was, "slot")
	if err != nil {
		return nil, false, err
	}
	return old, old.Outcome == s.Outcome && s.Outcome.Final() && sameResult(old, s), nil
}

// sameResult reports whether two slots carry the same outcome in full.
func sameResult(a, b *Slot) bool {
	if a.ProviderRef != b.ProviderRef || (a.Result == nil) != (b.Result == nil) || (a.ResultRef == nil) != (b.ResultRef == nil) {
		return false
	}
	if a.ResultRef != nil {
		return a.ResultRef.Digest == b.ResultRef.Digest
	}
	return a.Result == nil || jsonx.Equal(a.Result, b.Result)
}

// KeepSlot writes a settled operation's outcome into its slot, so that it
// outlives the fold. An outcome that stands there already stays.
func (j *Journal) KeepSlot(ctx context.Context, h *Handle, op *execution.Operation) error {
	_, _, err := j.FillSlot(ctx, h.State.Ref, slotOf(h.State.Ref, op, j.Now(h)), FillOptions{ValidatedAt: h.validated})
	return err
}

// keepSlots is KeepSlot for many: beyond a few, a hundred at a time.
func (j *Journal) keepSlots(ctx context.Context, h *Handle, ops []*execution.Operation) error {
	if len(ops) > 8 {
		slots := make([]*Slot, len(ops))
		for i, op := range ops {
			slots[i] = slotOf(h.State.Ref, op, j.Now(h))
		}
		_, err := j.FillSlots(ctx, h.State.Ref, slots, FillOptions{ValidatedAt: h.validated})
		return err
	}
	for _, op := range ops {
		if err := j.KeepSlot(ctx, h, op); err != nil {
			return err
		}
	}
	return nil
}

func slotOf(ref execution.Ref, op *execution.Operation, now int64) *Slot {
	return &Slot{Operation: op.ID, Attempt: op.Attempt, Generation: ref.Generation, Outcome: op.Outcome, At: now, Reason: op.Reason, ProviderRef: op.ProviderRef,
		Result: op.Result, ResultRef: op.ResultRef, Source: op.Source, Args: op.ArgsDigest[:]}
}

// SlotOfSettlement is the slot that a settlement must stand in before it
// counts (M: not_executed and abandoned, from whatever source).
func SlotOfSettlement(ref execution.Ref, t *execution.Settlement, now int64) *Slot {
	return &Slot{Operation: t.Operation, Attempt: t.Attempt, Generation: ref.Generation, Outcome: t.Outcome, At: now, Reason: t.Reason, ProviderRef: t.ProviderRef,
		Result: t.Result, ResultRef: t.ResultRef, Source: t.Source}
}
