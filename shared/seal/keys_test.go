package seal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
)

// One KMS call per tenant and window, for any number of steps.
func TestKMSCallsPerWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	sealed := b.seal(s, place(), "body")
	for window := range 4 {
		for i := range 300 {
			b.seal(s, place(), "body")
			b.opens(s, place(), sealed, "body")
			if _, err := s.Token(context.Background(), "bank", "subject", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			b.advance(time.Second)
		}
		if got := b.kmsCalls(); got != window+1 {
			t.Fatalf("window %d: %d KMS calls", window, got)
		}
		b.advance(s.MaxAge() - 300*time.Second)
	}
	if got := b.table.calls["get"]; got != 4 {
		t.Errorf("%d reads of the key table", got)
	}
	if b.calls[local.CallGenerate] != 1 {
		t.Errorf("%v", b.calls)
	}
}

func TestUseLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opt.MaxUses = 10
	s := b.sealer()
	for range 35 {
		b.seal(s, place(), "body")
	}
	if b.calls[local.CallGenerate] != 1 || b.calls[local.CallDecrypt] != 3 {
		t.Errorf("%v for 35 uses of at most 10", b.calls)
	}
}

// The least recently used tenant goes, and comes back by one more call.
func TestTenantLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opt.MaxTenants = 2
	s := b.sealer()
	use := func(tenant string, wantCalls int) {
		t.Helper()
		b.seal(s, seal.Place{Tenant: tenant, Kind: "entry"}, "")
		if got := b.kmsCalls(); got != wantCalls {
			t.Errorf("%s: %d KMS calls, want %d", tenant, got, wantCalls)
		}
	}
	use("a", 1)
	use("b", 2)
	use("a", 2)
	use("c", 3) // b goes
	use("a", 3)
	use("b", 4) // c goes
	use("a", 4)
	use("c", 5)
	s.Wipe()
	use("c", 6)
}

// However many callers, one fetch; and none of them hangs on another's context.
func TestOneFetchInFlight(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{true, false} {
		b := newBench(t)
		if !fresh {
			b.seal(b.sealer(), place(), "")
		}
		start := b.kmsCalls()
		gate := make(chan struct{})
		b.kms.Before = func(_ context.Context, call, _ string) error {
			b.mu.Lock()
			b.calls[call]++
			b.mu.Unlock()
			<-gate
			return nil
		}
		s := b.sealer()
		first, cancel := context.WithCancel(context.Background())
		gaveUp := make(chan error)
		go func() {
			_, err := s.Seal(first, place(), nil)
			gaveUp <- err
		}()
		for b.kmsCalls() == start {
			time.Sleep(time.Millisecond)
		}
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 100 {
			wg.Go(func() {
				if _, err := s.Seal(context.Background(), place(), nil); err != nil {
					failed.Add(1)
				}
			})
		}
		cancel() // the caller that began the fetch
		err := <-gaveUp
		wantCode(t, "the one who gave up", err, execution.Unavailable)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cause: %v", errors.Unwrap(err))
		}
		close(gate)
		wg.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("fresh %v: %d callers failed with the one who gave up", fresh, n)
		}
		if got := b.kmsCalls() - start; got != 1 {
			t.Errorf("fresh %v: %d KMS calls for 101 callers", fresh, got)
		}
	}
}

