package fieldcases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// numbers no double holds, and some whose spelling a careless trip changes.
const numbers = `{"nanos":1556893286484340854,"above_double":9007199254740993,"max":9223372036854775807,"min":-9223372036854775808,"past_max":9223372036854775808,` +
	`"unsigned":10000000000000000999,"nanos2":1570726625494837000,"exp":1.23e+40,"digits41":12345678901234567890123456789012345678901,"one":1,"one0":1.0,"neg0":-0,"cents":0.10,"small":1E-9999,"long":0.1000000000000000055511151231257827021181583404541015625}`

// migrate3 brings version 1 to 3: a field with its default, a renamed field.
var migrate3 = []any{
	object{"from": 1, "to": 2, "patch": []any{object{"op": "add", "path": "/retries", "value": 3}}},
	object{"from": 2, "to": 3, "patch": []any{object{"op": "move", "from": "/thread_id", "path": "/thread"}}},
}

func TestD1Int64Exact(t *testing.T) {
	k := start(t)
	want := exactly(t, []byte(numbers))
	k.run("state", func(k *kit) {
		exactState(k)
	})
	k.run("input, result, error, waiting_for, resume", func(k *kit) {
		k.create("in", object{"input": raw(numbers)})
		equal(k, k.get("in").at("input"), want, "input")
		c := k.claim("in", "w", 60, object{"resume": raw(numbers)})
		equal(k, c.at("resume"), want, "resume in the owner's view")
		k.do("suspend", object{"execution": "in", "expected_version": c.version(), "fence": c.fence(), "wait": object{"waiting_for": raw(numbers)}})
		equal(k, k.get("in").at("wait", "waiting_for"), want, "waiting_for")
		found := false
		for _, e := range k.history("in") {
			if r := e.(object)["resume"]; r != nil {
				equal(k, r, want, "resume in the history")
				found = true
			}
		}
		if !found {
			k.Fatal("the history does not show the resume value")
		}
		c = k.claim("in", "w", 60)
		k.complete("in", c.version(), c.fence(), object{"result": raw(numbers)})
		equal(k, k.get("in").at("result"), want, "result")
		c = k.create("bad", object{"claim": object{"owner": "w", "lease_seconds": 60}})
		k.complete("bad", c.version(), c.fence(), object{"outcome": "failed", "error": raw(numbers)})
		equal(k, k.get("bad").at("error"), want, "error")
	})
	k.run("operations", func(k *kit) {
		c := k.create("op", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		a := k.declare("op", c.fence(), object{"args": raw(numbers), "key": "a"}).str("operation")
		equal(k, k.op("op", a).at("intent", "args"), want, "args")
		k.outcome("op", a, "succeeded", object{"result": raw(numbers)})
		equal(k, k.op("op", a).at("result"), want, "record_outcome")
		b := k.declare("op", c.fence(), object{"key": "b"}).str("operation")
		k.apply("op", k.version("op"), object{"fence": c.fence(), "outcomes": []any{object{"operation": b, "outcome": "succeeded", "result": raw(numbers)}}})
		equal(k, k.op("op", b).at("result"), want, "apply(outcomes)")
		d := k.declare("op", c.fence(), object{"key": "d"}).str("operation")
		k.reconcile("op", c.fence(), object{"operation": d, "finding": "found", "result": raw(numbers)})
		equal(k, k.op("op", d).at("result"), want, "reconcile(evidence)")
		k.drain("op", c.fence())
		again := k.declare("op", c.fence(), object{"args": raw(numbers), "key": "a"})
		equal(k, again.at("disposition"), any("settled"), "declared again")
		equal(k, again.at("result"), want, "the settled result")
	})
	k.run("signal", func(k *kit) {
		c := k.create("sig", object{"claim": object{"owner": "w", "lease_seconds": 900}})
		k.do("signal", object{"execution": "sig", "name": "n", "key": "k", "body": raw(numbers)})
		equal(k, k.get("sig").at("inbox", 0, "body"), want, "inbox")
		_ = c
	})
	k.run("budgets", func(k *kit) {
		c := k.create("bud", object{"budgets": object{"eur": object{"limit": number("9007199254740993.01")}}, "claim": object{"owner": "w", "lease_seconds": 60}})
		k.apply("bud", c.version(), object{"fence": c.fence(), "spend": object{"eur": number("9007199254740993.00")}})
		equal(k, k.get("bud").at("budgets", "eur", "limit"), any(number("9007199254740993.01")), "limit")
		k.refused("apply", object{"execution": "bud", "expected_version": 2, "fence": c.fence(), "spend": object{"eur": number("0.02")}}, "BudgetExceeded")
		k.apply("bud", 2, object{"fence": c.fence(), "spend": object{"eur": number("0.01")}})
	})
	k.run("hand-over, sweep and takeover", func(k *kit) {
		wf := k.workflow("moved", object{"resume_target": object{"kind": "sandbox", "arn": "target"}})
		k.create("ho", wf, object{"state": raw(numbers), "claim": object{"owner": "w", "lease_seconds": 30}})
		k.wait(2 * time.Minute)
		k.sweeps(1)
		k.claim("ho", "w2", 60)
		equal(k, k.state("ho"), want, "state after a takeover")
	})
	k.run("migrate", func(k *kit) {
		k.create("mig", k.workflow("wm"), object{"state": raw(`{"d":` + numbers + `,"thread_id":1.0}`)})
		k.do("set_workflow", object{"workflow": object{"name": "wm", "schema": object{"name": "s", "version": 3}, "migrations": migrate3}})
		k.do("migrate", object{"workflow": "wm", "to": 3})
		equal(k, k.state("mig"), exactly(k, []byte(`{"d":`+numbers+`,"thread":1.0,"retries":3}`)), "state after migrate")
	})
	k.run("archive and restore", func(k *kit) {
		k.create("arc", object{"state": raw(numbers)})
		k.finish("arc")
		k.do("archive", object{"execution": "arc"})
		equal(k, k.state("arc"), want, "archived state")
		k.do("restore", object{"execution": "arc"})
		equal(k, k.state("arc"), want, "restored state")
	})
	k.run("fork", func(k *kit) {
		v := k.create("fo", object{"state": raw(numbers)}).version()
		k.do("fork", object{"execution": "fo", "at_version": v, "new_execution": "fo2"})
		equal(k, k.state("fo2"), want, "state of a fork")
	})
}

// exactState sends the numbers through every way into a state.
func exactState(k *kit) {
	want := exactly(k, []byte(numbers))
	v := k.create("d1", object{"state": raw(numbers)}).version()
	equal(k, k.state("d1"), want, "create")
	v = k.apply("d1", v, object{"state": raw(`{"s":` + numbers + `}`)}).version()
	v = k.apply("d1", v, object{"patch": raw(`[{"op":"add","path":"/p","value":` + numbers + `}]`)}).version()
	v = k.apply("d1", v, object{"merge": raw(`{"m":` + numbers + `}`)}).version()
	equal(k, k.state("d1"), exactly(k, []byte(`{"s":`+numbers+`,"p":`+numbers+`,"m":`+numbers+`}`)), "state, patch and merge")
	// Enough small steps for a snapshot to come between.
	for i := range 40 {
		v = k.apply("d1", v, object{"merge": raw(fmt.Sprintf(`{"pad":%q,"i":%d.0}`, noise(9000), i))}).version()
	}
	got := k.state("d1").(object)
	equal(k, got["s"], want, "behind a snapshot")
	equal(k, got["i"], any(number("39.0")), "the last step")
	equal(k, k.state("d1", object{"version": 2}), exactly(k, []byte(`{"s":`+numbers+`}`)), "an older version")
}

// corpus finds the parser corpus beside the repository.
func corpus(t testing.TB) string {
	for _, dir := range []string{os.Getenv("CAIRN_JSONTESTSUITE"), filepath.Join("..", "..", "..", "shared", "data", "jsontestsuite")} {
		if s, err := os.Stat(filepath.Join(dir, "test_transform")); dir != "" && err == nil && s.IsDir() {
			return dir
		}
	}
	fmt.Fprintf(os.Stderr, "SKIP %d (no parser corpus beside the repository): %s\n", skipped.Add(1), t.Name())
	t.SkipNow()
	return ""
}

func TestD2JSONTokenCorpus(t *testing.T) {
	k := start(t)
	k.run("tokens", func(k *kit) {
		for i, text := range []string{`[1.0]`, `[1]`, `[1E6]`, `[1e6]`, `[1.000000000000000005]`, `[10000000000000000999]`, `[1E-999]`, `{"\u00e9":"c","e\u0301":"d"}`, `[-0,0,-0.0,0e0]`, `["\/","/","\u002f"]`} {
			execution := fmt.Sprintf("t%d", i)
			k.create(execution, object{"state": raw(`{"v":` + text + `}`)})
			equal(k, k.state(execution), exactly(k, []byte(`{"v":`+text+`}`)), text)
		}
		for i, text := range []string{`{"a":1,"a":2}`, `{"a":0, "a":-0}`, `{"a":1,"\u0061":2}`, `{"x":[{"b":{},"b":{}}]}`} {
			execution := fmt.Sprintf("dup%d", i)
			f := k.refused("create", object{"execution": execution, "workflow": "wf", "state": raw(`{"v":` + text + `}`)}, "InvalidRequest")
			if f.facts.str("path") == "" {
				k.Fatalf("%s is refused without a path: %s", text, f)
			}
			k.refused("get", object{"execution": execution}, "NotFound")
		}
	})
	k.run("corpus", func(k *kit) {
		dir := corpus(k)
		n := 0
		for _, folder := range []string{"test_transform", "test_parsing"} {
			files, err := os.ReadDir(filepath.Join(dir, folder))
			if err != nil {
				k.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(dir, folder, file.Name()))
				if err != nil {
					k.Fatal(err)
				}
				n++
				tokens(k, fmt.Sprintf("f%d", n), folder+"/"+file.Name(), text)
			}
		}
		if n < 300 {
			k.Fatalf("only %d files", n)
		}
	})
	k.create("after", object{"state": raw(`{"a":1,"b":1.0}`)})
	equal(t, k.state("after"), exactly(t, []byte(`{"a":1,"b":1.0}`)), "1 and 1.0 side by side")
}

