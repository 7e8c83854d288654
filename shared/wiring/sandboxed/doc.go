// Package sandboxed builds the product's functions over a sandbox's world: the
// handlers themselves, as they are deployed. The command's sandbox, the examples
// and tests all start them here.
package sandboxed
