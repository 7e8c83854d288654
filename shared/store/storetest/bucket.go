package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Bucket runs the suite on the bucket that open gives.
func Bucket(t *testing.T, open func(t *testing.T) BucketHarness) {
	h := open(t)
	s := &bucketSuite{BucketHarness: h, suite: suite{lacks: h.Lacks}}
	s.report(t)
	// This one moves the clock: nothing else may run meanwhile.
	t.Run("validation window", s.window)
	t.Run("presigned URLs expire", s.presignExpiry)
	for _, test := range []struct {
		name string
		run  func(*bucketSuite, *testing.T)
	}{
		{"put and get", (*bucketSuite).putAndGet},
		{"keys", (*bucketSuite).keys},
		{"large object", (*bucketSuite).large},
		{"checksums", (*bucketSuite).checksums},
		{"create only", (*bucketSuite).createOnly},
		{"create race", (*bucketSuite).createRace},
		{"ranges", (*bucketSuite).ranges},
		{"refresh", (*bucketSuite).refresh},
		{"versions and markers", (*bucketSuite).versions},
		{"list pages", (*bucketSuite).listPages},
		{"delete", (*bucketSuite).deletes},
		{"uploads", (*bucketSuite).uploads},
		{"presigned get", (*bucketSuite).presignedGet},
		{"presigned put", (*bucketSuite).presignedPut},
		{"context ended", (*bucketSuite).contextEnded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(s, t)
		})
	}
}

type bucketSuite struct {
	BucketHarness
	suite
}

func object(key string, body []byte) store.PutObject {
	return store.PutObject{Key: key, Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body)}
}

func (s *bucketSuite) put(t *testing.T, key string, body []byte) store.ObjectInfo {
	t.Helper()
	_, err := s.Bucket.Put(t.Context(), object(key, body))
	must(t, err)
	info, _, err := s.Bucket.Head(t.Context(), key)
	must(t, err)
	return info
}

func (s *bucketSuite) read(t *testing.T, in store.GetObject) ([]byte, store.ObjectInfo) {
	t.Helper()
	body, info, _, err := s.Bucket.Get(t.Context(), in)
	must(t, err)
	defer body.Close()
	b, err := io.ReadAll(body)
	must(t, err)
	return b, info
}

func (s *bucketSuite) expect(t *testing.T, key string, want []byte) {
	t.Helper()
	if got, _ := s.read(t, store.GetObject{Key: key}); !bytes.Equal(got, want) {
		t.Errorf("%s: read %d bytes, want %d", key, len(got), len(want))
	}
}

func (s *bucketSuite) gone(t *testing.T, key string) {
	t.Helper()
	_, _, _, err := s.Bucket.Get(t.Context(), store.GetObject{Key: key})
	kind(t, err, store.NotFound)
	_, _, err = s.Bucket.Head(t.Context(), key)
	kind(t, err, store.NotFound)
}

func (s *bucketSuite) putAndGet(t *testing.T) {
	p := s.Prefix()
	s.gone(t, p+"x")
	for name, body := range map[string][]byte{"text": []byte("hello"), "empty": {}, "bytes": {0, 1, 2, 0xff, '\r', '\n', 0}, "gzip": {0x1f, 0x8b, 8, 0}} {
		meta, err := s.Bucket.Put(t.Context(), object(p+name, body))
		must(t, err)
		if meta.Requests < 1 {
			t.Errorf("%s: %d requests", name, meta.Requests)
		}
		s.expect(t, p+name, body)
		got, info := s.read(t, store.GetObject{Key: p + name})
		head, meta, err := s.Bucket.Head(t.Context(), p+name)
		must(t, err)
		for from, i := range map[string]store.ObjectInfo{"get": info, "head": head} {
			if i.Key != p+name || i.Bytes != int64(len(body)) || i.ETag == "" || i.MediaType != "application/octet-stream" || i.DeleteMarker {
				t.Errorf("%s: %s: %+v", name, from, i)
			}
			if sum := sha256.Sum256(got); i.SHA256 != nil && !bytes.Equal(i.SHA256, sum[:]) {
				t.Errorf("%s: %s: digest %x", name, from, i.SHA256)
			}
		}
		if age := meta.Date.Sub(head.LastModified); !meta.Date.IsZero() && (age < -2*time.Second || age > time.Minute) {
			t.Errorf("%s: last modified %v, store clock %v", name, head.LastModified, meta.Date)
		}
	}
	in := object(p+"typed", []byte("{}"))
	in.MediaType = "application/json"
	_, err := s.Bucket.Put(t.Context(), in)
	must(t, err)
	if info, _, _ := s.Bucket.Head(t.Context(), p+"typed"); info.MediaType != "application/json" {
		t.Errorf("media type %q", info.MediaType)
	}
}

