package awscall

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// HTTPSigner is the SDK clients' SigV4 signer.
type HTTPSigner interface {
	SignHTTP(ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string,
		signingTime time.Time, optFns ...func(*v4.SignerOptions)) error
}

// Signer pins the signing time of writes to their ValidatedAt. That is store
// time, so neither the host's clock nor the SDK's correction of it matters,
// and a retry that wakes up late is signed with the same old time and refused
// by the service (DynamoDB: 5 minutes; S3: 15 minutes, unless the bucket's
// policy bounds s3:signatureAge).
func Signer(s HTTPSigner) HTTPSigner { return pinned{s} }

type pinned struct{ HTTPSigner }

func (p pinned) SignHTTP(ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string,
	signingTime time.Time, optFns ...func(*v4.SignerOptions),
) error {
	if c, ok := ctx.Value(callKey{}).(*Call); ok && !c.ValidatedAt.IsZero() {
		signingTime = c.ValidatedAt.UTC()
	}
	return p.HTTPSigner.SignHTTP(ctx, credentials, r, payloadHash, service, region, signingTime, optFns...)
}
