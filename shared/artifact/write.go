package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Write stages bytes without a name: a result that is too large for an entry
// or a slot. The caller has read the execution's head or journal and writes the
// entry or slot within store.Window of that.
func (s *Store) Write(ctx context.Context, ref execution.Ref, data []byte, mediaType string) (execution.Artifact, error) {
	a := execution.Artifact{Digest: digestOf(data), Bytes: int64(len(data)), MediaType: mediaType}
	f := file{digest: a.Digest, bytes: a.Bytes, open: func() (io.ReadSeeker, error) { return bytes.NewReader(data), nil }}
	return a, s.stage(ctx, ref, time.Time{}, f)
}

// Upload is a file to stage from Go. Body is read twice, from where it stands
// to its end: once for its digest, once to send it.
type Upload struct {
	Tenant    execution.TenantID
	Execution execution.ExecutionID
	Fence     int64 // 0: none shown
	Name      string
	MediaType string
	Body      io.ReadSeeker
}

// Stage stages a file of up to 5 GB in constant memory; errors as Put's.
func (s *Store) Stage(ctx context.Context, u Upload) (execution.Artifact, error) {
	none := execution.Artifact{}
	if err := execution.CheckText("name", u.Name, execution.MaxArtifactName); err != nil {
		return none, err
	}
	if err := checkMediaType("media_type", u.MediaType); err != nil {
		return none, err
	}
	start, err := u.Body.Seek(0, io.SeekCurrent)
	if err != nil {
		return none, unreadable(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(u.Body, execution.MaxArtifactBytes+1))
	if err != nil {
		return none, unreadable(err)
	}
	if n > execution.MaxArtifactBytes {
		return none, execution.Errorf(execution.TooLarge, "the artifact is too large").With("limit", int64(execution.MaxArtifactBytes))
	}
	head, clock, err := s.mayStage(ctx, u.Tenant, u.Execution, u.Fence)
	if err != nil {
		return none, err
	}
	a := execution.Artifact{Digest: hex.EncodeToString(sum.Sum(nil)), Bytes: n, Name: u.Name, MediaType: u.MediaType}
	f := file{digest: a.Digest, bytes: n, about: &about{u.Name, u.MediaType}, open: func() (io.ReadSeeker, error) {
		if _, err := u.Body.Seek(start, io.SeekStart); err != nil {
			return nil, unreadable(err)
		}
		return u.Body, nil
	}}
	if err := s.stage(ctx, head.Ref, clock.Date(), f); err != nil {
		return none, err
	}
	return a, nil
}

func unreadable(err error) error {
	return execution.Invalid("body", "cannot be read").Because(err)
}

// CopyAll stages artifacts of one execution for another of the same tenant (a
// fork), in constant memory each, and gives them as the entry that accepts the
// copies must name them. Copies that are there already are found.
func (s *Store) CopyAll(ctx context.Context, from, to execution.Ref, list []execution.Artifact) ([]execution.Artifact, error) {
	out := make([]execution.Artifact, len(list))
	var files []execution.Artifact // each digest once, whatever its names
	for i, a := range list {
		out[i] = a
		out[i].Version = 0
		if !slices.ContainsFunc(files, func(f execution.Artifact) bool { return f.Digest == a.Digest }) {
			files = append(files, a)
		}
	}
	err := each(len(files), func(i int) error {
		a := files[i]
		src := &source{ctx: ctx, s: s, ref: from, key: journal.ArtifactObjectKey(from, a.Digest), artifact: a}
		defer src.Close()
		f := file{digest: a.Digest, bytes: a.Bytes, open: func() (io.ReadSeeker, error) {
			_, err := src.Seek(0, io.SeekStart)
			return src, err
		}}
		err := s.stage(ctx, to, time.Time{}, f)
		switch {
		case store.KindOf(err) == store.Invalid && src.failed != nil:
			return src.failed
		case store.KindOf(err) == store.Invalid:
			return damaged(from, a.Version, src.key, "the object of an artifact has other content")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// source reads an artifact for a copy, in one request unless it must begin
// again. The put at the other end holds the bytes against the digest.
type source struct {
	ctx      context.Context
	s        *Store
	ref      execution.Ref
	key      string
	artifact execution.Artifact

	at     int64
	body   io.ReadCloser // nil: not opened at that place yet
	failed error         // why it could not be read
}

func (r *source) Read(p []byte) (n int, err error) {
	if r.at >= r.artifact.Bytes {
		return 0, io.EOF
	}
	if r.body == nil {
		r.body, _, _, err = r.s.Bucket.Get(r.ctx, store.GetObject{Key: r.key, Offset: r.at})
	}
	if err == nil {
		n, err = r.body.Read(p)
		r.at += int64(n)
	}
	if err == io.EOF && r.at < r.artifact.Bytes {
		err = damaged(r.ref, r.artifact.Version, r.key, "the object of an artifact has another size")
	}
	if err != nil && err != io.EOF {
		r.failed = r.s.readFailed(r.ctx, err, r.ref, r.artifact.Version, r.key)
		return n, r.failed
	}
	return n, err
}

// Seek opens the object anew at the next read, unless it stands there already.
func (r *source) Seek(offset int64, whence int) (int64, error) {
	at := offset
	switch whence {
	case io.SeekCurrent:
		at += r.at
	case io.SeekEnd:
		at += r.artifact.Bytes
	}
	if at != r.at {
		r.at = at
		r.Close()
	}
	return at, nil
}

func (r *source) Close() {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
}

// PutView keeps bytes that are too long for a reply, for a day, and gives a URL
// that reads exactly them for an hour. It is not an artifact: no entry names it,
// the bucket's lifecycle removes it, and deletion reaches it before.
//
// Lost: the caller repeats. Landed, reply lost: the name holds the digest. A
// crash right after: it is gone a day later.
func (s *Store) PutView(ctx context.Context, ref execution.Ref, version int64, data []byte) (*api.Ref, error) {
	kms, err := s.kmsKey(ctx, ref.Tenant)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	in := store.PutObject{Key: fmt.Sprintf("%sviews/%d-%s", journal.ObjectPrefix(ref), version, digest), Bytes: int64(len(data)), SHA256: sum, MediaType: viewType,
		ExpiresTag: true, KMSKey: kms}
	for try := 1; ; try++ {
		in.Body = bytes.NewReader(data)
		_, err := s.Bucket.Put(ctx, in)
		if store.KindOf(err) == store.Exists {
			err = s.keepView(ctx, ref, in.Key, digest, in.Bytes)
		}
		if err == nil {
			break
		}
		if k := store.KindOf(err); k != store.NotFound && !store.Ambiguous(err) || try == tries || ctx.Err() != nil {
			return nil, journal.Fail(err, ref)
		}
	}
	p, err := s.Bucket.PresignGet(ctx, store.PresignGet{Key: in.Key, MediaType: viewType, Expires: readFor})
	if err != nil {
		return nil, journal.Fail(err, ref)
	}
	return &api.Ref{Version: version, Digest: digest, Bytes: in.Bytes, URL: p.URL, ExpiresAt: api.TimeOrNil(p.Expires.UnixMilli())}, nil
}

const viewType = "application/json"

// keepView sees to it that a view that is there already outlives its URL.
func (s *Store) keepView(ctx context.Context, ref execution.Ref, key, digest string, bytes int64) error {
	info, meta, err := s.Bucket.Head(ctx, key)
	if err != nil {
		return err
	}
	if err := whole(ref, digest, bytes, info); err != nil {
		return err
	}
	old, err := older(info, meta, execution.ArtifactGrace/2)
	if err != nil || !old {
		return err
	}
	_, _, err = s.Bucket.Refresh(ctx, key, info.ETag, nil)
	if store.KindOf(err) == store.Exists {
		return nil // somebody else did
	}
	return err
}
