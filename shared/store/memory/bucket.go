package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

const (
	maxObjectKey     = 1024
	maxObjectsPage   = 1000
	maxMetadata      = 2048
	multipartPart    = 6 << 20
	expiresTagAge    = 24 * time.Hour
	defaultMediaType = "application/octet-stream"
	defaultClass     = "STANDARD"
)

func (b *Bucket) call(name, key string, write bool) *call {
	return &call{name: name, table: Main, object: key, write: write, consistent: true}
}

func (c *call) objectMeta(requests int) store.ObjectMeta {
	return store.ObjectMeta{Date: c.date, Requests: requests}
}

func objectKeyProblem(key string) string {
	if key == "" || len(key) > maxObjectKey {
		return "object key"
	}
	return ""
}

// metadataBytes counts as S3 does: names and values.
func metadataBytes(m map[string]string) (n int) {
	for name, value := range m {
		n += len(name) + len(value)
	}
	return n
}

// Put implements store.Bucket.
func (b *Bucket) Put(ctx context.Context, in store.PutObject) (store.ObjectMeta, error) {
	c := b.call("put_object", in.Key, true)
	requests := 1
	if in.Bytes > store.MultipartAbove {
		requests = 2 + int((in.Bytes+multipartPart-1)/multipartPart)
	}
	var body []byte
	if in.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(in.Body, in.Bytes+1)); err != nil {
			return c.objectMeta(0), c.fail(store.Invalid, "BodyRead")
		}
	}
	err := b.e.do(ctx, c, func(now time.Time) error {
		if err := c.late(now, in.ValidatedAt); err != nil {
			return err
		}
		switch {
		case objectKeyProblem(in.Key) != "":
			return c.invalid("object key")
		case metadataBytes(in.Metadata) > maxMetadata:
			return c.fail(store.TooLarge, "MetadataTooLarge")
		case int64(len(body)) != in.Bytes:
			return c.invalid("IncompleteBody")
		case sha256.Sum256(body) != in.SHA256:
			return c.invalid("BadDigest")
		}
		c.bytes = len(body)
		if b.newest(in.Key).there() {
			return c.fail(store.Exists, "PreconditionFailed")
		}
		b.add(in.Key, &version{rest: b.encrypt(in.Key, body), size: in.Bytes, sum: in.SHA256[:], etag: etag(body), modified: now,
			media: cmp.Or(in.MediaType, defaultMediaType), class: cmp.Or(in.StorageClass, defaultClass), kmsKey: in.KMSKey, metadata: maps.Clone(in.Metadata), expires: in.ExpiresTag})
		return nil
	})
	return c.objectMeta(requests), err
}

func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// Get implements store.Bucket. ObjectInfo.Bytes is the whole object's size,
// whatever the range.
func (b *Bucket) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	c := b.call("get_object", in.Key, false)
	var body []byte
	var info store.ObjectInfo
	err := b.e.do(ctx, c, func(time.Time) error {
		v, err := b.find(c, in.Key, in.VersionID)
		if err != nil {
			return err
		}
		whole := b.plain(v)
		end := in.Offset + in.Length
		if in.Length == 0 || end > int64(len(whole)) {
			end = int64(len(whole))
		}
		if in.Offset < 0 || in.Length < 0 || in.Offset > 0 && in.Offset >= int64(len(whole)) {
			return c.invalid("InvalidRange")
		}
		body, info = whole[in.Offset:end], v.info(in.Key)
		c.bytes = len(body)
		return nil
	})
	if err != nil {
		return nil, store.ObjectInfo{}, c.objectMeta(1), err
	}
	return io.NopCloser(bytes.NewReader(body)), info, c.objectMeta(1), nil
}

// find gives the version that a read asks for.
func (b *Bucket) find(c *call, key, id string) (*version, error) {
	v := b.newest(key)
	if id != "" {
		v = b.version(key, id)
	}
	if !v.there() || c.shaped("not_found") {
		return nil, c.fail(store.NotFound, "NoSuchKey")
	}
	return v, nil
}

// Head implements store.Bucket.
func (b *Bucket) Head(ctx context.Context, key string) (info store.ObjectInfo, _ store.ObjectMeta, err error) {
	c := b.call("head_object", key, false)
	err = b.e.do(ctx, c, func(time.Time) error {
		v, err := b.find(c, key, "")
		if err != nil {
			return err
		}
		info = v.info(key)
		return nil
	})
	if err != nil {
		return store.ObjectInfo{}, c.objectMeta(1), err
	}
	return info, c.objectMeta(1), nil
}

// Refresh implements store.Bucket: a new version with the same bytes.
func (b *Bucket) Refresh(ctx context.Context, key, etag string, metadata map[string]string) (info store.ObjectInfo, _ store.ObjectMeta, err error) {
	c := b.call("put_object", key, true)
	err = b.e.do(ctx, c, func(now time.Time) error {
		v, err := b.find(c, key, "")
		if err != nil {
			return err
		}
		if v.etag != etag {
			return c.fail(store.Exists, "PreconditionFailed")
		}
		fresh := *v
		fresh.modified, fresh.id = now, ""
		if metadata != nil {
			fresh.metadata = maps.Clone(metadata)
		}
		b.add(key, &fresh)
		info = fresh.info(key)
		return nil
	})
	if err != nil {
		return store.ObjectInfo{}, c.objectMeta(1), err
	}
	return info, c.objectMeta(1), nil
}

