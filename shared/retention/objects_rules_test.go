package retention

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// What an object's key says, and what it does not.
func TestParseObjectKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"t/e/x/7/journal/1-ab": true, "t/e/x/7/artifacts/a/b": true, "t/archive/x/7/f/g": false, "t/e/x/7/journal": false, "t/e/x/z/journal/1": false, "": false} {
		ref, area, name, ok := parseObjectKey(key)
		if ok != want || ok && (ref != (execution.Ref{Tenant: "t", Execution: "x", Generation: 7}) || area == "" || name == "") {
			t.Errorf("%s: %v %s %s %v", key, ref, area, name, ok)
		}
	}
	for name, want := range map[string]int64{"00000000000000000012-ab": 12, "7": 7, "x-ab": -1, "": -1} {
		if v, ok := bodyVersion(candidate{area: "journal", name: name}); ok != (want >= 0) || ok && v != want {
			t.Errorf("%q: %d %v", name, v, ok)
		}
	}
	if _, ok := bodyVersion(candidate{area: "artifacts", name: "7"}); ok {
		t.Error("an artifact is no body")
	}
}

// Whose objects may be judged at all: nothing of an execution that is being
// deleted, that nobody can read or whose status nobody knows; everything of a
// life that is over.
func TestOwner(t *testing.T) {
	t.Parallel()
	ref := execution.Ref{Tenant: "t", Execution: "x", Generation: 7}
	head := func(generation int64, status string) store.Item {
		k := journal.HeadKey(ref.PK())
		return store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), journal.HeadGeneration: store.N(generation), journal.HeadStatus: store.S(status), headBundled: store.N(4)}
	}
	for name, tt := range map[string]struct {
		head       store.Item
		gone, skip bool
		bundled    int64
	}{
		"there": {head(7, "running"), false, false, 4}, "ended": {head(7, "completed"), false, false, 4}, "none": {nil, true, false, 0}, "another life": {head(8, "running"), true, false, 0},
		"being deleted": {head(7, "deleting"), false, true, 0}, "a status nobody knows": {head(7, "dreaming"), false, true, 0},
		"no head": {store.Item{store.AttrPK: store.S("x"), store.AttrSK: store.S("head")}, false, true, 0},
	} {
		if o := newOwner(ref, tt.head); o.gone != tt.gone || o.skip != tt.skip || o.bundled != tt.bundled {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// What is nobody's: a body that the entry of its version does not name, and what
// is left of a life that is over. What nobody can tell stays.
func TestOrphan(t *testing.T) {
	t.Parallel()
	ref := execution.Ref{Tenant: "t", Execution: "x", Generation: 7}
	digest := make([]byte, 32)
	digest[0] = 9
	name := "00000000000000000003-" + hex.EncodeToString(digest)
	entry := func(generation int64, digest []byte) map[store.Key]store.Item {
		k := journal.EntryKey(ref.PK(), 3)
		return map[store.Key]store.Item{k: {store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "k": store.S("checkpoint"), "g": store.N(generation), "t": store.N(5), "n": store.N(1), "p": store.B(make([]byte, 32)), "o": store.B(digest), "os": store.N(9)}}
	}
	at := func(area, name string) candidate { return candidate{ref: ref, area: area, name: name} }
	marker := at("other", "x")
	marker.obj.DeleteMarker = true
	accepted := map[string]struct{}{"a": {}}
	for what, tt := range map[string]struct {
		o     owner
		c     candidate
		found map[store.Key]store.Item
		want  bool
	}{
		"named":                  {owner{}, at("journal", name), entry(7, digest), false},
		"another digest":         {owner{}, at("journal", name), entry(7, make([]byte, 32)), true},
		"another life's entry":   {owner{}, at("journal", name), entry(6, digest), true},
		"no entry":               {owner{}, at("journal", name), nil, true},
		"no version":             {owner{}, at("journal", "x"), nil, false},
		"of what is skipped":     {owner{skip: true}, at("journal", name), nil, false},
		"of what is gone":        {owner{gone: true}, at("journal", name), entry(7, digest), true},
		"a delete marker":        {owner{}, marker, nil, true},
		"skipped, a marker":      {owner{skip: true}, marker, nil, false},
		"a view":                 {owner{}, at("views", "x"), nil, true},
		"an area nobody knows":   {owner{}, at("other", "x"), nil, false},
		"an accepted artifact":   {owner{accepted: accepted, results: map[string]struct{}{}}, at("artifacts", "a"), nil, false},
		"a result of the ledger": {owner{accepted: map[string]struct{}{}, results: accepted}, at("artifacts", "a"), nil, false},
		"an artifact of nobody":  {owner{accepted: accepted, results: accepted}, at("artifacts", "b"), nil, true},
	} {
		o := tt.o
		o.ref = ref
		got, err := (&round{}).orphan(context.Background(), &o, tt.c, tt.found)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v %v", what, got, err)
		}
	}
}
