package dynamo

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// Get is in the port.
func (t *Table) Get(ctx context.Context, in store.Get) (store.Item, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "get", Key: keyText(in.Key)})
	if err != nil {
		return nil, store.Meta{}, err
	}
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, Key: toKey(in.Key), ConsistentRead: &in.Consistent,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return nil, meta, call.Fail(err)
	}
	meta.ReadUnits = units(out.ConsumedCapacity)
	item, err := fromItem(out.Item)
	if err != nil {
		return nil, meta, call.Refuse(store.Invalid, "AttributeKind")
	}
	return item, meta, nil
}

// Query is in the port.
func (t *Table) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "query", Key: in.PK + "/" + in.Prefix + in.From})
	if err != nil {
		return store.Page{}, store.Meta{}, err
	}
	req, err := t.queryInput(in)
	if err != nil {
		return store.Page{}, store.Meta{}, call.Refuse(store.Invalid, "Form")
	}
	out, err := t.client.Query(ctx, req)
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return store.Page{}, meta, call.Fail(err)
	}
	meta.ReadUnits = units(out.ConsumedCapacity)
	page := store.Page{Items: make([]store.Item, 0, len(out.Items))}
	for _, m := range out.Items {
		item, err := fromItem(m)
		if err != nil {
			return store.Page{}, meta, call.Refuse(store.Invalid, "AttributeKind")
		}
		page.Items = append(page.Items, item)
	}
	if page.Next, err = fromItem(out.LastEvaluatedKey); err != nil {
		return store.Page{}, meta, call.Refuse(store.Invalid, "AttributeKind")
	}
	return page, meta, nil
}

func (t *Table) queryInput(in store.Query) (*dynamodb.QueryInput, error) {
	index := store.Index{PK: store.AttrPK, SK: store.AttrSK}
	req := &dynamodb.QueryInput{
		TableName: &t.name, ConsistentRead: &in.Consistent, ScanIndexForward: aws.Bool(!in.Descending),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if in.Index != "" {
		var ok bool
		if index, ok = indexNamed(in.Index); !ok {
			return nil, errForm
		}
		req.IndexName = &in.Index
	}
	if in.Limit < 0 {
		return nil, errForm
	}
	if in.Limit > 0 {
		req.Limit = aws.Int32(int32(min(in.Limit, 1<<30)))
	}
	if in.Start != nil {
		start, err := toItem(in.Start)
		if err != nil {
			return nil, err
		}
		req.ExclusiveStartKey = start
	}
	var e expression
	cond := e.name(index.PK) + " = " + e.text(in.PK)
	bound, err := e.bound(index, in)
	if err != nil {
		return nil, err
	}
	if bound != "" {
		cond += " AND " + bound
	}
	req.KeyConditionExpression = &cond
	req.ExpressionAttributeNames, req.ExpressionAttributeValues = e.names, e.values
	return req, nil
}

func indexNamed(name string) (store.Index, bool) {
	for _, i := range store.Indexes {
		if i.Name == name {
			return i, true
		}
	}
	return store.Index{}, false
}

// bound writes the condition on the sort key; "" for none.
func (e *expression) bound(index store.Index, in store.Query) (string, error) {
	text, number := in.From != "" || in.To != "", in.FromN != nil || in.ToN != nil
	if number != (number && index.NumberSK) || (index.NumberSK && (text || in.Prefix != "")) || (text && in.Prefix != "") {
		return "", errForm
	}
	if in.Prefix != "" {
		return "begins_with(" + e.name(index.SK) + ", " + e.text(in.Prefix) + ")", nil
	}
	var from, to types.AttributeValue
	if in.From != "" {
		from = &types.AttributeValueMemberS{Value: in.From}
	}
	if in.To != "" {
		to = &types.AttributeValueMemberS{Value: in.To}
	}
	if in.FromN != nil {
		from = &types.AttributeValueMemberN{Value: strconv.FormatInt(*in.FromN, 10)}
	}
	if in.ToN != nil {
		to = &types.AttributeValueMemberN{Value: strconv.FormatInt(*in.ToN, 10)}
	}
	switch {
	case from != nil && to != nil:
		return e.name(index.SK) + " BETWEEN " + e.value(from) + " AND " + e.value(to), nil
	case from != nil:
		return e.name(index.SK) + " >= " + e.value(from), nil
	case to != nil:
		return e.name(index.SK) + " <= " + e.value(to), nil
	}
	return "", nil
}

func firstKey(keys []store.Key) string {
	if len(keys) == 0 {
		return ""
	}
	return keyText(keys[0])
}

// BatchGet is in the port.
func (t *Table) BatchGet(ctx context.Context, keys []store.Key, consistent bool) ([]store.Item, []store.Key, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "batch", Key: firstKey(keys)})
	if err != nil {
		return nil, keys, store.Meta{}, err
	}
	if len(keys) == 0 || len(keys) > store.MaxBatchGet {
		return nil, keys, store.Meta{}, call.Refuse(store.Invalid, "KeyCount")
	}
	want := make([]attributes, len(keys))
	for i, k := range keys {
		want[i] = toKey(k)
	}
	out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{t.name: {Keys: want, ConsistentRead: &consistent}},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return nil, keys, meta, call.Fail(err)
	}
	for i := range out.ConsumedCapacity {
		meta.ReadUnits += units(&out.ConsumedCapacity[i])
	}
	var items []store.Item
	for _, found := range out.Responses { // one table was asked; its name may come back as an ARN
		for _, m := range found {
			item, err := fromItem(m)
			if err != nil {
				return nil, keys, meta, call.Refuse(store.Invalid, "AttributeKind")
			}
			items = append(items, item)
		}
	}
	var left []store.Key
	for _, rest := range out.UnprocessedKeys {
		for _, m := range rest.Keys {
			item, err := fromItem(m)
			if err != nil {
				return nil, keys, meta, call.Refuse(store.Invalid, "AttributeKind")
			}
			left = append(left, item.Key())
		}
	}
	return items, left, meta, nil
}

// BatchDelete is in the port. Repeating it is harmless, whatever landed.
func (t *Table) BatchDelete(ctx context.Context, keys []store.Key) ([]store.Key, store.Meta, error) {
	ctx, call, err := awscall.Begin(ctx, t.clock, awscall.Call{Name: "batch", Key: firstKey(keys), Write: true})
	if err != nil {
		return keys, store.Meta{}, err
	}
	if len(keys) == 0 || len(keys) > store.MaxBatchWrite {
		return keys, store.Meta{}, call.Refuse(store.Invalid, "KeyCount")
	}
	writes := make([]types.WriteRequest, len(keys))
	for i, k := range keys {
		writes[i].DeleteRequest = &types.DeleteRequest{Key: toKey(k)}
	}
	out, err := t.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
		RequestItems:           map[string][]types.WriteRequest{t.name: writes},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	meta := store.Meta{Date: call.Date()}
	if err != nil {
		return keys, meta, call.Fail(err)
	}
	for i := range out.ConsumedCapacity {
		meta.WriteUnits += units(&out.ConsumedCapacity[i])
	}
	var left []store.Key
	for _, rest := range out.UnprocessedItems {
		for _, w := range rest {
			if w.DeleteRequest == nil {
				continue
			}
			item, err := fromItem(w.DeleteRequest.Key)
			if err != nil {
				return keys, meta, call.Refuse(store.Invalid, "AttributeKind")
			}
			left = append(left, item.Key())
		}
	}
	return left, meta, nil
}