// Many processes begin with a new tenant at once: all seal under one key.
func TestFirstKeyRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wg sync.WaitGroup
	const n = 20
	sealed, tokens := make([][]byte, n), make([]string, n)
	for i := range n {
		wg.Go(func() {
			s := b.sealer()
			var err error
			if sealed[i], err = s.Seal(context.Background(), place(), []byte("body")); err != nil {
				t.Error(err)
			}
			if tokens[i], err = s.Token(context.Background(), "bank", "subject", "v"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	keys, err := b.sealer().Generations(context.Background(), "bank")
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	for i := range n {
		b.opens(b.sealer(), place(), sealed[i], "body")
		if tokens[i] != tokens[0] {
			t.Errorf("token %d differs", i)
		}
	}
}

// KMS trouble at each call has its code, writes nothing, is not remembered, and
// everything reads as before afterwards.
func TestKMSTrouble(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fault := func(kind store.ErrorKind) error { return &store.Error{Call: "kms", Kind: kind, Code: "SecretDetail"} }
	for name, c := range map[string]struct {
		err   error
		state local.State
		want  execution.Code
	}{
		"disabled":         {state: local.Disabled, want: execution.KeyUnavailable},
		"pending deletion": {state: local.PendingDeletion, want: execution.KeyUnavailable},
		"missing":          {state: local.Missing, want: execution.KeyUnavailable},
		"denied":           {state: local.Denied, want: execution.KeyUnavailable},
		"throttled":        {err: fault(store.Throttled), want: execution.Throttled},
		"unavailable":      {err: fault(store.Unavailable), want: execution.Unavailable},
		"stopped":          {err: fault(store.Stopped), want: execution.Unavailable},
		"deadline":         {err: context.DeadlineExceeded, want: execution.Unavailable},
		"unclassified":     {err: errors.New("secret detail"), want: execution.Internal},
		"coded":            {err: execution.Errorf(execution.Throttled, "x"), want: execution.Throttled},
	} {
		b := newBench(t)
		sealed := b.seal(b.sealer(), place(), "body")
		b.kms.SetState("stack", c.state)
		b.fault = func(string) error { return c.err }
		s := b.sealer()
		for range 2 { // not remembered either: asked again
			_, err := s.Seal(ctx, seal.Place{Tenant: "new", Kind: "entry"}, []byte("x"))
			wantCode(t, name+": seal for a new tenant", err, c.want)
			_, err = s.Seal(ctx, place(), []byte("x"))
			wantCode(t, name+": seal", err, c.want)
			_, err = s.Open(ctx, place(), sealed)
			wantCode(t, name+": open", err, c.want)
			_, err = s.Token(ctx, "bank", "subject", "v")
			wantCode(t, name+": token", err, c.want)
			_, err = s.Verify(ctx, "bank", "p", nil, nil)
			wantCode(t, name+": verify", err, c.want)
			_, err = s.Rotate(ctx, "bank")
			wantCode(t, name+": rotate", err, c.want)
			_, err = s.Rewrap(ctx, "bank", "other")
			wantCode(t, name+": rewrap", err, c.want)
		}
		if len(b.table.items) != 1 || b.table.calls["put"] != 1 {
			t.Errorf("%s: something was written", name)
		}
		if _, err := s.Generations(ctx, "bank"); err != nil {
			t.Errorf("%s: listing needs no key: %v", name, err)
		}
		b.kms.SetState("stack", local.Enabled)
		b.fault = nil
		b.opens(s, place(), sealed, "body")
		b.seal(s, seal.Place{Tenant: "new", Kind: "entry"}, "x")
	}
}

// A key in the cache outlives the KMS by the window and no longer.
func TestCachedKeyDuringTrouble(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	sealed := b.seal(s, place(), "body")
	b.kms.SetState("stack", local.Disabled)
	b.advance(s.MaxAge() - time.Second)
	b.opens(s, place(), sealed, "body")
	b.advance(time.Second)
	_, err := s.Open(context.Background(), place(), sealed)
	wantCode(t, "after the window", err, execution.KeyUnavailable)
}

// Shredding needs no KMS.
func TestShredWithoutKMS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	b.seal(s, place(), "body")
	b.kms.SetState("stack", local.Disabled)
	if err := s.Shred(context.Background(), "bank"); err != nil || len(b.table.items) != 0 {
		t.Errorf("%v, %d items", err, len(b.table.items))
	}
}

// Every fault of the key table at every call of every verb: a definite code,
// and afterwards the tenant works and has one set of tokens.
func TestTableTrouble(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	codes := map[string]execution.Code{
		"throttled": execution.Throttled, "unavailable": execution.Unavailable, "denied": execution.KeyUnavailable, "key": execution.KeyUnavailable,
		"invalid": execution.Internal, "too_late": execution.Unavailable, "conflict": execution.Unavailable, "stopped": execution.Unavailable,
		"lost": execution.Unavailable, "landed": execution.Unavailable, "undated": execution.Unavailable,
	}
	verbs := map[string]func(s *seal.Sealer) error{
		"seal":   func(s *seal.Sealer) error { _, err := s.Seal(ctx, place(), nil); return err },
		"rotate": func(s *seal.Sealer) error { _, err := s.Rotate(ctx, "bank"); return err },
		"rewrap": func(s *seal.Sealer) error { _, err := s.Rewrap(ctx, "bank", "other"); return err },
		"shred":  func(s *seal.Sealer) error { return s.Shred(ctx, "bank") },
		"list":   func(s *seal.Sealer) error { _, err := s.Generations(ctx, "bank"); return err },
	}
	runs := 0
	for verb, call := range verbs {
		for effect, want := range codes {
			for _, had := range []bool{true, false} {
				for nth := 1; nth <= 6; nth++ {
					for _, forever := range []bool{true, false} {
						name := fmt.Sprintf("%s, had keys %v, %s at call %d, forever %v", verb, had, effect, nth, forever)
						b := newBench(t)
						var sealed []byte
						if had {
							sealed = b.seal(b.sealer(), place(), "body")
						}
						n := 0
						b.table.fault = func(string) string {
							if n++; n == nth || n > nth && forever {
								return effect
							}
							return ""
						}
						s := b.sealer()
						err := call(s)
						if err != nil {
							wantCode(t, name, err, want)
						}
						hit := n >= nth
						b.table.fault = nil
						if err != nil && !hit {
							t.Errorf("%s: %v without a fault", name, err)
						}
						runs++
						gone := len(b.table.items) == 0
						if had && verb != "shred" && gone {
							t.Fatalf("%s: the keys are gone", name)
						}
						if verb == "shred" && err == nil && !gone {
							t.Errorf("%s: not shredded", name)
						}
						if err == nil && verb == "rotate" {
							want := 1
							if had {
								want = 2
							}
							// A rotation whose reply was lost may be made twice, never none.
							if keys, _ := s.Generations(ctx, "bank"); len(keys) != want {
								t.Errorf("%s: %v", name, keys)
							}
						}
						if had && !gone {
							b.opens(s, place(), sealed, "body")
							b.opens(b.sealer(), place(), sealed, "body")
						}
						if !had || !gone {
							after := b.seal(s, place(), "after")
							b.opens(b.sealer(), place(), after, "after")
						}
					}
				}
			}
		}
	}
	if runs < 1000 {
		t.Errorf("only %d runs", runs)
	}
}

// A KMS that makes or gives back keys of a wrong size, or a wrong key.
func TestWrongKMS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sealed := b.seal(b.sealer(), place(), "body")
	b.opt.KMS = badKMS{b.kms, 31}
	_, err := b.sealer().Open(context.Background(), place(), sealed)
	wantCode(t, "short key unwrapped", err, execution.Integrity)
	_, err = b.sealer().Seal(context.Background(), seal.Place{Tenant: "new", Kind: "k"}, nil)
	wantCode(t, "short key made", err, execution.Internal)
	b.opt.KMS = badKMS{b.kms, 32}
	_, err = b.sealer().Open(context.Background(), place(), sealed)
	wantCode(t, "another key unwrapped", err, execution.Integrity)
	b.opt.KMS = longKMS{b.kms}
	_, err = b.sealer().Open(context.Background(), place(), sealed)
	wantCode(t, "the right key and a byte more", err, execution.Integrity)
}

type longKMS struct{ seal.KMS }

func (k longKMS) Decrypt(ctx context.Context, key string, wrapped []byte, about map[string]string) ([]byte, error) {
	plain, err := k.KMS.Decrypt(ctx, key, wrapped, about)
	return append(plain, 0), err
}

type badKMS struct {
	seal.KMS
	n int
}

func (k badKMS) GenerateDataKey(context.Context, string, map[string]string) ([]byte, []byte, error) {
	return make([]byte, k.n), []byte("w"), nil
}

func (k badKMS) Decrypt(context.Context, string, []byte, map[string]string) ([]byte, error) {
	return make([]byte, k.n), nil
}

// A panic inside a fetch (a simulated crash) comes up in the caller and leaves
// the sealer usable.
func TestPanicInFetch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fault = func(string) error { panic("crash") }
	s := b.sealer()
	func() {
		defer func() {
			if v := recover(); v != "crash" {
				t.Errorf("recovered %v", v)
			}
		}()
		s.Seal(context.Background(), place(), nil)
	}()
	b.fault = nil
	b.seal(s, place(), "body")
}
