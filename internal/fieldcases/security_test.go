package fieldcases

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestX1TenantPrefixNesting(t *testing.T) {
	k := start(t)
	odd := []string{"acme", "/acme", "acme/", "//acme", "acme/resources", "acme#1", "acme_corp", "ACME", "acme ", " acme", "%61cme", "acme\x00", "acme.x", "acme-1", "Acme", "acme1", "a", "acme.", "acme#e", "acme~", "~purged", "acmé", "acme\n", strings.Repeat("a", 64), strings.Repeat("a", 65)}
	var ok, bad []string
	arts := map[string]string{}
	for _, tenant := range odd {
		k := k.as(tenant)
		_, f := k.try("create", object{"execution": "e1", "workflow": "wf", "thread": "T", "subjects": []any{"S"}, "labels": object{"l": "v"}, "state": object{"who": tenant}, "request_id": "r"})
		if f != nil {
			equal(t, f.code, "InvalidRequest", tenant)
			k.names(f, "tenant")
			bad = append(bad, tenant)
			continue
		}
		arts[tenant] = k.put("e1", "a", []byte(strings.Repeat(tenant, 50)))
		k.apply("e1", 1, object{"artifacts": []any{arts[tenant]}, "merge": object{"pad": noise(60_000)}})
		ok = append(ok, tenant)
	}
	equal(t, ok, []string{"acme", "acme_corp", "ACME", "acme.x", "acme-1", "Acme", "acme1", "a", "acme.", strings.Repeat("a", 64)}, "tenants taken")
	prefixes := map[string]bool{}
	for _, o := range k.rest().all["objects"].([]any) {
		prefix, _, _ := strings.Cut(o.(object)["key"].(string), "/")
		prefixes[prefix] = true
	}
	equal(t, len(prefixes), len(ok), "prefixes in the bucket")
	check := func(tenant string) {
		t.Helper()
		k := k.as(tenant)
		equal(t, k.state("e1").(object)["who"], any(tenant), "state of "+tenant)
		equal(t, string(k.artifact("e1", object{"digest": arts[tenant]})), strings.Repeat(tenant, 50), "artifact of "+tenant)
		for _, by := range []object{{"workflow": "wf"}, {"thread": "T"}, {"subject": "S"}, {"label": object{"l": "v"}}, {"status": "created"}} {
			got, _ := k.listed(by)
			equal(t, got, []string{"e1"}, fmt.Sprint(tenant, " list ", by))
		}
	}
	shapes := map[string][]string{}
	for _, tenant := range ok {
		check(tenant)
		shapes[tenant] = k.rest().shape(tenant)
	}
	for _, victim := range []string{"acme", "a"} {
		if !k.as(victim).purge(200) {
			t.Fatalf("purge of %s never done", victim)
		}
		k.as(victim).refused("get", object{"execution": "e1"}, gone...)
		ok = slices.DeleteFunc(ok, func(x string) bool { return x == victim })
		for _, tenant := range ok {
			check(tenant)
			equal(t, k.rest().shape(tenant), shapes[tenant], "items of "+tenant+" after the purge of "+victim)
		}
	}
	for _, tenant := range bad {
		k.as(tenant).refused("purge_tenant", object{}, "InvalidRequest")
	}
}

