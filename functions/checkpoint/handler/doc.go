// Package handler is the front of the checkpoint function: every action of its
// interface (docs/API.md) and the service call behind it.
package handler
