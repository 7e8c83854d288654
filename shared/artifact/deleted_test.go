package artifact_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// late runs something before the first look into the bucket.
type late struct {
	store.Bucket
	before func()
}

func (l late) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	l.before()
	return l.Bucket.Get(ctx, in)
}

func (l late) Head(ctx context.Context, key string) (store.ObjectInfo, store.ObjectMeta, error) {
	l.before()
	return l.Bucket.Head(ctx, key)
}

// An artifact whose execution is deleted, or made anew, while it is read is no
// damage.
func TestReadMeetsADeletion(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"inline": 100_000, "by URL": 100} {
		for _, again := range []bool{false, true} {
			w := newWorld(t)
			a := w.put("file", []byte("the bytes"))
			w.accept(api.ArtifactRef{Digest: a.Digest})
			s := *w.Artifacts
			s.Bucket = late{s.Bucket, sync.OnceFunc(func() {
				del := &api.DeleteRequest{Common: api.Common{Tenant: "bank", RequestID: "d"}, Selector: api.Selector{Execution: "e"}, Reason: "r"}
				api.Identify(del)
				if _, err := w.Retention.Delete(t.Context(), del); err != nil {
					t.Fatal(err)
				}
				if again {
					r := &api.CreateRequest{Common: api.Common{Tenant: "bank", RequestID: "c"}, Execution: "e", Workflow: "wf", Reuse: "new_generation"}
					api.Identify(r)
					if _, err := w.Checkpoint.Create(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			})}
			r := &api.GetArtifactRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Digest: a.Digest, MaxInlineBytes: limit}
			if _, err := s.Get(t.Context(), r); execution.CodeOf(err) != execution.Deleted {
				t.Errorf("%s, made again %v: %v", name, again, err)
			}
		}
	}
}
