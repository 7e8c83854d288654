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
