// Package s3 is the store.Bucket on Amazon S3.
//
// Objects are created only once: every put, and the completion of every
// multipart upload, carries If-None-Match: *. A repeat of a put that had landed
// ends with kind Exists; the caller reads the object and compares digests.
// Bytes are checked against their SHA-256 before they are sent and again by
// the service (per part in a multipart upload, which has no digest of the
// whole).
//
// Puts carry the time of their validation in the signature (package awscall).
// S3 refuses a signature older than 15 minutes; the bucket's policy makes that
// 5 by denying a larger s3:signatureAge.
package s3
