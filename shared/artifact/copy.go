package artifact

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"os"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// spoolAbove is the size from which a copy goes through a temporary file
// instead of memory (the bucket needs to read large bodies more than once).
const spoolAbove = 8 << 20

// CopyAll stages copies of accepted artifacts for another execution: artifacts
// belong to one. It gives them as the entry that accepts them must name them.
// Copies that are there already are found by their digest.
func (s *Store) CopyAll(ctx context.Context, from, to execution.Ref, list []execution.Artifact) ([]execution.Artifact, error) {
	out := make([]execution.Artifact, 0, len(list))
	for _, a := range list {
		if err := s.copy(ctx, from, to, a); err != nil {
			return nil, err
		}
		a.Version = 0
		out = append(out, a)
	}
	return out, nil
}

func (s *Store) copy(ctx context.Context, from, to execution.Ref, a execution.Artifact) error {
	digest, err := hex.DecodeString(a.Digest)
	if err != nil || len(digest) != 32 {
		return execution.Errorf(execution.Integrity, "an accepted artifact has no digest").With("execution", string(from.Execution))
	}
	key := journal.ArtifactObjectKey(from, a.Digest)
	r, _, _, err := s.Bucket.Get(ctx, store.GetObject{Key: key})
	if store.KindOf(err) == store.NotFound {
		return execution.Errorf(execution.Integrity, "the object of an artifact is missing").With("execution", string(from.Execution)).With("key", key)
	}
	if err != nil {
		return journal.Fail(err, from)
	}
	defer r.Close()
	body, done, err := spool(r, a.Bytes)
	if err != nil {
		return execution.Errorf(execution.Unavailable, "an artifact could not be read to its end").Because(err)
	}
	defer done()
	in := store.PutObject{Key: journal.ArtifactObjectKey(to, a.Digest), Body: body, Bytes: a.Bytes, SHA256: [32]byte(digest), MediaType: a.MediaType}
	// Exists: the same digest is there, so the same bytes.
	if _, err := s.Bucket.Put(ctx, in); err != nil && store.KindOf(err) != store.Exists {
		return journal.Fail(err, to)
	}
	return nil
}

// spool makes a stream readable again and again.
func spool(r io.Reader, n int64) (body io.ReadSeeker, done func(), err error) {
	if n <= spoolAbove {
		b, err := io.ReadAll(io.LimitReader(r, n+1))
		return bytes.NewReader(b), func() {}, err
	}
	f, err := os.CreateTemp("", "cairn-copy-*")
	if err != nil {
		return nil, nil, err
	}
	done = func() { f.Close(); os.Remove(f.Name()) }
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}
