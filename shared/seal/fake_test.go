package seal_test

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
)

// table is a key table with what this package uses of the port; any other call
// is a nil dereference, which fails the test.
type table struct {
	store.Table
	mu    sync.Mutex
	items map[store.Key]store.Item
	// fault is asked before each call: "lost" and "landed" are an unknown
	// outcome, another error kind is answered with nothing done, "" lets it
	// through. before runs first, outside the lock.
	fault  func(call string) string
	before func(call string)
	calls  map[string]int
	now    func() time.Time
}

func (f *table) call(name string, ambiguous bool, do func() error) (store.Meta, error) {
	if f.before != nil {
		f.before(name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[name]++
	effect := ""
	if f.fault != nil {
		effect = f.fault(name)
	}
	timeout := &store.Error{Call: name, Kind: store.Unavailable, Ambiguous: ambiguous}
	switch effect {
	case "":
	case "lost":
		return store.Meta{}, timeout
	case "landed":
		if err := do(); err != nil {
			return store.Meta{Date: f.now()}, err
		}
		return store.Meta{}, timeout
	case "undated":
		return store.Meta{}, do()
	default:
		return store.Meta{}, &store.Error{Call: name, Kind: store.ErrorKind(effect)}
	}
	return store.Meta{Date: f.now()}, do()
}

func (f *table) holds(c store.Cond, it store.Item) bool {
	switch c := c.(type) {
	case nil:
		return true
	case store.All:
		for _, part := range c {
			if !f.holds(part, it) {
				return false
			}
		}
		return true
	case store.Absent:
		return !it.Has(c.Attr)
	case store.Present:
		return it.Has(c.Attr)
	case store.Compare:
		return c.Op == store.EQ && it[c.Attr].Equal(c.Value)
	}
	panic("condition not known here")
}

func (f *table) write(key store.Key, c store.Cond, validated time.Time, next store.Item) (old store.Item, err error) {
	old = f.items[key]
	if !validated.IsZero() && f.now().Sub(validated) > store.Window {
		return nil, &store.Error{Kind: store.TooLate}
	}
	if !f.holds(c, old) {
		return nil, &store.ConditionFailed{Key: key, Old: old}
	}
	if next == nil {
		delete(f.items, key)
	} else {
		f.items[key] = next
	}
	return old, nil
}

func (f *table) Get(_ context.Context, in store.Get) (it store.Item, meta store.Meta, err error) {
	if !in.Consistent {
		panic("keys are read consistently")
	}
	meta, err = f.call("get", false, func() error { it = f.items[in.Key]; return nil })
	return it, meta, err
}

func (f *table) Put(_ context.Context, in store.Put) (store.Meta, error) {
	return f.call("put", true, func() error {
		_, err := f.write(in.Item.Key(), in.Cond, in.ValidatedAt, maps.Clone(in.Item))
		return err
	})
}

func (f *table) Delete(_ context.Context, in store.Delete) (old store.Item, meta store.Meta, err error) {
	meta, err = f.call("delete", true, func() error {
		old, err = f.write(in.Key, in.Cond, in.ValidatedAt, nil)
		return err
	})
	return old, meta, err
}

// counter gives bytes 0, 1, 2 ... for ever.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
		c.n++
	}
	return len(p), nil
}

// bench is one key table and KMS, and sealers over them.
type bench struct {
	t     testing.TB
	table *table
	kms   *local.KMS
	mu    sync.Mutex
	clock time.Time
	calls map[string]int // of the KMS
	// fault is asked before each KMS call, before runs first.
	fault func(call string) error
	opt   seal.Options
}

const day0 = 1_700_000_000_000

func newBench(t testing.TB) *bench {
	b := &bench{t: t, clock: time.UnixMilli(day0), calls: map[string]int{}}
	b.table = &table{items: map[store.Key]store.Item{}, calls: map[string]int{}, now: b.now}
	b.kms = &local.KMS{Master: []byte("master"), Before: func(_ context.Context, call, key string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls[call]++
		if b.fault != nil {
			return b.fault(call)
		}
		return nil
	}}
	b.opt = seal.Options{Keys: b.table, KMS: b.kms, KeyID: "stack", Now: b.now}
	return b
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

func (b *bench) kmsCalls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.calls {
		n += c
	}
	return n
}

// sealer is another process on the same table.
func (b *bench) sealer() *seal.Sealer { return seal.New(b.opt) }

func (b *bench) seal(s *seal.Sealer, p seal.Place, plain string) []byte {
	b.t.Helper()
	out, err := s.Seal(context.Background(), p, []byte(plain))
	if err != nil {
		b.t.Fatalf("seal: %v", err)
	}
	return out
}

func (b *bench) opens(s *seal.Sealer, p seal.Place, sealed []byte, want string) {
	b.t.Helper()
	got, err := s.Open(context.Background(), p, sealed)
	if err != nil || string(got) != want {
		b.t.Fatalf("open: %q, %v; want %q", got, err, want)
	}
}

func wantCode(t testing.TB, what string, err error, code execution.Code) {
	t.Helper()
	if execution.CodeOf(err) != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func place() seal.Place {
	return seal.Place{Tenant: "bank", Execution: "e1", Generation: 7, Kind: "entry", Name: "12", Plain: []byte("prev")}
}

// text is n bytes that compress about as well as JSON does.
func text(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		io.WriteString(&b, `{"document":"passport-`+strings.Repeat(string(rune('a'+i%26)), 1+i%7)+`","status":"received","pages":`+time.Duration(i*7919).String()+`},`)
	}
	return []byte(b.String()[:n])
}
