package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// EncodeReply gives the text of a reply: agent data token for token, no HTML
// escapes. TooLarge {limit} beyond what a reply may have.
func EncodeReply(reply any) ([]byte, error) {
	v := tree(reflect.ValueOf(reply), false)
	if v.Size() > execution.MaxReplyBytes {
		return nil, execution.Errorf(execution.TooLarge, "the reply is too large").With("limit", execution.MaxReplyBytes)
	}
	return v.Bytes(), nil
}

// EncodeRequest gives the text of a request, its action included, as a client
// sends it. req is a pointer to one of the request types, anything else panics.
// TooLarge {limit} beyond what a request may have.
func EncodeRequest(req any) ([]byte, error) {
	v := requestTree(ActionOf(req), req, false)
	if v.Size() > execution.MaxRequestBytes {
		return nil, execution.Errorf(execution.TooLarge, "the request is too large").With("limit", execution.MaxRequestBytes)
	}
	return v.Bytes(), nil
}

// requestTree is a request with its action; content: without what is no
// content.
func requestTree(action string, req any, content bool) *jsonx.Value {
	members := []jsonx.Member{{Key: jsonx.Key("action"), Value: jsonx.NewString(action)}}
	return jsonx.NewObject(append(members, structMembers(reflect.ValueOf(req).Elem(), content)...)...)
}

// tree is the JSON of a Go value. Lists and maps that are nil but shown are
// empty, never null.
func tree(v reflect.Value, content bool) *jsonx.Value {
	if !v.IsValid() {
		return jsonx.NewNull()
	}
	switch x := v.Interface().(type) {
	case *jsonx.Value:
		if x == nil {
			return jsonx.NewNull()
		}
		return x
	case Time:
		return jsonx.NewString(x.String())
	case Decimal:
		return numberToken(string(x))
	case json.Number:
		return numberToken(string(x))
	case []byte:
		return jsonx.NewString(base64.StdEncoding.EncodeToString(x))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return jsonx.NewNull()
		}
		return tree(v.Elem(), content)
	case reflect.Struct:
		return jsonx.NewObject(structMembers(v, content)...)
	case reflect.Slice, reflect.Array:
		elems := make([]*jsonx.Value, v.Len())
		for i := range elems {
			elems[i] = tree(v.Index(i), content)
		}
		return jsonx.NewArray(elems...)
	case reflect.Map:
		return mapTree(v, content)
	case reflect.String:
		return jsonx.NewString(v.String())
	case reflect.Bool:
		return jsonx.NewBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return jsonx.NewInt(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return numberToken(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return numberToken(strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return jsonx.NewNull()
}

// numberToken is a number as it is written; null for what is none.
func numberToken(token string) *jsonx.Value {
	if v, err := jsonx.ParseString(token); err == nil && v.Kind() == jsonx.Number {
		return v
	}
	return jsonx.NewNull()
}

func structMembers(v reflect.Value, content bool) []jsonx.Member {
	p := planOf(v.Type())
	members := make([]jsonx.Member, 0, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		m := v.FieldByIndex(f.index)
		if content && f.rules.nocontent || p.leftOut(v, f, m) {
			continue
		}
		members = append(members, jsonx.Member{Key: f.key, Value: tree(m, content)})
	}
	return members
}

// leftOut reports whether a field is not written.
func (p *plan) leftOut(v reflect.Value, f *field, m reflect.Value) bool {
	switch {
	case f.omitEmpty && (m.Kind() == reflect.Slice || m.Kind() == reflect.Map):
		return m.Len() == 0
	case !f.omit && !f.omitEmpty || !m.IsZero():
		return false
	}
	return f.with < 0 || v.FieldByIndex(p.fields[f.with].index).IsZero()
}

func mapTree(v reflect.Value, content bool) *jsonx.Value {
	if v.Type().Key().Kind() != reflect.String {
		return jsonx.NewNull()
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	members := make([]jsonx.Member, len(keys))
	for i, k := range keys {
		members[i] = jsonx.Member{Key: jsonx.Key(k.String()), Value: tree(v.MapIndex(k), content)}
	}
	return jsonx.NewObject(members...)
}
