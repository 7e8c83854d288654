// Command soak puts load on the product over a local AWS engine, with faults,
// for a bounded time, and checks what is left.
//
// Executions of a small business case start at a rate. Worker processes (this
// binary again) drive them with the Go client over the AWS adapters. They are
// killed with SIGKILL and frozen beyond their leases at random; the one called
// "steady" never is, so that its memory can be watched. Between every process and
// the engine stands a proxy that loses, cuts, delays and refuses. The queue in
// front of the workers delivers twice, or never. The providers behind the
// operations break off before or after an effect.
//
// When the time is over the faults stop and everything is driven to its end. Then
// it checks that
//
//   - every execution has ended, or waits for a person and says why;
//   - no logical effect happened twice, and each of a completed execution once;
//   - every step that was acknowledged to a worker stands in the history at its
//     version, and what it wrote in the state;
//   - verify finds nothing;
//   - nothing answered with a code that no fault explains;
//   - the memory of the steady worker and of this process is flat.
//
// A seed decides the draws of every actor, not the schedule of the processes:
// the same seed is the same load, not the same run. Everything listens on
// loopback.
package main
