package tenancy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// spy notes for whom the calls below the wall are made.
type spy struct {
	store.Table
	seen []string
}

func (s *spy) Get(ctx context.Context, in store.Get) (store.Item, store.Meta, error) {
	s.seen = append(s.seen, tenancy.Of(ctx))
	return s.Table.Get(ctx, in)
}

func TestWhoseCallsAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tenant, pk, want string }{
		{"", "acme#e", "acme"}, {"acme", "acme#e", "acme"}, {"acme", "acme", "acme"}, {"acme", "acme#~3", "acme"}, {"", "~due#1", ""}, {"acme", "~purged", ""},
		{"acme", "globex#e", "refused"}, {"acme", "acme-eu#e", "refused"}, {"acme-eu", "acme#e", "refused"}, {"acme", "", ""},
	} {
		s := &spy{Table: memory.New(memory.Options{}).Table(memory.Main)}
		ctx := t.Context()
		if c.tenant != "" {
			ctx = tenancy.With(ctx, c.tenant)
		}
		_, _, err := tenancy.Table(s).Get(ctx, store.Get{Key: store.Key{PK: c.pk, SK: "x"}, Consistent: true})
		if c.want == "refused" {
			if store.KindOf(err) != store.Denied || len(s.seen) != 0 {
				t.Errorf("%s reads %s: %v, asked for %v", c.tenant, c.pk, err, s.seen)
			}
			continue
		}
		if len(s.seen) != 1 || s.seen[0] != c.want {
			t.Errorf("%s reads %s: asked for %q, want %q (%v)", c.tenant, c.pk, s.seen, c.want, err)
		}
	}
}

// A purge removes the tenant's last item and leaves its receipt outside.
func TestNobodysItemBesideATenants(t *testing.T) {
	t.Parallel()
	e := memory.New(memory.Options{})
	put := func(pk string) store.Write {
		return store.Write{Put: &store.Put{Item: store.Item{store.AttrPK: store.S(pk), store.AttrSK: store.S("x")}}}
	}
	for _, c := range []struct {
		keys []string
		want store.ErrorKind
	}{{[]string{"~purged", "acme"}, ""}, {[]string{"acme#e", "~purged"}, ""}, {[]string{"~purged", "globex"}, store.Denied}, {[]string{"acme", "~purged", "globex"}, store.Denied}} {
		var in store.Transact
		for _, k := range c.keys {
			in.Writes = append(in.Writes, put(k))
		}
		_, err := tenancy.Table(e.Table(memory.Main)).Transact(tenancy.With(t.Context(), "acme"), in)
		if store.KindOf(err) != c.want {
			t.Errorf("%v: %v", c.keys, err)
		}
	}
}

// Every call of the ports refuses another tenant's key before it is sent.
func TestEveryCallIsBound(t *testing.T) {
	t.Parallel()
	e := memory.New(memory.Options{})
	tb, b := tenancy.Table(e.Table(memory.Main)), tenancy.Bucket(e.Bucket())
	ctx := tenancy.With(t.Context(), "acme")
	own, other := store.Key{PK: "acme#e", SK: "head"}, store.Key{PK: "globex#e", SK: "head"}
	item := store.Item{store.AttrPK: store.S(other.PK), store.AttrSK: store.S(other.SK)}
	mine := store.Item{store.AttrPK: store.S(own.PK), store.AttrSK: store.S(own.SK)}
	object := "globex/e/1"
	calls := map[string]func() error{
		"get":   func() error { _, _, err := tb.Get(ctx, store.Get{Key: other, Consistent: true}); return err },
		"query": func() error { _, _, err := tb.Query(ctx, store.Query{PK: other.PK}); return err },
		"index": func() error {
			_, _, err := tb.Query(ctx, store.Query{PK: "globex#running#1", Index: "status"})
			return err
		},
		"put":    func() error { _, err := tb.Put(ctx, store.Put{Item: item}); return err },
		"update": func() error { _, _, err := tb.Update(ctx, store.Update{Key: other}); return err },
		"delete": func() error { _, _, err := tb.Delete(ctx, store.Delete{Key: other}); return err },
		"transact": func() error {
			_, err := tb.Transact(ctx, store.Transact{Writes: []store.Write{{Put: &store.Put{Item: mine}}, {Put: &store.Put{Item: item}}}})
			return err
		},
		"batch delete": func() error { _, _, err := tb.BatchDelete(ctx, []store.Key{own, other}); return err },
		"batch get":    func() error { _, _, _, err := tb.BatchGet(ctx, []store.Key{own, other}, true); return err },
		"put object": func() error {
			_, err := b.Put(ctx, store.PutObject{Key: object, Body: strings.NewReader("")})
			return err
		},
		"get object": func() error { _, _, _, err := b.Get(ctx, store.GetObject{Key: object}); return err },
		"head":       func() error { _, _, err := b.Head(ctx, object); return err },
		"refresh":    func() error { _, _, err := b.Refresh(ctx, object, "", nil); return err },
		"list":       func() error { _, _, err := b.List(ctx, store.ListObjects{Prefix: "globex/"}); return err },
		"list all":   func() error { _, _, err := b.List(ctx, store.ListObjects{Prefix: "acme-eu/"}); return err },
		"versions":   func() error { _, _, err := b.Versions(ctx, store.ListObjects{Prefix: "globex/"}); return err },
		"delete objects": func() error {
			_, _, err := b.Delete(ctx, []store.ObjectVersion{{Key: "acme/1"}, {Key: object}})
			return err
		},
		"uploads": func() error { _, _, err := b.Uploads(ctx, "globex/"); return err },
		"abort":   func() error { _, err := b.Abort(ctx, store.Upload{Key: object}); return err },
		"presign put": func() error {
			_, err := b.PresignPut(ctx, store.PresignPut{Key: object, Expires: time.Minute})
			return err
		},
		"presign get": func() error {
			_, err := b.PresignGet(ctx, store.PresignGet{Key: object, Expires: time.Minute})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); store.KindOf(err) != store.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := e.Dump(); len(d.Items)+len(d.Objects) != 0 {
		t.Errorf("written: %v %v", d.Items, d.Objects)
	}
}
