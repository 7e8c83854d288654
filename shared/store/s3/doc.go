// Package s3 is the store.Bucket on Amazon S3.
//
// Objects are created only once: every put, and the completion of every
// multipart upload, carries If-None-Match: *. A repeat of a put that had landed
// ends with kind Exists; the caller reads the object and compares digests.
// Bodies stream: up to store.MultipartAbove in one put whose signature holds
// the SHA-256 and which the service checks, above it in parts with a digest
// each, and none that the service knows of the whole; that one is checked here
// before the upload is completed. Reads are not checked here: the reader knows
// the digest.
//
// Puts carry the time of their validation in the signature (package awscall).
// S3 refuses a signature older than 15 minutes; the bucket's policy makes that
// 5 by denying a larger s3:signatureAge.
package s3
