package fieldcases

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

var skipped, serial atomic.Int64

// inline is asked for where a whole body is wanted in one reply.
const inline = 5_500_000

const day = 24 * time.Hour

// crash is the error type of an invocation that died.
const crash = "Runtime.ExitError"

// kit is one test's caller, with a tenant of its own.
type kit struct {
	testing.TB
	tenant string
	skew   time.Duration // of the caller's function's host clock
	// invoke calls a function; failed says that the payload is an error.
	invoke func(function string, request []byte) (payload []byte, failed bool)
	// wait lets time pass at the store.
	wait func(d time.Duration)
	// sandbox is its base URL; "" on an engine.
	sandbox string
}

// start opens a sandbox for one test.
func start(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	s, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions, Seed: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	s.Engine().SetBaseURL(server.URL + "/sandbox/objects/")
	k := &kit{TB: t, tenant: "t" + strconv.FormatInt(serial.Add(1), 10), sandbox: server.URL}
	k.invoke = k.post
	k.wait = func(d time.Duration) { k.tool("clock", object{"advance_seconds": d.Seconds()}) }
	return k
}

// as gives the same kit for a subtest or another tenant.
func (k *kit) as(tenant string) *kit {
	other := *k
	other.tenant = tenant
	return &other
}

func (k *kit) run(name string, f func(k *kit)) {
	t := k.TB.(*testing.T)
	t.Helper()
	t.Run(name, func(t *testing.T) {
		sub := *k
		sub.TB = t
		if k.sandbox != "" {
			sub.invoke = sub.post
			sub.wait = func(d time.Duration) { sub.tool("clock", object{"advance_seconds": d.Seconds()}) }
		}
		f(&sub)
	})
}

func (k *kit) http(method, url string, body []byte, header ...string) (int, http.Header, []byte) {
	k.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		k.Fatal(err)
	}
	return resp.StatusCode, resp.Header, got
}

// post invokes a function through the sandbox's door.
func (k *kit) post(function string, request []byte) ([]byte, bool) {
	k.Helper()
	status, header, got := k.http("POST", k.sandbox+"/2015-03-31/functions/"+function+"/invocations", request, sandbox.SkewHeader, strconv.FormatFloat(k.skew.Seconds(), 'f', -1, 64))
	if status == http.StatusRequestEntityTooLarge {
		return []byte(`{"errorType":"TooLarge","errorMessage":"{\"code\":\"TooLarge\",\"message\":\"HTTP 413\",\"retryable\":false}"}`), true
	}
	if status != http.StatusOK {
		k.Fatalf("%s: HTTP %d %.300s", function, status, got)
	}
	return got, header.Get("X-Amz-Function-Error") != ""
}

// tool calls the sandbox's kit.
func (k *kit) tool(path string, body any) any {
	k.Helper()
	method, text := "POST", []byte(nil)
	if body == nil {
		method = "GET"
	} else {
		text = encode(body)
	}
	status, _, got := k.http(method, k.sandbox+"/sandbox/"+path, text)
	if status != http.StatusOK {
		k.Fatalf("%s %s: HTTP %d %.300s", method, path, status, got)
	}
	return exactly(k, got)
}

func (k *kit) faults(faults ...object) {
	k.Helper()
	list := []any{}
	for _, f := range faults {
		list = append(list, f)
	}
	k.tool("faults", list)
}

// deliver hands pending stream records and due schedules to the functions.
func (k *kit) deliver() { k.Helper(); k.tool("run", object{}) }

// sweeps is what schedules and stream would do, several times.
func (k *kit) sweeps(n int) {
	k.Helper()
	for range n {
		k.deliver()
		k.try("recover.sweep", object{})
		k.try("retention.sweep", object{})
	}
}

func (k *kit) now() string { k.Helper(); return k.tool("clock", nil).(object)["now"].(string) }

func (k *kit) mark() { k.Helper(); k.tool("log", object{"mark": true}) }

func (k *kit) log() []any { k.Helper(); return k.tool("log", nil).([]any) }

// units are the capacity units since the mark.
func (k *kit) units() float64 {
	k.Helper()
	sum := 0.0
	for _, c := range k.log() {
		for _, name := range []string{"read_units", "write_units"} {
			if n, ok := c.(object)[name].(number); ok {
				f, _ := strconv.ParseFloat(string(n), 64)
				sum += f
			}
		}
	}
	return sum
}

// reply is an answer of a function.
type reply struct {
	t    testing.TB
	text []byte
	object
}

