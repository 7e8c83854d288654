// Package api is the functions' interface: the request and reply of every verb,
// read and written strictly and exactly.
//
// # Requests
//
// Decode reads one request for one function. What it returns has passed every
// check that needs no storage: only known fields, spelled exactly, each once,
// of the right type and range; everything required there; nothing that
// contradicts something else; agent data within its limits. Everything else is
// an *execution.Error (InvalidRequest or TooLarge) that names the field
// (operations[2].args) and, inside agent data, the JSON path. An explicit null
// is never the same as a missing field: control fields refuse it, agent data
// keeps it.
//
// The rules stand beside the fields, as struct tags read by one mechanism
// (codec.go); what several fields decide together stands in a check method.
//
// # Identity
//
// Each request carries Hash (of its request_id) and Digest (of its content).
// The digest is taken from the request as this package writes it: key order,
// white space and the spelling of control fields do not count, every token of
// agent data does. So a request that was built in Go (Identify) and the same
// one from the wire have one digest.
//
// # Replies
//
// EncodeReply and DecodeReply are exact in both directions: agent data goes
// through as *jsonx.Value, token for token. FitView and its sisters bring a
// reply under a limit of bytes, judged on its final text.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use. A request belongs to
// whoever decoded or built it.
package api