func (s *bucketSuite) keys(t *testing.T) {
	p := s.Prefix()
	for _, name := range []string{"a b", "a+b", "a%2Fb", "a&b=c", "a?b", "a#b", "ünï", "a~b", "a'b(c)!*", "x/y/z", "A", "a", "a@b:c;d,e$f"} {
		body := []byte("body of " + name)
		s.put(t, p+name, body)
		s.expect(t, p+name, body)
	}
	page, _, err := s.Bucket.List(t.Context(), store.ListObjects{Prefix: p})
	must(t, err)
	if len(page.Objects) != 13 || !slices.IsSortedFunc(page.Objects, func(a, b store.ObjectInfo) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) }) {
		t.Errorf("%d objects, or out of order", len(page.Objects))
	}
	_, err = s.Bucket.Put(t.Context(), object("", []byte("x")))
	kind(t, err, store.Invalid)
}

// large: an object above the adapter's limit for a single request.
func (s *bucketSuite) large(t *testing.T) {
	p := s.Prefix()
	body := make([]byte, 17<<20+1)
	for i := range body {
		body[i] = byte(i * 7 >> 3)
	}
	s.put(t, p+"large", body)
	s.expect(t, p+"large", body)
	_, err := s.Bucket.Put(t.Context(), object(p+"large", body))
	kind(t, err, store.Exists)
	uploads, _, err := s.Bucket.Uploads(t.Context(), p)
	must(t, err)
	if len(uploads) != 0 {
		t.Errorf("a refused put left %v", uploads)
	}
}

func (s *bucketSuite) checksums(t *testing.T) {
	s.need(t, Checksums)
	p := s.Prefix()
	wrong := object(p+"digest", []byte("hello"))
	wrong.SHA256[0] ^= 1
	short := object(p+"short", []byte("hello"))
	short.Bytes = 6
	long := object(p+"long", []byte("hello"))
	long.Bytes = 4
	for _, in := range []store.PutObject{wrong, short, long} {
		_, err := s.Bucket.Put(t.Context(), in)
		if store.KindOf(err) != store.Invalid {
			t.Errorf("%s: got %v, want kind %s", in.Key, err, store.Invalid)
		}
		s.gone(t, in.Key)
	}
}

func (s *bucketSuite) createOnly(t *testing.T) {
	p := s.Prefix()
	s.put(t, p+"x", []byte("first"))
	for _, body := range []string{"second", "first"} {
		_, err := s.Bucket.Put(t.Context(), object(p+"x", []byte(body)))
		kind(t, err, store.Exists)
	}
	s.expect(t, p+"x", []byte("first"))
}

