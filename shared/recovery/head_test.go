package recovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

// A look writes to the head as it was read, in each of these by itself: whoever
// moved it meanwhile set what is due.
func TestLookAgainstTheHeadAsRead(t *testing.T) {
	t.Parallel()
	waiting := func(k *kit) {
		v, f := k.owned("e1")
		k.do("suspend", m{"execution": "e1", "expected_version": v, "fence": f, "wait": m{"signals": []string{"go"}}})
	}
	situations := map[string]func(k *kit){
		"hand-over": func(k *kit) { k.owned("e1") },
		"wait":      waiting,
		"renewed": func(k *kit) {
			_, f := k.owned("e1")
			k.do("renew", m{"execution": "e1", "owner": "a", "fence": f, "lease_seconds": 7200})
			k.setHead("e1", "due", fmt.Sprintf(`{"N":"%d"}`, k.engine.Now().UnixMilli()))
		},
	}
	moves := map[string]string{"fence": `{"N":"77"}`, "status": `{"S":"halted"}`, "generation": `{"N":"5"}`, "due": `{"N":"1"}`, "lease_expires_at": `{"N":"4102444800000"}`, "handover": `{"N":"1"}`}
	for what, begin := range situations {
		for attr, value := range moves {
			if attr == "handover" && what != "hand-over" {
				continue // only a hand-over counts them
			}
			k := newKit(t)
			k.workflow(nil)
			begin(k)
			k.advance(61)
			k.restart()
			b := &storetest.BeforeUpdate{Table: k.services.Recovery.Table}
			var want map[string]json.RawMessage
			b.What = func() { k.setHead("e1", attr, value); want = k.rawHead("e1") }
			k.services.Recovery.Table = b
			if what == "wait" {
				k.advance(3600)
			}
			k.sweep()
			if want == nil {
				t.Fatalf("%s: nothing was to be written", what)
			}
			got := k.rawHead("e1")
			for a := range want {
				if string(got[a]) != string(want[a]) {
					t.Errorf("%s, %s moved: %s was written: %s", what, attr, a, got[a])
				}
			}
			if len(got) != len(want) || k.target.causes() != "" {
				t.Errorf("%s, %s moved: head %v, started %q", what, attr, got, k.target.causes())
			}
		}
	}
}

// So is a head that is set aside.
func TestSetAsideAgainstTheHeadAsRead(t *testing.T) {
	t.Parallel()
	for attr, value := range map[string]string{"generation": `{"N":"5"}`, "due": `{"N":"1"}`, "": ""} {
		k := newKit(t)
		k.workflow(nil)
		k.owned("e1")
		for _, raw := range k.engine.Dump().Items {
			var it map[string]json.RawMessage
			_ = json.Unmarshal(raw, &it)
			if text(it["pk"]) != tenant+"#e1" || text(it["sk"])[0] != 'j' {
				continue
			}
			it["b"] = json.RawMessage(`{"B":"AAAA"}`)
			raw, _ = json.Marshal(it)
			if err := k.engine.Load(memory.Dump{Items: []json.RawMessage{raw}}); err != nil {
				t.Fatal(err)
			}
		}
		k.restart()
		k.advance(31)
		b := &storetest.BeforeUpdate{Table: k.services.Recovery.Table}
		b.What = func() {
			if attr != "" {
				k.setHead("e1", attr, value)
			}
		}
		k.services.Recovery.Table = b
		k.sweep()
		if got := k.head("e1", "quarantine"); (got == "") != (attr != "") {
			t.Errorf("%q moved: set aside %q", attr, got)
		}
	}
}

