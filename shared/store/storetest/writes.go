package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

func (s *tableSuite) actions(t *testing.T) {
	pk := s.Partition()
	a := func(actions ...store.Action) []store.Action { return actions }
	for _, r := range []struct {
		name    string
		before  store.Item
		actions []store.Action
		after   store.Item
	}{
		{"set new", row(pk, "1"), a(store.Set{Attr: "x", Value: store.S("v")}), row(pk, "1", "x", store.S("v"))},
		{"set over another kind", row(pk, "2", "x", store.N(1)), a(store.Set{Attr: "x", Value: store.S("v")}), row(pk, "2", "x", store.S("v"))},
		{"set leaves the rest", row(pk, "3", "x", store.N(1), "y", store.N(2)), a(store.Set{Attr: "x", Value: store.N(3)}), row(pk, "3", "x", store.N(3), "y", store.N(2))},
		{"remove", row(pk, "4", "x", store.N(1), "y", store.N(2)), a(store.Remove{Attr: "x"}), row(pk, "4", "y", store.N(2))},
		{"remove nothing", row(pk, "5", "y", store.N(2)), a(store.Remove{Attr: "x"}), row(pk, "5", "y", store.N(2))},
		{"add", row(pk, "6", "x", store.N(40)), a(store.Add{Attr: "x", N: 2}), row(pk, "6", "x", store.N(42))},
		{"add below zero", row(pk, "7", "x", store.N(1)), a(store.Add{Attr: "x", N: -3}), row(pk, "7", "x", store.N(-2))},
		{"add to nothing", row(pk, "8"), a(store.Add{Attr: "x", N: -3}), row(pk, "8", "x", store.N(-3))},
		{"add beyond int64", row(pk, "9", "x", store.N(9223372036854775807)), a(store.Add{Attr: "x", N: 1}), row(pk, "9", "x", num("9223372036854775808"))},
		{"add to a decimal", row(pk, "10", "x", num("-0.5")), a(store.Add{Attr: "x", N: 1}), row(pk, "10", "x", num("0.5"))},
		{"add zero", row(pk, "11", "x", store.N(7)), a(store.Add{Attr: "x", N: 0}), row(pk, "11", "x", store.N(7))},
		{"into a set", row(pk, "12", "x", store.SS("a", "b")), a(store.AddToSet{Attr: "x", Values: []string{"b", "c"}}), row(pk, "12", "x", store.SS("a", "b", "c"))},
		{"into no set", row(pk, "13"), a(store.AddToSet{Attr: "x", Values: []string{"a"}}), row(pk, "13", "x", store.SS("a"))},
		{"out of a set", row(pk, "14", "x", store.SS("a", "b")), a(store.RemoveFromSet{Attr: "x", Values: []string{"a", "z"}}), row(pk, "14", "x", store.SS("b"))},
		{"last out of a set", row(pk, "15", "x", store.SS("a")), a(store.RemoveFromSet{Attr: "x", Values: []string{"a"}}), row(pk, "15")},
		{"out of no set", row(pk, "16"), a(store.RemoveFromSet{Attr: "x", Values: []string{"a"}}), row(pk, "16")},
		{"several", row(pk, "17", "a", store.N(1), "b", store.N(2), "s", store.SS("x", "y")),
			a(store.Set{Attr: "c", Value: store.B([]byte{1})}, store.Remove{Attr: "a"}, store.Add{Attr: "b", N: 1}, store.AddToSet{Attr: "s2", Values: []string{"q"}},
				store.RemoveFromSet{Attr: "s", Values: []string{"x"}}, store.Set{Attr: "d", Value: store.S("")}, store.Remove{Attr: "zz"}),
			row(pk, "17", "b", store.N(3), "c", store.B([]byte{1}), "d", store.S(""), "s", store.SS("y"), "s2", store.SS("q"))},
		{"made by update", nil, a(store.Set{Attr: "x", Value: store.N(1)}, store.Add{Attr: "y", N: 5}, store.Remove{Attr: "z"}), row(pk, "18", "x", store.N(1), "y", store.N(5))},
	} {
		if r.before != nil {
			s.put(t, r.before)
		}
		got, _, err := s.Table.Update(t.Context(), store.Update{Key: r.after.Key(), Actions: r.actions})
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		if !same(got, r.after) {
			t.Errorf("%s: returned %v, want %v", r.name, got, r.after)
		}
		s.expect(t, r.after.Key(), r.after)
		// The same as part of a transaction, on a fresh copy.
		k := store.Key{PK: pk, SK: "t" + r.after.Key().SK}
		move := func(it store.Item) store.Item { return withSK(it, k.SK) }
		if r.before != nil {
			s.put(t, move(r.before))
		}
		_, err = s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Update: &store.Update{Key: k, Actions: r.actions}}}})
		if err != nil {
			t.Errorf("%s in a transaction: %v", r.name, err)
			continue
		}
		s.expect(t, k, move(r.after))
	}
	// Guarded by There, an update makes nothing.
	k := store.Key{PK: pk, SK: "never"}
	_, _, err := s.Table.Update(t.Context(), store.Update{Key: k, Cond: store.There(), Actions: a(store.Set{Attr: "x", Value: store.N(1)})})
	refused(t, err, k, nil)
	s.expect(t, k, nil)
}

