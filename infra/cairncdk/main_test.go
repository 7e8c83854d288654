package cairncdk_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
)

var (
	placeholders string
	outdir       string
)

// jsii is one process beside this one and not safe for concurrent use, so no
// test here is parallel and the process ends once. A failed assertion of jsii's
// would end everything: the tests read the template instead.
func TestMain(m *testing.M) {
	var err error
	if placeholders, err = os.MkdirTemp("", "cairn-dist-"); err == nil {
		err = synth.Placeholders(placeholders, cairncdk.Functions...)
	}
	if err == nil {
		outdir, err = os.MkdirTemp("", "cairn-out-")
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	jsii.Close()
	os.RemoveAll(placeholders)
	os.RemoveAll(outdir)
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// template is the template of one Cairn with these props; extend may add to it.
func template(t *testing.T, props cairncdk.Props, extend func(awscdk.App, awscdk.Stack, *cairncdk.Cairn)) synth.Result {
	t.Helper()
	context, err := synth.Context("../../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise an error annotation makes the synthesis panic.
	context["@aws-cdk/core:annotationsInValidationReport"] = false
	props.Dist = placeholders
	dir, err := os.MkdirTemp(outdir, "")
	if err != nil {
		t.Fatal(err)
	}
	result, err := synth.Stack(context, dir, false, func(app awscdk.App, stack awscdk.Stack) {
		cairn := cairncdk.NewCairn(stack, "Cairn", &props)
		if extend != nil {
			extend(app, stack, cairn)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// standard is the template of the zero Props, made once, and valid to the CDK.
var standard = sync.OnceValue(func() synth.Result {
	var result synth.Result
	context, err := synth.Context("../../cdk.json")
	if err == nil {
		result, err = synth.Stack(context, outdir+"/standard", true, func(_ awscdk.App, stack awscdk.Stack) {
			cairncdk.NewCairn(stack, "Cairn", &cairncdk.Props{Dist: placeholders})
		})
	}
	if err != nil {
		panic(err)
	}
	return result
})

// get is a resource that must be there.
func get(t *testing.T, r synth.Result, kind, name string) synth.Resource {
	t.Helper()
	resource, ok := r.Get(kind, name)
	if !ok {
		t.Fatalf("no %s named %s; there are %v", kind, name, r.OfType(kind))
	}
	return resource
}

// wantAt compares properties, written as text, by dotted path.
func wantAt(t *testing.T, r synth.Resource, want map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got := synth.Text(r.Properties.At(strings.Split(path, ".")...)); got != want[path] {
			t.Errorf("%s: got %q, want %q", path, got, want[path])
		}
	}
}

// statement is the one with that Sid, which must be there.
func statement(t *testing.T, list []synth.Statement, sid string) synth.Statement {
	t.Helper()
	var sids []string
	for _, s := range list {
		if s.Sid == sid {
			return s
		}
		sids = append(sids, s.Sid)
	}
	t.Fatalf("no statement %s among %v", sid, sids)
	return synth.Statement{}
}
