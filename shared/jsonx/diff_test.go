package jsonx

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to, patch string }{
		{"nothing", `{"a":[1,{"b":2}]}`, `{"a":[1,{"b":2}]}`, `[]`},
		{"leaf", `{"long":"0123456789","a":1}`, `{"long":"0123456789","a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
		{"number spelling", `["0123456789abcdef",1]`, `["0123456789abcdef",1.0]`, `[{"op":"replace","path":"/1","value":1.0}]`},
		{"string spelling", `["0123456789abcdef","é"]`, `["0123456789abcdef","\u00e9"]`, `[{"op":"replace","path":"/1","value":"\u00e9"}]`},
		{"kind", `{"long":"0123456789","a":[]}`, `{"long":"0123456789","a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{"append", `{"m":["0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 ",1]}`, `{"m":["0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 ",1,2,3]}`, `[{"op":"add","path":"/m/-","value":2},{"op":"add","path":"/m/-","value":3}]`},
		{"append to empty", `{"m":[],"long":"0123456789"}`, `{"m":[1],"long":"0123456789"}`, `[{"op":"add","path":"/m/-","value":1}]`},
		{"head removed", `[1,2,"0123456789 0123456789 0123456789 0123456789"]`, `["0123456789 0123456789 0123456789 0123456789"]`, `[{"op":"remove","path":"/0"},{"op":"remove","path":"/0"}]`},
		{"insert", `[1,"0123456789 0123456789 0123456789"]`, `[1,2,"0123456789 0123456789 0123456789"]`, `[{"op":"add","path":"/1","value":2}]`},
		{"window", `["0","0123456789 0123456789","0123456789 012345678 0123456789 0123456789"]`, `["0123456789 0123456789","0123456789 012345678 0123456789 0123456789","new"]`,
			`[{"op":"remove","path":"/0"},{"op":"add","path":"/-","value":"new"}]`},
		{"insert and change", `[{"a":1,"t":"0123456789 0123456789 0123456789"},2]`, `[{"a":2,"t":"0123456789 0123456789 0123456789"},3,2]`,
			`[{"op":"replace","path":"/0/a","value":2},{"op":"add","path":"/1","value":3}]`},
		{"new key", `{"a":"0123456789 0123456789"}`, `{"a":"0123456789 0123456789","b":1}`, `[{"op":"add","path":"/b","value":1}]`},
		{"new key in the middle", `{"a":1,"c":"3"}`, `{"a":1,"b":2,"c":"3"}`, `[{"op":"replace","path":"","value":{"a":1,"b":2,"c":"3"}}]`},
		{"new key before a small last one", `{"a":"0123456789 0123456789 0123456789 0123456789 0123456789","c":3}`, `{"a":"0123456789 0123456789 0123456789 0123456789 0123456789","b":2,"c":3}`,
			`[{"op":"remove","path":"/c"},{"op":"add","path":"/b","value":2},{"op":"add","path":"/c","value":3}]`},
		{"key gone", `{"a":1,"b":"0123456789 0123456789"}`, `{"b":"0123456789 0123456789"}`, `[{"op":"remove","path":"/a"}]`},
		{"order", `{"a":1,"b":2}`, `{"b":2,"a":1}`, `[{"op":"replace","path":"","value":{"b":2,"a":1}}]`},
		{"key spelling", `{"a":1}`, `{"\u0061":1}`, `[{"op":"replace","path":"","value":{"\u0061":1}}]`},
		{"escaped keys", `{"long":"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "}`, `{"long":"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 ","\u00e9":1,"a/b~":2,"\ud800":3}`,
			`[{"op":"add","path":"/\u00e9","value":1},{"op":"add","path":"/a~1b~0","value":2},{"op":"add","path":"/\ud800","value":3}]`},
		{"a key no add can spell", `{"long":"0123456789 0123456789 0123456789"}`, `{"long":"0123456789 0123456789 0123456789","a\/b":1}`,
			`[{"op":"replace","path":"","value":{"long":"0123456789 0123456789 0123456789","a\/b":1}}]`},
		{"below a key with a slash", `{"a\/b":{"long":"0123456789 0123456789","x":1}}`, `{"a\/b":{"long":"0123456789 0123456789","x":2}}`,
			`[{"op":"replace","path":"/a~1b/x","value":2}]`},
		{"scalars", `1`, `1.0`, `[{"op":"replace","path":"","value":1.0}]`},
	} {
		from, to := MustParse(c.from), MustParse(c.to)
		patch := Diff(from, to)
		if patch.String() != c.patch {
			t.Errorf("%s: got %s, want %s", c.name, patch, c.patch)
		}
		got, err := ApplyPatch(from, patch)
		if err != nil || !Identical(got, to) {
			t.Errorf("%s: applied: %v, %s", c.name, err, got)
		}
	}
	if s := Diff(nil, nil).String(); s != `[]` {
		t.Error(s)
	}
	if s := Diff(nil, MustParse(`{}`)).String(); s != `[{"op":"replace","path":"","value":{}}]` {
		t.Error(s)
	}
}

func checkDiff(t interface{ Fatalf(string, ...any) }, from, to *Value) *Value {
	patch := Diff(from, to)
	got, err := ApplyPatch(from, patch)
	if err != nil || !Identical(got, to) || got.String() != to.String() {
		t.Fatalf("from %s to %s: patch %s: %v, %s", from, to, patch, err, got)
	}
	if from.String() == to.String() && patch.Len() > 0 {
		t.Fatalf("%s: patch %s although nothing differs", from, patch)
	}
	if whole := len(`[{"op":"replace","path":"","value":}]`) + to.Size(); patch.Size() > whole {
		t.Fatalf("from %s to %s: patch %s larger than the document", from, to, patch)
	}
	if err := ValidatePatch(patch); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	checkTree(t, patch)
	checkTree(t, got)
	return patch
}

func TestPropertyDiff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := genValue(4).Draw(t, "from")
		to := genValue(4).Draw(t, "to")
		checkDiff(t, from, to)
		near := genNear(from, 3).Draw(t, "near")
		checkDiff(t, from, near)
		checkDiff(t, near, from)
		checkDiff(t, from, genNear(near, 3).Draw(t, "next"))
	})
}

