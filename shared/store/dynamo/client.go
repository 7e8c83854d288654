package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cairnstate/cairn/shared/store/awscall"
)

// attemptTimeout bounds one attempt: a page of 1 MB or an item of 400 KB takes
// tens of milliseconds, so what takes longer than this is lost.
const attemptTimeout = 5 * time.Second

// NewClient makes a client that this package's Table can work with: pinned
// signing, recorded attempts, few retries. opts come last.
func NewClient(cfg aws.Config, opts ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.HTTPClient = awscall.HTTPClient(cfg.HTTPClient, attemptTimeout)
		o.HTTPSignerV4 = awscall.Signer(v4.NewSigner())
		o.Retryer = awscall.NewRetryer()
		o.APIOptions = append(o.APIOptions, awscall.Middleware)
	}}, opts...)...)
}
