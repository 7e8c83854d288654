package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// A bundle is an archive's content: files of entries' items, byte for byte as
// they lay in the table (sealed bodies stay sealed), and a manifest that names
// the files by digest. Bodies in the bucket and artifacts stay where they are.
// docs/FORMAT.md:
//
//	file      magic "cairn-bundle-1\n", then items: uvarint length, then per
//	          attribute in order of names: uvarint length and name, one byte S, N or
//	          B, uvarint length and value
//	manifest  JSON, see manifest
const bundleMagic = "cairn-bundle-1\n"

// fileBytes is about how much a file holds: what one read of an old version
// costs at most.
const fileBytes = 1 << 20

// manifest names what a bundle holds.
type manifest struct {
	Format     int                   `json:"format"` // 1
	Tenant     execution.TenantID    `json:"tenant"`
	Execution  execution.ExecutionID `json:"execution"`
	Generation int64                 `json:"generation"`
	Version    int64                 `json:"version"` // the newest entry
	Files      []bundleFile          `json:"files"`   // ascending by version
	Artifacts  []bundledArtifact     `json:"artifacts,omitempty"`
}

// bundleFile is one file of entries.
type bundleFile struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	First  int64  `json:"first"`
	Last   int64  `json:"last"`
}

// bundledArtifact names an accepted artifact; its name may be agent data and
// stays in the fold.
type bundledArtifact struct {
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// appendItem writes an item of strings, numbers and bytes.
func appendItem(dst []byte, it store.Item) ([]byte, error) {
	var b []byte
	field := func(p string) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	for _, name := range slices.Sorted(maps.Keys(it)) {
		field(name)
		switch v := it[name]; v.Kind {
		case store.KindS:
			b = append(b, 'S')
			field(v.S)
		case store.KindN:
			b = append(b, 'N')
			field(v.S)
		case store.KindB:
			b = append(b, 'B')
			field(string(v.B))
		default:
			return nil, execution.Errorf(execution.Integrity, "an entry has an attribute that entries do not have").With("attribute", name)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...), nil
}

// readItems reads a file's items.
func readItems(file []byte) ([]store.Item, error) {
	bad := execution.Errorf(execution.Integrity, "a file of the archive is damaged")
	rest, ok := bytes.CutPrefix(file, []byte(bundleMagic))
	if !ok {
		return nil, bad
	}
	take := func(from *[]byte) ([]byte, bool) {
		n, w := binary.Uvarint(*from)
		if w <= 0 || n > uint64(len(*from)-w) {
			return nil, false
		}
		p := (*from)[w : w+int(n)]
		*from = (*from)[w+int(n):]
		return p, true
	}
	var items []store.Item
	for len(rest) > 0 {
		body, ok := take(&rest)
		if !ok {
			return nil, bad
		}
		it := store.Item{}
		for len(body) > 0 {
			name, ok := take(&body)
			if !ok || len(body) == 0 {
				return nil, bad
			}
			kind := body[0]
			body = body[1:]
			value, ok := take(&body)
			switch {
			case !ok:
				return nil, bad
			case kind == 'S':
				it[string(name)] = store.S(string(value))
			case kind == 'N':
				it[string(name)] = store.Value{Kind: store.KindN, S: string(value)}
			case kind == 'B':
				it[string(name)] = store.B(slices.Clone(value))
			default:
				return nil, bad
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// Vault serves archived entries to the journal. Safe for concurrent use.
type Vault struct {
	Bucket store.Bucket

	mu   sync.Mutex
	seen map[string]*manifest // by digest: they never change
}

// keptManifests bounds the memory for manifests.
const keptManifests = 64

// manifest reads a bundle's manifest and holds it against its digest.
func (v *Vault) manifest(ctx context.Context, ref execution.Ref, b execution.Bundle) (*manifest, error) {
	v.mu.Lock()
	m := v.seen[b.Digest]
	v.mu.Unlock()
	if m != nil {
		return m, nil
	}
	raw, err := v.read(ctx, ref, b.Key, b.Digest, b.Bytes)
	if err != nil {
		return nil, err
	}
	m = &manifest{}
	if json.Unmarshal(raw, m) != nil || m.Format != 1 || m.Tenant != ref.Tenant || m.Execution != ref.Execution || m.Generation != ref.Generation || m.Version != b.Version {
		return nil, execution.Errorf(execution.Integrity, "the archive's manifest is another's").With("execution", string(ref.Execution)).With("key", b.Key)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen == nil || len(v.seen) >= keptManifests {
		v.seen = map[string]*manifest{}
	}
	v.seen[b.Digest] = m
	return m, nil
}

// coldRetry is when a file in a cold storage class may be readable.
const coldRetry = 12 * hour

// read gives an object whose size and SHA-256 are known.
func (v *Vault) read(ctx context.Context, ref execution.Ref, key, digest string, size int64) ([]byte, error) {
	damaged := func(text string) error {
		return execution.Errorf(execution.Integrity, "%s", text).With("execution", string(ref.Execution)).With("key", key)
	}
	body, info, _, err := v.Bucket.Get(ctx, store.GetObject{Key: key})
	switch {
	case store.KindOf(err) == store.NotFound:
		return nil, damaged("a file of the archive is missing")
	case err != nil && cold(ctx, v.Bucket, key):
		return nil, execution.Errorf(execution.Unavailable, "the archive must be brought back from its storage class first").With("execution", string(ref.Execution)).With("retry_after_ms", coldRetry).Because(err)
	case err != nil:
		return nil, journal.Fail(err, ref)
	}
	defer body.Close()
	if info.Bytes != size {
		return nil, damaged("a file of the archive has another size")
	}
	b, err := io.ReadAll(io.LimitReader(body, size+1))
	if err != nil {
		return nil, execution.Errorf(execution.Unavailable, "a file of the archive could not be read to its end").Because(err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != digest {
		return nil, damaged("a file of the archive has other content")
	}
	return b, nil
}

// cold reports an object whose class cannot be read at once.
func cold(ctx context.Context, b store.Bucket, key string) bool {
	info, _, err := b.Head(ctx, key)
	return err == nil && (info.StorageClass == "GLACIER" || info.StorageClass == "DEEP_ARCHIVE")
}

// Entries implements journal.Vault.
func (v *Vault) Entries(ctx context.Context, ref execution.Ref, b execution.Bundle, from, to int64) ([]store.Item, error) {
	m, err := v.manifest(ctx, ref, b)
	if err != nil {
		return nil, err
	}
	var out []store.Item
	for _, f := range m.Files {
		if f.Last < from || f.First > to {
			continue
		}
		raw, err := v.read(ctx, ref, f.Key, f.Digest, f.Bytes)
		if err != nil {
			return nil, err
		}
		items, err := readItems(raw)
		if err != nil {
			return nil, execution.AsError(err).With("execution", string(ref.Execution)).With("key", f.Key)
		}
		for _, it := range items {
			if n, ok := journal.EntryVersion(it.Key().SK); ok && n >= from && n <= to {
				out = append(out, it)
			}
		}
	}
	return out, nil
}

// fileKey names a file by what it holds.
func fileKey(ref execution.Ref, first, last int64, digest string) string {
	return fmt.Sprintf("%s%020d-%020d-%s", journal.ArchivePrefix(ref), first, last, digest)
}

func manifestKey(ref execution.Ref, version int64, digest string) string {
	return fmt.Sprintf("%smanifest-%020d-%s.json", journal.ArchivePrefix(ref), version, digest)
}
