// Package https asks business systems over HTTPS what became of an attempt: a
// recovery.Resolver.
//
// # What it guarantees
//
//   - It speaks to allow-listed hosts only, over verified TLS, and never to a
//     loopback, link-local or metadata address, whatever a name resolves to at
//     the moment of the connection.
//   - It follows no redirect and uses no proxy.
//   - It reads no more than 1 MB and waits no longer than its context.
//   - Every request is signed: the answerer can tell that it is Cairn who asks,
//     about which tenant, execution, operation and fence, and when.
//
// # The request
//
// POST with the question as JSON (recovery.Question) and two headers:
// Cairn-Timestamp (Unix seconds) and Cairn-Signature, the hex HMAC-SHA-256 of
// "<timestamp>.<body>" under the shared key. Whatever is not status 200 is no
// answer.
package https
