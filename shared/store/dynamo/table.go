package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// maxRounds bounds how often a write is repeated that was refused only because
// other writers were at work; with the backoff that is about four seconds.
const maxRounds = 8

// Table is one DynamoDB table. Make it with New; safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	name   string
	clock  *awscall.Clock
	token  func() string
}

var _ store.Table = (*Table)(nil)

// New is the table with that name. client comes from NewClient; clock is shared
// by the stores of a process. token makes client tokens for transactions that
// come without one; nil: random ones.
func New(client *dynamodb.Client, name string, clock *awscall.Clock, token func() string) *Table {
	if token == nil {
		token = randomToken
	}
	return &Table{client: client, name: name, clock: clock, token: token}
}

func keyText(k store.Key) string { return k.PK + "/" + k.SK }

// Put is in the port. Lost: nothing there, the caller reads back or puts again.
// Landed but the answer was lost: the SDK's or the caller's repeat fails its
// "must not exist" with Old = this item.
func (t *Table) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	key := in.Item.Key()
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "put", Key: keyText(key), Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return store.Meta{}, err
	}
	if in.Item.Size() > store.MaxItemBytes {
		return store.Meta{}, call.Refuse(store.TooLarge, "ItemSize")
	}
	var e expression
	cond, err := e.cond(in.Cond)
	item, itemErr := toItem(in.Item)
	if err != nil || itemErr != nil {
		return store.Meta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &dynamodb.PutItemInput{
		TableName: &t.name, Item: item,
		ConditionExpression: cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var out *dynamodb.PutItemOutput
	err = t.repeat(ctx, call, func(ctx context.Context) (err error) {
		out, err = t.client.PutItem(ctx, req)
		return err
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return meta, failed(call, key, err)
	}
	meta.WriteUnits = units(out.ConsumedCapacity)
	return meta, nil
}

// Update is in the port. A repeat of an update that landed finds its own
// result: the condition fails with Old = what it wrote. The SDK does not
// repeat an attempt of unknown outcome when the update adds to a number.
func (t *Table) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "update", Key: keyText(in.Key), Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return nil, store.Meta{}, err
	}
	var e expression
	cond, err := e.cond(in.Cond)
	update, updateErr := e.actions(in.Actions)
	if err != nil || updateErr != nil {
		return nil, store.Meta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: toKey(in.Key),
		UpdateExpression: update, ConditionExpression: cond,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var opts []func(*dynamodb.Options)
	if adds(in.Actions) {
		opts = append(opts, func(o *dynamodb.Options) { o.Retryer = awscall.OnceIfUnknown(o.Retryer) })
	}
	var out *dynamodb.UpdateItemOutput
	err = t.repeat(ctx, call, func(ctx context.Context) (err error) {
		out, err = t.client.UpdateItem(ctx, req, opts...)
		return err
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		err = failed(call, in.Key, err)
		if store.KindOf(err) == store.Invalid && t.tooLarge(ctx, in) {
			err = call.Refuse(store.TooLarge, "ItemSize")
		}
		return nil, meta, err
	}
	meta.WriteUnits = units(out.ConsumedCapacity)
	item, err := fromItem(out.Attributes)
	if err != nil {
		return nil, meta, call.Refuse(store.Invalid, "AttributeKind")
	}
	return item, meta, nil
}

// tooLarge finds out whether an update was refused because the item would
// outgrow its limit: the service's code for that is the one for every bad
// request, and the text is not for reading.
func (t *Table) tooLarge(ctx context.Context, in store.Update) bool {
	item, _, err := t.Get(ctx, store.Get{Key: in.Key, Consistent: true})
	if err != nil || item == nil {
		item = store.Item{store.AttrPK: store.S(in.Key.PK), store.AttrSK: store.S(in.Key.SK)}
	}
	for _, a := range in.Actions {
		switch a := a.(type) {
		case store.Set:
			item[a.Attr] = a.Value
		case store.AddToSet:
			item[a.Attr] = store.SS(append(slices.Clone(item[a.Attr].SS), a.Values...)...)
		case store.Remove:
			delete(item, a.Attr)
		}
	}
	return item.Size() > store.MaxItemBytes
}

func adds(actions []store.Action) bool {
	for _, a := range actions {
		if _, ok := a.(store.Add); ok {
			return true
		}
	}
	return false
}

// Delete is in the port. A repeat of a delete that landed finds no item: no
// error without a condition, Old = nil with one.
func (t *Table) Delete(ctx context.Context, in store.Delete) (store.Item, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "delete", Key: keyText(in.Key), Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return nil, store.Meta{}, err
	}
	var e expression
	cond, err := e.cond(in.Cond)
	if err != nil {
		return nil, store.Meta{}, call.Refuse(store.Invalid, "Form")
	}
	req := &dynamodb.DeleteItemInput{
		TableName: &t.name, Key: toKey(in.Key),
		ConditionExpression: cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var out *dynamodb.DeleteItemOutput
	err = t.repeat(ctx, call, func(ctx context.Context) (err error) {
		out, err = t.client.DeleteItem(ctx, req)
		return err
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return nil, meta, failed(call, in.Key, err)
	}
	meta.WriteUnits = units(out.ConsumedCapacity)
	item, err := fromItem(out.Attributes)
	if err != nil {
		return nil, meta, call.Refuse(store.Invalid, "AttributeKind")
	}
	return item, meta, nil
}

// repeat makes a write until it is not refused merely because a transaction is
// at work on the item.
func (t *Table) repeat(ctx context.Context, call *awscall.Call, do func(context.Context) error) error {
	for round := 1; ; round++ {
		err := do(ctx)
		if err == nil || awscall.Classify(err).Kind != store.Conflict || round == maxRounds || !awscall.Sleep(ctx, awscall.Backoff(round)) {
			return err
		}
		if late := call.CheckWindow(); late != nil {
			return late
		}
	}
}

// failed is what a conditional write ended with.
func failed(call *awscall.Call, key store.Key, err error) error {
	var own *store.Error
	if errors.As(err, &own) {
		return own
	}
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return call.Fail(err)
	}
	old, err := fromItem(refused.Item)
	if err != nil {
		return call.Refuse(store.Invalid, "AttributeKind")
	}
	return &store.ConditionFailed{Key: key, Old: old}
}

func units(c *types.ConsumedCapacity) float64 {
	if c == nil || c.CapacityUnits == nil {
		return 0
	}
	return *c.CapacityUnits
}
