package retention_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func (w *world) setPolicy(f fields) {
	w.t.Helper()
	w.ok("retention", "set_policy", fields{"policy": with(fields{"name": "p"}, f)})
}

func TestExpiryBySweepAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 2, "receipt_days": 7})
	for i := range 5 {
		w.rich(fmt.Sprintf("e%d", i), fields{"policy": "p"})
		w.complete(fmt.Sprintf("e%d", i))
	}
	w.rich("running", fields{"policy": "p"})
	w.advance(47 * time.Hour)
	w.settle()
	if c := w.getCode("e0"); c != "" {
		t.Fatalf("an hour before its time: %q", c)
	}
	w.advance(time.Hour)
	if c := w.getCode("e0"); c != execution.Deleted {
		t.Errorf("its time is over, nothing has run: %q", c)
	}
	w.settle()
	for i := range 5 {
		if got := of(w.objects(), fmt.Sprintf("bank/e/e%d/", i)); len(got) > 0 {
			t.Errorf("objects left: %v", got)
		}
	}
	if rec := w.ok("retention", "get_receipt", fields{"execution": "e0"})["receipt"].(map[string]any); rec["rule"] != "policy p: completed_days = 2" || rec["reason"] != "expired" {
		t.Errorf("receipt %v", rec)
	}
	if c := w.getCode("running"); c != "" {
		t.Errorf("a running execution: %q", c)
	}
}

// TestSweepCostsWhatIsDue counts the calls of a sweep beside many executions of
// which none is due.
func TestSweepCostsWhatIsDue(t *testing.T) {
	t.Parallel()
	cost := func(n int) int {
		w := newWorld(t)
		w.setPolicy(fields{"completed_days": 2})
		for i := range n {
			e := fmt.Sprintf("e%d", i)
			w.create(e, fields{"policy": "p"})
			w.complete(e)
		}
		w.settle()
		w.advance(20 * time.Minute)
		w.settle()
		w.engine.Mark()
		w.sweep()
		return len(w.engine.Log())
	}
	few, many := cost(3), cost(120)
	if few != many {
		t.Errorf("a sweep with nothing due makes %d calls beside 3 executions and %d beside 120", few, many)
	}
}

// TestTheBucketIsListedHourly: the scheduled sweep, which comes every few minutes,
// begins a round over all objects once an hour.
func TestTheBucketIsListedHourly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rich("e", nil)
	rounds := 0
	for range 36 {
		w.engine.Mark()
		if _, err := w.Retention.Sweep(t.Context(), &api.SweepRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range w.engine.Log() {
			if c.Call == "list_objects" {
				rounds++
				break
			}
		}
		w.advance(5 * time.Minute)
	}
	if rounds != 3 {
		t.Errorf("%d rounds in three hours", rounds)
	}
}

// TestOrphansGoTenantByTenant: no call that removes objects is about two tenants.
func TestOrphansGoTenantByTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tenant := range []execution.TenantID{"bank", "shop"} {
		w.tenant = tenant
		w.create("e", fields{"claim": fields{"owner": "w", "lease_seconds": 900}})
		for i := range 3 {
			w.ok("checkpoint", "put_artifact", fields{"execution": "e", "fence": 1, "name": fmt.Sprint(i), "media_type": "text/plain", "body": []byte(fmt.Sprint(tenant, i))})
		}
	}
	w.advance(26 * time.Hour)
	w.engine.Mark()
	r, err := w.Retention.Sweep(t.Context(), &api.SweepRequest{})
	if err != nil || r.Removed != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, c := range w.engine.Log() {
		if c.Call == "delete_objects" && strings.Contains(c.Key, "bank/") == strings.Contains(c.Key, "shop/") {
			t.Errorf("one call for %s", c.Key)
		}
	}
}

