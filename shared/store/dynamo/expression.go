package dynamo

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
)

// expression collects the placeholders of a request's expressions; every name
// and value is one, so no attribute name is ever parsed.
type expression struct {
	names  map[string]string // placeholder -> attribute
	values attributes        // placeholder -> value
	byName map[string]string
}

func (e *expression) name(attr string) string {
	if p, ok := e.byName[attr]; ok {
		return p
	}
	if e.names == nil {
		e.names, e.byName = map[string]string{}, map[string]string{}
	}
	p := "#" + strconv.Itoa(len(e.names))
	e.names[p], e.byName[attr] = attr, p
	return p
}

func (e *expression) value(av types.AttributeValue) string {
	if e.values == nil {
		e.values = attributes{}
	}
	p := ":" + strconv.Itoa(len(e.values))
	e.values[p] = av
	return p
}

func (e *expression) text(s string) string {
	return e.value(&types.AttributeValueMemberS{Value: s})
}

// cond writes a condition; nil gives nil (always holds).
func (e *expression) cond(c store.Cond) (*string, error) {
	if c == nil {
		return nil, nil
	}
	s, err := e.term(c)
	return &s, err
}

// term writes a condition so that it can stand inside another.
func (e *expression) term(c store.Cond) (string, error) {
	switch c := c.(type) {
	case nil:
		return e.constant(true), nil
	case store.Compare:
		return e.compare(c)
	case store.Present:
		return "attribute_exists(" + e.name(c.Attr) + ")", nil
	case store.Absent:
		return "attribute_not_exists(" + e.name(c.Attr) + ")", nil
	case store.Contains:
		// contains() alone also finds a substring of a string.
		n := e.name(c.Attr)
		return "(attribute_type(" + n + ", " + e.text("SS") + ") AND contains(" + n + ", " + e.text(c.Value) + "))", nil
	case store.All:
		return e.join(c, " AND ", true)
	case store.Any:
		return e.join(c, " OR ", false)
	case store.Not:
		s, err := e.term(c.Cond)
		return "(NOT " + s + ")", err
	}
	return "", errForm
}

func (e *expression) join(parts []store.Cond, op string, empty bool) (string, error) {
	if len(parts) == 0 {
		return e.constant(empty), nil
	}
	out := make([]string, len(parts))
	for i, p := range parts {
		s, err := e.term(p)
		if err != nil {
			return "", err
		}
		out[i] = s
	}
	if len(out) == 1 { // DynamoDB refuses redundant parentheses
		return out[0], nil
	}
	return "(" + strings.Join(out, op) + ")", nil
}

// constant is a condition that always or never holds: DynamoDB has no literals.
func (e *expression) constant(holds bool) string {
	n := e.name(store.AttrPK)
	op := " AND "
	if holds {
		op = " OR "
	}
	return "(attribute_exists(" + n + ")" + op + "attribute_not_exists(" + n + "))"
}

// compare keeps the port's rule that a comparison with an attribute that is
// absent or of another kind does not hold; for <> DynamoDB says it does.
func (e *expression) compare(c store.Compare) (string, error) {
	av, err := toValue(c.Value)
	if err != nil {
		return "", err
	}
	n := e.name(c.Attr)
	switch c.Op {
	case store.EQ:
	case store.NE:
		return "(attribute_type(" + n + ", " + e.text(typeName(c.Value.Kind)) + ") AND " + n + " <> " + e.value(av) + ")", nil
	case store.LT, store.LE, store.GT, store.GE:
		if k := c.Value.Kind; k != store.KindS && k != store.KindN && k != store.KindB {
			return "", errForm
		}
	default:
		return "", errForm
	}
	return "(" + n + " " + string(c.Op) + " " + e.value(av) + ")", nil
}

func typeName(k store.Kind) string {
	return [...]string{
		store.KindS: "S", store.KindN: "N", store.KindB: "B", store.KindBOOL: "BOOL",
		store.KindNULL: "NULL", store.KindSS: "SS", store.KindNS: "NS", store.KindBS: "BS", store.KindL: "L", store.KindM: "M",
	}[k]
}

// actions writes an update expression; nil when nothing is to be changed. An
// attribute changed twice, or a key attribute, is refused here: not every
// engine does.
func (e *expression) actions(list []store.Action) (*string, error) {
	var set, remove, add, del []string
	changed := map[string]bool{store.AttrPK: true, store.AttrSK: true}
	for _, a := range list {
		attr := attrOf(a)
		if changed[attr] {
			return nil, errForm
		}
		changed[attr] = true
		switch a := a.(type) {
		case store.Set:
			av, err := toValue(a.Value)
			if err != nil {
				return nil, err
			}
			set = append(set, e.name(a.Attr)+" = "+e.value(av))
		case store.Remove:
			remove = append(remove, e.name(a.Attr))
		case store.Add:
			n := &types.AttributeValueMemberN{Value: strconv.FormatInt(a.N, 10)}
			add = append(add, e.name(a.Attr)+" "+e.value(n))
		case store.AddToSet:
			av, err := toSet(a.Values)
			if err != nil {
				return nil, err
			}
			add = append(add, e.name(a.Attr)+" "+e.value(av))
		case store.RemoveFromSet:
			av, err := toSet(a.Values)
			if err != nil {
				return nil, err
			}
			del = append(del, e.name(a.Attr)+" "+e.value(av))
		default:
			return nil, errForm
		}
	}
	var out []string
	for _, clause := range []struct {
		word  string
		parts []string
	}{{"SET ", set}, {"REMOVE ", remove}, {"ADD ", add}, {"DELETE ", del}} {
		if len(clause.parts) > 0 {
			out = append(out, clause.word+strings.Join(clause.parts, ", "))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	s := strings.Join(out, " ")
	return &s, nil
}

func attrOf(a store.Action) string {
	switch a := a.(type) {
	case store.Set:
		return a.Attr
	case store.Remove:
		return a.Attr
	case store.Add:
		return a.Attr
	case store.AddToSet:
		return a.Attr
	case store.RemoveFromSet:
		return a.Attr
	}
	return ""
}
