package store

import (
	"context"
	"io"
)

// Metered gives t with the cost of every call added to the Meter of the call's
// context (WithMeter); without one it adds nothing. Failed calls count too:
// the service was asked, and a failed condition consumes units.
func Metered(t Table) Table { return meteredTable{t} }

// MeteredBucket does the same for a bucket, counting its requests. Presigning
// asks nobody and costs nothing.
func MeteredBucket(b Bucket) Bucket { return meteredBucket{b} }

type meteredTable struct{ Table }

func chargeRead(ctx context.Context, m Meta) {
	charge(ctx, Cost{Reads: 1, ReadUnits: m.ReadUnits, WriteUnits: m.WriteUnits})
}

func chargeWrite(ctx context.Context, m Meta) {
	charge(ctx, Cost{Writes: 1, ReadUnits: m.ReadUnits, WriteUnits: m.WriteUnits})
}

func (t meteredTable) Get(ctx context.Context, in Get) (Item, Meta, error) {
	it, m, err := t.Table.Get(ctx, in)
	chargeRead(ctx, m)
	return it, m, err
}

func (t meteredTable) Query(ctx context.Context, in Query) (Page, Meta, error) {
	p, m, err := t.Table.Query(ctx, in)
	chargeRead(ctx, m)
	return p, m, err
}

func (t meteredTable) Put(ctx context.Context, in Put) (Meta, error) {
	m, err := t.Table.Put(ctx, in)
	chargeWrite(ctx, m)
	return m, err
}

func (t meteredTable) Update(ctx context.Context, in Update) (Item, Meta, error) {
	it, m, err := t.Table.Update(ctx, in)
	chargeWrite(ctx, m)
	return it, m, err
}

func (t meteredTable) Delete(ctx context.Context, in Delete) (Item, Meta, error) {
	it, m, err := t.Table.Delete(ctx, in)
	chargeWrite(ctx, m)
	return it, m, err
}

func (t meteredTable) Transact(ctx context.Context, in Transact) (Meta, error) {
	m, err := t.Table.Transact(ctx, in)
	chargeWrite(ctx, m)
	return m, err
}

func (t meteredTable) BatchDelete(ctx context.Context, keys []Key) ([]Key, Meta, error) {
	left, m, err := t.Table.BatchDelete(ctx, keys)
	chargeWrite(ctx, m)
	return left, m, err
}

func (t meteredTable) BatchGet(ctx context.Context, keys []Key, consistent bool) ([]Item, []Key, Meta, error) {
	items, left, m, err := t.Table.BatchGet(ctx, keys, consistent)
	chargeRead(ctx, m)
	return items, left, m, err
}

type meteredBucket struct{ Bucket }

// chargeObjects counts one request where the answer does not say how many there
// were (a broken call still asked).
func chargeObjects(ctx context.Context, m ObjectMeta) {
	charge(ctx, Cost{ObjectRequests: max(m.Requests, 1)})
}

func (b meteredBucket) Put(ctx context.Context, in PutObject) (ObjectMeta, error) {
	m, err := b.Bucket.Put(ctx, in)
	chargeObjects(ctx, m)
	return m, err
}

func (b meteredBucket) Get(ctx context.Context, in GetObject) (io.ReadCloser, ObjectInfo, ObjectMeta, error) {
	body, info, m, err := b.Bucket.Get(ctx, in)
	chargeObjects(ctx, m)
	return body, info, m, err
}

func (b meteredBucket) Head(ctx context.Context, key string) (ObjectInfo, ObjectMeta, error) {
	info, m, err := b.Bucket.Head(ctx, key)
	chargeObjects(ctx, m)
	return info, m, err
}

func (b meteredBucket) Refresh(ctx context.Context, key, etag string, metadata map[string]string) (ObjectInfo, ObjectMeta, error) {
	info, m, err := b.Bucket.Refresh(ctx, key, etag, metadata)
	chargeObjects(ctx, m)
	return info, m, err
}

func (b meteredBucket) List(ctx context.Context, in ListObjects) (ObjectPage, ObjectMeta, error) {
	p, m, err := b.Bucket.List(ctx, in)
	chargeObjects(ctx, m)
	return p, m, err
}

func (b meteredBucket) Versions(ctx context.Context, in ListObjects) (ObjectPage, ObjectMeta, error) {
	p, m, err := b.Bucket.Versions(ctx, in)
	chargeObjects(ctx, m)
	return p, m, err
}

func (b meteredBucket) Delete(ctx context.Context, versions []ObjectVersion) ([]ObjectVersion, ObjectMeta, error) {
	failed, m, err := b.Bucket.Delete(ctx, versions)
	chargeObjects(ctx, m)
	return failed, m, err
}

func (b meteredBucket) Uploads(ctx context.Context, prefix string) ([]Upload, ObjectMeta, error) {
	u, m, err := b.Bucket.Uploads(ctx, prefix)
	chargeObjects(ctx, m)
	return u, m, err
}

func (b meteredBucket) Abort(ctx context.Context, u Upload) (ObjectMeta, error) {
	m, err := b.Bucket.Abort(ctx, u)
	chargeObjects(ctx, m)
	return m, err
}
