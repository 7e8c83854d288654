package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamo "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store/dynamo"
	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/wiring"
)

// What is held, and how often it is measured.
const (
	rounds       = 400
	maxApply     = 1.2                    // apply on a warm handle : raw conditional put
	maxWork      = 150 * time.Microsecond // own work of a 1 KB patch on a 10 KB state
	maxWorkBytes = 200 << 10
)

func asked(t testing.TB) {
	t.Helper()
	if os.Getenv("CAIRN_BENCH") == "" {
		t.Skip("times are measured by make bench only")
	}
}

// prose is text that compresses about as an agent's does.
func prose(n int) string {
	words := strings.Fields("the customer asked whether the reservation can be moved to another day because the flight was cancelled and the agent looked up the fare rules refund policy booking reference payment method")
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s %d ", words[(i*7+i/3)%len(words)], i*i%997)
	}
	return b.String()[:n]
}

// world is an execution of 10 KB on services over some stores.
type world struct {
	s       *wiring.Services
	tenant  execution.TenantID
	version int64
}

func open(t testing.TB, o wiring.Outside, tenant string) *world {
	t.Helper()
	start := time.Now()
	o.Now, o.Rand, o.Elapsed = time.Now, rand.Reader, func() time.Duration { return time.Since(start) }
	w := &world{s: wiring.New(o), tenant: execution.TenantID(tenant)}
	r := &api.CreateRequest{Execution: "e", Workflow: "bench", State: jsonx.MustParse(`{"messages":[],"constant":` + jsonx.Quote(prose(10<<10)) + `}`)}
	r.Tenant, r.RequestID = w.tenant, "create"
	api.Identify(r)
	out, err := w.s.Checkpoint.Create(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.version = out.Version
	return w
}

// request is a step that appends 1 KB.
func (w *world) request(n int) *api.ApplyRequest {
	text := fmt.Sprintf("%d %s", n, prose(1<<10))
	r := &api.ApplyRequest{Changes: api.Changes{Execution: "e", ExpectedVersion: w.version, Patch: jsonx.MustParse(`[{"op":"add","path":"/messages/-","value":` + jsonx.Quote(text) + `}]`)}}
	r.Tenant, r.RequestID = w.tenant, fmt.Sprintf("r%d", n)
	api.Identify(r)
	return r
}

func (w *world) apply(t testing.TB, r *api.ApplyRequest) {
	t.Helper()
	out, err := w.s.Checkpoint.Apply(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.version = out.Version
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// TestApplyRatio holds a warm apply against a raw conditional PutItem of the very
// same item through the same SDK client, in turns.
func TestApplyRatio(t *testing.T) {
	asked(t)
	e := enginetest.Open(t)
	tenant := enginetest.Tenant(t)
	w := open(t, wiring.Outside{Main: e.Main, Keys: e.Keys, Bucket: e.Bucket, KMS: e.KMS, DataKey: e.Config.DataKey}, tenant)
	raw := dynamo.NewClient(e.AWS)
	var ours, theirs []time.Duration
	for n := range rounds {
		r := w.request(n)
		begin := time.Now()
		w.apply(t, r)
		ours = append(ours, time.Since(begin))

		in := &awsdynamo.PutItemInput{TableName: &e.Config.Table, ConditionExpression: aws.String("attribute_not_exists(pk)"), Item: newest(t, raw, e.Config.Table, w),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		in.Item["pk"] = &types.AttributeValueMemberS{Value: tenant + "#f"} // as long a key as the execution's
		begin = time.Now()
		var repeated *types.ConditionalCheckFailedException // the SDK's own repeat of a put that had landed
		if _, err := raw.PutItem(context.Background(), in); err != nil && !errors.As(err, &repeated) {
			t.Fatal(err)
		}
		theirs = append(theirs, time.Since(begin))
	}
	a, b := median(ours), median(theirs)
	ratio := float64(a) / float64(b)
	fmt.Printf("apply, warm: %v; raw conditional put of the same item: %v; ratio %.2f (at most %.1f)\n", a, b, ratio, maxApply)
	if ratio > maxApply {
		t.Errorf("ratio %.2f, want at most %.1f", ratio, maxApply)
	}
}

// newest is the item of the newest entry as the SDK has it.
func newest(t testing.TB, raw *awsdynamo.Client, table string, w *world) map[string]types.AttributeValue {
	t.Helper()
	out, err := raw.GetItem(context.Background(), &awsdynamo.GetItemInput{TableName: &table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: string(w.tenant) + "#e"}, "sk": &types.AttributeValueMemberS{Value: fmt.Sprintf("j#%020d", w.version)}}})
	if err != nil || out.Item == nil {
		t.Fatalf("newest entry: %v", err)
	}
	return out.Item
}
