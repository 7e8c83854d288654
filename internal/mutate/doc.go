// Command mutate removes or inverts, one at a time, the conditions and checks
// that Cairn's guarantees rest on, and runs the tests that must notice. A
// mutant that no test notices survives, and fails the command.
//
// The mutants are written by hand (list.go): each is one rule, taken away. The
// source is not touched: the changed file reaches the compiler as an overlay.
//
//	go run ./internal/mutate                 all of them
//	go run ./internal/mutate -only claim     those whose name matches
//	go run ./internal/mutate -every 5        each fifth: a quick look
package main
