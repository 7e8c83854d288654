// Package artifact keeps an execution's artifacts: files that are too large for
// its state, and results and views that are too large for a reply.
package artifact
