// Package wiring builds the services over stores: the same for the deployed
// functions, the sandbox and Go callers that want them in their own process.
// It makes no call.
package wiring
