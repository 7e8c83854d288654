package retention

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

func TestBundledItemsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Custom(func(t *rapid.T) store.Value {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				return store.S(rapid.String().Draw(t, "s"))
			case 1:
				return store.N(rapid.Int64().Draw(t, "n"))
			}
			return store.B(rapid.SliceOf(rapid.Byte()).Draw(t, "b"))
		})
		items := rapid.SliceOfN(rapid.MapOfN(rapid.StringN(1, 20, -1), value, 1, 8), 1, 5).Draw(t, "items")
		file := []byte(bundleMagic)
		var err error
		for _, it := range items {
			if file, err = appendItem(file, it); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readItems(file)
		if err != nil || len(got) != len(items) {
			t.Fatalf("%d of %d items: %v", len(got), len(items), err)
		}
		for i, it := range items {
			if len(got[i]) != len(it) {
				t.Fatalf("item %d: %v, want %v", i, got[i], it)
			}
			for name, v := range it {
				if !got[i][name].Equal(v) {
					t.Fatalf("item %d, %q: %v, want %v", i, name, got[i][name], v)
				}
			}
		}
	})
	if _, err := appendItem(nil, store.Item{"x": store.SS("a")}); execution.CodeOf(err) != execution.Integrity {
		t.Errorf("an attribute that entries do not have: %v", err)
	}
}

// FuzzReadItems: whatever lies in the bucket, reading it answers items or
// Integrity; what it accepts is what would be written again.
func FuzzReadItems(f *testing.F) {
	good, _ := appendItem([]byte(bundleMagic), store.Item{"pk": store.S("t#e"), "sk": store.S("j#00000000000000000001"), "g": store.N(7), "b": store.B([]byte{1, 2})})
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(bundleMagic))
	f.Add([]byte("cairn"))
	f.Add(append([]byte(bundleMagic), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))
	f.Fuzz(func(t *testing.T, file []byte) {
		items, err := readItems(file)
		if err != nil {
			if execution.CodeOf(err) != execution.Integrity {
				t.Fatalf("%v", err)
			}
			return
		}
		again := []byte(bundleMagic)
		for _, it := range items {
			if again, err = appendItem(again, it); err != nil {
				t.Fatal(err)
			}
		}
		back, err := readItems(again)
		if err != nil || len(back) != len(items) {
			t.Fatalf("not stable: %v", err)
		}
	})
}

func TestObjectKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"bank/e/x/17/artifacts/ab": true, "bank/e/x/17/journal/00000000000000000001-ab": true, "bank/e/x/17/views/1-a/b": true,
		"bank/e/x/17/artifacts": false, "bank/e/x/y/artifacts/ab": false, "bank/archive/x/17/m": false, "bank/receipts/x/17.json": false, "": false, "/////": false,
	} {
		if _, _, _, ok := parseObjectKey(key); ok != want {
			t.Errorf("%q: %v", key, ok)
		}
	}
}
