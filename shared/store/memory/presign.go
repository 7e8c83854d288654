package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// ticket is what a presigned URL allows; it travels in the URL's last segment
// with a MAC, so it needs no memory and cannot be altered.
type ticket struct {
	Put         bool              `json:"put,omitempty"`
	Key         string            `json:"key"`
	Version     string            `json:"version,omitempty"`
	Bytes       int64             `json:"bytes,omitempty"`
	SHA256      []byte            `json:"sha256,omitempty"`
	MediaType   string            `json:"media_type"`
	Disposition string            `json:"disposition,omitempty"`
	KMSKey      string            `json:"kms_key,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Expires     time.Time         `json:"expires"`
}

// Headers of presigned puts, as S3 names them.
const (
	checksumHeader = "X-Amz-Checksum-Sha256"
	kmsHeader      = "X-Amz-Server-Side-Encryption"
	kmsKeyHeader   = "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
	metadataHeader = "X-Amz-Meta-"
)

// PresignPut implements store.Bucket.
func (b *Bucket) PresignPut(_ context.Context, in store.PresignPut) (store.Presigned, error) {
	t := ticket{Put: true, Key: in.Key, Bytes: in.Bytes, SHA256: in.SHA256[:], MediaType: cmp.Or(in.MediaType, defaultMediaType), KMSKey: in.KMSKey, Metadata: in.Metadata}
	return b.presign(t, in.Expires)
}

// PresignGet implements store.Bucket.
func (b *Bucket) PresignGet(_ context.Context, in store.PresignGet) (store.Presigned, error) {
	t := ticket{Key: in.Key, Version: in.VersionID, MediaType: cmp.Or(in.MediaType, defaultMediaType), Disposition: cmp.Or(in.Disposition, "attachment")}
	return b.presign(t, in.Expires)
}

func (b *Bucket) presign(t ticket, expires time.Duration) (store.Presigned, error) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	if objectKeyProblem(t.Key) != "" || expires <= 0 || t.Bytes < 0 {
		return store.Presigned{}, &store.Error{Call: "presign", Key: t.Key, Kind: store.Invalid, Code: "InvalidRequest"}
	}
	t.Expires = b.e.clock().Add(expires)
	raw, err := json.Marshal(t)
	if err != nil {
		return store.Presigned{}, &store.Error{Call: "presign", Key: t.Key, Kind: store.Invalid, Code: "InvalidRequest", Err: err}
	}
	p := store.Presigned{URL: b.e.baseURL + encode(raw) + "." + encode(b.e.mac(raw)), Headers: map[string]string{}, Expires: t.Expires}
	for name, value := range t.headers() {
		p.Headers[name] = value
	}
	return p, nil
}

// headers are those that the client of a put must send.
func (t ticket) headers() map[string]string {
	if !t.Put {
		return nil
	}
	h := map[string]string{"Content-Type": t.MediaType, "If-None-Match": "*", checksumHeader: base64.StdEncoding.EncodeToString(t.SHA256), kmsHeader: "aws:kms"}
	if t.KMSKey != "" {
		h[kmsKeyHeader] = t.KMSKey
	}
	for name, value := range t.Metadata {
		h[http.CanonicalHeaderKey(metadataHeader+name)] = value
	}
	return h
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (e *Engine) mac(raw []byte) []byte {
	key := e.secret("presigned URLs")
	m := hmac.New(sha256.New, key[:])
	m.Write(raw)
	return m.Sum(nil)
}

// open reads the ticket in a URL's last segment; false when it was not made
// here or altered.
func (e *Engine) open(segment string) (t ticket, ok bool) {
	text, mac, _ := strings.Cut(segment, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	sum, err2 := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || err2 != nil {
		return t, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !hmac.Equal(sum, e.mac(raw)) || json.Unmarshal(raw, &t) != nil {
		return ticket{}, false
	}
	return t, true
}

// ServePresigned answers a request to a presigned URL as S3 does. It is the
// client's own request: faults do not strike it and the log does not show it.
func (e *Engine) ServePresigned(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	t, ok := e.open(path.Base(r.URL.Path))
	switch {
	case !ok:
		http.Error(w, "SignatureDoesNotMatch", http.StatusForbidden)
	case e.Now().After(t.Expires):
		http.Error(w, "AccessDenied: Request has expired", http.StatusForbidden)
	case t.Put && r.Method == http.MethodPut:
		e.servePut(w, r, t)
	case !t.Put && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		e.serveGet(w, r, t)
	default:
		http.Error(w, "SignatureDoesNotMatch", http.StatusForbidden)
	}
}

func (e *Engine) serveGet(w http.ResponseWriter, r *http.Request, t ticket) {
	e.mu.Lock()
	v := e.bucket.newest(t.Key)
	if t.Version != "" {
		v = e.bucket.version(t.Key, t.Version)
	}
	var body []byte
	if v.there() {
		body = e.bucket.plain(v)
	}
	e.mu.Unlock()
	if !v.there() {
		http.Error(w, "NoSuchKey", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", t.MediaType)
	h.Set("Content-Disposition", t.Disposition)
	h.Set("ETag", v.etag)
	http.ServeContent(w, r, "", v.modified, bytes.NewReader(body))
}

func (e *Engine) servePut(w http.ResponseWriter, r *http.Request, t ticket) {
	for name, value := range t.headers() {
		if r.Header.Get(name) != value {
			http.Error(w, "SignatureDoesNotMatch: "+name, http.StatusForbidden)
			return
		}
	}
	if r.ContentLength != t.Bytes {
		http.Error(w, "SignatureDoesNotMatch: Content-Length", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, t.Bytes))
	sum := sha256.Sum256(body)
	if err != nil || int64(len(body)) != t.Bytes || !bytes.Equal(sum[:], t.SHA256) {
		http.Error(w, "BadDigest", http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bucket.newest(t.Key).there() {
		http.Error(w, "PreconditionFailed", http.StatusPreconditionFailed)
		return
	}
	v := &version{rest: e.bucket.encrypt(t.Key, body), size: t.Bytes, sum: sum[:], etag: etag(body), modified: e.clock(),
		media: t.MediaType, class: defaultClass, kmsKey: t.KMSKey, metadata: t.Metadata}
	e.bucket.add(t.Key, v)
	w.Header().Set("ETag", v.etag)
	w.Header().Set("X-Amz-Version-Id", v.id)
	w.WriteHeader(http.StatusOK)
}
