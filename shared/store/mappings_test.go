package store_test

import (
	"encoding/json"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
)

// Filters are patterns that Lambda takes: objects down to lists of literals.
func TestMappingsAreLiteralPatterns(t *testing.T) {
	t.Parallel()
	var check func(v any) bool
	check = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				if !check(inner) {
					return false
				}
			}
			return len(v) > 0
		case []any:
			for _, inner := range v {
				if _, text := inner.(string); !text {
					return false
				}
			}
			return len(v) > 0
		}
		return false
	}
	for _, m := range store.Mappings {
		for _, f := range m.Filters {
			var p map[string]any
			if err := json.Unmarshal([]byte(f), &p); err != nil || !check(p) {
				t.Errorf("%s: %s: %v", m.Function, f, err)
			}
		}
	}
}
