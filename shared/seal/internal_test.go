package seal

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Whatever leaves the cache is zeroed, by every way out.
func TestCacheWipes(t *testing.T) {
	t.Parallel()
	t0 := time.UnixMilli(1_700_000_000_000)
	secret := material{generation: 1}
	for i := range secret.data {
		secret.data[i], secret.token[i] = 0xd0, 0x70
	}
	for name, out := range map[string]func(c *cache){
		"drop":     func(c *cache) { c.drop("t") },
		"drop all": func(c *cache) { c.dropAll() },
		"age":      func(c *cache) { c.take("t", 1, t0.Add(time.Minute), new(material)) },
		"age, asked for another": func(c *cache) {
			c.take("u", 1, t0.Add(time.Minute), new(material))
		},
		"clock set back": func(c *cache) { c.take("t", 1, t0.Add(-time.Minute), new(material)) },
		"uses": func(c *cache) {
			for range 4 {
				c.take("t", 1, t0, new(material))
			}
		},
		"tenants": func(c *cache) {
			for i := range 2 {
				c.putRing(testRing(fmt.Sprint(i), "i", 1, 1), c.mark(fmt.Sprint(i)), t0)
			}
		},
		"replaced":     func(c *cache) { c.putKey(testRing("t", "i", 1, 1), &secret, c.mark("t"), t0) },
		"another ring": func(c *cache) { c.putRing(testRing("t", "j", 1, 1), c.mark("t"), t0) },
	} {
		c := newCache(2, time.Minute, 3)
		r := testRing("t", "i", 1, 1)
		c.putRing(r, c.mark("t"), t0)
		c.putKey(r, &secret, c.mark("t"), t0)
		inside := c.tenants["t"].Value.(*tenantKeys).keys[1]
		var m material
		if _, ok := c.take("t", 0, t0, &m); !ok || m != secret || inside.material != secret {
			t.Fatalf("%s: not in the cache", name)
		}
		out(c)
		if inside.material != (material{}) {
			t.Errorf("%s: the key is still there", name)
		}
		if m != secret {
			t.Errorf("%s: a copy in use was wiped", name)
		}
	}
}

func TestCacheKeepsTheNewer(t *testing.T) {
	t.Parallel()
	t0 := time.UnixMilli(1_700_000_000_000)
	c := newCache(2, time.Minute, 3)
	newer, older := testRing("t", "i", 2, 1, 2), testRing("t", "i", 1, 1)
	c.putRing(newer, c.mark("t"), t0)
	c.putRing(older, c.mark("t"), t0)
	if r, _ := c.take("t", 1, t0, new(material)); r != newer {
		t.Error("an older ring replaced a newer one")
	}
	c.putRing(testRing("t", "anew", 1, 3), c.mark("t"), t0) // shredded and begun anew: counts from 1
	if r, _ := c.take("t", 3, t0, new(material)); r == nil || r.id != "anew" {
		t.Errorf("the ring of a tenant that began anew was not kept: %v", r)
	}
	mark := c.mark("t")
	c.drop("t")
	c.putRing(newer, mark, t0)
	c.putKey(newer, &material{generation: 1}, mark, t0)
	if len(c.tenants) != 0 {
		t.Error("what was fetched before a drop was kept")
	}
	// A key of a ring that is not there any more is not kept.
	c.putRing(testRing("t", "j", 1, 1), c.mark("t"), t0)
	c.putKey(newer, &material{generation: 1}, c.mark("t"), t0)
	if _, ok := c.take("t", 1, t0, new(material)); ok {
		t.Error("a key of another ring was kept")
	}
}

func testRing(tenant, id string, rev int64, generations ...int64) *ring {
	r := &ring{tenant: tenant, id: id, rev: rev}
	for _, g := range generations {
		r.keys = append(r.keys, wrappedKey{g, "k", []byte("w"), []byte("t"), g})
	}
	return r
}

