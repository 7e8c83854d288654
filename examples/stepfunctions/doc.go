// Package stepfunctions is the document case as a Step Functions state machine.
//
// The machine (machine.asl.json, JSONata) opens a case, takes it over, calls the
// desk (directory desk, a Lambda function) and suspends the case under a task
// token until the customer sends something. It carries coordinates only: tenant,
// execution, version and fence. The case's state, of whatever size, stays in
// Cairn, so no state of the machine comes near Step Functions' 256 KB.
//
// A machine may be stopped anywhere. Cairn then starts another one, as the
// workflow's resume target, from the version that it knows; whichever machine
// claims first at that version goes on and the other ends quietly.
//
// Directory demo tells the story on a deployed stack (make demo-stack).
package stepfunctions
