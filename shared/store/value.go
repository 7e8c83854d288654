package store

import (
	"maps"
	"slices"
	"strconv"
)

// Kind is the type of an attribute's value.
type Kind uint8

// The kinds of attribute values, named as DynamoDB names them.
const (
	KindInvalid Kind = iota // the zero Value: no attribute
	KindS
	KindN
	KindB
	KindBOOL
	KindNULL
	KindSS
	KindL
	KindM
	// Number and binary sets, which Cairn never writes but must carry when an
	// item holds them: SS has the numbers' texts, respectively the raw bytes.
	KindNS
	KindBS
)

// Value is one attribute's value. Only the field of its Kind is set; treat it
// as immutable. The zero Value means that there is no such attribute.
type Value struct {
	Kind Kind
	S    string // KindS: text. KindN: the number's decimal text
	B    []byte // KindB
	Bool bool   // KindBOOL
	SS   []string
	L    []Value
	M    map[string]Value
}

// S is a string value.
func S(s string) Value { return Value{Kind: KindS, S: s} }

// N is a whole number.
func N(n int64) Value { return Value{Kind: KindN, S: strconv.FormatInt(n, 10)} }

// B is a binary value; b must not be changed afterwards.
func B(b []byte) Value { return Value{Kind: KindB, B: b} }

// Bool is a truth value.
func Bool(b bool) Value { return Value{Kind: KindBOOL, Bool: b} }

// SS is a string set; it must not be empty (DynamoDB has no empty sets).
func SS(s ...string) Value { return Value{Kind: KindSS, SS: s} }

// Int gives a number attribute as int64; false when v is no number or does not
// fit exactly.
func (v Value) Int() (int64, bool) {
	if v.Kind != KindN {
		return 0, false
	}
	n, err := strconv.ParseInt(v.S, 10, 64)
	return n, err == nil
}

// Equal reports whether a and b are the same value. Numbers are compared by
// their text; sets without order.
func (v Value) Equal(o Value) bool {
	if v.Kind != o.Kind || v.S != o.S || v.Bool != o.Bool || string(v.B) != string(o.B) {
		return false
	}
	if v.Kind == KindSS || v.Kind == KindNS || v.Kind == KindBS {
		a, b := slices.Clone(v.SS), slices.Clone(o.SS)
		slices.Sort(a)
		slices.Sort(b)
		return slices.Equal(a, b)
	}
	return slices.EqualFunc(v.L, o.L, Value.Equal) && maps.EqualFunc(v.M, o.M, Value.Equal)
}

// Names of the key attributes of every table and of its TTL attribute (epoch
// seconds).
const (
	AttrPK  = "pk"
	AttrSK  = "sk"
	AttrTTL = "ttl"
)

// Key names one item.
type Key struct{ PK, SK string }

// Item is one item with all its attributes, pk and sk among them.
type Item map[string]Value

// Key is the item's key; empty strings when it has none.
func (it Item) Key() Key { return Key{it[AttrPK].S, it[AttrSK].S} }

// Str is a string attribute, "" when absent or of another kind.
func (it Item) Str(name string) string {
	if v := it[name]; v.Kind == KindS {
		return v.S
	}
	return ""
}

// Int is a number attribute, 0 when absent or of another kind.
func (it Item) Int(name string) int64 {
	n, _ := it[name].Int()
	return n
}

// Bytes is a binary attribute, nil when absent or of another kind.
func (it Item) Bytes(name string) []byte {
	if v := it[name]; v.Kind == KindB {
		return v.B
	}
	return nil
}

// Has reports whether the attribute is there, of whatever kind.
func (it Item) Has(name string) bool { return it[name].Kind != KindInvalid }

// Size is the item's size as DynamoDB counts it (UTF-8 names and values;
// numbers about one byte per two significant digits plus one; 3 bytes overhead
// per list or map plus one per element). The limit is MaxItemBytes.
func (it Item) Size() int {
	n := 0
	for name, v := range it {
		n += len(name) + v.size()
	}
	return n
}

func (v Value) size() int {
	switch v.Kind {
	case KindS:
		return len(v.S)
	case KindN:
		digits := 0
		for _, c := range v.S {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		n := (digits+1)/2 + 1
		if len(v.S) > 0 && v.S[0] == '-' {
			n++
		}
		return min(n, 21)
	case KindB:
		return len(v.B)
	case KindBOOL, KindNULL:
		return 1
	case KindSS, KindBS:
		n := 0
		for _, s := range v.SS {
			n += len(s)
		}
		return n
	case KindNS:
		n := 0
		for _, s := range v.SS {
			n += Value{Kind: KindN, S: s}.size()
		}
		return n
	case KindL:
		n := 3
		for _, e := range v.L {
			n += e.size() + 1
		}
		return n
	case KindM:
		n := 3
		for k, e := range v.M {
			n += len(k) + e.size() + 1
		}
		return n
	}
	return 0
}
