package memory

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/tidwall/btree"
)

// Bucket is the engine's bucket; it implements store.Bucket.
type Bucket struct {
	e       *Engine
	key     [32]byte // encrypts objects at rest
	aead    cipher.AEAD
	objects *btree.BTreeG[*object]
	expiry  *btree.BTreeG[due]
	uploads []store.Upload
	lastSeq uint64
}

var _ store.Bucket = (*Bucket)(nil)

// object is a key with its versions, oldest first; never empty.
type object struct {
	key      string
	versions []*version
}

// version is one version of an object, or a delete marker. Never changed.
type version struct {
	id       string
	seq      uint64
	rest     []byte // as it lies at rest: encrypted
	size     int64
	sum      []byte // SHA-256; nil when not known
	etag     string
	modified time.Time
	media    string
	class    string
	kmsKey   string
	metadata map[string]string
	expires  bool
	marker   bool
}

// due is when a version with the expiry tag vanishes.
type due struct {
	at  time.Time
	key string
	seq uint64
	id  string
}

func (b *Bucket) clear() {
	b.objects = btree.NewBTreeGOptions(func(x, y *object) bool { return x.key < y.key }, btree.Options{NoLocks: true})
	b.expiry = btree.NewBTreeGOptions(func(x, y due) bool {
		if !x.at.Equal(y.at) {
			return x.at.Before(y.at)
		}
		return x.seq < y.seq
	}, btree.Options{NoLocks: true})
	b.uploads = nil
}

func (o *object) newest() *version { return o.versions[len(o.versions)-1] }

// there reports whether the version is an object that can be read.
func (v *version) there() bool { return v != nil && !v.marker }

func (v *version) info(key string) store.ObjectInfo {
	i := store.ObjectInfo{Key: key, VersionID: v.id, LastModified: v.modified, DeleteMarker: v.marker}
	if !v.marker {
		i.ETag, i.Bytes, i.SHA256, i.MediaType, i.StorageClass, i.Encryption = v.etag, v.size, slices.Clone(v.sum), v.media, v.class, "aws:kms"
		i.Metadata = maps.Clone(v.metadata)
	}
	return i
}

// newest is the newest version of a key, a delete marker too; nil when there
// is none.
func (b *Bucket) newest(key string) *version {
	if o, ok := b.objects.Get(&object{key: key}); ok {
		return o.newest()
	}
	return nil
}

func (b *Bucket) version(key, id string) *version {
	o, ok := b.objects.Get(&object{key: key})
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(o.versions, func(v *version) bool { return v.id == id }); i >= 0 {
		return o.versions[i]
	}
	return nil
}

// add puts a version on top of a key's; one without an id gets the next.
func (b *Bucket) add(key string, v *version) {
	b.lastSeq++
	v.seq = b.lastSeq
	if v.id == "" {
		v.id = fmt.Sprintf("v%016x", v.seq)
	}
	o, ok := b.objects.Get(&object{key: key})
	if !ok {
		o = &object{key: key}
		b.objects.Set(o)
	}
	o.versions = append(o.versions, v)
	b.schedule(key, v)
}

func (b *Bucket) schedule(key string, v *version) {
	if v.expires && !v.marker {
		b.expiry.Set(due{v.modified.Add(expiresTagAge), key, v.seq, v.id})
	}
}

func (b *Bucket) remove(key, id string) {
	o, ok := b.objects.Get(&object{key: key})
	if !ok {
		return
	}
	i := slices.IndexFunc(o.versions, func(v *version) bool { return v.id == id })
	if i < 0 {
		return
	}
	v := o.versions[i]
	b.expiry.Delete(due{v.modified.Add(expiresTagAge), key, v.seq, v.id})
	o.versions = slices.Delete(o.versions, i, i+1)
	if len(o.versions) == 0 {
		b.objects.Delete(o)
	}
}

// expire removes what the lifecycle rule for the expiry tag removes.
func (b *Bucket) expire(now time.Time) {
	for {
		d, ok := b.expiry.Min()
		if !ok || d.at.After(now) {
			return
		}
		b.expiry.Delete(d)
		b.remove(d.key, d.id)
	}
}

func (b *Bucket) setKey(key [32]byte) {
	block, err := aes.NewCipher(key[:])
	if err == nil {
		b.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err) // a 32-byte key is always one
	}
	b.key = key
}

// encrypt gives an object's bytes as they lie at rest: nonce, then AES-256-GCM.
// The nonce follows from key, place and content, so that the same calls leave
// the same bytes; it repeats only where all of these do.
func (b *Bucket) encrypt(key string, body []byte) []byte {
	sum := sha256.Sum256(body)
	m := hmac.New(sha256.New, b.key[:])
	m.Write(sum[:])
	m.Write([]byte(key))
	nonce := m.Sum(nil)[:b.aead.NonceSize()]
	return b.aead.Seal(nonce, nonce, body, nil)
}

// decrypt is encrypt's inverse; false when rest is not of this key.
func (b *Bucket) decrypt(rest []byte) ([]byte, bool) {
	n := b.aead.NonceSize()
	if len(rest) < n {
		return nil, false
	}
	body, err := b.aead.Open(nil, rest[:n], rest[n:], nil)
	return body, err == nil
}

// plain is what a read of the version gives. Bytes at rest that this key did
// not encrypt (a test loaded damaged or plain ones) are given as they are:
// whoever reads must notice by the digest.
func (b *Bucket) plain(v *version) []byte {
	if body, ok := b.decrypt(v.rest); ok {
		return body
	}
	return slices.Clone(v.rest)
}
