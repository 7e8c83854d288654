package storetest

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Table runs the suite on the table that open gives.
func Table(t *testing.T, open func(t *testing.T) TableHarness) {
	h := open(t)
	s := &tableSuite{TableHarness: h, suite: suite{lacks: h.Lacks}}
	s.report(t)
	// These move the clock or script faults: nothing else may run meanwhile.
	t.Run("validation window later", s.windowLater)
	t.Run("transaction conflicts", s.transactionConflicts)
	t.Run("transaction other reasons", s.transactionOtherReasons)
	t.Run("batch unprocessed", s.batchUnprocessed)
	for _, test := range []struct {
		name string
		run  func(*tableSuite, *testing.T)
	}{
		{"put and get", (*tableSuite).putAndGet},
		{"values come back exactly", (*tableSuite).values},
		{"conditions", (*tableSuite).conditions},
		{"condition on an absent item", (*tableSuite).conditionsOnNothing},
		{"actions", (*tableSuite).actions},
		{"refused actions", (*tableSuite).refusedActions},
		{"refused requests", (*tableSuite).refusedRequests},
		{"delete", (*tableSuite).deletes},
		{"size limits", (*tableSuite).sizes},
		{"create race", (*tableSuite).createRace},
		{"counter race", (*tableSuite).counterRace},
		{"validation window", (*tableSuite).window},
		{"clock and units", (*tableSuite).clockAndUnits},
		{"transaction", (*tableSuite).transaction},
		{"transaction refused", (*tableSuite).transactionRefused},
		{"transaction bounds", (*tableSuite).transactionBounds},
		{"transaction token", (*tableSuite).transactionToken},
		{"transaction race", (*tableSuite).transactionRace},
		{"query order and bounds", (*tableSuite).queryBounds},
		{"query pages", (*tableSuite).queryPages},
		{"query big pages", (*tableSuite).queryBigPages},
		{"query refused", (*tableSuite).queryRefused},
		{"index strings", (*tableSuite).indexStrings},
		{"index numbers", (*tableSuite).indexNumbers},
		{"batch", (*tableSuite).batch},
		{"context ended", (*tableSuite).contextEnded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(s, t)
		})
	}
}

type tableSuite struct {
	TableHarness
	suite
}

// row is an item with the given attributes, name and value in turn.
func row(pk, sk string, attrs ...any) store.Item {
	it := store.Item{store.AttrPK: store.S(pk), store.AttrSK: store.S(sk)}
	for i := 0; i < len(attrs); i += 2 {
		it[attrs[i].(string)] = attrs[i+1].(store.Value)
	}
	return it
}

func same(a, b store.Item) bool { return maps.EqualFunc(a, b, store.Value.Equal) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// put writes an item unconditionally.
func (s *tableSuite) put(t *testing.T, items ...store.Item) {
	t.Helper()
	for _, it := range items {
		_, err := s.Table.Put(t.Context(), store.Put{Item: it})
		must(t, err)
	}
}

// read reads an item consistently.
func (s *tableSuite) read(t *testing.T, k store.Key) store.Item {
	t.Helper()
	it, _, err := s.Table.Get(t.Context(), store.Get{Key: k, Consistent: true})
	must(t, err)
	return it
}

func (s *tableSuite) expect(t *testing.T, k store.Key, want store.Item) {
	t.Helper()
	if got := s.read(t, k); !same(got, want) {
		t.Errorf("stored: got %v, want %v", got, want)
	}
}

// refused checks that err is a failed condition that shows the old item.
func refused(t *testing.T, err error, k store.Key, old store.Item) {
	t.Helper()
	var cf *store.ConditionFailed
	if !errors.As(err, &cf) {
		t.Fatalf("got error %v, want a failed condition", err)
	}
	if cf.Key != k || !same(cf.Old, old) || (old == nil) != (cf.Old == nil) {
		t.Errorf("failed condition on %v shows %v, want %v on %v", cf.Key, cf.Old, old, k)
	}
}

// kind checks that err is a *store.Error of the kind, not ambiguous.
func kind(t *testing.T, err error, want store.ErrorKind) {
	t.Helper()
	if got := store.KindOf(err); got != want {
		t.Fatalf("got error %v (kind %q), want kind %q", err, got, want)
	}
	if store.Ambiguous(err) {
		t.Errorf("%v is ambiguous", err)
	}
}

// eventually repeats check for a few seconds, for what is not consistent.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for range 100 {
		if check() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s: not within 5 s", what)
}

