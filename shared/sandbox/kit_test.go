package sandbox_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/sandbox"
)

func TestClock(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	want(t, "health", d.kit("GET", "/sandbox/health", ""), `{"status":"ok"}`)
	want(t, "start", d.kit("GET", "/sandbox/clock", ""), `{"now":"2026-01-01T00:00:00.000Z"}`)
	want(t, "fraction", d.kit("POST", "/sandbox/clock", `{"advance_seconds":0.25}`), `{"now":"2026-01-01T00:00:00.250Z"}`)
	want(t, "zero", d.kit("POST", "/sandbox/clock", `{"advance_seconds":0}`), `{"now":"2026-01-01T00:00:00.250Z"}`)
	want(t, "400 days", d.kit("POST", "/sandbox/clock", `{"advance_seconds":34560000}`), `{"now":"2027-02-05T00:00:00.250Z"}`)
	for body, says := range map[string]string{
		`{"advance_seconds":-1}`:      "advance_seconds: the clock never goes back",
		`{"advance_seconds":1e30}`:    "advance_seconds: must be within",
		`{"advance_seconds":"5"}`:     "advance_seconds",
		`{"advance":1}`:               "advance",
		`{}`:                          "advance_seconds: required",
		``:                            "advance_seconds: required",
		`{"advance_seconds":1} {}`:    "more than one",
		`{"advance_seconds":1`:        "body",
		`[1]`:                         "body",
		`{"advance_seconds":1,"a":1}`: `\"a\"`,
	} {
		resp, text := d.http("POST", "/sandbox/clock", body)
		want(t, body, resp.StatusCode, 400)
		contains(t, body, text, `{"error":"`, says)
	}
	want(t, "unmoved", d.kit("GET", "/sandbox/clock", ""), `{"now":"2027-02-05T00:00:00.250Z"}`)
}

func TestRealTime(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{RealTime: true})
	before := d.kit("GET", "/sandbox/clock", "")
	eventually(t, "the clock runs", func() bool { return d.kit("GET", "/sandbox/clock", "") > before })
	now := d.kit("POST", "/sandbox/clock", `{"advance_seconds":3600}`)
	contains(t, "advanced", now, "2026-01-01T01:00:")
}

func TestFaultsAndLog(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	d.must("checkpoint", `{"action":"put","key":"head"}`)
	log := d.kit("GET", "/sandbox/log", "")
	contains(t, "log", log, `"call":"put"`, `"key":"t#e/head"`, `"outcome":"ok"`, `"write_units":1`)
	d.kit("POST", "/sandbox/log", `{"mark":true}`)
	want(t, "marked", d.kit("GET", "/sandbox/log", ""), `[]`)
	d.kit("POST", "/sandbox/faults", `[{"on":"put","effect":"unavailable","nth":2}]`)
	d.must("checkpoint", `{"action":"put","key":"a"}`)
	_, failed := d.call("checkpoint", `{"action":"put","key":"b"}`)
	want(t, "second put", failed, true)
	d.must("checkpoint", `{"action":"put","key":"c"}`)
	d.kit("POST", "/sandbox/faults", `[{"on":"kms_generate","effect":"key_disabled"}]`)
	text, _ := d.call("checkpoint", `{"action":"key"}`)
	contains(t, "kms fault", text, "KeyUnavailable")
	contains(t, "kms log", d.kit("GET", "/sandbox/log", ""), `"call":"kms_generate"`, `"key":"t#1"`)
	d.kit("POST", "/sandbox/faults", `[]`)
	d.must("checkpoint", `{"action":"key"}`)
	for path, bodies := range map[string][]string{
		"/sandbox/faults": {`[{"on":"nothing","effect":"lost"}]`, `[{"on":"put","effect":"nothing"}]`, `[{"on":"put","effect":"lost","n":1}]`, `{}`, `[{"on":"put","effect":"stale"}]`},
		"/sandbox/log":    {`{}`, `{"mark":false}`, `{"clear":true}`},
	} {
		for _, body := range bodies {
			resp, text := d.http("POST", path, body)
			want(t, path+body, resp.StatusCode, 400)
			contains(t, path+body, text, `"error"`)
		}
	}
}

