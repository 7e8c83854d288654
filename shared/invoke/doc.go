// Package invoke reaches Cairn's functions through AWS Lambda's Invoke: in a
// deployed stack, a local AWS engine or the sandbox, which all speak it.
//
// It sends bytes and gives bytes back, untouched. It never sends a request a
// second time by itself: after an unknown outcome only the caller knows whether
// a repeat is the same request (request_id, nonce) or another one.
package invoke
