// Package fieldcases holds what went wrong for others as tests: each of the 45
// collected cases (its test carries the case's id), and further ones of the same
// kinds. They speak to a sandbox of their own through Lambda's HTTP interface,
// as any caller does; a few run over a local AWS engine too.
//
// What needs data or an engine that is not there is a printed and counted skip.
package fieldcases
