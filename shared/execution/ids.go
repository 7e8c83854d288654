package execution

import "strings"

// The five identities. They are never interchangeable; each is compared
// exactly as given.
type (
	// TenantID names whose data it is: [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
	TenantID string
	// ThreadID names a conversation or case that executions belong to.
	ThreadID string
	// ExecutionID names one run; with the tenant it is the key.
	ExecutionID string
	// TaskID names a stage inside an execution.
	TaskID string
	// OperationID names one external effect; it is made by Identify, 32
	// lower-case hex digits.
	OperationID string
)

// Identifier lengths in bytes (architecture, "Tables and bucket"). No
// separator of a key can stand in an identifier, so no two differ only in
// where one ends, and no prefix contains another.
const (
	MaxIdentifier = 128
	MaxTenant     = 64
)

// ValidIdentifier reports whether s matches [A-Za-z0-9][A-Za-z0-9._-]* and has
// at most max bytes.
func ValidIdentifier(s string, max int) bool {
	if s == "" || len(s) > max {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

// CheckIdentifier is InvalidRequest naming the field unless s is an identifier
// of at most max bytes.
func CheckIdentifier(field, s string, max int) error {
	if ValidIdentifier(s, max) {
		return nil
	}
	return Invalid(field, "must match [A-Za-z0-9][A-Za-z0-9._-]* and have at most %d characters", max)
}

// CheckText is InvalidRequest naming the field unless s has 1 to max
// characters, none of them a control character (U+0000 to U+001F, U+007F to
// U+009F).
func CheckText(field, s string, max int) error {
	if s == "" {
		return Invalid(field, "must not be empty")
	}
	return CheckNote(field, s, max)
}

// CheckNote is CheckText for text that may be empty.
func CheckNote(field, s string, max int) error {
	n := 0
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return Invalid(field, "must not hold control characters")
		}
		n++
	}
	if n > max {
		return Invalid(field, "must have at most %d characters", max)
	}
	return nil
}

// PartitionKey is the main table's partition of an execution; '#' stands in no
// identifier.
func PartitionKey(t TenantID, e ExecutionID) string { return string(t) + "#" + string(e) }

// ParsePartitionKey takes a partition key apart; false when it is none of an
// execution's (a registry shard, another table's item).
func ParsePartitionKey(pk string) (TenantID, ExecutionID, bool) {
	t, e, _ := strings.Cut(pk, "#")
	if !ValidIdentifier(t, MaxTenant) || !ValidIdentifier(e, MaxIdentifier) {
		return "", "", false
	}
	return TenantID(t), ExecutionID(e), true
}

// Ref names one generation of an execution.
type Ref struct {
	Tenant     TenantID    `json:"t"`
	Execution  ExecutionID `json:"e"`
	Generation int64       `json:"g"`
}

// PK is the partition key of the execution.
func (r Ref) PK() string { return PartitionKey(r.Tenant, r.Execution) }
