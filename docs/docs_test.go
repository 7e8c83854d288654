// Package docs_test holds the documents to the code: examples decode, field
// names and codes are all there, links lead somewhere, and every test and file
// that a document names exists.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

const root = ".."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var example = regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```")

func TestExamplesOfTheInterfaceDecode(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, m := range example.FindAllStringSubmatch(read(t, "API.md"), -1) {
		action, _, err := api.Decode(m[1], []byte(m[2]))
		if err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, m[2])
		}
		shown[m[1]+" "+action] = true
	}
	for _, v := range api.Verbs {
		if !shown[v.Function+" "+v.Action] {
			t.Errorf("no example of %s %s", v.Function, v.Action)
		}
	}
}

// fields collects the JSON names of a type and of everything inside it.
func fields(t reflect.Type, into map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || strings.Contains(t.PkgPath(), "/jsonx") {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name != "" {
			into[name] = true
		}
		fields(f.Type, into, seen)
	}
}

func TestInterfaceNamesEveryField(t *testing.T) {
	t.Parallel()
	text := read(t, "API.md")
	names := map[string]bool{}
	seen := map[reflect.Type]bool{}
	for _, v := range api.Verbs {
		fields(reflect.TypeOf(v.New()), names, seen)
		fields(reflect.TypeOf(v.NewReply()), names, seen)
	}
	if len(names) < 100 {
		t.Fatalf("only %d fields found", len(names))
	}
	for name := range names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text) {
			t.Errorf("API.md does not name the field %s", name)
		}
	}
}

func TestInterfaceNamesEveryCode(t *testing.T) {
	t.Parallel()
	text := read(t, "API.md")
	for _, c := range execution.Codes {
		retry := "no"
		if c.Retryable() {
			retry = "yes"
		}
		if row := fmt.Sprintf("| `%s` | %s |", c, retry); !strings.Contains(text, row) {
			t.Errorf("API.md has no row %q", row)
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "adr/*.md", "../README.md", "../CONTRIBUTING.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	strip   = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the names under which a document's headings can be linked to.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		out["#"+strings.ReplaceAll(strip.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := name
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(name), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: not there", name, m[1])
			} else if m[2] != "" && !anchors(read(t, target))[m[2]] {
				t.Errorf("%s links to %s%s: no such heading", name, m[1], m[2])
			}
		}
	}
}

var testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)")

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Run)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(b, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, name := range documents(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, name), -1) {
			if named++; !declared[m[1]] {
				t.Errorf("%s names %s: no such test", name, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}

// Every alarm of the stack has a runbook under its name, every metric a line.
// The stack is a module of its own, so its source is read as text.
func TestAlarmsHaveRunbooks(t *testing.T) {
	t.Parallel()
	text := read(t, "OPERATIONS.md")
	headings := strings.Join(heading.FindAllString(text, -1), "\n")
	source := read(t, "../infra/cairncdk/observe.go")
	names := regexp.MustCompile(`\{name: "(\w+)"`).FindAllStringSubmatch(source, -1)
	for _, function := range []string{"Checkpoint", "Recover", "Retention"} {
		names = append(names, []string{"", function + "Throttled"})
	}
	names = append(names, []string{"", "RecoverStreamLag"}, []string{"", "RetentionStreamLag"})
	if len(names) < 10 {
		t.Fatalf("only %d alarms found", len(names))
	}
	for _, m := range names {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(headings) {
			t.Errorf("OPERATIONS.md has no runbook for the alarm %s", m[1])
		}
	}
	metrics := regexp.MustCompile(`(?m)^\t(\w+)\s+= "(\w+)"$`).FindAllStringSubmatch(read(t, "../shared/telemetry/names.go"), -1)
	if len(metrics) < 5 {
		t.Fatalf("only %d metrics found", len(metrics))
	}
	for _, m := range metrics {
		if !strings.Contains(text, "| `"+m[2]+"` |") {
			t.Errorf("OPERATIONS.md does not explain the metric %s", m[2])
		}
	}
}

// Every setting of the CDK app has a line.
func TestSettingsAreExplained(t *testing.T) {
	t.Parallel()
	text := read(t, "DEPLOY.md")
	names := regexp.MustCompile(`(?m)^\t"(\w+)":`).FindAllStringSubmatch(read(t, "../infra/settings.go"), -1)
	if len(names) < 10 {
		t.Fatalf("only %d settings found", len(names))
	}
	for _, m := range names {
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("DEPLOY.md does not explain the setting %s", m[1])
		}
	}
}

// Every kind of credential that is looked for is listed.
func TestSecretKindsAreListed(t *testing.T) {
	t.Parallel()
	text := read(t, "SECURITY.md")
	kinds := regexp.MustCompile(`form\("(\w+)"`).FindAllStringSubmatch(read(t, "../shared/secrets/patterns.go"), -1)
	if len(kinds) < 10 {
		t.Fatalf("only %d kinds found", len(kinds))
	}
	for _, m := range kinds {
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("SECURITY.md does not list %s", m[1])
		}
	}
}

// Every verb of the command has a line.
func TestVerbsOfTheCommandAreListed(t *testing.T) {
	t.Parallel()
	text := read(t, "OPERATIONS.md")
	verbs := regexp.MustCompile("(?m)^\t(\\w+)\\s+\\w+Cmd\\s+`cmd:").FindAllStringSubmatch(read(t, "../cmd/cairn/cli.go"), -1)
	if len(verbs) < 4 {
		t.Fatalf("only %d verbs found", len(verbs))
	}
	for _, m := range verbs {
		if name := "`cairn " + strings.ToLower(m[1]) + "`"; !strings.Contains(text, name) {
			t.Errorf("OPERATIONS.md does not list %s", name)
		}
	}
}
