package artifact

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Put answers put_artifact: it stages bytes, gives a URL to upload them to, or
// verifies an upload. Errors: InvalidRequest, NotFound (also of an upload that
// never came), Deleted, ExecutionClosed, LeaseLost for a stale fence, Integrity
// when the object under that digest has other content, and the store's.
func (s *Store) Put(ctx context.Context, r *api.PutArtifactRequest) (*api.PutArtifactReply, error) {
	if r.MediaType != "" {
		if err := checkMediaType("media_type", r.MediaType); err != nil {
			return nil, err
		}
	}
	head, clock, err := s.mayStage(ctx, r.Tenant, r.Execution, r.Fence)
	if err != nil {
		return nil, err
	}
	out := &api.PutArtifactReply{Standing: api.Standing{Execution: head.Execution, Status: head.Status, Fence: head.Fence, Owner: head.Owner}}
	named := &about{r.Name, r.MediaType}
	switch {
	case r.Upload != nil:
		return out, s.presign(ctx, head.Ref, r, named, out)
	case r.Uploaded != "":
		out.Artifact, err = s.uploaded(ctx, head.Ref, r)
		return out, err
	}
	f := file{digest: digestOf(r.Body), bytes: int64(len(r.Body)), about: named, open: func() (io.ReadSeeker, error) { return bytes.NewReader(r.Body), nil }}
	if err := s.stage(ctx, head.Ref, clock.Date(), f); err != nil {
		return nil, err
	}
	out.Artifact = api.Artifact{Digest: f.digest, Bytes: f.bytes, Name: r.Name, MediaType: r.MediaType}
	return out, nil
}

// mayStage reads the head: what is staged must have a chance to be accepted,
// and a worker that was fenced out stages nothing.
func (s *Store) mayStage(ctx context.Context, t execution.TenantID, e execution.ExecutionID, fence int64) (*journal.Head, journal.Clock, error) {
	head, clock, err := s.Journal.LiveHead(ctx, t, e)
	if err != nil {
		return nil, clock, err
	}
	stand := func(e *execution.Error) error {
		return e.With("execution", string(head.Execution)).With("status", string(head.Status)).With("fence", head.Fence).With("owner", head.Owner)
	}
	switch {
	case head.Status.Ended():
		return nil, clock, stand(execution.Errorf(execution.ExecutionClosed, "the execution has ended"))
	case fence > 0 && (fence != head.Fence || head.Owner == ""):
		return nil, clock, stand(execution.Errorf(execution.LeaseLost, "the fence is not the current one: another owner has taken over, or the execution was given up"))
	}
	return head, clock, nil
}

// file is something to stage. about nil: it has no name of its own, and one that
// is there stays.
type file struct {
	digest string
	bytes  int64
	about  *about
	// open gives the bytes from their start, as often as asked.
	open func() (io.ReadSeeker, error)
}

// stage creates the object of a file, or finds it there.
//
// Lost: nothing is there, the loop or the caller puts it again. Landed, reply
// lost: the name is the digest of the bytes, so what is found there is the same.
// A crash right after: an object that no entry names; the orphan sweep takes it
// after the grace time.
func (s *Store) stage(ctx context.Context, ref execution.Ref, validated time.Time, f file) error {
	sum, err := parseDigest("digest", f.digest)
	if err != nil {
		return err
	}
	kms, err := s.kmsKey(ctx, ref.Tenant)
	if err != nil {
		return err
	}
	in := store.PutObject{Key: journal.ArtifactObjectKey(ref, f.digest), Bytes: f.bytes, SHA256: sum, KMSKey: kms, ValidatedAt: validated}
	if in.Metadata, err = s.metadata(ctx, ref, f.digest, f.about); err != nil {
		return err
	}
	if f.about != nil {
		in.MediaType = f.about.mediaType
	}
	for try := 1; ; try++ {
		if in.Body, err = f.open(); err != nil {
			return err
		}
		_, err := s.Bucket.Put(ctx, in)
		if store.KindOf(err) == store.Exists {
			if err = s.again(ctx, ref, f, in.Metadata); store.KindOf(err) == store.NotFound && try < tries {
				continue // swept in between
			}
		}
		if err == nil {
			return nil
		}
		if !store.Ambiguous(err) || try == tries || ctx.Err() != nil {
			return journal.Fail(err, ref)
		}
	}
}

