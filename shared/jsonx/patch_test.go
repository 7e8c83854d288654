package jsonx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":1}`, `[]`, `{"a":1}`},
		{`{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{`{"\u0061":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"\u0061":3,"b":2}`},
		{`{"b":1}`, `[{"op":"add","path":"/\u0061","value":1.0}]`, `{"b":1,"\u0061":1.0}`},
		{`{}`, `[{"op":"add","path":"/a~1b~0","value":"\u0000"}]`, `{"a/b~":"\u0000"}`},
		{`{}`, `[{"op":"add","path":"\/a","value":1},{"op":"add","path":"\u002fa\u002fb","value":1}]`, ``},
		{`{"a":{}}`, `[{"op":"add","path":"\u002fa\/b","value":1}]`, `{"a":{"b":1}}`},
		{`{"":{"":1}}`, `[{"op":"replace","path":"//","value":2}]`, `{"":{"":2}}`},
		{`{"\ud800":1,"\ud801":2}`, `[{"op":"remove","path":"/\uD801"}]`, `{"\ud800":1}`},
		{`{"\ud83d\ude00":1}`, `[{"op":"replace","path":"/😀","value":2}]`, `{"\ud83d\ude00":2}`},
		{`{"é":1,"e\u0301":2}`, `[{"op":"remove","path":"/\u00e9"}]`, `{"e\u0301":2}`},
		{`[1,2]`, `[{"op":"add","path":"/-","value":3},{"op":"add","path":"/0","value":0},{"op":"add","path":"/4","value":4}]`, `[0,1,2,3,4]`},
		{`[1]`, `[{"op":"add","path":"/2","value":3}]`, ``},
		{`[1]`, `[{"op":"add","path":"/00","value":3}]`, ``},
		{`[1]`, `[{"op":"replace","path":"/-","value":3}]`, ``},
		{`[1]`, `[{"op":"test","path":"/-1","value":1}]`, ``},
		{`[1]`, `[{"op":"test","path":"/1e0","value":1}]`, ``},
		{`[1]`, `[{"op":"remove","path":"/99999999999999999999"}]`, ``},
		{`{"a":1}`, `[{"op":"replace","path":"","value":[1.0]}]`, `[1.0]`},
		{`{"a":1}`, `[{"op":"add","path":"","value":null}]`, `null`},
		{`{"a":1}`, `[{"op":"remove","path":""}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":""}]`, `{"b":1}`},
		{`{"a":1}`, `[{"op":"move","from":"","path":"/a"}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/\u0061","path":"\/a/c"}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1}`},
		{`{"a":1,"ab":2}`, `[{"op":"move","from":"/a","path":"/ab"}]`, `{"ab":1}`},
		{`{"a":1,"b":2}`, `[{"op":"move","from":"/a","path":"/\u0061"}]`, `{"a":1,"b":2}`},
		{`{"b":2}`, `[{"op":"move","from":"/a","path":"/a"}]`, ``},
		{`[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
		{`[1,2,3]`, `[{"op":"move","from":"/0","path":"/3"}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"","path":"/a/c"},{"op":"replace","path":"/a/b","value":2}]`, `{"a":{"b":2,"c":{"a":{"b":1}}}}`},
		{`{"a":{"b":[1]}}`, `[{"op":"add","path":"/a/b/-","value":2},{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/a/b/-","value":3},{"op":"remove","path":"/c/b/0"}]`,
			`{"a":{"b":[1,2,3]},"c":{"b":[2]}}`},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":1.0},{"op":"test","path":"","value":{"a":10e-1}}]`, `{"a":1}`},
		{`{"a":1e9999}`, `[{"op":"test","path":"/a","value":10e9998}]`, `{"a":1e9999}`},
		{`{"a":1e9999}`, `[{"op":"test","path":"/a","value":1e9998}]`, ``},
		{`{"a":"\u00e9"}`, `[{"op":"test","path":"/a","value":"é"}]`, `{"a":"\u00e9"}`},
		{`{"a":10000000000000000999}`, `[{"op":"test","path":"/a","value":10000000000000001000}]`, ``},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":"1"}]`, ``},
		{`{"a":null}`, `[{"op":"test","path":"/b","value":null}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"a","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/~","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/~2","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/a/b","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"Add","path":"/a","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/a"}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":null,"value":1}]`, ``},
		{`{"a":1}`, `[{"op":"copy","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"path":"/a","value":1}]`, ``},
		{`{"a":1}`, `[1]`, ``},
		{`{"a":1}`, `{"op":"add","path":"/a","value":1}`, ``},
		{`{"a":1}`, `[{"\u006fp":"a\u0064d","path":"/b","value":2,"extra":[1]}]`, `{"a":1,"b":2}`},
		{`{"a":1}`, `[{"op":"add","path":"/b","value":2},{"op":"test","path":"/b","value":3}]`, ``},
	} {
		doc, patch := MustParse(c.doc), MustParse(c.patch)
		got, err := ApplyPatch(doc, patch)
		switch {
		case doc.String() != c.doc || patch.String() != c.patch:
			t.Errorf("%s %s: input changed", c.doc, c.patch)
		case c.want == "" && (err == nil || got != nil):
			t.Errorf("%s %s: no error but %s", c.doc, c.patch, got)
		case c.want != "" && err != nil:
			t.Errorf("%s %s: %v", c.doc, c.patch, err)
		case c.want != "" && (got.String() != c.want || got.Size() != len(c.want) || got.Depth() != MustParse(c.want).Depth()):
			t.Errorf("%s %s: got %s (size %d, depth %d), want %s", c.doc, c.patch, got, got.Size(), got.Depth(), c.want)
		}
	}
}

func TestPatchErrorNamesTheOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patch string
		want  PatchError
		is    error
	}{
		{`[{"op":"test","path":"/k","value":"s3cret"},{"op":"test","path":"/k","value":"other"}]`, PatchError{Index: 1, Op: "test", Path: "/k", Reason: reasonTest}, ErrTestFailed},
		{`[{"op":"copy","from":"/no\u0000\ud800","path":"/k"}]`, PatchError{Index: 0, Op: "copy", Path: `/no\u0000\ud800`, Reason: reasonNoPlace}, nil},
		{`[{"op":"move","from":"/k","path":"/x/y"}]`, PatchError{Index: 0, Op: "move", Path: "/x/y", Reason: reasonNoPlace}, nil},
		{`[{"op":"move","from":"/x","path":"/x/y"}]`, PatchError{Index: 0, Op: "move", Path: "/x", Reason: reasonIntoItself}, nil},
		{`[{"op":"s3cret","path":"/x"}]`, PatchError{Index: 0, Reason: reasonOp}, nil},
		{`7`, PatchError{Index: -1, Reason: reasonNoArray}, nil},
	} {
		_, err := ApplyPatch(MustParse(`{"k":"s3cret"}`), MustParse(c.patch))
		var e *PatchError
		if !errors.As(err, &e) || e.Index != c.want.Index || e.Op != c.want.Op || e.Path != c.want.Path || e.Reason != c.want.Reason {
			t.Errorf("%s: %+v", c.patch, err)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", c.patch, err)
		}
	}
	if _, err := ApplyPatch(nil, MustParse(`[]`)); err == nil {
		t.Error("no document accepted")
	}
	if _, err := ApplyPatch(MustParse(`1`), nil); err == nil {
		t.Error("no patch accepted")
	}
}

