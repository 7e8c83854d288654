package jsonx

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var seeds = []string{
	`null`, `[1,1.0,1E400,-0,1e-9999]`, `{"a":{"b":[1,2,{"c":"\u0000\ud800"}]},"\u0061b":"é😀"}`, `{"a":1,"\u0061":2}`, `["\ud83d\ude00","\udc00\ud800"]`,
	`[[[[[[[[]]]]]]]]`, ` { "a" : [ ] } `, `{"a~":1,"/":2,"~1":{"":[]}}`, `[1e10000]`, `[NaN]`, "\uFEFF[]", "[\"\xed\xa0\x80\"]", `[01]`, `["\x"]`, `{"a":1,}`,
	`[1,2,3,4,5]`, `[0,1,2,4,5,6]`, `{"b":1,"a":2}`, `{"a":2,"b":1}`,
}

// FuzzParse compares what is accepted with jsontext, where the two are meant
// to agree, and checks that tokens are kept.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		oracle := jsontext.Value(data).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) && utf8.Valid(data)
		if e, ok := err.(*SyntaxError); ok {
			if oracle && e.Reason != ReasonDepth && e.Reason != ReasonExponent && e.Reason != ReasonDuplicateMember {
				t.Fatalf("refused: %v", err)
			}
			if e.Reason == ReasonDuplicateMember && !bytes.Contains(data, []byte(`\u`)) &&
				jsontext.Value(data).IsValid(jsontext.AllowInvalidUTF8(true)) {
				t.Fatalf("no key is repeated: %v", err)
			}
			if e.Offset < 0 || e.Offset > int64(len(data)) || len(e.Path) > 256 || !utf8.ValidString(e.Path) || v != nil {
				t.Fatalf("%+v", e)
			}
			return
		}
		if !oracle {
			t.Fatalf("accepted: %q", data)
		}
		// Two different lone surrogates are one name to jsontext.
		if !bytes.Contains(data, []byte(`\u`)) && !jsontext.Value(data).IsValid() {
			t.Fatalf("repeated key accepted: %q", data)
		}
		if v.String() != compact(data) {
			t.Fatalf("%q became %q", data, v)
		}
		checkTree(t, v)
	})
}

// FuzzPatch applies any patch to any document and compares with the reference.
func FuzzPatch(f *testing.F) {
	for _, patch := range []string{
		`[{"op":"add","path":"/a/b/-","value":[1]},{"op":"copy","from":"/a","path":"/x"},{"op":"move","from":"/x/b","path":"/a/b/0"}]`,
		`[{"op":"test","path":"","value":{}},{"op":"remove","path":"/0"}]`,
		`[{"op":"replace","path":"\u002fa~1\ud800","value":1e5}]`,
	} {
		for _, s := range seeds {
			f.Add(s, patch)
		}
	}
	f.Fuzz(func(t *testing.T, docText, patchText string) {
		doc, err := ParseString(docText)
		patch, err2 := ParseString(patchText)
		if err != nil || err2 != nil || len(docText) > 5_000 {
			return
		}
		valid := ValidatePatch(patch) == nil
		got, err := ApplyPatchLimit(doc, patch, 1<<16)
		if doc.String() != compact([]byte(docText)) || patch.String() != compact([]byte(patchText)) {
			t.Fatal("input changed")
		}
		if err != nil {
			if e := err.(*PatchError); e.Unwrap() != nil && e.Unwrap() != ErrTestFailed {
				return
			}
		} else {
			checkTree(t, got)
		}
		if !valid {
			if err == nil && !strings.Contains(patchText, "~") {
				t.Fatalf("%s applied but not valid", patch)
			}
			return
		}
		want, ok := plainApply(doc, patch)
		if ok != (err == nil) {
			t.Fatalf("%s %s: %v, reference says %v", doc, patch, err, ok)
		}
		if ok && !Identical(respelled(got), respelled(want)) {
			t.Fatalf("%s %s: got %s, reference %s", doc, patch, got, want)
		}
	})
}

// FuzzDiff goes from any document to any other and back.
func FuzzDiff(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, seeds[(i+1)%len(seeds)])
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		from, err := ParseString(a)
		to, err2 := ParseString(b)
		if err != nil || err2 != nil {
			return
		}
		checkDiff(t, from, to)
		checkDiff(t, to, from)
		both := NewArray(from, to)
		if both.Depth() < DefaultLimits.Depth {
			checkDiff(t, both, NewArray(to, from, to))
		}
		got, err := MergePatch(from, to)
		if err != nil {
			t.Fatal(err)
		}
		checkTree(t, got)
	})
}

// FuzzCanonical checks that canonical forms are equal exactly for EqualValue
// values, and what the two forms keep.
func FuzzCanonical(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, seeds[(i+1)%len(seeds)])
		f.Add(s, s)
	}
	f.Add(`{"a":1.0}`, `{"\u0061":10e-1}`)
	f.Fuzz(func(t *testing.T, textA, textB string) {
		a, err := ParseString(textA)
		b, err2 := ParseString(textB)
		if err != nil || err2 != nil {
			return
		}
		canonA, canonB := AppendCanonical(nil, a), AppendCanonical(nil, b)
		if bytes.Equal(canonA, canonB) != EqualValue(a, b) || EqualValue(a, b) != EqualValue(b, a) {
			t.Fatalf("%s %s: EqualValue %v, canonical %s %s", a, b, EqualValue(a, b), canonA, canonB)
		}
		again, err := ParseLimits(canonA, Limits{Exponent: 1 << 20})
		if err != nil || !EqualValue(again, a) || !bytes.Equal(AppendCanonical(nil, again), canonA) {
			t.Fatalf("%s: canonical %s: %v", a, canonA, err)
		}
		digestA, digestB := AppendDigestForm(nil, a), AppendDigestForm(nil, b)
		if len(digestA) != a.Size() || !Equal(a, MustParse(string(digestA))) {
			t.Fatalf("%s: digest form %s", a, digestA)
		}
		if bytes.Equal(digestA, digestB) && !Equal(a, b) || Equal(a, b) && !EqualValue(a, b) || Identical(a, b) && !Equal(a, b) {
			t.Fatalf("%s %s: forms and comparisons disagree", a, b)
		}
	})
}
