package catalog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func code(t *testing.T, err error, want execution.Code) {
	t.Helper()
	if execution.CodeOf(err) != want {
		t.Fatalf("got %v, want %q", err, want)
	}
}

// What is set is read whole, by its own tenant; what cannot be read is damage.
func TestRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := memory.New(memory.Options{NoStream: true})
	c := &catalog.Catalog{Table: e.Table(memory.Main)}
	if w, err := c.Workflow(ctx, "a", "wf"); w != nil || err != nil {
		t.Fatalf("%+v %v", w, err)
	}
	if p, err := c.Policy(ctx, "a", "p"); p != nil || err != nil {
		t.Fatalf("%+v %v", p, err)
	}
	if err := c.SetWorkflow(ctx, "a", &api.Workflow{Name: "wf", MaxRecoveries: 7}); err != nil {
		t.Fatal(err)
	}
	if err := c.SetPolicy(ctx, "a", &api.Policy{Name: "p"}); err != nil {
		t.Fatal(err)
	}
	if w, err := c.Workflow(ctx, "a", "wf"); err != nil || w.MaxRecoveries != 7 {
		t.Errorf("%+v %v", w, err)
	}
	if p, err := c.Policy(ctx, "a", "p"); err != nil || p == nil {
		t.Errorf("%+v %v", p, err)
	}
	if w, err := c.Workflow(ctx, "b", "wf"); w != nil || err != nil {
		t.Errorf("another tenant's: %+v %v", w, err)
	}
	// One that is kept parsed follows what is stored, and is its reader's own.
	mine, _ := c.Workflow(ctx, "a", "wf")
	mine.MaxRecoveries = 9
	if w, err := c.Workflow(ctx, "a", "wf"); err != nil || w.MaxRecoveries != 7 {
		t.Errorf("%+v %v", w, err)
	}
	for i := range int64(600) {
		if err := c.SetWorkflow(ctx, "a", &api.Workflow{Name: "wf", MaxRecoveries: i, DefaultPolicy: strings.Repeat("o", int(i%2)*20_000)}); err != nil {
			t.Fatal(err)
		}
		if w, err := c.Workflow(ctx, "a", "wf"); err != nil || w.MaxRecoveries != i {
			t.Fatalf("%+v %v", w, err)
		}
	}
	for _, sk := range []string{catalog.WorkflowPrefix + "bad", catalog.PolicyPrefix + "bad"} {
		if _, err := e.Table(memory.Main).Put(ctx, store.Put{Item: store.Item{store.AttrPK: store.S("a"), store.AttrSK: store.S(sk), "record": store.S("{")}}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := c.Workflow(ctx, "a", "bad")
	if w != nil {
		t.Errorf("%+v", w)
	}
	code(t, err, execution.Integrity)
	p, err := c.Policy(ctx, "a", "bad")
	if p != nil {
		t.Errorf("%+v", p)
	}
	code(t, err, execution.Integrity)
	big := func(n int) *api.Workflow {
		return &api.Workflow{Name: "big", Resolvers: map[string]api.Resolver{"r": {Target: strings.Repeat("x", n)}}}
	}
	if err := c.SetWorkflow(ctx, "a", big(299<<10)); err != nil {
		t.Error(err)
	}
	code(t, c.SetWorkflow(ctx, "a", big(300<<10)), execution.TooLarge)
	// A tenant that is being purged takes nothing, and a store that does not answer is no purge.
	if err := e.SetFaults([]memory.Fault{{On: "transact", Effect: "unavailable", Count: 9}}); err != nil {
		t.Fatal(err)
	}
	code(t, c.SetPolicy(ctx, "a", &api.Policy{Name: "p"}), execution.Unavailable)
	if err := e.SetFaults(nil); err != nil {
		t.Fatal(err)
	}
	k := journal.ClosingKey("a")
	if _, err := e.Table(memory.Main).Put(ctx, store.Put{Item: store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK)}}); err != nil {
		t.Fatal(err)
	}
	err = c.SetPolicy(ctx, "a", &api.Policy{Name: "late"})
	code(t, err, execution.Deleted)
	if execution.AsError(err).Facts["in_progress"] != true {
		t.Errorf("%v", execution.AsError(err).Facts)
	}
	if p, err := c.Policy(ctx, "a", "late"); p != nil || err != nil {
		t.Errorf("%+v %v", p, err)
	}
	if err := c.SetPolicy(ctx, "b", &api.Policy{Name: "p"}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// Settings are at most a minute old, and at once those that this process has set.
func TestCurrentSettings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := memory.New(memory.Options{NoStream: true})
	at := time.Duration(0)
	c := &catalog.Catalog{Table: e.Table(memory.Main), Elapsed: func() time.Duration { return at }}
	other := &catalog.Catalog{Table: e.Table(memory.Main)}
	see := func(c *catalog.Catalog, want string) {
		t.Helper()
		if s, err := c.Current(ctx, "a"); err != nil || s.KMSKey != want {
			t.Errorf("after %v: %q, want %q: %v", at, s.KMSKey, want, err)
		}
	}
	set := func(c *catalog.Catalog, key string) {
		t.Helper()
		if err := c.SetSettings(ctx, "a", api.Settings{KMSKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	see(c, "")
	set(other, "k1")
	at = time.Minute - 1
	see(c, "")
	see(other, "k1")
	at = time.Minute
	see(c, "k1")
	set(c, "k2")
	see(c, "k2")
	if s, err := c.Current(ctx, "b"); err != nil || s.KMSKey != "" {
		t.Errorf("another tenant's: %+v %v", s, err)
	}
}