func withSK(it store.Item, sk string) store.Item {
	out := store.Item{}
	for name, v := range it {
		out[name] = v
	}
	out[store.AttrSK] = store.S(sk)
	return out
}

func (s *tableSuite) refusedActions(t *testing.T) {
	pk := s.Partition()
	was := row(pk, "it", "s", store.S("text"), "n", store.N(1), "set", store.SS("a"))
	s.put(t, was)
	for name, actions := range map[string][]store.Action{
		"add to a string":          {store.Add{Attr: "s", N: 1}},
		"add to a set":             {store.Add{Attr: "set", N: 1}},
		"set values to a string":   {store.AddToSet{Attr: "s", Values: []string{"a"}}},
		"set values from a number": {store.RemoveFromSet{Attr: "n", Values: []string{"a"}}},
		"no set values":            {store.AddToSet{Attr: "set"}},
		"no values to remove":      {store.RemoveFromSet{Attr: "set"}},
		"empty set":                {store.Set{Attr: "x", Value: store.SS()}},
		"the same name twice":      {store.Set{Attr: "n", Value: store.N(2)}, store.Add{Attr: "n", N: 1}},
		"the partition key":        {store.Set{Attr: store.AttrPK, Value: store.S("x")}},
		"the sort key":             {store.Remove{Attr: store.AttrSK}},
		"no number":                {store.Set{Attr: "x", Value: num("one")}},
		"no value":                 {store.Set{Attr: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Table.Update(t.Context(), store.Update{Key: was.Key(), Actions: actions})
			kind(t, err, store.Invalid)
			_, err = s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Update: &store.Update{Key: was.Key(), Actions: actions}}, {Put: &store.Put{Item: row(pk, "beside")}}}})
			kind(t, err, store.Invalid)
		})
	}
	s.expect(t, was.Key(), was)
	s.expect(t, store.Key{PK: pk, SK: "beside"}, nil)
}

