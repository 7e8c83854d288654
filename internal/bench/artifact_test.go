package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/wiring"
)

const minArtifact = 0.8 // put and get of 64 MB : raw upload and download

// TestArtifactRatio stages 64 MB and gets them, as get_artifact gives what is
// too long for a reply (by URL), beside a raw upload and download of as many
// bytes, in turns. Go's verifying stream is held against a raw download that is
// hashed too: a loopback engine gives bytes faster than SHA-256 can be computed.
func TestArtifactRatio(t *testing.T) {
	asked(t)
	e := enginetest.Open(t)
	tenant := enginetest.Tenant(t)
	w := open(t, wiring.Outside{Main: e.Main, Keys: e.Keys, Bucket: e.Bucket, KMS: e.KMS, DataKey: e.Config.DataKey}, tenant)
	raw := awss3.NewFromConfig(e.AWS, e.Config.S3)
	ctx := context.Background()
	var put, get, stream, rawPut, rawGet, hashedGet []time.Duration
	timed := func(list *[]time.Duration, f func() error) {
		t.Helper()
		begin := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		*list = append(*list, time.Since(begin))
	}
	h, _, err := w.s.Journal.ReadHead(ctx, w.tenant, "e")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 7 {
		data := make([]byte, 64<<20)
		_, _ = rand.Read(data)
		var a execution.Artifact
		timed(&put, func() (err error) {
			a, err = w.s.Artifacts.Stage(ctx, artifact.Upload{Tenant: w.tenant, Execution: "e", Name: "recording", MediaType: "audio/wav", Body: bytes.NewReader(data)})
			return err
		})
		key := aws.String(fmt.Sprintf("%s-raw/%d", tenant, n))
		timed(&rawPut, func() error {
			_, err := raw.PutObject(ctx, &awss3.PutObjectInput{Bucket: &e.Config.Bucket, Key: key, Body: bytes.NewReader(data)})
			return err
		})
		accepted := w.request(n)
		accepted.Artifacts = []api.ArtifactRef{{Digest: a.Digest}}
		api.Identify(accepted)
		w.apply(t, accepted)
		fetch := func() error {
			r := &api.GetArtifactRequest{Execution: "e", Digest: a.Digest}
			r.Tenant = w.tenant
			out, err := w.s.Artifacts.Get(ctx, r)
			if err != nil {
				return err
			}
			resp, err := http.Get(out.URL)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); n != int64(len(data)) {
				return fmt.Errorf("%d bytes, status %d, %w", n, resp.StatusCode, err)
			}
			return nil
		}
		read := func() error {
			r, err := w.s.Artifacts.Open(ctx, h.Ref, a)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		}
		download := func(into io.Writer) func() error {
			return func() error {
				out, err := raw.GetObject(ctx, &awss3.GetObjectInput{Bucket: &e.Config.Bucket, Key: key})
				if err != nil {
					return err
				}
				defer out.Body.Close()
				_, err = io.Copy(into, out.Body)
				return err
			}
		}
		// The first read after a put pays for what the engine still does with it.
		timed(new([]time.Duration), download(io.Discard))
		for range 3 {
			timed(&get, fetch)
			timed(&stream, read)
			timed(&rawGet, download(io.Discard))
			timed(&hashedGet, download(sha256.New()))
		}
	}
	for _, c := range []struct {
		what      string
		ours, raw []time.Duration
	}{{"put", put, rawPut}, {"get", get, rawGet}, {"verifying stream", stream, hashedGet}} {
		a, b := median(c.ours), median(c.raw)
		ratio := float64(b) / float64(a)
		fmt.Printf("artifact of 64 MB, %s: %v; raw: %v; %.2f of its speed (at least %.1f)\n", c.what, a, b, ratio, minArtifact)
		if ratio < minArtifact {
			t.Errorf("%s: %.2f of the raw speed, want at least %.1f", c.what, ratio, minArtifact)
		}
	}
}