// TestMovedGoesAfterItsForks: what moved to a fork is kept as long as evidence may
// reach the fork through it, and goes by its policy when nothing of that is left.
func TestMovedGoesAfterItsForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 2, "failed_days": 10})
	w.advance(2 * time.Hour)
	w.settle() // the policy's own look at everything is over
	w.rich("a", fields{"policy": "p"})
	w.ok("checkpoint", "fork", fields{"execution": "a", "at_version": 1, "new_execution": "b", "operations": "carry"})
	w.ok("checkpoint", "fork", fields{"execution": "b", "at_version": 1, "new_execution": "c", "operations": "carry"})
	there := func(at string, want ...string) {
		t.Helper()
		w.settle()
		var got []string
		for _, e := range []string{"a", "b", "c"} {
			if w.getCode(e) == "" {
				got = append(got, e)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are there, want %v", at, got, want)
		}
	}
	days := func(n int) {
		for range n {
			w.advance(24 * time.Hour)
			w.settle()
		}
	}
	days(40)
	there("while the fork waits", "a", "b", "c")
	w.ok("recover", "claim", fields{"execution": "c", "owner": "w", "lease_seconds": 60})
	w.complete("c")
	days(1)
	there("a day after the end", "a", "b", "c")
	w.ok("retention", "hold", fields{"execution": "b", "hold": "h", "reason": "legal"})
	days(2)
	there("b is held", "a", "b")
	w.ok("retention", "release_hold", fields{"execution": "b", "hold": "h", "reason": "over"})
	days(2)
	there("three days after the fork")
	if rec := w.ok("retention", "get_receipt", fields{"execution": "a"})["receipt"].(map[string]any); rec["rule"] != "policy p: 10 days after it moved, and nothing descends from it" {
		t.Errorf("receipt %v", rec)
	}
}

// TestChildThatMovedIsDeleted: a deletion of a child that moved says nothing about
// it, that of its fork what became of both.
func TestChildThatMovedIsDeleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		complete bool
		order    []string // what is deleted
		outcome  any
	}{
		{"the moved one", false, []string{"child"}, nil},
		{"the fork", false, []string{"fork"}, "failed"},
		{"a fork that carries nothing on", false, []string{"aside"}, nil},
		{"the fork after its end", true, []string{"fork", "child"}, "succeeded"},
	} {
		w := newWorld(t)
		w.create("root", fields{"claim": fields{"owner": "w", "lease_seconds": 900}})
		child := w.begets("root")
		w.ok("checkpoint", "fork", fields{"execution": child, "at_version": 1, "new_execution": "fork", "operations": "carry"})
		w.ok("checkpoint", "fork", fields{"execution": "fork", "at_version": 1, "new_execution": "aside", "operations": "refuse"})
		if c.complete {
			w.Checkpoint.ChildEnded = nil // the notice is lost
			w.ok("recover", "claim", fields{"execution": "fork", "owner": "w", "lease_seconds": 900})
			w.complete("fork")
		}
		for _, e := range c.order {
			if e == "child" {
				e = child
			}
			w.ok("retention", "delete", fields{"execution": e, "reason": "asked"})
		}
		op := w.get("root")["operations"].([]any)[0].(map[string]any)["operation"]
		if o := w.ok("checkpoint", "get_operation", fields{"execution": "root", "operation": op}); o["outcome"] != c.outcome || len(o["contradictions"].([]any)) > 0 {
			t.Errorf("%s: the parent's operation is %v", c.name, o)
		}
	}
}

func TestPolicyChangesBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 10})
	w.create("e", fields{"policy": "p"})
	w.complete("e")
	ended := w.engine.Now()
	expires := func() string {
		v, _ := w.get("e")["expires_at"].(string)
		return v
	}
	at := func(days int) string {
		return ended.Add(time.Duration(days) * 24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if got := expires(); got != at(10) {
		t.Fatalf("expires %s, want %s", got, at(10))
	}
	w.setPolicy(fields{"completed_days": 20})
	if got := expires(); got != at(20) {
		t.Errorf("longer: expires %s, want %s", got, at(20))
	}
	w.setPolicy(fields{"completed_days": 5})
	if got := expires(); got != at(5) {
		t.Errorf("shorter: expires %s, want %s", got, at(5))
	}
	w.setPolicy(fields{})
	if got := expires(); got != "" {
		t.Errorf("kept for ever, but expires %s", got)
	}
	w.advance(30 * 24 * time.Hour)
	w.settle()
	if c := w.getCode("e"); c != "" {
		t.Fatalf("kept for ever, but %q", c)
	}
	w.setPolicy(fields{"completed_days": 5})
	w.settle()
	if c := w.getCode("e"); c != execution.Deleted {
		t.Errorf("its time was over long ago: %q", c)
	}
	if got := of(w.items(), "bank/replan#"); len(got) != 1 {
		t.Fatalf("a second look is to come: %v", got)
	}
	w.advance(11 * time.Minute)
	w.settle()
	if got := of(w.items(), "bank/replan#"); len(got) != 0 {
		t.Errorf("the change is done, but %v", got)
	}
	// A policy that comes after the executions that name it.
	w.create("early", fields{"policy": "later"})
	w.complete("early")
	w.ok("retention", "set_policy", fields{"policy": fields{"name": "later", "completed_days": 1}})
	if w.get("early")["expires_at"] == nil {
		t.Error("an execution that named the policy before it was set does not expire")
	}
	// An unknown policy keeps, visibly.
	w.create("odd", fields{"policy": "nobody"})
	w.complete("odd")
	w.advance(400 * 24 * time.Hour)
	w.settle()
	if got := w.get("odd"); got["policy"] != "nobody" || got["expires_at"] != nil {
		t.Errorf("unknown policy: %v", got)
	}
}

func TestPolicyRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, f := range []fields{
		{"policy": fields{"name": "a#b"}},
		{"policy": fields{"name": "p", "completed_days": -1}},
		{"policy": fields{"name": "p", "receipt_days": 6}},
		{"policy": fields{"name": "p", "history": fields{"keep": "versions"}}},
		{"policy": fields{"name": "p", "history": fields{"keep": "some"}}},
		{"policy": fields{"name": "p", "history": fields{"keep": "days"}}},
		{"policy": fields{"name": "p", "history": fields{"keep": "all", "n": 3}}},
		{"policy": fields{"name": "p", "archive": fields{"enabled": true, "storage_class": "CHEAP"}}},
		{"policy": fields{"name": "p", "days": 7}},
	} {
		if c := w.code("retention", "set_policy", f); c != execution.InvalidRequest {
			t.Errorf("%v: %q", f, c)
		}
	}
	if len(of(w.items(), "bank")) > 0 {
		t.Errorf("a refused policy wrote %v", of(w.items(), "bank"))
	}
	if c := w.code("retention", "get_policy", fields{"policy": "p"}); c != execution.NotFound {
		t.Errorf("get_policy: %q", c)
	}
}

// TestUnknownStatusIsLeftAlone: nothing may expire because of a status that this
// version does not know.
func TestUnknownStatusIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, status := range []store.Value{store.S("suspended_v2"), store.S(""), store.N(7), {Kind: store.KindNULL}} {
		w := newWorld(t)
		w.setPolicy(fields{"completed_days": 1})
		w.create("e", fields{"policy": "p"})
		w.complete("e")
		k := journal.HeadKey(ref(w, "e").PK())
		if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: k, Actions: []store.Action{store.Set{Attr: journal.HeadStatus, Value: status}}}); err != nil {
			t.Fatal(err)
		}
		w.advance(400 * 24 * time.Hour)
		w.settle()
		if got := of(w.items(), "bank#e/head"); len(got) != 1 {
			t.Errorf("status %v: the head is gone", status)
		}
	}
}

// remove is a REMOVE record of a retention timer.
func remove(seq, pk string, change func(r fields)) json.RawMessage {
	r := fields{"eventID": seq, "eventName": "REMOVE", "dynamodb": fields{"SequenceNumber": seq, "Keys": fields{"pk": fields{"S": pk}, "sk": fields{"S": "timer#retention"}}}}
	if change != nil {
		change(r)
	}
	b, _ := json.Marshal(r)
	return b
}

func byService(r fields) {
	r["userIdentity"] = fields{"type": "Service", "principalId": "dynamodb.amazonaws.com"}
}

func image(ttl, created int64) func(fields) {
	return func(r fields) {
		d := r["dynamodb"].(fields)
		d["OldImage"] = fields{"ttl": fields{"N": fmt.Sprint(ttl)}}
		d["ApproximateCreationDateTime"] = created
	}
}