func (s *tableSuite) refusedRequests(t *testing.T) {
	pk := s.Partition()
	for name, it := range map[string]store.Item{
		"no keys": {}, "no sort key": {"pk": store.S(pk)}, "empty partition key": row("", "a"), "empty sort key": row(pk, ""),
		"numeric key": {"pk": store.N(1), "sk": store.S("a")}, "empty set": row(pk, "a", "x", store.SS()), "set with a value twice": row(pk, "a", "x", store.SS("a", "a")),
		"long partition key": row(strings.Repeat("p", 2049), "a"), "long sort key": row(pk, strings.Repeat("s", 1025)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Table.Put(t.Context(), store.Put{Item: it})
			kind(t, err, store.Invalid)
		})
	}
	for _, k := range []store.Key{{PK: "", SK: "a"}, {PK: pk, SK: ""}} {
		_, _, err := s.Table.Get(t.Context(), store.Get{Key: k})
		kind(t, err, store.Invalid)
		_, _, err = s.Table.Update(t.Context(), store.Update{Key: k, Actions: []store.Action{store.Set{Attr: "x", Value: store.N(1)}}})
		kind(t, err, store.Invalid)
		_, _, err = s.Table.Delete(t.Context(), store.Delete{Key: k})
		kind(t, err, store.Invalid)
	}
	s.put(t, row(strings.Repeat("p", 2000)+pk[:min(len(pk), 48)], strings.Repeat("s", 1024)))
	_, _, err := s.Table.Delete(t.Context(), store.Delete{Key: store.Key{PK: strings.Repeat("p", 2000) + pk[:min(len(pk), 48)], SK: strings.Repeat("s", 1024)}})
	must(t, err)
}

func (s *tableSuite) deletes(t *testing.T) {
	pk := s.Partition()
	was := row(pk, "it", "x", store.N(1))
	k := was.Key()
	s.put(t, was)
	_, _, err := s.Table.Delete(t.Context(), store.Delete{Key: k, Cond: store.Eq("x", store.N(2))})
	refused(t, err, k, was)
	s.expect(t, k, was)
	old, _, err := s.Table.Delete(t.Context(), store.Delete{Key: k, Cond: store.Eq("x", store.N(1))})
	must(t, err)
	if !same(old, was) {
		t.Errorf("delete returned %v, want %v", old, was)
	}
	s.expect(t, k, nil)
	old, _, err = s.Table.Delete(t.Context(), store.Delete{Key: k})
	must(t, err)
	if old != nil {
		t.Errorf("delete of nothing returned %v", old)
	}
}

func (s *tableSuite) sizes(t *testing.T) {
	s.need(t, Sizes)
	pk := s.Partition()
	exact := func(sk string, size int, v func(n int) store.Value) store.Item {
		it := row(pk, sk, "body", v(0))
		it["body"] = v(size - it.Size())
		if it.Size() != size {
			t.Fatalf("size %d, want %d", it.Size(), size)
		}
		return it
	}
	text := func(n int) store.Value { return store.S(strings.Repeat("x", n)) }
	data := func(n int) store.Value { return store.B(make([]byte, n)) }
	for name, v := range map[string]func(int) store.Value{"text": text, "data": data} {
		it := exact("limit#"+name, store.MaxItemBytes, v)
		s.put(t, it)
		s.expect(t, it.Key(), it)
		over := exact("over#"+name, store.MaxItemBytes+1, v)
		_, err := s.Table.Put(t.Context(), store.Put{Item: over})
		kind(t, err, store.TooLarge)
		s.expect(t, over.Key(), nil)
	}
	// Bytes count, not characters.
	wide := row(pk, "wide", "body", store.S(strings.Repeat("é", store.MaxItemBytes/2)))
	_, err := s.Table.Put(t.Context(), store.Put{Item: wide})
	kind(t, err, store.TooLarge)
	// An update may not make an item too large either.
	it := exact("grows", store.MaxItemBytes, text)
	s.put(t, it)
	_, _, err = s.Table.Update(t.Context(), store.Update{Key: it.Key(), Actions: []store.Action{store.Set{Attr: "y", Value: store.S("")}}})
	kind(t, err, store.TooLarge)
	s.expect(t, it.Key(), it)
	// A transaction is at most 4 MB in all.
	var writes []store.Write
	for i := range 11 {
		writes = append(writes, store.Write{Put: &store.Put{Item: row(pk, fmt.Sprintf("tx%d", i), "body", data(390_000))}})
	}
	_, err = s.Table.Transact(t.Context(), store.Transact{Writes: writes})
	kind(t, err, store.TooLarge)
	s.expect(t, store.Key{PK: pk, SK: "tx0"}, nil)
	_, err = s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: exact("over#tx", store.MaxItemBytes+1, text)}}}})
	kind(t, err, store.TooLarge)
}

