package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

func decoded(t *testing.T, function, body string) any {
	t.Helper()
	_, req, err := Decode(function, []byte(body))
	if err != nil {
		t.Fatalf("%s %.200s: %v", function, body, err)
	}
	return req
}

// Every sample is accepted, and written again it is the same request.
func TestSamplesRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples {
		req := decoded(t, s.function, s.body)
		text, err := EncodeRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		again := decoded(t, s.function, string(text))
		if CommonOf(req).Digest != CommonOf(again).Digest || CommonOf(req).Hash != CommonOf(again).Hash {
			t.Errorf("%s: another identity after a round trip: %s", ActionOf(req), text)
		}
		second, _ := EncodeRequest(again)
		if string(text) != string(second) {
			t.Errorf("%s: not stable:\n%s\n%s", ActionOf(req), text, second)
		}
		if got, want := sorted(t, text), sorted(t, []byte(s.body)); got != want && !strings.Contains(s.body, `"policy":"p"}`) && !strings.Contains(s.body, "artifacts") && !strings.Contains(s.body, "since") {
			t.Errorf("%s: something was lost:\n%s\n%s", ActionOf(req), got, want)
		}
		seen[s.function+" "+ActionOf(req)] = true
	}
	for _, v := range Verbs {
		if !seen[v.Function+" "+v.Action] {
			t.Errorf("no sample of %s %s", v.Function, v.Action)
		}
	}
}

// sorted is the text with keys in order, numbers as written.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

const (
	none    = "" // no field
	create  = `"action":"create","tenant":"t","execution":"e","workflow":"wf"`
	apply   = `"action":"apply","tenant":"t","execution":"e","expected_version":1`
	claim   = `"action":"claim","tenant":"t","execution":"e","owner":"w","lease_seconds":60`
	recon   = `"action":"reconcile","tenant":"t","execution":"e"`
	putart  = `"action":"put_artifact","tenant":"t","execution":"e","name":"n","media_type":"a/b"`
	setwf   = `"action":"set_workflow","tenant":"t"`
	setpol  = `"action":"set_policy","tenant":"t"`
	listex  = `"action":"list","tenant":"t"`
	delete_ = `"action":"delete","tenant":"t","reason":"r"`
)

func op(fields string) string { return `,"operations":[{"name":"n","args":{}},{` + fields + `}]` }

func evidence(fields string) string { return `,"evidence":[{"operation":"o",` + fields + `}]` }

