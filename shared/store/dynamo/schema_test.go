package dynamo_test

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/dynamo"
	"github.com/cairnstate/cairn/shared/store/enginetest"
)

// Two that make the tables at once, and one that comes later, all end with the
// same tables.
func TestEnsureTables(t *testing.T) {
	e := enginetest.Open(t)
	client := dynamo.NewClient(e.AWS)
	main, keys := "ensured-main", "ensured-keys"
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := dynamo.EnsureTables(t.Context(), client, main, keys); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := dynamo.EnsureTables(t.Context(), client, main, keys); err != nil {
		t.Fatal(err)
	}
	d, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &main})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Table.GlobalSecondaryIndexes) != len(store.Indexes) || d.Table.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages {
		t.Errorf("%d indexes, stream %v", len(d.Table.GlobalSecondaryIndexes), d.Table.StreamSpecification)
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &main})
	if err != nil {
		t.Fatal(err)
	}
	if got := ttl.TimeToLiveDescription; got.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(got.AttributeName) != store.AttrTTL {
		t.Errorf("TTL %v of %v", got.TimeToLiveStatus, aws.ToString(got.AttributeName))
	}
	for _, name := range []string{main, keys} {
		if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	}
}
