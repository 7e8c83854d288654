package awslambda_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// lambda is a stub of the service: it answers every invocation alike.
func lambda(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *invoke.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	c, err := invoke.New(t.Context(), invoke.Options{Endpoint: server.URL, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func service(status int, kind string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"message":"m"}`))
	}
}

func failing(payload string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		_, _ = w.Write([]byte(payload))
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		code   execution.Code // "": an unknown outcome
	}{
		{"refused by the product", failing(`{"errorType":"VersionConflict","errorMessage":"{\"code\":\"VersionConflict\",\"message\":\"m\",\"retryable\":false,\"version\":7}"}`), execution.VersionConflict},
		{"died", failing(`{"errorType":"Runtime.ExitError","errorMessage":"RequestId: x Error: Runtime exited"}`), execution.Unavailable},
		{"throttled", service(http.StatusTooManyRequests, "TooManyRequestsException"), execution.Throttled},
		{"no function", service(http.StatusNotFound, "ResourceNotFoundException"), execution.InvalidRequest},
		{"no permission", service(http.StatusForbidden, "AccessDeniedException"), execution.InvalidRequest},
		{"too large", service(http.StatusRequestEntityTooLarge, "RequestTooLargeException"), execution.TooLarge},
		{"service trouble", service(http.StatusInternalServerError, "ServiceException"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &awslambda.Door{Lambda: lambda(t, c.answer)}
			_, err := d.Invoke(t.Context(), api.Checkpoint, []byte(`{}`))
			var e *execution.Error
			if errors.As(err, &e) != (c.code != "") || e != nil && e.Code != c.code {
				t.Fatalf("got %v, want code %q", err, c.code)
			}
			if e != nil && c.code == execution.VersionConflict && e.Facts["version"] != int64(7) {
				t.Errorf("facts %v", e.Facts)
			}
		})
	}
}

// Through a tenant's door, and by the names of a stack.
func TestTenantAliasAndNames(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	inner := lambda(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + "?" + r.URL.RawQuery
		_, _ = w.Write([]byte(`{"execution":"e","version":3,"status":"created","fence":0,"owner":""}`))
	})
	var door client.Door = &awslambda.Door{Lambda: inner, Tenant: "acme.eu_1", Names: map[string]string{api.Checkpoint: "cairn-checkpoint"}}
	c := client.New(client.Options{Door: door, Tenant: "acme.eu_1"})
	got, err := c.Get(context.Background(), &api.GetRequest{Execution: "e"})
	if err != nil || got.Version != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want, have := "/2015-03-31/functions/cairn-checkpoint/invocations?Qualifier=t-acme_2eeu_5f1", <-asked; have != want {
		t.Errorf("asked %s, want %s", have, want)
	}
}
