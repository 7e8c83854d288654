package recovery

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// Resolver asks a business system what became of one attempt. Implementations:
// Lambda and HTTPS in a deployed stack, scripts in the sandbox. They are safe
// for concurrent use.
//
// Asking changes nothing here or there, so it may be repeated at any time.
type Resolver interface {
	// Ask puts the question and gives the answer as it came, not yet checked.
	// An error (a timeout, a broken connection, an answer that is none) means
	// query_failed: it proves nothing and is never an outcome. The error's text
	// holds no answer and no secret.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ResolverConfig says where an operation's resolver is (the workflow's
// `resolvers`).
type ResolverConfig struct {
	Kind    string        `json:"kind"`   // lambda, https or sandbox
	Target  string        `json:"target"` // function, URL or script
	Timeout time.Duration `json:"-"`      // of one question; 0: the resolver's own
}

// Question is about one attempt of one operation. Its JSON form is what a
// resolver receives.
type Question struct {
	Tenant     execution.TenantID    `json:"tenant"`
	Execution  execution.ExecutionID `json:"execution"`
	Generation int64                 `json:"generation"`
	Operation  execution.OperationID `json:"operation"`
	Attempt    int                   `json:"attempt"`
	// Name is the operation's name as it was declared.
	Name string `json:"name"`
	// ProviderKey is what the attempt was sent under; ProviderRef what the
	// provider had answered so far, "" when nothing is known.
	ProviderKey string `json:"provider_key"`
	ProviderRef string `json:"provider_ref,omitempty"`
	// Fence is the asker's: a system that remembers it and refuses older ones
	// may answer `fenced: true`. 0: the asker has none.
	Fence  int64          `json:"fence,omitempty"`
	Config ResolverConfig `json:"-"`
}

// JSON is the question as a resolver receives it.
func (q Question) JSON() ([]byte, error) { return json.Marshal(q) }

// Answer is what the system said: the bytes of one JSON value, a finding as in
// `reconcile`, checked by the caller of Ask.
type Answer struct {
	JSON []byte
}

// Target starts whoever goes on with an execution. Implementations are safe for
// concurrent use.
type Target interface {
	// Start starts the workflow's resume target. Starting the same name again is
	// no second start: Existed (the first one may have finished by now). An
	// error means that nobody knows whether it started: the caller leaves the
	// execution due and comes again.
	Start(ctx context.Context, h Handover) (StartOutcome, error)
	// AnswerToken gives input to the holder of a Step Functions task token.
	// Gone: the token is used, timed out or unknown, so nobody waits behind it
	// any more (fall back to Start). An error: nobody knows; come again. The
	// token is a secret: it stands in no error, log or dump.
	AnswerToken(ctx context.Context, token string, input []byte) (StartOutcome, error)
}

// Handover is one start of a resume target.
type Handover struct {
	// Kind is state_machine, lambda, event_bus or sandbox; ARN names the target.
	Kind, ARN string
	// Name is derived from (tenant, execution, generation, version, hand-over):
	// the same hand-over has the same name however often it is tried.
	Name string
	// Input is the JSON object for the target, the same bytes for the same Name.
	Input []byte
}

// StartOutcome is what became of a hand-over.
type StartOutcome string

// Outcomes of a hand-over. Only a claim decides who owns an execution.
const (
	Started StartOutcome = "started" // it was started, or the token took the answer
	Existed StartOutcome = "existed" // it had been started before under this name
	Gone    StartOutcome = "gone"    // nobody waits behind the token
)
