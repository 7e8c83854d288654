package s3

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// Get is in the port. Failures while the body is read are *store.Error too.
// The service's checksum is not asked for: whoever reads holds the bytes
// against the digest that names them, or opens their seal.
func (b *Bucket) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "get_object", Key: in.Key})
	if err != nil {
		return nil, store.ObjectInfo{}, store.ObjectMeta{}, err
	}
	if in.Key == "" || in.Offset < 0 || in.Length < 0 {
		return nil, store.ObjectInfo{}, store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &s3.GetObjectInput{Bucket: &b.name, Key: &in.Key}
	if in.VersionID != "" {
		req.VersionId = &in.VersionID
	}
	switch {
	case in.Length > 0:
		req.Range = aws.String(fmt.Sprintf("bytes=%d-%d", in.Offset, in.Offset+in.Length-1))
	case in.Offset > 0:
		req.Range = aws.String(fmt.Sprintf("bytes=%d-", in.Offset))
	}
	out, err := b.client.GetObject(ctx, req)
	if err != nil {
		return nil, store.ObjectInfo{}, meta(call), call.Fail(err)
	}
	info := store.ObjectInfo{
		Key: in.Key, VersionID: aws.ToString(out.VersionId), ETag: aws.ToString(out.ETag),
		Bytes:        wholeSize(aws.ToInt64(out.ContentLength), aws.ToString(out.ContentRange)),
		LastModified: toTime(out.LastModified), MediaType: aws.ToString(out.ContentType),
		StorageClass: string(out.StorageClass), Encryption: string(out.ServerSideEncryption), Metadata: out.Metadata,
	}
	return &body{out.Body, call}, info, meta(call), nil
}

// body gives read errors the port's form.
type body struct {
	io.ReadCloser
	call *awscall.Call
}

func (r *body) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = r.call.Fail(err)
	}
	return n, err
}

// wholeSize is the object's size: of a range, the number behind the slash.
func wholeSize(length int64, contentRange string) int64 {
	if _, total, ok := strings.Cut(contentRange, "/"); ok {
		if n, err := strconv.ParseInt(total, 10, 64); err == nil {
			return n
		}
	}
	return length
}

// digest reads the service's SHA-256; of a multipart upload it is none (the
// digest of the parts' digests, with their number behind a hyphen).
func digest(s *string) []byte {
	sum, err := base64.StdEncoding.DecodeString(aws.ToString(s))
	if err != nil || len(sum) != 32 {
		return nil
	}
	return sum
}

// Head is in the port.
func (b *Bucket) Head(ctx context.Context, key string) (store.ObjectInfo, store.ObjectMeta, error) {
	out, m, err := b.head(ctx, key)
	if err != nil {
		return store.ObjectInfo{}, m, err
	}
	return store.ObjectInfo{
		Key: key, VersionID: aws.ToString(out.VersionId), ETag: aws.ToString(out.ETag),
		Bytes: aws.ToInt64(out.ContentLength), SHA256: digest(out.ChecksumSHA256),
		LastModified: toTime(out.LastModified), MediaType: aws.ToString(out.ContentType),
		StorageClass: string(out.StorageClass), Encryption: string(out.ServerSideEncryption), Metadata: out.Metadata,
	}, m, nil
}

func (b *Bucket) head(ctx context.Context, key string) (*s3.HeadObjectOutput, store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "head_object", Key: key})
	if err != nil {
		return nil, store.ObjectMeta{}, err
	}
	if key == "" {
		return nil, store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	}
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return nil, meta(call), call.Fail(err)
	}
	return out, meta(call), nil
}

