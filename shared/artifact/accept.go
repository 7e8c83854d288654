package artifact

import (
	"context"
	"fmt"
	"sync"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Verify prepares staged artifacts for the entry that accepts them: each object
// is there, whole, and young enough not to be swept before the entry is
// written; an older one is refreshed. Name and media type are those given, else
// those staged; the name may stay empty.
//
// Errors: InvalidRequest artifacts[i] for what was not staged or a media type
// that is none, Integrity for an object with other content, and the store's.
func (s *Store) Verify(ctx context.Context, ref execution.Ref, refs []api.ArtifactRef) ([]execution.Artifact, error) {
	out := make([]execution.Artifact, len(refs))
	err := each(len(refs), func(i int) error {
		var err error
		out[i], err = s.verify(ctx, ref, refs[i], fmt.Sprintf("artifacts[%d]", i))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) verify(ctx context.Context, ref execution.Ref, r api.ArtifactRef, field string) (execution.Artifact, error) {
	none := execution.Artifact{}
	if _, err := parseDigest(field+".digest", r.Digest); err != nil {
		return none, err
	}
	if r.MediaType != "" {
		if err := checkMediaType(field+".media_type", r.MediaType); err != nil {
			return none, err
		}
	}
	key := journal.ArtifactObjectKey(ref, r.Digest)
	for try := 1; ; try++ {
		info, meta, err := s.Bucket.Head(ctx, key)
		if store.KindOf(err) == store.NotFound {
			return none, execution.Invalid(field, "was not staged for this execution").With("execution", string(ref.Execution))
		}
		if err != nil {
			return none, journal.Fail(err, ref)
		}
		// What was put in parts was held against its digest then; the service does
		// not know it.
		if err := whole(ref, r.Digest, -1, info); err != nil {
			return none, err
		}
		old, err := older(info, meta, execution.ArtifactGrace-execution.ArtifactMargin)
		if err != nil {
			return none, err
		}
		if old {
			// Accepted at an age at which the sweep may be at work: made young first.
			// Lost or landed: the next Head tells.
			_, _, err := s.Bucket.Refresh(ctx, key, info.ETag, nil)
			if k := store.KindOf(err); err != nil && (try == tries || ctx.Err() != nil || k != store.Exists && k != store.NotFound && !store.Ambiguous(err)) {
				return none, journal.Fail(err, ref)
			}
			if err != nil {
				continue
			}
		}
		now, err := s.about(ctx, ref, r.Digest, info)
		if err != nil {
			return none, err
		}
		a := execution.Artifact{Digest: r.Digest, Bytes: info.Bytes, Name: r.Name, MediaType: r.MediaType}
		if a.Name == "" {
			a.Name = now.name
		}
		if a.MediaType == "" {
			a.MediaType = now.mediaType
		}
		return a, nil
	}
}

// each runs f for 0 to n-1, a few at once, and gives the error of the lowest.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	turn := make(chan struct{}, sideBySide)
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
