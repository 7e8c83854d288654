package fieldcases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// raw goes into a request as it is, valid JSON or not.
type raw string

// object is a JSON object of a request.
type object = map[string]any

// encode writes a request.
func encode(v any) []byte {
	var b strings.Builder
	encodeTo(&b, v)
	return []byte(b.String())
}

func encodeTo(b *strings.Builder, v any) {
	switch v := v.(type) {
	case raw:
		b.WriteString(string(v))
	case number:
		b.WriteString(string(v))
	case object:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, name)
			b.WriteByte(':')
			encodeTo(b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, x)
		}
		b.WriteByte(']')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
}

// number is a number's token: 1 and 1.0 are two.
type number string

// exactly reads JSON text: numbers by token, strings by code unit (a lone
// surrogate keeps its own three bytes), objects without order. The same key
// twice and what is no JSON fail the test. It shares no code with the product.
func exactly(t testing.TB, text []byte) any {
	t.Helper()
	if !utf8.Valid(text) || !json.Valid(text) {
		t.Fatalf("no JSON: %.200q", text)
	}
	r := &reader{text: text}
	v := r.value()
	if r.err != nil {
		t.Fatalf("%v: %.200q", r.err, text)
	}
	return v
}

// reader walks JSON text that is known to be valid.
type reader struct {
	text []byte
	at   int
	err  error
}

func (r *reader) skip() byte {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *reader) value() any {
	switch c := r.skip(); c {
	case '{':
		r.at++
		out := object{}
		for r.skip() != '}' {
			if r.text[r.at] == ',' {
				r.at++
				continue
			}
			name := r.str()
			r.skip()
			r.at++ // :
			if _, twice := out[name]; twice {
				r.err = fmt.Errorf("the key %q twice in one object", name)
			}
			out[name] = r.value()
		}
		r.at++
		return out
	case '[':
		r.at++
		out := []any{}
		for r.skip() != ']' {
			if r.text[r.at] == ',' {
				r.at++
				continue
			}
			out = append(out, r.value())
		}
		r.at++
		return out
	case '"':
		return r.str()
	default:
		from := r.at
		for r.at < len(r.text) && strings.IndexByte(" \t\r\n,]}", r.text[r.at]) < 0 {
			r.at++
		}
		switch word := string(r.text[from:r.at]); word {
		case "true", "false":
			return word == "true"
		case "null":
			return nil
		default:
			return number(word)
		}
	}
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (r *reader) str() string {
	r.skip()
	r.at++
	if end := bytes.IndexByte(r.text[r.at:], '"'); bytes.IndexByte(r.text[r.at:r.at+end], '\\') < 0 { // no escapes
		plain := string(r.text[r.at : r.at+end])
		r.at += end + 1
		return plain
	}
	var out []byte
	for r.text[r.at] != '"' {
		c := r.text[r.at]
		if c != '\\' {
			out = append(out, c)
			r.at++
			continue
		}
		if e := r.text[r.at+1]; e != 'u' {
			out = append(out, escapes[e])
			r.at += 2
			continue
		}
		u := r.unit(r.at)
		r.at += 6
		if u >= 0xd800 && u < 0xdc00 && r.text[r.at] == '\\' && r.text[r.at+1] == 'u' {
			if low := r.unit(r.at); low >= 0xdc00 && low < 0xe000 {
				u = 0x10000 + (u-0xd800)<<10 + (low - 0xdc00)
				r.at += 6
			}
		}
		if u >= 0xd800 && u < 0xe000 {
			out = append(out, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0xbf, 0x80|byte(u)&0xbf)
			continue
		}
		out = utf8.AppendRune(out, rune(u))
	}
	r.at++
	return string(out)
}

func (r *reader) unit(at int) uint64 {
	u, _ := strconv.ParseUint(string(r.text[at+2:at+6]), 16, 32)
	return u
}

func TestReaderKeepsTokens(t *testing.T) {
	t.Parallel()
	got := exactly(t, []byte(`{"a":[1, 1.0,1E6 ,-0],"\u00e9":"\ud83d\ude00","e":"\ud83d x","n":null,"b":true,"z":"\u0000\\u0000"}`))
	want := object{"a": []any{number("1"), number("1.0"), number("1E6"), number("-0")}, "é": "😀", "e": "\xed\xa0\xbd x", "n": nil, "b": true, "z": "\x00\\u0000"}
	equal(t, got, any(want), "parsed")
}
