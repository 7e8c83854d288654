package jsonx

import (
	"errors"
	"fmt"
)

// Limits bounds what Parse accepts. A zero or negative field means the default.
type Limits struct {
	// Depth is the deepest nesting of arrays and objects; the value's own
	// brackets count, so Depth 1 allows [] and not [[]]. A text that wraps
	// values needs more: a patch of a document at the limit is nested PatchDepth
	// deeper than the document may be.
	Depth int
	// Exponent is the largest absolute value of a number's written exponent.
	Exponent int
}

// PatchDepth is how much deeper than DefaultLimits.Depth a patch may be nested
// whose result is within it: its own brackets and an operation's braces.
const PatchDepth = 2

// DefaultLimits are the limits of Parse.
var DefaultLimits = Limits{Depth: 500, Exponent: 9999}

// Reasons of a SyntaxError.
const (
	ReasonUnexpectedEnd   = "unexpected end of text"
	ReasonUnexpected      = "unexpected character"
	ReasonTrailing        = "text after the value"
	ReasonBOM             = "byte order mark"
	ReasonUTF8            = "invalid UTF-8"
	ReasonControl         = "control character in string"
	ReasonEscape          = "invalid escape in string"
	ReasonNumber          = "invalid number"
	ReasonNotNumber       = "NaN and Infinity are no JSON numbers"
	ReasonExponent        = "exponent of number too large"
	ReasonDepth           = "nesting too deep"
	ReasonDuplicateMember = "same key twice in one object"
)

// SyntaxError says why a text was refused. It holds nothing of the text but
// the path.
type SyntaxError struct {
	// Path is the RFC 6901 pointer of the offending value, "" for the whole.
	// A broken key is reported at its object, a repeated key at its member.
	// Characters that do not print appear as \uXXXX, and the pointer is cut to
	// 256 bytes ("…" at its end).
	Path string
	// Offset is the position in bytes, from 0, at which reading stopped.
	Offset int64
	// Reason is one of the Reason constants.
	Reason string
}

func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("json: %s (offset %d)", e.Reason, e.Offset)
	}
	return fmt.Sprintf("json: %s at %s (offset %d)", e.Reason, e.Path, e.Offset)
}

// ErrTooLarge is what a PatchError unwraps to when the result would exceed the
// size limit.
var ErrTooLarge = errors.New("json patch: result too large")

// ErrTooDeep is what a PatchError unwraps to when the result would be nested
// deeper than DefaultLimits.Depth.
var ErrTooDeep = errors.New("json patch: result nested too deep")

// ErrTestFailed is what a PatchError unwraps to when a test operation found
// another value.
var ErrTestFailed = errors.New("json patch: test failed")

// PatchError says which operation of a patch could not be applied and why. It
// holds nothing of the document or the patch but the path.
type PatchError struct {
	// Index is the position of the operation from 0; -1 when the patch as a
	// whole (or its result) is meant.
	Index int
	// Op is the operation's name, "" when it is unknown or Index is -1.
	Op string
	// Path is the pointer at fault, made printable and cut like
	// SyntaxError.Path.
	Path string
	// Reason is a constant text.
	Reason string

	cause error // ErrTooLarge, ErrTooDeep, ErrTestFailed or nil
}

func (e *PatchError) Error() string {
	if e.Index < 0 {
		return "json patch: " + e.Reason
	}
	return fmt.Sprintf("json patch: operation %d (%s) at %q: %s", e.Index, e.Op, e.Path, e.Reason)
}

// Unwrap returns ErrTooLarge, ErrTooDeep, ErrTestFailed or nil.
func (e *PatchError) Unwrap() error { return e.cause }