func (s *bucketSuite) createRace(t *testing.T) {
	s.need(t, Races)
	p := s.Prefix()
	for round := range 3 {
		key := fmt.Sprintf("%srace%d", p, round)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for i := range 16 {
			wg.Go(func() {
				body := fmt.Sprintf("by %d", i)
				_, err := s.Bucket.Put(context.WithoutCancel(t.Context()), object(key, []byte(body)))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, body)
				} else if k := store.KindOf(err); k != store.Exists && k != store.Conflict {
					t.Errorf("racer %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("winners: %v", won)
		}
		s.expect(t, key, []byte(won[0]))
	}
}

func (s *bucketSuite) ranges(t *testing.T) {
	p := s.Prefix()
	s.put(t, p+"x", []byte("0123456789"))
	for _, r := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {0, 1, "0"}, {3, 4, "3456"}, {3, 0, "3456789"}, {9, 1, "9"}, {8, 100, "89"}, {0, 10, "0123456789"}} {
		got, info := s.read(t, store.GetObject{Key: p + "x", Offset: r.offset, Length: r.length})
		if string(got) != r.want || info.Bytes != 10 {
			t.Errorf("offset %d, length %d: %q of %d, want %q of 10", r.offset, r.length, got, info.Bytes, r.want)
		}
	}
	_, _, _, err := s.Bucket.Get(t.Context(), store.GetObject{Key: p + "x", Offset: 10})
	kind(t, err, store.Invalid)
	s.put(t, p+"empty", nil)
	s.expect(t, p+"empty", nil)
}

func (s *bucketSuite) refresh(t *testing.T) {
	s.need(t, Refreshing)
	p := s.Prefix()
	_, _, err := s.Bucket.Refresh(t.Context(), p+"none", `"x"`, nil)
	kind(t, err, store.NotFound)
	in := object(p+"x", []byte("body"))
	in.MediaType, in.Metadata = "text/plain", map[string]string{"about": "first"}
	_, err = s.Bucket.Put(t.Context(), in)
	must(t, err)
	old, _, err := s.Bucket.Head(t.Context(), p+"x")
	must(t, err)
	_, _, err = s.Bucket.Refresh(t.Context(), p+"x", `"00000000000000000000000000000000"`, nil)
	kind(t, err, store.Exists)
	if s.Later == nil {
		time.Sleep(1100 * time.Millisecond) // LastModified has whole seconds
	}
	info, _, err := s.Bucket.Refresh(t.Context(), p+"x", old.ETag, nil)
	must(t, err)
	if info.LastModified.Before(old.LastModified) || s.Later == nil && !info.LastModified.After(old.LastModified) {
		t.Errorf("modified %v, refreshed %v", old.LastModified, info.LastModified)
	}
	now, _, err := s.Bucket.Head(t.Context(), p+"x")
	must(t, err)
	if now.Bytes != 4 || now.MediaType != "text/plain" || now.ETag != info.ETag || now.Metadata["about"] != "first" {
		t.Errorf("after refresh: %+v", now)
	}
	info, _, err = s.Bucket.Refresh(t.Context(), p+"x", now.ETag, map[string]string{"about": "second"})
	must(t, err)
	now, _, err = s.Bucket.Head(t.Context(), p+"x")
	must(t, err)
	if now.MediaType != "text/plain" || now.ETag != info.ETag || now.Metadata["about"] != "second" || len(now.Metadata) != 1 {
		t.Errorf("after refresh with metadata: %+v", now)
	}
	s.expect(t, p+"x", []byte("body"))
}

func (s *bucketSuite) uploads(t *testing.T) {
	if s.StartUpload == nil {
		s.skip(t, "no multipart upload can be left unfinished")
	}
	p := s.Prefix()
	a, b := s.StartUpload(t, p+"a"), s.StartUpload(t, p+"b")
	got, _, err := s.Bucket.Uploads(t.Context(), p)
	must(t, err)
	if len(got) != 2 || got[0].Key != p+"a" || got[0].UploadID != a.UploadID || got[1].UploadID != b.UploadID || got[0].Started.IsZero() {
		t.Fatalf("uploads: %+v", got)
	}
	s.gone(t, p+"a")
	_, err = s.Bucket.Abort(t.Context(), got[0])
	must(t, err)
	got, _, err = s.Bucket.Uploads(t.Context(), p)
	must(t, err)
	if len(got) != 1 || got[0].UploadID != b.UploadID {
		t.Errorf("after abort: %+v", got)
	}
	_, err = s.Bucket.Abort(t.Context(), b)
	must(t, err)
	_, err = s.Bucket.Abort(t.Context(), b)
	kind(t, err, store.NotFound)
}

func (s *bucketSuite) window(t *testing.T) {
	s.need(t, Window)
	p := s.Prefix()
	s.put(t, p+"clock", nil)
	_, meta, err := s.Bucket.Head(t.Context(), p+"clock")
	must(t, err)
	if meta.Date.IsZero() {
		t.Fatal("an answer without the store's clock")
	}
	in := object(p+"fresh", []byte("x"))
	in.ValidatedAt = meta.Date
	_, err = s.Bucket.Put(t.Context(), in)
	must(t, err)
	in = object(p+"late", []byte("x"))
	in.ValidatedAt = meta.Date.Add(-store.Window - 2*time.Second)
	_, err = s.Bucket.Put(t.Context(), in)
	kind(t, err, store.TooLate)
	s.gone(t, p+"late")
	if s.Later == nil {
		s.skip(t, "the engine's clock cannot be moved")
	}
	s.Later(store.Window + 2*time.Second)
	in = object(p+"late", []byte("x"))
	in.ValidatedAt = meta.Date
	_, err = s.Bucket.Put(t.Context(), in)
	kind(t, err, store.TooLate)
	s.gone(t, p+"late")
}

func (s *bucketSuite) contextEnded(t *testing.T) {
	p := s.Prefix()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Bucket.Put(ctx, object(p+"x", []byte("x"))); store.KindOf(err) != store.Stopped {
		t.Errorf("put under an ended context: %v", err)
	}
	_, _, err := s.Bucket.Head(ctx, p+"x")
	kind(t, err, store.Stopped)
	_, _, err = s.Bucket.List(ctx, store.ListObjects{Prefix: p})
	kind(t, err, store.Stopped)
}
