package ledger

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// Attributes of a signal's item (docs/FORMAT.md). An item without body is
// emptied: it was absorbed, and only keeps duplicates out until its ttl.
const (
	sigAt     = "t" // ms
	sigDigest = "d" // MAC of the body's tokens; stays when the item is emptied
	sigBody   = "b" // sealed
)

// emptiedFor is how long an emptied signal keeps duplicates out.
const emptiedFor = 30 * 24 * time.Hour

// SignalItem is a signal as it lies in the table. Emptied: it was absorbed and
// its body is gone. Body is nil where the sender gave none.
type SignalItem struct {
	Name, Key string
	Body      *jsonx.Value
	At        int64 // store time, ms
	Actor     *execution.Actor
	Emptied   bool
}

// Inbox is what lies in an execution's inbox, seen against its fold.
type Inbox struct {
	// Open signals are full and not absorbed, by name and key.
	Open []SignalItem
	// StillFull are absorbed ones whose item is to be emptied; Empty absorbed ones
	// that are seen to be empty: the fold may forget them (Change.Emptied).
	StillFull, Empty []execution.SignalRef
}

// signalBody is the control part of the sealed body; the agent's text follows
// it, token for token.
type signalBody struct {
	Key   string           `json:"k"`
	Actor *execution.Actor `json:"a,omitempty"`
}

// signalPlace binds a body to its item's key and plain attributes.
func signalPlace(ref execution.Ref, sk string, at int64, digest []byte) seal.Place {
	plain := append(binary.BigEndian.AppendUint64(nil, uint64(at)), digest...)
	return seal.Place{Tenant: string(ref.Tenant), Execution: string(ref.Execution), Generation: ref.Generation, Kind: "signal", Name: sk, Plain: plain}
}

// signalItem is the item of a new signal. Its plain text: 1 when a body follows,
// else 0; the control part's length; the control part; the body.
func (l *Ledger) signalItem(ctx context.Context, ref execution.Ref, key store.Key, s *sending, now int64) (store.Item, error) {
	control, err := json.Marshal(signalBody{Key: s.r.Key, Actor: s.r.Actor.Execution()})
	if err != nil {
		return nil, execution.Errorf(execution.Internal, "a signal cannot be encoded").Because(err)
	}
	plain := []byte{0}
	if s.r.Body != nil {
		plain[0] = 1
	}
	plain = append(binary.AppendUvarint(plain, uint64(len(control))), control...)
	if s.r.Body != nil {
		plain = s.r.Body.Append(plain)
	}
	sealed, err := l.Journal.Sealer.Seal(ctx, signalPlace(ref, key.SK, now, s.digest), plain)
	if err != nil {
		return nil, execution.AsError(err).With("execution", string(ref.Execution))
	}
	return store.Item{store.AttrPK: store.S(key.PK), store.AttrSK: store.S(key.SK), sigAt: store.N(now), sigDigest: store.B(s.digest), sigBody: store.B(sealed)}, nil
}

// openSignal reads an item whole; an emptied one has no key in it.
func (l *Ledger) openSignal(ctx context.Context, ref execution.Ref, it store.Item) (SignalItem, error) {
	sk := it.Key().SK
	out := SignalItem{Name: signalName(sk), At: it.Int(sigAt), Emptied: it.Bytes(sigBody) == nil}
	if out.Emptied {
		return out, nil
	}
	bad := execution.Errorf(execution.Integrity, "a signal is not what was written").With("execution", string(ref.Execution)).With("key", sk)
	plain, err := l.Journal.Sealer.Open(ctx, signalPlace(ref, sk, out.At, it.Bytes(sigDigest)), it.Bytes(sigBody))
	if err != nil {
		return out, execution.AsError(err).With("execution", string(ref.Execution)).With("key", sk)
	}
	if len(plain) < 2 {
		return out, bad
	}
	n, used := binary.Uvarint(plain[1:])
	if used <= 0 || n > uint64(len(plain)-1-used) {
		return out, bad
	}
	control, text := plain[1+used:1+used+int(n)], plain[1+used+int(n):]
	var b signalBody
	if err := json.Unmarshal(control, &b); err != nil {
		return out, bad
	}
	out.Key, out.Actor = b.Key, b.Actor
	if plain[0] == 1 {
		if out.Body, err = jsonx.Parse(text); err != nil {
			return out, bad
		}
	}
	return out, nil
}

// signalName reads the name from a signal's sort key: sig#generation#name#hash.
func signalName(sk string) string {
	parts := strings.Split(sk, "#")
	if len(parts) != 4 {
		return ""
	}
	return parts[2]
}

func signalPrefix(generation int64) string {
	return fmt.Sprintf("%s%d#", journal.SignalPrefix, generation)
}

