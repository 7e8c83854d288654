package execution

import (
	"errors"
	"fmt"
	"maps"
)

// Code is one of the closed set of error codes. Match with errors.Is (a Code
// is an error) or CodeOf.
type Code string

// The codes (api.md, "Status and errors").
const (
	// Retryable as it stands, unchanged.
	LeaseHeld      Code = "LeaseHeld"
	Throttled      Code = "Throttled"
	Unavailable    Code = "Unavailable" // outcome unknown: repeat the same request
	KeyUnavailable Code = "KeyUnavailable"
	Internal       Code = "Internal"
	// Never retryable unchanged.
	InvalidRequest    Code = "InvalidRequest"
	NotFound          Code = "NotFound"
	AlreadyExists     Code = "AlreadyExists"
	Deleted           Code = "Deleted"
	VersionConflict   Code = "VersionConflict" // reload
	LeaseLost         Code = "LeaseLost"
	ExecutionClosed   Code = "ExecutionClosed"
	Halted            Code = "Halted"
	RequestMismatch   Code = "RequestMismatch"
	RequestForgotten  Code = "RequestForgotten"
	OperationMismatch Code = "OperationMismatch"
	OperationsOpen    Code = "OperationsOpen"
	BudgetExceeded    Code = "BudgetExceeded"
	SecretRefused     Code = "SecretRefused"
	SchemaTooNew      Code = "SchemaTooNew"
	MigrationFailed   Code = "MigrationFailed"
	TooLarge          Code = "TooLarge"
	Integrity         Code = "Integrity"
	Held              Code = "Held"
	HistoryPruned     Code = "HistoryPruned"
	ExecutionOpen     Code = "ExecutionOpen"
)

// Codes lists the whole set.
var Codes = []Code{
	LeaseHeld, Throttled, Unavailable, KeyUnavailable, Internal,
	InvalidRequest, NotFound, AlreadyExists, Deleted, VersionConflict, LeaseLost, ExecutionClosed, Halted,
	RequestMismatch, RequestForgotten, OperationMismatch, OperationsOpen, BudgetExceeded, SecretRefused,
	SchemaTooNew, MigrationFailed, TooLarge, Integrity, Held, HistoryPruned, ExecutionOpen,
}

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

// Retryable reports whether the same request may be repeated unchanged. It
// depends on the code alone.
func (c Code) Retryable() bool {
	switch c {
	case LeaseHeld, Throttled, Unavailable, KeyUnavailable, Internal:
		return true
	}
	return false
}

// Error is the one error type that leaves the core. Its text and facts hold
// identifiers, versions and limits, never agent data or secrets.
type Error struct {
	Code    Code
	Message string
	// Facts are JSON-ready: version, fence, owner, retry_after_ms, path, field,
	// operations, limit, changes ... (api.md, "Calling it"). May be nil.
	Facts map[string]any
	// Err is the cause, for errors.Is; its text is not shown to callers.
	Err error
}

func (e *Error) Error() string {
	if f, ok := e.Facts["field"]; ok {
		return fmt.Sprintf("%s: %v: %s", e.Code, f, e.Message)
	}
	return string(e.Code) + ": " + e.Message
}

// Is matches the code and nothing else.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

func (e *Error) Unwrap() error { return e.Err }

// With returns a copy of e with one more fact.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Facts = maps.Clone(e.Facts)
	if c.Facts == nil {
		c.Facts = map[string]any{}
	}
	c.Facts[name] = value
	return &c
}

// Because returns a copy of e with its cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Errorf makes an Error; the text must not hold agent data.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is InvalidRequest naming a control field of the request.
func Invalid(field, format string, args ...any) *Error {
	return Errorf(InvalidRequest, format, args...).With("field", field)
}

// InvalidPath is InvalidRequest naming a JSON path (RFC 6901) inside a field
// that holds agent data.
func InvalidPath(field, path, reason string) *Error {
	return Errorf(InvalidRequest, "%s", reason).With("field", field).With("path", path)
}

// CodeOf gives the code of an error: "" for nil, Internal for an error that
// carries none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// AsError gives err as *Error; an error that carries none becomes Internal
// without its text.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(Internal, "internal error").Because(err)
}
