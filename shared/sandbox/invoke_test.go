package sandbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/cairnstate/cairn/shared/sandbox"
)

func sum(b []byte) [32]byte { return sha256.Sum256(b) }

// Every spelling that Lambda Invoke knows arrives as the same function with its
// qualifier in the invoked ARN.
func TestFunctionNames(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	const base = "arn:aws:lambda:us-east-1:000000000000:function:checkpoint"
	for _, tc := range []struct {
		name, qualifier string
		status          int
		arn, code       string
	}{
		{name: "checkpoint", status: 200, arn: base},
		{name: "checkpoint:$LATEST", status: 200, arn: base + ":$LATEST"},
		{name: "checkpoint:t-acme", status: 200, arn: base + ":t-acme"},
		{name: "checkpoint", qualifier: "t-a_2eb", status: 200, arn: base + ":t-a_2eb"},
		{name: "checkpoint:t-acme", qualifier: "t-acme", status: 200, arn: base + ":t-acme"},
		{name: base, status: 200, arn: base},
		{name: base + ":t-acme", status: 200, arn: base + ":t-acme"},
		{name: "arn:aws:lambda:eu-central-1:123456789012:function:checkpoint:t-acme", status: 200, arn: base + ":t-acme"},
		{name: "123456789012:function:checkpoint:t-acme", status: 200, arn: base + ":t-acme"},
		{name: "function:checkpoint", status: 200, arn: base},
		{name: "checkpoint:t-acme", qualifier: "t-other", status: 400, code: "InvalidParameterValueException"},
		{name: "checkpoint", qualifier: "a b", status: 400, code: "ValidationException"},
		{name: "check point", status: 400, code: "ValidationException"},
		{name: "arn:aws:s3:::checkpoint", status: 400, code: "ValidationException"},
		{name: strings.Repeat("a", 171), status: 400, code: "ValidationException"},
		{name: "checkpoint:7", status: 404, code: "ResourceNotFoundException"},
		{name: "checkpoints", status: 404, code: "ResourceNotFoundException"},
		{name: "Checkpoint", status: 404, code: "ResourceNotFoundException"},
	} {
		path := "/2015-03-31/functions/" + url.PathEscape(tc.name) + "/invocations"
		if tc.qualifier != "" {
			path += "?Qualifier=" + url.QueryEscape(tc.qualifier)
		}
		resp, text := d.http("POST", path, `{"action":"arn"}`)
		what := tc.name + "?" + tc.qualifier
		want(t, what, resp.StatusCode, tc.status)
		want(t, what+" type", resp.Header.Get("X-Amzn-ErrorType"), tc.code)
		if tc.status == 200 {
			contains(t, what, text, `"arn":"`+tc.arn+`"`, resp.Header.Get("X-Amzn-Requestid"))
		}
	}
	// A colon may also come escaped.
	contains(t, "escaped", d.must("checkpoint%3At-acme", `{"action":"arn"}`), base+":t-acme")
}

func TestInvocationForms(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	path := "/2015-03-31/functions/checkpoint/invocations"
	for _, tc := range []struct {
		kind, body, code string
		status           int
	}{
		{kind: "", body: `{"action":"arn"}`, status: 200},
		{kind: "RequestResponse", body: "", status: 200},
		{kind: "DryRun", body: `{"action":"count"}`, status: 204},
		{kind: "Event", body: `{"action":"count"}`, status: 202},
		{kind: "event", body: "{}", status: 400, code: "ValidationException"},
		{kind: "RequestResponse", body: strings.Repeat(" ", 6<<20-2) + "{}", status: 200},
		{kind: "RequestResponse", body: strings.Repeat(" ", 6<<20-1) + "{}", status: 413, code: "RequestTooLargeException"},
		{kind: "Event", body: strings.Repeat(" ", 1<<20-1) + "{}", status: 413, code: "RequestTooLargeException"},
	} {
		resp, text := d.http("POST", path, tc.body, "X-Amz-Invocation-Type", tc.kind)
		want(t, tc.kind, resp.StatusCode, tc.status)
		want(t, tc.kind+" type", resp.Header.Get("X-Amzn-ErrorType"), tc.code)
		if tc.code != "" {
			contains(t, tc.kind, text, `"Type":"User"`, `"Message":"`)
		}
	}
	// The dry run did not count, the event did.
	deadline := time.Now().Add(5 * time.Second)
	for n := 0; ; n++ {
		var got struct{ Count int }
		if err := json.Unmarshal([]byte(d.must("checkpoint", `{"action":"count"}`)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Count == n+2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the event was not run: count %d after %d calls", got.Count, n+1)
		}
	}
	resp, _ := d.http("GET", path, "")
	want(t, "GET", resp.StatusCode, http.StatusMethodNotAllowed)
}

func TestFunctionErrors(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	for _, tc := range []struct{ body, kind, message string }{
		{`{"action":"error"}`, "InvalidRequest", `{"code":"InvalidRequest","field":"state","message":"no good","path":"/a/b","retryable":false}`},
		{`{"action":"made"}`, "LeaseLost", `{"code":"LeaseLost"}`},
		{`{"action":"plain"}`, "Internal", `{"code":"Internal","message":"internal error","retryable":true}`},
		{`[`, "InvalidRequest", `{"code":"InvalidRequest","message":"no JSON object","retryable":false}`},
	} {
		text, failed := d.call("checkpoint", tc.body)
		want(t, tc.body, failed, true)
		var got struct{ ErrorType, ErrorMessage string }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		want(t, tc.body, got.ErrorType, tc.kind)
		var have, wanted any
		if json.Unmarshal([]byte(got.ErrorMessage), &have) != nil || json.Unmarshal([]byte(tc.message), &wanted) != nil {
			t.Fatalf("%s: %s", tc.body, got.ErrorMessage)
		}
		a, _ := json.Marshal(have)
		b, _ := json.Marshal(wanted)
		want(t, tc.body, string(a), string(b))
	}
	text, failed := d.call("checkpoint", `{"action":"big","size":6291455}`)
	want(t, "reply over the limit", failed, true)
	contains(t, "reply over the limit", text, "Function.ResponseSizeTooLarge", "6291456")
	text, failed = d.call("checkpoint", `{"action":"big","size":6291454}`)
	want(t, "reply at the limit", failed, false)
	want(t, "reply at the limit", len(text), 6<<20)
}

// A crash answers as Lambda does, keeps what was stored, and gives the function
// a new memory while the others keep theirs.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		effect string
		stored bool
	}{{"crash_before", false}, {"crash_after", true}} {
		d := open(t, sandbox.Options{})
		want(t, "count", d.must("checkpoint", `{"action":"count"}`), `{"count":1}`)
		want(t, "count", d.must("recover", `{"action":"count"}`), `{"count":1}`)
		d.kit("POST", "/sandbox/faults", `[{"on":"put","match":"head","effect":"`+tc.effect+`"}]`)
		text, failed := d.call("checkpoint", `{"action":"put","key":"head"}`)
		want(t, "failed", failed, true)
		contains(t, tc.effect, text, `"errorType":"Runtime.ExitError"`, "RequestId: ", " Error: Runtime exited")
		want(t, "new process", d.must("checkpoint", `{"action":"count"}`), `{"count":1}`)
		want(t, "other process", d.must("recover", `{"action":"count"}`), `{"count":2}`)
		want(t, "stored", strings.Contains(d.kit("GET", "/sandbox/dump", ""), `"head"`), tc.stored)
	}
}

