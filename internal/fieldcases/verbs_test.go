package fieldcases

import (
	"testing"

	"github.com/cairnstate/cairn/shared/api"
)

// verb is a well-formed call of one verb.
type verb struct {
	action string
	object
	execution bool // it names an execution
}

// everyVerb calls every verb of the interface, about one execution where it can.
func everyVerb(execution string) []verb {
	e := func(more object) object { return with(object{"execution": execution}, more) }
	zeros := "0000000000000000000000000000000000000000000000000000000000000000"
	return []verb{
		{"create", object{"execution": "fresh", "workflow": "wf"}, false},
		{"apply", e(object{"expected_version": 1, "state": object{}}), true},
		{"suspend", e(object{"expected_version": 1, "wait": object{}}), true},
		{"complete", e(object{"expected_version": 1, "outcome": "completed"}), true},
		{"get", e(nil), true},
		{"history", e(nil), true},
		{"list", object{"workflow": "wf"}, false},
		{"put_artifact", e(object{"name": "n", "media_type": "a/b", "body": "AAAA"}), true},
		{"get_artifact", e(object{"digest": zeros}), true},
		{"record_outcome", e(object{"operation": "o", "outcome": "succeeded"}), true},
		{"start_operation", e(object{"operation": "o", "attempt": 1, "fence": 1, "nonce": "x"}), true},
		{"signal", e(object{"name": "n", "key": "k"}), true},
		{"get_operation", e(object{"operation": "o"}), true},
		{"fork", e(object{"at_version": 1, "new_execution": "forked"}), true},
		{"set_workflow", object{"workflow": object{"name": "w", "schema": object{"name": "s", "version": 1}}}, false},
		{"get_workflow", object{"workflow": "w"}, false},
		{"set_tenant", object{"settings": object{}}, false},
		{"get_tenant", object{}, false},
		{"claim", e(object{"owner": "w", "lease_seconds": 60}), true},
		{"renew", e(object{"owner": "w", "fence": 1, "lease_seconds": 60}), true},
		{"release", e(object{"owner": "w", "fence": 1}), true},
		{"reconcile", e(object{"fence": 1}), true},
		{"resume", e(object{"owner": "w", "lease_seconds": 60}), true},
		{"halt", e(object{"reason": "r"}), true},
		{"unhalt", e(object{"reason": "r", "expected_version": 1}), true},
		{"migrate", object{"workflow": "wf"}, false},
		{"set_policy", object{"policy": object{"name": "p"}}, false},
		{"get_policy", object{"policy": "p"}, false},
		{"hold", e(object{"hold": "h", "reason": "r"}), true},
		{"release_hold", e(object{"hold": "h", "reason": "r"}), true},
		{"holds", e(nil), true},
		{"archive", e(nil), true},
		{"restore", e(nil), true},
		{"delete", e(object{"reason": "r"}), true},
		{"purge_tenant", object{}, false},
		{"get_receipt", e(nil), true},
		{"receipts", object{}, false},
		{"verify", e(nil), true},
		{"rotate_key", object{}, false},
		{"keys", object{}, false},
	}
}

func TestEveryVerbIsCalled(t *testing.T) {
	t.Parallel()
	called := map[string]bool{"sweep": true} // for all tenants, so without one
	for _, v := range everyVerb("e") {
		called[v.action] = true
	}
	for _, v := range api.Verbs {
		if !called[v.Action] {
			t.Errorf("everyVerb does not call %s", v.Action)
		}
	}
}
