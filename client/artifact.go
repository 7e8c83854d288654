package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// StageArtifact stores content for an execution, in the request or, above what a
// request takes, by a presigned URL. It counts once a journal entry names its
// digest. The same content again is the same artifact. fence 0: none is shown.
func (c *Client) StageArtifact(ctx context.Context, id execution.ExecutionID, fence int64, name, mediaType string, content []byte) (api.Artifact, error) {
	req := &api.PutArtifactRequest{Execution: id, Fence: fence, Name: name, MediaType: mediaType}
	if len(content) <= execution.MaxArtifactBody {
		if req.Body = content; content == nil {
			req.Body = []byte{}
		}
		reply, err := c.PutArtifact(ctx, req)
		if err != nil {
			return api.Artifact{}, err
		}
		return reply.Artifact, nil
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	req.Upload = &api.Upload{Bytes: int64(len(content)), SHA256: digest}
	reply, err := c.PutArtifact(ctx, req)
	if err != nil {
		return api.Artifact{}, err
	}
	if reply.URL != "" { // else it is there already
		if err := c.upload(ctx, reply.URL, reply.Headers, content); err != nil {
			return api.Artifact{}, err
		}
	}
	reply, err = c.PutArtifact(ctx, &api.PutArtifactRequest{Execution: id, Fence: fence, Uploaded: digest})
	if err != nil {
		return api.Artifact{}, err
	}
	return reply.Artifact, nil
}

// upload puts content where a presigned URL says. 412 is content that is there
// already: the URL creates only. Whatever happened, the verification after it
// decides.
func (c *Client) upload(ctx context.Context, url string, headers map[string]string, content []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(content))
	if err != nil {
		return execution.Errorf(execution.Internal, "the upload's URL is none").Because(err)
	}
	for name, value := range headers {
		if http.CanonicalHeaderKey(name) == "Host" || http.CanonicalHeaderKey(name) == "Content-Length" {
			continue // set by the transport
		}
		req.Header.Set(name, value)
	}
	resp, err := c.options.HTTP.Do(req)
	if err != nil {
		return execution.Errorf(execution.Unavailable, "the upload was not answered").Because(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusPreconditionFailed {
		return execution.Errorf(execution.Unavailable, "the upload was refused").With("http_status", resp.StatusCode)
	}
	return nil
}

// ReadArtifact gives an artifact's content, by digest or as the newest of a
// name, its digest verified.
func (c *Client) ReadArtifact(ctx context.Context, r *api.GetArtifactRequest) ([]byte, api.Artifact, error) {
	req := *r
	if req.MaxInlineBytes == 0 {
		req.MaxInlineBytes = wholeReply
	}
	reply, err := c.GetArtifact(ctx, &req)
	if err != nil {
		return nil, api.Artifact{}, err
	}
	content := reply.Body
	if reply.URL != "" {
		if content, err = c.fetch(ctx, reply.URL, reply.Artifact.Bytes); err != nil {
			return nil, api.Artifact{}, err
		}
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != reply.Artifact.Digest {
		return nil, api.Artifact{}, execution.Errorf(execution.Integrity, "the content is not what the digest says").With("digest", reply.Artifact.Digest)
	}
	return content, reply.Artifact, nil
}

func (c *Client) fetch(ctx context.Context, url string, size int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, execution.Errorf(execution.Internal, "the artifact's URL is none").Because(err)
	}
	resp, err := c.options.HTTP.Do(req)
	if err != nil {
		return nil, execution.Errorf(execution.Unavailable, "the artifact was not sent").Because(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, execution.Errorf(execution.Unavailable, "the artifact was refused").With("http_status", resp.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, size+1))
	if err != nil {
		return nil, execution.Errorf(execution.Unavailable, "the artifact broke off").Because(err)
	}
	return content, nil
}

// Put stages an artifact and has the run's next entry accept it. A crash before
// that entry leaves an object that is swept after its grace time; the next run
// stages it again.
func (r *Run) Put(ctx context.Context, name, mediaType string, content []byte) (api.Artifact, error) {
	if err := r.keeper.Check(); err != nil {
		return api.Artifact{}, err
	}
	a, err := r.client.StageArtifact(ctx, r.id, r.fence, name, mediaType, content)
	if err != nil {
		return api.Artifact{}, fmt.Errorf("artifact %q: %w", name, err)
	}
	r.keeper.Progress()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.artifacts = append(r.artifacts, api.ArtifactRef{Digest: a.Digest, Name: a.Name, MediaType: a.MediaType})
	return a, nil
}

// Artifact reads the newest accepted artifact of a name.
func (r *Run) Artifact(ctx context.Context, name string) ([]byte, api.Artifact, error) {
	content, a, err := r.client.ReadArtifact(ctx, &api.GetArtifactRequest{Execution: r.id, Name: name})
	r.keeper.Progress()
	return content, a, err
}
