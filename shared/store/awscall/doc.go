// Package awscall is what the adapters for DynamoDB, S3 and KMS share: it
// follows one call over all of its attempts, pins the time that its writes are
// signed with, and turns the SDK's errors into *store.Error, by type and code,
// never by text.
//
// An adapter begins every call with Begin, passes the context it got to the
// SDK, and ends with Call.Fail when the SDK returned an error:
//
//	ctx, call, err := awscall.Begin(ctx, clock, awscall.Call{Name: "put", Key: key, Write: true, ValidatedAt: at})
//	if err != nil { return err }              // too late: nothing was sent
//	out, err := client.PutItem(ctx, in)
//	if err != nil { return call.Fail(err) }
//
// The client must have been made with Middleware among its APIOptions, with
// Signer around its SigV4 signer (a per-call signer is silently ignored by the
// SDK) and with NewRetryer.
//
// Guarantees: a write of which any attempt may have reached the service and
// got no definite refusal is Ambiguous, whatever the last attempt said; an
// attempt that never got a connection is not; a write with ValidatedAt is
// signed with that time in every attempt, so the service itself refuses it
// once it is older than store.Window.
package awscall
