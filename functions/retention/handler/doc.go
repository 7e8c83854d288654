// Package handler is the front of the retention function: every action of its
// interface (docs/API.md), batches of the main table's stream, and the
// schedule's event.
package handler
