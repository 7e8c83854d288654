package tenancy

import (
	"context"

	"github.com/cairnstate/cairn/shared/store"
)

// Table gives t with every call bound to a tenant. A call about keys of several
// tenants is refused.
func Table(t store.Table) store.Table { return table{t} }

type table struct{ inner store.Table }

func (t table) Get(ctx context.Context, in store.Get) (store.Item, store.Meta, error) {
	ctx, err := bindItem(ctx, "get", in.Key)
	if err != nil {
		return nil, store.Meta{}, err
	}
	return t.inner.Get(ctx, in)
}

func (t table) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	ctx, err := bindItem(ctx, "query", store.Key{PK: in.PK})
	if err != nil {
		return store.Page{}, store.Meta{}, err
	}
	return t.inner.Query(ctx, in)
}

func (t table) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	ctx, err := bindItem(ctx, "put", in.Item.Key())
	if err != nil {
		return store.Meta{}, err
	}
	return t.inner.Put(ctx, in)
}

func (t table) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	ctx, err := bindItem(ctx, "update", in.Key)
	if err != nil {
		return nil, store.Meta{}, err
	}
	return t.inner.Update(ctx, in)
}

func (t table) Delete(ctx context.Context, in store.Delete) (store.Item, store.Meta, error) {
	ctx, err := bindItem(ctx, "delete", in.Key)
	if err != nil {
		return nil, store.Meta{}, err
	}
	return t.inner.Delete(ctx, in)
}

func (t table) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	keys := make([]store.Key, len(in.Writes))
	for i, w := range in.Writes {
		keys[i] = w.Key()
	}
	ctx, err := bindItems(ctx, "transact", keys)
	if err != nil {
		return store.Meta{}, err
	}
	return t.inner.Transact(ctx, in)
}

func (t table) BatchDelete(ctx context.Context, keys []store.Key) ([]store.Key, store.Meta, error) {
	ctx, err := bindItems(ctx, "batch", keys)
	if err != nil {
		return keys, store.Meta{}, err
	}
	return t.inner.BatchDelete(ctx, keys)
}

func (t table) BatchGet(ctx context.Context, keys []store.Key, consistent bool) ([]store.Item, []store.Key, store.Meta, error) {
	ctx, err := bindItems(ctx, "batch", keys)
	if err != nil {
		return nil, keys, store.Meta{}, err
	}
	return t.inner.BatchGet(ctx, keys, consistent)
}

// bindItems binds a call about several keys, which all must have one owner or
// be nobody's (a purge writes its receipt with the last item that it removes).
func bindItems(ctx context.Context, call string, keys []store.Key) (context.Context, error) {
	owner := ""
	for _, k := range keys {
		switch o := ownerOfItem(k.PK); {
		case o == "" || o == owner:
		case owner == "":
			owner = o
		default:
			return nil, &store.Error{Call: call, Key: k.PK + "/" + k.SK, Kind: store.Denied, Code: "AnotherTenant"}
		}
	}
	if len(keys) == 0 {
		return ctx, nil
	}
	return Bind(ctx, call, keys[0].PK+"/"+keys[0].SK, owner)
}
