package seal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	for name, plain := range map[string][]byte{
		"empty": nil, "one byte": {0}, "short": []byte(`{"a":1}`), "text": text(1000), "64 KB": text(64 << 10),
		"more": text(64<<10 + 1), "1 MB": text(1 << 20), "zeros": make([]byte, 1<<20), "zstd magic": []byte("\x28\xb5\x2f\xfd"),
		"tiny": text(256), "just larger": text(257),
		"incompressible": func() []byte { h := sha256.Sum256(nil); return h[:] }(),
	} {
		before := bytes.Clone(plain)
		sealed, err := s.Seal(context.Background(), place(), plain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(sealed) > len(plain)+seal.Overhead {
			t.Errorf("%s: %d bytes became %d", name, len(plain), len(sealed))
		}
		if len(plain) >= 1000 && len(sealed) > len(plain)/2 {
			t.Errorf("%s: not compressed: %d bytes became %d", name, len(plain), len(sealed))
		}
		if compressed := sealed[1] == 1; compressed != (len(plain) > 256) {
			t.Errorf("%s: %d bytes, compressed %v", name, len(plain), compressed)
		}
		if len(plain) > 8 && bytes.Contains(sealed, plain[:8]) {
			t.Errorf("%s: plain text in sealed bytes", name)
		}
		kept := bytes.Clone(sealed)
		b.opens(s, place(), sealed, string(plain))
		b.opens(b.sealer(), place(), sealed, string(plain)) // another process
		if !bytes.Equal(plain, before) || !bytes.Equal(sealed, kept) {
			t.Errorf("%s: an argument was changed", name)
		}
		if seal.Digest(sealed) != sha256.Sum256(sealed) {
			t.Errorf("%s: digest", name)
		}
	}
	if seal.Overhead > 45 {
		t.Errorf("overhead %d", seal.Overhead)
	}
}

func TestRoundTripProperty(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, other := b.sealer(), b.sealer()
	rapid.Check(t, func(r *rapid.T) {
		p := seal.Place{
			Tenant: rapid.StringMatching(`[a-c]{1,3}`).Draw(r, "tenant"), Execution: rapid.String().Draw(r, "execution"),
			Generation: rapid.Int64().Draw(r, "generation"), Kind: rapid.StringN(1, 8, -1).Draw(r, "kind"),
			Name: rapid.String().Draw(r, "name"), Plain: rapid.SliceOf(rapid.Byte()).Draw(r, "plain"),
		}
		part := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(r, "body")
		body := bytes.Repeat(part, rapid.IntRange(0, 50).Draw(r, "times"))
		sealed, err := s.Seal(context.Background(), p, body)
		if err != nil {
			r.Fatal(err)
		}
		if got, err := other.Open(context.Background(), p, sealed); err != nil || !bytes.Equal(got, body) {
			r.Fatalf("%x, %v", got, err)
		}
	})
}

func TestBadCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	ctx := context.Background()
	for name, p := range map[string]seal.Place{"no tenant": {Kind: "entry"}, "no kind": {Tenant: "bank"}} {
		_, err := s.Seal(ctx, p, nil)
		wantCode(t, name+": seal", err, execution.Internal)
		_, err = s.Open(ctx, p, make([]byte, 100))
		wantCode(t, name+": open", err, execution.Internal)
	}
	_, err := s.Token(ctx, "", "subject", "v")
	wantCode(t, "token without tenant", err, execution.Internal)
	_, err = s.MAC(ctx, "bank", "", nil)
	wantCode(t, "mac without purpose", err, execution.Internal)
	_, err = s.Seal(ctx, place(), make([]byte, seal.MaxPlain+1))
	wantCode(t, "too large", err, execution.TooLarge)
	if n := b.kmsCalls() + len(b.table.items); n != 0 {
		t.Errorf("%d calls or items for refused calls", n)
	}
	b.opt.Rand = strings.NewReader("short")
	_, err = b.sealer().Seal(ctx, place(), nil)
	wantCode(t, "no randomness", err, execution.Internal)
	if len(b.table.items) != 0 {
		t.Error("a key was written without randomness")
	}
}

