// Command agentlambda is an agent as one Lambda function: a loop of model calls
// and tools on client.Drive, taken over by the next invocation when it dies.
//
// It settles a complaint: it looks the customer's account up, then credits a
// refund and writes to the customer, the tools of a turn in parallel. The model
// is a script here, so that the example needs nobody's key; its answers are kept
// in the state before anything is done about them, as a real one's must be, for
// a model asked twice may answer differently.
//
// Three kinds of tools:
//   - check_account reads; it is no operation and is simply done again.
//   - send_note goes to a system that knows idempotency keys (same_key).
//   - credit_account moves money in a DynamoDB table of its own, and commits the
//     effect and the evidence of it in one transaction (close, package
//     shared/ledger/tool): whoever resumes knows exactly whether it happened.
//
// agent.go is what an agent's author writes.
package main