// Not everything that rings is to be looked at.
func TestLookLeavesAlone(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(k *kit){
		"a status nobody knows": func(k *kit) { k.setHead("e1", "status", `{"S":"dreaming"}`) },
		"nothing is due":        func(k *kit) { k.setHead("e1", "due", "") },
		"not yet":               func(k *kit) { k.setHead("e1", "due", fmt.Sprintf(`{"N":"%d"}`, k.engine.Now().UnixMilli()+1000)) },
		"its time is over":      func(k *kit) { k.setHead("e1", "expires_at", fmt.Sprintf(`{"N":"%d"}`, k.engine.Now().UnixMilli())) },
	} {
		k := newKit(t)
		k.workflow(nil)
		k.owned("e1")
		k.advance(31)
		f(k)
		k.restart()
		want := k.rawHead("e1")
		k.sweep()
		ring := `{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"1","Keys":{"pk":{"S":"bank#e1"},"sk":{"S":"timer#lease"}}}}`
		if out := k.services.Recovery.Stream(context.Background(), []json.RawMessage{json.RawMessage(ring)}); len(out.Failures) != 0 {
			t.Errorf("%s: %v", name, out)
		}
		got := k.rawHead("e1")
		for a := range want {
			if string(got[a]) != string(want[a]) {
				t.Errorf("%s: %s was written: %s", name, a, got[a])
			}
		}
		if len(got) != len(want) || k.target.causes() != "" {
			t.Errorf("%s: head %v, started %q", name, got, k.target.causes())
		}
	}
}

// A child counts for the very attempt that it was made for: not what happens to
// have its id, and not for another attempt.
func TestChildOfAnother(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resolvers": nil})
	_, f := k.owned("e1")
	op := k.declare("e1", f, nil)["operation"].(string)
	child := k.do("create", m{"workflow": "w", "parent": m{"execution": "e1", "operation": op}, "request_id": "c", "claim": m{"owner": "x", "lease_seconds": 3600}})
	k.services.Checkpoint.ChildEnded = nil
	k.do("complete", m{"execution": child["execution"], "expected_version": child["version"], "fence": child["fence"], "outcome": "completed"})
	plain := k.do("create", m{"execution": "plain", "workflow": "w", "claim": m{"owner": "x", "lease_seconds": 3600}})
	k.do("complete", m{"execution": "plain", "expected_version": plain["version"], "fence": plain["fence"], "outcome": "completed"})
	id := child["execution"].(string)
	resume := func(e, child string) {
		t.Helper()
		other := k.newProcess()
		other.services.Recovery.ChildID = func(execution.Ref, *execution.Operation) execution.ExecutionID { return execution.ExecutionID(child) }
		k.advance(31)
		if _, err := other.call(context.Background(), "recover", "resume", m{"execution": e, "owner": "b", "lease_seconds": 30}); err != nil {
			t.Fatal(err)
		}
	}
	// A second operation whose child would have the first one's id.
	k.advance(31)
	_, f2 := k.owned("e2")
	op2 := k.declare("e2", f2, nil)["operation"].(string)
	k.do("create", m{"workflow": "w", "parent": m{"execution": "e2", "operation": op2}, "request_id": "c2", "claim": m{"owner": "x", "lease_seconds": 3600}})
	for _, tt := range []struct{ e, op, child, status string }{{"e1", op, "plain", "uncertain"}, {"e1", op, "none", "uncertain"}, {"e2", op2, id, "uncertain"}, {"e1", op, id, "succeeded"}} {
		resume(tt.e, tt.child)
		if got := k.status(tt.e, tt.op); got != tt.status {
			t.Errorf("%s by the child %s: %s, want %s", tt.e, tt.child, got, tt.status)
		}
	}
}

// An owner that renews while it is being parked keeps what it has.
func TestParkBehindARenewal(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.workflow(m{"resume_target": nil})
	_, f := k.owned("e1")
	k.advance(31)
	other := k.newProcess()
	renewed := false
	k.services.Journal.Table = &storetest.BeforeTransact{Table: k.services.Journal.Table, What: func() {
		_, err := other.call(context.Background(), "recover", "renew", m{"execution": "e1", "owner": "a", "fence": f, "lease_seconds": 60})
		if renewed = err == nil; err != nil {
			t.Error(err)
		}
	}}
	k.sweep()
	if got := k.get("e1"); !renewed || got["status"] != "running" || got["owner"] != "a" {
		t.Errorf("renewed %v: %v", renewed, got)
	}
	k.advance(61)
	k.sweep()
	if got := k.get("e1"); got["status"] != "parked" {
		t.Errorf("%v", got)
	}
}
