package wiring_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/cairnstate/cairn/"

// Who may import the AWS SDK: adapters, config, and the mains that start a
// process. lambdacontext and events are data types of the runtime.
var adapters = []string{
	"shared/store/dynamo", "shared/store/s3", "shared/store/awscall", "shared/store/enginetest", "shared/seal/kms", "shared/config", "shared/invoke",
	"shared/ledger/tool", "shared/recovery/aws", "client/awslambda", "cmd/", "functions/", "examples/", "localstack/",
}

// What a package must not import: data flows handler -> service -> journal ->
// store, and recovery and retention do not know each other.
var forbidden = map[string][]string{
	"shared/jsonx":      {"shared/"},
	"shared/execution":  {"shared/store", "shared/seal", "shared/journal", "shared/api"},
	"shared/store":      {"shared/journal", "shared/seal", "shared/api", "shared/ledger"},
	"shared/seal":       {"shared/journal", "shared/api"},
	"shared/journal":    {"shared/api", "shared/ledger", "shared/artifact", "shared/checkpoint", "shared/recovery", "shared/retention", "shared/view"},
	"shared/ledger":     {"shared/checkpoint", "shared/recovery", "shared/retention", "shared/view"},
	"shared/artifact":   {"shared/checkpoint", "shared/recovery", "shared/retention", "shared/view", "shared/ledger"},
	"shared/checkpoint": {"shared/recovery", "shared/retention"},
	"shared/recovery":   {"shared/retention", "shared/checkpoint"},
	"shared/retention":  {"shared/recovery", "shared/checkpoint"},
	"client":            {"shared/journal", "shared/store", "shared/recovery", "shared/retention", "shared/checkpoint"},
}

func TestImportsFlowOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (strings.HasPrefix(rel, ".") && rel != "." || rel == "infra" || rel == "dist" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		checked++
		pkg := filepath.ToSlash(filepath.Dir(rel))
		for _, im := range f.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			checkImport(t, rel, pkg, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 50 {
		t.Fatalf("only %d files looked at", checked)
	}
}

func checkImport(t *testing.T, file, pkg, name string) {
	t.Helper()
	sdk := strings.HasPrefix(name, "github.com/aws/aws-sdk-go-v2") || strings.HasPrefix(name, "github.com/aws/smithy-go") || name == "github.com/aws/aws-lambda-go/lambda"
	if sdk && !slices.ContainsFunc(adapters, func(a string) bool { return strings.HasPrefix(pkg+"/", a) || pkg == a }) {
		t.Errorf("%s imports %s: only adapters and config may", file, name)
	}
	inner, ours := strings.CutPrefix(name, module)
	if !ours {
		return
	}
	for who, what := range forbidden {
		if pkg != who && !strings.HasPrefix(pkg, who+"/") || isAdapterBelow(pkg, who) {
			continue
		}
		for _, w := range what {
			if inner == strings.TrimSuffix(w, "/") || strings.HasPrefix(inner, strings.TrimSuffix(w, "/")+"/") {
				t.Errorf("%s imports %s: data flows one way", file, name)
			}
		}
	}
}

// isAdapterBelow leaves out subpackages that are test kits or adapters of their
// own.
func isAdapterBelow(pkg, who string) bool {
	return pkg != who && (strings.HasSuffix(pkg, "enginetest") || strings.HasSuffix(pkg, "/tool"))
}
