package awslambda

import (
	"context"
	"errors"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// Door invokes functions through Lambda. It implements client.Door and is safe
// for concurrent use.
type Door struct {
	// Lambda makes the calls (invoke.New); it sends nothing twice by itself.
	Lambda *invoke.Client
	// Tenant, where it is set, is spoken for through its alias of each function,
	// t-<tenant>: the door of a caller whose rights are that tenant's. "": the plain
	// function.
	Tenant execution.TenantID
	// Names are the deployed names or ARNs of "checkpoint", "recover" and
	// "retention"; one that is missing is called as it is.
	Names map[string]string
}

// Invoke implements client.Door.
func (d *Door) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	qualifier := ""
	if d.Tenant != "" {
		qualifier = execution.TenantAlias(d.Tenant)
	}
	name := function
	if n, ok := d.Names[function]; ok {
		name = n
	}
	reply, err := d.Lambda.Invoke(ctx, name, qualifier, payload)
	if err != nil {
		return nil, classify(err)
	}
	return reply, nil
}

// classify tells definite answers from unknown outcomes. An error of the
// function itself carries the product's error already.
func classify(err error) error {
	var own *execution.Error
	if errors.As(err, &own) {
		return own
	}
	var busy *types.TooManyRequestsException
	if errors.As(err, &busy) {
		return execution.Errorf(execution.Throttled, "the function is invoked too often").Because(err)
	}
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return execution.Invalid("function", "there is no such function or alias").Because(err)
	}
	// The service refused before any function ran (no permission, a bad name). A
	// 5xx, or no answer at all, says nothing.
	var answered *awshttp.ResponseError
	if errors.As(err, &answered) {
		if s := answered.HTTPStatusCode(); s >= http.StatusBadRequest && s < http.StatusInternalServerError {
			return execution.Invalid("function", "Lambda refuses the invocation").With("http_status", s).Because(err)
		}
	}
	return err
}