func TestX2JoinedKeyCollision(t *testing.T) {
	k := start(t)
	for n, s := range []string{"#", "/", ":", "|", "\n", "\\", "~", ".", "-", "_"} {
		type pair struct{ tenant, execution string }
		var made []pair
		for _, p := range []pair{{fmt.Sprint("A", n, s), "B"}, {fmt.Sprint("A", n), s + "B"}, {fmt.Sprint("A", n), "B"}} {
			_, f := k.as(p.tenant).try("create", object{"execution": p.execution, "workflow": "wf", "state": object{"canary": p.tenant + " " + p.execution}})
			if f != nil {
				equal(t, f.code, "InvalidRequest", fmt.Sprint(p))
				continue
			}
			made = append(made, p)
		}
		for _, p := range made {
			equal(t, k.as(p.tenant).state(p.execution), any(object{"canary": p.tenant + " " + p.execution}), fmt.Sprint(p))
		}
	}
	one, two := k.as("t1"), k.as("t2")
	digests, ops, fences, keysOf := map[string]string{}, map[string]string{}, map[string]int64{}, map[string]string{}
	for _, k := range []*kit{one, two} {
		tn := k.tenant
		r := k.create("e", object{"state": object{"canary": "of-" + tn}, "request_id": "r1", "thread": "T", "subjects": []any{"S"}})
		equal(t, r.at("replayed"), any(nil), "create replayed another tenant's")
		c := k.claim("e", "w-"+tn, 60, object{"request_id": "r2", "nonce": "n"})
		equal(t, c.at("replayed"), any(nil), "claim replayed another tenant's")
		fences[tn] = c.fence()
		digests[tn] = k.put("e", "a", []byte("artifact of-"+tn), object{"fence": c.fence(), "request_id": "r3"})
		a := k.apply("e", c.version(), object{"fence": c.fence(), "request_id": "r4", "artifacts": []any{digests[tn]}, "operations": []any{object{"name": "n", "args": object{"t": 1}, "key": "k"}}})
		equal(t, []any{a.at("replayed"), a.at("operations", 0, "disposition")}, []any{nil, "go"}, "apply")
		ops[tn], keysOf[tn] = a.str("operations", 0, "operation"), a.str("operations", 0, "provider_key")
		k.outcome("e", ops[tn], "succeeded", object{"result": object{"canary": "of-" + tn}, "request_id": "r5"})
		k.do("signal", object{"execution": "e", "name": "s", "key": "k", "body": "of-" + tn})
		k.policy("p", map[string]int{"t1": 1, "t2": 2}[tn])
		k.workflow("w-shared", object{"lease_seconds": map[string]int{"t1": 10, "t2": 20}[tn]})
		k.do("hold", object{"execution": "e", "hold": "h", "reason": "of-" + tn})
	}
	if keysOf["t1"] == keysOf["t2"] || ops["t1"] == ops["t2"] {
		t.Fatal("two tenants share an operation or a provider key")
	}
	for _, k := range []*kit{one, two} {
		other := map[string]string{"t1": "t2", "t2": "t1"}[k.tenant]
		for action, f := range map[string]object{"get": {"execution": "e"}, "history": {"execution": "e"}, "get_operation": {"execution": "e", "operation": ops[k.tenant]}, "list": {"thread": "T"},
			"holds": {"execution": "e"}, "get_policy": {"policy": "p"}, "get_workflow": {"workflow": "w-shared"}, "verify": {"execution": "e"}, "keys": {}, "receipts": {}} {
			if r := k.do(action, f); bytes.Contains(r.text, []byte("of-"+other)) || bytes.Contains(r.text, []byte("w-"+other)) {
				t.Fatalf("%s of %s shows %s: %.300s", action, k.tenant, other, r.text)
			}
		}
		equal(t, string(k.artifact("e", object{"name": "a"})), "artifact of-"+k.tenant, "artifact by name")
		k.refused("get_artifact", object{"execution": "e", "digest": digests[other]}, "NotFound")
		k.refused("get_operation", object{"execution": "e", "operation": ops[other]}, "NotFound")
		k.do("renew", object{"execution": "e", "owner": "w-" + k.tenant, "fence": fences[k.tenant], "lease_seconds": 60})
	}
	one.do("release_hold", object{"execution": "e", "hold": "h", "reason": "r"})
	one.reconcile("e", fences["t1"])
	one.complete("e", one.version("e"), fences["t1"])
	one.do("archive", object{"execution": "e"})
	equal(t, two.get("e").str("status"), "running", "t2 after t1's archive")
	one.delete("e")
	one.refused("get", object{"execution": "e"}, gone...)
	equal(t, two.get("e").at("state"), any(object{"canary": "of-t2"}), "t2 after t1's delete")
	equal(t, string(two.artifact("e", object{"digest": digests["t2"]})), "artifact of-t2", "t2's artifact after t1's delete")
	equal(t, len(two.do("receipts", object{}).list("receipts")), 0, "t1's receipt in t2")
}