// at walks into the reply by names and places.
func (r reply) at(path ...any) any {
	var v any = r.object
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(object)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (r reply) int(path ...any) int64 {
	n, ok := r.at(path...).(number)
	v, err := strconv.ParseInt(string(n), 10, 64)
	if !ok || err != nil {
		return -1
	}
	return v
}

func (r reply) str(path ...any) string { s, _ := r.at(path...).(string); return s }

func (r reply) list(path ...any) []any { l, _ := r.at(path...).([]any); return l }

func (r reply) version() int64 { return r.int("version") }
func (r reply) fence() int64   { return r.int("fence") }

// failure is a definite error.
type failure struct {
	code  string
	facts reply
	text  []byte
}

func (f *failure) String() string {
	if f == nil {
		return "no error"
	}
	return f.code + " " + string(f.facts.text)
}

// retryable codes are those that a fault of the stores may surface as.
var retryable = []string{"Throttled", "Unavailable", "KeyUnavailable"}

var homes = func() map[string]string {
	out := map[string]string{}
	for _, v := range api.Verbs {
		if out[v.Action] == "" {
			out[v.Action] = v.Function
		}
		out[v.Function+"."+v.Action] = v.Function
	}
	return out
}()

var reads = func() map[string]bool {
	out := map[string]bool{}
	for _, v := range api.Verbs {
		out[v.Action] = v.ReadOnly
	}
	return out
}()

// omit leaves a field out of a request that would get it.
type omit struct{}

// request completes a request: action, tenant, and for writing verbs a fresh
// request_id (for claims the same nonce).
func (k *kit) request(action string, fields object) (string, []byte) {
	k.Helper()
	function := homes[action]
	if function == "" {
		k.Fatalf("no verb %s", action)
	}
	if _, bare, ok := strings.Cut(action, "."); ok {
		action = bare
	}
	req := object{"action": action, "tenant": k.tenant}
	if !reads[action] {
		req["request_id"] = "q" + strconv.FormatInt(serial.Add(1), 10)
	}
	for name, v := range fields {
		req[name] = v
	}
	if _, has := req["nonce"]; !has && (action == "claim" || action == "resume") {
		req["nonce"] = req["request_id"]
	}
	for name, v := range req {
		if v == (omit{}) {
			delete(req, name)
		}
	}
	return function, encode(req)
}

// try calls a verb: a reply, or the definite error that it gave.
func (k *kit) try(action string, fields object) (reply, *failure) {
	k.Helper()
	function, request := k.request(action, fields)
	return k.send(function, request)
}

// send invokes a function with a request as it is.
func (k *kit) send(function string, request []byte) (reply, *failure) {
	k.Helper()
	payload, failed := k.invoke(function, request)
	v, ok := exactly(k, payload).(object)
	if !ok {
		k.Fatalf("%s: no object: %.200s", function, payload)
	}
	if !failed {
		return reply{t: k, text: payload, object: v}, nil
	}
	code, message := v["errorType"].(string), v["errorMessage"].(string)
	if strings.HasPrefix(code, "Runtime.") || strings.HasPrefix(code, "Function.") {
		return reply{}, &failure{code: code, facts: reply{t: k, text: []byte(message)}, text: payload}
	}
	facts, ok := exactly(k, []byte(message)).(object)
	if !ok || facts["code"] != any(code) || reflect.TypeOf(facts["retryable"]) != reflect.TypeOf(true) || len(message) > 8192 {
		k.Fatalf("%s: an error that is none of the contract: %.400s", function, payload)
	}
	return reply{}, &failure{code: code, facts: reply{t: k, text: []byte(message), object: facts}, text: payload}
}

// do calls a verb that must succeed.
func (k *kit) do(action string, fields object) reply {
	k.Helper()
	r, f := k.try(action, fields)
	if f != nil {
		k.Fatalf("%s %.200s: %.600s", action, encode(fields), f)
	}
	return r
}

// refused calls a verb that must fail with one of the codes.
func (k *kit) refused(action string, fields object, codes ...string) *failure {
	k.Helper()
	r, f := k.try(action, fields)
	if f == nil {
		k.Fatalf("%s %.200s was accepted, wanted %v: %.200s", action, encode(fields), codes, r.text)
	}
	if !slices.Contains(codes, f.code) {
		k.Fatalf("%s %.200s: wanted %v, got %.600s", action, encode(fields), codes, f)
	}
	return f
}

// names fails unless an error names one of the words.
func (k *kit) names(f *failure, words ...string) {
	k.Helper()
	for _, w := range words {
		if bytes.Contains(f.facts.text, []byte(w)) {
			return
		}
	}
	k.Fatalf("does not name %q: %s", words, f)
}

// with adds fields to some.
func with(base object, more ...object) object {
	out := object{}
	for _, o := range append([]object{base}, more...) {
		for name, v := range o {
			out[name] = v
		}
	}
	return out
}

func (k *kit) create(execution string, more ...object) reply {
	k.Helper()
	return k.do("create", with(object{"execution": execution, "workflow": "wf"}, more...))
}

func (k *kit) apply(execution string, version int64, more ...object) reply {
	k.Helper()
	return k.do("apply", with(object{"execution": execution, "expected_version": version}, more...))
}

func (k *kit) claim(execution, owner string, seconds int, more ...object) reply {
	k.Helper()
	return k.do("claim", with(object{"execution": execution, "owner": owner, "lease_seconds": seconds}, more...))
}

func (k *kit) get(execution string, more ...object) reply {
	k.Helper()
	return k.do("get", with(object{"execution": execution, "max_inline_bytes": inline}, more...))
}

func (k *kit) version(execution string) int64 { k.Helper(); return k.get(execution).version() }

func (k *kit) state(execution string, more ...object) any {
	k.Helper()
	r := k.get(execution, more...)
	if s, inline := r.object["state"]; inline {
		return s
	}
	return exactly(k, k.fetch(r.str("state_ref", "url")))
}

func (k *kit) fetch(url string) []byte {
	k.Helper()
	status, _, got := k.http("GET", url, nil)
	if status != http.StatusOK {
		k.Fatalf("GET of a reference %.100q: HTTP %d %.200s", url, status, got)
	}
	return got
}

func (k *kit) complete(execution string, version, fence int64, more ...object) reply {
	k.Helper()
	return k.do("complete", with(object{"execution": execution, "expected_version": version, "fence": fence, "outcome": "completed"}, more...))
}

// finish claims and completes.
func (k *kit) finish(execution string) reply {
	k.Helper()
	c := k.claim(execution, "finisher", 60)
	return k.complete(execution, c.version(), c.fence())
}

func (k *kit) op(execution, operation string) reply {
	k.Helper()
	return k.do("get_operation", object{"execution": execution, "operation": operation})
}

// declare applies one operation and gives its entry in the reply.
func (k *kit) declare(execution string, fence int64, operation object, more ...object) reply {
	k.Helper()
	operation = with(object{"name": "charge", "args": object{}}, operation)
	r := k.apply(execution, k.version(execution), append([]object{{"fence": fence, "operations": []any{operation}}}, more...)...)
	if len(r.list("operations")) != 1 {
		k.Fatalf("apply does not answer its operation: %.300s", r.text)
	}
	return reply{t: k, text: r.text, object: r.at("operations", 0).(object)}
}

func (k *kit) outcome(execution, operation, outcome string, more ...object) reply {
	k.Helper()
	return k.do("record_outcome", with(object{"execution": execution, "operation": operation, "outcome": outcome}, more...))
}

func (k *kit) reconcile(execution string, fence int64, evidence ...any) reply {
	k.Helper()
	f := object{"execution": execution, "fence": fence}
	if len(evidence) > 0 {
		f["evidence"] = evidence
	}
	return k.do("reconcile", f)
}

// drain reconciles until nothing more gets settled.
func (k *kit) drain(execution string, fence int64) {
	k.Helper()
	last := int64(-1)
	for range 60 {
		k.reconcile(execution, fence)
		v := k.version(execution)
		if v == last {
			return
		}
		last = v
	}
	k.Fatal("reconcile never ends")
}

func (k *kit) put(execution, name string, body []byte, more ...object) string {
	k.Helper()
	r := k.do("put_artifact", with(object{"execution": execution, "name": name, "media_type": "application/octet-stream", "body": base64.StdEncoding.EncodeToString(body)}, more...))
	equal(k, r.str("artifact", "digest"), digest(body), "artifact digest")
	return r.str("artifact", "digest")
}

func (k *kit) artifact(execution string, which object) []byte {
	k.Helper()
	return k.body(k.do("get_artifact", with(object{"execution": execution, "max_inline_bytes": inline}, which)))
}

func (k *kit) body(r reply) []byte {
	k.Helper()
	if r.object["body"] == nil {
		return k.fetch(r.str("url"))
	}
	got, err := base64.StdEncoding.DecodeString(r.str("body"))
	if err != nil {
		k.Fatal(err)
	}
	return got
}

// pages follows a listing's cursor: its entries and the number of pages.
func (k *kit) pages(action, list string, fields object) ([]any, int) {
	k.Helper()
	var out []any
	for n := 1; n < 3000; n++ {
		r := k.do(action, fields)
		out = append(out, r.list(list)...)
		if r.str("cursor") == "" {
			return out, n
		}
		fields = with(fields, object{"cursor": r.str("cursor")})
	}
	k.Fatalf("%s never ends", action)
	return nil, 0
}

// listed gives the ids of a listing, sorted, and the number of pages.
func (k *kit) listed(fields object) ([]string, int) {
	k.Helper()
	entries, n := k.pages("list", "executions", fields)
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.(object)["execution"].(string))
	}
	slices.Sort(ids)
	return ids, n
}

