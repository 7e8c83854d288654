package memory

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cairnstate/cairn/shared/store"
)

// EncodeItem gives an item in DynamoDB's JSON form: {"S": ...} and so on per
// attribute, ready for json.Marshal.
func EncodeItem(it store.Item) map[string]any {
	out := make(map[string]any, len(it))
	for name, v := range it {
		out[name] = encodeValue(v)
	}
	return out
}

// appendItem writes the same as bytes, the attributes in any order.
func appendItem(b []byte, it store.Item) []byte {
	b = append(b, '{')
	first := true
	for name, v := range it {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, name), ':')
		switch v.Kind {
		case store.KindS:
			b = append(appendString(append(b, `{"S":`...), v.S), '}')
		case store.KindN:
			b = append(appendString(append(b, `{"N":`...), v.S), '}')
		case store.KindB:
			b = base64.StdEncoding.AppendEncode(append(b, `{"B":"`...), v.B)
			b = append(b, `"}`...)
		default:
			b = appendJSON(b, encodeValue(v))
		}
	}
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendJSON(b, s)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}

func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // an item's values are strings, bytes, lists and maps
	}
	return append(b, text...)
}

func encodeValue(v store.Value) any {
	switch v.Kind {
	case store.KindS:
		return map[string]string{"S": v.S}
	case store.KindN:
		return map[string]string{"N": v.S}
	case store.KindB:
		return map[string][]byte{"B": append([]byte{}, v.B...)}
	case store.KindBOOL:
		return map[string]bool{"BOOL": v.Bool}
	case store.KindSS:
		return map[string][]string{"SS": v.SS}
	case store.KindNS:
		return map[string][]string{"NS": v.SS}
	case store.KindBS:
		raw := make([][]byte, len(v.SS))
		for i, s := range v.SS {
			raw[i] = []byte(s)
		}
		return map[string][][]byte{"BS": raw}
	case store.KindL:
		list := make([]any, len(v.L))
		for i, e := range v.L {
			list[i] = encodeValue(e)
		}
		return map[string]any{"L": list}
	case store.KindM:
		return map[string]any{"M": EncodeItem(v.M)}
	}
	return map[string]bool{"NULL": true}
}

// DecodeItem reads an item in DynamoDB's JSON form. The key attributes may also
// be plain strings. The error names the attribute, never its value.
func DecodeItem(raw []byte) (store.Item, error) {
	var attrs map[string]json.RawMessage
	if err := decode(raw, &attrs); err != nil || attrs == nil {
		return nil, errors.New("memory: an item is no JSON object")
	}
	it := store.Item{}
	for name, a := range attrs {
		if s := ""; (name == store.AttrPK || name == store.AttrSK) && json.Unmarshal(a, &s) == nil {
			it[name] = store.S(s)
			continue
		}
		v, err := decodeValue(a, 1)
		if err != nil {
			return nil, fmt.Errorf("memory: attribute %q: %w", name, err)
		}
		it[name] = v
	}
	it, problem := keep(it)
	if problem != "" {
		return nil, fmt.Errorf("memory: an item's %s is not allowed", problem)
	}
	return it, nil
}

// decode reads exactly one JSON value.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

func decodeValue(raw []byte, depth int) (v store.Value, err error) {
	var typed map[string]json.RawMessage
	if err := decode(raw, &typed); err != nil || len(typed) != 1 || depth > maxNesting {
		return v, errors.New("not one typed value")
	}
	for kind, a := range typed {
		if string(a) == "null" {
			return v, fmt.Errorf("type %q without a value", kind)
		}
		switch kind {
		case "S":
			v.Kind, err = store.KindS, decode(a, &v.S)
		case "N":
			v.Kind, err = store.KindN, decode(a, &v.S)
		case "B":
			v.Kind, err = store.KindB, decode(a, &v.B)
		case "BOOL":
			v.Kind, err = store.KindBOOL, decode(a, &v.Bool)
		case "NULL":
			v.Kind = store.KindNULL
		case "SS":
			v.Kind, err = store.KindSS, decode(a, &v.SS)
		case "NS":
			v.Kind, err = store.KindNS, decode(a, &v.SS)
		case "BS":
			var raw [][]byte
			v.Kind, err = store.KindBS, decode(a, &raw)
			for _, b := range raw {
				v.SS = append(v.SS, string(b))
			}
		case "L":
			v.Kind = store.KindL
			v.L, err = decodeList(a, depth)
		case "M":
			v.Kind = store.KindM
			v.M, err = decodeMap(a, depth)
		default:
			return v, fmt.Errorf("unknown type %q", kind)
		}
		if err != nil {
			return v, fmt.Errorf("not of type %s", kind)
		}
	}
	return v, nil
}

func decodeList(raw []byte, depth int) (list []store.Value, err error) {
	var elements []json.RawMessage
	if err := decode(raw, &elements); err != nil {
		return nil, err
	}
	for _, e := range elements {
		v, err := decodeValue(e, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func decodeMap(raw []byte, depth int) (map[string]store.Value, error) {
	var elements map[string]json.RawMessage
	if err := decode(raw, &elements); err != nil {
		return nil, err
	}
	m := make(map[string]store.Value, len(elements))
	for name, e := range elements {
		v, err := decodeValue(e, depth+1)
		if err != nil {
			return nil, err
		}
		m[name] = v
	}
	return m, nil
}
