package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// EnsureBucket makes the bucket, versioned, where it is not there. For local
// engines and tests: in a deployment the stack makes it. Repeating it is
// harmless.
func EnsureBucket(ctx context.Context, client *s3.Client, name string) error {
	var mine *types.BucketAlreadyOwnedByYou
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil && !errors.As(err, &mine) {
		return fmt.Errorf("bucket %s: %w", name, err)
	}
	_, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		return fmt.Errorf("bucket %s: versioning: %w", name, err)
	}
	return nil
}
