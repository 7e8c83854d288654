package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
)

// EnsureTables makes the main table with its indexes, stream and TTL, and the
// key table, where they are not there, and waits until both can be used. For
// local engines and tests: in a deployment the stack makes them. Repeating it,
// also after a crash in the middle, is harmless.
func EnsureTables(ctx context.Context, client *dynamodb.Client, main, keys string) error {
	in := tableInput(main)
	in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	kinds := map[string]types.ScalarAttributeType{}
	for _, index := range store.Indexes {
		kinds[index.PK] = types.ScalarAttributeTypeS
		kinds[index.SK] = types.ScalarAttributeTypeS
		if index.NumberSK {
			kinds[index.SK] = types.ScalarAttributeTypeN
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keySchema(index.PK, index.SK),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		})
	}
	for name, kind := range kinds {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind})
	}
	for _, table := range []*dynamodb.CreateTableInput{in, tableInput(keys)} {
		if err := ensureTable(ctx, client, table); err != nil {
			return fmt.Errorf("table %s: %w", *table.TableName, err)
		}
	}
	if err := ensureTTL(ctx, client, main); err != nil {
		return fmt.Errorf("table %s: TTL: %w", main, err)
	}
	return nil
}

func tableInput(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		KeySchema: keySchema(store.AttrPK, store.AttrSK),
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(store.AttrPK), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(store.AttrSK), AttributeType: types.ScalarAttributeTypeS},
		},
	}
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}

func ensureTable(ctx context.Context, client *dynamodb.Client, in *dynamodb.CreateTableInput) error {
	var there *types.ResourceInUseException
	if _, err := client.CreateTable(ctx, in); err != nil && !errors.As(err, &there) {
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, 2*time.Second
	})
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute)
}

func ensureTTL(ctx context.Context, client *dynamodb.Client, table string) error {
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return err
	}
	if d := out.TimeToLiveDescription; d != nil &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(store.AttrTTL), Enabled: aws.Bool(true)},
	})
	return err
}
