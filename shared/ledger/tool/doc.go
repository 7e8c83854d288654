// Package tool lets a business tool written in Go commit its effect and the
// evidence of it in one DynamoDB transaction of its own: whoever finds the
// evidence knows that the effect happened, and the other way round.
//
//	target, err := ledger.TargetOf(event.Callback)
//	items, err := tool.FencedTransactItems(ctx, tool.Effect{Table: table, Target: target, Fence: event.Fence, At: time.Now(), Result: result})
//	_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(items, mine...)})
//
// A transaction that is cancelled for one of these items (they come first, in
// order) did nothing, and must not be tried without them: somebody recorded an
// outcome, recovery closed the slot, or another owner has taken over. Only
// `on_uncertain: close` promises that nothing runs outside such a transaction.
//
// It is the one package of the ledger that knows the AWS SDK.
package tool
