package door

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// Handler is a Lambda function's handler: JSON in, JSON out. Safe for
// concurrent use.
type Handler func(ctx context.Context, payload []byte) ([]byte, error)

// Verbs are a function's actions by name. The request is a pointer to the
// verb's request type, the reply a pointer to its reply type (package api).
type Verbs map[string]func(ctx context.Context, req any) (any, error)

// Verb makes an entry of Verbs from a service method.
func Verb[Request, Reply any](do func(context.Context, *Request) (*Reply, error)) func(context.Context, any) (any, error) {
	return func(ctx context.Context, req any) (any, error) {
		reply, err := do(ctx, req.(*Request))
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
}

// Options of a door; the zero Options are usable.
type Options struct {
	// Log takes what an operator must know: errors that nobody expects; nil: nobody.
	Log *slog.Logger
	// Check looks at a decoded request before its service does, and may change it
	// in place; its error is the answer. nil: nothing is looked at.
	Check func(ctx context.Context, req any) error
	// Done is told how each request ended; err nil: well. nil: nobody.
	Done func(ctx context.Context, action string, err error)
	// Stream takes batches of the main table's stream, Sweep the schedule's event.
	// Neither is asked when a tenant's alias was invoked. nil: there are none.
	Stream func(ctx context.Context, records []json.RawMessage) api.BatchReply
	Sweep  func(ctx context.Context, r *api.SweepRequest) (*api.SweepReply, error)
}

// Invoke makes the handler of a function. An action of the function that is not
// among verbs is InvalidRequest.
func Invoke(function string, verbs Verbs, o Options) Handler {
	d := &door{function: function, verbs: verbs, Options: o}
	return d.invoke
}

type door struct {
	Options
	function string
	verbs    Verbs
}

func (d *door) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	meter := &store.Meter{}
	ctx = store.WithMeter(ctx, meter)
	action, reply, err := d.guarded(ctx, payload)
	if d.Done != nil {
		d.Done(ctx, action, err)
	}
	if err == nil {
		return reply, nil
	}
	e := execution.AsError(err)
	if d.Log != nil && (e.Code == execution.Internal || e.Code == execution.Integrity) {
		d.Log.ErrorContext(ctx, "request failed", "function", d.function, "action", action, "code", string(e.Code), "message", e.Message)
	}
	cost := api.Cost(meter.Cost())
	return nil, api.LambdaError(e, &api.Standing{Cost: &cost})
}

// guarded answers one payload; a panic becomes Internal.
func (d *door) guarded(ctx context.Context, payload []byte) (action string, reply []byte, err error) {
	defer func() {
		if recover() == nil {
			return
		}
		// The panic's value may hold agent data; the stack says where it was.
		if d.Log != nil {
			d.Log.ErrorContext(ctx, "panic", "function", d.function, "action", action, "stack", string(debug.Stack()))
		}
		reply, err = nil, execution.Errorf(execution.Internal, "internal error")
	}()
	alias, bound := TenantAlias(ctx)
	if !bound {
		if reply, handled, err := d.event(ctx, payload); handled {
			return "event", reply, err
		}
	}
	action, req, err := api.Decode(d.function, payload)
	if err != nil {
		return action, nil, err
	}
	if bound && alias != execution.TenantAlias(api.CommonOf(req).Tenant) {
		return action, nil, execution.Invalid("tenant", "the invoked alias does not speak for this tenant")
	}
	if t := api.CommonOf(req).Tenant; t != "" {
		ctx = tenancy.With(ctx, string(t))
	}
	do := d.verbs[action]
	if do == nil {
		return action, nil, execution.Invalid("action", "is not served here")
	}
	if d.Check != nil {
		if err := d.Check(ctx, req); err != nil {
			return action, nil, err
		}
	}
	out, err := do(ctx, req)
	if err != nil {
		return action, nil, err
	}
	if r, ok := out.(interface{ Where() *api.Standing }); ok {
		cost := api.Cost(store.CostOf(ctx))
		r.Where().Cost = &cost
	}
	reply, err = api.EncodeReply(out)
	return action, reply, err
}

// TenantAlias gives the alias of the invoked ARN when it is a tenant's; false
// when the plain name, a version or another alias was invoked.
func TenantAlias(ctx context.Context) (string, bool) {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return "", false
	}
	// arn:aws:lambda:region:account:function:name[:qualifier]
	parts := strings.Split(lc.InvokedFunctionArn, ":")
	if len(parts) != 8 || !strings.HasPrefix(parts[7], "t-") {
		return "", false
	}
	return parts[7], true
}