// Every field of the place is bound, one by one and against moves between
// neighbouring fields.
func TestPlaceIsBound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	b.seal(s, seal.Place{Tenant: "bank2", Kind: "entry"}, "x") // so that the other tenant has keys
	p := place()
	sealed := b.seal(s, p, "body")
	for name, change := range map[string]func(*seal.Place){
		"tenant":             func(p *seal.Place) { p.Tenant = "bank2" },
		"execution":          func(p *seal.Place) { p.Execution = "e2" },
		"no execution":       func(p *seal.Place) { p.Execution = "" },
		"generation":         func(p *seal.Place) { p.Generation++ },
		"sign of generation": func(p *seal.Place) { p.Generation = -p.Generation },
		"kind":               func(p *seal.Place) { p.Kind = "slot" },
		"name":               func(p *seal.Place) { p.Name = "13" },
		"plain":              func(p *seal.Place) { p.Plain = []byte("prew") },
		"no plain":           func(p *seal.Place) { p.Plain = nil },
		"name to plain":      func(p *seal.Place) { p.Name, p.Plain = "1", []byte("2prev") },
		"plain to name":      func(p *seal.Place) { p.Name, p.Plain = "12prev", nil },
		"kind to name":       func(p *seal.Place) { p.Kind, p.Name = "entr", "y12" },
		"length to name":     func(p *seal.Place) { p.Name = "12\x04" },
		"case":               func(p *seal.Place) { p.Execution = "E1" },
		"longer by a zero":   func(p *seal.Place) { p.Plain = []byte("prev\x00") },
	} {
		q := place()
		change(&q)
		got, err := s.Open(context.Background(), q, sealed)
		wantCode(t, name, err, execution.Integrity)
		if got != nil {
			t.Errorf("%s: %q came out", name, got)
		}
	}
	b.opens(s, p, sealed, "body")
	q := place()
	q.Tenant = "nobody"
	_, err := s.Open(context.Background(), q, sealed)
	wantCode(t, "tenant without keys", err, execution.KeyUnavailable)
	if len(b.table.items) != 2 {
		t.Error("opening made a key")
	}
}

// Every bit of header, body and tag, and every length.
func TestEveryBitAndLength(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sealer()
	for name, plain := range map[string]string{"plain": "body", "compressed": strings.Repeat("body ", 100)} {
		sealed := b.seal(s, place(), plain)
		for i := range 8 * len(sealed) {
			bad := bytes.Clone(sealed)
			bad[i/8] ^= 1 << (i % 8)
			got, err := s.Open(context.Background(), place(), bad)
			if execution.CodeOf(err) != execution.Integrity || got != nil {
				t.Errorf("%s: bit %d flipped: %q, %v", name, i, got, err)
			}
		}
		for n := range len(sealed) {
			_, err := s.Open(context.Background(), place(), sealed[:n])
			wantCode(t, fmt.Sprintf("%s: cut to %d", name, n), err, execution.Integrity)
		}
		for _, more := range [][]byte{{0}, sealed} {
			_, err := s.Open(context.Background(), place(), append(bytes.Clone(sealed), more...))
			wantCode(t, name+": longer", err, execution.Integrity)
		}
	}
}