var oddNames = []string{"../x", "a/../../b", "/abs", "a\\..\\b", "%2e%2e%2fx", ".", "..", "a//b", "project", "project/versions/readme.txt", "报告.pdf", "\U0001f600.png",
	"\u00e9.txt", "e\u0301.txt", strings.Repeat("é", 1000), strings.Repeat("é", 255), strings.Repeat("é", 256), "a\x00b", "trailing ", " leading", "a\nb", "a\rb", "\u202efdp.exe", strings.Repeat("n", 210), strings.Repeat("n", 218), strings.Repeat("n", 255),
	strings.Repeat("n", 256), "\x7f", "~", "#", "head", "j#00000000000000000001", "a\u0085b", "'; drop", "${x}", "{{x}}", "con", "nul.txt", "?versionId=x", "a&b=c"}

func TestX3ArtifactNameTraversal(t *testing.T) {
	k := start(t)
	k.create("e")
	v := int64(1)
	stored := map[string]string{}
	for n, name := range oddNames {
		body := []byte(fmt.Sprint("bytes of ", n))
		r, f := k.try("put_artifact", object{"execution": "e", "name": name, "media_type": "a/b", "body": body})
		if f != nil {
			equal(t, f.code, "InvalidRequest", fmt.Sprintf("name %.40q", name))
			k.names(f, "name")
			continue
		}
		equal(t, r.str("artifact", "name"), name, "the name stored")
		v = k.apply("e", v, object{"artifacts": []any{r.str("artifact", "digest")}}).version()
		stored[name] = string(body)
	}
	for _, must := range []string{"project", "project/versions/readme.txt", "报告.pdf", "\u00e9.txt", "e\u0301.txt", "../x", "trailing ", strings.Repeat("n", 255)} {
		if _, has := stored[must]; !has {
			t.Errorf("the name %q is refused", must)
		}
	}
	for _, never := range []string{"a\x00b", "a\nb", strings.Repeat("é", 1000), strings.Repeat("n", 256), "\x7f"} {
		if _, has := stored[never]; has {
			t.Errorf("the name %.40q is taken", never)
		}
	}
	for name, body := range stored {
		equal(t, string(k.artifact("e", object{"name": name})), body, fmt.Sprintf("by name %.40q", name))
	}
	listed := map[string]bool{}
	for _, a := range k.get("e").list("artifacts") {
		listed[a.(object)["name"].(string)] = true
	}
	equal(t, len(listed), len(stored), "names listed")
	for _, o := range k.rest().objects("", "") {
		_ = o
	}
	for _, o := range k.rest().all["objects"].([]any) {
		key := o.(object)["key"].(string)
		if !strings.HasPrefix(key, k.tenant+"/e/e/") || slices.Contains(strings.Split(key, "/"), "..") || len(key) > 1024 {
			t.Fatalf("an object outside the prefix: %.200q", key)
		}
	}
	k.run("in every other place", func(k *kit) {
		for n, name := range oddNames {
			for _, c := range []struct {
				action string
				object
			}{
				{"create", object{"execution": name, "workflow": "wf", "state": object{"n": n}}},
				{"create", object{"execution": fmt.Sprint("th", n), "workflow": "wf", "thread": name}},
				{"create", object{"execution": fmt.Sprint("wf", n), "workflow": name}},
				{"create", object{"execution": fmt.Sprint("su", n), "workflow": "wf", "subjects": []any{name}}},
				{"create", object{"execution": fmt.Sprint("la", n), "workflow": "wf", "labels": object{"l": name}}},
				{"claim", object{"execution": "e", "owner": name, "lease_seconds": 5}},
				{"record_outcome", object{"execution": "e", "operation": name, "outcome": "succeeded"}},
				{"signal", object{"execution": "e", "name": "s", "key": name}},
				{"signal", object{"execution": "e", "name": name, "key": "k"}},
				{"hold", object{"execution": "e", "hold": name, "reason": "r"}},
				{"hold", object{"subject": name, "hold": "h", "reason": "r"}},
				{"hold", object{"thread": name, "hold": "h", "reason": "r"}},
				{"set_policy", object{"policy": object{"name": name}}},
				{"get", object{"execution": name}}, {"list", object{"thread": name}}, {"list", object{"subject": name}},
			} {
				_, f := k.try(c.action, c.object)
				if f != nil {
					oneOf(k, f.code, []string{"InvalidRequest", "NotFound", "Deleted"}, fmt.Sprintf("%s with %.40q", c.action, name))
				}
				switch {
				case f == nil && c.action == "claim":
					equal(k, k.get("e").str("owner"), name, "owner")
					k.wait(6 * time.Second)
				case f == nil && c.action == "create" && c.object["execution"] == any(name):
					equal(k, k.state(name), any(object{"n": number(fmt.Sprint(n))}), "state")
				case f == nil && c.object["subjects"] != nil:
					got, _ := k.listed(object{"subject": name})
					equal(k, got, []string{fmt.Sprint("su", n)}, fmt.Sprintf("by subject %.40q", name))
				case f == nil && c.object["labels"] != nil:
					got, _ := k.listed(object{"label": object{"l": name}})
					equal(k, got, []string{fmt.Sprint("la", n)}, fmt.Sprintf("by label %.40q", name))
				}
			}
		}
		for _, o := range k.rest().all["objects"].([]any) {
			if key := o.(object)["key"].(string); !strings.HasPrefix(key, k.tenant+"/") {
				k.Fatalf("an object outside the tenant: %q", key)
			}
		}
		k.rest() // still a dump: every item has its place
	})
}