func (k *kit) history(execution string) []any {
	k.Helper()
	entries, _ := k.pages("history", "entries", object{"execution": execution})
	return entries
}

// delete deletes until it says done.
func (k *kit) delete(execution string) {
	k.Helper()
	f := object{"execution": execution, "reason": "asked"}
	for range 50 {
		r := k.do("delete", f)
		if r.at("done") == true {
			return
		}
		if c := r.str("cursor"); c != "" {
			f["cursor"] = c
		}
	}
	k.Fatal("delete is never done")
}

// purge purges the tenant until done; anything but a retryable error or a crash
// fails the test. It says whether it came to an end.
func (k *kit) purge(calls int) bool {
	k.Helper()
	f := object{}
	for range calls {
		r, e := k.try("purge_tenant", f)
		switch {
		case e != nil && e.code != crash && !slices.Contains(retryable, e.code):
			k.Fatalf("purge_tenant: %s", e)
		case e != nil:
			continue
		case r.at("done") == true:
			return true
		}
		if c := r.str("cursor"); c != "" {
			f["cursor"] = c
		}
		k.wait(400 * time.Second)
	}
	return false
}

// workflow sets a workflow, as fields for create.
func (k *kit) workflow(name string, more ...object) object {
	k.Helper()
	schema := object{"name": "s", "version": 1}
	k.do("set_workflow", object{"workflow": with(object{"name": name, "schema": schema}, more...)})
	return object{"workflow": name, "schema": schema}
}

