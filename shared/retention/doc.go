// Package retention ends what has to end: policies and expiry, history rules,
// holds, deletion, archive and restore, the purge of a tenant, orphans in the
// bucket, receipts, and the check of all of it.
//
// # What it guarantees
//
//   - Nothing is removed because of a policy before its date, while a hold is in
//     force, while an operation is open, or under a status that this version does
//     not know (Plan, a pure function).
//   - A deletion begins with one transaction that closes the journal; a hold
//     that was acknowledged before it stops it, one that comes later is told that
//     the deletion is under way. Pruning and archiving pass the same checks.
//   - From the closing on, anybody may continue a deletion at any point, any
//     number of times; the end is the same. Every single removal is of a key that
//     carries the generation, or of a version not above the last one, or is
//     conditional on the generation, so a recreated id is never touched.
//   - A deletion, a hold and a purge need no key: nothing is decrypted.
//   - `done` is said after a look that found nothing.
//
// # What is due
//
// The retain index lists everything that retention has to do, by time: heads
// (expiry, archive, history rule, remembered deletions), receipts (unfinished
// deletions, final sweeps, the end of the receipt itself) and changed policies.
// A sweep reads what is due there and costs nothing for the rest; the timers'
// stream records only bring the same work forward. A work item that fails is put
// off by minutes, so it never starves the others.
//
// Only objects that no entry names cannot be found by a due time: see sweepObjects.
package retention