func TestX4NoTenantMeansEverything(t *testing.T) {
	k := start(t)
	k.create("e", object{"state": object{"canary": "mine"}, "claim": object{"owner": "w", "lease_seconds": 900}})
	k.workflow("w")
	before := k.rest().shape(k.tenant)
	for _, bad := range []any{omit{}, nil, "", 0, 1, true, []any{}, []any{k.tenant}, object{"$ne": ""}, object{}, "*", "%", ".*", " ", k.tenant + " ", k.tenant + "#e", "_", "-", raw(`"\ud800"`)} {
		k.mark()
		for _, v := range everyVerb("e") {
			f := k.refused(v.action, with(v.object, object{"tenant": bad}), "InvalidRequest")
			k.names(f, "tenant")
		}
		if log := k.log(); len(log) > 0 {
			t.Fatalf("tenant %v: %d storage calls, first %v", bad, len(log), log[0])
		}
	}
	for _, bad := range []any{nil, "", 0, object{"$ne": ""}, "*"} { // a sweep may leave it out, and only that
		k.refused("recover.sweep", object{"tenant": bad}, "InvalidRequest")
		k.refused("retention.sweep", object{"tenant": bad}, "InvalidRequest")
	}
	equal(t, k.rest().shape(k.tenant), before, "what lies at rest")
	k.run("another tenant's id is an id that does not exist", func(k *kit) {
		stranger := k.as("stranger")
		stranger.create("own")
		for _, v := range everyVerb("e") {
			if !v.execution || v.action == "delete" {
				continue
			}
			fixed := object{"request_id": omit{}}
			if !reads[v.action] {
				fixed = object{"request_id": "same"}
			}
			same := func(r reply, f *failure, id string) string {
				text, failed := r.text, f != nil
				if failed {
					text = f.text
				}
				return fmt.Sprint(failed, strings.NewReplacer(`\"`+id+`\"`, "ID", `"`+id+`"`, "ID").Replace(string(text)))
			}
			foreign, ff := stranger.try(v.action, with(v.object, fixed))
			nothing, nf := stranger.try(v.action, with(v.object, fixed, object{"execution": "x"}))
			equal(k, same(foreign, ff, "e"), same(nothing, nf, "x"), v.action+": a foreign id against none")
			if ff == nil && v.action != "holds" && v.action != "verify" {
				k.Fatalf("%s on a foreign id was accepted: %s", v.action, foreign.text)
			}
		}
		stranger.refused("delete", object{"execution": "e", "reason": "r"}, "NotFound")
	})
	for _, f := range []object{{"filter": object{"tenant": "acme"}}, {"tenant_idd": "acme"}, {"sort": "x"}, {"limit": 0}, {"limit": 1001}, {"limit": -1}, {"limit": "10"}, {"limit": 1.5}, {"cursor": "x"}, {"cursor": ""},
		{"idle_seconds": -1}, {"status": "running"}, {"Workflow": "wf"}, {"label": object{}}} {
		k.refused("list", with(object{"workflow": "wf"}, f), "InvalidRequest")
	}
	for _, f := range []object{{}, {"status": "Running"}, {"status": ""}, {"status": "*"}, {"status": "deleting"}, {"label": object{"a": "1", "b": "2"}}, {"subject": ""}} {
		k.refused("list", f, "InvalidRequest")
	}
	k.run("another tenant's cursor", func(k *kit) {
		for i := range 5 {
			k.create(fmt.Sprint("p", i), object{"thread": "T"})
			k.as("stranger").create(fmt.Sprint("q", i), object{"thread": "T"})
		}
		mine := k.do("list", object{"thread": "T", "limit": 2}).str("cursor")
		if mine == "" {
			k.Fatal("no cursor")
		}
		r, f := k.as("stranger").try("list", object{"thread": "T", "cursor": mine})
		if f != nil {
			equal(k, f.code, "InvalidRequest", "a foreign cursor")
		} else if bytes.Contains(r.text, []byte(`"p`)) {
			k.Fatalf("a foreign cursor shows %s", r.text)
		}
	})
	equal(t, k.state("e"), any(object{"canary": "mine"}), "the owner's state")
}

