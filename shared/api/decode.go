package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// maxNesting is how deep agent data may nest; its own braces count, those of
// the request around it do not. A patch has two of its own around each value.
const (
	maxNesting     = 500
	patchNesting   = 2
	requestNesting = 8
)

var (
	valueType   = reflect.TypeFor[*jsonx.Value]()
	timeType    = reflect.TypeFor[Time]()
	decimalType = reflect.TypeFor[Decimal]()
	bytesType   = reflect.TypeFor[[]byte]()
)

// checker is what several fields of a struct decide together. at is the
// struct's own place in the request: "" or "workflow.migrations[0]".
type checker interface{ check(at string) error }

// Decode reads a request for a function. The action is "" unless the function
// has it; req is a pointer to the verb's request type.
//
// Errors: TooLarge {limit} for a request, state or artifact body over its
// limit; InvalidRequest {field, path} for everything else.
func Decode(function string, body []byte) (action string, req any, err error) {
	if len(body) > execution.MaxRequestBytes {
		return "", nil, execution.Errorf(execution.TooLarge, "the request is too large").With("limit", execution.MaxRequestBytes)
	}
	v, err := jsonx.ParseLimits(body, jsonx.Limits{Depth: maxNesting + requestNesting})
	if err != nil {
		return "", nil, syntaxError(err)
	}
	if v.Kind() != jsonx.Object {
		return "", nil, execution.Errorf(execution.InvalidRequest, "the request must be a JSON object")
	}
	verb, err := verbOf(function, v.Get("action"))
	if err != nil {
		return "", nil, err
	}
	out := verb.New()
	d := decoder{strict: true}
	if err := d.object("", v, reflect.ValueOf(out).Elem(), "action"); err != nil {
		return verb.Action, nil, err
	}
	identify(verb.Action, out)
	return verb.Action, out, nil
}

// DecodeReply reads a reply into a pointer to its type. Fields that it does not
// know are passed over: they are of a newer version.
func DecodeReply(body []byte, reply any) error {
	v, err := jsonx.ParseLimits(body, jsonx.Limits{Depth: maxNesting + requestNesting})
	if err != nil {
		return execution.Errorf(execution.Internal, "a reply that is no JSON").Because(err)
	}
	var d decoder
	if err := d.value("", v, reflect.ValueOf(reply).Elem(), &rules{}); err != nil {
		return execution.Errorf(execution.Internal, "a reply of another form").Because(err)
	}
	return nil
}

// decoder fills structs from JSON. strict: a request, every rule counts;
// otherwise a reply, where only types count.
type decoder struct{ strict bool }

// object fills a struct; a member named skip is passed over.
func (d decoder) object(at string, v *jsonx.Value, into reflect.Value, skip string) error {
	p := planOf(into.Type())
	if v.Kind() == jsonx.String && p.short >= 0 {
		f := &p.fields[p.short]
		return d.value(at, v, into.FieldByIndex(f.index), &f.rules)
	}
	if v.Kind() != jsonx.Object {
		return execution.Invalid(at, "must be an object")
	}
	if d.strict {
		for _, m := range v.Members() {
			name, ok := m.Name()
			if i := p.find(name); !ok || name != skip && (i < 0 || p.fields[i].rules.reply) {
				return unknownField(at, m, p)
			}
		}
	}
	for i := range p.fields {
		f := &p.fields[i]
		m := v.Get(f.name)
		if m == nil {
			if d.strict && f.rules.required {
				return execution.Invalid(join(at, f.name), "is required")
			}
			continue
		}
		if err := d.value(join(at, f.name), m, into.FieldByIndex(f.index), &f.rules); err != nil {
			return err
		}
	}
	if c, ok := into.Addr().Interface().(checker); ok && d.strict {
		return c.check(at)
	}
	return nil
}

// value fills any field.
func (d decoder) value(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	t := into.Type()
	if t == valueType {
		into.Set(reflect.ValueOf(v))
		if d.strict {
			return checkData(at, v, r)
		}
		return nil
	}
	if v.Kind() == jsonx.Null {
		if d.strict {
			return execution.Invalid(at, "must not be null")
		}
		return nil
	}
	switch {
	case t == timeType:
		return d.time(at, v, into)
	case t == decimalType:
		return d.decimal(at, v, into)
	case t == bytesType:
		return d.bytes(at, v, into, r)
	}
	switch t.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		return d.value(at, v, into.Elem(), r)
	case reflect.Struct:
		return d.object(at, v, into, "")
	case reflect.Slice:
		return d.list(at, v, into, r)
	case reflect.Map:
		return d.table(at, v, into, r)
	case reflect.String:
		return d.text(at, v, into, r)
	case reflect.Bool:
		b, ok := v.Bool()
		if !ok {
			return execution.Invalid(at, "must be true or false")
		}
		into.SetBool(b)
		return nil
	case reflect.Int, reflect.Int64:
		return d.integer(at, v, into, r)
	case reflect.Float64:
		f, err := strconv.ParseFloat(v.Raw(), 64)
		if v.Kind() != jsonx.Number || err != nil {
			return execution.Invalid(at, "must be a number")
		}
		into.SetFloat(f)
		return nil
	}
	panic(fmt.Sprintf("api: no way to read a %v", t))
}

func (d decoder) list(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	if v.Kind() != jsonx.Array {
		return execution.Invalid(at, "must be an array")
	}
	if d.strict && r.items > 0 && v.Len() > r.items {
		return execution.Invalid(at, "must have at most %d entries", r.items).With("limit", r.items)
	}
	into.Set(reflect.MakeSlice(into.Type(), v.Len(), v.Len()))
	for i, e := range v.Elems() {
		if err := d.value(fmt.Sprintf("%s[%d]", at, i), e, into.Index(i), r); err != nil {
			return err
		}
	}
	return nil
}

