// Package journal is the protocols of one execution: opening its journal,
// adding the next entry, changing its head, creating, claiming, renewing.
//
// # What it guarantees
//
//   - Entry n+1 is written only where none is (one conditional put); with a
//     change of status, head and entry change in one transaction. Exactly one
//     of any number of writers wins a version.
//   - A write that was acknowledged is found by every later Open; a write whose
//     outcome is unknown is never reported as success or failure: it is looked
//     up, tried again within its validation window, or answered Unavailable.
//   - A caller that repeats a request finds its own write at whatever version
//     (execution.Propose), also when another process made it.
//   - Every body is bound to its place, its plain attributes and the entry
//     before it: what was swapped, edited or left out is Integrity.
//   - Nothing is decided by the cache: a warm handle only saves reads, the
//     condition of the write decides. Every refusal is computed again on a
//     fresh read before a caller gets it.
//
// # Time
//
// The time of an execution is the store's: the Date of the last answer plus
// what has elapsed since the call began. A call that took more than a minute
// tells no time (clock): its Date may be from any moment of it. Every write carries the store time of the oldest read
// that justifies it and cannot land later than store.Window after it.
//
// # Concurrency
//
// A Journal is safe for concurrent use. A Handle is immutable.
package journal
