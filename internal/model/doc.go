// Package model explores small worlds of the protocols exhaustively: every order
// of every step, breadth first, so that what breaks is told by a shortest story.
//
// The worlds have what the simulation reaches by chance only: several executions
// under one hold, purges, forks that carry, archives, bodies in the bucket, and
// requests whose answers are lost until they are forgotten. Where a step's
// outcome is a rule, the product's own rule is asked: execution.Propose, Fold and
// Judge on real journals, retention.Plan on real facts. What lies between (which
// call comes after which, and on which conditions a transaction stands) is
// written down again in the model, beside the names of the functions that it
// follows; a change there belongs here too.
//
//	holds     two executions of a thread, holds, sweep, deletion by thread, purge
//	purge     a purge, and what was on its way when it began
//	requests  one request sent again and again, moved or not, until it is forgotten
//	carry     a fork with the right to act; late tools and evidence; the parent's deletion
//	archive   archive, restore, trim, prune and expiry by two sweeps
//	bodies    entries with a body in the bucket, crashes, orphan sweep, pruning
//
// Each invariant names its guarantee (docs/GUARANTEES.md). Each rule that a model
// rests on can be left out, and then an invariant must break: a model that cannot
// fail proves nothing.
//
//	go test ./internal/model -v          the small worlds (with the other tests)
//	go test ./internal/model -v -stories and how each breaks without its guards
//	make model                           the large worlds
//
// Not modelled: leases and the race for a claim, waits and hand-overs, callbacks,
// children, tenant keys, the sealing of bodies, several operations at once,
// contradicting evidence beyond one, subjects (they follow threads), reuse of an id
// by a new generation, list and other lagging indexes but where a deletion lists,
// multipart uploads, artifacts (their objects obey the rules of bodies), migration,
// stream records, and clocks that differ: time is the store's and goes by in steps
// of the order of the product's times.
package model
