// Package simulation runs the real services against a simulated world, one
// storage call at a time, under faults that a seed decides.
//
// A world has one memory store, function processes with their own memory,
// workers, a business system that obeys or refuses as each kind of provider
// does, operators, deployers, recoverers and retention. Every storage call,
// question, hand-over and request to the business system waits until the
// scheduler picks it, so that one seed is one schedule, the same in every run.
// Calls are lost, land without an answer, land minutes later, are throttled or
// answered stale, sometimes all that follow in the same call too; what a function
// answers does not arrive; processes die before or after a call, or freeze beyond every
// lease, in some worlds for days; keys are away for a while; stream records come
// late, twice, out of order or never; the time to live takes items up to three
// days late, in no order. Meanwhile executions are held, archived, restored,
// deleted one by one, by subject or by label, and recreated; policies change;
// artifacts are staged, accepted and swept; budgets run out; keys are rotated;
// somebody verifies it all, which must find nothing that is only under way; and at
// the end of some worlds the tenant is purged while others still write.
//
// Rules are checked on every change of the store and of the business system
// (check_test.go), the rest when all faults have ended, what was begun has been
// finished and time has passed: then everything must have ended, and days later in
// some worlds been archived, pruned and removed as its policy has it.
//
// A failing seed is made smaller and told as a story. It is run again by
//
//	go test ./internal/simulation -run TestSeed -seed N -v
//
// `make prove` runs many seeds and says what happened in them; a slice of them
// runs with the other tests.
package simulation
