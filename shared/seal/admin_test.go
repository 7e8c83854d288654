package seal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
)

func keyOf(sealed []byte) int64 {
	return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, sealed[2:8]...)))
}

func rotate(t testing.TB, s *seal.Sealer, tenant string) int64 {
	t.Helper()
	g, err := s.Rotate(context.Background(), tenant)
	if err != nil {
		t.Fatalf("rotate: %v", err)
	}
	return g
}

func TestRotate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s, other := b.sealer(), b.sealer()
	old := b.seal(s, place(), "old")
	b.opens(other, place(), old, "old")
	if keys, err := s.Generations(ctx, "nobody"); err != nil || len(keys) != 0 {
		t.Errorf("keys of nobody: %v, %v", keys, err)
	}

	b.advance(time.Minute)
	g2 := rotate(t, s, "bank")
	g3 := rotate(t, s, "bank") // in the same millisecond
	if g2 != day0+60_000 || g3 != g2+1 {
		t.Errorf("generations %d, %d", g2, g3)
	}
	keys, err := other.Generations(ctx, "bank")
	want := []seal.KeyInfo{
		{Generation: day0, Created: time.UnixMilli(day0).UTC(), KMSKey: "stack"},
		{Generation: g2, Created: time.UnixMilli(g2).UTC(), KMSKey: "stack"},
		{Generation: g3, Current: true, Created: time.UnixMilli(g2).UTC(), KMSKey: "stack"},
	}
	if err != nil || len(keys) != 3 || keys[0] != want[0] || keys[1] != want[1] || keys[2] != want[2] {
		t.Errorf("%v, %v", keys, err)
	}

	// This process at once; another within its window, and it reads at once.
	calls := b.kmsCalls()
	fresh := b.seal(s, place(), "new")
	if keyOf(fresh) != g3 || b.kmsCalls() != calls {
		t.Errorf("sealed under %d with %d calls", keyOf(fresh), b.kmsCalls()-calls)
	}
	if k := keyOf(b.seal(other, place(), "x")); k != day0 {
		t.Errorf("the other process sealed under %d", k)
	}
	b.opens(other, place(), fresh, "new")
	if k := keyOf(b.seal(other, place(), "x")); k != g3 {
		t.Errorf("the other process knows %d and seals under %d", g3, k)
	}
	b.advance(s.MaxAge())
	third := b.sealer()
	b.opens(third, place(), old, "old")
	b.opens(third, place(), fresh, "new")
	b.opens(s, place(), old, "old")

	// A generation that is not there, between and around those that are.
	for _, g := range []int64{1, day0 - 1, day0 + 1, g3 + 1} {
		bad := append([]byte(nil), fresh...)
		for i := range 6 {
			bad[2+i] = byte(g >> (8 * (5 - i)))
		}
		_, err := s.Open(ctx, place(), bad)
		wantCode(t, "generation that is not there", err, execution.Integrity)
	}
	// One that is there, but another: not opened by its key.
	bad := append([]byte(nil), fresh...)
	copy(bad[2:8], old[2:8])
	_, err = s.Open(ctx, place(), bad)
	wantCode(t, "wrong generation", err, execution.Integrity)
}

func TestRotateWithoutKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if g := rotate(t, b.sealer(), "bank"); g != day0 {
		t.Errorf("first generation %d", g)
	}
	if keys, _ := b.sealer().Generations(context.Background(), "bank"); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
}

func TestGenerationLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	for range 500 {
		rotate(t, s, "bank")
	}
	_, err := s.Rotate(context.Background(), "bank")
	wantCode(t, "501st", err, execution.TooLarge)
	if size := b.table.items[store.Key{PK: "bank", SK: "keys"}].Size(); size > store.MaxItemBytes/2 {
		t.Errorf("the key item has %d bytes", size)
	}
	b.opens(b.sealer(), place(), b.seal(s, place(), "body"), "body")
}

