package execution

import (
	"encoding/base64"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// Records are decoded from a tree of tokens: every open of a journal decodes all
// that it read, and encoding/json would search each level of a body anew for its
// end. It also reads a null into a nil pointer, so that a recorded `null` would
// come back as absent (case D8: "" != null != absent); here it stays.

// recordDepth is how deep an agent's value may lie inside a record.
const recordDepth = 16

// errForm says that a record has a form that this version does not know.
type errForm struct{ at string }

func (e errForm) Error() string { return "unknown form of " + e.at }

// decodeRecord sets what into points to from its JSON, strictly: no unknown
// fields, no other types. Fields that are not there stay as they are.
func decodeRecord(p []byte, into any) error {
	if len(p) == 0 {
		return io.ErrUnexpectedEOF
	}
	return jsonx.Lend(p, jsonx.Limits{Depth: jsonx.DefaultLimits.Depth + recordDepth}, func(v *jsonx.Value) error {
		return fill(v, reflect.ValueOf(into).Elem())
	})
}

var agentValue = reflect.TypeFor[*jsonx.Value]()

func fill(v *jsonx.Value, into reflect.Value) error {
	t := into.Type()
	if t == agentValue {
		return fillAgent(v, into)
	}
	if v.Kind() == jsonx.Null {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		into.Set(p)
		return fill(v, p.Elem())
	case reflect.Struct:
		return fillStruct(v, into)
	case reflect.Map:
		return fillMap(v, into)
	case reflect.Slice, reflect.Array:
		return fillList(v, into)
	case reflect.String:
		s, ok := v.Text()
		if !ok {
			return errForm{t.String()}
		}
		into.SetString(strings.Clone(s)) // without the text around it
	case reflect.Int, reflect.Int64:
		n, ok := v.IsInt64()
		if !ok {
			return errForm{t.String()}
		}
		into.SetInt(n)
	case reflect.Bool:
		b, ok := v.Bool()
		if !ok {
			return errForm{t.String()}
		}
		into.SetBool(b)
	default:
		return errForm{t.String()}
	}
	return nil
}

// fillAgent keeps a value by itself, not the whole record that it came in.
func fillAgent(v *jsonx.Value, into reflect.Value) error {
	own, err := jsonx.Parse(v.Bytes())
	if err != nil {
		return err
	}
	into.Set(reflect.ValueOf(own))
	return nil
}

func fillStruct(v *jsonx.Value, into reflect.Value) error {
	if v.Kind() != jsonx.Object {
		return errForm{into.Type().String()}
	}
	fields := fieldsOf(into.Type())
	for _, m := range v.Members() {
		name, _ := m.Name()
		index, ok := fields[name]
		if !ok {
			return errForm{into.Type().String() + "." + name}
		}
		if err := fill(m.Value, into.FieldByIndex(index)); err != nil {
			return err
		}
	}
	return nil
}

func fillMap(v *jsonx.Value, into reflect.Value) error {
	t := into.Type()
	if v.Kind() != jsonx.Object {
		return errForm{t.String()}
	}
	into.Set(reflect.MakeMapWithSize(t, v.Len()))
	for _, m := range v.Members() {
		name, ok := m.Name()
		if !ok {
			return errForm{t.String()}
		}
		e := reflect.New(t.Elem()).Elem()
		if err := fill(m.Value, e); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(strings.Clone(name)).Convert(t.Key()), e)
	}
	return nil
}

func fillList(v *jsonx.Value, into reflect.Value) error {
	t := into.Type()
	if t.Elem().Kind() == reflect.Uint8 {
		return fillBytes(v, into)
	}
	if v.Kind() != jsonx.Array || t.Kind() != reflect.Slice {
		return errForm{t.String()}
	}
	into.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
	for i, e := range v.Elems() {
		if err := fill(e, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// fillBytes reads digests (base64 without padding) and bytes (with it).
func fillBytes(v *jsonx.Value, into reflect.Value) error {
	text, ok := v.Text()
	if !ok {
		return errForm{into.Type().String()}
	}
	if into.Kind() == reflect.Array {
		return unb64(into.Bytes(), []byte(text))
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errForm{into.Type().String()}
	}
	into.SetBytes(b)
	return nil
}

var recordFields sync.Map // reflect.Type -> map[string][]int

// fieldsOf gives a record's fields by the names of their tags.
func fieldsOf(t reflect.Type) map[string][]int {
	if known, ok := recordFields.Load(t); ok {
		return known.(map[string][]int)
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	recordFields.Store(t, fields)
	return fields
}

// What is decoded by encoding/json (manifests, tests) keeps nulls too.

// UnmarshalJSON keeps explicit nulls of agent values.
func (c *Creation) UnmarshalJSON(p []byte) error { return decodeRecord(p, c) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (c *Claim) UnmarshalJSON(p []byte) error { return decodeRecord(p, c) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (w *Wait) UnmarshalJSON(p []byte) error { return decodeRecord(p, w) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (c *Completion) UnmarshalJSON(p []byte) error { return decodeRecord(p, c) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (t *Settlement) UnmarshalJSON(p []byte) error { return decodeRecord(p, t) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (ev *Evidence) UnmarshalJSON(p []byte) error { return decodeRecord(p, ev) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (op *Operation) UnmarshalJSON(p []byte) error { return decodeRecord(p, op) }

// UnmarshalJSON keeps explicit nulls of agent values.
func (s *State) UnmarshalJSON(p []byte) error { return decodeRecord(p, s) }
