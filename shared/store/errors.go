package store

import (
	"errors"
	"fmt"
)

// ErrorKind is what went wrong, as far as a caller can act on it.
type ErrorKind string

// The kinds of store errors.
const (
	// Throttled: refused for load; nothing was written.
	Throttled ErrorKind = "throttled"
	// Unavailable: no answer, a 5xx, or a broken connection; see Ambiguous.
	Unavailable ErrorKind = "unavailable"
	// Denied: the caller's credentials do not allow it.
	Denied ErrorKind = "denied"
	// KeyTrouble: the encryption key of the table, bucket or data is disabled,
	// pending deletion, missing or not allowed.
	KeyTrouble ErrorKind = "key"
	// TooLarge: over a size limit of the store.
	TooLarge ErrorKind = "too_large"
	// Invalid: the store refused the request's form (a bug of ours).
	Invalid ErrorKind = "invalid"
	// TooLate: the write's validation is older than Window; nothing was written.
	TooLate ErrorKind = "too_late"
	// Conflict: another transaction was at work on the item; nothing was
	// written by this call, and it may be repeated.
	Conflict ErrorKind = "conflict"
	// NotFound: no such object (Bucket only).
	NotFound ErrorKind = "not_found"
	// Exists: a create-only object is there already (Bucket only).
	Exists ErrorKind = "exists"
	// Stopped: the context ended; see Ambiguous.
	Stopped ErrorKind = "stopped"
)

// Error is a failed call. Its text holds keys and codes, never values.
type Error struct {
	Call string // put, update, transact, query, get, delete, batch, put_object ...
	Key  string // what it was about: "pk/sk" or the object key
	Kind ErrorKind
	// Ambiguous: the write may or may not have happened, or may still happen
	// (until Window after its validation). Never set on reads.
	Ambiguous bool
	Code      string // the service's error code, for logs
	Err       error  // cause, for errors.Is on context errors; may be nil
}

func (e *Error) Error() string {
	amb := ""
	if e.Ambiguous {
		amb = " (outcome unknown)"
	}
	return fmt.Sprintf("store: %s %s: %s%s %s", e.Call, e.Key, e.Kind, amb, e.Code)
}

func (e *Error) Unwrap() error { return e.Err }

// ConditionFailed: the condition did not hold and nothing was written.
type ConditionFailed struct {
	Key Key
	// Old is the item that was there; nil when there was none.
	Old Item
}

func (e *ConditionFailed) Error() string {
	return fmt.Sprintf("store: condition failed on %s/%s", e.Key.PK, e.Key.SK)
}

// Reason says why one part of a transaction was refused.
type Reason string

// Reasons of a cancelled transaction. Any reason not listed becomes
// ReasonOther: it is not repeated.
const (
	ReasonNone      Reason = ""
	ReasonCondition Reason = "condition"
	ReasonConflict  Reason = "conflict"  // TransactionConflict
	ReasonThrottled Reason = "throttled" // ThrottlingError, ProvisionedThroughputExceeded
	ReasonOther     Reason = "other"     // ValidationError, ItemCollectionSizeLimitExceeded ...
)

// Cancelled: the transaction was refused as a whole and nothing was written.
// It is returned when at least one reason is ReasonCondition (the rest do not
// matter then). Refusals that consist of conflicts and throttling alone are
// repeated inside with the same token and end as *Error; a ReasonOther without
// any ReasonCondition is an *Error of kind Invalid.
type Cancelled struct {
	// Reasons and Old have one element per part, in order.
	Reasons []Reason
	Old     []Item
}

func (e *Cancelled) Error() string { return fmt.Sprintf("store: transaction refused: %v", e.Reasons) }

// KindOf gives the kind of a *Error in err's chain, "" when there is none.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Ambiguous reports whether the write that failed with err may have happened.
func Ambiguous(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Ambiguous
}