// Rotations, re-wraps, seals and opens from several processes at once: nothing
// that was sealed is ever unreadable, and tokens do not change.
func TestAdminRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	token, err := b.sealer().Token(ctx, "bank", "subject", "v")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sealed [][]byte
	for i := range 4 {
		s := b.sealer()
		wg.Go(func() {
			for j := range 8 {
				var err error
				switch (i + j) % 4 {
				case 0:
					_, err = s.Rotate(ctx, "bank")
				case 1:
					_, err = s.Rewrap(ctx, "bank", []string{"k1", "k2", ""}[j%3])
				}
				if err != nil && execution.CodeOf(err) != execution.Unavailable {
					t.Error(err)
				}
				out, err := s.Seal(ctx, place(), []byte("body"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				sealed = append(sealed, out)
				mu.Unlock()
				if got, err := s.Token(ctx, "bank", "subject", "v"); got != token {
					t.Errorf("token changed: %v", err)
				}
				b.advance(time.Second)
			}
		})
	}
	wg.Wait()
	last := b.sealer()
	for _, bytes := range sealed {
		b.opens(last, place(), bytes, "body")
	}
	keys, err := last.Generations(ctx, "bank")
	if err != nil || len(keys) < 2 {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestRewrap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.sealer()
	old := b.seal(s, place(), "old")
	rotate(t, s, "bank")
	for range 2 { // a repeat is harmless
		if n, err := s.Rewrap(ctx, "bank", "tenant's own"); n != 2 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	b.kms.SetState("stack", local.Missing)
	b.opens(b.sealer(), place(), old, "old")
	rotate(t, b.sealer(), "bank") // later generations follow
	keys, err := s.Generations(ctx, "bank")
	if err != nil || len(keys) != 3 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, k := range keys {
		if k.KMSKey != "tenant's own" {
			t.Errorf("%+v", k)
		}
	}
	if n, err := s.Rewrap(ctx, "nobody", "x"); n != 0 || err != nil {
		t.Errorf("nobody: %d, %v", n, err)
	}
	b.kms.SetState("stack", local.Enabled)
	if n, err := s.Rewrap(ctx, "bank", ""); n != 3 || err != nil { // back to the stack's
		t.Errorf("%d, %v", n, err)
	}
	if keys, err := s.Generations(ctx, "bank"); err != nil || keys[2].KMSKey != "stack" {
		t.Errorf("back under %+v, %v", keys, err)
	}
	b.kms.SetState("tenant's own", local.Disabled)
	b.opens(b.sealer(), place(), old, "old")

	// The new key is not usable: nothing changes.
	_, err = s.Rewrap(ctx, "bank", "tenant's own")
	wantCode(t, "to a disabled key", err, execution.KeyUnavailable)
	b.opens(b.sealer(), place(), old, "old")
}

// Another administrator comes first, between the read and the write: a rotation
// still makes a key, and a re-wrapping leaves none under the old one.
func TestAdminOvertaken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		first, then func(s *seal.Sealer) error
	}{
		"re-wrapped under a rotation": {
			func(s *seal.Sealer) error { _, err := s.Rewrap(ctx, "bank", "own"); return err },
			func(s *seal.Sealer) error {
				g, err := s.Rotate(ctx, "bank")
				if err == nil && g == day0 {
					t.Error("no new key")
				}
				return err
			},
		},
		"rotated under a re-wrapping": {
			func(s *seal.Sealer) error { _, err := s.Rotate(ctx, "bank"); return err },
			func(s *seal.Sealer) error {
				n, err := s.Rewrap(ctx, "bank", "own")
				if n != 2 {
					t.Errorf("%d wrapped", n)
				}
				return err
			},
		},
		"re-wrapped elsewhere under a re-wrapping": {
			func(s *seal.Sealer) error {
				if _, err := s.Rewrap(ctx, "bank", "elsewhere"); err != nil {
					return err
				}
				_, err := s.Rotate(ctx, "bank")
				return err
			},
			func(s *seal.Sealer) error { _, err := s.Rewrap(ctx, "bank", "own"); return err },
		},
	} {
		b := newBench(t)
		sealed := b.seal(b.sealer(), place(), "body")
		b.table.before = func(call string) {
			if call == "put" {
				b.table.before = nil
				if err := c.first(b.sealer()); err != nil {
					t.Errorf("%s: first: %v", name, err)
				}
			}
		}
		if err := c.then(b.sealer()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		keys, err := b.sealer().Generations(ctx, "bank")
		if err != nil || len(keys) != 2 || keys[0].KMSKey != "own" || keys[1].KMSKey != "own" {
			t.Errorf("%s: %+v, %v", name, keys, err)
		}
		b.opens(b.sealer(), place(), sealed, "body")
	}
}

func TestShred(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s, other := b.sealer(), b.sealer()
	b.seal(s, seal.Place{Tenant: "bank2", Kind: "k"}, "")
	old := b.seal(s, place(), "old")
	rotate(t, s, "bank")
	b.opens(other, place(), old, "old")
	token, _ := s.Token(ctx, "bank", "subject", "v")
	for range 2 {
		if err := s.Shred(ctx, "bank"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := b.table.items[store.Key{PK: "bank2", SK: "keys"}]; !ok || len(b.table.items) != 1 {
		t.Errorf("%d items left", len(b.table.items))
	}
	_, err := s.Open(ctx, place(), old)
	wantCode(t, "open afterwards", err, execution.KeyUnavailable)
	if !errors.Is(err, seal.ErrNoKeys) {
		t.Error("not marked as without keys")
	}
	// The other process has copies until its window ends.
	b.opens(other, place(), old, "old")
	b.advance(other.MaxAge())
	_, err = other.Open(ctx, place(), old)
	wantCode(t, "open elsewhere, later", err, execution.KeyUnavailable)

	// The id again: new keys, under which nothing old means anything.
	fresh := b.seal(s, place(), "new")
	if keyOf(fresh) <= keyOf(old) {
		t.Errorf("generation %d after %d", keyOf(fresh), keyOf(old))
	}
	b.opens(other, place(), fresh, "new")
	_, err = s.Open(ctx, place(), old)
	wantCode(t, "open under new keys", err, execution.Integrity)
	if again, _ := s.Token(ctx, "bank", "subject", "v"); again == token || again == "" {
		t.Errorf("token %q after shredding, %q before", again, token)
	}
}

// Shredding while a fetch of the same keys is under way: what it brings is not
// kept.
func TestShredDuringFetch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	old := b.seal(b.sealer(), place(), "old")
	s := b.sealer()
	once := sync.Once{}
	shredder := b.sealer()
	b.kms.Before = func(context.Context, string, string) error {
		once.Do(func() {
			if err := s.Shred(ctx, "bank"); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	_, err := s.Open(ctx, place(), old)
	wantCode(t, "open", err, execution.KeyUnavailable)
	_, err = shredder.Open(ctx, place(), old)
	wantCode(t, "open elsewhere", err, execution.KeyUnavailable)
}

// A writer that was frozen before its write and wakes up after the keys were
// shredded and made anew, in the same millisecond, touches nothing of them.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, late := range map[string]struct {
		call string
		do   func(s *seal.Sealer) error
	}{
		"shred":    {"delete", func(s *seal.Sealer) error { return s.Shred(ctx, "bank") }},
		"rotation": {"put", func(s *seal.Sealer) error { _, err := s.Rotate(ctx, "bank"); return err }},
		"rewrap":   {"put", func(s *seal.Sealer) error { _, err := s.Rewrap(ctx, "bank", "k"); return err }},
	} {
		b := newBench(t)
		b.seal(b.sealer(), place(), "old")
		frozen, other := b.sealer(), b.sealer()
		var fresh []byte
		b.table.before = func(call string) {
			if call != late.call || fresh != nil {
				return
			}
			b.table.before = nil
			if err := other.Shred(ctx, "bank"); err != nil {
				t.Error(err)
			}
			fresh = b.seal(other, place(), "new")
		}
		err := late.do(frozen)
		if fresh == nil {
			t.Fatalf("%s: nothing was late", name)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.opens(b.sealer(), place(), fresh, "new")
		b.opens(frozen, place(), fresh, "new")
	}
	// Older than the store's window: refused, not made.
	b := newBench(t)
	b.table.before = func(call string) {
		if call == "put" {
			b.advance(store.Window + time.Second)
		}
	}
	_, err := b.sealer().Seal(ctx, place(), nil)
	wantCode(t, "first key, too late", err, execution.Unavailable)
	if len(b.table.items) != 0 {
		t.Error("written too late")
	}
}