func TestX6SecretsInStateAndMetadata(t *testing.T) {
	k := start(t)
	const canary = "sk-canary-7f3a9911aa55"
	c := k.create("e", object{"state": object{"text": "harmless"}, "claim": object{"owner": "w", "lease_seconds": 86400}})
	o := k.declare("e", c.fence(), object{"key": "k"}).str("operation")
	// Whoever allows it has it sealed at rest, and in no error, log or metric.
	k.do("set_tenant", object{"settings": object{"secrets": "allow"}})
	k.wait(2 * time.Minute) // settings are remembered for a while
	v := k.apply("e", k.version("e"), object{"fence": c.fence(), "state": object{"api_key": canary, "pad": noise(80_000)}, "note": "key " + canary,
		"operations": []any{object{"name": "n", "args": object{"k": canary}, "key": "k2"}}}).version()
	k.outcome("e", o, "succeeded", object{"result": object{"k": canary}, "reason": canary, "provider_ref": canary})
	k.do("signal", object{"execution": "e", "name": "s", "key": "k", "body": object{"k": canary}})
	k.put("e", "a", []byte(strings.Repeat(canary, 3)), object{"fence": c.fence()})
	k.do("set_workflow", object{"workflow": object{"name": "w", "schema": object{"name": "s", "version": 1}}})
	for _, bad := range []struct {
		action string
		object
	}{
		{"apply", object{"expected_version": 99, "state": object{"k": canary}}},
		{"apply", object{"expected_version": v, "statee": object{"k": canary}}},
		{"apply", object{"expected_version": v, canary: 1}},
		{"apply", object{"expected_version": canary, "state": object{}}},
		{"apply", object{"expected_version": v, "patch": []any{object{"op": "test", "path": "/note", "value": canary}}}},
		{"apply", object{"expected_version": v, "patch": []any{object{"op": canary, "path": "/note"}}}},
		{"apply", object{"expected_version": v, "state": raw(`{"a":"` + canary + `","b":NaN}`)}},
		{"apply", object{"expected_version": v, "state": raw(`{"a":"` + canary + "\xff\"}")}},
		{"apply", object{"expected_version": v, "state": canary}},
		{"apply", object{"expected_version": v, "fence": 99, "state": object{"k": canary}}},
		{"apply", object{"expected_version": v, "operations": []any{object{"name": "n", "args": object{"k": canary + "other"}, "key": "k2"}}}},
		{"record_outcome", object{"operation": o, "outcome": canary}},
		{"record_outcome", object{"operation": "none", "outcome": "succeeded", "result": object{"k": canary}}},
		{"signal", object{"name": "s", "key": "k", "body": object{"k": canary + "other"}}},
		{"get", object{"version": canary}},
		{canary + "verb", nil},
	} {
		fields := with(object{"execution": "e", "fence": c.fence()}, bad.object)
		if bad.action != "apply" {
			delete(fields, "fence")
		}
		var f *failure
		if homes[bad.action] == "" {
			_, f = k.send("checkpoint", encode(object{"action": bad.action, "tenant": k.tenant}))
		} else {
			_, f = k.try(bad.action, fields)
		}
		if f == nil {
			t.Fatalf("%s %v was accepted", bad.action, fields)
		}
		if bytes.Contains(f.text, []byte("sk-canary")) && bad.object[canary] == nil { // an unknown field is named
			t.Fatalf("the error of %s shows it: %s", bad.action, f.text)
		}
		if f.code == "Internal" || f.code == crash {
			t.Fatalf("%s: %s", bad.action, f)
		}
	}
	for _, function := range []string{"recover", "retention"} {
		k.stream(function, object{"eventID": "x", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "1", "Keys": object{"pk": object{"S": k.tenant + "#e"}, "sk": object{"S": "timer#none"}}, "OldImage": object{"body": object{"S": canary}}}})
		k.stream(function, object{"eventID": "x", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "1", "OldImage": object{"body": object{"S": canary}}}})
	}
	for _, effect := range []string{"unavailable", "denied", "crash_after", "lost"} {
		k.faults(object{"on": "put", "effect": effect, "count": 1000})
		k.try("apply", object{"execution": "e", "expected_version": v, "fence": c.fence(), "state": object{"k": canary}})
		k.faults(object{"on": "put_object", "effect": effect, "count": 1000})
		k.try("apply", object{"execution": "e", "expected_version": v, "fence": c.fence(), "state": object{"k": canary, "pad": noise(80_000)}})
	}
	k.faults()
	k.wait(25 * time.Hour)
	k.sweeps(2)
	if d := k.rest(); d.finds("sk-canary") {
		i := bytes.Index(d.text, []byte("sk-canary"))
		t.Fatalf("the secret lies at rest or was said: ...%.300s", d.text[max(0, i-200):])
	}
	if !strings.Contains(fmt.Sprint(k.state("e")), canary) {
		t.Fatal("the tenant cannot read its own state")
	}
	k.as("other").refused("get", object{"execution": "e"}, "NotFound")
}

