package sandbox

import (
	"errors"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/api"
)

// lambdaFailure is the error type and message that Lambda answers for a
// function's error.
func lambdaFailure(err error) (errorType, message string) {
	var made messages.InvokeResponse_Error
	if !errors.As(err, &made) {
		made = api.LambdaError(err, nil)
	}
	return made.Type, made.Message
}