// racers runs write 16 times at once and returns how many succeeded; the others
// must have met a failed condition.
func racers(t *testing.T, write func(i int) error) (won []int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, 16)
	start := make(chan struct{})
	for i := range errs {
		wg.Go(func() {
			<-start
			errs[i] = write(i)
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			won = append(won, i)
			continue
		}
		switch err.(type) {
		case *store.ConditionFailed, *store.Cancelled:
		default:
			t.Errorf("racer %d: %v", i, err)
		}
	}
	return won
}

func (s *tableSuite) createRace(t *testing.T) {
	pk := s.Partition()
	for round := range 10 {
		sk := fmt.Sprintf("r%d", round)
		won := racers(t, func(i int) error {
			_, err := s.Table.Put(t.Context(), store.Put{Item: row(pk, sk, "by", store.N(int64(i))), Cond: store.NotThere()})
			return err
		})
		if len(won) != 1 {
			t.Fatalf("round %d: winners %v", round, won)
		}
		s.expect(t, store.Key{PK: pk, SK: sk}, row(pk, sk, "by", store.N(int64(won[0]))))
	}
}

func (s *tableSuite) counterRace(t *testing.T) {
	pk := s.Partition()
	k := store.Key{PK: pk, SK: "counter"}
	var high atomic.Int64
	won := racers(t, func(int) error {
		for range 20 {
			it, _, err := s.Table.Update(t.Context(), store.Update{Key: k, Actions: []store.Action{store.Add{Attr: "n", N: 1}}})
			if err != nil {
				return err
			}
			for {
				h := high.Load()
				if it.Int("n") <= h || high.CompareAndSwap(h, it.Int("n")) {
					break
				}
			}
		}
		return nil
	})
	if n := s.read(t, k).Int("n"); len(won) != 16 || n != 320 || high.Load() != 320 {
		t.Errorf("%d adders made %d, highest seen %d, want 320", len(won), n, high.Load())
	}
}

// now is the store's clock.
func (s *tableSuite) now(t *testing.T, pk string) time.Time {
	t.Helper()
	s.need(t, Clock)
	_, meta, err := s.Table.Get(t.Context(), store.Get{Key: store.Key{PK: pk, SK: "clock"}, Consistent: true})
	must(t, err)
	if meta.Date.IsZero() {
		t.Fatal("an answer without the store's clock")
	}
	return meta.Date
}

// tryWrites runs every conditional write with the validation time and gives
// the errors; everything it writes lies below sk.
func (s *tableSuite) tryWrites(t *testing.T, pk, sk string, at time.Time) map[string]error {
	t.Helper()
	k := store.Key{PK: pk, SK: sk + "#old"}
	s.put(t, row(k.PK, k.SK, "x", store.N(1)))
	errs := map[string]error{}
	_, errs["put"] = s.Table.Put(t.Context(), store.Put{Item: row(pk, sk+"#put"), Cond: store.NotThere(), ValidatedAt: at})
	_, _, errs["update"] = s.Table.Update(t.Context(), store.Update{Key: k, Actions: []store.Action{store.Set{Attr: "x", Value: store.N(2)}}, ValidatedAt: at})
	_, errs["transact"] = s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: row(pk, sk+"#tx")}}}, ValidatedAt: at})
	_, _, errs["delete"] = s.Table.Delete(t.Context(), store.Delete{Key: k, ValidatedAt: at})
	return errs
}

func (s *tableSuite) window(t *testing.T) {
	pk := s.Partition()
	s.need(t, Window)
	now := s.now(t, pk)
	for name, err := range s.tryWrites(t, pk, "fresh", now) {
		if err != nil {
			t.Errorf("%s validated just now: %v", name, err)
		}
	}
	for name, err := range s.tryWrites(t, pk, "younger", now.Add(-store.Window+time.Minute)) {
		if err != nil {
			t.Errorf("%s validated 4 minutes ago: %v", name, err)
		}
	}
	for name, err := range s.tryWrites(t, pk, "late", now.Add(-store.Window-2*time.Second)) {
		t.Run(name, func(t *testing.T) { kind(t, err, store.TooLate) })
	}
	s.expect(t, store.Key{PK: pk, SK: "late#put"}, nil)
	s.expect(t, store.Key{PK: pk, SK: "late#tx"}, nil)
	s.expect(t, store.Key{PK: pk, SK: "late#old"}, row(pk, "late#old", "x", store.N(1)))
	// A part's own time is ignored; the transaction's counts.
	_, err := s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: row(pk, "part"), ValidatedAt: now.Add(-time.Hour)}}}})
	must(t, err)
}