func TestStreamRecords(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"completed_days": 1})
	base.rich("done", fields{"policy": "p"})
	base.complete("done")
	base.rich("live", fields{"policy": "p"})
	base.rich("held", fields{"policy": "p"})
	base.complete("held")
	base.ok("retention", "hold", fields{"execution": "held", "hold": "h", "reason": "legal"})
	base.advance(25 * time.Hour)
	now := base.engine.Now().Unix()
	for _, c := range []struct {
		name, pk string
		change   func(fields)
		gone     bool
	}{
		{"by TTL", "bank#done", byService, true},
		{"by TTL, replicated", "bank#done", image(now-60, now), true},
		{"keys only", "bank#done", nil, true},
		{"by hand", "bank#done", image(now+1_000_000, now), true},
		{"by somebody", "bank#done", func(r fields) { r["userIdentity"] = fields{"type": "Someone", "principalId": "x"} }, true},
		{"a change", "bank#done", func(r fields) { r["eventName"] = "MODIFY"; image(now-60, now)(r) }, false},
		{"an insertion", "bank#done", func(r fields) { r["eventName"] = "INSERT" }, false},
		{"another item", "bank#done", func(r fields) {
			byService(r)
			r["dynamodb"].(fields)["Keys"].(fields)["sk"] = fields{"S": "timer#lease"}
		}, false},
		{"of a live one", "bank#live", byService, false},
		{"of a held one", "bank#held", byService, false},
		{"of nobody", "bank#never", byService, false},
		{"of no execution", "nothing", byService, false},
	} {
		w := copyOf(t, base)
		before := w.objects()
		out, err := w.Retention.Stream(t.Context(), []json.RawMessage{remove("7", c.pk, c.change)}), error(nil)
		if err != nil || len(out.Failures) > 0 {
			t.Errorf("%s: %v %v", c.name, out, err)
		}
		left := len(of(w.objects(), "bank/e/"+strings.TrimPrefix(c.pk, "bank#")+"/"))
		if was := len(of(before, "bank/e/"+strings.TrimPrefix(c.pk, "bank#")+"/")); c.gone && left > 0 || !c.gone && left != was {
			t.Errorf("%s: %d of %d objects are left", c.name, left, was)
		}
	}
	// Order and poison.
	w := copyOf(t, base)
	poison := json.RawMessage(`{"eventID":"b","eventName":"REMOVE","dynamodb":{"SequenceNumber":"101"}}`)
	out := w.Retention.Stream(t.Context(), []json.RawMessage{remove("100", "bank#live", byService), poison, remove("102", "bank#live", byService), remove("103", "bank#done", byService)})
	if len(out.Failures) != 1 || out.Failures[0].Item != "101" {
		t.Errorf("poison: %v", out)
	}
	if c := w.getCode("done"); c != execution.Deleted {
		t.Errorf("a good record behind the poison: %q", c)
	}
	for _, odd := range []string{`{"dynamodb":{"SequenceNumber":"9","Keys":{"pk":"text"}}}`, `{"dynamodb":{"SequenceNumber":"9","Keys":{"pk":{"N":"1"},"sk":{"S":"timer#retention"}}}}`} {
		if out := w.Retention.Stream(t.Context(), []json.RawMessage{json.RawMessage(odd)}); len(out.Failures) != 1 || out.Failures[0].Item != "9" {
			t.Errorf("%s: %v", odd, out)
		}
	}
	for _, none := range []string{`{}`, `7`, `{"dynamodb":{"Keys":{}}}`} {
		if out := w.Retention.Stream(t.Context(), []json.RawMessage{json.RawMessage(none)}); len(out.Failures) != 0 {
			t.Errorf("%s: %v", none, out)
		}
	}
	w = copyOf(t, base)
	w.faults(memory.Fault{On: "transact", Effect: "throttle", Count: 1000})
	out = w.Retention.Stream(t.Context(), []json.RawMessage{remove("1", "bank#done", byService), remove("2", "bank#live", byService), remove("3", "bank#done", byService)})
	if len(out.Failures) != 2 || out.Failures[0].Item != "1" || out.Failures[1].Item != "3" {
		t.Errorf("a throttled execution keeps the order of its records: %v", out)
	}
}

