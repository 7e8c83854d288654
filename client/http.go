package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
)

// HTTP is the door over plain HTTP: to a sandbox, or to anything else that
// speaks Lambda's Invoke and wants no signature.
type HTTP struct {
	// URL is the base: http://127.0.0.1:4577.
	URL string
	// Alias is the tenant alias to call through (execution.TenantAlias); "": the
	// plain function.
	Alias string
	// Client; nil: http.DefaultClient. Time limits come from the context.
	Client *http.Client
}

// maxReply is more than any reply may have.
const maxReply = execution.MaxReplyBytes + 1<<20

// Invoke implements Door.
func (d HTTP) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	at := strings.TrimSuffix(d.URL, "/") + "/2015-03-31/functions/" + url.PathEscape(function) + "/invocations"
	if d.Alias != "" {
		at += "?Qualifier=" + url.QueryEscape(d.Alias)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(payload))
	if err != nil {
		return nil, execution.Invalid("endpoint", "is no URL").Because(err)
	}
	req.Header.Set("Content-Type", "application/json")
	// A transport that repeats a POST by itself would break "once".
	req.GetBody = nil
	client := d.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, statusError(resp.StatusCode)
	case resp.Header.Get("X-Amz-Function-Error") != "":
		return nil, FunctionError(body)
	case len(body) > maxReply:
		return nil, execution.Errorf(execution.Internal, "a reply that is larger than any may be")
	}
	return body, nil
}

// statusError is the service's refusal before any function ran; what may have
// come after it (5xx) is an unknown outcome.
func statusError(status int) error {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return execution.Errorf(execution.TooLarge, "the request is too large").With("limit", execution.MaxRequestBytes)
	case status == http.StatusTooManyRequests:
		return execution.Errorf(execution.Throttled, "the function is invoked too often")
	case status == http.StatusNotFound:
		return execution.Invalid("function", "there is no such function or alias at the endpoint").With("http_status", status)
	case status >= 300 && status < 500:
		return execution.Invalid("function", "the endpoint refuses the invocation").With("http_status", status)
	}
	return fmt.Errorf("client: HTTP status %d", status)
}
