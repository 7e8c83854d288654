package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// fail makes an error whose cause is kept for errors.Is and errors.As, and is
// not part of its text.
func fail(code execution.Code, cause error, format string, args ...any) error {
	return &execution.Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// ErrNoKeys is in the chain of a KeyUnavailable when the tenant has no keys at
// all: it never sealed anything, or its keys were shredded. Waiting does not
// help then.
var ErrNoKeys = errors.New("the tenant has no keys")

func noKeys(tenant string) error {
	return fail(execution.KeyUnavailable, ErrNoKeys, "tenant %s has no keys", tenant)
}

// classify gives a failed call of the key table or the KMS its code. what says
// what was being done, as in "unwrap a key".
func classify(err error, what string) error {
	var own *execution.Error
	if errors.As(err, &own) {
		return err
	}
	kind := store.KindOf(err)
	code := execution.Internal
	switch kind {
	case store.Throttled:
		code = execution.Throttled
	case store.Unavailable, store.Stopped, store.Conflict, store.TooLate:
		code = execution.Unavailable
	case store.KeyTrouble, store.Denied:
		code = execution.KeyUnavailable
	default:
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			code = execution.Unavailable
		}
	}
	return fail(code, err, "could not %s (%s)", what, kind)
}

// classifyUnwrap is classify for KMS.Decrypt, which answers Invalid when the
// wrapped key or its context is not what was wrapped.
func classifyUnwrap(err error, tenant string, generation int64) error {
	if store.KindOf(err) == store.Invalid {
		return fail(execution.Integrity, err, "the wrapped key %d of tenant %s is damaged", generation, tenant)
	}
	return classify(err, fmt.Sprintf("unwrap key %d of tenant %s", generation, tenant))
}