var refusals = []struct{ function, body, field string }{
	// the request as a whole
	{Checkpoint, ``, none}, {Checkpoint, `[]`, none}, {Checkpoint, `null`, none}, {Checkpoint, `"x"`, none}, {Checkpoint, `{`, none},
	{Checkpoint, `{} {}`, none}, {Checkpoint, "\xef\xbb\xbf{}", none}, {Checkpoint, `{"a":1,}`, none},
	{Checkpoint, `{}`, "action"}, {Checkpoint, `{"action":5}`, "action"}, {Checkpoint, `{"action":"nope"}`, "action"},
	{Checkpoint, `{"action":"claim"}`, "action"}, {"nowhere", `{"action":"get"}`, "action"}, {Recover, `{"Action":"claim"}`, "action"},
	// tenant
	{Checkpoint, `{"action":"get","execution":"e"}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":null}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":""}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":0}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":[]}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":{"$ne":""}}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":"*"}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":"a\u0000b"}`, "tenant"},
	{Checkpoint, `{"action":"get","execution":"e","tenant":"` + strings.Repeat("a", 65) + `"}`, "tenant"},
	{Retention, `{"action":"sweep","tenant":""}`, "tenant"},
	{Retention, `{"action":"keys"}`, "tenant"},
	// unknown, misspelled, repeated
	{Checkpoint, `{` + create + `,"statee":{}}`, "statee"},
	{Checkpoint, `{` + create + `,"State":{}}`, "State"},
	{Checkpoint, `{` + create + `,"STATE":{},"state":{}}`, "STATE"},
	{Checkpoint, `{` + create + `,"workflow":"x"}`, "workflow"},
	{Checkpoint, `{` + create + `,"\u0077orkflow":"x"}`, "workflow"},
	{Checkpoint, `{` + create + `,"hash":"x"}`, "hash"},
	{Checkpoint, `{` + create + `,"":1}`, ""},
	{Checkpoint, `{` + create + `,"\ud800":1}`, `\ud800`},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"arg":1`) + `}`, "operations[1].arg"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":1,"args":2`) + `}`, "operations[1].args"},
	{Checkpoint, `{` + listex + `,"workflow":"w","filter":{"tenant_idd":"acme"}}`, "filter"},
	{Checkpoint, `{"action":"suspend","tenant":"t","execution":"e","expected_version":1,"wait":{},"then":{"continue":{}}}`, "then"},
	{Checkpoint, `{` + apply + `,"wait":{}}`, "wait"},
	{Checkpoint, `{` + apply + `,"outcome":"completed"}`, "outcome"},
	// actor and request_id
	{Checkpoint, `{` + create + `,"request_id":""}`, "request_id"},
	{Checkpoint, `{` + create + `,"request_id":"a\u0000b"}`, "request_id"},
	{Checkpoint, `{` + create + `,"request_id":"` + strings.Repeat("é", 129) + `"}`, "request_id"},
	{Checkpoint, `{` + create + `,"actor":{"kind":"robot","id":"x"}}`, "actor.kind"},
	{Checkpoint, `{` + create + `,"actor":{"kind":"human","id":"x","verified":true}}`, "actor.verified"},
	{Checkpoint, `{` + create + `,"actor":"me"}`, "actor"},
	// create
	{Checkpoint, `{"action":"create","tenant":"t","execution":"e"}`, "workflow"},
	{Checkpoint, `{"action":"create","tenant":"t","execution":"","workflow":"wf"}`, "execution"},
	{Checkpoint, `{"action":"create","tenant":"t","execution":"a/b","workflow":"wf"}`, "execution"},
	{Checkpoint, `{"action":"create","tenant":"t","execution":null,"workflow":"wf","request_id":"r"}`, "execution"},
	{Checkpoint, `{"action":"create","tenant":"t","execution":"` + strings.Repeat("a", 129) + `","workflow":"wf"}`, "execution"},
	{Checkpoint, `{"action":"create","tenant":"t","workflow":"wf"}`, "request_id"},
	{Checkpoint, `{` + create + `,"parent":{"execution":"p","operation":"o"}}`, "execution"},
	{Checkpoint, `{"action":"create","tenant":"t","workflow":"wf","request_id":"r","parent":{"execution":"p"}}`, "parent.operation"},
	{Checkpoint, `{` + create + `,"thread":"a b"}`, "thread"},
	{Checkpoint, `{` + create + `,"schema":{"name":"s"}}`, "schema.version"},
	{Checkpoint, `{` + create + `,"schema":{"name":"s","version":1.0}}`, "schema.version"},
	{Checkpoint, `{` + create + `,"schema":{"name":"s","version":"1"}}`, "schema.version"},
	{Checkpoint, `{` + create + `,"schema":{"name":"s","version":0}}`, "schema.version"},
	{Checkpoint, `{` + create + `,"schema":null}`, "schema"},
	{Checkpoint, `{` + create + `,"state":null}`, "state"},
	{Checkpoint, `{` + create + `,"state":[1]}`, "state"},
	{Checkpoint, `{` + create + `,"state":"{}"}`, "state"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":5}}`, "budgets.usd"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":"5"}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":-1}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":1e101}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":1e-101}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":` + strings.Repeat("1", 201) + `}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"usd":{"limit":` + strings.Repeat("1", 5_000_000) + `}}}`, "budgets.usd.limit"},
	{Checkpoint, `{` + create + `,"budgets":{"a b":{"limit":1}}}`, "budgets"},
	{Checkpoint, `{` + create + `,"claim":{"owner":"w"}}`, "claim.lease_seconds"},
	{Checkpoint, `{` + create + `,"claim":{"owner":"w","lease_seconds":4}}`, "claim.lease_seconds"},
	{Checkpoint, `{` + create + `,"claim":{"owner":"w","lease_seconds":86401}}`, "claim.lease_seconds"},
	{Checkpoint, `{` + create + `,"claim":{"owner":"","lease_seconds":60}}`, "claim.owner"},
	{Checkpoint, `{` + create + `,"reuse":"always"}`, "reuse"},
	{Checkpoint, `{` + create + `,"reuse":""}`, "reuse"},
	{Checkpoint, `{` + create + `,"labels":{"a":1}}`, "labels.a"},
	{Checkpoint, `{` + create + `,"labels":{"":"x"}}`, "labels"},
	{Checkpoint, `{` + create + `,"labels":[]}`, "labels"},
	{Checkpoint, `{` + create + `,"labels":{"\ud800":"x"}}`, "labels"},
	{Checkpoint, `{` + create + `,"labels":{"a":"\ud800"}}`, "labels.a"},
	{Checkpoint, `{` + create + `,"labels":{"a":"` + strings.Repeat("x", 257) + `"}}`, "labels.a"},
	{Checkpoint, `{` + create + `,"subjects":"s"}`, "subjects"},
	{Checkpoint, `{` + create + `,"subjects":["s",""]}`, "subjects[1]"},
	{Checkpoint, `{` + create + `,"subjects":["s",null]}`, "subjects[1]"},
	{Checkpoint, `{` + create + `,"subjects":[` + strings.Repeat(`"s",`, 40) + `"s"]}`, "subjects"},
	{Checkpoint, `{` + create + `,"labels":{"a":"b"},"subjects":[` + strings.Repeat(`"s",`, 39) + `"s"]}`, "labels"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p"}}`, "permissions.scopes"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p","scopes":[],"expires_at":"2026-01-02"}}`, "permissions.expires_at"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p","scopes":[],"expires_at":"2026-01-02T03:04:05+00:00"}}`, "permissions.expires_at"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p","scopes":[],"expires_at":"2026-01-02T03:04:05.1234Z"}}`, "permissions.expires_at"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p","scopes":[],"expires_at":"2026-02-30T03:04:05Z"}}`, "permissions.expires_at"},
	{Checkpoint, `{` + create + `,"permissions":{"principal":"p","scopes":[],"expires_at":1767323045}}`, "permissions.expires_at"},
	// apply
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e"}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":"1"}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":1e0}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":null}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":0}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":9223372036854775808}`, "expected_version"},
	{Checkpoint, `{"action":"apply","tenant":"t","execution":"e","expected_version":true}`, "expected_version"},
	{Checkpoint, `{` + apply + `,"first_version":2}`, "first_version"},
	{Checkpoint, `{` + apply + `,"fence":-1}`, "fence"},
	{Checkpoint, `{` + apply + `,"state":{},"patch":[]}`, "patch"},
	{Checkpoint, `{` + apply + `,"merge":{},"patch":[]}`, "merge"},
	{Checkpoint, `{` + apply + `,"merge":[]}`, "merge"},
	{Checkpoint, `{` + apply + `,"patch":{}}`, "patch"},
	{Checkpoint, `{` + apply + `,"patch":[{"op":"add","path":"/a","value":1},{"op":"put","path":"/a"}]}`, "patch[1]"},
	{Checkpoint, `{` + apply + `,"patch":[{"op":"add","path":"a","value":1}]}`, "patch[0]"},
	{Checkpoint, `{` + apply + `,"patch":[{"op":"add","path":"/a"}]}`, "patch[0]"},
	{Checkpoint, `{` + apply + `,"note":"` + strings.Repeat("n", 1025) + `"}`, "note"},
	{Checkpoint, `{` + apply + `,"note":"a\u0007"}`, "note"},
	{Checkpoint, `{` + apply + `,"spend":{"usd":-0.1}}`, "spend.usd"},
	{Checkpoint, `{` + apply + `,"spend":{"usd":"0.1"}}`, "spend.usd"},
	{Checkpoint, `{` + apply + `,"task":"a#b"}`, "task"},
	{Checkpoint, `{` + apply + op(`"args":{}`) + `}`, "operations[1].name"},
	{Checkpoint, `{` + apply + op(`"name":"n"`) + `}`, "operations[1].args"},
	{Checkpoint, `{` + apply + op(`"name":"a b","args":{}`) + `}`, "operations[1].name"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"key":""`) + `}`, "operations[1].key"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"key":"a\u0000b"`) + `}`, "operations[1].key"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"key":"`+strings.Repeat("k", 257)+`"`) + `}`, "operations[1].key"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"on_uncertain":"Ask"`) + `}`, "operations[1].on_uncertain"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"on_uncertain":"same_key"`) + `}`, "operations[1].dedup_seconds"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"valid_seconds":0`) + `}`, "operations[1].valid_seconds"},
	{Checkpoint, `{` + apply + op(`"name":"n","args":{},"deadline_seconds":1.5`) + `}`, "operations[1].deadline_seconds"},
	{Checkpoint, `{` + apply + `,"operations":{}}`, "operations"},
	{Checkpoint, `{` + apply + `,"operations":[5]}`, "operations[0]"},
	{Checkpoint, `{` + apply + `,"operations":["n"]}`, "operations[0]"},
	{Checkpoint, `{` + apply + `,"outcomes":[{"operation":"o","outcome":"ok"}]}`, "outcomes[0].outcome"},
	{Checkpoint, `{` + apply + `,"outcomes":[{"operation":"","outcome":"failed"}]}`, "outcomes[0].operation"},
	{Checkpoint, `{` + apply + `,"outcomes":[{"operation":"o","result":1}]}`, "outcomes[0].outcome"},
	{Checkpoint, `{` + apply + `,"outcomes":[{"operation":"o","attempt":0}]}`, "outcomes[0].attempt"},
	{Checkpoint, `{` + apply + `,"absorb":[{"name":"n"}]}`, "absorb[0].key"},
	{Checkpoint, `{` + apply + `,"artifacts":["abc"]}`, "artifacts[0]"},
	{Checkpoint, `{` + apply + `,"artifacts":["` + strings.Repeat("A", 64) + `"]}`, "artifacts[0]"},
	{Checkpoint, `{` + apply + `,"artifacts":[{"name":"x"}]}`, "artifacts[0].digest"},
	{Checkpoint, `{` + apply + `,"artifacts":[5]}`, "artifacts[0]"},
	{Checkpoint, `{` + apply + `,"then":{}}`, "then.suspend"},
	{Checkpoint, `{` + apply + `,"then":null}`, "then"},
	{Checkpoint, `{` + apply + `,"then":{"suspend":{},"continue":{}}}`, "then.continue"},
	{Checkpoint, `{` + apply + `,"then":{"complete":{}}}`, "then.complete.outcome"},
	{Checkpoint, `{` + apply + `,"then":{"complete":{"outcome":"moved"}}}`, "then.complete.outcome"},
	{Checkpoint, `{` + apply + `,"then":{"suspend":{"operations":["a b"]}}}`, "then.suspend.operations[0]"},
	{Checkpoint, `{` + apply + `,"then":{"suspend":{"wake":{}}}}`, "then.suspend.wake.task_token"},
	{Checkpoint, `{` + apply + `,"then":{"suspend":{"until":"tomorrow"}}}`, "then.suspend.until"},
	{Checkpoint, `{` + apply + `,"then":{"continue":{"after_seconds":-1}}}`, "then.continue.after_seconds"},
	{Checkpoint, `{"action":"suspend","tenant":"t","execution":"e","expected_version":1}`, "wait"},
	{Checkpoint, `{"action":"suspend","tenant":"t","execution":"e","expected_version":1,"wait":{},"state":{},"merge":{}}`, "merge"},
	{Checkpoint, `{"action":"complete","tenant":"t","execution":"e","expected_version":1}`, "outcome"},
	{Checkpoint, `{"action":"complete","tenant":"t","execution":"e","expected_version":1,"outcome":"completed","state":{},"merge":{}}`, "merge"},
	// reads
	{Checkpoint, `{"action":"get","tenant":"t","execution":"e","include":["states"]}`, "include[0]"},
	{Checkpoint, `{"action":"get","tenant":"t","execution":"e","include":"state"}`, "include"},
	{Checkpoint, `{"action":"get","tenant":"t","execution":"e","version":0}`, "version"},
	{Checkpoint, `{"action":"get","tenant":"t","execution":"e","max_inline_bytes":0}`, "max_inline_bytes"},
	{Checkpoint, `{"action":"history","tenant":"t","execution":"e","limit":0}`, "limit"},
	{Checkpoint, `{"action":"history","tenant":"t","execution":"e","limit":1001}`, "limit"},
	{Checkpoint, `{"action":"history","tenant":"t","execution":"e","newest_first":1}`, "newest_first"},
	{Checkpoint, `{"action":"history","tenant":"t","execution":"e","cursor":null}`, "cursor"},
	{Checkpoint, `{` + listex + `}`, "status"},
	{Checkpoint, `{` + listex + `,"status":"running","workflow":"w"}`, "workflow"},
	{Checkpoint, `{` + listex + `,"status":"done"}`, "status"},
	{Checkpoint, `{` + listex + `,"label":{}}`, "label"},
	{Checkpoint, `{` + listex + `,"label":{"a":"b","c":"d"}}`, "label"},
	{Checkpoint, `{` + listex + `,"workflow":"w","sort":"x"}`, "sort"},
	// artifacts
	{Checkpoint, `{` + putart + `}`, "body"},
	{Checkpoint, `{` + putart + `,"body":"AAAA","upload":{"bytes":1,"sha256":"` + strings.Repeat("0", 64) + `"}}`, "upload"},
	{Checkpoint, `{` + putart + `,"body":"AAA"}`, "body"},
	{Checkpoint, `{` + putart + `,"body":"AA\nAA"}`, "body"},
	{Checkpoint, `{` + putart + `,"body":"AB=="}`, "body"},
	{Checkpoint, `{` + putart + `,"body":{}}`, "body"},
	{Checkpoint, `{` + putart + `,"upload":{"bytes":5368709121,"sha256":"` + strings.Repeat("0", 64) + `"}}`, "upload.bytes"},
	{Checkpoint, `{` + putart + `,"upload":{"bytes":1,"sha256":"0"}}`, "upload.sha256"},
	{Checkpoint, `{"action":"put_artifact","tenant":"t","execution":"e","media_type":"a/b","body":"AAAA"}`, "name"},
	{Checkpoint, `{"action":"put_artifact","tenant":"t","execution":"e","name":"","media_type":"a/b","body":"AAAA"}`, "name"},
	{Checkpoint, `{"action":"put_artifact","tenant":"t","execution":"e","name":"a\u0000b","media_type":"a/b","body":"AAAA"}`, "name"},
	{Checkpoint, `{"action":"put_artifact","tenant":"t","execution":"e","name":"` + strings.Repeat("é", 256) + `","media_type":"a/b","body":"AAAA"}`, "name"},
	{Checkpoint, `{"action":"put_artifact","tenant":"t","execution":"e","name":"n","body":"AAAA"}`, "media_type"},
	{Checkpoint, `{"action":"get_artifact","tenant":"t","execution":"e"}`, "digest"},
	{Checkpoint, `{"action":"get_artifact","tenant":"t","execution":"e","name":"n","digest":"` + strings.Repeat("0", 64) + `"}`, "name"},
	// evidence and signals
	{Checkpoint, `{"action":"record_outcome","tenant":"t","outcome":"succeeded"}`, "execution"},
	{Checkpoint, `{"action":"record_outcome","tenant":"t","execution":"e","outcome":"succeeded"}`, "operation"},
	{Checkpoint, `{"action":"record_outcome","tenant":"t","execution":"e","operation":"o"}`, "outcome"},
	{Checkpoint, `{"action":"record_outcome","tenant":"t","execution":"e","operation":"o","outcome":"maybe"}`, "outcome"},
	{Checkpoint, `{"action":"start_operation","tenant":"t","execution":"e","operation":"o","attempt":1,"fence":1}`, "nonce"},
	{Checkpoint, `{"action":"start_operation","tenant":"t","execution":"e","operation":"o","attempt":1,"fence":0,"nonce":"n"}`, "fence"},
	{Checkpoint, `{"action":"signal","tenant":"t","name":"n","key":"k"}`, "execution"},
	{Checkpoint, `{"action":"signal","tenant":"t","execution":"e","name":"a#b","key":"k"}`, "name"},
	{Checkpoint, `{"action":"signal","tenant":"t","execution":"e","name":"n","key":""}`, "key"},
	{Checkpoint, `{"action":"signal","tenant":"t","execution":"e","name":"n","key":"` + strings.Repeat("k", 257) + `"}`, "key"},
	{Checkpoint, `{"action":"fork","tenant":"t","execution":"e","at_version":1}`, "request_id"},
	{Checkpoint, `{"action":"fork","tenant":"t","execution":"e","at_version":1,"request_id":"r","operations":"move"}`, "operations"},
	// workflows and tenants
	{Checkpoint, `{` + setwf + `}`, "workflow"},
	{Checkpoint, `{` + setwf + `,"workflow":"wf"}`, "workflow"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf"}}`, "workflow.schema"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"resume_target":{"kind":"x","arn":"a"}}}`, "workflow.resume_target.kind"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"resolvers":{"pay":{"kind":"https","target":"http://x"}}}}`, "workflow.resolvers.pay.target"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"migrations":[{"from":1,"to":2}]}}`, "workflow.migrations[0].patch"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"migrations":[{"from":2,"to":2,"lambda":"x"}]}}`, "workflow.migrations[0].to"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"migrations":[{"from":1,"to":2,"lambda":"x","patch":[]}]}}`, "workflow.migrations[0].lambda"},
	{Checkpoint, `{` + setwf + `,"workflow":{"name":"wf","schema":{"name":"s","version":1},"lease_seconds":1}}`, "workflow.lease_seconds"},
	{Checkpoint, `{"action":"set_tenant","tenant":"t","settings":{"secrets":"maybe"}}`, "settings.secrets"},
	{Checkpoint, `{"action":"set_tenant","tenant":"t","settings":{"allowed":["state.x"]}}`, "settings.allowed[0]"},
	// recover
	{Recover, `{` + claim + `,"nonce":""}`, "nonce"},
	{Recover, `{` + claim + `,"supports":{"min":3,"max":1}}`, "supports.min"},
	{Recover, `{` + claim + `,"supports":{"min":3}}`, "supports.max"},
	{Recover, `{` + claim + `,"force":{}}`, "force.reason"},
	{Recover, `{` + claim + `,"force":true}`, "force"},
	{Recover, `{` + claim + `,"supersede":"true"}`, "supersede"},
	{Recover, `{"action":"claim","tenant":"t","execution":"e","owner":"","lease_seconds":60}`, "owner"},
	{Recover, `{"action":"claim","tenant":"t","execution":"e","owner":"w","lease_seconds":4}`, "lease_seconds"},
	{Recover, `{"action":"resume","tenant":"t","execution":"e","owner":"w","lease_seconds":60,"supports":{"min":3,"max":1}}`, "supports.min"},
	{Recover, `{"action":"resume","tenant":"t","execution":"e","owner":"w"}`, "lease_seconds"},
	{Recover, `{"action":"renew","tenant":"t","execution":"e","owner":"w","fence":1}`, "lease_seconds"},
	{Recover, `{"action":"renew","tenant":"t","execution":"e","owner":"w","lease_seconds":60}`, "fence"},
	{Recover, `{"action":"release","tenant":"t","execution":"e","fence":1}`, "owner"},
	{Recover, `{"action":"release","tenant":"t","execution":"e","owner":"w","fence":1,"lease_seconds":60}`, "lease_seconds"},
	{Recover, `{` + recon + evidence(`"finding":"lost"`) + `}`, "evidence[0].finding"},
	{Recover, `{` + recon + evidence(`"finding":"not_found","outcome":"failed"`) + `}`, "evidence[0].outcome"},
	{Recover, `{` + recon + evidence(`"finding":"found","outcome":"not_executed"`) + `}`, "evidence[0].outcome"},
	{Recover, `{` + recon + evidence(`"finding":"found","force":true`) + `}`, "evidence[0].force"},
	{Recover, `{` + recon + evidence(`"finding":"found","count":-1`) + `}`, "evidence[0].count"},
	{Recover, `{` + recon + evidence(`"finding":"decided","outcome":"abandoned","reason":"r"`) + `}`, "evidence[0].attempt"},
	{Recover, `{` + recon + evidence(`"finding":"decided","attempt":1,"reason":"r"`) + `}`, "evidence[0].outcome"},
	{Recover, `{` + recon + evidence(`"finding":"decided","attempt":1,"outcome":"unknown","reason":"r"`) + `}`, "evidence[0].outcome"},
	{Recover, `{` + recon + evidence(`"finding":"decided","attempt":1,"outcome":"failed"`) + `}`, "evidence[0].reason"},
	{Recover, `{"action":"halt","tenant":"t","execution":"e"}`, "reason"},
	{Recover, `{"action":"unhalt","tenant":"t","execution":"e","reason":"r"}`, "expected_version"},
	{Recover, `{"action":"migrate","tenant":"t"}`, "workflow"},
	{Recover, `{"action":"sweep","limit":0}`, "limit"},
	// retention
	{Retention, `{` + setpol + `,"policy":{}}`, "policy.name"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","completed_days":-1}}`, "policy.completed_days"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","receipt_days":6}}`, "policy.receipt_days"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","history":{"keep":"some"}}}`, "policy.history.keep"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","history":{"keep":"days"}}}`, "policy.history.n"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","history":{"keep":"all","n":1}}}`, "policy.history.n"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","archive":{}}}`, "policy.archive.enabled"},
	{Retention, `{` + setpol + `,"policy":{"name":"p","archive":{"enabled":true,"storage_class":"cold"}}}`, "policy.archive.storage_class"},
	{Retention, `{"action":"get_policy","tenant":"t","policy":""}`, "policy"},
	{Retention, `{"action":"hold","tenant":"t","hold":"h","reason":"r"}`, "execution"},
	{Retention, `{"action":"hold","tenant":"t","execution":"e","thread":"x","hold":"h","reason":"r"}`, "thread"},
	{Retention, `{"action":"hold","tenant":"t","execution":"e","hold":"a/b","reason":"r"}`, "hold"},
	{Retention, `{"action":"hold","tenant":"t","execution":"e","hold":"h"}`, "reason"},
	{Retention, `{"action":"hold","tenant":"t","execution":"e","hold":"h","reason":""}`, "reason"},
	{Retention, `{"action":"holds","tenant":"t"}`, "execution"},
	{Retention, `{"action":"release_hold","tenant":"t","execution":"e"}`, "hold"},
	{Retention, `{` + delete_ + `}`, "execution"},
	{Retention, `{` + delete_ + `,"execution":"e","label":{"a":"b"}}`, "label"},
	{Retention, `{` + delete_ + `,"label":{}}`, "label"},
	{Retention, `{"action":"delete","tenant":"t","execution":"e"}`, "reason"},
	{Retention, `{"action":"purge_tenant","tenant":"t","shred":1}`, "shred"},
	{Retention, `{"action":"receipts","tenant":"t","since":"yesterday"}`, "since"},
	{Retention, `{"action":"verify","tenant":"t","execution":"e","cursor":"c"}`, "cursor"},
}

func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		_, req, err := Decode(r.function, []byte(r.body))
		var e *execution.Error
		if !errors.As(err, &e) || e.Code != execution.InvalidRequest || req != nil {
			t.Errorf("%.300s: %v, %v", r.body, req, err)
			continue
		}
		if field, _ := e.Facts["field"].(string); field != r.field {
			t.Errorf("%.300s: field %q, want %q (%v)", r.body, field, r.field, err)
		}
	}
}

// Agent data is refused with its field and the path inside it.
func TestDataRefusals(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"n":`, n) + "1" + strings.Repeat("}", n) }
	for _, r := range []struct {
		body, field, path string
		code              execution.Code
	}{
		{`{` + create + `,"state":{"a":{"b":NaN}}}`, "state", "/a/b", execution.InvalidRequest},
		{`{` + create + `,"state":{"a":[1,-Infinity]}}`, "state", "/a/1", execution.InvalidRequest},
		{`{` + create + `,"state":{"a":1e10000}}`, "state", "/a", execution.InvalidRequest},
		{`{` + create + `,"state":{"a":{"k":1,"k":2}}}`, "state", "/a/k", execution.InvalidRequest},
		{`{` + create + `,"state":{"a/b":{"~":01}}}`, "state", "/a~1b/~0", execution.InvalidRequest},
		{`{` + create + `,"state":{"a":"` + "\xff" + `"}}`, "state", "/a", execution.InvalidRequest},
		{`{` + apply + op(`"name":"n","args":[0,{"x":nan}]`) + `}`, "operations[1].args", "/1/x", execution.InvalidRequest},
		{`{` + apply + `,"patch":[{"op":"add","path":"/x","value":NaN}]}`, "patch", "/0/value", execution.InvalidRequest},
		{`{` + apply + `,"patch":[{"op":"test","path":"x/y","value":1}]}`, "patch[0]", "x/y", execution.InvalidRequest},
		{`{` + apply + `,"then":{"complete":{"outcome":"failed","error":{"x":NaN}}}}`, "then.complete.error", "/x", execution.InvalidRequest},
		{`{` + create + `,"state":` + nested(501) + `}`, "state", "/n/n", execution.InvalidRequest},
		{`{` + create + `,"state":` + nested(100000) + `}`, "state", "/n/n", execution.InvalidRequest},
		{`{` + create + `,"input":` + nested(501) + `}`, "input", "/n/n", execution.InvalidRequest},
		{`{` + apply + `,"patch":[{"op":"add","path":"/x","value":` + nested(501) + `}]}`, "patch", "/0/value/n", execution.InvalidRequest},
		{`{` + create + `,"state":{"s":"` + strings.Repeat("a", 5<<20-7) + `"}}`, "state", "", execution.TooLarge},
		{`{` + putart + `,"body":"` + strings.Repeat("A", (4<<20+2)/3*4) + `"}`, "body", "", execution.TooLarge},
		{`{` + create + strings.Repeat(" ", 6<<20) + `}`, "", "", execution.TooLarge},
	} {
		_, _, err := Decode(Checkpoint, []byte(r.body))
		var e *execution.Error
		if !errors.As(err, &e) || e.Code != r.code {
			t.Errorf("%.200s: %v", r.body, err)
			continue
		}
		field, _ := e.Facts["field"].(string)
		path, _ := e.Facts["path"].(string)
		if field != r.field || !strings.HasPrefix(path, r.path) || len(path) > 2*maxShown {
			t.Errorf("%.200s: field %q path %.80q, want %q %q", r.body, field, path, r.field, r.path)
		}
		if r.code == execution.TooLarge && e.Facts["limit"] == nil {
			t.Errorf("%.200s: no limit", r.body)
		}
	}
	for _, body := range []string{ // at the limit
		`{` + create + `,"state":` + nested(500) + `}`,
		`{` + apply + op(`"name":"n","args":`+nested(500)) + `}`,
		`{` + apply + `,"patch":[{"op":"add","path":"/x","value":` + nested(500) + `}]}`,
		`{` + apply + `,"then":{"suspend":{"waiting_for":` + nested(500) + `}}}`,
		`{` + create + `,"state":{"s":"` + strings.Repeat("a", 5<<20-8) + `"}}`,
		`{` + create + `,"state":{  "s"  :  "` + strings.Repeat("a", 5<<20-8) + `"  }}`,
		`{` + putart + `,"body":"` + strings.Repeat("A", (4<<20)/3*4) + `"}`,
		`{` + create + `,"state":{"a":1e9999,"b":1e-9999,"c":"NaN"}}`,
	} {
		decoded(t, Checkpoint, body)
	}
}