func TestValidatePatch(t *testing.T) {
	t.Parallel()
	for patch, reason := range map[string]string{
		`[]`: "",
		`[{"op":"add","path":"/x/-","value":null},{"op":"remove","path":"/~0~1"},{"op":"move","from":"","path":"/\ud800"}]`: "",
		`{}`:                                        reasonNoArray,
		`[[]]`:                                      reasonNoObject,
		`[{"op":"x"}]`:                              reasonOp,
		`[{"op":"remove","path":7}]`:                reasonPath,
		`[{"op":"remove","path":"x"}]`:              reasonPointer,
		`[{"op":"remove","path":"/x/~"}]`:           reasonPointer,
		`[{"op":"remove","path":""}]`:               reasonRemoveAll,
		`[{"op":"move","path":"/x"}]`:               reasonFrom,
		`[{"op":"move","path":"/x","from":"/~3"}]`:  reasonPointer,
		`[{"op":"test","path":"/x","val":1}]`:       reasonValue,
		`[{"op":"test","path":"/x","value":1},{}]`:  reasonOp,
		`[{"op":"add","path":"/x\/~","value":[1]}]`: reasonPointer,
	} {
		err := ValidatePatch(MustParse(patch))
		if got, _ := err.(*PatchError); reason == "" && err != nil || reason != "" && (got == nil || got.Reason != reason) {
			t.Errorf("%s: %v, want %q", patch, err, reason)
		}
	}
	if ValidatePatch(nil) == nil {
		t.Error("nil accepted")
	}
}