// TestPropertyDiffLists works on long lists of few different elements.
func TestPropertyDiffLists(t *testing.T) {
	t.Parallel()
	elem := rapid.SampledFrom([]*Value{MustParse(`1`), MustParse(`1.0`), MustParse(`{"a":1,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`),
		MustParse(`{"a":2,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`), MustParse(`["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]`), MustParse(`[]`)})
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SliceOfN(elem, 0, 30).Draw(t, "from")
		to := append([]*Value(nil), from...)
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			at := rapid.IntRange(0, len(to)).Draw(t, "at")
			if rapid.Bool().Draw(t, "insert") || at == len(to) {
				to = append(to[:at:at], append([]*Value{elem.Draw(t, "elem")}, to[at:]...)...)
			} else {
				to = append(to[:at:at], to[at+1:]...)
			}
		}
		checkDiff(t, NewArray(from...), NewArray(to...))
	})
}

// TestDiffIsSmall follows an agent that adds messages, trims its list, counts
// and sets flags: every step's patch is about as large as what changed.
func TestDiffIsSmall(t *testing.T) {
	t.Parallel()
	message := func(i int) *Value {
		return MustParse(fmt.Sprintf(`{"role":"user","id":%d,"content":"%s"}`, i, strings.Repeat("text ", 40)))
	}
	build := func(first, end, turn int) *Value {
		var messages []*Value
		for i := first; i < end; i++ {
			messages = append(messages, message(i))
		}
		return NewObject(Member{Key("turn"), NewInt(int64(turn))}, Member{Key("messages"), NewArray(messages...)},
			Member{Key("flags"), MustParse(`{"done":false}`)})
	}
	m := message(1000).Size()
	for _, c := range []struct {
		name       string
		from, to   *Value
		ops, bytes int
	}{
		{"one message", build(0, 400, 1), build(0, 401, 2), 2, m + 100},
		{"trimmed by 10, two added", build(0, 400, 1), build(10, 402, 2), 13, 2*m + 600},
		{"trimmed by 300, two added", build(0, 400, 1), build(300, 402, 2), 303, 2*m + 300*40},
		{"300 put in front", build(300, 400, 1), build(0, 400, 1), 300, 300 * (m + 60)},
		{"last 150 gone, one added", build(0, 400, 1), NewObject(build(0, 250, 1).Members()...), 150, 150 * 40},
	} {
		patch := checkDiff(t, c.from, MustParse(c.to.String()))
		if patch.Len() > c.ops || patch.Size() > c.bytes {
			t.Errorf("%s: %d operations, %d bytes, want at most %d and %d", c.name, patch.Len(), patch.Size(), c.ops, c.bytes)
		}
	}
}

func TestDiffIsLinear(t *testing.T) {
	t.Parallel()
	numbers := func(n, step int) *Value {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d,", i*step%1009)
		}
		return MustParse("[" + b.String() + "0]")
	}
	object := func(n, step int, value string) *Value {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"key %d":%s,`, (i*step)%n, value)
		}
		return MustParse("{" + b.String() + `"z":0}`)
	}
	long := `"` + strings.Repeat("x", 60) + `"`
	half := object(50_000, 1, long).Members()[25_000:]
	for _, c := range []struct {
		name     string
		from, to *Value
	}{
		{"unlike lists", numbers(200_000, 7), numbers(150_000, 11)},
		{"shifted list", numbers(200_000, 1), NewArray(numbers(200_000, 1).Elems()[1000:]...)},
		{"reordered object", object(50_000, 1, "1"), object(50_000, 7, "1")},
		{"object of new values", object(50_000, 1, long), object(50_000, 1, `"`+strings.Repeat("y", 60)+`"`)},
		{"half of an object", object(50_000, 1, long), NewObject(half...)},
	} {
		began := time.Now()
		checkDiff(t, c.from, c.to)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%s took %v", c.name, took)
		} else {
			t.Logf("%s: %v", c.name, took)
		}
	}
}

// TestDiffCanAlwaysBeApplied asks for a change that would shift more elements
// than a patch may.
func TestDiffCanAlwaysBeApplied(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat(`,"0123456789"`, 100_000)
	from := MustParse(`[0` + tail + `]`)
	to := MustParse(`[0` + strings.Repeat(`,{"a":1}`, 20_000) + tail + `]`)
	checkDiff(t, from, to)
}
