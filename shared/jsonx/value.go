package jsonx

import "strconv"

// Value is an immutable JSON value made of raw tokens. It is safe for
// concurrent use. A nil *Value means "absent": it has kind Invalid, no members,
// size 0 and appends nothing.
type Value struct {
	raw  string // token of a scalar as written; "" in a container
	kids *kids  // of a container; nil in a scalar
}

// kids is what an array or object holds. It is immutable once the Value that
// points to it has been handed out; edit.go has the fields for the time before.
type kids struct {
	members []Member // of an object
	elems   []*Value // of an array
	size    int      // bytes of Append's output
	depth   int32    // nesting, at least 1
	array   bool
	escaped bool // of an object: some key may be written with an escape
	editing editing
	index   map[string]int // zero unless editing
}

// Kind is the kind of a value. The zero Kind, Invalid, is that of a nil *Value.
type Kind uint8

// The kinds of JSON values.
const (
	Invalid Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"invalid", "null", "false", "true", "number", "string", "array", "object"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Member is a name and value of an object. Key is the raw token with its
// quotes, as written.
type Member struct {
	Key   string
	Value *Value
}

// Name returns the decoded key. It is false when the key holds a lone
// surrogate escape and so is no Go string.
func (m Member) Name() (string, bool) { return decodeText(m.Key) }

// Kind returns the kind of v.
func (v *Value) Kind() Kind {
	switch {
	case v == nil:
		return Invalid
	case v.kids != nil && v.kids.array:
		return Array
	case v.kids != nil:
		return Object
	case v.raw == "":
		return Invalid
	}
	switch v.raw[0] {
	case 'n':
		return Null
	case 'f':
		return False
	case 't':
		return True
	case '"':
		return String
	}
	return Number
}

// Size returns the number of bytes Append adds. It takes constant time.
func (v *Value) Size() int {
	switch {
	case v == nil:
		return 0
	case v.kids != nil:
		return v.kids.size
	}
	return len(v.raw)
}

// Depth returns the nesting of v: 0 for a scalar, 1 for [] and {}, 2 for [[]].
// It takes constant time.
func (v *Value) Depth() int {
	if v == nil || v.kids == nil {
		return 0
	}
	return int(v.kids.depth)
}

// Append appends the text of v to dst: the exact tokens without insignificant
// white space.
func (v *Value) Append(dst []byte) []byte {
	if v == nil {
		return dst
	}
	k := v.kids
	if k == nil {
		return append(dst, v.raw...)
	}
	if k.array {
		dst = append(dst, '[')
		for i, e := range k.elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.Append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, m := range k.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.Key...)
		dst = append(dst, ':')
		dst = m.Value.Append(dst)
	}
	return append(dst, '}')
}

// Bytes returns the text of v in a new slice.
func (v *Value) Bytes() []byte { return v.Append(make([]byte, 0, v.Size())) }

// String returns the text of v, "" for nil.
func (v *Value) String() string {
	if v == nil || v.kids == nil {
		return v.Raw()
	}
	return string(v.Bytes())
}

// MarshalJSON returns the text of v, null for nil. encoding/json rewrites what
// a MarshalJSON returns: json.Marshal replaces <, > and & in it by escapes.
// Where tokens must stay, use Append, or an Encoder with SetEscapeHTML(false).
func (v *Value) MarshalJSON() ([]byte, error) {
	if v.Kind() == Invalid {
		return []byte("null"), nil
	}
	return v.Bytes(), nil
}

// UnmarshalJSON sets v to the parsed text, under DefaultLimits. It is for a
// Value nobody else has seen yet, as in decoding a struct field. encoding/json
// itself sets a *Value field to nil for the text null.
func (v *Value) UnmarshalJSON(data []byte) error {
	p, err := Parse(data)
	if err != nil {
		return err
	}
	*v = *p
	return nil
}

// Len returns the number of elements or members, 0 for scalars.
func (v *Value) Len() int {
	if v == nil || v.kids == nil {
		return 0
	}
	return len(v.kids.elems) + len(v.kids.members)
}

// Elem returns element i of an array, nil when there is none.
func (v *Value) Elem(i int) *Value {
	if e := v.Elems(); i >= 0 && i < len(e) {
		return e[i]
	}
	return nil
}

// Elems returns the elements of an array, else nil. The slice is v's own: it
// must not be written to.
func (v *Value) Elems() []*Value {
	if v == nil || v.kids == nil {
		return nil
	}
	return v.kids.elems
}

// Members returns the members of an object in order, else nil. The slice is
// v's own: it must not be written to.
func (v *Value) Members() []Member {
	if v == nil || v.kids == nil {
		return nil
	}
	return v.kids.members
}

// Get returns the member whose decoded name is name, nil when there is none or
// v is no object. It takes time linear in the number of members.
func (v *Value) Get(name string) *Value {
	if v == nil || v.kids == nil {
		return nil
	}
	if i := v.kids.find(name); i >= 0 {
		return v.kids.members[i].Value
	}
	return nil
}

// find returns the position of the member with the decoded name, or -1.
func (k *kids) find(name string) int {
	for i := range k.members {
		key := k.members[i].Key
		if !k.escaped {
			if len(key) == len(name)+2 && key[1:len(key)-1] == name {
				return i
			}
		} else if decode(key) == name {
			return i
		}
	}
	return -1
}

// Raw returns the token of a scalar as written, "" for nil, arrays and objects.
func (v *Value) Raw() string {
	if v == nil {
		return ""
	}
	return v.raw
}

// Text returns the decoded text of a String. It is false when v is no String,
// or holds a lone surrogate escape and so is no Go string.
func (v *Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	return decodeText(v.raw)
}

// Bool returns the value of a True or False; ok is false for any other kind.
func (v *Value) Bool() (value, ok bool) {
	switch v.Kind() {
	case True:
		return true, true
	case False:
		return false, true
	}
	return false, false
}

// IsInt64 returns the value of a Number that is written as an integer (no
// fraction, no exponent) and fits an int64; ok is false otherwise.
func (v *Value) IsInt64() (n int64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.raw, 10, 64)
	return n, err == nil
}
