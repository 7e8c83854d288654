package artifact_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/s3"
)

// drain is a service that takes every upload and keeps nothing; what is read
// from it is zeros.
func drain(size int64, now func() time.Time) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		rw.Header().Set("ETag", `"e"`)
		n, _ := io.Copy(io.Discard, r.Body)
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodGet:
			rw.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.Copy(rw, &zeros{n: size})
		case q.Has("uploads"):
			_, _ = io.WriteString(rw, `<InitiateMultipartUploadResult><UploadId>up</UploadId></InitiateMultipartUploadResult>`)
		case q.Has("uploadId") && r.Method == http.MethodPost:
			_, _ = io.WriteString(rw, `<CompleteMultipartUploadResult><ETag>"e-2"</ETag></CompleteMultipartUploadResult>`)
		case n != r.ContentLength:
			rw.WriteHeader(http.StatusBadRequest)
		}
	}
}

// memoryInUse is what the runtime holds of the system's memory.
func memoryInUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// peakOf gives by how much the memory in use grew at most while f ran.
func peakOf(f func()) int64 {
	debug.FreeOSMemory()
	before := memoryInUse()
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := before
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-done:
				peak <- most - before
				return
			case <-tick.C:
				most = max(most, memoryInUse())
			}
		}
	}()
	f()
	close(done)
	return <-peak
}

// However large a file is, it goes through the same memory. Not parallel: the
// memory is the process's.
func TestStreamsInBoundedMemory(t *testing.T) {
	const size, most = 1 << 30, 48 << 20
	w := newWorld(t)
	server := httptest.NewServer(drain(size, w.engine.Now))
	defer server.Close()
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	artifacts := artifact.Store{Journal: w.Journal, Catalog: w.Catalog,
		Bucket: s3.New(s3.NewClient(cfg, func(o *awss3.Options) { o.UsePathStyle = true }), "bucket", awscall.NewClock(nil), nil)}
	var a execution.Artifact
	var err error
	put := peakOf(func() {
		a, err = artifacts.Stage(t.Context(), artifact.Upload{Tenant: "bank", Execution: "e", Name: "recording", MediaType: "audio/wav", Body: &zeros{n: size}})
	})
	if err != nil || a.Bytes != size {
		t.Fatalf("%+v, %v", a, err)
	}
	var n int64
	get := peakOf(func() {
		var r io.ReadCloser
		if r, err = artifacts.Open(t.Context(), w.ref, a); err == nil {
			n, err = io.Copy(io.Discard, r)
			r.Close()
		}
	})
	if err != nil || n != size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	t.Logf("1 GB staged with %d MB, read with %d MB more than before", put>>20, get>>20)
	if put > most || get > most {
		t.Errorf("staged with %d MB, read with %d MB, at most %d", put>>20, get>>20, most>>20)
	}
}
