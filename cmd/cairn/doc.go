// Command cairn is the operator's and developer's tool: the sandbox, and calls
// of the functions in a sandbox or a deployed stack.
//
// Each verb is one file with one struct: its fields are the flags (kong), its
// Help method the examples, its Run method the work. A new verb is a field of
// commands (cli.go) and its file.
//
// Exit codes, of every verb: 0 done; 1 the product refused (its error, one JSON
// object, is on standard error); 2 usage; 3 the functions could not be reached
// or died, or the machine refused (files, ports): what was asked may or may not
// have happened.
package main
