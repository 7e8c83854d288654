package memory

import (
	"math"
	"slices"
	"strconv"

	"github.com/cairnstate/cairn/shared/store"
)

// update applies actions to a stored item (nil: one that does not exist) and
// gives the item afterwards. problem says what DynamoDB would refuse, "" when
// nothing.
func update(k store.Key, was store.Item, actions []store.Action) (it store.Item, problem string) {
	it = make(store.Item, len(was)+len(actions)+2)
	for name, v := range was {
		it[name] = v // stored values are never changed in place
	}
	it[store.AttrPK], it[store.AttrSK] = store.S(k.PK), store.S(k.SK)
	seen := make(map[string]bool, len(actions))
	for _, a := range actions {
		name, v, problem := act(a, it)
		if problem != "" {
			return nil, problem + " " + name
		}
		if name == "" || name == store.AttrPK || name == store.AttrSK || seen[name] {
			return nil, "actions on " + name
		}
		seen[name] = true
		if v.Kind == store.KindInvalid {
			delete(it, name)
		} else {
			it[name] = v
		}
	}
	return it, ""
}

// act gives the value that the action leaves; the zero Value takes the
// attribute away. Actions see the item as it was: each name comes only once.
func act(a store.Action, it store.Item) (name string, v store.Value, problem string) {
	switch a := a.(type) {
	case store.Set:
		v, ok := keepValue(a.Value, 1)
		if !ok {
			return a.Attr, v, "value of"
		}
		return a.Attr, v, ""
	case store.Remove:
		return a.Attr, store.Value{}, ""
	case store.Add:
		v, problem := add(it[a.Attr], a.N)
		return a.Attr, v, problem
	case store.AddToSet:
		v, problem := changeSet(it[a.Attr], a.Values, true)
		return a.Attr, v, problem
	case store.RemoveFromSet:
		v, problem := changeSet(it[a.Attr], a.Values, false)
		return a.Attr, v, problem
	}
	return "", store.Value{}, "unknown action"
}

func add(have store.Value, n int64) (store.Value, string) {
	switch have.Kind {
	case store.KindInvalid:
		return store.N(n), ""
	case store.KindN:
	default:
		return store.Value{}, "type of"
	}
	if x, err := strconv.ParseInt(have.S, 10, 64); err == nil && x > math.MinInt64/2 && x < math.MaxInt64/2 && n > math.MinInt64/2 && n < math.MaxInt64/2 {
		return store.N(x + n), ""
	}
	text, ok := addNumbers(have.S, n)
	if !ok {
		return store.Value{}, "number overflow in"
	}
	return store.Value{Kind: store.KindN, S: text}, ""
}

func changeSet(have store.Value, values []string, in bool) (store.Value, string) {
	change, ok := keepSet(store.SS(values...))
	if !ok {
		return store.Value{}, "set values for"
	}
	if have.Kind != store.KindInvalid && have.Kind != store.KindSS {
		return store.Value{}, "type of"
	}
	var out []string
	if in {
		out = append(slices.Clone(have.SS), change.SS...)
	} else {
		for _, s := range have.SS {
			if !slices.Contains(change.SS, s) {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return store.Value{}, ""
	}
	return store.SS(out...), ""
}
