package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// Options say where the functions are.
type Options struct {
	// Endpoint is the base URL of a sandbox or a local engine; "" means AWS.
	Endpoint string
	// Getenv is os.Getenv. With an Endpoint and neither AWS_ACCESS_KEY_ID nor
	// AWS_PROFILE there, requests are signed with credentials that mean nothing.
	Getenv func(string) string
}

// Client invokes functions. It is safe for concurrent use.
type Client struct{ lambda *lambda.Client }

// ErrNoRegion: neither the environment nor the profile names a region.
var ErrNoRegion = errors.New("invoke: no AWS region (AWS_REGION)")

// maxWait bounds one invocation: Lambda's own limit is 15 minutes.
const maxWait = 16 * time.Minute

// AWS is the SDK's configuration for the functions there. It asks nobody but, on
// AWS, for credentials as the SDK finds them.
func AWS(ctx context.Context, o Options) (aws.Config, error) {
	var opts []func(*awsconfig.LoadOptions) error
	if o.Endpoint != "" {
		opts = append(opts, awsconfig.WithBaseEndpoint(o.Endpoint), awsconfig.WithDefaultRegion("us-east-1"))
		if o.Getenv("AWS_ACCESS_KEY_ID") == "" && o.Getenv("AWS_PROFILE") == "" {
			opts = append(opts, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("sandbox", "sandbox", "")))
		}
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, fmt.Errorf("invoke: %w", err)
	}
	if cfg.Region == "" {
		return cfg, ErrNoRegion
	}
	return cfg, nil
}

// New makes a client; errors as AWS.
func New(ctx context.Context, o Options) (*Client, error) {
	cfg, err := AWS(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Client{lambda.NewFromConfig(cfg, func(lo *lambda.Options) {
		lo.Retryer = aws.NopRetryer{}
	})}, nil
}

// FunctionError is a failed invocation: the function ran and answered an error,
// or was ended by the service.
type FunctionError struct {
	// Type is one of the codes of package execution, or what Lambda calls it
	// when the function died (Runtime.ExitError, Sandbox.Timedout ...).
	Type string
	// Message is the errorMessage: with a code, one JSON object.
	Message string
}

func (e *FunctionError) Error() string { return "invoke: " + e.Type }

// Unwrap is the product's own error: for a function that died Unavailable, its
// outcome being unknown.
func (e *FunctionError) Unwrap() error { return api.ParseError(e.Type, e.Message) }

// Refused reports whether the product itself refused: then Message is its JSON.
func (e *FunctionError) Refused() bool {
	return api.ParseError(e.Type, e.Message).Code == execution.Code(e.Type)
}

// Invoke sends one request and gives the reply. qualifier is an alias or
// version, "" for none. A *FunctionError is the function's answer; any other
// error means that nobody knows whether the request arrived, unless the context
// or the service (no such function, no permission) says so.
func (c *Client) Invoke(ctx context.Context, function, qualifier string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	in := &lambda.InvokeInput{FunctionName: &function, Payload: request}
	if qualifier != "" {
		in.Qualifier = &qualifier
	}
	out, err := c.lambda.Invoke(ctx, in)
	var large *types.RequestTooLargeException
	if errors.As(err, &large) {
		e := execution.Errorf(execution.TooLarge, "the request is too large for Lambda").With("limit", int64(execution.MaxRequestBytes))
		return nil, &FunctionError{Type: string(e.Code), Message: string(api.EncodeError(e, nil))}
	}
	if err != nil {
		return nil, fmt.Errorf("invoke: %w", err)
	}
	if out.FunctionError != nil {
		return nil, functionError(out.Payload)
	}
	return out.Payload, nil
}

// functionError reads the payload of a failed invocation. One that is none of
// Lambda's stays readable as a message.
func functionError(payload []byte) *FunctionError {
	var e struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal(payload, &e); err != nil || e.Type == "" {
		return &FunctionError{Type: "Unhandled", Message: string(payload)}
	}
	return &FunctionError{Type: e.Type, Message: e.Message}
}