// TestLateRecordsOfAnEarlierGeneration: an id that is used again is not touched
// by records, deleters and writers of the old generation.
func TestLateRecordsOfAnEarlierGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 1})
	w.rich("e", fields{"policy": "p"})
	w.complete("e")
	old := ref(w, "e")
	w.advance(25 * time.Hour)
	w.settle()
	if c := w.code("checkpoint", "create", fields{"execution": "e", "workflow": "wf"}); c != execution.Deleted {
		t.Fatalf("create of a deleted id: %q", c)
	}
	w.rich("e", fields{"policy": "p", "reuse": "new_generation"})
	now := ref(w, "e")
	if now.Generation <= old.Generation {
		t.Fatalf("generation %d after %d", now.Generation, old.Generation)
	}
	if v := w.get("e")["version"].(float64); v < 8 {
		t.Errorf("versions start anew at %v", v)
	}
	items, objects := w.items(), w.objects()
	w.Retention.Stream(t.Context(), []json.RawMessage{remove("7", "bank#e", byService), remove("8", "bank#e", nil)})
	w.advance(2 * time.Hour)
	w.settle() // the old generation's final sweep
	for k, v := range items {
		if strings.HasPrefix(k, "bank#e/") && !strings.Contains(k, "receipt#") && !strings.Contains(v, `"k":{"S":"stub"}`) && !strings.Contains(v, `"S":"deleted"`) && w.items()[k] != v && !strings.Contains(k, "timer#") {
			t.Errorf("%s was touched: %.200s, was %.200s", k, w.items()[k], v)
		}
	}
	for k, v := range objects {
		if strings.Contains(k, fmt.Sprintf("/e/%d/", now.Generation)) && w.objects()[k] != v {
			t.Errorf("%s was touched", k)
		}
	}
	if got := w.get("e"); got["state"].(map[string]any)["big"] == nil {
		t.Errorf("generation 2: %v", got)
	}
}

// TestUnknownStatusIsOnlyPutOff: nothing may run, expire or count as finished because of a
// status that this version does not know, also when the policy changes; and the
// version that knows it goes on where this one could not.
func TestUnknownStatusIsOnlyPutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 5, "archive": fields{"enabled": true}, "history": fields{"keep": "versions", "n": 1}})
	w.rich("e", fields{"policy": "p"})
	w.complete("e")
	table := w.engine.Table(memory.Main)
	change := func(status string) (before store.Item) {
		it, _, err := table.Get(t.Context(), store.Get{Key: store.Key{PK: "bank#e", SK: "head"}, Consistent: true})
		if err != nil {
			t.Fatal(err)
		}
		before = it
		it = maps.Clone(it)
		it["status"] = store.S(status)
		if _, err := table.Put(t.Context(), store.Put{Item: it}); err != nil {
			t.Fatal(err)
		}
		return before
	}
	was := change("suspended_v2")
	entries, slots, objects := of(w.items(), "bank#e/j#"), of(w.items(), "bank#e/op#"), len(w.objects())
	for range 3 {
		w.advance(9 * 24 * time.Hour)
		w.setPolicy(fields{"completed_days": 1})
		w.settle()
	}
	w.advance(24 * time.Hour)
	w.settle() // the change of the policy is done with
	is := change("completed")
	for name, v := range was {
		if name != "status" && name != "rdue" && !is[name].Equal(v) {
			t.Errorf("%s was %v and is %v", name, v, is[name])
		}
	}
	if got := of(w.items(), "bank#e/j#"); len(got) != len(entries) || len(of(w.items(), "bank#e/op#")) != len(slots) || len(w.objects()) != objects {
		t.Errorf("%v of %v are left, %d objects of %d", got, entries, len(w.objects()), objects)
	}
	w.advance(7 * time.Hour)
	w.settle()
	if c := w.getCode("e"); c != execution.Deleted {
		t.Errorf("the version that knows it: %q", c)
	}
}
