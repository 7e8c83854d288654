package stepfunctions_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/shared/execution"
)

type state struct {
	Type     string
	Resource string
	Next     string
	Default  string
	Choices  []struct{ Next string }
	Retry    []struct{ ErrorEquals []string }
	Catch    []struct {
		ErrorEquals []string
		Next        string
	}
	TimeoutSeconds int
}

// Every state that is named exists, every task repeats what heals and only
// that, and names no error that Cairn does not have.
func TestDefinition(t *testing.T) {
	t.Parallel()
	text := stepfunctions.Definition(stepfunctions.Names{Checkpoint: "c", Recover: "r", Desk: "d"}, 0)
	if strings.Contains(text, "${") {
		t.Fatal("a placeholder is left")
	}
	var m struct {
		StartAt string
		States  map[string]state
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{m.StartAt: true}
	for name, s := range m.States {
		next := []string{s.Next, s.Default}
		for _, c := range s.Choices {
			next = append(next, c.Next)
		}
		for _, c := range s.Catch {
			next = append(next, c.Next)
		}
		for _, n := range next {
			if n == "" {
				continue
			}
			if reached[n] = true; m.States[n].Type == "" {
				t.Errorf("%s leads to %s, which is none", name, n)
			}
		}
		if s.Type == "Task" {
			checkTask(t, name, s)
		}
	}
	if len(reached) != len(m.States) {
		t.Errorf("%d of %d states are reached", len(reached), len(m.States))
	}
}

func checkTask(t *testing.T, name string, s state) {
	t.Helper()
	if s.TimeoutSeconds == 0 || len(s.Retry) != 1 {
		t.Errorf("%s: timeout %d, %d retriers", name, s.TimeoutSeconds, len(s.Retry))
		return
	}
	for _, code := range []execution.Code{execution.Throttled, execution.Unavailable, execution.KeyUnavailable, execution.Internal} {
		if !slices.Contains(s.Retry[0].ErrorEquals, string(code)) {
			t.Errorf("%s does not repeat %s", name, code)
		}
	}
	for _, c := range s.Catch {
		for _, e := range c.ErrorEquals {
			if !slices.Contains(execution.Codes, execution.Code(e)) || slices.Contains(s.Retry[0].ErrorEquals, e) {
				t.Errorf("%s catches %s", name, e)
			}
		}
	}
}