// The keys' own item: damage is Integrity and never a reason for new keys.
func TestDamagedKeyItem(t *testing.T) {
	t.Parallel()
	flip := func(b []byte) store.Value { c := bytes.Clone(b); c[len(c)-1] ^= 1; return store.B(c) }
	for name, damage := range map[string]func(it store.Item, key map[string]store.Value){
		"wrapped flipped":    func(_ store.Item, k map[string]store.Value) { k["wrapped"] = flip(k["wrapped"].B) },
		"wrapped missing":    func(_ store.Item, k map[string]store.Value) { delete(k, "wrapped") },
		"token flipped":      func(_ store.Item, k map[string]store.Value) { k["token"] = flip(k["token"].B) },
		"token missing":      func(_ store.Item, k map[string]store.Value) { delete(k, "token") },
		"token cut":          func(_ store.Item, k map[string]store.Value) { k["token"] = store.B([]byte("x")) },
		"generation changed": func(_ store.Item, k map[string]store.Value) { k["gen"] = store.N(day0 + 1) },
		"generation huge":    func(_ store.Item, k map[string]store.Value) { k["gen"] = store.N(1 << 48) },
		"generation zero":    func(_ store.Item, k map[string]store.Value) { k["gen"] = store.N(0) },
		"generation text":    func(_ store.Item, k map[string]store.Value) { k["gen"] = store.S("1") },
		"created missing":    func(_ store.Item, k map[string]store.Value) { delete(k, "created") },
		"no keys":            func(it store.Item, _ map[string]store.Value) { it["keys"] = store.Value{Kind: store.KindL} },
		"keys missing":       func(it store.Item, _ map[string]store.Value) { delete(it, "keys") },
		"id missing":         func(it store.Item, _ map[string]store.Value) { delete(it, "id") },
		"rev missing":        func(it store.Item, _ map[string]store.Value) { delete(it, "rev") },
		"twice": func(it store.Item, _ map[string]store.Value) {
			l := it["keys"].L
			it["keys"] = store.Value{Kind: store.KindL, L: append(l, l...)}
		},
		"not a map": func(it store.Item, _ map[string]store.Value) {
			it["keys"] = store.Value{Kind: store.KindL, L: []store.Value{store.N(1)}}
		},
	} {
		b := newBench(t)
		sealed := b.seal(b.sealer(), place(), "body")
		it := b.table.items[store.Key{PK: "bank", SK: "keys"}]
		damage(it, it["keys"].L[0].M)
		_, err := b.sealer().Open(context.Background(), place(), sealed)
		wantCode(t, name+": open", err, execution.Integrity)
		_, err = b.sealer().Seal(context.Background(), place(), nil)
		wantCode(t, name+": seal", err, execution.Integrity)
		if b.calls[local.CallGenerate] != 1 {
			t.Errorf("%s: a new key was made", name)
		}
		if err := b.sealer().Shred(context.Background(), "bank"); err != nil || len(b.table.items) != 0 {
			t.Errorf("%s: shred: %v", name, err)
		}
	}
	// Another tenant's item in this one's place.
	b := newBench(t)
	b.seal(b.sealer(), seal.Place{Tenant: "other", Kind: "k"}, "")
	it := store.Item{"pk": store.S("bank"), "sk": store.S("keys")}
	for k, v := range b.table.items[store.Key{PK: "other", SK: "keys"}] {
		if k != "pk" {
			it[k] = v
		}
	}
	b.table.items[store.Key{PK: "bank", SK: "keys"}] = it
	_, err := b.sealer().Seal(context.Background(), place(), nil)
	wantCode(t, "another tenant's keys", err, execution.Integrity)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.sealer()
	token := func(s *seal.Sealer, tenant, kind, value string) string {
		t.Helper()
		tok, err := s.Token(ctx, tenant, kind, value)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	first := token(s, "bank", "subject", "customer 4711")
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`).MatchString(first) {
		t.Errorf("token %q", first)
	}
	if _, err := s.Rotate(ctx, "bank"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rewrap(ctx, "bank", "other"); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*seal.Sealer{s, b.sealer()} {
		if got := token(s, "bank", "subject", "customer 4711"); got != first {
			t.Errorf("%d: after rotation: %s, was %s", i, got, first)
		}
	}
	seen := map[string]string{first: "first"}
	for _, c := range [][3]string{{"bank2", "subject", "customer 4711"}, {"bank", "label", "customer 4711"}, {"bank", "subject", "customer 4712"}, {"bank", "subjectc", "ustomer 4711"}, {"bank", "subject", ""}} {
		got := token(s, c[0], c[1], c[2])
		if was, ok := seen[got]; ok {
			t.Errorf("%v has the token of %v", c, was)
		}
		seen[got] = strings.Join(c[:], "/")
	}

	mac, err := s.MAC(ctx, "bank", "callback", []byte("e1/op/1"))
	if err != nil || len(mac) != 32 {
		t.Fatalf("%x, %v", mac, err)
	}
	flipped := bytes.Clone(mac)
	flipped[31] ^= 1
	tok, _ := s.MAC(ctx, "bank", "callbac", []byte("ke1/op/1"))
	for name, c := range map[string]struct {
		tenant, purpose, data string
		mac                   []byte
		want                  bool
	}{
		"right":          {"bank", "callback", "e1/op/1", mac, true},
		"tenant":         {"bank2", "callback", "e1/op/1", mac, false},
		"no keys":        {"nobody", "callback", "e1/op/1", mac, false},
		"purpose":        {"bank", "resume", "e1/op/1", mac, false},
		"data":           {"bank", "callback", "e1/op/2", mac, false},
		"flipped":        {"bank", "callback", "e1/op/1", flipped, false},
		"cut":            {"bank", "callback", "e1/op/1", mac[:31], false},
		"empty":          {"bank", "callback", "e1/op/1", nil, false},
		"moved boundary": {"bank", "callback", "e1/op/1", tok, false},
	} {
		got, err := b.sealer().Verify(ctx, c.tenant, c.purpose, []byte(c.data), c.mac)
		if err != nil || got != c.want {
			t.Errorf("verify, %s: %v, %v", name, got, err)
		}
	}
	if _, ok := b.table.items[store.Key{PK: "nobody", SK: "keys"}]; ok {
		t.Error("verifying made a key")
	}
}

var update = flag.Bool("update", false, "write golden files that are not there yet")

// The stored format, byte for byte: what was ever sealed opens for ever. Files
// that exist are never rewritten.
func TestGolden(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, plain := range map[string][]byte{"empty": nil, "short": []byte(`{"n":1.0}`), "text": text(700)} {
		b := newBench(t)
		b.opt.Rand = &counter{}
		b.kms.Rand = &counter{n: 128}
		s := b.sealer()
		sealed := b.seal(s, place(), string(plain))
		token, err := s.Token(ctx, "bank", "subject", "customer 4711")
		if err != nil {
			t.Fatal(err)
		}
		key := b.table.items[store.Key{PK: "bank", SK: "keys"}]["keys"].L[0].M
		path := filepath.Join("testdata", "format1-"+name+".golden")
		file, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && *update {
			file = []byte(fmt.Sprintf("sealed %x\nwrapped %x\ntoken-key %x\ntoken %s\n", sealed, key["wrapped"].B, key["token"].B, token))
			err = os.WriteFile(path, file, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		var oldSealed, oldWrapped, oldTokenKey []byte
		var oldToken string
		if n, err := fmt.Sscanf(string(file), "sealed %x\nwrapped %x\ntoken-key %x\ntoken %s\n", &oldSealed, &oldWrapped, &oldTokenKey, &oldToken); n != 4 {
			t.Fatalf("%s: %v", path, err)
		}
		// Old bytes under old keys, in a fresh process.
		old := newBench(t)
		old.table.items[store.Key{PK: "bank", SK: "keys"}] = store.Item{"pk": store.S("bank"), "sk": store.S("keys"), "id": store.S("i"), "rev": store.N(1), "keys": {Kind: store.KindL, L: []store.Value{{Kind: store.KindM, M: map[string]store.Value{
			"gen": store.N(day0), "kms": store.S("stack"), "wrapped": store.B(oldWrapped), "token": store.B(oldTokenKey), "created": store.N(day0),
		}}}}}
		fresh := old.sealer()
		old.opens(fresh, place(), oldSealed, string(plain))
		if got, err := fresh.Token(ctx, "bank", "subject", "customer 4711"); got != oldToken {
			t.Errorf("%s: token %s, %v, was %s", name, got, err, oldToken)
		}
		// New bytes: the layout, and where no compressor is involved every byte.
		if oldSealed[1] == 0 && !bytes.Equal(sealed, oldSealed) {
			t.Errorf("%s: sealed %x, was %x", name, sealed, oldSealed)
		}
		if !bytes.Equal(sealed[:28], oldSealed[:28]) {
			t.Errorf("%s: header %x, was %x", name, sealed[:28], oldSealed[:28])
		}
		gen := binary.BigEndian.Uint64(append([]byte{0, 0}, sealed[2:8]...))
		if wantFlag := len(plain) > 256; sealed[0] != 1 || (sealed[1] == 1) != wantFlag || gen != day0 || hex.EncodeToString(sealed[8:10]) == "0000" {
			t.Errorf("%s: layout of %x", name, sealed[:28])
		}
	}
}

func FuzzOpen(f *testing.F) {
	b := newBench(f)
	s := b.sealer()
	good := b.seal(s, place(), "body")
	zipped := b.seal(s, place(), strings.Repeat("body ", 100))
	f.Add(good, "12", []byte("prev"))
	f.Add(zipped, "12", []byte("prev"))
	f.Add([]byte{}, "", []byte{})
	f.Add(good[:44], "12", []byte("prev"))
	f.Fuzz(func(t *testing.T, sealed []byte, name string, plain []byte) {
		p := place()
		p.Name, p.Plain = name, plain
		got, err := s.Open(context.Background(), p, sealed)
		ours := bytes.Equal(sealed, good) || bytes.Equal(sealed, zipped)
		if ours && name == "12" && string(plain) == "prev" {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if execution.CodeOf(err) != execution.Integrity || got != nil {
			t.Fatalf("%x opened: %q, %v", sealed, got, err)
		}
	})
}
