package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// maxTransactBytes is DynamoDB's limit on all items of a transaction together.
const maxTransactBytes = 4 << 20

// randomToken makes a client token of 26 characters.
func randomToken() string { return rand.Text() }

// Transact is in the port. All rounds and the SDK's retries carry one client
// token, so a transaction that landed and whose answer was lost is answered as
// done when it is repeated. Landed, and no repeat answered either: Ambiguous;
// the caller reads an item that only this transaction writes.
func (t *Table) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	key := ""
	if len(in.Writes) > 0 {
		key = keyText(in.Writes[0].Key())
	}
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "transact", Key: key, Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return store.Meta{}, err
	}
	req, refused := t.transactInput(call, in)
	if refused != nil {
		return store.Meta{}, refused
	}
	for round := 1; ; round++ {
		out, err := t.client.TransactWriteItems(ctx, req)
		meta := store.Meta{Date: call.Date()}
		if err == nil {
			for i := range out.ConsumedCapacity {
				meta.WriteUnits += units(&out.ConsumedCapacity[i])
			}
			return meta, nil
		}
		failure, again := cancelled(call, len(in.Writes), err)
		if !again || round == maxRounds || !awscall.Sleep(ctx, awscall.Backoff(round)) {
			return meta, failure
		}
		if late := call.CheckWindow(); late != nil {
			return meta, late
		}
	}
}

// cancelled reads the outcome of a refused transaction; again: nothing but
// other writers or load stood against it.
func cancelled(call *awscall.Call, parts int, err error) (failure error, again bool) {
	var inProgress *types.TransactionInProgressException
	if errors.As(err, &inProgress) { // an attempt of ours is still at work: ask again
		return call.Fail(err), true
	}
	var tx *types.TransactionCanceledException
	if !errors.As(err, &tx) {
		f := call.Fail(err)
		return f, awscall.Classify(err).Kind == store.Conflict
	}
	out := &store.Cancelled{Reasons: make([]store.Reason, parts), Old: make([]store.Item, parts)}
	for i, r := range tx.CancellationReasons {
		if i == parts {
			break
		}
		out.Reasons[i] = reason(r)
		old, err := fromItem(r.Item)
		if err != nil {
			return call.Refuse(store.Invalid, "AttributeKind"), false
		}
		out.Old[i] = old
	}
	switch {
	case slices.Contains(out.Reasons, store.ReasonCondition):
		return out, false
	case slices.Contains(out.Reasons, store.ReasonOther):
		return call.Refuse(store.Invalid, otherCode(tx)), false
	case slices.Contains(out.Reasons, store.ReasonConflict):
		return call.Refuse(store.Conflict, "TransactionConflict"), true
	case slices.Contains(out.Reasons, store.ReasonThrottled):
		return call.Refuse(store.Throttled, "ThrottlingError"), true
	}
	// Cancelled without a reason that could be read: nothing was written.
	return call.Refuse(store.Conflict, tx.ErrorCode()), true
}

func reason(r types.CancellationReason) store.Reason {
	if r.Code == nil {
		return store.ReasonNone
	}
	switch *r.Code {
	case "", "None":
		return store.ReasonNone
	case "ConditionalCheckFailed":
		return store.ReasonCondition
	case "TransactionConflict":
		return store.ReasonConflict
	case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
		return store.ReasonThrottled
	}
	return store.ReasonOther
}

// otherCode is the first code that made a reason "other", for logs.
func otherCode(tx *types.TransactionCanceledException) string {
	for _, r := range tx.CancellationReasons {
		if reason(r) == store.ReasonOther {
			return *r.Code
		}
	}
	return ""
}

func (t *Table) transactInput(call *awscall.Call, in store.Transact) (*dynamodb.TransactWriteItemsInput, *store.Error) {
	if n := len(in.Writes); n == 0 || n > store.MaxTransactItems || len(in.Token) > 36 {
		return nil, call.Refuse(store.Invalid, "Form")
	}
	if in.Token == "" {
		in.Token = t.token()
	}
	req := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &in.Token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems:          make([]types.TransactWriteItem, len(in.Writes)),
	}
	total := 0
	for i, w := range in.Writes {
		if w.Put != nil {
			n := w.Put.Item.Size()
			total += n
			if n > store.MaxItemBytes || total > maxTransactBytes {
				return nil, call.Refuse(store.TooLarge, "ItemSize")
			}
		}
		part, err := t.transactItem(w)
		if err != nil {
			return nil, call.Refuse(store.Invalid, "Form")
		}
		req.TransactItems[i] = part
	}
	return req, nil
}

func (t *Table) transactItem(w store.Write) (types.TransactWriteItem, error) {
	if parts(w) != 1 {
		return types.TransactWriteItem{}, errForm
	}
	const allOld = types.ReturnValuesOnConditionCheckFailureAllOld
	var out types.TransactWriteItem
	var e expression
	switch {
	case w.Put != nil:
		cond, err := e.cond(w.Put.Cond)
		if err != nil {
			return out, err
		}
		item, err := toItem(w.Put.Item)
		out.Put = &types.Put{
			TableName: &t.name, Item: item, ConditionExpression: cond,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}
		return out, err
	case w.Update != nil:
		cond, err := e.cond(w.Update.Cond)
		if err != nil {
			return out, err
		}
		update, err := e.actions(w.Update.Actions)
		if err == nil && update == nil {
			err = errForm
		}
		out.Update = &types.Update{
			TableName: &t.name, Key: toKey(w.Update.Key), UpdateExpression: update, ConditionExpression: cond,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}
		return out, err
	case w.Delete != nil:
		cond, err := e.cond(w.Delete.Cond)
		out.Delete = &types.Delete{
			TableName: &t.name, Key: toKey(w.Delete.Key), ConditionExpression: cond,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}
		return out, err
	case w.Check != nil:
		cond, err := e.term(w.Check.Cond) // a check without a condition is not to be had: write one that holds
		out.ConditionCheck = &types.ConditionCheck{
			TableName: &t.name, Key: toKey(w.Check.Key), ConditionExpression: &cond,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: allOld,
		}
		return out, err
	}
	return out, errForm
}

func parts(w store.Write) int {
	n := 0
	for _, set := range []bool{w.Put != nil, w.Update != nil, w.Delete != nil, w.Check != nil} {
		if set {
			n++
		}
	}
	return n
}