// tokens sends one file as a state: the same tokens come back, or a refusal.
func tokens(k *kit, execution, name string, text []byte) {
	k.Helper()
	base := filepath.Base(name)
	_, f := k.try("create", object{"execution": execution, "workflow": "wf", "state": raw(`{"v":` + string(text) + `}`)})
	must := strings.HasPrefix(base, "y_") && !strings.Contains(base, "duplicated_key") ||
		slices.Contains([]string{"number_1.0.json", "number_1e6.json", "object_key_nfc_nfd.json", "object_key_nfd_nfc.json"}, base)
	switch {
	case f == nil && strings.HasPrefix(base, "n_") && base != "n_structure_whitespace_formfeed.json":
		k.Fatalf("%s was accepted", name)
	case f == nil:
		equal(k, k.state(execution), exactly(k, []byte(`{"v":`+string(text)+`}`)), name)
	case must:
		k.Fatalf("%s was refused: %s", name, f)
	default:
		equal(k, f.code, "InvalidRequest", name)
		k.refused("get", object{"execution": execution}, "NotFound")
	}
}

func TestD3NULCharacter(t *testing.T) {
	k := start(t)
	const text = `{"messages":[["human","what is \u0000 here"]],"lit":"C:\\u0000\\x","k\u0000ey":1,"nul":"\u0000","six":"\\u0000"}`
	want := exactly(t, []byte(text))
	v := k.create("e", object{"state": raw(text), "input": raw(text)}).version()
	equal(t, k.state("e"), want, "create")
	equal(t, k.get("e").at("input"), want, "input")
	k.apply("e", v, object{"state": raw(text)})
	equal(t, k.state("e"), want, "apply")
	for _, bad := range []string{"a\x00b", "\x00", "a\x00"} {
		for _, c := range []struct {
			action string
			object
		}{
			{"create", object{"execution": bad, "workflow": "wf"}},
			{"create", object{"execution": "n", "workflow": bad}},
			{"create", object{"execution": "n", "workflow": "wf", "request_id": bad}},
			{"create", object{"execution": "n", "workflow": "wf", "tenant": bad}},
			{"create", object{"execution": "n", "workflow": "wf", "thread": bad}},
			{"create", object{"execution": "n", "workflow": "wf", "subjects": []any{bad}}},
			{"create", object{"execution": "n", "workflow": "wf", "labels": object{bad: "x"}}},
			{"put_artifact", object{"execution": "e", "name": bad, "media_type": "text/plain", "body": "AAAA"}},
			{"apply", object{"execution": "e", "expected_version": 2, "operations": []any{object{"name": "n", "args": object{}, "key": bad}}}},
			{"apply", object{"execution": "e", "expected_version": 2, "operations": []any{object{"name": bad, "args": object{}}}}},
			{"apply", object{"execution": "e", "expected_version": 2, "task": bad}},
			{"claim", object{"execution": "e", "owner": bad, "lease_seconds": 60}},
			{"signal", object{"execution": "e", "name": "n", "key": bad}},
			{"hold", object{"execution": "e", "hold": bad, "reason": "r"}},
		} {
			k.refused(c.action, c.object, "InvalidRequest")
		}
	}
	k.refused("get", object{"execution": "n"}, "NotFound")
	equal(t, k.version("e"), int64(2), "version at the end")
}