func TestPatchLimits(t *testing.T) {
	t.Parallel()
	var ops []string
	for range 60 { // doubles each time
		ops = append(ops, `{"op":"copy","from":"","path":"/-"}`)
	}
	bomb := MustParse("[" + strings.Join(ops, ",") + "]")
	for _, limit := range []int{0, 1 << 20} {
		_, err := ApplyPatchLimit(MustParse(`["x"]`), bomb, limit)
		if e, ok := err.(*PatchError); !ok || !errors.Is(err, ErrTooLarge) || e.Index > 30 {
			t.Errorf("bomb: %v", err)
		}
	}
	add := MustParse(`[{"op":"add","path":"/b","value":"xx"}]`) // {"a":1,"b":"xx"}
	if _, err := ApplyPatchLimit(MustParse(`{"a":1}`), add, 16); err != nil {
		t.Error(err)
	}
	if _, err := ApplyPatchLimit(MustParse(`{"a":1}`), add, 15); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	shrink := MustParse(`[{"op":"remove","path":"/b"},{"op":"remove","path":"/a"}]`)
	if _, err := ApplyPatchLimit(MustParse(`{"a":1,"b":"xx"}`), shrink, 5); err != nil {
		t.Error("a document above the limit may shrink:", err)
	}
	if _, err := ApplyPatchLimit(MustParse(`{"a":1,"b":"xx"}`), MustParse(`[]`), 5); !errors.Is(err, ErrTooLarge) {
		t.Error("a result above the limit was accepted")
	}

	deep := strings.Repeat("[", 499) + strings.Repeat("]", 499)
	for _, c := range []struct {
		patch string
		err   error
	}{
		{`[{"op":"add","path":"/a","value":` + deep + `}]`, nil},
		{`[{"op":"add","path":"/a","value":[]},{"op":"add","path":"/a/-","value":` + deep + `}]`, ErrTooDeep},
		{`[{"op":"add","path":"/a","value":` + deep + `},{"op":"copy","from":"","path":"/b"}]`, ErrTooDeep},
		{`[{"op":"add","path":"/a","value":` + deep + `},{"op":"replace","path":"/a","value":1},{"op":"copy","from":"","path":"/b"}]`, nil},
		{`[{"op":"add","path":"/a","value":{}},{"op":"add","path":"/a/x","value":` + strings.Repeat("[", 498) + strings.Repeat("]", 498) +
			`},{"op":"remove","path":"/a/x"},{"op":"add","path":"/b","value":[[[]]]},{"op":"move","from":"/a","path":"/b/0/0/-"}]`, nil},
	} {
		patch, err := ParseLimits([]byte(c.patch), Limits{Depth: 600})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ApplyPatch(MustParse(`{"c":1}`), patch)
		if !errors.Is(err, c.err) || c.err == nil && (err != nil || got.Depth() != MustParse(got.String()).Depth()) {
			t.Errorf("%.60s...: %v, want %v", c.patch, err, c.err)
		}
	}
}

