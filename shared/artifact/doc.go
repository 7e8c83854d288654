// Package artifact keeps an execution's artifacts: files that are too large for
// its state, results that are too large for an entry, and views that are too
// large for a reply.
//
// # What it guarantees
//
//   - An artifact is named by the SHA-256 of its bytes and never changes. What is
//     read is held against digest and size: other bytes are Integrity, never an
//     answer.
//   - Staging (Put, Stage, Write) is create-only and costs one object request and
//     one read of the head; nothing is written to the table. An artifact counts
//     from the journal entry that accepts it; until then only its digest is known
//     to the caller who staged it.
//   - Staging the same bytes again is the same artifact: nothing is written twice,
//     but the age of the object starts anew when it is older than half the grace
//     time, so it cannot be swept before it is accepted.
//   - A stale fence is refused before anything is written.
//
// # Names
//
// Name and media type of a staged artifact stand beside its object, sealed under
// the tenant's key, until an entry accepts it; the entry then holds them. The
// same bytes staged under another name before that replace the name: the last
// one stands, and whoever accepts may say another (digest, name, media_type). What
// an entry accepted keeps the name it was accepted under.
//
// # Encryption
//
// Objects are encrypted by the bucket's key or the tenant's own (settings
// kms_key). Media types stand in plain beside them, names do not.
//
// # Concurrency
//
// A Store is safe for concurrent use.
package artifact