// A dump of one sandbox makes another one the same, keys included; what was
// handed out and said is in it too.
func TestDumpAndLoad(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{Seed: "one"})
	d.must("checkpoint", `{"action":"put","key":"head"}`)
	d.must("checkpoint", `{"action":"key"}`)
	d.must("checkpoint", `{"action":"say"}`)
	d.must("checkpoint", `{"action":"start","key":"h1"}`)
	var object struct{ URL string }
	if err := json.Unmarshal([]byte(d.must("checkpoint", `{"action":"object","key":"t/e/o"}`)), &object); err != nil {
		t.Fatal(err)
	}
	want(t, "presigned", d.kit("GET", strings.TrimPrefix(object.URL, d.url), ""), "object t/e/o")
	d.kit("POST", "/sandbox/clock", `{"advance_seconds":30}`)
	dump := d.kit("GET", "/sandbox/dump", "")
	contains(t, "dump", dump, `"pk":{"S":"t#e"}`, `"key":"t/e/o"`, `"msg":"said"`, `"time":"2026-01-01T00:00:00.000Z"`, `"metrics":[{"m":1}]`,
		`"detail_type":"Contradiction","detail":{"operation":"o"}`, `"target":{"kind":"sandbox","arn":"worker"}`, `"outcome":"started"`, `"dead_letters":[]`)

	d.kit("POST", "/sandbox/reset", "{}")
	empty := d.kit("GET", "/sandbox/dump", "")
	contains(t, "reset", empty, `"items":[]`, `"objects":[]`, `"logs":[]`, `"metrics":[]`, `"events":[]`, `"handovers":[]`)
	d.kit("POST", "/sandbox/load", dump)
	want(t, "restored", d.kit("GET", "/sandbox/dump", ""), dump)
	want(t, "unwrapped", d.must("checkpoint", `{"action":"unwrap"}`), `{"bytes":32}`)

	other := open(t, sandbox.Options{Seed: "two"})
	if err := other.srv.Load(strings.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	want(t, "in another", other.kit("GET", "/sandbox/dump", ""), dump)
	want(t, "unwrapped in another", other.must("checkpoint", `{"action":"unwrap"}`), `{"bytes":32}`)
	contains(t, "known hand-over", other.must("checkpoint", `{"action":"start","key":"h1"}`), "existed")

	// One item is laid over the rest.
	d.kit("POST", "/sandbox/load", `{"items":[{"pk":"t#e","sk":"head","status":{"NULL":true}}]}`)
	after := d.kit("GET", "/sandbox/dump", "")
	contains(t, "overlaid", after, `"status":{"NULL":true}`, `"msg":"said"`, `"key":"t/e/o"`)
	for _, body := range []string{`{"items":[{"pk":7}]}`, `{"items":{}}`, `{"nothing":[]}`, `{"now":"yesterday"}`, `{"objects":[{"key":""}]}`} {
		resp, text := d.http("POST", "/sandbox/load", body)
		want(t, body, resp.StatusCode, 400)
		contains(t, body, text, `"error"`)
	}
	want(t, "after refused loads", d.kit("GET", "/sandbox/dump", ""), after)
}

func TestResetStartsFunctionsAnew(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	for _, path := range []string{"/sandbox/reset", "/sandbox/load"} {
		want(t, path, d.must("checkpoint", `{"action":"count"}`), `{"count":1}`)
		want(t, path, d.must("checkpoint", `{"action":"count"}`), `{"count":2}`)
		d.kit("POST", path, `{}`)
	}
	want(t, "after load", d.must("checkpoint", `{"action":"count"}`), `{"count":1}`)
}

