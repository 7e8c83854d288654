package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/shared/store"
)

func main() {
	once := flag.Bool("once", false, "one round instead of one every --every")
	every := flag.Duration("every", 2*time.Second, "time between rounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *once, *every); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, once bool, every time.Duration) error {
	ok, err := deployed.Load()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not set: make local-deploy", deployed.VarFile)
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	r := &reaper{dynamodb.NewFromConfig(cfg), os.Getenv("CAIRN_TABLE")}
	for {
		n, err := r.reap(ctx, time.Now())
		if err != nil {
			return err
		}
		if n > 0 || once {
			fmt.Printf("%d items were due\n", n)
		}
		if once {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

type reaper struct {
	db    *dynamodb.Client
	table string
}

// reap removes what is due, as it was read: an item that was written again
// meanwhile stays.
func (r *reaper) reap(ctx context.Context, now time.Time) (removed int, err error) {
	pages := dynamodb.NewScanPaginator(r.db, &dynamodb.ScanInput{TableName: &r.table, FilterExpression: aws.String("#t <= :now"),
		ExpressionAttributeNames:  map[string]string{"#t": store.AttrTTL},
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix(), 10)}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return removed, err
		}
		for _, it := range page.Items {
			_, err := r.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &r.table, Key: map[string]types.AttributeValue{store.AttrPK: it[store.AttrPK], store.AttrSK: it[store.AttrSK]},
				ConditionExpression: aws.String("#t = :t"), ExpressionAttributeNames: map[string]string{"#t": store.AttrTTL},
				ExpressionAttributeValues: map[string]types.AttributeValue{":t": it[store.AttrTTL]}})
			var changed *types.ConditionalCheckFailedException
			if err != nil && !errors.As(err, &changed) {
				return removed, err
			}
			if err == nil {
				removed++
			}
		}
	}
	return removed, nil
}
