package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
)

// pattern is an EventBridge pattern over a stream record, as event source
// mappings filter by it: every field named must be there and match one of its
// alternatives (a literal, {"prefix": p} or {"exists": b}).
type pattern map[string]any

// parsePattern reads a pattern and refuses what matches does not know, so that
// the sandbox never lets through what the stack would not.
func parsePattern(text string) (pattern, error) {
	var p pattern
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("sandbox: filter %s: %w", text, err)
	}
	return p, checkPattern(p, text)
}

func checkPattern(p map[string]any, text string) error {
	for name, want := range p {
		switch want := want.(type) {
		case map[string]any:
			if err := checkPattern(want, text); err != nil {
				return err
			}
		case []any:
			for _, alternative := range want {
				if rule, isRule := alternative.(map[string]any); isRule && !knownRule(rule) {
					return fmt.Errorf("sandbox: filter %s: field %s: only literals, prefix and exists are known", text, name)
				}
			}
		default:
			return fmt.Errorf("sandbox: filter %s: field %s must be an object or a list", text, name)
		}
	}
	return nil
}

func knownRule(rule map[string]any) bool {
	_, prefix := rule["prefix"].(string)
	_, exists := rule["exists"].(bool)
	return len(rule) == 1 && (prefix || exists)
}

// matches reports whether a record (decoded JSON) matches.
func (p pattern) matches(record map[string]any) bool {
	for name, want := range p {
		have, there := record[name]
		switch want := want.(type) {
		case map[string]any:
			inner, _ := have.(map[string]any)
			if !pattern(want).matches(inner) {
				return false
			}
		case []any:
			if !matchesOne(want, have, there) {
				return false
			}
		}
	}
	return true
}

func matchesOne(alternatives []any, have any, there bool) bool {
	for _, want := range alternatives {
		rule, isRule := want.(map[string]any)
		if !isRule {
			if there && have == want {
				return true
			}
			continue
		}
		if exists, ok := rule["exists"].(bool); ok {
			if exists == there {
				return true
			}
			continue
		}
		text, isText := have.(string)
		if isText && strings.HasPrefix(text, rule["prefix"].(string)) {
			return true
		}
	}
	return false
}
