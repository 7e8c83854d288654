package seal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// The whole life of a tenant's keys on a real backend, with every kind of
// scripted fault at each of its writes.
func TestOnMemoryStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, effect := range []string{"", "lost", "landed"} {
		e := memory.New(memory.Options{})
		script := func(on string) {
			if effect == "" {
				return
			}
			if err := e.SetFaults([]memory.Fault{{On: on, Effect: effect}}); err != nil {
				t.Fatal(err)
			}
		}
		kms := &local.KMS{Master: []byte("master")}
		process := func() *seal.Sealer {
			return seal.New(seal.Options{Keys: e.Table(memory.Keys), KMS: kms, KeyID: "stack", Now: e.Now})
		}
		s := process()
		script("put")
		first, err := s.Seal(ctx, place(), []byte("first"))
		if err != nil {
			t.Fatalf("%s: %v", effect, err)
		}
		script("put")
		g, err := s.Rotate(ctx, "bank")
		if err != nil {
			t.Fatalf("%s: %v", effect, err)
		}
		second, err := s.Seal(ctx, place(), []byte("second"))
		if err != nil || keyOf(second) != g {
			t.Fatalf("%s: sealed under %d, %v", effect, keyOf(second), err)
		}
		script("put")
		if n, err := s.Rewrap(ctx, "bank", "own"); n != 2 || err != nil {
			t.Fatalf("%s: %d, %v", effect, n, err)
		}

		// A dump and its load are the same keys.
		dump := e.Dump()
		if !slices.ContainsFunc(dump.Keys, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"bank"`)) }) {
			t.Fatal("the dump shows no keys")
		}
		e.Reset()
		_, err = process().Open(ctx, place(), first)
		wantCode(t, effect+": everything gone", err, execution.KeyUnavailable)
		if err := e.Load(dump); err != nil {
			t.Fatal(err)
		}
		for want, sealed := range map[string][]byte{"first": first, "second": second} {
			if got, err := process().Open(ctx, place(), sealed); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", effect, got, err)
			}
		}

		script("delete")
		if err := s.Shred(ctx, "bank"); err != nil {
			t.Errorf("%s: %v", effect, err)
		}
		for _, item := range e.Dump().Keys {
			if bytes.Contains(item, []byte(`"bank"`)) {
				t.Errorf("%s: left in the key table: %s", effect, item)
			}
		}
		_, err = process().Open(ctx, place(), first)
		wantCode(t, effect+": shredded", err, execution.KeyUnavailable)
	}
}
