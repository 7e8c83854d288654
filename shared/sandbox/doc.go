// Package sandbox is Cairn in one process without AWS: the three functions over
// the memory store, behind Lambda's own HTTP API, with a virtual clock, scripted
// faults and a look at everything that lies at rest. It is a test kit for people
// who write agents and for this project's own tests, not a server to keep data.
//
// What it guarantees:
//
//   - An invocation goes the way it goes on Lambda: any AWS SDK's Lambda client
//     or plain HTTP works, a failure is a 200 with X-Amz-Function-Error, what is
//     too large is refused as Lambda refuses it, a qualifier arrives in the
//     invoked ARN.
//   - An invocation that a scripted fault kills answers Runtime.ExitError, and
//     its function starts anew with nothing in memory, like a new process. What
//     it had stored stays.
//   - The stream reaches the functions as by event source mappings
//     (store.Mappings): filtered, in order within a shard, in batches with
//     partial failures, with bounded retries and a dead-letter queue.
//   - Time moves only when told (or runs, with Options.RealTime). Nothing is
//     delivered unless asked (or by itself, with Options.Auto).
//   - Reset and load wait for invocations that are under way; none sees half of
//     them.
//
// The package knows nothing of what the functions do: Build makes them.
package sandbox
