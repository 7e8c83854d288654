// Package ledger takes in evidence: what business tools, webhooks, people and
// even workers that were fenced out say about operations, and signals that
// nobody declared. It writes slots and signal items and never the journal.
//
// # What it guarantees
//
//   - First final outcome of an attempt stands; the same again is a replay, another
//     one is kept beside it as a contradiction and reported. Nothing that was
//     acknowledged is lost, nothing overwrites a final outcome.
//   - An attempt of which somebody reported `unknown` is never settled by a later
//     `rejected` alone: the slot remembers (M).
//   - Every write is justified by a read of the head not older than store.Window,
//     and the head is read again after it, on replays too: evidence for an
//     execution that is gone or closing is refused, and one that waits is made due
//     (M). No wake-up depends on the caller coming back.
//   - Evidence for an execution whose right to act has moved to a fork reaches the
//     fork.
//   - A start is a transaction of slot and head: only under the current fence, only
//     for the current attempt, only once (by nonce), not after send_by (M).
//   - Callbacks are authenticated per tenant and used for one content.
//
// # Bounds
//
// Results above 16 KB go to the bucket before the slot is written. A signal's
// body has at most MaxSignalBody bytes. The inbox holds 5,000 signals: a process
// counts what it adds and counts the items themselves when that nears the limit,
// and one key in 64 (chosen by its hash) makes any process count; so a single
// process is exact, and many together may go over by what they add between two
// counts.
//
// # Concurrency
//
// A Ledger is safe for concurrent use.
package ledger