// policy sets a policy that keeps ended executions for some days.
func (k *kit) policy(name string, days int, more ...object) {
	k.Helper()
	k.do("set_policy", object{"policy": with(object{"name": name, "completed_days": days, "failed_days": days, "cancelled_days": days, "history": object{"keep": "all"}, "archive": object{"enabled": false}, "receipt_days": 30}, more...)})
}

// answer is what one of several calls at once came to.
type answer struct {
	reply
	*failure
}

// together makes calls at the same time.
func (k *kit) together(n int, call func(i int) (reply, *failure)) []answer {
	k.Helper()
	out := make([]answer, n)
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-gate
			out[i].reply, out[i].failure = call(i)
		})
	}
	close(gate)
	all.Wait()
	return out
}

// winners splits answers into those that succeeded and the losers' codes.
func winners(answers []answer) (won []int, codes []string) {
	for i, a := range answers {
		if a.failure == nil {
			won = append(won, i)
		} else if !slices.Contains(codes, a.failure.code) {
			codes = append(codes, a.failure.code)
		}
	}
	slices.Sort(codes)
	return won, codes
}

func equal[T any](t testing.TB, got, want T, what string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %.300s, want %.300s", what, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
}

func oneOf(t testing.TB, got string, want []string, what string) {
	t.Helper()
	if !slices.Contains(want, got) {
		t.Fatalf("%s: got %q, want one of %q", what, got, want)
	}
}

func digest(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }

// noise is text of n characters that hardly compresses. Long ones are hex: half
// as long at rest, and nothing in them looks like the beginning of a credential.
func noise(n int) string {
	if n > 300_000 {
		b := make([]byte, n/2+1)
		_, _ = rand.Read(b) // never fails
		return hex.EncodeToString(b)[:n]
	}
	b := make([]byte, n*3/4+3)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)[:n]
}

// sized is a state of exactly n bytes that hardly compresses.
func sized(n int) raw { return raw(`{"s":"` + noise(n-8) + `"}`) }

// uncertain statuses say that nobody knows yet.
var uncertain = []string{"declared", "uncertain"}

var gone = []string{"NotFound", "Deleted"}