// Hide puts a delete marker on top of an object, as a delete without a version
// does in S3.
func (b *Bucket) Hide(key string) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.add(key, &version{marker: true, modified: b.e.clock()})
}

// List implements store.Bucket.
func (b *Bucket) List(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	return b.list(ctx, in, func(o *object, take func(*version) bool) bool {
		v := o.newest()
		return !v.there() || take(v)
	})
}

// Versions implements store.Bucket; of one key the newest comes first.
func (b *Bucket) Versions(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	return b.list(ctx, in, func(o *object, take func(*version) bool) bool {
		for i := len(o.versions) - 1; i >= 0; i-- {
			if !take(o.versions[i]) {
				return false
			}
		}
		return true
	})
}

// list pages through what each gives of every object, in order. A cursor names
// the last version listed, so it stays good when that version goes.
func (b *Bucket) list(ctx context.Context, in store.ListObjects, each func(*object, func(*version) bool) bool) (page store.ObjectPage, _ store.ObjectMeta, err error) {
	c := b.call("list_objects", in.Prefix, false)
	err = b.e.do(ctx, c, func(time.Time) error {
		fromKey, fromSeq, ok := parseCursor(in.Cursor)
		if !ok || in.Limit < 0 {
			return c.invalid("cursor or limit")
		}
		limit := min(cmp.Or(in.Limit, maxObjectsPage), maxObjectsPage)
		if c.shaped("page_1") {
			limit = 1
		}
		var last string
		b.objects.Ascend(&object{key: max(in.Prefix, fromKey)}, func(o *object) bool {
			if !strings.HasPrefix(o.key, in.Prefix) {
				return false
			}
			return each(o, func(v *version) bool {
				if in.Cursor != "" && o.key == fromKey && v.seq >= fromSeq {
					return true
				}
				if len(page.Objects) == limit {
					page.Cursor = last
					return false
				}
				page.Objects = append(page.Objects, v.info(o.key))
				last = fmt.Sprintf("%016x", v.seq) + o.key
				return true
			})
		})
		return nil
	})
	if err != nil {
		return store.ObjectPage{}, c.objectMeta(1), err
	}
	return page, c.objectMeta(1), nil
}

func parseCursor(s string) (key string, seq uint64, ok bool) {
	if s == "" {
		return "", 0, true
	}
	if len(s) < 17 {
		return "", 0, false
	}
	_, err := fmt.Sscanf(s[:16], "%016x", &seq)
	return s[16:], seq, err == nil
}

// Delete implements store.Bucket. A version that is not there counts as removed.
func (b *Bucket) Delete(ctx context.Context, versions []store.ObjectVersion) (failed []store.ObjectVersion, _ store.ObjectMeta, err error) {
	keys := make([]string, len(versions))
	for i, v := range versions {
		keys[i] = v.Key
	}
	c := b.call("delete_objects", strings.Join(keys, " "), true)
	err = b.e.do(ctx, c, func(time.Time) error {
		if len(versions) == 0 || len(versions) > maxObjectsPage {
			return c.invalid("number of versions")
		}
		for _, v := range versions {
			if objectKeyProblem(v.Key) != "" || v.VersionID == "" {
				return c.invalid("key or version")
			}
		}
		if c.shaped("unprocessed") {
			failed = append(failed, versions...)
			return nil
		}
		for _, v := range versions {
			b.remove(v.Key, v.VersionID)
		}
		return nil
	})
	if err != nil {
		return nil, c.objectMeta(1), err
	}
	return failed, c.objectMeta(1), nil
}

// StartUpload begins a multipart upload that nothing finishes, as a client that
// dies leaves it.
func (b *Bucket) StartUpload(key string) store.Upload {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.lastSeq++
	u := store.Upload{Key: key, UploadID: fmt.Sprintf("u%016x", b.lastSeq), Started: b.e.clock()}
	b.uploads = append(b.uploads, u)
	return u
}

// Uploads implements store.Bucket.
func (b *Bucket) Uploads(ctx context.Context, prefix string) (uploads []store.Upload, _ store.ObjectMeta, err error) {
	c := b.call("list_objects", prefix, false)
	err = b.e.do(ctx, c, func(time.Time) error {
		for _, u := range b.uploads {
			if strings.HasPrefix(u.Key, prefix) {
				uploads = append(uploads, u)
			}
		}
		return nil
	})
	if err != nil {
		return nil, c.objectMeta(1), err
	}
	return uploads, c.objectMeta(1), nil
}

// Abort implements store.Bucket; kind NotFound when there is no such upload.
func (b *Bucket) Abort(ctx context.Context, u store.Upload) (store.ObjectMeta, error) {
	c := b.call("delete_objects", u.Key, true)
	err := b.e.do(ctx, c, func(time.Time) error {
		for i, x := range b.uploads {
			if x.Key == u.Key && x.UploadID == u.UploadID {
				b.uploads = append(b.uploads[:i:i], b.uploads[i+1:]...)
				return nil
			}
		}
		return c.fail(store.NotFound, "NoSuchUpload")
	})
	return c.objectMeta(1), err
}
