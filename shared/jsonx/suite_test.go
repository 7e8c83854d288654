package jsonx

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData finds a folder of public test data beside the repository. Without
// it the test is skipped; the tables in this package cover the same ground in
// small.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	for dir, i := "..", 0; i < 6; i++ {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			data := filepath.Join(dir, "..", "shared", "data", name)
			if _, err := os.Stat(data); err == nil {
				return data
			}
			break
		}
		dir = filepath.Join(dir, "..")
	}
	t.Skipf("SKIP 1: no data %s beside the repository", name)
	return ""
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func suiteFiles(t *testing.T, dir string, least int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < least {
		t.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	return files
}

// compact drops the white space between tokens, without knowing JSON more than
// that.
func compact(data []byte) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case inString && c == '\\':
			b.WriteByte(c)
			i++
			c = data[i]
		case c == '"':
			inString = !inString
		case !inString && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func TestSuiteParsing(t *testing.T) {
	t.Parallel()
	counts := map[byte]int{}
	for _, file := range suiteFiles(t, filepath.Join(sharedData(t, "jsontestsuite"), "test_parsing"), 300) {
		name, data := filepath.Base(file), readFile(t, file)
		counts[name[0]]++
		v, err := Parse(data)
		duplicates := name == "y_object_duplicated_key.json" || name == "y_object_duplicated_key_and_value.json"
		switch {
		case name[0] == 'y' && duplicates:
			if e, ok := err.(*SyntaxError); !ok || e.Reason != ReasonDuplicateMember {
				t.Errorf("%s: %v", name, err)
			}
		case name[0] == 'y' && err != nil:
			t.Errorf("%s refused: %v", name, err)
		case name[0] == 'n' && err == nil:
			t.Errorf("%s accepted", name)
		case err == nil && v.String() != compact(data):
			t.Errorf("%s altered: %q", name, v)
		}
	}
	t.Logf("y %d, n %d, i %d", counts['y'], counts['n'], counts['i'])
}

func TestSuiteTransform(t *testing.T) {
	t.Parallel()
	refused := map[string]string{
		"object_same_key_different_values.json": ReasonDuplicateMember,
		"object_same_key_same_value.json":       ReasonDuplicateMember,
		"object_same_key_unclear_values.json":   ReasonDuplicateMember,
		"string_1_invalid_codepoint.json":       ReasonUTF8,
		"string_2_invalid_codepoints.json":      ReasonUTF8,
		"string_3_invalid_codepoints.json":      ReasonUTF8,
	}
	for _, file := range suiteFiles(t, filepath.Join(sharedData(t, "jsontestsuite"), "test_transform"), 20) {
		name, data := filepath.Base(file), readFile(t, file)
		v, err := Parse(data)
		if reason := refused[name]; reason != "" {
			if e, ok := err.(*SyntaxError); !ok || e.Reason != reason {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || v.String() != compact(data) {
			t.Errorf("%s: %v, %s", name, err, v)
		}
	}
}

func TestSuitePatch(t *testing.T) {
	t.Parallel()
	ran, disabled := 0, 0
	dir := sharedData(t, "json-patch-tests")
	for _, file := range []string{"tests.json", "spec_tests.json"} {
		// The files hold patches with the same key twice on purpose: each
		// record is parsed by itself, and such a one must fail.
		records := splitArray(t, readFile(t, filepath.Join(dir, file)))
		for i, text := range records {
			record, err := ParseString(text)
			if err != nil {
				if !strings.Contains(text, `"error"`) {
					t.Errorf("%s %d: %v", file, i, err)
				}
				ran++
				continue
			}
			if record.Get("disabled").Kind() == True {
				disabled++
				continue
			}
			if record.Get("patch") == nil {
				continue
			}
			ran++
			comment := record.Get("comment").Raw()
			doc, before := record.Get("doc"), record.Get("doc").String()
			got, err := ApplyPatch(doc, record.Get("patch"))
			switch want := record.Get("expected"); {
			case record.Get("error") != nil:
				if err == nil || got != nil {
					t.Errorf("%s %d %s: no error, %s", file, i, comment, got)
				}
			case err != nil:
				t.Errorf("%s %d %s: %v", file, i, comment, err)
			case want != nil && !EqualValue(got, want):
				t.Errorf("%s %d %s: got %s, want %s", file, i, comment, got, want)
			case got.Size() != len(got.String()):
				t.Errorf("%s %d: size %d of %s", file, i, got.Size(), got)
			}
			if doc.String() != before {
				t.Errorf("%s %d: document changed", file, i)
			}
		}
	}
	t.Logf("%d records ran, %d disabled ones skipped", ran, disabled)
	if ran < 100 {
		t.Errorf("only %d records ran", ran)
	}
}

// TestSuiteAgentRuns replays recorded agent conversations: after every message
// the state's patch is about that message, and applying all patches in turn
// gives every state exactly.
func TestSuiteAgentRuns(t *testing.T) {
	t.Parallel()
	file, err := os.Open(filepath.Join(sharedData(t, "agent-runs"), "airline-runs.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for i, r := range runs.Elems()[:40] {
		messages := r.Get("traj").Elems()
		state := NewObject(Member{Key("info"), r.Get("info")}, Member{Key("step"), NewInt(0)}, Member{Key("messages"), NewArray()})
		for n := range messages {
			next := NewObject(Member{Key("info"), r.Get("info")}, Member{Key("step"), NewInt(int64(n) + 1)}, Member{Key("messages"), NewArray(messages[:n+1]...)})
			next = MustParse(next.String())
			patch := checkDiff(t, state, next)
			if patch.Len() != 2 || patch.Size() > messages[n].Size()+150 {
				t.Fatalf("run %d message %d: %d operations, %d bytes", i, n, patch.Len(), patch.Size())
			}
			state = next
			steps++
		}
	}
	t.Logf("%d steps", steps)
	if steps < 400 {
		t.Errorf("only %d steps", steps)
	}
}

// splitArray returns the texts of the elements of an array.
func splitArray(t *testing.T, data []byte) (texts []string) {
	t.Helper()
	depth, start, inString := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth == 1 {
				start = i + 1
			}
		case depth == 1 && (c == ',' || c == ']'):
			texts = append(texts, string(data[start:i]))
			start = i + 1
		case c == ']' || c == '}':
			depth--
		}
	}
	return texts
}
