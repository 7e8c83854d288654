package storetest

import (
	"fmt"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
)

// subject is the item that the conditions are tried on.
func subject(pk, sk string) store.Item {
	return row(pk, sk, "s", store.S("m"), "empty", store.S(""), "n", store.N(10), "neg", store.N(-5), "dec", num("0.5"),
		"big", store.N(9007199254740993), "b", store.B([]byte{5, 200}), "t", store.Bool(true), "null", store.Value{Kind: store.KindNULL},
		"set", store.SS("a", "b"), "list", store.Value{Kind: store.KindL, L: []store.Value{store.S("a")}},
		"map", store.Value{Kind: store.KindM, M: map[string]store.Value{"k": store.N(1)}})
}

type condRow struct {
	name  string
	cond  store.Cond
	holds bool // on the subject
	bare  bool // on an item that does not exist
}

func compare(attr string, op store.Op, v store.Value) store.Cond {
	return store.Compare{Attr: attr, Op: op, Value: v}
}

func condRows() []condRow {
	rows := []condRow{
		{"none", nil, true, true},
		{"item there", store.There(), true, false},
		{"item not there", store.NotThere(), false, true},
		{"present", store.Present{Attr: "s"}, true, false},
		{"present empty string", store.Present{Attr: "empty"}, true, false},
		{"present null", store.Present{Attr: "null"}, true, false},
		{"present false negative", store.Present{Attr: "zz"}, false, false},
		{"absent", store.Absent{Attr: "s"}, false, true},
		{"absent null", store.Absent{Attr: "null"}, false, true},
		{"absent really", store.Absent{Attr: "zz"}, true, true},
		{"contains", store.Contains{Attr: "set", Value: "b"}, true, false},
		{"contains not", store.Contains{Attr: "set", Value: "c"}, false, false},
		{"contains is no prefix", store.Contains{Attr: "set", Value: ""}, false, false},
		{"contains no substring", store.Contains{Attr: "s", Value: "m"}, false, false},
		{"contains no list element", store.Contains{Attr: "list", Value: "a"}, false, false},
		{"contains on nothing", store.Contains{Attr: "zz", Value: "a"}, false, false},
		{"all of none", store.All{}, true, true},
		{"any of none", store.Any{}, false, false},
		{"all", store.All{store.There(), store.Eq("n", store.N(10))}, true, false},
		{"all but one", store.All{store.There(), store.Eq("n", store.N(11))}, false, false},
		{"any", store.Any{store.NotThere(), store.Eq("n", store.N(10))}, true, true},
		{"any but none", store.Any{store.Absent{Attr: "n"}, store.Eq("n", store.N(11))}, false, true},
		{"not", store.Not{Cond: store.Eq("n", store.N(11))}, true, true},
		{"not not", store.Not{Cond: store.Not{Cond: store.Eq("n", store.N(10))}}, true, false},
		{"not a comparison with nothing", store.Not{Cond: compare("zz", store.LT, store.N(1))}, true, true},
		{"not of another kind", store.Not{Cond: store.Eq("n", store.S("10"))}, true, true},
		{"nested", store.All{store.Any{store.All{store.Any{}}, store.Not{Cond: store.All{store.NotThere()}}}, store.Any{store.Eq("t", store.Bool(true))}}, true, false},
		{"all of empty parts", store.All{store.All{}, store.Not{Cond: store.Any{}}}, true, true},
		{"nil inside", store.All{nil, store.Any{nil}}, true, true},
		{"equal set, other order", store.Eq("set", store.SS("b", "a")), true, false},
		{"equal subset", store.Eq("set", store.SS("a")), false, false},
		{"equal true", store.Eq("t", store.Bool(true)), true, false},
		{"equal false", store.Eq("t", store.Bool(false)), false, false},
		{"unequal false", compare("t", store.NE, store.Bool(false)), true, false},
		{"equal null", store.Eq("null", store.Value{Kind: store.KindNULL}), true, false},
		{"equal list", store.Eq("list", store.Value{Kind: store.KindL, L: []store.Value{store.S("a")}}), true, false},
		{"equal map", store.Eq("map", store.Value{Kind: store.KindM, M: map[string]store.Value{"k": store.N(1)}}), true, false},
		{"equal other map", store.Eq("map", store.Value{Kind: store.KindM, M: map[string]store.Value{"k": store.N(2)}}), false, false},
		{"numbers by value", store.Eq("dec", num("0.50")), true, false},
		{"above 2^53", store.Eq("big", store.N(9007199254740992)), false, false},
	}
	// Each ordered kind with values below, equal and above what is stored.
	for _, o := range []struct {
		attr                string
		below, equal, above store.Value
	}{
		{"s", store.S("lzzz"), store.S("m"), store.S("m\x00")},
		{"s", store.S("M"), store.S("m"), store.S("é")},
		{"n", store.N(9), store.N(10), store.N(100)},
		{"n", num("9.99999999999999999999"), num("1e1"), num("10.00000000000000000001")},
		{"neg", store.N(-6), store.N(-5), num("-4.9")},
		{"dec", num("0.09"), num("0.5"), num("0.51")},
		{"b", store.B([]byte{5}), store.B([]byte{5, 200}), store.B([]byte{200})},
	} {
		for v, sign := range map[*store.Value]int{&o.below: 1, &o.equal: 0, &o.above: -1} {
			for op, holds := range map[store.Op]bool{store.EQ: sign == 0, store.NE: sign != 0, store.LT: sign < 0, store.LE: sign <= 0, store.GT: sign > 0, store.GE: sign >= 0} {
				rows = append(rows, condRow{o.attr + " " + string(op) + " " + v.S + fmt.Sprintf("%x", v.B), compare(o.attr, op, *v), holds, false})
			}
		}
	}
	// A comparison with an attribute that is absent or of another kind never holds.
	for _, op := range []store.Op{store.EQ, store.NE, store.LT, store.LE, store.GT, store.GE} {
		rows = append(rows,
			condRow{"absent " + string(op), compare("zz", op, store.N(0)), false, false},
			condRow{"absent string " + string(op), compare("zz", op, store.S("")), false, false},
			condRow{"number with string " + string(op), compare("n", op, store.S("1")), false, false},
			condRow{"string with number " + string(op), compare("s", op, store.N(0)), false, false},
			condRow{"string with bytes " + string(op), compare("s", op, store.B([]byte("a"))), false, false},
			condRow{"null with string " + string(op), compare("null", op, store.S("x")), false, false},
			condRow{"set with string " + string(op), compare("set", op, store.S("a")), false, false},
		)
	}
	return rows
}