func (s *tableSuite) putAndGet(t *testing.T) {
	pk := s.Partition()
	k := store.Key{PK: pk, SK: "head"}
	for _, consistent := range []bool{true, false} {
		it, _, err := s.Table.Get(t.Context(), store.Get{Key: k, Consistent: consistent})
		must(t, err)
		if it != nil {
			t.Fatalf("an item that was never written: %v", it)
		}
	}
	first := row(pk, "head", "a", store.S("1"), "b", store.N(2))
	s.put(t, first)
	s.expect(t, k, first)
	// A put replaces the whole item: b is gone.
	second := row(pk, "head", "a", store.S("2"))
	s.put(t, second)
	s.expect(t, k, second)
	// Created only once.
	_, err := s.Table.Put(t.Context(), store.Put{Item: first, Cond: store.NotThere()})
	refused(t, err, k, second)
	s.expect(t, k, second)
	// Sort keys and partition keys are compared exactly.
	for _, other := range []store.Key{{PK: pk, SK: "Head"}, {PK: pk, SK: "head "}, {PK: pk + " ", SK: "head"}} {
		s.expect(t, other, nil)
	}
	// What a caller does to its item afterwards does not reach the store.
	second["a"] = store.S("changed")
	got := s.read(t, k)
	got["a"] = store.S("changed too")
	s.expect(t, k, row(pk, "head", "a", store.S("2")))
	// The zero Value is no attribute.
	s.put(t, row(pk, "head", "none", store.Value{}))
	s.expect(t, k, row(pk, "head"))
}

func (s *tableSuite) values(t *testing.T) {
	pk := s.Partition()
	list := store.Value{Kind: store.KindL, L: []store.Value{store.S("x"), store.N(1), {Kind: store.KindL}}}
	for name, v := range map[string]store.Value{
		"text": store.S("text"), "empty": store.S(""), "nul": store.S("a\x00b"), "unicode": store.S("é e\u0301 \U0001F600 \uFFFD"),
		"space": store.S(" \t\n\r "), "zero": store.N(0), "negative": store.N(-42),
		"int64 max": store.N(9223372036854775807), "int64 min": store.N(-9223372036854775808),
		"decimal": num("0.1"), "small": num("-123.456"),
		"bytes": store.B([]byte{0, 1, 2, 255}), "no bytes": store.B([]byte{}), "big bytes": store.B(bytes.Repeat([]byte{0xfe}, 100_000)),
		"true": store.Bool(true), "false": store.Bool(false), "null": {Kind: store.KindNULL},
		"set": store.SS("b", "a", "c"), "set of the empty string": store.SS(""),
		"list": list, "empty list": {Kind: store.KindL}, "empty map": {Kind: store.KindM},
		"map": {Kind: store.KindM, M: map[string]store.Value{"": store.S("no name"), "l": list, "t": store.Bool(true)}},
	} {
		it := row(pk, "v#"+name, "value", v)
		s.put(t, it)
		s.expect(t, it.Key(), it)
	}
	t.Run("numbers", func(t *testing.T) {
		s.need(t, Numbers)
		for _, text := range []string{"12345678901234567890123456789012345678", "-12345678901234567890123456789012345678",
			"0.12345678901234567890123456789012345678", "1234567890123456789.0123456789012345678", "10000000000000000999"} {
			it := row(pk, "n#"+text, "value", num(text))
			s.put(t, it)
			s.expect(t, it.Key(), it)
		}
		for _, text := range []string{"123456789012345678901234567890123456789", "1e200", "", "NaN", "Infinity", "0x10", "1 "} {
			_, err := s.Table.Put(t.Context(), store.Put{Item: row(pk, "bad", "value", num(text))})
			kind(t, err, store.Invalid)
		}
	})
	t.Run("attribute names", func(t *testing.T) {
		for _, name := range []string{"size", "status", "a.b", "a b", ":a", "#a", "ünï", "a[0]", "Set", "and"} {
			it := row(pk, "name", name, store.N(1))
			s.put(t, it)
			got, _, err := s.Table.Update(t.Context(), store.Update{Key: it.Key(), Cond: store.Eq(name, store.N(1)), Actions: []store.Action{store.Set{Attr: name, Value: store.N(2)}}})
			must(t, err)
			if want := row(pk, "name", name, store.N(2)); !same(got, want) {
				t.Errorf("attribute %q: got %v, want %v", name, got, want)
			}
		}
	})
}

// num is a number by its text.
func num(text string) store.Value { return store.Value{Kind: store.KindN, S: text} }
