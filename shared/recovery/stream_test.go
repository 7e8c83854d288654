package recovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/store/memory"
)

// stream hands records to the function and gives the failures.
func (k *kit) stream(t *testing.T, records ...string) string {
	t.Helper()
	out, err := k.handlers["recover"](context.Background(), []byte(`{"Records":[`+strings.Join(records, ",")+`]}`))
	if err != nil {
		t.Fatalf("%v", err)
	}
	var reply struct {
		Failures *[]struct {
			Item string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(out, &reply) != nil || reply.Failures == nil {
		t.Fatalf("%s", out)
	}
	var items []string
	for _, f := range *reply.Failures {
		if f.Item == "" { // Lambda takes it for the whole batch
			t.Errorf("a failure without a name: %s", out)
		}
		items = append(items, f.Item)
	}
	return strings.Join(items, " ")
}

func timer(seq, e, kind string) string {
	return fmt.Sprintf(`{"eventID":"x","eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"SequenceNumber":%q,"Keys":{"pk":{"S":"bank#%s"},"sk":{"S":"timer#%s"}}}}`, seq, e, kind)
}

func TestStreamShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, record string
		failed       bool
		rings        bool
	}{
		{"a timer that ran out", timer("101", "e1", "lease"), false, true},
		{"a wake timer", timer("101", "e1", "wake"), false, true},
		{"a reconcile timer", timer("101", "e1", "reconcile"), false, true},
		{"a timer removed by hand", strings.Replace(timer("101", "e1", "lease"), `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`, "", 1), false, true},
		{"an odd identity", strings.Replace(timer("101", "e1", "lease"), `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, `7`, 1), false, true},
		{"a timer that was written", strings.Replace(timer("101", "e1", "lease"), "REMOVE", "INSERT", 1), false, false},
		{"retention's timer", timer("101", "e1", "retention"), false, false},
		{"an entry", strings.Replace(timer("101", "e1", "lease"), "timer#lease", "j#00000000000000000001", 1), false, false},
		{"a head that is due", `{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"101","ApproximateCreationDateTime":1767225631,"Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"head"}},"NewImage":{"due":{"N":"1767225630000"}}}}`, false, true},
		{"a head without its image", `{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"head"}}}}`, false, true},
		{"a head that is due later", `{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"101","ApproximateCreationDateTime":1767225631.25,"Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"head"}},"NewImage":{"due":{"N":"1767225700000"}}}}`, false, false},
		{"a head with nothing due", `{"eventName":"INSERT","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"head"}},"NewImage":{"status":{"S":"created"}}}}`, false, false},
		{"a head that went", `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"head"}}}}`, false, false},
		{"an unknown execution", timer("101", "none", "lease"), false, false},
		{"a key without separator", `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"nothing"},"sk":{"S":"timer#lease"}}}}`, false, false},
		{"the registry", `{"eventName":"INSERT","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"bank#~3"},"sk":{"S":"head"}}}}`, false, false},
		{"no keys", `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101"}}`, true, false},
		{"keys of another type", `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"N":"7"},"sk":{"S":"timer#lease"}}}}`, true, false},
		{"keys that are a list", `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101","Keys":[]}}`, true, false},
		{"no name", `{"dynamodb":{"SequenceNumber":"101","Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"timer#lease"}}}}`, true, false},
		{"no sequence number", `{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"timer#lease"}}}}`, false, false},
		{"a number for a record", `7`, false, false},
		{"null", `null`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.workflow(nil)
			k.owned("e1")
			k.owned("e2")
			k.advance(31)
			for range 3 { // any number of times
				if failed := k.stream(t, timer("100", "e2", "lease"), c.record); (failed == "101") != c.failed || failed != "" && !c.failed {
					t.Errorf("failed: %q", failed)
				}
			}
			started := map[any]int{}
			for _, in := range k.target.inputs() {
				started[in["execution"]]++
			}
			if started["e2"] != 1 || (started["e1"] == 1) != c.rings || started["e1"] > 1 {
				t.Errorf("started %v", started)
			}
		})
	}
}

// The lowest failed record is named; nothing after it is done before its turn.
func TestStreamPartialFailure(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	for _, e := range []string{"e1", "e2", "e3"} {
		k.owned(e)
	}
	if failed := k.stream(t); failed != "" {
		t.Errorf("an empty batch: %q", failed)
	}
	k.advance(31)
	poison := `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"101"}}`
	batch := []string{timer("100", "e1", "lease"), poison, timer("102", "e1", "lease"), timer("103", "e2", "lease")}
	if failed := k.stream(t, batch...); failed != "101" || len(k.target.started) != 1 {
		t.Errorf("failed %q, started %d", failed, len(k.target.started))
	}
	for range 5 {
		if failed := k.stream(t, batch[1:]...); failed != "101" || len(k.target.started) != 1 {
			t.Errorf("failed %q, started %d", failed, len(k.target.started))
		}
	}
	if failed := k.stream(t, batch[2:]...); failed != "" || len(k.target.started) != 2 {
		t.Errorf("failed %q, started %d", failed, len(k.target.started))
	}
	// A store that does not answer fails the record, and the repeat does it.
	k.faults(memory.Fault{On: "get", Match: "bank#e3", Count: 100, Effect: "unavailable"})
	if failed := k.stream(t, timer("104", "e3", "lease"), timer("105", "e2", "lease")); failed != "104" {
		t.Errorf("failed %q", failed)
	}
	k.faults()
	if failed := k.stream(t, timer("104", "e3", "lease"), timer("105", "e2", "lease")); failed != "" || len(k.target.started) != 3 {
		t.Errorf("failed %q, started %d", failed, len(k.target.started))
	}
}

// The store's own records, of a whole life, in any order and number: the same end.
func TestStreamOfALife(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(nil)
	v, f := k.owned("e1")
	k.do("suspend", m{"execution": "e1", "expected_version": v, "fence": f, "wait": m{"signals": []string{"s"}}})
	k.do("signal", m{"execution": "e1", "name": "s", "key": "1"})
	var all []string
	take := func() {
		for _, r := range k.engine.TakeRecords(0) {
			all = append(all, string(r.Event()))
		}
	}
	for take(); len(k.engine.TakeRecords(0)) > 0; take() {
	}
	if failed := k.stream(t, all...); failed != "" || k.target.causes() != "signal" {
		t.Errorf("%q, %q", failed, k.target.causes())
	}
	for range 3 {
		for i := range all {
			if failed := k.stream(t, all[len(all)-1-i]); failed != "" {
				t.Errorf("%q", failed)
			}
		}
	}
	if k.target.causes() != "signal" {
		t.Errorf("%q", k.target.causes())
	}
	// The schedule's event in both of its forms.
	k.owned("e2")
	k.advance(31)
	for _, event := range []string{`{"action":"sweep","limit":1000}`, `{"source":"cairn.schedule"}`, `{"source":"aws.events","detail-type":"Scheduled Event"}`} {
		if out, err := k.handlers["recover"](context.Background(), []byte(event)); err != nil || !strings.Contains(string(out), "handed_over") {
			t.Errorf("%s: %s, %v", event, out, err)
		}
	}
	if k.target.causes() != "signal lease" {
		t.Errorf("%q", k.target.causes())
	}
}
