package local_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
)

var _ seal.KMS = (*local.KMS)(nil)

func TestWrap(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	encCtx := map[string]string{"tenant": "t", "purpose": "state"}
	k := &local.KMS{Master: []byte("master")}
	plain, wrapped, err := k.GenerateDataKey(ctx, "k", encCtx)
	if err != nil || len(plain) != 32 || bytes.Contains(wrapped, plain) {
		t.Fatalf("generate: %d bytes plain, %v", len(plain), err)
	}
	// The same master secret is the same KMS.
	got, err := (&local.KMS{Master: []byte("master")}).Decrypt(ctx, "k", wrapped, maps.Clone(encCtx))
	if err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("decrypt elsewhere: %v", err)
	}
	again, err := k.Encrypt(ctx, "k2", plain, encCtx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = k.Decrypt(ctx, "k2", again, encCtx); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("decrypt what was encrypted: %v", err)
	}
	cut := func(n int) []byte { return wrapped[:n] }
	for name, try := range map[string]func() ([]byte, error){
		"other master": func() ([]byte, error) { return (&local.KMS{Master: []byte("x")}).Decrypt(ctx, "k", wrapped, encCtx) },
		"other key":    func() ([]byte, error) { return k.Decrypt(ctx, "k2", wrapped, encCtx) },
		"other tenant": func() ([]byte, error) {
			return k.Decrypt(ctx, "k", wrapped, map[string]string{"tenant": "u", "purpose": "state"})
		},
		"less context": func() ([]byte, error) { return k.Decrypt(ctx, "k", wrapped, map[string]string{"tenant": "t"}) },
		"more context": func() ([]byte, error) {
			return k.Decrypt(ctx, "k", wrapped, map[string]string{"tenant": "t", "purpose": "state", "x": ""})
		},
		"moved context": func() ([]byte, error) {
			return k.Decrypt(ctx, "k", wrapped, map[string]string{"tenant": "tpurpose", "": "state"})
		},
		"no context":     func() ([]byte, error) { return k.Decrypt(ctx, "k", wrapped, nil) },
		"empty":          func() ([]byte, error) { return k.Decrypt(ctx, "k", nil, encCtx) },
		"cut to version": func() ([]byte, error) { return k.Decrypt(ctx, "k", cut(1), encCtx) },
		"cut to nonce":   func() ([]byte, error) { return k.Decrypt(ctx, "k", cut(13), encCtx) },
		"cut":            func() ([]byte, error) { return k.Decrypt(ctx, "k", cut(len(wrapped)-1), encCtx) },
	} {
		if got, err := try(); store.KindOf(err) != store.Invalid {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	for i := range 8 * len(wrapped) {
		bad := bytes.Clone(wrapped)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := k.Decrypt(ctx, "k", bad, encCtx); store.KindOf(err) != store.Invalid {
			t.Errorf("bit %d flipped: %v", i, err)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 4097)} {
		if _, err := k.Encrypt(ctx, "k", bad, encCtx); store.KindOf(err) != store.Invalid {
			t.Errorf("encrypt %d bytes: %v", len(bad), err)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	k := &local.KMS{Master: []byte("master")}
	_, wrapped, err := k.GenerateDataKey(ctx, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	for state, want := range map[local.State]store.ErrorKind{
		local.Disabled: store.KeyTrouble, local.PendingDeletion: store.KeyTrouble, local.Missing: store.KeyTrouble, local.Denied: store.Denied,
	} {
		k.SetState("k", state)
		_, _, e1 := k.GenerateDataKey(ctx, "k", nil)
		_, e2 := k.Encrypt(ctx, "k", []byte("p"), nil)
		_, e3 := k.Decrypt(ctx, "k", wrapped, nil)
		for _, err := range []error{e1, e2, e3} {
			if store.KindOf(err) != want {
				t.Errorf("%s: %v", state, err)
			}
		}
		if _, _, err := k.GenerateDataKey(ctx, "other", nil); err != nil {
			t.Errorf("%s: another key: %v", state, err)
		}
	}
	k.SetState("k", local.Enabled)
	if _, err := k.Decrypt(ctx, "k", wrapped, nil); err != nil {
		t.Error(err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := k.Decrypt(stopped, "k", wrapped, nil); store.KindOf(err) != store.Stopped || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	boom := errors.New("boom")
	var log []string
	k := &local.KMS{Master: []byte("master"), Before: func(_ context.Context, call, key string) error {
		log = append(log, call+" "+key)
		if len(log) > 3 {
			return boom
		}
		return nil
	}}
	encCtx := map[string]string{"tenant": "t", "generation": "7"}
	for i := range 2 {
		plain, wrapped, err := k.GenerateDataKey(ctx, "k", encCtx)
		if i == 1 {
			if err != boom || plain != nil || wrapped != nil {
				t.Errorf("refused: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Encrypt(ctx, "k", plain, encCtx); err != nil {
			t.Error(err)
		}
		if _, err := k.Decrypt(ctx, "k", wrapped, encCtx); err != nil {
			t.Error(err)
		}
	}
	want := []string{"kms_generate t#7", "kms_encrypt t#7", "kms_decrypt t#7", "kms_generate t#7"}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}
