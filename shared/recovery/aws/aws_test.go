package aws_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/recovery/aws"
)

// cloud answers the services' own wire forms.
type cloud struct {
	mu     sync.Mutex
	calls  []string
	status int
	header http.Header
	body   string
}

func (c *cloud) set(status int, header http.Header, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.status, c.header, c.body = nil, status, header, body
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("X-Amz-Target"), r.Header.Get("X-Amz-Invocation-Type"), string(b)}, " "))
	for k, v := range c.header {
		w.Header()[k] = v
	}
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, c.body)
}

func open(t *testing.T) (*cloud, sdk.Config) {
	c := &cloud{}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, sdk.Config{Region: "us-east-1", BaseEndpoint: &s.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: func() sdk.Retryer { return sdk.NopRetryer{} }}
}

func refusal(code string) (int, http.Header, string) {
	return 400, http.Header{"X-Amzn-Errortype": {code}, "Content-Type": {"application/x-amz-json-1.0"}}, `{"__type":"com.amazonaws.states#` + code + `","message":"secret-value"}`
}

func TestTargets(t *testing.T) {
	t.Parallel()
	c, cfg := open(t)
	targets := aws.NewTargets(cfg)
	const arn = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
	h := func(kind string) recovery.Handover {
		return recovery.Handover{Kind: kind, ARN: arn, Name: "cairn-1", Input: []byte(`{"execution":"e1"}`)}
	}
	ok := func(body string) (int, http.Header, string) { return 200, http.Header{}, body }
	type answer = func() (int, http.Header, string)
	for _, x := range []struct {
		name   string
		answer answer
		do     func() (recovery.StartOutcome, error)
		want   recovery.StartOutcome // "": an error
		sent   string
	}{
		{"a state machine", func() (int, http.Header, string) { return ok(`{"executionArn":"a","startDate":1}`) },
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.StateMachine)) }, recovery.Started, "cairn-1"},
		{"the same name again", func() (int, http.Header, string) { return refusal("ExecutionAlreadyExists") },
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.StateMachine)) }, recovery.Existed, "StartExecution"},
		{"no such machine", func() (int, http.Header, string) { return refusal("StateMachineDoesNotExist") },
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.StateMachine)) }, "", "StartExecution"},
		{"a function, not waited for", func() (int, http.Header, string) { return 202, http.Header{}, "" },
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.Lambda)) }, recovery.Started, `Event {"execution":"e1"}`},
		{"an event bus", func() (int, http.Header, string) {
			return ok(`{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`)
		},
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.EventBus)) }, recovery.Started, aws.DetailType},
		{"an event bus that refuses", func() (int, http.Header, string) {
			return ok(`{"FailedEntryCount":1,"Entries":[{"ErrorCode":"x"}]}`)
		},
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h(aws.EventBus)) }, "", aws.DetailType},
		{"another kind", func() (int, http.Header, string) { return ok(`{}`) },
			func() (recovery.StartOutcome, error) { return targets.Start(context.Background(), h("queue")) }, "", ""},
		{"a token", func() (int, http.Header, string) { return ok(`{}`) },
			func() (recovery.StartOutcome, error) {
				return targets.AnswerToken(context.Background(), "secret-token", []byte(`{}`))
			}, recovery.Started, "SendTaskSuccess"},
		{"a token that is used", func() (int, http.Header, string) { return refusal("TaskDoesNotExist") },
			func() (recovery.StartOutcome, error) {
				return targets.AnswerToken(context.Background(), "secret-token", []byte(`{}`))
			}, recovery.Gone, "SendTaskSuccess"},
		{"a token that is late", func() (int, http.Header, string) { return refusal("TaskTimedOut") },
			func() (recovery.StartOutcome, error) {
				return targets.AnswerToken(context.Background(), "secret-token", []byte(`{}`))
			}, recovery.Gone, "SendTaskSuccess"},
		{"a token that is none", func() (int, http.Header, string) { return refusal("InvalidToken") },
			func() (recovery.StartOutcome, error) {
				return targets.AnswerToken(context.Background(), "secret-token", []byte(`{}`))
			}, recovery.Gone, "SendTaskSuccess"},
		{"a token and no permission", func() (int, http.Header, string) { return refusal("AccessDeniedException") },
			func() (recovery.StartOutcome, error) {
				return targets.AnswerToken(context.Background(), "secret-token", []byte(`{}`))
			}, "", "SendTaskSuccess"},
	} {
		c.set(x.answer())
		got, err := x.do()
		if got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%s: %q, %v", x.name, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: shows %v", x.name, err)
		}
		if all := strings.Join(c.calls, "\n"); !strings.Contains(all, x.sent) || x.sent == "" && all != "" {
			t.Errorf("%s: sent %s", x.name, all)
		}
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	c, cfg := open(t)
	f := aws.NewFunctions(cfg)
	q := recovery.Question{Tenant: "bank", Execution: "e1", Operation: "op", Attempt: 2, Fence: 7, Config: recovery.ResolverConfig{Kind: "lambda", Target: "ask"}}
	c.set(200, http.Header{}, `{"finding":"found"}`)
	a, err := f.Ask(context.Background(), q)
	var sent recovery.Question
	if err != nil || string(a.JSON) != `{"finding":"found"}` || len(c.calls) != 1 {
		t.Fatalf("%s, %v, %v", a.JSON, err, c.calls)
	}
	body := c.calls[0][strings.Index(c.calls[0], "{"):]
	if !strings.Contains(c.calls[0], "/functions/ask/invocations") || json.Unmarshal([]byte(body), &sent) != nil || sent.Fence != 7 || sent.Attempt != 2 || sent.Tenant != "bank" {
		t.Errorf("sent %s", c.calls[0])
	}
	c.set(200, http.Header{"X-Amz-Function-Error": {"Unhandled"}}, `{"errorMessage":"secret-value"}`)
	if _, err := f.Ask(context.Background(), q); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a failed function: %v", err)
	}
	c.set(404, http.Header{"X-Amzn-Errortype": {"ResourceNotFoundException"}}, `{"Message":"secret-value"}`)
	if _, err := f.Migrate(context.Background(), "m", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") || strings.Contains(err.Error(), "secret") {
		t.Errorf("no function: %v", err)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	c, cfg := open(t)
	c.set(200, http.Header{}, `{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`)
	if err := aws.Publish(cfg, "ops")(context.Background(), "parked", []byte(`{"execution":"e1"}`)); err != nil || !strings.Contains(strings.Join(c.calls, ""), "parked") {
		t.Errorf("%v %v", err, c.calls)
	}
	c.set(200, http.Header{}, `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"x"}]}`)
	if err := aws.Publish(cfg, "ops")(context.Background(), "parked", []byte(`{}`)); err == nil {
		t.Error("a refused event")
	}
}
