package execution_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/execution"
)

// An alias is one tenant's, and tells which.
func TestTenantOfAlias(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tenant := execution.TenantID(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,63}`).Draw(t, "tenant"))
		if got, ok := execution.TenantOfAlias(execution.TenantAlias(tenant)); !ok || got != tenant {
			t.Fatalf("%s -> %s, %v", tenant, got, ok)
		}
	})
	for _, other := range []string{"", "t-", "live", "acme", "t-a.b", "t-a_b", "t-a_2Eb", "t-_2ea"} {
		if got, ok := execution.TenantOfAlias(other); ok {
			t.Errorf("%s is %s's", other, got)
		}
	}
}
