package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Dump is what lies at rest: the raw items of the main table and of the key
// table (with the key that objects are encrypted with) in DynamoDB's JSON form,
// and all versions of all objects, encrypted. The order is that of the keys.
type Dump struct {
	Items   []json.RawMessage `json:"items"`
	Objects []Object          `json:"objects"`
	Keys    []json.RawMessage `json:"keys"`
	Uploads []Upload          `json:"uploads,omitempty"`
}

// Upload is an unfinished multipart upload.
type Upload struct {
	Key      string    `json:"key"`
	UploadID string    `json:"upload_id"`
	Started  time.Time `json:"started"`
}

// Object is one version of an object, oldest first within a key.
type Object struct {
	Key          string            `json:"key"`
	VersionID    string            `json:"version_id,omitempty"` // load: "" makes one
	Body         []byte            `json:"body"`
	DeleteMarker bool              `json:"delete_marker"`
	MediaType    string            `json:"media_type,omitempty"`
	StorageClass string            `json:"storage_class,omitempty"`
	SHA256       []byte            `json:"sha256,omitempty"`
	KMSKey       string            `json:"kms_key,omitempty"`
	ExpiresTag   bool              `json:"expires_tag,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	LastModified *time.Time        `json:"last_modified,omitempty"` // load: nil means now
}

// Dump gives everything at rest.
func (e *Engine) Dump() Dump {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := Dump{Items: e.table(Main).dump(), Keys: e.table(Keys).dump(), Objects: []Object{}}
	for _, u := range e.bucket.uploads {
		d.Uploads = append(d.Uploads, Upload(u))
	}
	e.bucket.objects.Scan(func(o *object) bool {
		for _, v := range o.versions {
			d.Objects = append(d.Objects, Object{Key: o.key, VersionID: v.id, Body: v.rest, DeleteMarker: v.marker, MediaType: v.media,
				StorageClass: v.class, SHA256: v.sum, KMSKey: v.kmsKey, ExpiresTag: v.expires, Metadata: v.metadata, LastModified: &v.modified})
		}
		return true
	})
	return d
}

func (t *Table) dump() []json.RawMessage {
	out := make([]json.RawMessage, 0, t.rows.Len())
	t.rows.Scan(func(x entry) bool {
		raw, err := json.Marshal(EncodeItem(x.row.item()))
		if err != nil {
			panic(err) // maps of strings and bytes always have a form
		}
		out = append(out, raw)
		return true
	})
	return out
}

// Load puts the dump's items and objects in place, over what has the same key
// (and version), and leaves the rest. It makes no stream records. Loading a
// dump into an engine after Reset restores it exactly. Items may hold what no
// write of ours would leave, as long as DynamoDB could hold it. Malformed input
// is an error that names the place, and changes nothing.
func (e *Engine) Load(d Dump) error {
	items, err := decodeItems("items", d.Items)
	if err != nil {
		return err
	}
	keys, err := decodeItems("keys", d.Keys)
	if err != nil {
		return err
	}
	var objectKey []byte
	for _, it := range keys {
		if it.Key() == objectKeyAt {
			if objectKey = it.Bytes("key"); len(objectKey) != 32 {
				return fmt.Errorf("memory: keys: the key of the objects is not 32 bytes")
			}
		}
	}
	for i, o := range d.Objects {
		if objectKeyProblem(o.Key) != "" {
			return fmt.Errorf("memory: objects[%d]: key", i)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, it := range items {
		t := e.table(Main)
		t.replace(t.row(it.Key()), t.newRow(it))
	}
	for _, it := range keys {
		t := e.table(Keys)
		t.replace(t.row(it.Key()), t.newRow(it))
	}
	if objectKey != nil {
		e.bucket.rekey([32]byte(objectKey))
	}
	for _, o := range d.Objects {
		e.bucket.load(o, e.clock())
	}
	e.bucket.loadUploads(d.Uploads)
	return nil
}

func decodeItems(where string, raw []json.RawMessage) ([]store.Item, error) {
	items := make([]store.Item, len(raw))
	for i, r := range raw {
		var err error
		if items[i], err = DecodeItem(r); err != nil {
			return nil, fmt.Errorf("memory: %s[%d]: %w", where, i, err)
		}
	}
	return items, nil
}

// rekey changes the key that objects are encrypted with, those that are there too.
func (b *Bucket) rekey(key [32]byte) {
	if key == b.key {
		return
	}
	old := *b
	b.setKey(key)
	b.objects.Scan(func(o *object) bool {
		for i, v := range o.versions {
			if body, ok := old.decrypt(v.rest); ok && !v.marker {
				again := *v
				again.rest = b.encrypt(o.key, body)
				o.versions[i] = &again
			}
		}
		return true
	})
}

func (b *Bucket) load(o Object, now time.Time) {
	v := &version{id: o.VersionID, rest: append([]byte{}, o.Body...), sum: o.SHA256, modified: now, marker: o.DeleteMarker, kmsKey: o.KMSKey, expires: o.ExpiresTag, metadata: o.Metadata}
	if o.LastModified != nil {
		v.modified = o.LastModified.UTC()
	}
	if !v.marker {
		body := b.plain(v)
		v.size, v.etag = int64(len(body)), etag(body)
		v.media, v.class = cmp.Or(o.MediaType, defaultMediaType), cmp.Or(o.StorageClass, defaultClass)
	} else {
		v.rest = nil
	}
	// Ids that this engine made are not made again.
	var n uint64
	if _, err := fmt.Sscanf(v.id, "v%016x", &n); err == nil {
		b.lastSeq = max(b.lastSeq, n)
	}
	if old := b.version(o.Key, o.VersionID); old != nil && o.VersionID != "" {
		b.swap(o.Key, old, v)
		return
	}
	b.add(o.Key, v)
}

// swap puts v in the place of old.
func (b *Bucket) swap(key string, old, v *version) {
	b.expiry.Delete(due{old.modified.Add(expiresTagAge), key, old.seq, old.id})
	v.seq = old.seq
	o, _ := b.objects.Get(&object{key: key})
	for i := range o.versions {
		if o.versions[i] == old {
			o.versions[i] = v
		}
	}
	b.schedule(key, v)
}

func (b *Bucket) loadUploads(uploads []Upload) {
	for _, u := range uploads {
		known := false
		for i, x := range b.uploads {
			if x.Key == u.Key && x.UploadID == u.UploadID {
				b.uploads[i], known = store.Upload(u), true
			}
		}
		if !known {
			b.uploads = append(b.uploads, store.Upload(u))
		}
	}
}
