package main

import (
	"context"
	"errors"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/examples/stepfunctions"
)

// letter is what is to be sent.
type letter struct {
	To    string `json:"to"`
	Kind  string `json:"kind"`
	About string `json:"about"`
}

// outbox is the bank's letter service: a table of what was sent, by case and
// provider key. A key that is there was sent and is not sent again.
type outbox struct {
	db    *dynamodb.Client
	table string
	fused bool
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// send sends a letter unless its key is known. An error: nobody knows.
func (o *outbox) send(ctx context.Context, d *order, key string, l letter) error {
	item := map[string]types.AttributeValue{"pk": text(stepfunctions.LettersOf(d.Tenant, d.Execution)), "sk": text(key), "to": text(l.To), "kind": text(l.Kind), "about": text(l.About)}
	_, err := o.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &o.table, Item: item, ConditionExpression: aws.String("attribute_not_exists(sk)")})
	var known *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &known) {
		return err
	}
	if o.fused {
		return o.burn(ctx, d)
	}
	return nil
}

// burn is for demonstrations: where somebody laid a fuse for the case it kills
// this process, once, right after a letter went out and before anything says so.
func (o *outbox) burn(ctx context.Context, d *order) error {
	_, err := o.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &o.table, ConditionExpression: aws.String("attribute_exists(sk)"),
		Key: map[string]types.AttributeValue{"pk": text(stepfunctions.LettersOf(d.Tenant, d.Execution)), "sk": text(stepfunctions.Fuse)}})
	var none *types.ConditionalCheckFailedException
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}
