package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

func TestInvoke(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/2015-03-31/functions/echo/invocations":
			w.Write(body)
		case "/2015-03-31/functions/refuse/invocations":
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `{"errorMessage":"{\"code\":\"LeaseLost\",\"message\":\"gone\",\"retryable\":false,\"fence\":7}","errorType":"LeaseLost"}`)
		case "/2015-03-31/functions/die/invocations":
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `{"errorMessage":"RequestId: x Error: Runtime exited","errorType":"Runtime.ExitError"}`)
		case "/2015-03-31/functions/odd/invocations":
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `odd`)
		case "/2015-03-31/functions/large/invocations":
			w.Header().Set("X-Amzn-ErrorType", "RequestTooLargeException")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	c, err := New(context.Background(), Options{Endpoint: server.URL, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(function string) ([]byte, error) {
		return c.Invoke(context.Background(), function, "", []byte(`{"n": 1.0}`))
	}
	if got, err := ask("echo"); err != nil || string(got) != `{"n": 1.0}` {
		t.Errorf("echo: %q %v", got, err)
	}
	for _, tc := range []struct {
		function string
		refused  bool
		code     execution.Code
	}{
		{"refuse", true, execution.LeaseLost}, {"large", true, execution.TooLarge}, {"die", false, execution.Unavailable}, {"odd", false, execution.Unavailable},
	} {
		_, err := ask(tc.function)
		var failed *FunctionError
		if !errors.As(err, &failed) || failed.Refused() != tc.refused || !errors.Is(err, tc.code) {
			t.Errorf("%s: %v", tc.function, err)
		}
	}
	// A failure of the service is no function's answer, and nothing is sent twice.
	calls = 0
	_, err = ask("broken")
	var failed *FunctionError
	if err == nil || errors.As(err, &failed) || calls != 1 {
		t.Errorf("broken: %v after %d calls", err, calls)
	}
}

// On AWS a region is needed; nothing is guessed.
func TestNoRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	_, err := New(context.Background(), Options{Getenv: func(string) string { return "" }})
	if !errors.Is(err, ErrNoRegion) {
		t.Error(err)
	}
}

func TestFunctionErrorMessage(t *testing.T) {
	t.Parallel()
	e := functionError([]byte(`{"errorType":"Held","errorMessage":"{\"code\":\"Held\"}"}`))
	if e.Message != `{"code":"Held"}` || !strings.Contains(e.Error(), "Held") || !e.Refused() {
		t.Errorf("%+v", e)
	}
}