func TestD5NaNInfinity(t *testing.T) {
	k := start(t)
	v := k.create("e", object{"state": raw(`{"s":0}`)}).version()
	bad := []string{`NaN`, `Infinity`, `-Infinity`, `+1`, `nan`, `inf`, `0x10`, `1_000`, `.5`, `5.`, `1e10000`, `1e-10000`, `0e99999999999`}
	for _, lit := range bad {
		for _, f := range []object{{"state": raw(`{"score":` + lit + `}`)}, {"merge": raw(`{"score":` + lit + `}`)}, {"patch": raw(`[{"op":"add","path":"/x","value":` + lit + `}]`)},
			{"operations": raw(`[{"name":"n","args":{"a":` + lit + `}}]`)}} {
			k.refused("apply", with(f, object{"execution": "e", "expected_version": v}), "InvalidRequest")
		}
		k.refused("create", object{"execution": "n", "workflow": "wf", "input": raw(lit)}, "InvalidRequest")
		k.refused("record_outcome", object{"execution": "e", "operation": "o1", "outcome": "succeeded", "result": raw(lit)}, "InvalidRequest")
		k.refused("signal", object{"execution": "e", "name": "n", "key": "k", "body": raw(lit)}, "InvalidRequest")
		equal(t, k.version("e"), v, "version after "+lit)
	}
	v = k.apply("e", v, object{"state": raw(`{"score":1e400,"big":1e9999}`)}).version()
	equal(t, k.state("e"), exactly(t, []byte(`{"score":1e400,"big":1e9999}`)), "an exponent that a double has not")
	const last = `{"score":"NaN","s2":"Infinity","z":null}`
	equal(t, k.apply("e", v, object{"state": raw(last)}).version(), v+1, "next version")
	equal(t, k.state("e"), exactly(t, []byte(last)), "strings stay strings")
}

