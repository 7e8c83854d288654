package jsonx

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	v := MustParse(`{"a":[1,"x",true,null],"\u0062":{"c":false},"\ud800":1,"a\\nb":2,"a\nb":3}`)
	if v.Kind() != Object || v.Len() != 5 || v.Depth() != 2 {
		t.Error(v.Kind(), v.Len(), v.Depth())
	}
	a := v.Get("a")
	if a.Kind() != Array || a.Len() != 4 || a.Elem(1).Raw() != `"x"` || a.Elem(4) != nil || a.Elem(-1) != nil || len(a.Elems()) != 4 || a.Members() != nil {
		t.Error(a)
	}
	if v.Get("b").Get("c").Kind() != False || v.Get("\\u0062") != nil || v.Get("x") != nil || v.Get("x").Get("y") != nil || a.Get("0") != nil {
		t.Error("Get")
	}
	if v.Get(`a\nb`).Raw() != "2" || v.Get("a\nb").Raw() != "3" {
		t.Error("Get with a backslash")
	}
	plain := MustParse(`{"a":1}`)
	if plain.Get("a") == nil || plain.Get(`"a"`) != nil || plain.Get("") != nil {
		t.Error("Get in an object without escapes")
	}
	if s, ok := a.Elem(1).Text(); !ok || s != "x" {
		t.Error(s, ok)
	}
	if s, ok := MustParse(`"\u0000\ud83d\ude00"`).Text(); !ok || s != "\x00😀" {
		t.Error(s, ok)
	}
	for _, text := range []string{`"\ud800"`, `1`, `null`, `[]`} {
		if s, ok := MustParse(text).Text(); ok || s != "" {
			t.Error(text, s)
		}
	}
	if name, ok := v.Members()[1].Name(); !ok || name != "b" {
		t.Error(name)
	}
	if _, ok := v.Members()[2].Name(); ok {
		t.Error("lone surrogate as a Go string")
	}
	if b, ok := a.Elem(2).Bool(); !b || !ok {
		t.Error("Bool")
	}
	if _, ok := a.Elem(3).Bool(); ok {
		t.Error("null is no Bool")
	}
}

func TestIsInt64(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{`0`: 0, `-0`: 0, `9223372036854775807`: math.MaxInt64, `-9223372036854775808`: math.MinInt64} {
		if n, ok := MustParse(text).IsInt64(); !ok || n != want {
			t.Error(text, n, ok)
		}
	}
	for _, text := range []string{`9223372036854775808`, `1.0`, `1e1`, `"1"`, `null`, `[]`} {
		if n, ok := MustParse(text).IsInt64(); ok {
			t.Error(text, n)
		}
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	for _, v := range []*Value{nil, {}} {
		if v.Kind() != Invalid || v.Size() != 0 || v.Depth() != 0 || v.String() != "" || v.Len() != 0 || v.Get("a") != nil || v.Elem(0) != nil || v.Raw() != "" || len(v.Bytes()) != 0 {
			t.Error("a nil value is not empty")
		}
		if _, ok := v.Text(); ok {
			t.Error("Text")
		}
		if data, err := v.MarshalJSON(); err != nil || string(data) != "null" {
			t.Error(string(data), err)
		}
		if len(AppendCanonical(nil, v)) != 0 || len(AppendDigestForm(nil, v)) != 0 {
			t.Error("forms")
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    *Value
		want string
	}{
		{NewString("a\"\\/<>&\n\x00\u2028é😀"), "\"a\\\"\\\\/<>&\\n\\u0000\u2028é😀\""},
		{NewString("\xff\xfeé\xed\xa0\x80"), "\"\ufffdé\ufffd\""},
		{NewInt(math.MinInt64), `-9223372036854775808`},
		{NewBool(true), `true`},
		{NewBool(false), `false`},
		{NewNull(), `null`},
		{NewArray(), `[]`},
		{NewArray(NewInt(1), nil, NewArray(NewInt(2))), `[1,null,[2]]`},
		{NewObject(), `{}`},
		{NewObject(Member{Key("b\n"), NewInt(1)}, Member{`"\u0061"`, NewInt(2)}, Member{Key("gone"), nil}, Member{`"a"`, NewInt(3)}), `{"b\n":1,"\u0061":3}`},
	} {
		if c.v.String() != c.want || c.v.Size() != len(c.want) {
			t.Errorf("%s, want %s", c.v, c.want)
		}
		checkTree(t, c.v)
	}
	for _, key := range []string{``, `a`, `"`, `"a`, `"a"b`, `"a"b"`, `"\x"`, "\"\n\"", `1`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("key %q accepted", key)
				}
			}()
			NewObject(Member{key, NewInt(1)})
		}()
	}
	elems := []*Value{NewInt(1)}
	v := NewArray(elems...)
	if elems[0] = NewInt(2); v.String() != `[1]` {
		t.Error("NewArray keeps the caller's slice")
	}
}

func TestEncodingJSON(t *testing.T) {
	t.Parallel()
	var record struct {
		State *Value `json:"state"`
		Other *Value `json:"other,omitempty"`
		Plain Value  `json:"plain"`
	}
	text := `{"state":{"n":1.0,"s":"\ud800<","b":[ ]},"plain":1E400}`
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatal(err)
	}
	if record.State.String() != `{"n":1.0,"s":"\ud800<","b":[]}` || record.Other != nil || record.Plain.String() != `1E400` {
		t.Errorf("%+v", record)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&record); err != nil || b.String() != compact([]byte(text))+"\n" {
		t.Errorf("%v %s", err, b.String())
	}
	if err := json.Unmarshal([]byte(`{"state":{"a":1,"a":2}}`), &record); err == nil {
		t.Error("same key twice accepted")
	}
}

func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		// RFC 7396, appendix A
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		// ours
		{`{"\u0061":1.0,"b":2}`, `{"a":1,"c":[null,{"x":null}]}`, `{"\u0061":1,"b":2,"c":[null,{"x":null}]}`},
		{`{"\ud800":1,"\ud801":2}`, `{"\uD800":null}`, `{"\ud801":2}`},
		{`{"a":1,"b":2}`, `{"b":null,"c":{"d":null,"e":1,"\u0066":{"g":null}},"a":1}`, `{"a":1,"c":{"e":1,"\u0066":{}}}`},
		{`1`, `{}`, `{}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
	} {
		doc, merge := MustParse(c[0]), MustParse(c[1])
		got, err := MergePatch(doc, merge)
		if err != nil || got.String() != c[2] || got.Size() != len(c[2]) || doc.String() != c[0] || merge.String() != c[1] {
			t.Errorf("%s %s: %v %s, want %s", c[0], c[1], err, got, c[2])
			continue
		}
		checkTree(t, got)
	}
	doc := MustParse(`{"a":{"b":1}}`)
	if got, _ := MergePatch(doc, MustParse(`{"x":null,"a":{}}`)); got != doc {
		t.Error("a merge that changes nothing makes a new document")
	}
	for _, p := range [][2]*Value{{nil, doc}, {doc, nil}} {
		if _, err := MergePatch(p[0], p[1]); err == nil {
			t.Error("nil accepted")
		}
	}
}