func TestPanicKillsTheFunction(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	d.must("checkpoint", `{"action":"count"}`)
	text, failed := d.call("checkpoint", `{"action":"panic"}`)
	want(t, "failed", failed, true)
	contains(t, "panic", text, "Runtime.ExitError")
	want(t, "new process", d.must("checkpoint", `{"action":"count"}`), `{"count":1}`)
	dump := d.kit("GET", "/sandbox/dump", "")
	contains(t, "log", dump, `"msg":"panic"`, "(*process).act")
	if strings.Contains(dump, "secret text") {
		t.Error("the panic's value is in the log")
	}
}

func TestAsynchronousFailure(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	resp, _ := d.http("POST", "/2015-03-31/functions/checkpoint/invocations", `{"action":"plain"}`, "X-Amz-Invocation-Type", "Event")
	want(t, "status", resp.StatusCode, 202)
	eventually(t, "an event of the failure", func() bool {
		return strings.Contains(d.kit("GET", "/sandbox/dump", ""), "asynchronous invocation failed")
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time: " + what)
		}
	}
}

// The AWS SDK's Lambda client works against it.
func TestSDKClient(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	ctx := context.Background()
	client := lambda.New(lambda.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(d.url),
		Credentials: credentials.NewStaticCredentialsProvider("sandbox", "sandbox", ""),
	})
	for _, name := range []string{"checkpoint", "arn:aws:lambda:us-east-1:000000000000:function:checkpoint"} {
		out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(name), Qualifier: aws.String("t-acme"), Payload: []byte(`{"action":"arn"}`)})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "version", aws.ToString(out.ExecutedVersion), "$LATEST")
		contains(t, "payload", string(out.Payload), "function:checkpoint:t-acme")
	}
	out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("checkpoint"), Payload: []byte(`{"action":"error"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "function error", aws.ToString(out.FunctionError), "Unhandled")
	_, err = client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("nothing"), Payload: []byte(`{}`)})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("unknown function: %v", err)
	}
	_, err = client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("checkpoint"), Payload: []byte(strings.Repeat(" ", 6<<20+1))})
	var large *types.RequestTooLargeException
	if !errors.As(err, &large) {
		t.Errorf("too large: %v", err)
	}
	out, err = client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("checkpoint"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{}`)})
	if err != nil || out.StatusCode != 202 {
		t.Errorf("event: %v %v", out, err)
	}
}

func TestSkew(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	want(t, "none", d.must("checkpoint", `{"action":"now"}`), `{"now":"2026-01-01T00:00:00Z"}`)
	want(t, "ahead", d.must("checkpoint", `{"action":"now"}`, sandbox.SkewHeader, "90.5"), `{"now":"2026-01-01T00:01:30.5Z"}`)
	want(t, "behind", d.must("checkpoint", `{"action":"now"}`, sandbox.SkewHeader, "-60"), `{"now":"2025-12-31T23:59:00Z"}`)
	for _, bad := range []string{"x", "NaN", "1e300", "Inf"} {
		resp, _ := d.http("POST", "/2015-03-31/functions/checkpoint/invocations", `{}`, sandbox.SkewHeader, bad)
		want(t, bad, resp.StatusCode, 400)
	}
}
