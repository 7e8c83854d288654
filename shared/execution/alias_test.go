package execution

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestTenantAlias(t *testing.T) {
	t.Parallel()
	for tenant, alias := range map[TenantID]string{"acme": "t-acme", "a.b": "t-a_2eb", "a_b": "t-a_5fb", "a_2eb": "t-a_5f2eb", "A-1": "t-A-1"} {
		if got := TenantAlias(tenant); got != alias {
			t.Errorf("%s: got %s, want %s", tenant, got, alias)
		}
	}
}

// No two tenants have one alias, and every alias is a name that Lambda takes.
func TestTenantAliasIsUnique(t *testing.T) {
	t.Parallel()
	tenant := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._2e5f-]{0,8}`)
	valid := regexp.MustCompile(`^[a-zA-Z0-9-_]+$`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := TenantID(tenant.Draw(t, "a")), TenantID(tenant.Draw(t, "b"))
		if (a == b) != (TenantAlias(a) == TenantAlias(b)) {
			t.Fatalf("%q and %q: %q and %q", a, b, TenantAlias(a), TenantAlias(b))
		}
		if !valid.MatchString(TenantAlias(a)) {
			t.Fatalf("%q is no alias", TenantAlias(a))
		}
	})
}
