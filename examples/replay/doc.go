// Command replay runs recorded agent runs as executions: each message a step,
// each effect (a booking, a cancellation, a certificate ...) an operation with an
// airline behind it that counts.
//
// It prints what a step costs and occupies. With --crash it does it all again
// with a crash at every step of every run: the worker dies before the step, or
// when it has landed and nobody has heard so, or the function's process dies
// around its write. Every run must end in the same state, token for token, with
// every effect executed once; and where the recorded agent booked the same
// flight twice, the second booking is answered by the first one's result.
//
// The recordings are those of a public benchmark and not part of this
// repository: without them it says so and ends well.
package main
