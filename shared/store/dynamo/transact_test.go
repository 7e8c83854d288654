package dynamo_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// cancels answers a transaction with reasons, in DynamoDB's codes.
func cancels(codes ...string) step {
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = fmt.Sprintf(`{"Code":%q,"Message":"m"}`, c)
		if c == "ConditionalCheckFailed" {
			reasons[i] = fmt.Sprintf(`{"Code":%q,"Item":{"pk":{"S":"p"},"sk":{"S":"old%d"}}}`, c, i)
		}
	}
	return fails(400, "TransactionCanceledException", `,"CancellationReasons":[`, strings.Join(reasons, ","), `]`)
}

func done(_ *wire, rw http.ResponseWriter) {
	_, _ = io.WriteString(rw, `{"ConsumedCapacity":[{"TableName":"t","CapacityUnits":4},{"TableName":"u","CapacityUnits":2}]}`)
}

func TestTransactOutcomes(t *testing.T) {
	const (
		none, cond, conflict = "None", "ConditionalCheckFailed", "TransactionConflict"
		throttled, other     = "ThrottlingError", "ValidationError"
	)
	for name, r := range map[string]struct {
		steps     []step
		kind      store.ErrorKind
		reasons   []store.Reason // of a *store.Cancelled
		ambiguous bool
		requests  int // 0: not counted
	}{
		"success":               {[]step{done}, "", nil, false, 1},
		"condition":             {[]step{cancels(none, cond)}, "", []store.Reason{"", store.ReasonCondition}, false, 1},
		"condition beside more": {[]step{cancels(conflict, cond)}, "", []store.Reason{store.ReasonConflict, store.ReasonCondition}, false, 1},
		"condition and other":   {[]step{cancels(cond, other)}, "", []store.Reason{store.ReasonCondition, store.ReasonOther}, false, 1},
		"condition, throttled":  {[]step{cancels(throttled, cond)}, "", []store.Reason{store.ReasonThrottled, store.ReasonCondition}, false, 1},
		"conflict, then done":   {[]step{cancels(none, conflict), cancels(conflict, none), done}, "", nil, false, 3},
		"throttled, then done":  {[]step{cancels(throttled, none), cancels("ProvisionedThroughputExceeded", none), done}, "", nil, false, 3},
		"conflict, then condition": {[]step{cancels(none, conflict), cancels(cond, none)}, "",
			[]store.Reason{store.ReasonCondition, ""}, false, 2},
		"both, then done":           {[]step{cancels(throttled, conflict), done}, "", nil, false, 2},
		"conflict and other":        {[]step{cancels(conflict, other)}, store.Invalid, nil, false, 1},
		"other":                     {[]step{cancels(none, other)}, store.Invalid, nil, false, 1},
		"item collection":           {[]step{cancels(none, "ItemCollectionSizeLimitExceeded")}, store.Invalid, nil, false, 1},
		"a reason of the future":    {[]step{cancels("Surprise", none)}, store.Invalid, nil, false, 1},
		"no reasons, then done":     {[]step{fails(400, "TransactionCanceledException"), done}, "", nil, false, 2},
		"in progress, then done":    {[]step{fails(500, "InternalServerError"), fails(400, "TransactionInProgressException"), done}, "", nil, false, 3},
		"internal error, then done": {[]step{fails(500, "InternalServerError"), done}, "", nil, false, 2},
		"broken":                    {[]step{breaks}, store.Unavailable, nil, true, 3},
		"broken, then conflicts":    {[]step{breaks, cancels(conflict, none)}, store.Unavailable, nil, true, 0},
		"broken, then other":        {[]step{breaks, cancels(none, other)}, store.Unavailable, nil, true, 2},
		"conflicts for ever":        {[]step{cancels(conflict, none)}, store.Conflict, nil, false, 8},
		"throttled for ever":        {[]step{cancels(none, throttled)}, store.Throttled, nil, false, 8},
		"another's token":           {[]step{fails(400, "IdempotentParameterMismatchException")}, store.Invalid, nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{t: t, date: now, steps: r.steps}
			meta, err := w.start(awscall.NewClock(nil)).Transact(t.Context(), store.Transact{Writes: []store.Write{
				{Put: &store.Put{Item: item("a"), Cond: store.NotThere()}}, {Check: &store.Check{Key: item("b").Key(), Cond: store.There()}},
			}})
			var c *store.Cancelled
			switch {
			case r.reasons != nil:
				if !errors.As(err, &c) || !slices.Equal(c.Reasons, r.reasons) {
					t.Fatalf("got %v, want reasons %v", err, r.reasons)
				}
				for i, reason := range c.Reasons {
					if want := map[bool]string{true: fmt.Sprintf("old%d", i)}[reason == store.ReasonCondition]; c.Old[i].Str(store.AttrSK) != want {
						t.Errorf("old item %d: %v", i, c.Old[i])
					}
				}
			case store.KindOf(err) != r.kind || store.Ambiguous(err) != r.ambiguous || (err == nil) != (r.kind == ""):
				t.Fatalf("got %v, want kind %q, ambiguous %v", err, r.kind, r.ambiguous)
			}
			if err == nil && meta.WriteUnits != 6 {
				t.Errorf("units %v", meta.WriteUnits)
			}
			reqs := w.requests()
			if r.requests > 0 && len(reqs) != r.requests {
				t.Errorf("%d requests, want %d", len(reqs), r.requests)
			}
			for _, q := range reqs {
				if token := q.body["ClientRequestToken"]; token != reqs[0].body["ClientRequestToken"] || token == "" {
					t.Errorf("a repeat under another token: %v", token)
				}
			}
			if strings.Count(fmt.Sprint(reqs[0].body), "ReturnValuesOnConditionCheckFailure:ALL_OLD") != 2 {
				t.Errorf("not every part returns the old item: %v", reqs[0].body)
			}
		})
	}
}

// The token is the caller's, or a fresh one for each transaction.
func TestTransactTokens(t *testing.T) {
	w := &wire{t: t, steps: []step{done}}
	table := w.start(awscall.NewClock(nil))
	for _, token := range []string{"mine", "", ""} {
		if _, err := table.Transact(t.Context(), store.Transact{Token: token, Writes: []store.Write{{Delete: &store.Delete{Key: item("a").Key()}}}}); err != nil {
			t.Fatal(err)
		}
	}
	reqs := w.requests()
	a, b, c := reqs[0].body["ClientRequestToken"], reqs[1].body["ClientRequestToken"], reqs[2].body["ClientRequestToken"]
	if a != "mine" || b == c || len(b.(string)) > 36 {
		t.Errorf("tokens %v, %v, %v", a, b, c)
	}
}
