package client

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// Door carries one request to a function ("checkpoint", "recover" or
// "retention") and brings its reply, once, without repeating anything. An error
// that is an *execution.Error is the function's (or the service's) definite
// answer; any other means that nobody knows whether the request arrived.
// Implementations are safe for concurrent use.
type Door interface {
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// Functions is the door to handlers in this process, by function name.
type Functions map[string]func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke implements Door.
func (f Functions) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	handler := f[function]
	if handler == nil {
		return nil, execution.Invalid("function", "there is no such function here")
	}
	reply, err := handler(ctx, payload)
	var failed messages.InvokeResponse_Error
	if errors.As(err, &failed) {
		return nil, api.ParseError(failed.Type, failed.Message)
	}
	return reply, err
}

// FunctionError reads the payload of a failed invocation, as Lambda answers it:
// {"errorType", "errorMessage"}. What is none of the product's errors (the
// function died, ran out of time or memory) is Unavailable.
func FunctionError(payload []byte) *execution.Error {
	var failed struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(payload, &failed) // no JSON: no type, so Unavailable
	return api.ParseError(failed.Type, failed.Message)
}