// No error repeats agent data.
func TestErrorsHoldNoData(t *testing.T) {
	const canary = "sk-canary-1234"
	for _, body := range []string{
		`{` + create + `,"state":{"a":"` + canary + `","b":NaN}}`,
		`{` + create + `,"state":{"a":"` + canary + `` + "\xff" + `"}}`,
		`{` + create + `,"state":"` + canary + `"}`,
		`{` + create + `,"statee":{"k":"` + canary + `"}}`,
		`{` + create + `,"reuse":"` + canary + `"}`,
		`{` + create + `,"request_id":"` + canary + `\u0000"}`,
		`{` + apply + `,"patch":[{"op":"test","path":"/n","value":"` + canary + `"},5]}`,
		`{` + apply + `,"spend":{"usd":"` + canary + `"}}`,
		`{"action":"` + canary + `","tenant":"t"}`,
		`{"action":"get","tenant":"` + canary + `/","execution":"e"}`,
		canary, `{"` + create + canary,
	} {
		_, _, err := Decode(Checkpoint, []byte(body))
		if err == nil {
			t.Fatalf("%s was accepted", body)
		}
		if text := string(EncodeError(execution.AsError(err), nil)); strings.Contains(text, canary) {
			t.Errorf("%.100s: %s", body, text)
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	_, _, err := Decode(Checkpoint, []byte(`{`+create+`,"`+strings.Repeat("x", 100_000)+`":1}`))
	if text := EncodeError(execution.AsError(err), nil); len(text) > 1000 {
		t.Errorf("%d bytes of error", len(text))
	}
}

func TestDecodeDistinguishesAbsentNullAndEmpty(t *testing.T) {
	r := decoded(t, Checkpoint, `{`+create+`,"input":null}`).(*CreateRequest)
	if r.Input == nil || r.Input.Raw() != "null" || r.State != nil {
		t.Errorf("input %v, state %v", r.Input, r.State)
	}
	if g := decoded(t, Checkpoint, `{"action":"get","tenant":"t","execution":"e","include":[]}`).(*GetRequest); g.Include == nil || g.Wants("state") {
		t.Error("an empty include is not all")
	}
	if g := decoded(t, Checkpoint, `{"action":"get","tenant":"t","execution":"e"}`).(*GetRequest); g.Include != nil || !g.Wants("state") {
		t.Error("a missing include is all")
	}
	if p := decoded(t, Checkpoint, `{`+putart+`,"body":""}`).(*PutArtifactRequest); p.Body == nil {
		t.Error("an empty body is a body")
	}
	if p := decoded(t, Retention, `{`+setpol+`,"policy":{"name":"p","completed_days":0}}`).(*SetPolicyRequest).Policy; p.CompletedDays == nil || p.FailedDays != nil {
		t.Error("0 days is not keep")
	}
}

func TestEndingsAsApply(t *testing.T) {
	s := decoded(t, Checkpoint, `{"action":"suspend","tenant":"t","execution":"e","expected_version":1,"request_id":"r","wait":{"signals":["x"]}}`).(*SuspendRequest)
	if a := s.Apply(); a.Then.Suspend != s.Wait || a.Digest != s.Digest || a.Hash != s.Hash || a.ExpectedVersion != 1 {
		t.Errorf("%+v", a)
	}
	c := decoded(t, Checkpoint, `{"action":"complete","tenant":"t","execution":"e","expected_version":1,"outcome":"failed","error":1}`).(*CompleteRequest)
	if a := c.Apply(); a.Then.Complete.Outcome != execution.StatusFailed || a.Then.Complete.Error.Raw() != "1" || a.Digest != c.Digest {
		t.Errorf("%+v", a)
	}
}

// Every struct that a request is made of reads its own checks: a check that
// two embedded structs have would not be promoted, and never run.
func TestChecksAreReached(t *testing.T) {
	check := reflect.TypeFor[checker]()
	var walk func(reflect.Type)
	seen := map[reflect.Type]bool{}
	walk = func(s reflect.Type) {
		for s.Kind() == reflect.Pointer || s.Kind() == reflect.Slice || s.Kind() == reflect.Map {
			s = s.Elem()
		}
		if s.Kind() != reflect.Struct || seen[s] {
			return
		}
		seen[s] = true
		names := map[string]int{}
		for i := range s.NumField() {
			f := s.Field(i)
			if f.Anonymous && reflect.PointerTo(f.Type).Implements(check) && !reflect.PointerTo(s).Implements(check) {
				t.Errorf("%v does not run the check of %v", s, f.Type)
			}
			walk(f.Type)
		}
		for _, f := range reflect.VisibleFields(s) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				key := fmt.Sprint(len(f.Index), name)
				if names[key]++; names[key] > 1 {
					t.Errorf("%v has %s twice", s, name)
				}
			}
		}
	}
	for _, v := range Verbs {
		walk(v.request)
	}
	if len(seen) < 50 {
		t.Errorf("only %d structs", len(seen))
	}
}

func FuzzDecode(f *testing.F) {
	for i, s := range samples {
		f.Add(i%3, []byte(s.body))
	}
	for i, r := range refusals {
		if i%7 == 0 {
			f.Add(0, []byte(r.body))
		}
	}
	functions := []string{Checkpoint, Recover, Retention}
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		function := functions[((which%3)+3)%3]
		action, req, err := Decode(function, body)
		if err != nil {
			e := execution.AsError(err)
			if e.Code != execution.InvalidRequest && e.Code != execution.TooLarge {
				t.Fatalf("%s: %v", body, err)
			}
			if text := EncodeError(e, nil); len(text) > execution.MaxErrorBytes || !json.Valid(text) {
				t.Fatalf("error text %q", text)
			}
			return
		}
		text, err := EncodeRequest(req)
		if err != nil {
			return // it grew beyond the limit: a digest alone became an object
		}
		again, second, err := Decode(function, text)
		if err != nil || again != action {
			t.Fatalf("%s became %s: %v", body, text, err)
		}
		if a, b := CommonOf(req), CommonOf(second); a.Digest != b.Digest || a.Hash != b.Hash {
			t.Fatalf("%s became %s: another identity", body, text)
		}
	})
}