// conditions tries every row on an item that is there, through every write.
func (s *tableSuite) conditions(t *testing.T) {
	pk := s.Partition()
	was := subject(pk, "it")
	k := was.Key()
	s.put(t, was)
	for _, r := range condRows() {
		// The item that each write leaves is the one that was there, so the rows
		// do not disturb one another.
		put := func() error {
			_, err := s.Table.Put(t.Context(), store.Put{Item: was, Cond: r.cond})
			return err
		}
		update := func() error {
			_, _, err := s.Table.Update(t.Context(), store.Update{Key: k, Cond: r.cond, Actions: []store.Action{store.Set{Attr: "s", Value: store.S("m")}}})
			return err
		}
		for name, write := range map[string]func() error{"put": put, "update": update} {
			if err := write(); r.holds && err != nil {
				t.Errorf("%s: %s: %v", r.name, name, err)
			} else if !r.holds {
				refused(t, err, k, was)
			}
		}
		if !r.holds {
			_, _, err := s.Table.Delete(t.Context(), store.Delete{Key: k, Cond: r.cond})
			refused(t, err, k, was)
		}
		s.tryInTransaction(t, r.name, k, r.cond, r.holds, was)
	}
	s.expect(t, k, was)
}

// tryInTransaction tries a condition as a check beside another write.
func (s *tableSuite) tryInTransaction(t *testing.T, name string, k store.Key, cond store.Cond, holds bool, was store.Item) {
	t.Helper()
	if cond == nil {
		return // a check without a condition checks nothing
	}
	other := row(k.PK, "other", "x", store.S(name))
	_, err := s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{{Check: &store.Check{Key: k, Cond: cond}}, {Put: &store.Put{Item: other}}}})
	if holds {
		if err != nil {
			t.Errorf("%s: check: %v", name, err)
			return
		}
		s.expect(t, other.Key(), other)
		return
	}
	cancelled(t, err, []store.Reason{store.ReasonCondition, ""}, []store.Item{was, nil})
	if got := s.read(t, other.Key()); got.Str("x") == name {
		t.Errorf("%s: a refused transaction wrote", name)
	}
}

// conditionsOnNothing tries every row on an item that is not there.
func (s *tableSuite) conditionsOnNothing(t *testing.T) {
	pk := s.Partition()
	k := store.Key{PK: pk, SK: "it"}
	it := row(pk, "it", "s", store.S("new"))
	for _, r := range condRows() {
		_, err := s.Table.Put(t.Context(), store.Put{Item: it, Cond: r.cond})
		if !r.bare {
			refused(t, err, k, nil)
			_, _, err = s.Table.Update(t.Context(), store.Update{Key: k, Cond: r.cond, Actions: []store.Action{store.Set{Attr: "s", Value: store.S("x")}}})
			refused(t, err, k, nil)
			_, _, err = s.Table.Delete(t.Context(), store.Delete{Key: k, Cond: r.cond})
			refused(t, err, k, nil)
			s.expect(t, k, nil)
		} else if err != nil {
			t.Errorf("%s: put: %v", r.name, err)
		} else {
			s.expect(t, k, it)
			_, _, err = s.Table.Delete(t.Context(), store.Delete{Key: k})
			must(t, err)
			if old, _, err := s.Table.Delete(t.Context(), store.Delete{Key: k, Cond: r.cond}); err != nil || old != nil {
				t.Errorf("%s: delete of nothing: %v, %v", r.name, old, err)
			}
		}
		s.tryInTransaction(t, r.name, k, r.cond, r.bare, nil)
	}
}
