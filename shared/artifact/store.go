package artifact

import (
	"context"
	"io"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Store keeps artifacts. Safe for concurrent use.
type Store struct {
	Journal *journal.Journal
	Bucket  store.Bucket
	// Catalog gives a tenant's own KMS key; nil: the bucket's key for all.
	Catalog *catalog.Catalog
}

// Put answers put_artifact.
func (s *Store) Put(ctx context.Context, r *api.PutArtifactRequest) (*api.PutArtifactReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Get answers get_artifact.
func (s *Store) Get(ctx context.Context, r *api.GetArtifactRequest) (*api.GetArtifactReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Verify prepares staged artifacts for acceptance by an entry.
func (s *Store) Verify(ctx context.Context, ref execution.Ref, refs []api.ArtifactRef) ([]execution.Artifact, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Read gives an artifact's bytes.
func (s *Store) Read(ctx context.Context, ref execution.Ref, digest string) ([]byte, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Write stages bytes.
func (s *Store) Write(ctx context.Context, ref execution.Ref, data []byte, mediaType string) (execution.Artifact, error) {
	return execution.Artifact{}, execution.Errorf(execution.Internal, "not ready")
}

// WriteFrom stages a file of known size and digest.
func (s *Store) WriteFrom(ctx context.Context, ref execution.Ref, body io.ReadSeeker, about execution.Artifact) (execution.Artifact, error) {
	return execution.Artifact{}, execution.Errorf(execution.Internal, "not ready")
}

// Open streams an artifact.
func (s *Store) Open(ctx context.Context, ref execution.Ref, a execution.Artifact) (io.ReadCloser, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// RefTo gives a URL under which an artifact can be read.
func (s *Store) RefTo(ctx context.Context, ref execution.Ref, a *execution.Artifact) (*api.Ref, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// PutView keeps bytes that are too long for a reply and gives their URL.
func (s *Store) PutView(ctx context.Context, ref execution.Ref, version int64, data []byte) (*api.Ref, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// AcceptedDigests are the artifacts that a state names.
func AcceptedDigests(s *execution.State) map[string]struct{} { return nil }
