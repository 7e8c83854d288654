package api

import (
	"encoding/json"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// plain is a JSON value as plain Go values: nil, bool, string, int64,
// json.Number, []any, map[string]any.
func plain(v *jsonx.Value) any {
	switch v.Kind() {
	case jsonx.True, jsonx.False:
		b, _ := v.Bool()
		return b
	case jsonx.String:
		s, _ := v.Text()
		return s
	case jsonx.Number:
		if n, ok := v.IsInt64(); ok {
			return n
		}
		return json.Number(v.Raw())
	case jsonx.Array:
		list := make([]any, v.Len())
		for i, e := range v.Elems() {
			list[i] = plain(e)
		}
		return list
	case jsonx.Object:
		table := make(map[string]any, v.Len())
		for _, m := range v.Members() {
			table[nameOf(m)] = plain(m.Value)
		}
		return table
	}
	return nil
}
