package tenancy

import (
	"context"
	"io"

	"github.com/cairnstate/cairn/shared/store"
)

// Bucket gives b with every call bound to a tenant.
func Bucket(b store.Bucket) store.Bucket { return bucket{b} }

type bucket struct{ inner store.Bucket }

func (b bucket) Put(ctx context.Context, in store.PutObject) (store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "put_object", in.Key)
	if err != nil {
		return store.ObjectMeta{}, err
	}
	return b.inner.Put(ctx, in)
}

func (b bucket) Get(ctx context.Context, in store.GetObject) (io.ReadCloser, store.ObjectInfo, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "get_object", in.Key)
	if err != nil {
		return nil, store.ObjectInfo{}, store.ObjectMeta{}, err
	}
	return b.inner.Get(ctx, in)
}

func (b bucket) Head(ctx context.Context, key string) (store.ObjectInfo, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "head_object", key)
	if err != nil {
		return store.ObjectInfo{}, store.ObjectMeta{}, err
	}
	return b.inner.Head(ctx, key)
}

func (b bucket) Refresh(ctx context.Context, key, etag string, metadata map[string]string) (store.ObjectInfo, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "put_object", key)
	if err != nil {
		return store.ObjectInfo{}, store.ObjectMeta{}, err
	}
	return b.inner.Refresh(ctx, key, etag, metadata)
}

func (b bucket) List(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "list_objects", in.Prefix)
	if err != nil {
		return store.ObjectPage{}, store.ObjectMeta{}, err
	}
	return b.inner.List(ctx, in)
}

func (b bucket) Versions(ctx context.Context, in store.ListObjects) (store.ObjectPage, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "list_objects", in.Prefix)
	if err != nil {
		return store.ObjectPage{}, store.ObjectMeta{}, err
	}
	return b.inner.Versions(ctx, in)
}

func (b bucket) Delete(ctx context.Context, versions []store.ObjectVersion) ([]store.ObjectVersion, store.ObjectMeta, error) {
	if len(versions) == 0 {
		return b.inner.Delete(ctx, versions)
	}
	bound, err := bindObject(ctx, "delete_objects", versions[0].Key)
	for _, v := range versions[1:] {
		if err == nil && ownerOfObject(v.Key) != Of(bound) {
			err = &store.Error{Call: "delete_objects", Key: v.Key, Kind: store.Denied, Code: "AnotherTenant"}
		}
	}
	if err != nil {
		return versions, store.ObjectMeta{}, err
	}
	return b.inner.Delete(bound, versions)
}

func (b bucket) Uploads(ctx context.Context, prefix string) ([]store.Upload, store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "list_objects", prefix)
	if err != nil {
		return nil, store.ObjectMeta{}, err
	}
	return b.inner.Uploads(ctx, prefix)
}

func (b bucket) Abort(ctx context.Context, u store.Upload) (store.ObjectMeta, error) {
	ctx, err := bindObject(ctx, "delete_objects", u.Key)
	if err != nil {
		return store.ObjectMeta{}, err
	}
	return b.inner.Abort(ctx, u)
}

func (b bucket) PresignPut(ctx context.Context, in store.PresignPut) (store.Presigned, error) {
	ctx, err := bindObject(ctx, "put_object", in.Key)
	if err != nil {
		return store.Presigned{}, err
	}
	return b.inner.PresignPut(ctx, in)
}

func (b bucket) PresignGet(ctx context.Context, in store.PresignGet) (store.Presigned, error) {
	ctx, err := bindObject(ctx, "get_object", in.Key)
	if err != nil {
		return store.Presigned{}, err
	}
	return b.inner.PresignGet(ctx, in)
}
