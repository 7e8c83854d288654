package memory

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
	"pgregory.net/rapid"
)

// values generates values in the store's own form.
func values() *rapid.Generator[store.Value] {
	leaf := rapid.OneOf(
		rapid.Map(rapid.String(), store.S),
		rapid.Map(rapid.Int64(), store.N),
		rapid.Map(rapid.SliceOf(rapid.Byte()), store.B),
		rapid.Map(rapid.Bool(), store.Bool),
		rapid.Just(store.Value{Kind: store.KindNULL}),
		rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID), func(s []string) store.Value { return store.SS(s...) }),
		rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2.5", "-3"}), 1, 3, rapid.ID), func(s []string) store.Value {
			return store.Value{Kind: store.KindNS, SS: s}
		}),
		rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 3, rapid.ID), func(s []string) store.Value { return store.Value{Kind: store.KindBS, SS: s} }),
	)
	nested := rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(l []store.Value) store.Value { return store.Value{Kind: store.KindL, L: l} }),
		rapid.Map(rapid.MapOfN(rapid.String(), leaf, 0, 3), func(m map[string]store.Value) store.Value { return store.Value{Kind: store.KindM, M: m} }))
	return rapid.OneOf(nested, rapid.Map(rapid.SliceOfN(nested, 0, 3), func(l []store.Value) store.Value { return store.Value{Kind: store.KindL, L: l} }))
}

func items() *rapid.Generator[store.Item] {
	return rapid.Custom(func(t *rapid.T) store.Item {
		it := store.Item(rapid.MapOfN(rapid.StringN(1, 10, 40), values(), 0, 6).Draw(t, "attributes"))
		it[store.AttrPK], it[store.AttrSK] = store.S("p"), store.S("s")
		return it
	})
}

func same(a, b store.Item) bool { return maps.EqualFunc(a, b, store.Value.Equal) }

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it, problem := keep(items().Draw(t, "item"))
		if problem != "" {
			t.Fatal(problem)
		}
		packed := pack(it)
		if got := unpack(packed); !same(got, it) || pack(got) != packed {
			t.Fatalf("%v came back as %v", it, got)
		}
		for name, v := range it {
			if got := attribute(packed, name); !got.Equal(v) {
				t.Fatalf("attribute %q: %v, want %v", name, got, v)
			}
		}
		if got := attribute(packed, rapid.StringN(1, 3, 10).Draw(t, "name")); got.Kind != store.KindInvalid && len(it) == 2 {
			t.Fatalf("an attribute that is not there: %v", got)
		}
	})
}

// Any difference between two transactions is one between their digests; the order
// of a set and that of an item's attributes are none.
func TestDigest(t *testing.T) {
	t.Parallel()
	k := store.Key{PK: "p", SK: "s"}
	it := store.Item{store.AttrPK: store.S("p"), store.AttrSK: store.S("s"), "a": store.S("1"), "l": store.SS("x", "y")}
	put := func(it store.Item, c store.Cond) store.Write { return store.Write{Put: &store.Put{Item: it, Cond: c}} }
	update := func(c store.Cond, a ...store.Action) store.Write {
		return store.Write{Update: &store.Update{Key: k, Cond: c, Actions: a}}
	}
	check := func(c store.Cond) store.Write { return store.Write{Check: &store.Check{Key: k, Cond: c}} }
	changed := func(name string, v store.Value) store.Item {
		out := maps.Clone(it)
		out[name] = v
		return out
	}
	a, b := store.Eq("a", store.S("1")), store.Absent{Attr: "b"}
	all := map[string][]store.Write{
		"nothing":      {},
		"put":          {put(it, nil)},
		"put twice":    {put(it, nil), put(it, nil)},
		"other value":  {put(changed("a", store.S("2")), nil)},
		"other kind":   {put(changed("a", store.N(1)), nil)},
		"bytes":        {put(changed("a", store.B([]byte("1"))), nil)},
		"true":         {put(changed("a", store.Bool(true)), nil)},
		"false":        {put(changed("a", store.Bool(false)), nil)},
		"other set":    {put(changed("l", store.SS("x", "z")), nil)},
		"more":         {put(changed("b", store.S("1")), nil)},
		"absent":       {put(it, store.NotThere())},
		"present":      {put(it, store.There())},
		"equal":        {check(a)},
		"not equal":    {check(store.Not{Cond: a})},
		"less":         {check(store.Compare{Attr: "a", Op: "<", Value: store.S("1")})},
		"contains":     {check(store.Contains{Attr: "a", Value: "1"})},
		"both":         {check(store.All{a, b})},
		"in turn":      {check(store.All{b, a})},
		"either":       {check(store.Any{a, b})},
		"both in both": {check(store.All{store.All{a, b}})},
		"one and one":  {check(store.All{store.All{a}, b})},
		"set":          {update(nil, store.Set{Attr: "a", Value: store.S("1")})},
		"set and cond": {update(a, store.Set{Attr: "a", Value: store.S("1")})},
		"set b":        {update(nil, store.Set{Attr: "b", Value: store.S("1")})},
		"remove":       {update(nil, store.Remove{Attr: "a"})},
		"add":          {update(nil, store.Add{Attr: "a", N: 1})},
		"subtract":     {update(nil, store.Add{Attr: "a", N: -1})},
		"to set":       {update(nil, store.AddToSet{Attr: "a", Values: []string{"1"}})},
		"from set":     {update(nil, store.RemoveFromSet{Attr: "a", Values: []string{"1"}})},
		"delete":       {{Delete: &store.Delete{Key: k}}},
		"delete q":     {{Delete: &store.Delete{Key: store.Key{PK: "p", SK: "q"}}}},
		"delete ps":    {{Delete: &store.Delete{Key: store.Key{PK: "ps", SK: ""}}}},
		"delete if":    {{Delete: &store.Delete{Key: k, Cond: b}}},
	}
	seen := map[uint64]string{}
	for name, writes := range all {
		d := digest(writes)
		if other := seen[d]; other != "" {
			t.Errorf("%s and %s have one digest", name, other)
		}
		if digest(writes) != d {
			t.Errorf("%s: two digests", name)
		}
		seen[d] = name
	}
	if digest([]store.Write{put(changed("l", store.SS("y", "x")), nil)}) != digest(all["put"]) {
		t.Error("the order of a set counts")
	}
}

// What a dump writes, a load reads.
func TestDynamoJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it, problem := keep(items().Draw(t, "item"))
		if problem != "" {
			t.Fatal(problem)
		}
		raw, err := json.Marshal(EncodeItem(it))
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeItem(raw)
		if err != nil || !same(got, it) || pack(got) != pack(it) {
			t.Fatalf("%v came back as %v, %v", it, got, err)
		}
	})
}

func FuzzDecodeItem(f *testing.F) {
	f.Add([]byte(`{"pk":{"S":"a"},"sk":"b","x":{"L":[{"M":{"y":{"N":"1.50"}}},{"BS":["AA=="]}]}}`))
	f.Add([]byte(`{"pk":{"S":"a"},"sk":{"S":"b"},"x":{"SS":["a","a"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		it, err := DecodeItem(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(EncodeItem(it))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeItem(again); err != nil || !same(got, it) {
			t.Errorf("%s: %v, then %v, %v", raw, it, got, err)
		}
	})
}
