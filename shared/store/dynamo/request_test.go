package dynamo_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/dynamo"
)

// empty is an answer that every call can read.
func empty(_ *wire, rw http.ResponseWriter) {
	_, _ = rw.Write([]byte(`{"Items":[],"Count":0}`))
}

// sentBy is the body of the one request that a call sends, placeholders filled in.
func sentBy(t *testing.T, call func(tab *dynamo.Table) error) map[string]any {
	t.Helper()
	w := &wire{t: t, date: now, steps: []step{empty}}
	if err := call(w.start(awscall.NewClock(nil))); err != nil {
		t.Fatal(err)
	}
	if len(w.requests()) != 1 {
		t.Fatalf("%d requests", len(w.requests()))
	}
	return filled(w.requests()[0].body).(map[string]any)
}

func filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		var pairs []string
		for _, of := range []string{"ExpressionAttributeNames", "ExpressionAttributeValues"} {
			m, _ := v[of].(map[string]any)
			for p, x := range m {
				text, _ := json.Marshal(x)
				pairs = append(pairs, p, strings.Trim(string(text), `"`))
			}
		}
		out := map[string]any{}
		for k, x := range v {
			if s, ok := x.(string); ok && strings.HasSuffix(k, "Expression") {
				x = strings.NewReplacer(pairs...).Replace(s)
			}
			out[k] = filled(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(v[i])
		}
		return out
	}
	return v
}

