// Package schema brings an agent's state from one version of its shape to a
// later one: a chain of steps, each a JSON patch or a function, applied one
// after the other.
//
// It is pure but for steps that are functions of the caller. Nothing is changed
// in place: a chain that fails at any step leaves the state as it was, and what
// a step answers is held to the limits of a state before anybody sees it.
//
// A version that no chain reaches is MigrationFailed; a state that is newer than
// what its reader supports is SchemaTooNew.
package schema
