package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/execution"
)

func TestEncodeError(t *testing.T) {
	e := execution.Errorf(execution.VersionConflict, "expected %d", 3).With("changes", []map[string]any{{"version": 4, "kind": execution.KindClaimed, "actor": &Actor{Kind: "worker", ID: "<w>"}}}).With("version", int64(4))
	remaining := int64(1500)
	got := string(EncodeError(e, &Standing{Execution: "e", Version: 9, Status: "running", Fence: 2, Owner: "w", LeaseRemainingMS: &remaining}))
	want := `{"code":"VersionConflict","message":"expected 3","retryable":false,"changes":[{"actor":{"kind":"worker","id":"<w>"},"kind":"claimed","version":4}],` +
		`"execution":"e","fence":2,"lease_remaining_ms":1500,"owner":"w","status":"running","version":4}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, code := range execution.Codes {
		var v map[string]any
		if err := json.Unmarshal(EncodeError(execution.Errorf(code, "m"), nil), &v); err != nil || v["code"] != string(code) || v["retryable"] != code.Retryable() || v["message"] != "m" {
			t.Errorf("%s: %v %v", code, err, v)
		}
	}
}

// Facts cannot stand in for what every error has.
func TestErrorFactsDoNotOverrule(t *testing.T) {
	e := execution.Errorf(execution.NotFound, "m").With("code", "Internal").With("retryable", true).With("message", "x")
	if got := string(EncodeError(e, nil)); got != `{"code":"NotFound","message":"m","retryable":false}` {
		t.Error(got)
	}
}

func TestErrorIsCut(t *testing.T) {
	ids := make([]execution.OperationID, 5000)
	for i := range ids {
		ids[i] = execution.OperationID(fmt.Sprintf("%032d", i))
	}
	nested := map[string]any{"deep": strings.Repeat("é", 20_000)}
	for name, e := range map[string]*execution.Error{
		"a list":      execution.Errorf(execution.OperationsOpen, "m").With("operations", ids).With("reasons", []string{"a", "b"}),
		"two lists":   execution.Errorf(execution.OperationsOpen, "m").With("operations", ids).With("holds", ids),
		"a text":      execution.Errorf(execution.Integrity, "m").With("detail", strings.Repeat("é", 20_000)),
		"the message": execution.Errorf(execution.Integrity, "%s", strings.Repeat("é\"", 20_000)),
		"an object":   execution.Errorf(execution.Integrity, "m").With("x", nested).With("operations", ids[:3]),
		"many facts":  execution.Errorf(execution.Integrity, "m").With("l", []any{nested, ids, "x"}).With("m", ids),
	} {
		text := EncodeError(e, &Standing{Execution: "e", Status: "running"})
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil || len(text) > execution.MaxErrorBytes || v["truncated"] != true || v["code"] != string(e.Code) || v["execution"] != "e" {
			t.Errorf("%s: %d bytes, %v: %.200s", name, len(text), err, text)
		}
		if name == "a list" && (len(v["operations"].([]any)) < 50 || len(v["reasons"].([]any)) != 2) {
			t.Errorf("more was cut than needed: %s", text)
		}
	}
	if strings.Contains(string(EncodeError(execution.Errorf(execution.Held, "m").With("holds", ids[:10]), nil)), "truncated") {
		t.Error("a short error was cut")
	}
}

func TestLambdaError(t *testing.T) {
	var err error = LambdaError(fmt.Errorf("while reading: %w", execution.Invalid("state", "m")), nil)
	if _, ok := err.(messages.InvokeResponse_Error); !ok || reflect.TypeOf(err).Kind() == reflect.Pointer {
		t.Errorf("%T", err)
	}
	if e := err.(messages.InvokeResponse_Error); e.Type != "InvalidRequest" || e.Message != `{"code":"InvalidRequest","message":"m","retryable":false,"field":"state"}` || e.StackTrace != nil {
		t.Errorf("%+v", e)
	}
	if e := LambdaError(errors.New("secret sk-1"), &Standing{Execution: "e"}); e.Type != "Internal" || strings.Contains(e.Message, "sk-1") || !strings.Contains(e.Message, `"execution":"e"`) {
		t.Errorf("%+v", e)
	}
}

func TestParseError(t *testing.T) {
	for _, code := range execution.Codes {
		in := execution.Errorf(code, "m").With("version", int64(3)).With("operations", []string{"a"}).With("owner", "w").With("path", "/a").With("spent", Decimal("1.50"))
		e := LambdaError(in, nil)
		out := ParseError(e.Type, e.Message)
		if !errors.Is(out, code) || out.Code.Retryable() != code.Retryable() || out.Message != "m" {
			t.Errorf("%s: %v", code, out)
		}
		want := map[string]any{"version": int64(3), "operations": []any{"a"}, "owner": "w", "path": "/a", "spent": json.Number("1.50")}
		if !reflect.DeepEqual(out.Facts, want) {
			t.Errorf("%v", out.Facts)
		}
		if again := EncodeError(out, nil); string(again) != e.Message {
			t.Errorf("%s\n%s", again, e.Message)
		}
	}
	for _, c := range [][2]string{{"Runtime.ExitError", "RequestId: x Error: Runtime exited"}, {"Sandbox.Timedout", ""}, {"", ""}, {"NotFound", "no JSON"}, {"NotFound", `{"code":"Held"}`}, {"NotFound", `["NotFound"]`}} {
		if e := ParseError(c[0], c[1]); e.Code != execution.Unavailable || e.Facts["error_type"] != c[0] {
			t.Errorf("%v: %v", c, e)
		}
	}
}

func FuzzParseError(f *testing.F) {
	f.Add("NotFound", `{"code":"NotFound","message":"m","retryable":false,"x":[1,2.5,null,{"a":true}]}`)
	f.Fuzz(func(t *testing.T, kind, message string) {
		e := ParseError(kind, message)
		if text := EncodeError(e, nil); len(text) > execution.MaxErrorBytes || !json.Valid(text) {
			t.Fatalf("%s", text)
		}
	})
}
