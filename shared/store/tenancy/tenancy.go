package tenancy

import (
	"context"
	"strings"

	"github.com/cairnstate/cairn/shared/store"
)

type tenantKey struct{}

// With gives a context whose storage calls are for this tenant only.
func With(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// Of is the tenant that calls are for; "": none.
func Of(ctx context.Context) string {
	t, _ := ctx.Value(tenantKey{}).(string)
	return t
}

// Bind gives the context for a call about a key of owner's; "" is nobody's. The
// error, of kind Denied, says that the context is another tenant's.
func Bind(ctx context.Context, call, key, owner string) (context.Context, error) {
	switch have := Of(ctx); {
	case owner == "":
		return With(ctx, ""), nil
	case have == "":
		return With(ctx, owner), nil
	case have != owner:
		return nil, &store.Error{Call: call, Key: key, Kind: store.Denied, Code: "AnotherTenant"}
	}
	return ctx, nil
}

// ownerOfItem is the tenant of a partition of a table or an index.
func ownerOfItem(pk string) string {
	if strings.HasPrefix(pk, "~") {
		return ""
	}
	t, _, _ := strings.Cut(pk, "#")
	return t
}

// ownerOfObject is the tenant of an object's key or prefix.
func ownerOfObject(key string) string {
	if strings.HasPrefix(key, "~") {
		return ""
	}
	t, _, _ := strings.Cut(key, "/")
	return t
}

func bindItem(ctx context.Context, call string, k store.Key) (context.Context, error) {
	return Bind(ctx, call, k.PK+"/"+k.SK, ownerOfItem(k.PK))
}

func bindObject(ctx context.Context, call, key string) (context.Context, error) {
	return Bind(ctx, call, key, ownerOfObject(key))
}
