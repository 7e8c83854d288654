package s3

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// maxDelete is how many objects one request may remove.
const maxDelete = 1000

// Versions is in the port: by key, the newest version of a key first.
func (b *Bucket) Versions(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "list_objects", Key: in.Prefix})
	if err != nil {
		return store.ObjectPage{}, store.ObjectMeta{}, err
	}
	if in.Limit < 0 {
		return store.ObjectPage{}, store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &s3.ListObjectVersionsInput{Bucket: &b.name, Prefix: &in.Prefix, MaxKeys: pageSize(in.Limit)}
	// The cursor is the key to go on after and, behind a NUL that no key of ours
	// holds, the version.
	if key, version, ok := strings.Cut(in.Cursor, "\x00"); ok {
		req.KeyMarker = &key
		if version != "" {
			req.VersionIdMarker = &version
		}
	} else if in.Cursor != "" {
		return store.ObjectPage{}, store.ObjectMeta{}, call.Refuse(store.Invalid, "Cursor")
	}
	out, err := b.client.ListObjectVersions(ctx, req)
	if err != nil {
		return store.ObjectPage{}, meta(call), call.Fail(err)
	}
	var page store.ObjectPage
	for _, v := range out.Versions {
		page.Objects = append(page.Objects, store.ObjectInfo{
			Key: aws.ToString(v.Key), VersionID: aws.ToString(v.VersionId), ETag: aws.ToString(v.ETag), Bytes: aws.ToInt64(v.Size),
			LastModified: toTime(v.LastModified), StorageClass: string(v.StorageClass),
		})
	}
	for _, m := range out.DeleteMarkers {
		page.Objects = append(page.Objects, store.ObjectInfo{
			Key: aws.ToString(m.Key), VersionID: aws.ToString(m.VersionId), LastModified: toTime(m.LastModified), DeleteMarker: true,
		})
	}
	slices.SortStableFunc(page.Objects, func(a, b store.ObjectInfo) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), b.LastModified.Compare(a.LastModified))
	})
	if aws.ToBool(out.IsTruncated) {
		page.Cursor = aws.ToString(out.NextKeyMarker) + "\x00" + aws.ToString(out.NextVersionIdMarker)
	}
	return page, meta(call), nil
}

// Delete is in the port. Each version is named, so no delete marker is ever
// made, and repeating it is harmless: a version that is gone counts as removed.
func (b *Bucket) Delete(ctx context.Context, versions []store.ObjectVersion) ([]store.ObjectVersion, store.ObjectMeta, error) {
	first := ""
	if len(versions) > 0 {
		first = versions[0].Key
	}
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "delete_objects", Key: first, Write: true})
	if err != nil {
		return versions, store.ObjectMeta{}, err
	}
	if len(versions) == 0 || len(versions) > maxDelete {
		return versions, store.ObjectMeta{}, call.Refuse(store.Invalid, "KeyCount")
	}
	ids := make([]types.ObjectIdentifier, len(versions))
	for i, v := range versions {
		if v.Key == "" || v.VersionID == "" {
			return versions, store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
		}
		ids[i] = types.ObjectIdentifier{Key: aws.String(v.Key), VersionId: aws.String(v.VersionID)}
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &b.name, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return versions, meta(call), call.Fail(err)
	}
	var failed []store.ObjectVersion
	for _, e := range out.Errors {
		if code := aws.ToString(e.Code); code != "NoSuchVersion" && code != "NoSuchKey" {
			failed = append(failed, store.ObjectVersion{Key: aws.ToString(e.Key), VersionID: aws.ToString(e.VersionId)})
		}
	}
	return failed, meta(call), nil
}

// Abort is in the port; kind NotFound when the upload is gone.
func (b *Bucket) Abort(ctx context.Context, u store.Upload) (store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "delete_objects", Key: u.Key, Write: true})
	if err != nil {
		return store.ObjectMeta{}, err
	}
	_, err = b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: &u.Key, UploadId: &u.UploadID})
	if err != nil {
		return meta(call), call.Fail(err)
	}
	return meta(call), nil
}
