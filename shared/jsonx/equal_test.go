package jsonx

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b                    string
		identical, equal, value bool
	}{
		{`1`, `1`, true, true, true},
		{`1`, `1.0`, false, false, true},
		{`1`, `10e-1`, false, false, true},
		{`100`, `1E+2`, false, false, true},
		{`0`, `-0`, false, false, true},
		{`0`, `0e9`, false, false, true},
		{`-0.0`, `0e-9`, false, false, true},
		{`1`, `-1`, false, false, false},
		{`1e9999`, `10e9998`, false, false, true},
		{`1e9999`, `1e9998`, false, false, false},
		{`1e400`, `1e401`, false, false, false},
		{`1e-999`, `0`, false, false, false},
		{`9007199254740993`, `9007199254740992`, false, false, false},
		{`9007199254740993`, `9007199254740993.0`, false, false, true},
		{`0.10`, `1e-1`, false, false, true},
		{`123.456e2`, `12345.6`, false, false, true},
		{`"a"`, `"\u0061"`, false, true, true},
		{`"\/"`, `"/"`, false, true, true},
		{`"😀"`, `"\uD83D\ude00"`, false, true, true},
		{`"\ud800"`, `"\uD800"`, false, true, true},
		{`"\ud800"`, `"\ud801"`, false, false, false},
		{`"\ud800"`, `"\ufffd"`, false, false, false},
		{`"\ud800x\udc00"`, `"\ud800\udc00"`, false, false, false},
		{"\"\u00e9\"", "\"e\u0301\"", false, false, false},
		{`"1"`, `1`, false, false, false},
		{`null`, `false`, false, false, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, false, true, true},
		{`{"a":1,"b":2}`, `{"b":2,"\u0061":1.0}`, false, false, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false, false, false},
		{`{"a":null}`, `{"b":null}`, false, false, false},
		{`[1,2]`, `[2,1]`, false, false, false},
		{`[]`, `{}`, false, false, false},
		{`[[]]`, `[{}]`, false, false, false},
		{`[1,[2]]`, `[1,[2]]`, true, true, true},
	} {
		for _, p := range [][2]*Value{{MustParse(c.a), MustParse(c.b)}, {MustParse(c.b), MustParse(c.a)}} {
			if Identical(p[0], p[1]) != c.identical || Equal(p[0], p[1]) != c.equal || EqualValue(p[0], p[1]) != c.value {
				t.Errorf("%s %s: %v %v %v", p[0], p[1], Identical(p[0], p[1]), Equal(p[0], p[1]), EqualValue(p[0], p[1]))
			}
			same := string(AppendCanonical(nil, p[0])) == string(AppendCanonical(nil, p[1]))
			if same != c.value {
				t.Errorf("%s %s: canonical forms %s %s", p[0], p[1], AppendCanonical(nil, p[0]), AppendCanonical(nil, p[1]))
			}
		}
	}
	if !Equal(nil, nil) || Equal(nil, MustParse(`null`)) || Identical(MustParse(`{}`), nil) || !Identical(nil, nil) {
		t.Error("nil")
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, digest, canonical string }{
		{`{"b":1.0,"a":"\u0061"}`, `{"a":"\u0061","b":1.0}`, `{"a":"a","b":1}`},
		{`{"\u0062":100,"a":[{"d":-0.50,"c":null}]}`, `{"a":[{"c":null,"d":-0.50}],"\u0062":100}`, `{"a":[{"c":null,"d":-5e-1}],"b":1e2}`},
		{`[1E400,0.0001e-9999,-0,1234567890123456789012.0]`, `[1E400,0.0001e-9999,-0,1234567890123456789012.0]`, `[1e400,1e-10003,0,1234567890123456789012]`},
		{`"\u000A\u001F\/\ud800\uDFFF\u00e9\u007f\""`, `"\u000A\u001F\/\ud800\uDFFF\u00e9\u007f\""`, "\"\\n\\u001f/\U000103ffé\x7f\\\"\""},
		{`"\uDC00\uD800"`, `"\uDC00\uD800"`, `"\udc00\ud800"`},
		// U+E000 comes after every surrogate, so after U+10000, although its UTF-8 comes before.
		{`{"\ue000":1,"𐀀":2,"\ud800":3,"z":4,"":5,"\ud800a":6,"\ud83d":7,"\udbff\udfff":8,"\udc00":9}`,
			`{"":5,"z":4,"\ud800":3,"\ud800a":6,"𐀀":2,"\ud83d":7,"\udbff\udfff":8,"\udc00":9,"\ue000":1}`,
			`{"":5,"z":4,"\ud800":3,"\ud800a":6,"𐀀":2,"\ud83d":7,"` + "\U0010ffff" + `":8,"\udc00":9,"` + "\ue000" + `":1}`},
		// A lone high surrogate is followed by any unit, the one of a pair by a low surrogate.
		{`{"\ud800\ue000":1,"𐀀":2,"\ud800z":3}`, `{"\ud800z":3,"𐀀":2,"\ud800\ue000":1}`, `{"\ud800z":3,"𐀀":2,"\ud800` + "\ue000" + `":1}`},
		{`true`, `true`, `true`},
	} {
		v := MustParse(c.text)
		if got := string(AppendDigestForm([]byte("x"), v)); got != "x"+c.digest {
			t.Errorf("%s: digest form %s, want %s", c.text, got, c.digest)
		}
		if got := string(AppendCanonical(nil, v)); got != c.canonical {
			t.Errorf("%s: canonical %s, want %s", c.text, got, c.canonical)
		}
		if v.String() != c.text {
			t.Errorf("%s changed", c.text)
		}
	}
}

func TestPropertyForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := genValue(3).Draw(t, "a")
		b := genNear(a, 2).Draw(t, "b")
		canonA, canonB := string(AppendCanonical(nil, a)), string(AppendCanonical(nil, b))
		if (canonA == canonB) != EqualValue(a, b) {
			t.Fatalf("%s %s: EqualValue %v, canonical %s %s", a, b, EqualValue(a, b), canonA, canonB)
		}
		again, err := ParseLimits([]byte(canonA), Limits{Exponent: 20_000})
		if err != nil || !EqualValue(again, a) || string(AppendCanonical(nil, again)) != canonA {
			t.Fatalf("%s: canonical %s: %v", a, canonA, err)
		}
		other := shuffled(t, a)
		if string(AppendDigestForm(nil, a)) != string(AppendDigestForm(nil, other)) || !Equal(a, other) {
			t.Fatalf("%s %s: digest forms differ", a, other)
		}
		form := MustParse(string(AppendDigestForm(nil, a)))
		if !Equal(a, form) || form.Size() != a.Size() {
			t.Fatalf("%s: digest form %s", a, form)
		}
		if formB := string(AppendDigestForm(nil, b)); formB == form.String() && !Equal(a, b) {
			t.Fatalf("%s %s: same digest form", a, b)
		}
		if Identical(a, b) != (a.String() == b.String()) {
			t.Fatalf("%s %s: Identical %v", a, b, Identical(a, b))
		}
	})
}

func TestCompareUTF16(t *testing.T) {
	t.Parallel()
	ascending := []string{`""`, `"a"`, `"a\u0000"`, `"ab"`, `"é"`, `"\ud7ff"`, `"\ud800"`, `"\ud800a"`, `"\ud800\ud800"`, `"𐀀"`, `"𐀀a"`, `"\ud800\ue000"`, `"\ud83d"`, `"😀"`, `"\udc00"`, `"\ue000"`, `"\uffff"`}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := compareUTF16(decode(a), decode(b)); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s %s: %d", a, b, got)
			}
		}
	}
}

// toUnits decodes a string token by the book.
func toUnits(raw string) (units []uint16) {
	s := raw[1 : len(raw)-1]
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			r := []rune(s[i:])[0]
			units = append(units, utf16.Encode([]rune{r})...)
			i += len(string(r))
			continue
		}
		if s[i+1] == 'u' {
			var u uint16
			fmt.Sscanf(s[i+2:i+6], "%04x", &u)
			units = append(units, u)
			i += 6
			continue
		}
		units = append(units, uint16(strings.NewReplacer("b", "\b", "f", "\f", "n", "\n", "r", "\r", "t", "\t").Replace(s[i+1 : i+2])[0]))
		i += 2
	}
	return units
}

func TestPropertyText(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{`a`, `é`, `😀`, "\ue000", "\ud7ff", `\u0061`, `\ud800`, `\udbff`, `\uDC00`, `\udfff`, `\n`, `\/`, `\\`, `\"`, `\u0000`, `\ufffd`, "\x7f"})
	text := rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") + `"`
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		unitsA, unitsB := toUnits(a), toUnits(b)
		got := compareUTF16(decode(a), decode(b))
		if want := slices.Compare(unitsA, unitsB); (got < 0) != (want < 0) || (got > 0) != (want > 0) {
			t.Fatalf("%s %s: order %d, want %d", a, b, got, want)
		}
		if again := toUnits(quote(decode(a))); !slices.Equal(again, unitsA) {
			t.Fatalf("%s: quoted again %s", a, quote(decode(a)))
		}
		s, ok := MustParse(a).Text()
		lone := slices.Contains(utf16.Decode(unitsA), 0xFFFD) && strings.Count(string(utf16.Decode(unitsA)), "\ufffd") != strings.Count(a, `\ufffd`)
		if ok == lone || ok && s != string(utf16.Decode(unitsA)) {
			t.Fatalf("%s: text %q %v", a, s, ok)
		}
	})
}
