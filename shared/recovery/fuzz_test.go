package recovery

import (
	"encoding/json"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

// Whatever a resolver says, the answer is a known finding, never a verdict, never
// an absence that was not proved.
func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{`{"finding":"found"}`, `{"finding":"not_found","fenced":true}`, `{"finding":"decided","outcome":"succeeded"}`, `{"finding":"found","outcome":"abandoned"}`,
		`[]`, `null`, `{"finding":1}`, `<html>`, `{"finding":"found","count":-1}`, `{"finding":"found","result":{"a":[1e999]}}`, "\xff", ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ev, why := parseAnswer(b, Question{Operation: "op", Attempt: 3})
		if ev.Operation != "op" || ev.Attempt != 3 || ev.Source != execution.FromResolver {
			t.Fatalf("%+v", ev)
		}
		if why != "" && (ev.Finding != execution.QueryFailed || ev.Outcome != "" || ev.Fenced || ev.Result != nil) {
			t.Fatalf("%q: %+v", why, ev)
		}
		switch ev.Finding {
		case execution.Found:
			if ev.Outcome != execution.OutcomeSucceeded && ev.Outcome != execution.OutcomeFailed && ev.Outcome != execution.OutcomeRejected {
				t.Fatalf("%+v", ev)
			}
		case execution.NotFoundFinding, execution.InProgress, execution.Several, execution.QueryFailed, execution.RejectedDuplicate:
			if ev.Outcome != "" {
				t.Fatalf("%+v", ev)
			}
		default:
			t.Fatalf("%+v", ev)
		}
	})
}

// Whatever a stream record is, it is read or it is malformed, and only an
// execution of ours can ring.
func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{`{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"1","Keys":{"pk":{"S":"t#e"},"sk":{"S":"timer#lease"}}}}`, `7`, `null`, `{"dynamodb":[]}`,
		`{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"1","ApproximateCreationDateTime":1e300,"Keys":{"pk":{"S":"t#e"},"sk":{"S":"head"}},"NewImage":{"due":{"N":"x"}}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseRecord(json.RawMessage(b))
		if tenant, e, rings := r.rings(); rings && (!ok && r.key.SK == "" || !execution.ValidIdentifier(string(tenant), execution.MaxTenant) || !execution.ValidIdentifier(string(e), execution.MaxIdentifier)) {
			t.Fatalf("%+v", r)
		}
	})
}