// Inbox reads the signals of a generation. It costs what lies there.
func (l *Ledger) Inbox(ctx context.Context, s *execution.State) (*Inbox, error) {
	absorbed := make(map[string]execution.SignalRef, len(s.Absorbed))
	for k := range s.Absorbed {
		name, key, _ := strings.Cut(k, "\x00")
		absorbed[journal.SignalItemKey(s.PK(), s.Generation, name, key).SK] = execution.SignalRef{Name: name, Key: key}
	}
	out := &Inbox{}
	err := l.eachSignal(ctx, s.Ref, func(it store.Item) error {
		full := it.Bytes(sigBody) != nil
		ref, taken := absorbed[it.Key().SK]
		switch {
		case taken && full:
			out.StillFull = append(out.StillFull, ref)
			delete(absorbed, it.Key().SK)
		case !taken && full:
			open, err := l.openSignal(ctx, s.Ref, it)
			if err != nil {
				return err
			}
			out.Open = append(out.Open, open)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// What is left is empty, or gone after its time.
	for _, ref := range absorbed {
		out.Empty = append(out.Empty, ref)
	}
	byKey := func(a, b execution.SignalRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	}
	slices.SortFunc(out.Open, func(a, b SignalItem) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key)) })
	slices.SortFunc(out.StillFull, byKey)
	slices.SortFunc(out.Empty, byKey)
	return out, nil
}

func (l *Ledger) eachSignal(ctx context.Context, ref execution.Ref, f func(store.Item) error) error {
	q := store.Query{PK: ref.PK(), Prefix: signalPrefix(ref.Generation), Consistent: true}
	for {
		page, _, err := l.Journal.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, ref)
		}
		for _, it := range page.Items {
			if err := f(it); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		q.Start = page.Next
	}
}

// Signals reads exactly these signals, in order. One that is not there, was
// absorbed, is empty or is named twice is InvalidRequest absorb[i].
func (l *Ledger) Signals(ctx context.Context, s *execution.State, refs []execution.SignalRef) ([]SignalItem, error) {
	at := make(map[store.Key]int, len(refs))
	keys := make([]store.Key, len(refs))
	for i, r := range refs {
		k := journal.SignalItemKey(s.PK(), s.Generation, r.Name, r.Key)
		_, twice := at[k]
		_, taken := s.Absorbed[execution.SignalKey(r.Name, r.Key)]
		if twice || taken {
			return nil, absorb(s, i, "is absorbed already")
		}
		keys[i], at[k] = k, i
	}
	items, err := l.batch(ctx, s.Ref, keys)
	if err != nil {
		return nil, err
	}
	out := make([]SignalItem, len(refs))
	for i, k := range keys {
		it, ok := items[k]
		if !ok {
			return nil, absorb(s, i, "no such signal is in the inbox")
		}
		if out[i], err = l.openSignal(ctx, s.Ref, it); err != nil {
			return nil, err
		}
		if out[i].Emptied {
			return nil, absorb(s, i, "was absorbed before")
		}
	}
	return out, nil
}

func absorb(s *execution.State, i int, text string) error {
	return execution.Invalid(fmt.Sprintf("absorb[%d]", i), "%s", text).At(s)
}

// batch reads items by key, all of them.
func (l *Ledger) batch(ctx context.Context, ref execution.Ref, keys []store.Key) (map[store.Key]store.Item, error) {
	out := make(map[store.Key]store.Item, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), store.MaxBatchGet)
		left := keys[:n]
		keys = keys[n:]
		for try := 1; len(left) > 0; try++ {
			items, more, _, err := l.Journal.Table.BatchGet(ctx, left, true)
			if err != nil {
				return nil, journal.Fail(err, ref)
			}
			for _, it := range items {
				out[it.Key()] = it
			}
			if left = more; len(left) == 0 {
				break
			}
			if try == 8 {
				return nil, execution.Errorf(execution.Throttled, "the inbox could not be read whole").With("execution", string(ref.Execution))
			}
			if err := l.Journal.Sleep(ctx, time.Duration(try)*20*time.Millisecond); err != nil {
				return nil, journal.Fail(err, ref)
			}
		}
	}
	return out, nil
}

// Empty removes the bodies of absorbed signals; the caller has seen the entry
// that absorbed them. What is left keeps duplicates out for 30 days. Signals
// that are empty or gone already are none of an error.
//
// Lost: any later opener empties it. Landed, reply lost: it is empty, once more
// changes nothing. A crash in between leaves some full: their keys stay in the
// fold until they are seen empty.
func (l *Ledger) Empty(ctx context.Context, ref execution.Ref, refs []execution.SignalRef) error {
	if len(refs) == 0 {
		return nil
	}
	head, clock, err := l.Journal.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil || head == nil || head.Generation != ref.Generation {
		return err
	}
	until := journal.EpochSeconds(l.Journal.NowOf(clock) + emptiedFor.Milliseconds())
	errs := make([]error, len(refs))
	var emptied atomic.Int64
	var wg sync.WaitGroup
	turn := make(chan struct{}, 8)
	for i, r := range refs {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			_, _, err := l.Journal.Table.Update(ctx, store.Update{Key: journal.SignalItemKey(ref.PK(), ref.Generation, r.Name, r.Key), ValidatedAt: clock.Date(),
				Cond:    store.All{store.There(), store.Present{Attr: sigBody}},
				Actions: []store.Action{store.Remove{Attr: sigBody}, store.Set{Attr: store.AttrTTL, Value: store.N(until)}}})
			if err == nil {
				emptied.Add(1)
			}
			if empty := (*store.ConditionFailed)(nil); !errors.As(err, &empty) {
				errs[i] = journal.Fail(err, ref)
			}
		})
	}
	wg.Wait()
	l.gauges.emptied(ref, int(emptied.Load()))
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
