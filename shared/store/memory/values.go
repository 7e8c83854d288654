package memory

import (
	"bytes"
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

// keep checks an item's attributes and gives them in the store's own form:
// numbers canonical, sets sorted. Bytes are shared with the caller until the
// item is packed. problem is
// "" or says what is wrong, naming the attribute but no value.
func keep(it store.Item) (kept store.Item, problem string) {
	kept = it
	as := asKept(it)
	if !as {
		kept = make(store.Item, len(it))
	}
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
		if !as {
			kept[name] = k
		}
	}
	if p := keyProblem(kept.Key()); p != "" {
		return nil, p
	}
	if kept[store.AttrPK].Kind != store.KindS || kept[store.AttrSK].Kind != store.KindS {
		return nil, "key attribute is no string"
	}
	return kept, ""
}

// asKept reports whether keeping an item would change nothing, as is the case
// with most; such an item needs no copy.
func asKept(it store.Item) bool {
	for _, v := range it {
		switch v.Kind {
		case store.KindS, store.KindB, store.KindBOOL, store.KindNULL:
		case store.KindN:
			if !plain(v.S) {
				return false
			}
		default:
			return false
		}
	}
	return true
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
		k.B = v.B
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
