package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
)

// TransactWrite gives one part of a transaction in the SDK's form, for callers
// who make the transaction themselves. An error means that w is not exactly one
// part or has a value that DynamoDB does not take.
func TransactWrite(table string, w store.Write) (types.TransactWriteItem, error) {
	return (&Table{name: table}).transactItem(w)
}
