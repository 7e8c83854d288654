package memory

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cairnstate/cairn/shared/store"
)

// Bounds of DynamoDB on names, keys and nesting.
const (
	maxPKBytes   = 2048
	maxSKBytes   = 1024
	maxNameBytes = 65535
	maxNesting   = 32
)

// keep checks an item's attributes and gives a copy in the store's own form:
// numbers canonical, sets sorted, nothing shared with the caller. problem is
// "" or says what is wrong, naming the attribute but no value.
func keep(it store.Item) (kept store.Item, problem string) {
	kept = make(store.Item, len(it))
	for name, v := range it {
		if v.Kind == store.KindInvalid {
			continue
		}
		if name == "" || len(name) > maxNameBytes || !utf8.ValidString(name) {
			return nil, "attribute name"
		}
		k, ok := keepValue(v, 1)
		if !ok {
			return nil, "value of " + name
		}
		kept[name] = k
	}
	if p := keyProblem(kept.Key()); p != "" {
		return nil, p
	}
	if kept[store.AttrPK].Kind != store.KindS || kept[store.AttrSK].Kind != store.KindS {
		return nil, "key attribute is no string"
	}
	return kept, ""
}

func keyProblem(k store.Key) string {
	switch {
	case k.PK == "" || len(k.PK) > maxPKBytes || !utf8.ValidString(k.PK):
		return "partition key"
	case k.SK == "" || len(k.SK) > maxSKBytes || !utf8.ValidString(k.SK):
		return "sort key"
	}
	return ""
}

func keepValue(v store.Value, depth int) (store.Value, bool) {
	if depth > maxNesting {
		return store.Value{}, false
	}
	k := store.Value{Kind: v.Kind}
	switch v.Kind {
	case store.KindS:
		k.S = v.S
		return k, utf8.ValidString(v.S)
	case store.KindN:
		var ok bool
		k.S, ok = canonical(v.S)
		return k, ok
	case store.KindB:
		k.B = append([]byte{}, v.B...)
		return k, true
	case store.KindBOOL:
		k.Bool = v.Bool
		return k, true
	case store.KindNULL:
		return k, true
	case store.KindSS, store.KindNS, store.KindBS:
		return keepSet(v)
	case store.KindL:
		for _, e := range v.L {
			x, ok := keepValue(e, depth+1)
			if !ok {
				return k, false
			}
			k.L = append(k.L, x)
		}
		return k, true
	case store.KindM:
		k.M = make(map[string]store.Value, len(v.M))
		for name, e := range v.M {
			x, ok := keepValue(e, depth+1)
			if !ok || !utf8.ValidString(name) {
				return k, false
			}
			k.M[name] = x
		}
		return k, true
	}
	return k, false
}

// keepSet refuses empty sets and values that come twice, as DynamoDB does.
func keepSet(v store.Value) (store.Value, bool) {
	k := store.Value{Kind: v.Kind, SS: slices.Clone(v.SS)}
	for i, s := range k.SS {
		ok := true
		switch v.Kind {
		case store.KindNS:
			k.SS[i], ok = canonical(s)
		case store.KindSS:
			ok = utf8.ValidString(s)
		}
		if !ok {
			return k, false
		}
	}
	slices.Sort(k.SS)
	for i := 1; i < len(k.SS); i++ {
		if k.SS[i] == k.SS[i-1] {
			return k, false
		}
	}
	return k, len(k.SS) > 0
}

// copyItem gives a caller an item of its own.
func copyItem(it store.Item) store.Item {
	if it == nil {
		return nil
	}
	out := make(store.Item, len(it))
	for name, v := range it {
		out[name] = copyValue(v)
	}
	return out
}

func copyValue(v store.Value) store.Value {
	if v.B != nil {
		v.B = append([]byte{}, v.B...)
	}
	v.SS = slices.Clone(v.SS)
	if v.L != nil {
		l := make([]store.Value, len(v.L))
		for i, e := range v.L {
			l[i] = copyValue(e)
		}
		v.L = l
	}
	if v.M != nil {
		m := make(map[string]store.Value, len(v.M))
		for name, e := range v.M {
			m[name] = copyValue(e)
		}
		v.M = m
	}
	return v
}

func sameItem(a, b store.Item) bool { return maps.EqualFunc(a, b, store.Value.Equal) }

// order compares two values of an ordered kind; both in the store's form.
func order(a, b store.Value) int {
	switch a.Kind {
	case store.KindN:
		return compareNumbers(a.S, b.S)
	case store.KindB:
		return bytes.Compare(a.B, b.B)
	}
	return strings.Compare(a.S, b.S)
}

func ordered(k store.Kind) bool { return k == store.KindS || k == store.KindN || k == store.KindB }