func (s *tableSuite) windowLater(t *testing.T) {
	pk := s.Partition()
	s.need(t, Window)
	now := s.now(t, pk)
	if s.Later == nil {
		s.skip(t, "the engine's clock cannot be moved")
	}
	s.Later(store.Window + 2*time.Second)
	for name, err := range s.tryWrites(t, pk, "late", now) {
		t.Run(name, func(t *testing.T) { kind(t, err, store.TooLate) })
	}
	if later := s.now(t, pk); later.Before(now.Add(store.Window)) {
		t.Errorf("the clock went from %v to %v", now, later)
	}
}

func (s *tableSuite) clockAndUnits(t *testing.T) {
	pk := s.Partition()
	now := s.now(t, pk)
	it := row(pk, "it", "body", store.B(make([]byte, 5000)))
	meta, err := s.Table.Put(t.Context(), store.Put{Item: it})
	must(t, err)
	failed, err := s.Table.Put(t.Context(), store.Put{Item: it, Cond: store.NotThere()})
	refused(t, err, it.Key(), it)
	tx, err := s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: it}}}})
	must(t, err)
	bad, err := s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: it, Cond: store.NotThere()}}}})
	cancelled(t, err, []store.Reason{store.ReasonCondition}, []store.Item{it})
	_, strong, err := s.Table.Get(t.Context(), store.Get{Key: it.Key(), Consistent: true})
	must(t, err)
	_, weak, err := s.Table.Get(t.Context(), store.Get{Key: it.Key()})
	must(t, err)
	_, page, err := s.Table.Query(t.Context(), store.Query{PK: pk, Consistent: true})
	must(t, err)
	_, up, err := s.Table.Update(t.Context(), store.Update{Key: it.Key(), Actions: []store.Action{store.Set{Attr: "x", Value: store.N(1)}}})
	must(t, err)
	_, del, err := s.Table.Delete(t.Context(), store.Delete{Key: it.Key()})
	must(t, err)
	for name, m := range map[string]store.Meta{"put": meta, "failed put": failed, "transact": tx, "cancelled": bad, "get": strong, "weak get": weak, "query": page, "update": up, "delete": del} {
		if m.Date.Before(now.Add(-time.Second)) {
			t.Errorf("%s: store clock %v, it was %v before", name, m.Date, now)
		}
	}
	s.need(t, Units)
	for name, u := range map[string][2]float64{"put": {meta.WriteUnits, 5}, "transact": {tx.WriteUnits, 10}, "update": {up.WriteUnits, 5}, "delete": {del.WriteUnits, 5},
		"get": {strong.ReadUnits, 2}, "weak get": {weak.ReadUnits, 1}, "query": {page.ReadUnits, 2}} {
		if u[0] != u[1] {
			t.Errorf("%s of 5,000 bytes used %v units, want %v", name, u[0], u[1])
		}
	}
}

func (s *tableSuite) contextEnded(t *testing.T) {
	pk := s.Partition()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Table.Put(ctx, store.Put{Item: row(pk, "a")})
	if store.KindOf(err) != store.Stopped {
		t.Errorf("put under an ended context: %v", err)
	}
	_, _, err = s.Table.Get(ctx, store.Get{Key: store.Key{PK: pk, SK: "a"}})
	kind(t, err, store.Stopped)
	_, _, err = s.Table.Query(ctx, store.Query{PK: pk})
	kind(t, err, store.Stopped)
}
