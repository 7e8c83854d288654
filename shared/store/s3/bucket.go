package s3

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// ExpiresTagKey and ExpiresTagValue mark objects for the lifecycle rule that
// removes them after a day (store.PutObject.ExpiresTag).
const (
	ExpiresTagKey   = "cairn-expires"
	ExpiresTagValue = "1d"
)

const (
	defaultMediaType = "application/octet-stream"
	// maxRounds bounds how often a put is repeated that met another at work on
	// the same key.
	maxRounds = 5
)

// Bucket is one S3 bucket. Make it with New; safe for concurrent use.
type Bucket struct {
	client *s3.Client
	name   string
	clock  *awscall.Clock
	now    func() time.Time
	// partsAbove is store.MultipartAbove; tests with small bodies lower it.
	partsAbove int64
}

var _ store.Bucket = (*Bucket)(nil)

// New is the bucket with that name. client comes from NewClient; clock is
// shared by the stores of a process; now is the host's clock, which presigned
// URLs begin to count from, nil means time.Now.
func New(client *s3.Client, name string, clock *awscall.Clock, now func() time.Time) *Bucket {
	if now == nil {
		now = time.Now
	}
	return &Bucket{client: client, name: name, clock: clock, now: now, partsAbove: store.MultipartAbove}
}

// NewClient makes a client that this package's Bucket can work with: pinned
// signing, recorded attempts, few retries. opts come last.
func NewClient(cfg aws.Config, opts ...func(*s3.Options)) *s3.Client {
	return s3.NewFromConfig(cfg, append([]func(*s3.Options){func(o *s3.Options) {
		o.HTTPClient = awscall.HTTPClient(cfg.HTTPClient, 0)
		o.HTTPSignerV4 = awscall.Signer(v4.NewSigner(signS3))
		o.Retryer = awscall.NewRetryer()
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.APIOptions = append(o.APIOptions, awscall.Middleware)
	}}, opts...)...)
}

// signS3 is how S3 wants keys signed: as they are.
func signS3(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }

func meta(c *awscall.Call) store.ObjectMeta {
	return store.ObjectMeta{Date: c.Date(), Requests: c.Attempts()}
}

// encryption is the pair of headers for an object under a key of its own.
func encryption(key string) (types.ServerSideEncryption, *string) {
	if key == "" {
		return "", nil
	}
	return types.ServerSideEncryptionAwsKms, &key
}

func mediaType(s string) *string {
	if s == "" {
		s = defaultMediaType
	}
	return &s
}