func nested(depth int) string {
	return strings.Repeat(`{"n":`, depth) + "1" + strings.Repeat("}", depth)
}

func TestD7NestingDepth(t *testing.T) {
	k := start(t)
	for _, depth := range []int{31, 32, 33, 100, 499, 500} {
		execution := fmt.Sprintf("d%d", depth)
		k.create(execution, object{"state": raw(nested(depth))})
		equal(t, k.state(execution), exactly(t, []byte(nested(depth))), execution)
	}
	codes := map[string]bool{}
	for _, depth := range []int{501, 9_999, 100_000} {
		for _, body := range []string{nested(depth), `{"v":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`, `{"v":` + strings.Repeat("[", depth)} {
			began := time.Now()
			codes[k.refused("create", object{"execution": "x", "workflow": "wf", "state": raw(body)}, "InvalidRequest").code] = true
			if took := time.Since(began); took > 5*time.Second {
				t.Fatalf("depth %d is refused after %v", depth, took)
			}
		}
	}
	// What grows too deep by a patch or a merge.
	v := k.create("grow", object{"state": raw(nested(400))}).version()
	at := strings.Repeat("/n", 399)
	k.refused("apply", object{"execution": "grow", "expected_version": v, "patch": []any{object{"op": "add", "path": at + "/x", "value": raw(nested(200))}}}, "InvalidRequest", "TooLarge")
	k.refused("apply", object{"execution": "grow", "expected_version": v, "patch": []any{object{"op": "copy", "from": "/n", "path": at + "/x"}}}, "InvalidRequest", "TooLarge")
	equal(t, k.version("grow"), v, "version after refusals")
	k.refused("get", object{"execution": "x"}, "NotFound")
	k.create("after", object{"state": raw(`{"ok":1}`)})
	equal(t, k.state("after"), exactly(t, []byte(`{"ok":1}`)), "a normal call afterwards")
}

