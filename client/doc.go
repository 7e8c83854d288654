// Package client is the typed Go client of Cairn: every verb as a method, a
// lease keeper, and Drive, which does the steps of an agent's run in the right
// order.
//
// # Doors
//
// A Door carries one request to one function. HTTP speaks Lambda's Invoke over
// plain HTTP (the sandbox), package awslambda speaks it through the AWS SDK, and
// Functions calls handlers in this process. All three answer alike.
//
// # Repeats
//
// A logical call is encoded once, with a request_id or nonce made in this
// process's memory, and repeated as the very same bytes: only after a transport
// failure or a code that is retryable as it stands, and never for LeaseHeld,
// which is no failure but another worker at work. So a request that landed
// although its answer was lost is recognised, never done twice. A step that
// shows a fence carries no request_id: only the owner can write it, and its
// content at its expected version is its identity.
//
// # Errors
//
// Every error of a call is an *execution.Error: errors.Is(err,
// execution.LeaseLost) matches its code, errors.Is(err, context.Canceled) its
// cause. Unavailable means that the outcome is unknown.
//
// # Ownership
//
// A Keeper renews a lease and ends the work's context the moment ownership is
// lost, or can no longer be proved because nobody confirmed it in time. It
// counts the lease from the moment at which the confirming request was sent,
// less a second, on whichever clock ran further: a machine that was frozen does
// not believe that no time has passed.
//
// # Concurrency
//
// A Client is safe for concurrent use. A Run belongs to the body that got it;
// its methods may be called from several goroutines and take turns.
package client
