package stepfunctions

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed machine.asl.json
var definition string

// Names are what a machine calls: function names or ARNs, also CDK tokens.
type Names struct{ Checkpoint, Recover, Desk string }

// DefaultLease is how many seconds a stopped machine keeps others waiting.
const DefaultLease = 120

// Errors that heal by themselves: Cairn's own and Lambda's. What they leave
// behind is found by the repeat, which is the same request.
var retryable = []string{
	"Throttled", "Unavailable", "KeyUnavailable", "Internal",
	"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException", "Lambda.Unknown",
	"Runtime.ExitError", "Sandbox.Timedout",
}

// The desk reads the case anew each time, so it is also called again when
// somebody (an earlier call of itself) wrote meanwhile, or when it took too long.
var retryableWork = append([]string{"VersionConflict", "States.Timeout"}, retryable...)

// Definition is the machine's definition for these names; leaseSeconds 0 is
// DefaultLease.
func Definition(n Names, leaseSeconds int) string {
	if leaseSeconds == 0 {
		leaseSeconds = DefaultLease
	}
	list := func(errors []string) string {
		text, err := json.Marshal(errors)
		if err != nil {
			panic("stepfunctions: a list of texts has no JSON form") // cannot be
		}
		return string(text)
	}
	return strings.NewReplacer("${Checkpoint}", n.Checkpoint, "${Recover}", n.Recover, "${Desk}", n.Desk,
		"${LeaseSeconds}", fmt.Sprint(leaseSeconds), "${RetryableWork}", list(retryableWork), "${Retryable}", list(retryable)).Replace(definition)
}
