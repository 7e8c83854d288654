package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/ledger/tool"
	"github.com/cairnstate/cairn/shared/seal"
)

// The tools, as the model calls them.
const (
	checkAccount  = "check_account"
	creditAccount = "credit_account"
	sendNote      = "send_note"
)

// bank is the business system: a table of its own, with an item for each
// account, booking and note.
type bank struct {
	db    *dynamodb.Client
	table string
	// cairn is Cairn's main table, in which the transaction leaves the evidence,
	// and sealer seals it.
	cairn  string
	sealer *seal.Sealer
	// dieAt kills this process at a moment, for demonstrations; "": never.
	dieAt string
}

// The moments at which a process can be made to die.
const (
	beforeCredit = "before credit" // the operation is declared, nothing happened
	afterCredit  = "after credit"  // the money is booked, the agent does not know
	afterNote    = "after note"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func key(account, what string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(account), "sk": text(what)}
}

type accountArgs struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// check reads an account's balance.
func (b *bank) check(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a accountArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	out, err := b.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &b.table, Key: key(a.Account, "account"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	cents := "0"
	if n, ok := out.Item["cents"].(*types.AttributeValueMemberN); ok {
		cents = n.Value
	}
	return json.RawMessage(`{"cents":` + cents + `}`), nil
}

// credit books money and leaves the evidence in one transaction.
//
// Lost: neither is there; recovery closes the empty slot and the operation goes
// again as the next attempt. Landed, reply lost, or a crash right after: both are
// there, and the next owner finds the outcome in the ledger. An owner that was
// fenced out meanwhile books nothing.
func (b *bank) credit(ctx context.Context, e client.Effect) (client.Outcome, error) {
	var a accountArgs
	if err := json.Unmarshal(e.Args.Bytes(), &a); err != nil {
		return client.Outcome{}, err
	}
	b.die(beforeCredit)
	target, err := ledger.TargetOf(e.Callback)
	if err != nil {
		return client.Outcome{}, err
	}
	result := client.JSON(map[string]string{"booking": e.ProviderKey})
	items, err := tool.FencedTransactItems(ctx, tool.Effect{Table: b.cairn, Target: target, Fence: e.Fence, At: time.Now(), Sealer: b.sealer, ProviderRef: e.ProviderKey, Result: result})
	if err != nil {
		return client.Outcome{}, err
	}
	items = append(items,
		types.TransactWriteItem{Update: &types.Update{TableName: &b.table, Key: key(a.Account, "account"), UpdateExpression: aws.String("ADD cents :c"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":c": number(a.Cents)}}},
		types.TransactWriteItem{Put: &types.Put{TableName: &b.table, Item: map[string]types.AttributeValue{
			"pk": text(a.Account), "sk": text(fmt.Sprintf("booking#%s#%d", e.ProviderKey, e.Attempt)), "cents": number(a.Cents)}}})
	if _, err := b.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		return client.Outcome{}, err // not known here: the ledger says it
	}
	b.die(afterCredit)
	return client.Success(result, e.ProviderKey), nil
}

// note writes to the customer. The system knows the key: again is not twice.
func (b *bank) note(ctx context.Context, e client.Effect) (client.Outcome, error) {
	var n struct {
		To   string `json:"to"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(e.Args.Bytes(), &n); err != nil {
		return client.Outcome{}, err
	}
	_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.table, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		Item: map[string]types.AttributeValue{"pk": text(n.To), "sk": text("note#" + e.ProviderKey), "text": text(n.Text)}})
	var known *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &known) {
		return client.Outcome{}, err
	}
	b.die(afterNote)
	return client.Success(nil, e.ProviderKey), nil
}

// die never returns at the chosen moment.
func (b *bank) die(moment string) {
	if b.dieAt != moment {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // a process that cannot be killed hangs until its time is over
	}
	select {}
}
