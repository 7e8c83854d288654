package execution

import "strings"

// maxAlias is the most characters that Lambda takes in an alias.
const maxAlias = 128

// Alias is the name of the tenant's alias of a deployed function: "t-" and the
// tenant, with `.` and `_` written `_2e` and `_5f` because an alias knows neither
// a dot nor an escape of its own. No two tenants share one. false: t is no
// tenant id, or its alias would be too long for Lambda (128 characters); such a
// tenant can only be served through the plain function name.
func (t TenantID) Alias() (string, bool) {
	if !ValidIdentifier(string(t), MaxTenant) {
		return "", false
	}
	alias := "t-" + strings.NewReplacer("_", "_5f", ".", "_2e").Replace(string(t))
	return alias, len(alias) <= maxAlias
}

// TenantOfAlias is the tenant whose alias this is; false when it is none: only
// what Alias writes is taken.
func TenantOfAlias(alias string) (TenantID, bool) {
	escaped, ok := strings.CutPrefix(alias, "t-")
	if !ok {
		return "", false
	}
	t := TenantID(strings.NewReplacer("_5f", "_", "_2e", ".").Replace(escaped))
	if again, ok := t.Alias(); !ok || again != alias {
		return "", false
	}
	return t, true
}
