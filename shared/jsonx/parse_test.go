package jsonx

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseKeepsTokens(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `1.0`, `1E6`, `1e+40`, `1E400`, `1e-999`, `1e9999`, `1E-9999`, `1e00009`,
		`10000000000000000999`, `1.000000000000000005`, `12345678901234567890123456789012345678901`,
		`""`, `"\u0000"`, `"\ud800"`, `"\udfff\ud800x"`, `"\ud83d\ude00"`, `"😀"`, `"\/"`, `"/"`, `"\u00E9é\u00e9"`, "\"\x7f\u2028\"",
		`[]`, `{}`, `[[],{}]`, `{"b":1,"a":2}`, `{"\u00e9":1,"e\u0301":2}`, `{"\ud800":1,"\ud801":2,"�":3}`, `{"":{"":[""]}}`,
		`{"a":1,"A":2}`, `[1,1.0,1e0]`,
	} {
		for _, text := range []string{s, " \t\r\n" + s + "\n", strings.NewReplacer("[", "[ ", ",", " ,\n", "}", "\t}").Replace(s)} {
			v, err := ParseString(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if got := string(v.Append(nil)); got != s {
				t.Errorf("%s: got %s", text, got)
			}
			if v.Size() != len(s) || v.String() != s {
				t.Errorf("%s: size %d, text %s", s, v.Size(), v.String())
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, path, reason string
		offset             int64
	}{
		{``, "", ReasonUnexpectedEnd, 0},
		{"  ", "", ReasonUnexpectedEnd, 2},
		{"\uFEFF1", "", ReasonBOM, 0},
		{`{"a":1} x`, "", ReasonTrailing, 8},
		{`1 2`, "", ReasonTrailing, 2},
		{`truex`, "", ReasonTrailing, 4},
		{`tru`, "", ReasonUnexpectedEnd, 3},
		{`trux`, "", ReasonUnexpected, 0},
		{`{"a":[1,NaN]}`, "/a/1", ReasonNotNumber, 8},
		{`{"a":[1,2,Infinity]}`, "/a/2", ReasonNotNumber, 10},
		{`[-Infinity]`, "/0", ReasonNotNumber, 2},
		{`[nan]`, "/0", ReasonUnexpected, 1},
		{`{"a":{"b":1e10000}}`, "/a/b", ReasonExponent, 12},
		{`[1e-10000]`, "/0", ReasonExponent, 4},
		{`[1e+99999999999999999999999]`, "/0", ReasonExponent, 4},
		{`[01]`, "/0", ReasonNumber, 2},
		{`[-]`, "/0", ReasonNumber, 2},
		{`[1.]`, "/0", ReasonNumber, 3},
		{`[1e]`, "/0", ReasonNumber, 3},
		{`[+1]`, "/0", ReasonUnexpected, 1},
		{`[.5]`, "/0", ReasonUnexpected, 1},
		{`[1,]`, "/1", ReasonUnexpected, 3},
		{`[1 2]`, "/1", ReasonUnexpected, 3},
		{`[1`, "/1", ReasonUnexpectedEnd, 2},
		{`[1}`, "/1", ReasonUnexpected, 2},
		{`[}`, "/0", ReasonUnexpected, 1},
		{`{"a":1]`, "", ReasonUnexpected, 6},
		{`{]`, "", ReasonUnexpected, 1},
		{`{"a":[{}}]`, "/a/1", ReasonUnexpected, 8},
		{`{"a":1,}`, "", ReasonUnexpected, 7},
		{`{"x":{"a" 1}}`, "/x/a", ReasonUnexpected, 10},
		{`{a:1}`, "", ReasonUnexpected, 1},
		{`{"a":1 "b":2}`, "", ReasonUnexpected, 7},
		{`{"a":1,"b":2,"a":3}`, "/a", ReasonDuplicateMember, 13},
		{`{"a":1,"\u0061":3}`, "/a", ReasonDuplicateMember, 7},
		{`{"x":[{"\ud83d\ude00":1,"😀":3}]}`, "/x/0/😀", ReasonDuplicateMember, 24},
		{`{"\ud800":1,"\uD800":3}`, `/\ud800`, ReasonDuplicateMember, 12},
		{`{"a/b~":[}`, "/a~1b~0/0", ReasonUnexpected, 9},
		{`{"\u0000\n\\":[}`, `/\u0000\u000a\u005c/0`, ReasonUnexpected, 15},
		{`{"\udb40\udc01":[}`, `/\udb40\udc01/0`, ReasonUnexpected, 17}, // a tag: beyond 16 bits, and it does not print
		{"[\"a\nb\"]", "/0", ReasonControl, 3},
		{"[\"a\x00b\"]", "/0", ReasonControl, 3},
		{`["\x"]`, "/0", ReasonEscape, 2},
		{`["\u12G4"]`, "/0", ReasonEscape, 2},
		{`["\u12`, "/0", ReasonUnexpectedEnd, 2},
		{`["abc`, "/0", ReasonUnexpectedEnd, 5},
		{"{\"k\":\"\xff\"}", "/k", ReasonUTF8, 6},
		{"[\"\xc0\x80\"]", "/0", ReasonUTF8, 2},         // overlong
		{"[\"\xed\xa0\x80\"]", "/0", ReasonUTF8, 2},     // a surrogate in UTF-8
		{"[\"\xf4\x90\x80\x80\"]", "/0", ReasonUTF8, 2}, // beyond U+10FFFF
		{"[\"\xe2\x82\"]", "/0", ReasonUTF8, 2},
		{"{\"\xff\":1}", "", ReasonUTF8, 2},
		{"\xff", "", ReasonUnexpected, 0},
		{"[1]\x00", "", ReasonTrailing, 3},
		{strings.Repeat("[", 501) + strings.Repeat("]", 501), strings.Repeat("/0", 126) + "/…", ReasonDepth, 500},
	} {
		v, err := Parse([]byte(c.text))
		var e *SyntaxError
		if !errors.As(err, &e) || v != nil {
			t.Errorf("%.60q accepted", c.text)
			continue
		}
		if e.Path != c.path || e.Reason != c.reason {
			t.Errorf("%.60q: path %q reason %q, want %q %q", c.text, e.Path, e.Reason, c.path, c.reason)
		}
		if e.Offset != c.offset {
			t.Errorf("%.60q: offset %d, want %d", c.text, e.Offset, c.offset)
		}
	}
}

func TestParseDepth(t *testing.T) {
	t.Parallel()
	nest := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, c := range []struct{ open, inner, end string }{{"[", "", "]"}, {`{"n":`, "1", "}"}, {`[{"n":`, "1", "}]"}} {
		per := strings.Count(c.open, "[") + strings.Count(c.open, "{")
		text := nest(c.open, c.inner, c.end, 500/per)
		v, err := ParseString(text)
		if err != nil || v.Depth() != 500 || v.String() != text {
			t.Errorf("%s x 500: %v", c.open, err)
		}
		for _, n := range []int{500/per + 1, 100_000} {
			began := time.Now()
			if _, err := ParseString(nest(c.open, c.inner, c.end, n)); err == nil || err.(*SyntaxError).Reason != ReasonDepth {
				t.Errorf("%s x %d: %v", c.open, n, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s x %d: refusal took %v", c.open, n, took)
			}
		}
	}
	if v, err := ParseLimits([]byte(nest("[", "", "]", 100_000)), Limits{Depth: 100_000}); err != nil || v.Depth() != 100_000 {
		t.Errorf("raised limit: %v", err)
	}
	if _, err := ParseLimits([]byte(`[[]]`), Limits{Depth: 1}); err == nil {
		t.Error("lowered limit not kept")
	}
	if _, err := ParseLimits([]byte(`1e20000`), Limits{Exponent: 20000}); err != nil {
		t.Error(err)
	}
}

func TestParseManyKeys(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteByte('{')
	for i := range 100_000 {
		b.WriteString(Quote("key " + NewInt(int64(i)).Raw()))
		b.WriteString(":1,")
	}
	began := time.Now()
	v, err := ParseString(b.String() + `"last":2}`)
	if err != nil || v.Len() != 100_001 || v.Get("key 99999").Raw() != "1" {
		t.Fatal(err)
	}
	_, err = ParseString(b.String() + `"key\u00205":2}`)
	if e := err.(*SyntaxError); e.Reason != ReasonDuplicateMember || e.Path != "/key 5" {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("100,000 keys took %v", took)
	}
	for n := range 40 { // a repeat is found on both sides of the change of method
		var b strings.Builder
		for i := range n {
			b.WriteString(Quote(NewInt(int64(i)).Raw()) + ":1,")
		}
		_, err := ParseString("{" + b.String() + `"x":1,"\u0078":2}`)
		if e, ok := err.(*SyntaxError); !ok || e.Path != "/x" {
			t.Errorf("%d members before: %v", n, err)
		}
	}
}

func TestSyntaxErrorHoldsNoContent(t *testing.T) {
	t.Parallel()
	_, err := ParseString(`{"k":["secret-value", "other-secret" "third"], "z": 1}`)
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "third") {
		t.Errorf("%v", err)
	}
	_, err = ParseString(`{"` + strings.Repeat("é", 4000) + `":[x]}`)
	if e := err.(*SyntaxError); len(e.Path) > 256 || !strings.HasSuffix(e.Path, "é…") {
		t.Errorf("path of %d bytes: %s", len(e.Path), e.Path)
	}
}

func TestParserIsReusedClean(t *testing.T) {
	t.Parallel()
	for range 100 {
		for _, bad := range []string{`{"a":[{"b":`, `[1,[2,{"x":1,"x":2`, `{"a":{"a":{"a":"\`} {
			if _, err := ParseString(bad); err == nil {
				t.Fatal("accepted")
			}
			if v, err := ParseString(`{"a":[1,{"b":2}]}`); err != nil || v.String() != `{"a":[1,{"b":2}]}` {
				t.Fatal(v, err)
			}
		}
	}
}

// TestLend: a lent value is what ParseLimits gives, also on chunks that other
// texts used before; what was taken from it stays; afterwards nothing of it is
// left in the chunks.
func TestLend(t *testing.T) {
	t.Parallel()
	var kept []string
	rapid.Check(t, func(t *rapid.T) {
		text := genValue(4).Draw(t, "value").String()
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			text = "[" + strings.TrimSuffix(strings.Repeat(text+",", 400), ",") + "]"
		}
		limits := Limits{Depth: rapid.SampledFrom([]int{0, 2}).Draw(t, "depth")}
		want, refused := ParseLimits([]byte(text), limits)
		var token string
		failed := errors.New("f")
		err := Lend([]byte(text), limits, func(v *Value) error {
			if v.String() != want.String() || !Equal(v, want) || v.Size() != want.Size() || v.Depth() != want.Depth() {
				t.Fatalf("%s was lent as %s", want, v)
			}
			checkTree(t, v)
			inner := Lend([]byte(`{"other":[1,2,3]}`), Limits{}, func(o *Value) error { return nil })
			if inner != nil || v.String() != want.String() {
				t.Fatalf("lending within changed %s to %s: %v", want, v, inner)
			}
			for w := v; w.Len() > 0; {
				if w.Kind() == Array {
					w = w.Elem(0)
				} else {
					token, w = w.Members()[0].Key, w.Members()[0].Value
				}
			}
			return failed
		})
		if refused != nil {
			if err == nil || err.Error() != refused.Error() {
				t.Fatalf("refused with %v, not %v", err, refused)
			}
			return
		}
		if err != failed {
			t.Fatalf("f's error came back as %v", err)
		}
		kept = append(kept, token)
		if i := len(kept) - 2; i >= 0 && kept[i] != "" && !slices.Contains(keys, kept[i]) {
			t.Fatalf("a kept key became %s", kept[i])
		}
	})
	c := parsers.Get().(*parser).spare
	for _, v := range c.values {
		if v.raw != "" || v.kids != nil {
			t.Fatal("a used value is left")
		}
	}
	for _, m := range c.members {
		if m.Key != "" || m.Value != nil {
			t.Fatal("a used member is left")
		}
	}
}
