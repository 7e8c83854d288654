// Package store is the port between Cairn's protocols and the places that keep
// its bytes: a Table (DynamoDB) and a Bucket (S3), in types of our own.
//
// What every implementation guarantees (storetest holds it to that):
//
//   - a condition and its write are one atomic step on one item; a transaction
//     is all or nothing over at most 100 items, each key at most once;
//   - a consistent read sees every write that was acknowledged before it began;
//   - a failed condition returns the item that was there (ALL_OLD);
//   - an error says whether the write may have happened (Error.Ambiguous): an
//     unknown outcome is never reported as success or failure;
//   - a write whose ValidatedAt lies more than Window in the past is not made,
//     neither now nor by a retry that wakes up later (architecture, "Validation
//     window");
//   - Meta.Date is the store's own clock at the answer, never the caller's.
//
// Nothing here knows what an entry or an execution is.
package store