func TestD8EmptyValues(t *testing.T) {
	k := start(t)
	const text = `{"a":"","":"empty key","list":[],"obj":{},"nul":null,"arr":["",null,{},[]]}`
	v := k.create("e", object{"state": raw(text)}).version()
	equal(t, k.state("e"), exactly(t, []byte(text)), "create")
	v = k.apply("e", v, object{"merge": raw(`{"more":"","e":{},"":"","deep":{"x":{}}}`)}).version()
	want := exactly(t, []byte(text)).(object)
	want["more"], want["e"], want[""], want["deep"] = "", object{}, "", object{"x": object{}}
	equal(t, k.state("e"), any(want), "merge")
	v = k.apply("e", v, object{"state": raw(`{}`)}).version()
	equal(t, k.state("e"), any(object{}), "the empty state")
	k.apply("e", v, object{"patch": raw(`[{"op":"add","path":"/","value":null},{"op":"test","path":"/","value":null}]`)})
	equal(t, k.state("e"), any(object{"": nil}), "an empty key by patch")
	c := k.create("op", object{"claim": object{"owner": "w", "lease_seconds": 60}})
	for i, v := range []string{`""`, `null`, `[]`, `{}`, `false`, `0`} {
		o := k.declare("op", c.fence(), object{"key": fmt.Sprint(i), "args": raw(v)}).str("operation")
		k.outcome("op", o, "succeeded", object{"result": raw(v)})
		r := k.op("op", o)
		equal(t, r.at("intent", "args"), exactly(t, []byte(v)), "args "+v)
		got, has := r.object["result"]
		if !has {
			t.Fatalf("the result %s became none", v)
		}
		equal(t, got, exactly(t, []byte(v)), "result "+v)
	}
	before := k.rest().shape(k.tenant)
	for _, c := range []struct {
		field, action string
		object
	}{
		{"tenant", "create", object{"tenant": "", "execution": "n", "workflow": "wf"}},
		{"execution", "create", object{"execution": "", "workflow": "wf"}},
		{"workflow", "create", object{"execution": "n", "workflow": ""}},
		{"thread", "create", object{"execution": "n", "workflow": "wf", "thread": ""}},
		{"request_id", "create", object{"execution": "n", "workflow": "wf", "request_id": ""}},
		{"name", "put_artifact", object{"execution": "e", "name": "", "media_type": "a/b", "body": "AAAA"}},
		{"media_type", "put_artifact", object{"execution": "e", "name": "n", "media_type": "", "body": "AAAA"}},
		{"owner", "claim", object{"execution": "e", "owner": "", "lease_seconds": 30}},
		{"nonce", "claim", object{"execution": "e", "owner": "w", "nonce": "", "lease_seconds": 30}},
		{"key", "apply", object{"execution": "e", "expected_version": 5, "operations": []any{object{"name": "n", "args": object{}, "key": ""}}}},
		{"name", "signal", object{"execution": "e", "name": "", "key": "k"}},
		{"key", "signal", object{"execution": "e", "name": "n", "key": ""}},
		{"operation", "record_outcome", object{"execution": "e", "operation": "", "outcome": "succeeded"}},
		{"hold", "hold", object{"execution": "e", "hold": "", "reason": "r"}},
		{"reason", "delete", object{"execution": "e", "reason": ""}},
		{"execution", "delete", object{"execution": "", "reason": "r"}},
		{"thread", "list", object{"thread": ""}},
	} {
		f := k.refused(c.action, c.object, "InvalidRequest")
		k.names(f, c.field)
	}
	equal(t, k.rest().shape(k.tenant), before, "what lies at rest after refusals")
}