// What looks like a secret is refused by default, by its path.
func TestX6SecretsRefused(t *testing.T) {
	k := start(t)
	const canary = "sk-canary-7f3a9911aa55"
	fence := k.create("e", object{"claim": object{"owner": "w", "lease_seconds": 600}}).fence()
	v := k.version("e")
	before := k.rest().shape(k.tenant)
	for _, state := range []object{{"api_key": canary}, {"deep": []any{object{"password": "hunter2hunter2"}}}, {"aws": "AKIAABCDEFGHIJKLMNOP"}, {"h": object{"authorization": "Bearer abcdefghijklmnopqrstuvwxyz0123456789"}}} {
		for action, f := range map[string]object{
			"create": {"execution": "never", "workflow": "wf", "state": state},
			"apply":  {"execution": "e", "expected_version": v, "fence": fence, "merge": state},
		} {
			f := k.refused(action, f, "SecretRefused")
			if f.facts.str("path") == "" || bytes.Contains(f.text, []byte("hunter2")) || bytes.Contains(f.text, []byte("canary")) || bytes.Contains(f.text, []byte("AKIA")) {
				k.Fatalf("a refusal without a path, or with the value: %s", f)
			}
		}
	}
	equal(t, k.rest().shape(k.tenant), before, "what lies at rest after refusals")
	// Evidence is redacted, never refused, so that no outcome is lost.
	o := k.declare("e", fence, object{"key": "k"}).str("operation")
	k.outcome("e", o, "succeeded", object{"result": object{"api_key": canary, "n": 1}})
	if r := k.op("e", o); r.str("outcome") != "succeeded" || bytes.Contains(r.text, []byte(canary)) || r.at("result", "n") != any(number("1")) {
		t.Fatalf("evidence with a secret: %s", r.text)
	}
}