func TestRingItem(t *testing.T) {
	t.Parallel()
	r := testRing("t", "i", 9, 3, 5)
	got, err := decodeRing("t", r.item())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := decodeRing("t", testRing("t", "i", 1, maxGeneration).item()); err != nil {
		t.Errorf("the last generation: %v", err)
	}
	edit := func(attr string, v store.Value) store.Item {
		it := r.item()
		it[attrKeys].L[1].M[attr] = v
		return it
	}
	elsewhere := r.item()
	elsewhere[store.AttrSK] = store.S("elsewhere")
	for name, it := range map[string]store.Item{
		"a generation too many for the header": testRing("t", "i", 1, maxGeneration+1).item(),
		"the same generation twice":            testRing("t", "i", 1, 3, 3).item(),
		"generations out of order":             testRing("t", "i", 1, 5, 3).item(),
		"a generation below zero":              testRing("t", "i", 1, -1).item(),
		"no key":                               testRing("t", "i", 1).item(),
		"no id":                                testRing("t", "", 1, 3).item(),
		"a generation as text":                 edit(attrGen, store.S("5")),
		"a time as text":                       edit(attrCreated, store.S("5")),
		"an empty key":                         edit(attrWrapped, store.B(nil)),
		"an empty token":                       edit(attrToken, store.B(nil)),
		"another tenant's":                     testRing("u", "i", 9, 3, 5).item(),
		"from elsewhere":                       elsewhere,
	} {
		if got, err := decodeRing("t", it); execution.CodeOf(err) != execution.Integrity || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A token key of another size, sealed by somebody with the key.
func TestTokenKeySize(t *testing.T) {
	t.Parallel()
	key, salt := [keySize]byte{1}, make([]byte, saltBytes)
	s := New(Options{KMS: givesBack{}, Now: time.Now})
	for n, want := range map[int]execution.Code{keySize - 1: execution.Integrity, keySize: "", keySize + 1: execution.Integrity} {
		token, err := sealWith(&key, 5, salt, tokenPlace("t", 5), make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.unwrap(context.Background(), "t", wrappedKey{5, "k", key[:], token, 5}, new(material)); execution.CodeOf(err) != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// givesBack is a KMS whose wrapped keys are the keys.
type givesBack struct{ KMS }

func (givesBack) Decrypt(_ context.Context, _ string, wrapped []byte, _ map[string]string) ([]byte, error) {
	return bytes.Clone(wrapped), nil
}

// What the front of sealed bytes may say, whoever sealed them.
func TestHeader(t *testing.T) {
	t.Parallel()
	good := make([]byte, Overhead)
	header{flags: flagZstd, generation: maxGeneration}.put(good)
	if h, err := readHeader(good); err != nil || h.generation != maxGeneration || h.flags != flagZstd {
		t.Errorf("%+v, %v", h, err)
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"cut":               func(b []byte) []byte { return b[:Overhead-1] },
		"format 0":          func(b []byte) []byte { b[0] = 0; return b },
		"a format to come":  func(b []byte) []byte { b[0] = format1 + 1; return b },
		"a flag to come":    func(b []byte) []byte { b[1] |= 2; return b },
		"no key generation": func(b []byte) []byte { clear(b[2:saltAt]); return b },
	} {
		if _, err := readHeader(damage(bytes.Clone(good))); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No two places share an encoding.
func TestPlaceEncodingIsInjective(t *testing.T) {
	t.Parallel()
	field := rapid.StringMatching(`[\x00-\x02ab]{0,3}`)
	draw := rapid.Custom(func(r *rapid.T) Place {
		return Place{field.Draw(r, "t"), field.Draw(r, "e"), rapid.Int64Range(-1, 2).Draw(r, "g"), field.Draw(r, "k"), field.Draw(r, "n"), []byte(field.Draw(r, "p"))}
	})
	rapid.Check(t, func(r *rapid.T) {
		a, b := draw.Draw(r, "a"), draw.Draw(r, "b")
		if rapid.Bool().Draw(r, "close") { // neighbours in all but the split of two fields
			both := a.Kind + a.Name
			at := rapid.IntRange(0, len(both)).Draw(r, "at")
			b = a
			b.Kind, b.Name = both[:at], both[at:]
		}
		same := a.Tenant == b.Tenant && a.Execution == b.Execution && a.Generation == b.Generation && a.Kind == b.Kind && a.Name == b.Name && bytes.Equal(a.Plain, b.Plain)
		if same != bytes.Equal(a.encode(nil), b.encode(nil)) {
			r.Fatalf("%+v and %+v", a, b)
		}
	})
}

// The layout of doc.go, written down a second time with nothing of this
// package's own code.
func TestFormatAsDocumented(t *testing.T) {
	t.Parallel()
	key, salt := [keySize]byte{1, 2, 3}, bytes.Repeat([]byte{9}, 20)
	p := Place{"bank", "e1", 7, "entry", "12", bytes.Repeat([]byte{'p'}, 200)}
	sealed, err := sealWith(&key, 0x010203040506, salt, p, []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	mac := func(key []byte, parts ...string) []byte {
		h := hmac.New(sha256.New, key)
		for _, part := range parts {
			h.Write([]byte(part))
		}
		return h.Sum(nil)
	}
	entryKey := mac(mac(salt, string(key[:])), "cairn seal 1 entry\x01") // RFC 5869, one block
	header := "\x01\x00\x01\x02\x03\x04\x05\x06" + string(salt)
	ad := header + "\x01" + "\x04bank" + "\x02e1" + "\x00\x00\x00\x00\x00\x00\x00\x07" + "\x05entry" + "\x0212" + "\xc8\x01" + string(p.Plain)
	block, _ := aes.NewCipher(entryKey)
	gcm, _ := cipher.NewGCM(block)
	want := append([]byte(header), gcm.Seal(nil, make([]byte, 12), []byte("body"), []byte(ad))...)
	if !bytes.Equal(sealed, want) {
		t.Errorf("%x\nwant\n%x", sealed, want)
	}
}

// Content that was sealed by somebody with the key, and is no honest frame.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	good := enc.EncodeAll(bytes.Repeat([]byte("a"), 1000), nil)
	bomb := enc.EncodeAll(make([]byte, MaxPlain+1), nil)
	noSize := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x01, 0x00, 0x00}
	less := bytes.Clone(good)
	less[5]-- // the announced size, two bytes from here
	more := bytes.Clone(good)
	more[5]++
	key, salt := [keySize]byte{1}, make([]byte, saltBytes)
	p := Place{Tenant: "t", Kind: "k"}
	for name, frame := range map[string][]byte{
		"bomb": bomb, "two frames": append(bytes.Clone(good), good...), "cut": good[:len(good)-1], "no size": noSize,
		"announces less": less, "announces more": more, "no frame": []byte("text"), "empty": nil, "trailing": append(bytes.Clone(good), 'x'),
	} {
		out := make([]byte, headerSize)
		header{flags: flagZstd, generation: 5}.put(out)
		copy(out[saltAt:], salt)
		gcm, err := aead(&key, p.Kind, salt)
		if err != nil {
			t.Fatal(err)
		}
		out = gcm.Seal(out, nonce[:], frame, associated(out, p))
		h, err := readHeader(out)
		if err != nil {
			t.Fatal(err)
		}
		got, err := openWith(&key, h, p, out)
		if execution.CodeOf(err) != execution.Integrity || got != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// Salts come from Rand and are not used twice: as many distinct ones as calls,
// from many writers of several processes.
func TestFreshSalts(t *testing.T) {
	t.Parallel()
	s := New(Options{Now: time.Now})
	m := material{generation: 1}
	out := make(chan string)
	const writers, each = 8, 500
	for range writers {
		go func() {
			for range each {
				sealed, err := s.sealUnder(&m, Place{Tenant: "t", Kind: "k"}, nil)
				if err != nil {
					t.Error(err)
				}
				out <- string(sealed[saltAt:headerSize])
			}
		}()
	}
	seen := map[string]bool{}
	for range writers * each {
		seen[<-out] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d salts for %d messages", len(seen), writers*each)
	}
}