func (d decoder) table(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	if v.Kind() != jsonx.Object {
		return execution.Invalid(at, "must be an object")
	}
	if d.strict && r.items > 0 && v.Len() > r.items {
		return execution.Invalid(at, "must have at most %d entries", r.items).With("limit", r.items)
	}
	t := into.Type()
	into.Set(reflect.MakeMapWithSize(t, v.Len()))
	for _, m := range v.Members() {
		name, ok := m.Name()
		if !ok || d.strict && r.keysID && !execution.ValidIdentifier(name, execution.MaxIdentifier) {
			return execution.Invalid(at, "its names must match [A-Za-z0-9][A-Za-z0-9._-]* and have at most %d characters", execution.MaxIdentifier)
		}
		e := reflect.New(t.Elem()).Elem()
		if err := d.value(join(at, name), m.Value, e, r); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(name), e)
	}
	return nil
}

func (d decoder) text(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	s, ok := v.Text()
	switch {
	case v.Kind() != jsonx.String:
		return execution.Invalid(at, "must be a string")
	case !ok:
		return execution.Invalid(at, "must not hold a lone surrogate")
	}
	into.SetString(s)
	if !d.strict {
		return nil
	}
	if r.enum != nil && !slices.Contains(r.enum, s) {
		return execution.Invalid(at, "must be one of %s", strings.Join(r.enum, ", "))
	}
	switch r.form {
	case "id":
		return execution.CheckIdentifier(at, s, r.length)
	case "text":
		return execution.CheckText(at, s, r.length)
	case "note":
		return execution.CheckNote(at, s, r.length)
	case "digest":
		if !validDigest(s) {
			return execution.Invalid(at, "must be a SHA-256 in 64 lower-case hex digits")
		}
	case "pointer":
		if !strings.HasPrefix(s, "/") || len(s) > 1024 {
			return execution.Invalid(at, "must be a JSON pointer of at most 1024 bytes that begins with /")
		}
	}
	return nil
}

func validDigest(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

func (d decoder) integer(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	n, ok := v.IsInt64()
	if !ok {
		return execution.Invalid(at, "must be an integer")
	}
	into.SetInt(n)
	if d.strict && (r.min != nil && n < *r.min || r.max != nil && n > *r.max) {
		return outOfRange(at, r)
	}
	return nil
}

func outOfRange(at string, r *rules) error {
	switch {
	case r.max == nil:
		return execution.Invalid(at, "must be at least %d", *r.min)
	case r.min == nil:
		return execution.Invalid(at, "must be at most %d", *r.max)
	}
	return execution.Invalid(at, "must be from %d to %d", *r.min, *r.max)
}

func (d decoder) time(at string, v *jsonx.Value, into reflect.Value) error {
	s, _ := v.Text()
	t, ok := ParseTime(s)
	if !ok {
		return execution.Invalid(at, "must be a time in RFC 3339, UTC (Z), with at most milliseconds")
	}
	into.SetInt(int64(t))
	return nil
}

func (d decoder) decimal(at string, v *jsonx.Value, into reflect.Value) error {
	if v.Kind() != jsonx.Number {
		return execution.Invalid(at, "must be a number")
	}
	token := v.Raw()
	into.SetString(token)
	if !d.strict {
		return nil
	}
	if len(token) > MaxDecimalText {
		return execution.Invalid(at, "must have at most %d characters", MaxDecimalText)
	}
	_, err := execution.ParseDecimal(at, token, false)
	return err
}

func (d decoder) bytes(at string, v *jsonx.Value, into reflect.Value, r *rules) error {
	s, ok := v.Text()
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if v.Kind() != jsonx.String || !ok || err != nil || strings.ContainsAny(s, "\r\n") {
		return execution.Invalid(at, "must be base64")
	}
	if d.strict && r.max != nil && int64(len(b)) > *r.max {
		return execution.Errorf(execution.TooLarge, "%s is too large", at).With("field", at).With("limit", *r.max)
	}
	into.SetBytes(b)
	return nil
}

// checkData holds agent data to its limits.
func checkData(at string, v *jsonx.Value, r *rules) error {
	switch r.form {
	case "state":
		if v.Kind() != jsonx.Object {
			return execution.InvalidPath(at, "", "must be an object")
		}
		if v.Size() > execution.MaxStateBytes {
			return execution.Errorf(execution.TooLarge, "%s is too large", at).With("field", at).With("limit", execution.MaxStateBytes)
		}
	case "object":
		if v.Kind() != jsonx.Object {
			return execution.InvalidPath(at, "", "must be an object")
		}
	case "patch":
		return checkPatch(at, v)
	}
	if v.Depth() > maxNesting {
		return execution.InvalidPath(at, deepPath(v), jsonx.ReasonDepth)
	}
	return nil
}

func checkPatch(at string, v *jsonx.Value) error {
	if err := jsonx.ValidatePatch(v); err != nil {
		var e *jsonx.PatchError
		if errors.As(err, &e) && e.Index >= 0 {
			return execution.InvalidPath(fmt.Sprintf("%s[%d]", at, e.Index), e.Path, e.Reason)
		}
		return execution.InvalidPath(at, "", "must be an array of operations")
	}
	if v.Depth() > maxNesting+patchNesting {
		return execution.InvalidPath(at, deepPath(v), jsonx.ReasonDepth)
	}
	return nil
}