// What each call of the port is on the wire: consistency, conditions, order,
// pages.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	key := store.Key{PK: "p", SK: "s"}
	cond := store.Cond(store.Eq("f", store.N(7)))
	const mustHold = `{"N":"7"}`
	set := []store.Action{store.Set{Attr: "a", Value: store.S("x")}}
	query := func(in store.Query) func(tab *dynamo.Table) error {
		return func(tab *dynamo.Table) error { _, _, err := tab.Query(t.Context(), in); return err }
	}
	for name, tt := range map[string]struct {
		call func(tab *dynamo.Table) error
		want map[string]string // "-": not there
	}{
		"get": {func(tab *dynamo.Table) error {
			_, _, err := tab.Get(t.Context(), store.Get{Key: key, Consistent: true})
			return err
		},
			map[string]string{"TableName": "t", "ConsistentRead": "true"}},
		"get, eventually": {func(tab *dynamo.Table) error { _, _, err := tab.Get(t.Context(), store.Get{Key: key}); return err }, map[string]string{"ConsistentRead": "false"}},
		"put": {func(tab *dynamo.Table) error {
			_, err := tab.Put(t.Context(), store.Put{Item: item("s"), Cond: store.NotThere()})
			return err
		},
			map[string]string{"ConditionExpression": "attribute_not_exists", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		"put, whatever is there": {func(tab *dynamo.Table) error { _, err := tab.Put(t.Context(), store.Put{Item: item("s")}); return err }, map[string]string{"ConditionExpression": "-"}},
		"update": {func(tab *dynamo.Table) error {
			_, _, err := tab.Update(t.Context(), store.Update{Key: key, Cond: cond, Actions: set})
			return err
		},
			map[string]string{"ConditionExpression": mustHold, "UpdateExpression": "SET", "ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		"delete": {func(tab *dynamo.Table) error {
			_, _, err := tab.Delete(t.Context(), store.Delete{Key: key, Cond: cond})
			return err
		},
			map[string]string{"ConditionExpression": mustHold, "ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		"batch": {func(tab *dynamo.Table) error {
			_, _, _, err := tab.BatchGet(t.Context(), []store.Key{key}, true)
			return err
		}, map[string]string{"RequestItems": "ConsistentRead:true"}},
		"query":        {query(store.Query{PK: "p", Consistent: true}), map[string]string{"KeyConditionExpression": `pk = {"S":"p"}`, "ConsistentRead": "true", "ScanIndexForward": "true", "Limit": "-", "IndexName": "-", "ExclusiveStartKey": "-"}},
		"query, down":  {query(store.Query{PK: "p", Descending: true, Limit: 3}), map[string]string{"ConsistentRead": "false", "ScanIndexForward": "false", "Limit": "3"}},
		"query, huge":  {query(store.Query{PK: "p", Limit: 1 << 40}), map[string]string{"Limit": fmt.Sprint(float64(1 << 30))}},
		"query, next":  {query(store.Query{PK: "p", Start: store.Item{"pk": store.S("p"), "sk": store.S("q")}}), map[string]string{"ExclusiveStartKey": "q"}},
		"prefix":       {query(store.Query{PK: "p", Prefix: "j#"}), map[string]string{"KeyConditionExpression": `AND begins_with(sk, {"S":"j#"})`}},
		"from":         {query(store.Query{PK: "p", From: "a"}), map[string]string{"KeyConditionExpression": `AND sk >= {"S":"a"}`}},
		"to":           {query(store.Query{PK: "p", To: "b"}), map[string]string{"KeyConditionExpression": `AND sk <= {"S":"b"}`}},
		"from to":      {query(store.Query{PK: "p", From: "a", To: "b"}), map[string]string{"KeyConditionExpression": `AND sk BETWEEN {"S":"a"} AND {"S":"b"}`}},
		"index":        {query(store.Query{PK: "p", Index: "due", FromN: n(1), ToN: n(9)}), map[string]string{"IndexName": "due", "KeyConditionExpression": `BETWEEN {"N":"1"} AND {"N":"9"}`}},
		"index, from":  {query(store.Query{PK: "p", Index: "due", FromN: n(1)}), map[string]string{"KeyConditionExpression": `>= {"N":"1"}`}},
		"index, until": {query(store.Query{PK: "p", Index: "due", ToN: n(9)}), map[string]string{"KeyConditionExpression": `<= {"N":"9"}`}},
		"transaction": {func(tab *dynamo.Table) error {
			_, err := tab.Transact(t.Context(), store.Transact{Token: "tok", Writes: []store.Write{{Put: &store.Put{Item: item("s"), Cond: cond}}, {Update: &store.Update{Key: key, Cond: cond, Actions: set}},
				{Delete: &store.Delete{Key: key, Cond: cond}}, {Check: &store.Check{Key: key, Cond: cond}}}})
			return err
		}, map[string]string{"ClientRequestToken": "tok", "TransactItems": "4 conditions"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sentBy(t, tt.call)
			for field, want := range tt.want {
				v, there := got[field]
				text := fmt.Sprint(v)
				switch {
				case want == "-" && there:
					t.Errorf("%s: %v", field, v)
				case want == "-":
				case want == "4 conditions":
					if n := strings.Count(text, mustHold); n != 4 || strings.Count(text, "ALL_OLD") != 4 {
						t.Errorf("%d conditions: %s", n, text)
					}
				case !strings.Contains(text, want):
					t.Errorf("%s: %s, want %s", field, text, want)
				}
			}
		})
	}
}

// What is refused before anything is sent.
func TestRefusedUnsent(t *testing.T) {
	t.Parallel()
	n := int64(1)
	key, bad := store.Key{PK: "p", SK: "s"}, store.Item{store.AttrPK: store.S("p"), store.AttrSK: store.S("s"), "x": store.S("\xff")}
	large := item("s")
	large["x"] = store.B(make([]byte, store.MaxItemBytes))
	half := item("s")
	half["x"] = store.B(make([]byte, store.MaxItemBytes-1000))
	keys := func(n int) []store.Key { return make([]store.Key, n) }
	query := func(in store.Query) func(tab *dynamo.Table) error {
		return func(tab *dynamo.Table) error { _, _, err := tab.Query(t.Context(), in); return err }
	}
	transact := func(token string, writes ...store.Write) func(tab *dynamo.Table) error {
		return func(tab *dynamo.Table) error {
			_, err := tab.Transact(t.Context(), store.Transact{Token: token, Writes: writes})
			return err
		}
	}
	check := store.Write{Check: &store.Check{Key: key, Cond: store.There()}}
	many := func(n int, w store.Write) []store.Write {
		out := make([]store.Write, n)
		for i := range out {
			out[i] = w
		}
		return out
	}
	odd := store.Cond(store.Compare{Attr: "a", Op: store.LT, Value: store.Bool(true)})
	for name, tt := range map[string]struct {
		call func(tab *dynamo.Table) error
		kind store.ErrorKind
	}{
		"put, too large": {func(tab *dynamo.Table) error { _, err := tab.Put(t.Context(), store.Put{Item: large}); return err }, store.TooLarge},
		"put, no text":   {func(tab *dynamo.Table) error { _, err := tab.Put(t.Context(), store.Put{Item: bad}); return err }, store.Invalid},
		"put, odd condition": {func(tab *dynamo.Table) error {
			_, err := tab.Put(t.Context(), store.Put{Item: item("s"), Cond: odd})
			return err
		}, store.Invalid},
		"update, no text": {func(tab *dynamo.Table) error {
			_, _, err := tab.Update(t.Context(), store.Update{Key: key, Actions: []store.Action{store.Set{Attr: "a", Value: store.S("\xff")}}})
			return err
		}, store.Invalid},
		"update, odd": {func(tab *dynamo.Table) error {
			_, _, err := tab.Update(t.Context(), store.Update{Key: key, Cond: odd, Actions: []store.Action{store.Remove{Attr: "a"}}})
			return err
		}, store.Invalid},
		"delete, odd": {func(tab *dynamo.Table) error {
			_, _, err := tab.Delete(t.Context(), store.Delete{Key: key, Cond: odd})
			return err
		}, store.Invalid},
		"batch of none": {func(tab *dynamo.Table) error { _, _, _, err := tab.BatchGet(t.Context(), nil, true); return err }, store.Invalid},
		"batch of 101": {func(tab *dynamo.Table) error {
			_, _, _, err := tab.BatchGet(t.Context(), keys(store.MaxBatchGet+1), true)
			return err
		}, store.Invalid},
		"no deletes": {func(tab *dynamo.Table) error { _, _, err := tab.BatchDelete(t.Context(), nil); return err }, store.Invalid},
		"26 deletes": {func(tab *dynamo.Table) error {
			_, _, err := tab.BatchDelete(t.Context(), keys(store.MaxBatchWrite+1))
			return err
		}, store.Invalid},
		"no such index":        {query(store.Query{PK: "p", Index: "none"}), store.Invalid},
		"limit below 0":        {query(store.Query{PK: "p", Limit: -1}), store.Invalid},
		"start is no text":     {query(store.Query{PK: "p", Start: bad}), store.Invalid},
		"number for text":      {query(store.Query{PK: "p", FromN: &n}), store.Invalid},
		"text for number":      {query(store.Query{PK: "p", Index: "due", To: "a"}), store.Invalid},
		"prefix for number":    {query(store.Query{PK: "p", Index: "due", Prefix: "a"}), store.Invalid},
		"prefix and range":     {query(store.Query{PK: "p", Prefix: "a", From: "b"}), store.Invalid},
		"empty transaction":    {transact("tok"), store.Invalid},
		"101 parts":            {transact("tok", many(store.MaxTransactItems+1, check)...), store.Invalid},
		"a token of 37":        {transact(strings.Repeat("t", 37), check), store.Invalid},
		"a part of nothing":    {transact("tok", store.Write{}), store.Invalid},
		"a part of two":        {transact("tok", store.Write{Check: check.Check, Put: &store.Put{Item: item("s")}}), store.Invalid},
		"an update of nothing": {transact("tok", store.Write{Update: &store.Update{Key: key}}), store.Invalid},
		"a part too large":     {transact("tok", store.Write{Put: &store.Put{Item: large}}), store.TooLarge},
		"too large together":   {transact("tok", many(11, store.Write{Put: &store.Put{Item: half}})...), store.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{t: t, date: now, steps: []step{empty}}
			err := tt.call(w.start(awscall.NewClock(nil)))
			if store.KindOf(err) != tt.kind || store.Ambiguous(err) || len(w.requests()) != 0 {
				t.Errorf("%v after %d requests, want %s", err, len(w.requests()), tt.kind)
			}
		})
	}
}

