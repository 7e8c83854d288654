package execution

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAlias(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		tenant TenantID
		want   string
		ok     bool
	}{
		{"acme", "t-acme", true},
		{"acme-eu", "t-acme-eu", true},
		{"acme.eu_1", "t-acme_2eeu_5f1", true},
		{"a_2e", "t-a_5f2e", true},
		{"", "", false},
		{".acme", "", false},
		{"acme#x", "", false},
		{TenantID("a" + strings.Repeat(".", 42)), "t-a" + strings.Repeat("_2e", 42), false},
		{TenantID("a" + strings.Repeat(".", 41)), "t-a" + strings.Repeat("_2e", 41), true},
	} {
		got, ok := row.tenant.Alias()
		if ok != row.ok || ok && got != row.want {
			t.Errorf("Alias of %q: %q, %v; want %q, %v", row.tenant, got, ok, row.want, row.ok)
		}
	}
	for _, alias := range []string{"", "acme", "t-", "T-acme", "t-a.b", "t-a_b", "t-a_2Eb", "t-a_2", "live", "t-_2eacme"} {
		if tenant, ok := TenantOfAlias(alias); ok {
			t.Errorf("TenantOfAlias(%q) = %q, want none", alias, tenant)
		}
	}
}

func TestAliasIsOneToOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tenant := TenantID(rapid.StringMatching(`[a-z0-9][a-f0-9._-]{0,20}`).Draw(t, "tenant"))
		alias, ok := tenant.Alias()
		if !ok {
			t.Fatalf("no alias for %q", tenant)
		}
		if back, ok := TenantOfAlias(alias); !ok || back != tenant {
			t.Fatalf("%q became %q and came back as %q, %v", tenant, alias, back, ok)
		}
	})
}
