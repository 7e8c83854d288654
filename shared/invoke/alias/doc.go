// Package alias makes tenants' doors: an alias of each of Cairn's functions,
// t-<tenant>, that speaks for this tenant only (package door holds the invoked
// alias against the request), and the right of a principal to invoke exactly it.
//
// Aliases point to $LATEST, so they follow every deployment. Everything here may
// be repeated: what is there already is left as it is, and what is gone already
// is no error. A crash in the middle leaves some of the three doors; doing it
// again makes the rest.
package alias
