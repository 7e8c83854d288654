// Package recovery takes an execution from a worker that died to one that goes
// on: claims and their renewal, reconciliation of what is uncertain, resuming,
// the hand-over to a workflow's resume target, and the sweep and stream handler
// that make all of it happen when nobody calls.
//
// # What it guarantees
//
//   - Every trigger (a stream record, the schedule, a call) ends in the same code,
//     which decides on what the journal and the head say at that moment. Late,
//     repeated or lost triggers change nothing but the time.
//   - What is due stands on the head and is taken away only by a transition that
//     sets what is due next: a crash at any point leaves an alarm.
//   - Nothing is ever given out again whose first execution may have happened:
//     not_executed and abandoned stand in the attempt's slot before they count,
//     and an outcome found there wins.
//   - A resolver's answer is evidence and no more. One that is none, late or
//     hostile is query_failed, which settles nothing.
//   - One execution that cannot be opened is set aside on its own head and does
//     not keep any other from being recovered.
//
// # Order of a resume
//
// claim (fences the last owner out), migrate, reconcile, and park when something
// stays uncertain: one entry each. A crash between any two leaves an execution
// with an owner whose lease runs out, and the next resume does the rest.
package recovery