// The limits themselves are sent.
func TestLimitsAreSent(t *testing.T) {
	t.Parallel()
	var keys []store.Key
	var writes []store.Write
	for i := range store.MaxBatchGet {
		keys = append(keys, store.Key{PK: "p", SK: fmt.Sprint(i)})
		writes = append(writes, store.Write{Check: &store.Check{Key: keys[i], Cond: store.There()}})
	}
	sentBy(t, func(tab *dynamo.Table) error { _, _, _, err := tab.BatchGet(t.Context(), keys, true); return err })
	sentBy(t, func(tab *dynamo.Table) error {
		_, _, err := tab.BatchDelete(t.Context(), keys[:store.MaxBatchWrite])
		return err
	})
	sentBy(t, func(tab *dynamo.Table) error {
		_, err := tab.Transact(t.Context(), store.Transact{Token: strings.Repeat("t", 36), Writes: writes[:store.MaxTransactItems]})
		return err
	})
	// Bytes that are there, but none, and an attribute that is not.
	it := item("s")
	it["b"], it["none"] = store.B(nil), store.Value{}
	got := sentBy(t, func(tab *dynamo.Table) error { _, err := tab.Put(t.Context(), store.Put{Item: it}); return err })["Item"].(map[string]any)
	if _, there := got["none"]; there || fmt.Sprint(got["b"]) != "map[B:]" {
		t.Errorf("%v", got)
	}
}
