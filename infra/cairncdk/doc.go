// Package cairncdk deploys Cairn: a construct for any CDK app in Go.
//
//	cairn := cairncdk.NewCairn(stack, "Cairn", &cairncdk.Props{})
//	cairn.AllowTrusted(workerRole)            // may speak for every tenant
//	cairn.AllowTenant(otherRole, "acme")      // may speak for one
//
// It makes two tables, a bucket, three keys, the functions checkpoint, recover
// and retention with a role each, the stream mappings and schedules that ring
// their alarms, a dead-letter queue, CloudWatch alarms and a dashboard. What the
// template holds is said in words in docs/STACK.md.
//
// # Guarantees
//
//   - Data outlives the stack: tables, bucket and keys are retained on deletion
//     and replacement unless RemovalPolicy says otherwise.
//   - Every permission is written out here as a statement (policies.go, tenant.go);
//     no grant method of the CDK is used, because several of them grant more than
//     they say. No role may scan a table or manage a key.
//   - The key that wraps the tenants' data keys refuses every cryptographic
//     action that names no tenant, whoever asks.
//   - Names, keys and filters that the code depends on come from the code
//     (packages store and telemetry of the root module), never from a copy.
//
// Functions of this package call into jsii: they are not safe for concurrent
// use, and a wrong use of the CDK panics there. Wrong Props do not panic: they
// become error annotations, with which the CDK refuses to deploy.
package cairncdk