func TestX8KMSKeyDisabled(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	c := k.create("e", object{"state": object{"d": noise(300)}, "subjects": []any{"S"}, "claim": object{"owner": "w", "lease_seconds": 86400}})
	art := k.put("e", "a", []byte("artifact"), object{"fence": c.fence()})
	v := k.apply("e", c.version(), object{"fence": c.fence(), "artifacts": []any{art}}).version()
	k.create("free")
	for _, e := range []string{"gone", "ended"} {
		k.create(e, object{"policy": "p"})
		k.finish(e)
	}
	good := k.state("e")
	for _, effect := range []string{"key_disabled", "denied", "throttle", "unavailable"} {
		want := []string{"KeyUnavailable"}
		if effect == "throttle" || effect == "unavailable" {
			want = retryable
		}
		k.wait(3 * time.Hour)
		k.restart()
		k.faults(object{"on": "kms_decrypt", "effect": effect, "count": 1_000_000}, object{"on": "kms_generate", "effect": effect, "count": 1_000_000})
		raw := k.rest().raw(k.tenant, "e")
		shape := k.rest().shape(k.tenant)
		fields := map[string]object{
			"get": {}, "history": {}, "get_artifact": {"digest": art},
			"apply": {"expected_version": v, "fence": c.fence(), "state": object{"never": 1}}, "suspend": {"expected_version": v, "fence": c.fence(), "wait": object{}},
			"complete": {"expected_version": v, "fence": c.fence(), "outcome": "completed"}, "record_outcome": {"operation": "o", "outcome": "succeeded"}, "signal": {"name": "n", "key": effect, "body": "x"},
			"fork": {"at_version": 1, "new_execution": "forked"},
		}
		for _, action := range []string{"claim", "resume"} {
			f := k.refused(action, object{"execution": "free", "owner": "w2", "lease_seconds": 5}, want...)
			equal(t, f.facts.at("retryable"), any(true), "retryable")
		}
		for action, f := range fields {
			f := k.refused(action, with(f, object{"execution": "e"}), want...)
			equal(t, f.facts.at("retryable"), any(true), "retryable")
		}
		f := k.as("fresh").refused("create", object{"execution": "n", "workflow": "wf", "state": object{"s": "plain"}}, want...)
		equal(t, f.facts.at("retryable"), any(true), "retryable")
		equal(t, k.rest().shape("fresh"), []string{}, "items of a tenant without a key")
		equal(t, k.rest().raw(k.tenant, "e"), raw, effect+": raw items")
		equal(t, k.rest().shape(k.tenant), shape, effect+": shape")
		// Owners keep their lease, and what needs no body goes on.
		k.do("renew", object{"execution": "e", "owner": "w", "fence": c.fence(), "lease_seconds": 86400})
		k.do("hold", object{"execution": "e", "hold": "h", "reason": "r"})
		k.refused("delete", object{"execution": "e", "reason": "r"}, "Held")
		k.do("release_hold", object{"execution": "e", "hold": "h", "reason": "r"})
		k.sweeps(1)
		k.faults()
		equal(t, k.state("e"), good, effect+": state afterwards")
		equal(t, string(k.artifact("e", object{"digest": art})), "artifact", effect+": artifact afterwards")
		v = k.apply("e", v, object{"fence": c.fence(), "note": effect}).version()
	}
	k.restart()
	k.faults(object{"on": "kms_decrypt", "effect": "key_disabled", "count": 1_000_000}, object{"on": "kms_generate", "effect": "key_disabled", "count": 1_000_000})
	k.delete("gone")
	k.wait(3 * day)
	k.sweeps(3)
	k.refused("get", object{"execution": "ended"}, gone...)
	if !k.purge(200) {
		t.Fatal("never purged without the key")
	}
	equal(t, k.rest().shape(k.tenant), []string{}, "left after a purge without the key")
	k.faults()
	k.create("e", object{"state": object{"again": 1}})
	equal(t, k.state("e"), any(object{"again": number("1")}), "a new life")
}