func TestResolverScripts(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	d.kit("POST", "/sandbox/resolver", `{"name":"bank","script":[{"finding":"not_found"},"timeout",{"finding":"error"},"in_progress",{"finding":"found","count":1,"result":{"n":1.0}}]}`)
	for n, says := range []string{
		`{"finding":"not_found"}`, `{"failed":"context deadline exceeded"}`, `{"failed":"sandbox: the resolver answered with an error"}`,
		`{"finding":"in_progress"}`, `{"finding":"found","count":1,"result":{"n":1.0}}`, `{"finding":"found","count":1,"result":{"n":1.0}}`,
	} {
		want(t, string(rune('0'+n)), d.must("recover", `{"action":"ask","key":"bank"}`), says)
	}
	d.kit("POST", "/sandbox/faults", `[{"on":"resolver","match":"bank","effect":"unavailable"}]`)
	contains(t, "fault", d.must("recover", `{"action":"ask","key":"bank"}`), "failed")
	shown := d.kit("GET", "/sandbox/resolver?name=bank", "")
	want(t, "asked", strings.Count(shown, `"operation":"o"`), 6)
	contains(t, "asked", shown, `"name":"bank"`, `"at":"2026-01-01T00:00:00.000Z"`, `"attempt":1`, `"answer":"timeout"`)
	contains(t, "all", d.kit("GET", "/sandbox/resolver", ""), `{"resolvers":[{"name":"bank"`)
	contains(t, "unknown", d.must("recover", `{"action":"ask","key":"shop"}`), "failed")
	resp, _ := d.http("GET", "/sandbox/resolver?name=shop", "")
	want(t, "unknown", resp.StatusCode, 404)
	for _, body := range []string{`{}`, `{"name":"x"}`, `{"name":"x","script":[]}`, `{"script":["timeout"]}`, `{"name":"x","script":"timeout"}`} {
		resp, _ := d.http("POST", "/sandbox/resolver", body)
		want(t, body, resp.StatusCode, 400)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	start := func(key string) string { return d.must("recover", `{"action":"start","key":"`+key+`"}`) }
	token := func(key string) string { return d.must("recover", `{"action":"token","key":"`+key+`"}`) }
	contains(t, "first", start("a"), `"outcome":"started"`)
	contains(t, "again", start("a"), `"outcome":"existed"`)
	d.kit("POST", "/sandbox/faults", `[{"on":"target","match":"worker/b","effect":"lost"},{"on":"target","match":"worker/c","effect":"landed"},{"on":"target","match":"task_token","effect":"unavailable","nth":2}]`)
	contains(t, "lost", start("b"), `"failed":true`)
	contains(t, "after lost", start("b"), `"outcome":"started"`)
	contains(t, "landed", start("c"), `"failed":true`)
	contains(t, "after landed", start("c"), `"outcome":"existed"`)
	contains(t, "token", token("secret-1"), `"outcome":"started"`)
	contains(t, "token fault", token("secret-2"), `"failed":true`)
	contains(t, "token after fault", token("secret-2"), `"outcome":"started"`)
	contains(t, "used token", token("secret-1"), `"outcome":"gone"`)
	contains(t, "dead token", token("gone-1"), `"outcome":"gone"`)
	var dump struct {
		Handovers []struct {
			Target    *struct{ Kind, ARN string }
			TaskToken bool `json:"task_token"`
			Input     struct{ Execution string }
			At        string
			Outcome   string
		}
	}
	text := d.kit("GET", "/sandbox/dump", "")
	if err := json.Unmarshal([]byte(text), &dump); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "secret-") {
		t.Error("a task token is in the dump")
	}
	var outcomes []string
	for _, h := range dump.Handovers {
		want(t, "one of both", h.TaskToken, h.Target == nil)
		want(t, "input", h.Input.Execution, "e")
		outcomes = append(outcomes, h.Outcome)
	}
	want(t, "outcomes", strings.Join(outcomes, " "), "started existed failed started timeout existed started failed started gone gone")
}

func TestOnlyCallersOnThisMachine(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	for _, tc := range []struct {
		host, origin string
		status       int
	}{
		{"", "", 200}, {"localhost:80", "", 200}, {"[::1]:80", "", 200}, {"127.0.0.1", "http://localhost:3000", 200},
		{"evil.example", "", 403}, {"127.0.0.1.evil.example", "", 403}, {"", "https://evil.example", 403}, {"", "null", 403},
	} {
		r, err := http.NewRequest("GET", d.url+"/sandbox/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.host != "" {
			r.Host = tc.host
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want(t, tc.host+" "+tc.origin, resp.StatusCode, tc.status)
	}
}

func TestListenBeyondLoopback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		address string
		allow   bool
		refused bool
	}{
		{"127.0.0.1:0", false, false}, {"localhost:0", false, false}, {"0.0.0.0:0", false, true}, {":0", false, true}, {"0.0.0.0:0", true, false}, {"nonsense", true, true},
	} {
		s, err := sandbox.New(sandbox.Options{Build: (&fake{}).build, AllowRemote: tc.allow})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Listen(tc.address)
		want(t, tc.address, err != nil, tc.refused)
		if err == nil {
			contains(t, tc.address, sandbox.URL(l), "http://127.0.0.1:")
			l.Close()
		}
	}
}