// TestPatchDepth: the patch of a document at the limit is read with PatchDepth
// more, and not without.
func TestPatchDepth(t *testing.T) {
	t.Parallel()
	deep := MustParse(strings.Repeat("[", 500) + strings.Repeat("]", 500))
	patch := Diff(MustParse(`1`), deep)
	if patch.Depth() != DefaultLimits.Depth+PatchDepth {
		t.Errorf("depth %d", patch.Depth())
	}
	if _, err := Parse(patch.Bytes()); err == nil {
		t.Error("read under DefaultLimits")
	}
	again, err := ParseLimits(patch.Bytes(), Limits{Depth: DefaultLimits.Depth + PatchDepth})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ApplyPatch(MustParse(`1`), again); err != nil || !Identical(got, deep) {
		t.Error(err)
	}
	// One level more than a document may have, by every operation that sets a value.
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for op, levels := range map[string]int{
		`"op":"add","path":"/-"`:     499,
		`"op":"add","path":""`:       500,
		`"op":"replace","path":"/0"`: 499,
		`"op":"replace","path":""`:   500,
	} {
		for more, want := range []error{nil, ErrTooDeep} {
			patch, err := ParseLimits([]byte(`[{`+op+`,"value":`+nested(levels+more)+`}]`), Limits{Depth: 600})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ApplyPatch(MustParse(`[0]`), patch); !errors.Is(err, want) {
				t.Errorf("%s of %d levels: %v", op, levels+more, err)
			}
		}
	}
}

// TestPatchWide applies long patches to wide containers: an operation must not
// cost the width, except for the copy at the start.
func TestPatchWide(t *testing.T) {
	t.Parallel()
	const n = 50_000
	var doc, drop, queue, want []string
	for i := range n {
		doc = append(doc, fmt.Sprintf(`"k\u0020%d":[%d]`, i, i))
		if i%2 == 0 {
			drop = append(drop, fmt.Sprintf(`{"op":"remove","path":"/o/k %d"}`, i))
		} else {
			want = append(want, doc[i])
			drop = append(drop, fmt.Sprintf(`{"op":"test","path":"/o/k %d/0","value":%d}`, i, i))
		}
		queue = append(queue, fmt.Sprintf(`{"op":"add","path":"/q/-","value":%d},{"op":"remove","path":"/q/0"}`, i))
	}
	// Order counts: what is removed and added again goes to the end.
	drop = append(drop, `{"op":"add","path":"/o/k 100","value":0},{"op":"add","path":"/o/k 1","value":1}`)
	want[0] = `"k\u00201":1`
	want = append(want, `"k 100":0`)
	text := `{"o":{` + strings.Join(doc, ",") + `},"q":[` + strings.Repeat("0,", n) + `0]}`
	v := MustParse(text)
	began := time.Now()
	got, err := ApplyPatch(v, MustParse("["+strings.Join(drop, ",")+","+strings.Join(queue, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if o := got.Get("o").String(); o != "{"+strings.Join(want, ",")+"}" {
		t.Errorf("object wrong: %.200s", o)
	}
	if q := got.Get("q"); q.Len() != n+1 || q.Elem(1).Raw() != "0" || q.Elem(n).Raw() != "49999" {
		t.Errorf("array wrong")
	}
	if got.Size() != len(got.String()) || v.String() != text {
		t.Error("size wrong or document changed")
	}
}

func TestPatchWorkIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP 1: long")
	}
	v := MustParse(`[` + strings.Repeat("0,", 400_000) + `0]`)
	var ops []string
	for range 20_000 {
		ops = append(ops, `{"op":"add","path":"/0","value":0}`)
	}
	began := time.Now()
	_, err := ApplyPatch(v, MustParse("["+strings.Join(ops, ",")+"]"))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("8,000,000,000 shifts: %v", err)
	}
	t.Logf("refused after %v", time.Since(began))
}