// again makes what was staged before as good as new: its age starts anew when
// half the grace time is over, and it takes the name that it is staged under
// now. Two refreshes at once are one too many versions, nothing else.
func (s *Store) again(ctx context.Context, ref execution.Ref, f file, metadata map[string]string) error {
	key := journal.ArtifactObjectKey(ref, f.digest)
	for try := 1; ; try++ {
		info, meta, err := s.Bucket.Head(ctx, key)
		if err != nil {
			return err
		}
		if err := whole(ref, f.digest, f.bytes, info); err != nil {
			return err
		}
		if f.about == nil {
			metadata = nil
		} else if now, err := s.about(ctx, ref, f.digest, info); err != nil {
			return err
		} else if now == *f.about {
			metadata = nil
		}
		old, err := older(info, meta, execution.ArtifactGrace/2)
		if err != nil || !old && metadata == nil {
			return err
		}
		// Lost: a repeat refreshes. Landed, reply lost: the next Head sees it young
		// and named. Another ETag: somebody else refreshed it; look again.
		if _, _, err = s.Bucket.Refresh(ctx, key, info.ETag, metadata); err == nil {
			return nil
		}
		if store.KindOf(err) != store.Exists && !store.Ambiguous(err) || try == tries || ctx.Err() != nil {
			return err
		}
	}
}

// older reports whether an object was written longer ago, by the store's clock.
func older(info store.ObjectInfo, meta store.ObjectMeta, than time.Duration) (bool, error) {
	if meta.Date.IsZero() {
		return false, execution.Errorf(execution.Unavailable, "the store's answer carried no time")
	}
	return meta.Date.Sub(info.LastModified) >= than, nil
}

// whole holds an object against its digest and size as far as a Head tells.
// bytes < 0: not known.
func whole(ref execution.Ref, digest string, bytes int64, info store.ObjectInfo) error {
	if info.SHA256 != nil && hex.EncodeToString(info.SHA256) != digest || bytes >= 0 && info.Bytes != bytes {
		return damaged(ref, 0, info.Key, "the object of an artifact has other content")
	}
	return nil
}

// presign lets the caller upload by itself: exactly these bytes under exactly
// this key, once.
func (s *Store) presign(ctx context.Context, ref execution.Ref, r *api.PutArtifactRequest, named *about, out *api.PutArtifactReply) error {
	sum, err := parseDigest("upload.sha256", r.Upload.SHA256)
	if err != nil {
		return err
	}
	in := store.PresignPut{Key: journal.ArtifactObjectKey(ref, r.Upload.SHA256), Bytes: r.Upload.Bytes, SHA256: sum, MediaType: r.MediaType, Expires: uploadFor}
	if in.KMSKey, err = s.kmsKey(ctx, ref.Tenant); err != nil {
		return err
	}
	if in.Metadata, err = s.metadata(ctx, ref, r.Upload.SHA256, named); err != nil {
		return err
	}
	p, err := s.Bucket.PresignPut(ctx, in)
	if err != nil {
		return journal.Fail(err, ref)
	}
	out.Artifact = api.Artifact{Digest: r.Upload.SHA256, Bytes: r.Upload.Bytes, Name: r.Name, MediaType: r.MediaType}
	out.URL, out.Headers, out.ExpiresAt = p.URL, p.Headers, api.TimeOrNil(p.Expires.UnixMilli())
	return nil
}

// uploaded verifies an upload; a name or media type given with it replaces the
// one it was announced under.
func (s *Store) uploaded(ctx context.Context, ref execution.Ref, r *api.PutArtifactRequest) (api.Artifact, error) {
	key := journal.ArtifactObjectKey(ref, r.Uploaded)
	info, _, err := s.Bucket.Head(ctx, key)
	if store.KindOf(err) == store.NotFound {
		return api.Artifact{}, execution.Errorf(execution.NotFound, "nothing was uploaded under this digest").With("execution", string(ref.Execution)).With("field", "uploaded")
	}
	if err != nil {
		return api.Artifact{}, journal.Fail(err, ref)
	}
	if err := s.check(ctx, ref, r.Uploaded, info); err != nil {
		return api.Artifact{}, err
	}
	now, err := s.about(ctx, ref, r.Uploaded, info)
	if err != nil {
		return api.Artifact{}, err
	}
	if r.Name != "" {
		now.name = r.Name
	}
	if r.MediaType != "" {
		now.mediaType = r.MediaType
	}
	metadata, err := s.metadata(ctx, ref, r.Uploaded, &now)
	if err != nil {
		return api.Artifact{}, err
	}
	if err := s.again(ctx, ref, file{digest: r.Uploaded, bytes: info.Bytes, about: &now}, metadata); err != nil {
		return api.Artifact{}, journal.Fail(err, ref)
	}
	return api.Artifact{Digest: r.Uploaded, Bytes: info.Bytes, Name: now.name, MediaType: now.mediaType}, nil
}

// check holds a whole object against its digest; where the service does not
// know its digest, the bytes are read.
func (s *Store) check(ctx context.Context, ref execution.Ref, digest string, info store.ObjectInfo) error {
	if err := whole(ref, digest, -1, info); err != nil || info.SHA256 != nil {
		return err
	}
	r, err := s.open(ctx, ref, info.Key, execution.Artifact{Digest: digest, Bytes: info.Bytes})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return journal.Fail(err, ref)
}
