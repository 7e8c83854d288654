// Command reaper does on the local engine what DynamoDB's time to live does on
// AWS and the engine does not: what is due is removed so that the stream tells.
// (The engine's own removals leave no stream record.) The records lack the
// service's identity, as replicated removals do on AWS.
//
//	CAIRN_STACK=.local/stack.env go run ./localstack/reaper           until it is stopped
//	CAIRN_STACK=.local/stack.env go run ./localstack/reaper --once    one round
package main
