// Package aws is recovery's doors to AWS: Lambda functions as resolvers and
// migrations, and Step Functions state machines, Lambda functions and EventBridge
// buses as resume targets.
//
// A start is named by its hand-over. A state machine takes a name once, so a
// repeat starts nothing; Lambda and EventBridge may deliver any number of times,
// and the claim decides. No error text holds input, answer or task token.
package aws
