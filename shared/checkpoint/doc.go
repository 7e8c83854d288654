// Package checkpoint is the service behind the checkpoint function's own
// verbs: create, apply, suspend, complete, get, history, list, fork, and the
// tenant's workflows and settings. Evidence, signals and artifacts have
// packages of their own (ledger, artifact).
//
// A service call checks what a rule can check before anything is written; one
// entry of the journal carries the whole step, so either all of it happened or
// none of it. Requests come decoded and checked in form (package api).
package checkpoint
