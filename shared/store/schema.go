package store

// Index describes a sparse global index on heads: an item without both key
// attributes is not in it. Indexes are eventually consistent and decide
// nothing (architecture, "Tables and bucket").
type Index struct {
	Name   string
	PK, SK string
	// NumberSK: the sort key is a number, else a string.
	NumberSK bool
	// Shared: a partition holds heads of all tenants (sweeps read it), else its
	// key begins with the tenant.
	Shared bool
}

// Indexes is the main table's whole set of indexes; the stack, the adapters
// and the local engine make them from here.
var Indexes = []Index{
	{Name: "status", PK: "xs", SK: "xu"},                                 // <tenant>#<status>#<shard>, updated
	{Name: "thread", PK: "xt", SK: "xc"},                                 // <tenant>#<thread>, created
	{Name: "workflow", PK: "xw", SK: "xc"},                               // <tenant>#<workflow>#<shard>
	{Name: "due", PK: "xd", SK: "due", NumberSK: true, Shared: true},     // ~due#<shard>, epoch milliseconds
	{Name: "retain", PK: "xr", SK: "rdue", NumberSK: true, Shared: true}, // ~retain#<shard>, epoch milliseconds
}