func TestPropertyPatchMatchesText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := genValue(3).Draw(t, "doc")
		patch := genPatch(doc).Draw(t, "patch")
		text, patchText := doc.String(), patch.String()
		got, err := ApplyPatch(doc, patch)
		if doc.String() != text || patch.String() != patchText {
			t.Fatal("input changed")
		}
		want, ok := plainApply(MustParse(text), patch)
		if ok != (err == nil) {
			t.Fatalf("%s %s: %v, reference says %v", text, patchText, err, ok)
		}
		if err == nil {
			checkTree(t, got)
			if !Identical(respelled(got), respelled(want)) {
				t.Fatalf("%s %s: got %s, reference %s", text, patchText, got, want)
			}
			if ValidatePatch(patch) != nil {
				t.Fatal("applied but not valid")
			}
		}
	})
}

// TestPropertyPatchWide works where objects are edited through an index and
// removed members are holes for a while.
func TestPropertyPatchWide(t *testing.T) {
	t.Parallel()
	var members []Member
	for i := range indexFrom + 10 {
		members = append(members, Member{Key(fmt.Sprintf("k%d", i)), MustParse(`{"x":[1,2]}`)})
	}
	doc := NewObject(Member{Key("o"), NewObject(members...)}, Member{Key("p"), NewObject(members...)})
	path := rapid.Custom(func(t *rapid.T) string {
		top := rapid.SampledFrom([]string{"/o", "/o", "/o", "/p"}).Draw(t, "top")
		key := fmt.Sprintf("/k%d", rapid.IntRange(0, 20).Draw(t, "key"))
		return top + rapid.SampledFrom([]string{key, key, key, key + "/x/0", key + "/new", ""}).Draw(t, "rest")
	})
	rapid.Check(t, func(t *rapid.T) {
		var ops []string
		current, good := doc, "["
		for range rapid.IntRange(10, 60).Draw(t, "ops") {
			op := rapid.SampledFrom([]string{"add", "replace", "remove", "remove", "move", "copy", "test"}).Draw(t, "op")
			value, at := `"\u0061"`, path.Draw(t, "path")
			if p, ok := plainPointer(NewString(at)); op == "test" && ok {
				if v, ok := plainGet(current, p); ok {
					value = v.String()
				}
			}
			one := fmt.Sprintf(`{"op":%q,"path":%q,"from":%q,"value":%s}`, op, at, path.Draw(t, "from"), value)
			if next, ok := plainApply(current, MustParse("["+one+"]")); ok && next.Size() < 1<<16 {
				current, ops = next, append(ops, one)
			}
		}
		good += strings.Join(ops, ",") + "]"
		got, err := ApplyPatch(doc, MustParse(good))
		if err != nil || !Identical(respelled(got), respelled(current)) {
			t.Fatalf("%s: %v: got %s, reference %s", good, err, got, current)
		}
		checkTree(t, got)
	})
}

// checkTree compares all that a tree caches with a fresh parse.
func checkTree(t interface{ Fatalf(string, ...any) }, v *Value) {
	again, err := ParseString(v.String())
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	var check func(a, b *Value)
	check = func(a, b *Value) {
		if a.Size() != b.Size() || a.Depth() != b.Depth() || a.Len() != b.Len() || a.Kind() != b.Kind() || a.Raw() != b.Raw() {
			t.Fatalf("%s: size %d depth %d, parsed again %d %d", a, a.Size(), a.Depth(), b.Size(), b.Depth())
		}
		if a.kids == nil {
			return
		}
		if a.kids.editing.on || a.kids.index != nil || b.kids.escaped && !a.kids.escaped {
			t.Fatalf("%s: left open, or escapes overlooked", a)
		}
		for i := range a.Elems() {
			check(a.Elem(i), b.Elem(i))
		}
		for i, m := range a.Members() {
			if m.Key != b.Members()[i].Key {
				t.Fatalf("%s: key %s", a, m.Key)
			}
			check(m.Value, b.Members()[i].Value)
		}
	}
	check(v, again)
}