// Refresh is in the port: a copy of the object onto itself, conditional on the
// ETag of the source. It makes a new version; the old one stays until its own
// removal. Landed but the answer was lost: a repeat copies the same bytes once
// more, or finds another ETag where the service made a new one, and ends with
// Exists.
func (b *Bucket) Refresh(ctx context.Context, key, etag string, metadata map[string]string) (store.ObjectInfo, store.ObjectMeta, error) {
	old, m, err := b.head(ctx, key)
	if err != nil {
		return store.ObjectInfo{}, m, err
	}
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "put_object", Key: key, Write: true})
	if err != nil {
		return store.ObjectInfo{}, m, err
	}
	if aws.ToString(old.ETag) != etag {
		return store.ObjectInfo{}, m, call.Refuse(store.Exists, "ETag")
	}
	if metadata == nil {
		metadata = old.Metadata
	}
	req := &s3.CopyObjectInput{
		Bucket: &b.name, Key: &key, CopySource: aws.String(copySource(b.name, key)), CopySourceIfMatch: &etag,
		// S3 refuses a copy onto itself that changes nothing, unless the metadata
		// is given anew: the same again.
		MetadataDirective: types.MetadataDirectiveReplace, ContentType: old.ContentType, Metadata: metadata,
		StorageClass: old.StorageClass, ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	}
	if old.ServerSideEncryption == types.ServerSideEncryptionAwsKms {
		req.ServerSideEncryption, req.SSEKMSKeyId = old.ServerSideEncryption, old.SSEKMSKeyId
	}
	var out *s3.CopyObjectOutput
	err = repeat(ctx, call, func() (err error) {
		out, err = b.client.CopyObject(ctx, req)
		return err
	})
	m = store.ObjectMeta{Date: call.Date(), Requests: m.Requests + call.Attempts()}
	if err != nil {
		return store.ObjectInfo{}, m, err
	}
	info := store.ObjectInfo{
		Key: key, VersionID: aws.ToString(out.VersionId), Bytes: aws.ToInt64(old.ContentLength),
		MediaType: aws.ToString(old.ContentType), StorageClass: string(old.StorageClass), Encryption: string(out.ServerSideEncryption), Metadata: metadata,
	}
	if r := out.CopyObjectResult; r != nil {
		info.ETag, info.LastModified, info.SHA256 = aws.ToString(r.ETag), toTime(r.LastModified), digest(r.ChecksumSHA256)
	}
	return info, m, nil
}

func copySource(bucket, key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return bucket + "/" + strings.Join(parts, "/")
}

// List is in the port.
func (b *Bucket) List(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "list_objects", Key: in.Prefix})
	if err != nil {
		return store.ObjectPage{}, store.ObjectMeta{}, err
	}
	if in.Limit < 0 {
		return store.ObjectPage{}, store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &in.Prefix, MaxKeys: pageSize(in.Limit)}
	if in.Cursor != "" {
		req.ContinuationToken = &in.Cursor
	}
	out, err := b.client.ListObjectsV2(ctx, req)
	if err != nil {
		return store.ObjectPage{}, meta(call), call.Fail(err)
	}
	var page store.ObjectPage
	for _, o := range out.Contents {
		page.Objects = append(page.Objects, store.ObjectInfo{
			Key: aws.ToString(o.Key), ETag: aws.ToString(o.ETag), Bytes: aws.ToInt64(o.Size),
			LastModified: toTime(o.LastModified), StorageClass: string(o.StorageClass),
		})
	}
	if aws.ToBool(out.IsTruncated) {
		page.Cursor = aws.ToString(out.NextContinuationToken)
	}
	return page, meta(call), nil
}

func pageSize(limit int) *int32 {
	if limit == 0 || limit > 1000 {
		limit = 1000
	}
	return aws.Int32(int32(limit))
}

// Uploads is in the port; it reads all pages.
func (b *Bucket) Uploads(ctx context.Context, prefix string) ([]store.Upload, store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "list_objects", Key: prefix})
	if err != nil {
		return nil, store.ObjectMeta{}, err
	}
	var all []store.Upload
	req := &s3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: &prefix}
	for {
		out, err := b.client.ListMultipartUploads(ctx, req)
		if err != nil {
			return nil, meta(call), call.Fail(err)
		}
		for _, u := range out.Uploads {
			all = append(all, store.Upload{Key: aws.ToString(u.Key), UploadID: aws.ToString(u.UploadId), Started: toTime(u.Initiated)})
		}
		if !aws.ToBool(out.IsTruncated) {
			return all, meta(call), nil
		}
		req.KeyMarker, req.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}

func toTime(t *time.Time) time.Time { return aws.ToTime(t).UTC() }
