package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/store"
)

// table makes every call of a table wait for the scheduler.
type table struct {
	w *world
	store.Table
}

func (t table) Get(ctx context.Context, in store.Get) (it store.Item, m store.Meta, err error) {
	if err = t.w.read(ctx, "get", in.Key.PK, in.Key.SK); err != nil {
		return it, m, err
	}
	return t.Table.Get(ctx, in)
}

func (t table) Query(ctx context.Context, in store.Query) (p store.Page, m store.Meta, err error) {
	if err = t.w.read(ctx, "query", in.PK, in.Index+in.Prefix+in.From); err != nil {
		return p, m, err
	}
	return t.Table.Query(ctx, in)
}

func (t table) Put(ctx context.Context, in store.Put) (m store.Meta, err error) {
	k := in.Item.Key()
	err = t.w.write(ctx, "put", k.PK, k.SK, func() error {
		var err error
		m, err = t.Table.Put(ctx, in)
		return err
	})
	return m, err
}

func (t table) Update(ctx context.Context, in store.Update) (it store.Item, m store.Meta, err error) {
	err = t.w.write(ctx, "update", in.Key.PK, in.Key.SK, func() error {
		var err error
		it, m, err = t.Table.Update(ctx, in)
		return err
	})
	return it, m, err
}

func (t table) Delete(ctx context.Context, in store.Delete) (it store.Item, m store.Meta, err error) {
	err = t.w.write(ctx, "delete", in.Key.PK, in.Key.SK, func() error {
		var err error
		it, m, err = t.Table.Delete(ctx, in)
		return err
	})
	return it, m, err
}

func (t table) Transact(ctx context.Context, in store.Transact) (m store.Meta, err error) {
	k := in.Writes[0].Key()
	err = t.w.write(ctx, "transact", k.PK, k.SK, func() error {
		var err error
		m, err = t.Table.Transact(ctx, in)
		return err
	})
	return m, err
}

func (t table) BatchDelete(ctx context.Context, keys []store.Key) (left []store.Key, m store.Meta, err error) {
	err = t.w.write(ctx, "batch_delete", keys[0].PK, keys[0].SK, func() error {
		var err error
		left, m, err = t.Table.BatchDelete(ctx, keys)
		return err
	})
	return left, m, err
}

func (t table) BatchGet(ctx context.Context, keys []store.Key, consistent bool) (items []store.Item, left []store.Key, m store.Meta, err error) {
	if err = t.w.read(ctx, "batch_get", keys[0].PK, keys[0].SK); err != nil {
		return items, left, m, err
	}
	return t.Table.BatchGet(ctx, keys, consistent)
}

// bucket does the same for a bucket.
type bucket struct {
	w *world
	store.Bucket
}

func (b bucket) Put(ctx context.Context, in store.PutObject) (m store.ObjectMeta, err error) {
	body, err := io.ReadAll(in.Body) // a late write reads it when it lands
	if err != nil {
		return m, err
	}
	err = b.w.write(ctx, "put_object", in.Key, "", func() error {
		var err error
		in.Body = bytes.NewReader(body)
		m, err = b.Bucket.Put(ctx, in)
		return err
	})
	return m, err
}

func (b bucket) Get(ctx context.Context, in store.GetObject) (r io.ReadCloser, i store.ObjectInfo, m store.ObjectMeta, err error) {
	if err = b.w.read(ctx, "get_object", in.Key, ""); err != nil {
		return r, i, m, err
	}
	return b.Bucket.Get(ctx, in)
}

func (b bucket) Head(ctx context.Context, key string) (i store.ObjectInfo, m store.ObjectMeta, err error) {
	if err = b.w.read(ctx, "head_object", key, ""); err != nil {
		return i, m, err
	}
	return b.Bucket.Head(ctx, key)
}

func (b bucket) Refresh(ctx context.Context, key, etag string, metadata map[string]string) (i store.ObjectInfo, m store.ObjectMeta, err error) {
	err = b.w.write(ctx, "put_object", key, "", func() error {
		var err error
		i, m, err = b.Bucket.Refresh(ctx, key, etag, metadata)
		return err
	})
	return i, m, err
}

func (b bucket) List(ctx context.Context, in store.ListObjects) (p store.ObjectPage, m store.ObjectMeta, err error) {
	if err = b.w.read(ctx, "list_objects", in.Prefix, ""); err != nil {
		return p, m, err
	}
	return b.Bucket.List(ctx, in)
}

func (b bucket) Versions(ctx context.Context, in store.ListObjects) (p store.ObjectPage, m store.ObjectMeta, err error) {
	if err = b.w.read(ctx, "list_objects", in.Prefix, ""); err != nil {
		return p, m, err
	}
	return b.Bucket.Versions(ctx, in)
}

func (b bucket) Delete(ctx context.Context, versions []store.ObjectVersion) (failed []store.ObjectVersion, m store.ObjectMeta, err error) {
	key := ""
	if len(versions) > 0 {
		key = versions[0].Key
	}
	err = b.w.write(ctx, "delete_objects", key, "", func() error {
		var err error
		failed, m, err = b.Bucket.Delete(ctx, versions)
		return err
	})
	return failed, m, err
}

// target takes hand-overs into the queue of starts.
type target struct{ w *world }

func (t target) Start(ctx context.Context, h recovery.Handover) (out recovery.StartOutcome, err error) {
	err = t.w.write(ctx, "target", h.Name, "", func() error {
		if t.w.names[h.Name] {
			out = recovery.Existed
			return nil
		}
		t.w.names[h.Name] = true
		in := parse(h.Input)
		t.w.queue = append(t.w.queue, start{execution.ExecutionID(textOf(in, "execution")), intOf(in, "version")})
		out = recovery.Started
		return nil
	})
	return out, err
}

func (t target) AnswerToken(ctx context.Context, token string, input []byte) (out recovery.StartOutcome, err error) {
	err = t.w.write(ctx, "target", "token", "", func() error {
		out = recovery.Gone
		if t.w.names["token "+token] {
			return nil
		}
		t.w.names["token "+token] = true
		in := parse(input)
		t.w.queue = append(t.w.queue, start{execution.ExecutionID(textOf(in, "execution")), intOf(in, "version")})
		out = recovery.Started
		return nil
	})
	if err != nil && store.KindOf(err) == "" {
		err = errors.New("target")
	}
	return out, err
}
