// Package storetest is the conformance suite of the store port: whatever
// implements store.Table or store.Bucket must pass it.
//
//	func TestTable(t *testing.T) {
//		storetest.Table(t, func(t *testing.T) storetest.TableHarness { ... })
//	}
//
// The suite opens the engine once, runs its tests in parallel and keeps them
// apart by partitions (Table) or key prefixes (Bucket) that the harness makes,
// so it can run against an engine that other tests use at the same time.
//
// An engine that cannot do something says so in Lacks (with the reason) or by
// leaving a hook nil. Each test left out for that is a printed SKIP, and the
// suite ends with their number: nothing is left out silently.
//
// Beside the suite stand BeforeTransact and BeforeUpdate, for tests of what comes
// between a read and a write.
//
// One rule differs from what DynamoDB does by itself: in DynamoDB `a <> :v`
// holds when a is absent or of another type. In the port no comparison with an
// absent attribute or one of another kind holds, so an adapter has to write
// `attribute_type(a, :t) AND a <> :v`; likewise Contains is about string sets
// only, while DynamoDB's contains() also finds substrings and list elements.
package storetest
