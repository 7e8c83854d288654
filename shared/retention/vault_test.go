package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// class gives every object a storage class, and fails reads as S3 does for cold
// ones.
type class struct {
	store.Bucket
	name string
	get  error
}

func (c class) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	if c.get != nil {
		return nil, store.ObjectInfo{}, store.ObjectMeta{}, c.get
	}
	return c.Bucket.Get(ctx, in)
}

func (c class) Head(ctx context.Context, key string) (store.ObjectInfo, store.ObjectMeta, error) {
	info, meta, err := c.Bucket.Head(ctx, key)
	info.StorageClass = c.name
	return info, meta, err
}

// An archive is what was archived, down to its last byte, or it is damage: each
// of what its manifest says by itself.
func TestVault(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ref := execution.Ref{Tenant: "t", Execution: "e", Generation: 7}
	b := memory.New(memory.Options{NoStream: true}).Bucket()
	put := func(key string, body []byte) (digest string) {
		t.Helper()
		sum := sha256.Sum256(body)
		if _, err := b.Put(ctx, store.PutObject{Key: key, Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sum}); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(sum[:])
	}
	entry := func(file []byte, versions ...int64) []byte {
		for _, v := range versions {
			k := journal.EntryKey(ref.PK(), v)
			var err error
			if file, err = appendItem(file, store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "b": store.B([]byte{byte(v)})}); err != nil {
				t.Fatal(err)
			}
		}
		return file
	}
	first, second := entry([]byte(bundleMagic), 1, 2), entry([]byte(bundleMagic), 3, 4, 5)
	files := []bundleFile{{Key: "f1", Digest: put("f1", first), Bytes: int64(len(first)), First: 1, Last: 2}, {Key: "f2", Digest: put("f2", second), Bytes: int64(len(second)), First: 3, Last: 5}}
	n := 0
	bundle := func(f func(m *manifest)) execution.Bundle {
		m := manifest{Format: 1, Tenant: ref.Tenant, Execution: ref.Execution, Generation: ref.Generation, Version: 5, Files: append([]bundleFile(nil), files...)}
		f(&m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n++
		key := "m" + string(rune('a'+n))
		return execution.Bundle{Key: key, Digest: put(key, raw), Bytes: int64(len(raw)), Version: 5}
	}
	good := bundle(func(*manifest) {})
	v := &Vault{Bucket: b}
	for _, tt := range []struct{ from, to, first, count int64 }{{1, 5, 1, 5}, {2, 2, 2, 1}, {2, 3, 2, 2}, {3, 9, 3, 3}, {6, 9, 0, 0}} {
		items, err := v.Entries(ctx, ref, good, tt.from, tt.to)
		if err != nil || int64(len(items)) != tt.count {
			t.Fatalf("%+v: %d items, %v", tt, len(items), err)
		}
		for i, it := range items {
			if got, _ := journal.EntryVersion(it.Key().SK); got != tt.first+int64(i) {
				t.Errorf("%+v: version %d", tt, got)
			}
		}
	}
	junk := put("junk", []byte("junk"))
	for name, bad := range map[string]execution.Bundle{
		"format":                  bundle(func(m *manifest) { m.Format = 2 }),
		"another tenant's":        bundle(func(m *manifest) { m.Tenant = "u" }),
		"another execution's":     bundle(func(m *manifest) { m.Execution = "f" }),
		"another life's":          bundle(func(m *manifest) { m.Generation = 6 }),
		"another version's":       bundle(func(m *manifest) { m.Version = 4 }),
		"a file that is missing":  bundle(func(m *manifest) { m.Files[0].Key = "none" }),
		"a file of another size":  bundle(func(m *manifest) { m.Files[0].Bytes++ }),
		"a file with other bytes": bundle(func(m *manifest) { m.Files[0].Key, m.Files[0].Bytes = "f2", int64(len(second)) }),
		"a file that is none":     bundle(func(m *manifest) { m.Files[0] = bundleFile{Key: "junk", Digest: junk, Bytes: 4, First: 1, Last: 2} }),
		"no JSON":                 {Key: "junk", Digest: junk, Bytes: 4, Version: 5},
		"a manifest that is gone": {Key: "none", Digest: good.Digest + "0", Bytes: good.Bytes, Version: 5},
		"a manifest, other bytes": {Key: good.Key, Digest: junk, Bytes: good.Bytes, Version: 5},
		"a manifest, other size":  {Key: good.Key, Digest: good.Digest + "1", Bytes: good.Bytes + 1, Version: 5},
	} {
		if items, err := (&Vault{Bucket: b}).Entries(ctx, ref, bad, 1, 5); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s: %d items, %v", name, len(items), err)
		}
	}
	// What lies in a cold class comes back later; what merely does not answer, sooner.
	refused := &store.Error{Kind: store.Denied}
	for class_, want := range map[string]bool{"GLACIER": true, "DEEP_ARCHIVE": true, "STANDARD": false} {
		_, err := (&Vault{Bucket: class{b, class_, refused}}).Entries(ctx, ref, good, 1, 5)
		if _, later := execution.AsError(err).Facts["retry_after_ms"]; later != want || err == nil {
			t.Errorf("%s: %v", class_, err)
		}
	}
	if _, err := (&Vault{Bucket: class{b, "GLACIER", nil}}).Entries(ctx, ref, good, 1, 5); err != nil {
		t.Errorf("brought back: %v", err)
	}
}
