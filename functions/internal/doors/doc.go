// Package doors opens, in a deployed process, what recovery talks to besides the
// stores: resolvers, resume targets, migrations that are functions, and the
// operators' event bus. Only the recover function links it.
package doors
