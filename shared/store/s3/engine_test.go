package s3_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/store/s3"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	e := enginetest.Open(t)
	raw := s3.NewClient(e.AWS, e.Config.S3)
	bucket := &e.Config.Bucket
	inParts := s3.New(raw, *bucket, awscall.NewClock(nil), nil)
	inParts.PartsAbove(16 << 20) // the suite's large object is larger
	storetest.Bucket(t, func(t *testing.T) storetest.BucketHarness {
		return storetest.BucketHarness{
			Bucket: inParts,
			Lacks:  map[storetest.Feature]string{storetest.PresignedVersions: "MiniStack ignores response-* headers together with a version id"},
			Prefix: func() string { return enginetest.Tenant(t) + "/" },
			StartUpload: func(t *testing.T, key string) store.Upload {
				out, err := raw.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: bucket, Key: &key})
				if err != nil {
					t.Fatal(err)
				}
				return store.Upload{Key: key, UploadID: aws.ToString(out.UploadId)}
			},
			Hide: func(t *testing.T, key string) {
				if _, err := raw.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
