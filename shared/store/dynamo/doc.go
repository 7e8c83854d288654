// Package dynamo is the store.Table on Amazon DynamoDB.
//
// One method of the port is one request (Transact repeats a transaction that
// was refused only for conflicts or load, with the same client token). Every
// write asks for the old item when its condition fails, so that a repeat of a
// write that had landed (by the SDK or by the caller) shows the caller its own
// item. How failures are read, and how writes are kept from landing late, is
// in package awscall.
//
// An item or request that DynamoDB would refuse with an error that only its
// text explains (too large, too many parts, an empty set) is refused here with
// a definite kind, before anything is sent.
package dynamo
