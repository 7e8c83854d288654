// Package memory is the store in one process: a deterministic world of named
// tables and one bucket under one virtual clock, for tests and the sandbox.
//
// It keeps the port's contract as DynamoDB and S3 do (conditions, transactions
// with reasons and tokens, size limits, units, paging, versions, time to live,
// stream records) and adds what a test wants of them:
//
//   - a clock that moves only when told (or runs: RealTime), to the millisecond;
//   - scripted faults (SetFaults): lost and landed writes, throttling, crashes,
//     stale reads, short pages, unprocessed keys. Doors outside the store (key
//     service, resolvers, hand-over targets) obey the same script through Door;
//   - a log of every call with its key, units and condition;
//   - a dump of what lies at rest, and a load that restores it exactly.
//
// Nothing depends on map order, goroutine order of reads or the host's clock:
// the same calls in the same order leave the same bytes, version ids and
// sequence numbers. All of it is safe for concurrent use; a call is one atomic
// step under the engine's lock.
//
// What it does not do: real transaction conflicts (calls are serial; script
// them), adaptive throttling, index lag other than by the stale fault.
package memory
