package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/store"
)

// checkCond reports whether DynamoDB would take the condition at all.
func checkCond(c store.Cond) bool {
	switch c := c.(type) {
	case nil:
		return true
	case store.Compare:
		v, ok := keepValue(c.Value, 1)
		if !ok || c.Attr == "" {
			return false
		}
		switch c.Op {
		case store.EQ, store.NE:
			return true
		case store.LT, store.LE, store.GT, store.GE:
			return ordered(v.Kind) || v.Kind == store.KindInvalid
		}
		return false
	case store.Present:
		return c.Attr != ""
	case store.Absent:
		return c.Attr != ""
	case store.Contains:
		return c.Attr != ""
	case store.All:
		return !slices.ContainsFunc(c, func(x store.Cond) bool { return !checkCond(x) })
	case store.Any:
		return !slices.ContainsFunc(c, func(x store.Cond) bool { return !checkCond(x) })
	case store.Not:
		return checkCond(c.Cond)
	}
	return false
}

// holds evaluates a checked condition on an item; nil is an item that does not
// exist.
func holds(c store.Cond, it store.Item) bool {
	switch c := c.(type) {
	case nil:
		return true
	case store.Compare:
		return comparison(c, it[c.Attr])
	case store.Present:
		return it.Has(c.Attr)
	case store.Absent:
		return !it.Has(c.Attr)
	case store.Contains:
		v := it[c.Attr]
		return v.Kind == store.KindSS && slices.Contains(v.SS, c.Value)
	case store.All:
		return !slices.ContainsFunc(c, func(x store.Cond) bool { return !holds(x, it) })
	case store.Any:
		return slices.ContainsFunc(c, func(x store.Cond) bool { return holds(x, it) })
	case store.Not:
		return !holds(c.Cond, it)
	}
	return false
}

func comparison(c store.Compare, have store.Value) bool {
	want, _ := keepValue(c.Value, 1)
	if have.Kind != want.Kind {
		return false
	}
	switch c.Op {
	case store.EQ:
		return have.Equal(want)
	case store.NE:
		return !have.Equal(want)
	}
	sign := order(have, want)
	switch c.Op {
	case store.LT:
		return sign < 0
	case store.LE:
		return sign <= 0
	case store.GT:
		return sign > 0
	}
	return sign >= 0
}

// condText writes a condition for the log, the way DynamoDB writes it.
func condText(c store.Cond) string {
	switch c := c.(type) {
	case nil:
		return ""
	case store.Compare:
		return c.Attr + " " + string(c.Op) + " " + valueText(c.Value)
	case store.Present:
		return "attribute_exists(" + c.Attr + ")"
	case store.Absent:
		return "attribute_not_exists(" + c.Attr + ")"
	case store.Contains:
		return "contains(" + c.Attr + ", " + strconv.Quote(c.Value) + ")"
	case store.All:
		return joined(c, " AND ", "true")
	case store.Any:
		return joined(c, " OR ", "false")
	case store.Not:
		return "NOT (" + condText(c.Cond) + ")"
	}
	return "?"
}

func joined(parts []store.Cond, by, none string) string {
	if len(parts) == 0 {
		return none
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = condText(p)
	}
	return "(" + strings.Join(texts, by) + ")"
}

func valueText(v store.Value) string {
	switch v.Kind {
	case store.KindS:
		return strconv.Quote(v.S)
	case store.KindN:
		return v.S
	case store.KindBOOL:
		return strconv.FormatBool(v.Bool)
	case store.KindNULL:
		return "null"
	case store.KindB:
		return fmt.Sprintf("<%d bytes>", len(v.B))
	}
	return "<value>"
}

// condTexts writes the conditions of a call's parts in order, those without one
// left out.
func condTexts(conds []store.Cond) string {
	var texts []string
	for _, c := range conds {
		if t := condText(c); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "; ")
}
