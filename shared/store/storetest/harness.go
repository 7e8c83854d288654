package storetest

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Feature is something that an engine may be unable to do.
type Feature string

// The features that Lacks can name.
const (
	// Tokens: a transaction repeated with its token is recognised.
	Tokens Feature = "transaction tokens"
	// Indexes: the table has store.Indexes.
	Indexes Feature = "indexes"
	// Clock: answers carry the store's clock in Meta.Date.
	Clock Feature = "store clock"
	// Units: answers carry the units consumed.
	Units Feature = "consumed units"
	// Sizes: size limits are enforced.
	Sizes Feature = "size limits"
	// Numbers: numbers keep 38 digits.
	Numbers Feature = "38-digit numbers"
	// Window: a write whose validation is too old is refused.
	Window Feature = "validation window"
	// Checksums: an object whose bytes do not match its digest is refused.
	Checksums Feature = "object checksums"
	// Versions: the bucket is versioned.
	Versions Feature = "object versions"
	// Refreshing: Refresh renews LastModified and checks the ETag.
	Refreshing Feature = "refresh by ETag"
	// Presigning: presigned URLs work over HTTP.
	Presigning Feature = "presigned URLs"
	// PresignedVersions: a presigned get of a version sets the response headers.
	PresignedVersions Feature = "presigned versions"
	// PresignedChecks: a presigned put is refused when size, digest or type differ.
	PresignedChecks Feature = "presigned put checks"
	// Races: of simultaneous create-only puts exactly one wins.
	Races Feature = "create-only races"
)

// TableHarness is a table under test and what the suite may ask of it.
type TableHarness struct {
	Table store.Table
	// Partition makes a partition key that nothing else uses. Required.
	Partition func() string
	// Lacks says what the engine cannot do, with the reason.
	Lacks map[Feature]string
	// The hooks below are called while no other test of the suite runs.

	// Unprocessed makes the next batch call on the partition come back with all
	// its keys unprocessed; nil: left out.
	Unprocessed func(partition string)
	// Cancel makes the next transaction attempts (as many as given) on the
	// partition be refused with these reasons, in DynamoDB's codes, "" for none;
	// nil: left out.
	Cancel func(partition string, attempts int, codes ...string)
	// Later moves the store's clock forward; nil: left out.
	Later func(d time.Duration)
}

// BucketHarness is a bucket under test and what the suite may ask of it.
type BucketHarness struct {
	Bucket store.Bucket
	// Prefix makes a key prefix, ending in "/", that nothing else uses. Required.
	Prefix func() string
	// Lacks says what the engine cannot do, with the reason.
	Lacks map[Feature]string
	// Client sends the requests to presigned URLs; nil: http.DefaultClient.
	Client *http.Client
	// StartUpload begins a multipart upload and leaves it unfinished; nil: left out.
	StartUpload func(t *testing.T, key string) store.Upload
	// Hide puts a delete marker on top of an object; nil: left out.
	Hide func(t *testing.T, key string)
	// Later moves the store's clock forward; nil: real time is waited for where
	// that takes seconds, and left out where it takes longer.
	Later func(d time.Duration)
}

// suite counts what was left out.
type suite struct {
	lacks   map[Feature]string
	skipped atomic.Int64
}

// need leaves the test out when the engine lacks the feature.
func (s *suite) need(t *testing.T, f Feature) {
	t.Helper()
	if why, lacks := s.lacks[f]; lacks {
		s.skip(t, string(f)+": "+why)
	}
}

func (s *suite) skip(t *testing.T, why string) {
	t.Helper()
	s.skipped.Add(1)
	t.Skipf("SKIP %s", why)
}

// report prints the number of tests left out when all of t's are done.
func (s *suite) report(t *testing.T) {
	t.Cleanup(func() {
		if n := s.skipped.Load(); n > 0 {
			fmt.Fprintf(os.Stderr, "storetest: %s: %d SKIP\n", t.Name(), n)
		}
	})
}
