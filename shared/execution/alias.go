package execution

import "strings"

// aliasText writes what a Lambda alias's name cannot hold ([a-zA-Z0-9-_]) and
// the escape itself, so that no two tenants share an alias.
var aliasText = strings.NewReplacer("_", "_5f", ".", "_2e")

// TenantAlias is the name of the tenant's alias of each function: the door
// through which only that tenant can be spoken for (api.md, "Calling it").
func TenantAlias(t TenantID) string { return "t-" + aliasText.Replace(string(t)) }

var tenantText = strings.NewReplacer("_5f", "_", "_2e", ".")

// TenantOfAlias gives the tenant whose alias has that name; false when it is
// nobody's.
func TenantOfAlias(alias string) (TenantID, bool) {
	t := TenantID(tenantText.Replace(strings.TrimPrefix(alias, "t-")))
	if CheckIdentifier("tenant", string(t), MaxTenant) != nil || TenantAlias(t) != alias {
		return "", false
	}
	return t, true
}
