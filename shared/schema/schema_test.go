package schema_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/schema"
	"pgregory.net/rapid"
)

func patch(from, to int64, text string) schema.Step {
	return schema.Step{From: from, To: to, Patch: jsonx.MustParse(text)}
}

var steps = []schema.Step{
	patch(1, 2, `[{"op":"add","path":"/retries","value":3}]`),
	patch(2, 3, `[{"op":"move","from":"/thread_id","path":"/thread"}]`),
	patch(3, 5, `[{"op":"remove","path":"/parents"}]`),
	{From: 5, To: 6, Renamed: []execution.Rename{{From: "fetch", To: "get"}}, Do: func(_ context.Context, s *jsonx.Value) (schema.Result, error) {
		out, err := jsonx.MergePatch(s, jsonx.MustParse(`{"v":6}`))
		return schema.Result{State: out, Renamed: []execution.Rename{{From: "a", To: "b"}}}, err
	}},
}

// The bytes of a state of every version, as they were written, and what they are
// at the newest one.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v*.json")
	if err != nil || len(files) != 5 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	want, err := os.ReadFile("testdata/want.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		from := int64(f[len("testdata/v")] - '0')
		chain, err := schema.Chain(steps, from, 6)
		if err != nil {
			t.Fatal(err)
		}
		state := jsonx.MustParse(string(b))
		before := string(state.Bytes())
		got, err := schema.Run(context.Background(), chain, state)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if string(got.State.Bytes()) != strings.TrimSpace(string(want)) {
			t.Errorf("%s: %s", f, got.State.Bytes())
		}
		if string(state.Bytes()) != before {
			t.Errorf("%s: the state itself changed", f)
		}
		if from < 6 && (len(got.Renamed) != 2 || got.Renamed[0].To != "get" || got.Renamed[1].To != "b") {
			t.Errorf("%s: renamed %v", f, got.Renamed)
		}
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int64
		steps    int // -1: none leads there
	}{{1, 1, 0}, {1, 2, 1}, {1, 6, 4}, {2, 6, 3}, {1, 4, -1}, {4, 6, -1}, {6, 5, -1}, {1, 9, -1}, {0, 1, -1}} {
		chain, err := schema.Chain(steps, c.from, c.to)
		if c.steps < 0 {
			if execution.CodeOf(err) != execution.MigrationFailed {
				t.Errorf("%d to %d: %v, %v", c.from, c.to, chain, err)
			}
			continue
		}
		if err != nil || len(chain) != c.steps {
			t.Errorf("%d to %d: %d steps, %v", c.from, c.to, len(chain), err)
		}
	}
	// A short cut is taken, a dead end is not, a step back is none.
	odd := []schema.Step{patch(1, 2, `[]`), patch(2, 3, `[]`), patch(1, 3, `[]`), patch(1, 4, `[]`), patch(3, 1, `[]`), patch(3, 6, `[]`)}
	if chain, err := schema.Chain(odd, 1, 6); err != nil || len(chain) != 2 || chain[0].To != 3 {
		t.Errorf("%v, %v", chain, err)
	}
}

func TestChainIsConnected(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var odd []schema.Step
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			odd = append(odd, patch(rapid.Int64Range(0, 6).Draw(t, "from"), rapid.Int64Range(0, 6).Draw(t, "to"), `[]`))
		}
		from, to := rapid.Int64Range(0, 6).Draw(t, "a"), rapid.Int64Range(0, 6).Draw(t, "b")
		chain, err := schema.Chain(odd, from, to)
		if err != nil {
			return
		}
		at := from
		for _, s := range chain {
			if s.From != at || s.To <= s.From {
				t.Fatalf("%v", chain)
			}
			at = s.To
		}
		if at != to {
			t.Fatalf("ends at %d", at)
		}
	})
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	do := func(text string, err error) []schema.Step {
		return []schema.Step{{From: 1, To: 2, Do: func(context.Context, *jsonx.Value) (schema.Result, error) {
			if err != nil {
				return schema.Result{}, err
			}
			if text == "" {
				return schema.Result{}, nil
			}
			return schema.Result{State: jsonx.MustParse(text)}, nil
		}}}
	}
	for name, c := range map[string]struct {
		chain []schema.Step
		code  execution.Code
		path  any
	}{
		"a missing member":         {[]schema.Step{patch(1, 2, `[{"op":"remove","path":"/nope"}]`)}, execution.MigrationFailed, "/nope"},
		"no object":                {[]schema.Step{patch(1, 2, `[{"op":"replace","path":"","value":1}]`)}, execution.MigrationFailed, nil},
		"a function's array":       {do(`[]`, nil), execution.MigrationFailed, nil},
		"a function's nothing":     {do("", nil), execution.MigrationFailed, nil},
		"a function's error":       {do("", errors.New("secret-value")), execution.MigrationFailed, nil},
		"a function that is off":   {do("", execution.Errorf(execution.Unavailable, "later")), execution.Unavailable, nil},
		"a function that broke":    {do("", execution.Errorf(execution.Internal, "secret-value")), execution.MigrationFailed, nil},
		"a function that is wrong": {do("", execution.Errorf(execution.Halted, "secret-value")), execution.MigrationFailed, nil},
		"a patch too large":        {[]schema.Step{patch(1, 2, `[{"op":"add","path":"/x","value":"`+strings.Repeat("x", execution.MaxStateBytes)+`"}]`)}, execution.MigrationFailed, "/x"},
		"too large":                {do(`{"x":"`+strings.Repeat("x", execution.MaxStateBytes)+`"}`, nil), execution.MigrationFailed, nil},
		"too deep":                 {do(`{"x":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}`, nil), execution.MigrationFailed, nil},
	} {
		if name == "too deep" {
			deep, err := jsonx.ParseLimits([]byte(`{"x":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}`), jsonx.Limits{Depth: 600})
			if err != nil {
				t.Fatal(err)
			}
			c.chain[0].Do = func(context.Context, *jsonx.Value) (schema.Result, error) { return schema.Result{State: deep}, nil }
		}
		_, err := schema.Run(context.Background(), c.chain, jsonx.MustParse(`{"a":1}`))
		e := execution.AsError(err)
		if e == nil || e.Code != c.code || e.Facts["path"] != c.path {
			t.Errorf("%s: %v %v", name, err, e.Facts)
		}
		if strings.Contains(e.Error(), "secret-value") {
			t.Errorf("%s: shows the cause", name)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, min, max int64
		below            bool
		code             execution.Code
	}{{1, 1, 1, false, ""}, {1, 0, 3, false, ""}, {1, 2, 3, true, ""}, {4, 2, 3, false, execution.SchemaTooNew}, {0, 0, 0, false, ""}} {
		below, err := schema.Check(c.stored, c.min, c.max)
		if below != c.below || execution.CodeOf(err) != c.code {
			t.Errorf("%+v: %v, %v", c, below, err)
		}
	}
}
