package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Get answers get_artifact: an accepted artifact (or a result of an operation)
// by its digest, or the newest of a name, as of a version. Short ones come with
// the reply, longer ones as a URL to their exact version. Errors: NotFound (also
// of what is only staged), Deleted, HistoryPruned, Integrity naming execution,
// version and key.
func (s *Store) Get(ctx context.Context, r *api.GetArtifactRequest) (*api.GetArtifactReply, error) {
	h, err := s.at(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := s.Journal.Readable(h); err != nil {
		return nil, err
	}
	st := h.State
	a := find(st, r.Digest, r.Name)
	if a == nil {
		return nil, execution.Errorf(execution.NotFound, "no such artifact").With("execution", string(st.Execution)).With("version", st.Version)
	}
	key := journal.ArtifactObjectKey(st.Ref, a.Digest)
	out := &api.GetArtifactReply{Artifact: api.Artifact(*a),
		Standing: api.Standing{Execution: st.Execution, Version: st.Version, Status: st.Status, Fence: st.Fence, Owner: st.Owner}}
	if inline(a.Bytes, api.InlineLimit(r.MaxInlineBytes)) {
		out.Body, err = s.read(ctx, st.Ref, key, *a)
		return out, err
	}
	ref, err := s.refTo(ctx, st.Ref, key, a)
	if err != nil {
		return nil, err
	}
	out.URL, out.ExpiresAt = ref.URL, ref.ExpiresAt
	return out, nil
}

func (s *Store) at(ctx context.Context, r *api.GetArtifactRequest) (*journal.Handle, error) {
	if r.Version > 0 {
		return s.Journal.At(ctx, r.Tenant, r.Execution, r.Version)
	}
	return s.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{Head: true})
}

// inline reports whether bytes fit into a reply of a size, as base64 beside
// everything else that it says.
func inline(bytes int64, limit int) bool { return bytes/3*4+4096 <= int64(limit) }

func find(st *execution.State, digest, name string) *execution.Artifact {
	if name != "" {
		return st.ArtifactNamed(name)
	}
	if a := st.ArtifactByDigest(digest); a != nil {
		return a
	}
	for _, op := range st.Operations {
		if op.ResultRef != nil && op.ResultRef.Digest == digest {
			a := *op.ResultRef
			a.Version = op.SettledAt
			return &a
		}
	}
	return nil
}

// Read gives the bytes of an artifact of known digest, accepted or not, held
// against it. Errors: Integrity when it is missing or damaged, and the store's.
func (s *Store) Read(ctx context.Context, ref execution.Ref, digest string) ([]byte, error) {
	key := journal.ArtifactObjectKey(ref, digest)
	r, info, _, err := s.Bucket.Get(ctx, store.GetObject{Key: key})
	if err != nil {
		return nil, s.readFailed(ctx, err, ref, 0, key)
	}
	return readAll(&verifying{r: r, left: info.Bytes, digest: digest, sum: sha256.New(), fail: func(text string) error { return damaged(ref, 0, key, text) }}, info.Bytes)
}

func (s *Store) read(ctx context.Context, ref execution.Ref, key string, a execution.Artifact) ([]byte, error) {
	r, err := s.open(ctx, ref, key, a)
	if err != nil {
		return nil, err
	}
	return readAll(r, a.Bytes)
}

func readAll(r io.ReadCloser, n int64) ([]byte, error) {
	defer r.Close()
	b := bytes.NewBuffer(make([]byte, 0, n+bytes.MinRead))
	if _, err := b.ReadFrom(r); err != nil {
		return nil, journal.Fail(err, execution.Ref{})
	}
	return b.Bytes(), nil
}

// Open streams an artifact in constant memory. The bytes are held against size
// and digest: a reader that reaches io.EOF has read the artifact, Integrity
// comes instead of it otherwise.
func (s *Store) Open(ctx context.Context, ref execution.Ref, a execution.Artifact) (io.ReadCloser, error) {
	return s.open(ctx, ref, journal.ArtifactObjectKey(ref, a.Digest), a)
}

func (s *Store) open(ctx context.Context, ref execution.Ref, key string, a execution.Artifact) (io.ReadCloser, error) {
	r, info, _, err := s.Bucket.Get(ctx, store.GetObject{Key: key})
	if err != nil {
		return nil, s.readFailed(ctx, err, ref, a.Version, key)
	}
	if info.Bytes != a.Bytes {
		r.Close()
		return nil, damaged(ref, a.Version, key, "the object of an artifact has another size")
	}
	return &verifying{r: r, left: a.Bytes, digest: a.Digest, sum: sha256.New(), fail: func(text string) error { return damaged(ref, a.Version, key, text) }}, nil
}

func (s *Store) readFailed(ctx context.Context, err error, ref execution.Ref, version int64, key string) error {
	if store.KindOf(err) == store.NotFound {
		return s.Journal.Missing(ctx, ref, damaged(ref, version, key, "the object of an artifact is missing"))
	}
	return journal.Fail(err, ref)
}

// verifying reads to the end and tells whether it was the right bytes.
type verifying struct {
	r      io.ReadCloser
	left   int64
	digest string
	sum    hash.Hash
	fail   func(text string) error
}

// WriteTo implements io.WriterTo, with pieces that stay in the processor's cache
// between reading, hashing and writing, whatever w would choose.
func (v *verifying) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{v}, make([]byte, 64<<10))
}

func (v *verifying) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.sum.Write(p[:n])
	v.left -= int64(n)
	return v.end(n, err)
}

// end judges a read by its error and what is left.
func (v *verifying) end(n int, err error) (int, error) {
	switch {
	case v.left < 0, err == io.EOF && v.left > 0:
		return 0, v.fail("the object of an artifact has another size")
	case err == io.EOF && hex.EncodeToString(v.sum.Sum(nil)) != v.digest:
		return 0, v.fail("the object of an artifact has other content")
	}
	return n, err
}

func (v *verifying) Close() error { return v.r.Close() }

// RefTo gives a URL under which exactly the artifact's bytes can be read for an
// hour. Integrity when the object is missing or, as far as can be told without
// reading it, damaged.
func (s *Store) RefTo(ctx context.Context, ref execution.Ref, a *execution.Artifact) (*api.Ref, error) {
	return s.refTo(ctx, ref, journal.ArtifactObjectKey(ref, a.Digest), a)
}

func (s *Store) refTo(ctx context.Context, ref execution.Ref, key string, a *execution.Artifact) (*api.Ref, error) {
	info, _, err := s.Bucket.Head(ctx, key)
	if err != nil {
		return nil, s.readFailed(ctx, err, ref, a.Version, key)
	}
	if err := whole(ref, a.Digest, a.Bytes, info); err != nil {
		return nil, damaged(ref, a.Version, key, "the object of an artifact has other content")
	}
	p, err := s.Bucket.PresignGet(ctx, store.PresignGet{Key: key, VersionID: info.VersionID, MediaType: a.MediaType, Disposition: disposition(a.Name), Expires: readFor})
	if err != nil {
		return nil, journal.Fail(err, ref)
	}
	return &api.Ref{Version: a.Version, Digest: a.Digest, Bytes: a.Bytes, URL: p.URL, ExpiresAt: api.TimeOrNil(p.Expires.UnixMilli())}, nil
}

// disposition makes a browser save the file under its name rather than show it
// (RFC 6266, RFC 8187).
func disposition(name string) string {
	if name == "" {
		return "attachment"
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '.' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return "attachment; filename*=UTF-8''" + b.String()
}
