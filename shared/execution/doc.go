// Package execution holds what an execution is and every rule about it:
// identities, entries, the state that is their fold, the operation state
// machine, the evidence table, budgets and the closed set of error codes.
//
// It is pure: no I/O, no clock, no AWS. Times come in as milliseconds of the
// store's clock. Every rule that can refuse a change lives here and names the
// field or the JSON path.
//
// # How it fits together
//
// Propose takes a State and a Change, checks every rule and gives the Entry to
// write and the State after it. The journal package writes the entry with one
// conditional put. Fold rebuilds a State from entries; it trusts what they say,
// because only Propose makes them, and refuses only what cannot be an
// execution's journal (a gap, another generation, an unknown format).
//
//	Fold(nil, e1..en) == the State that Propose returned for en
//
// # Concurrency
//
// A State and an Entry are immutable once returned and safe to share. A Folder
// is for one goroutine.
package execution
