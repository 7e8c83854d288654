package api

import (
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// Common are the fields of every request.
type Common struct {
	// Tenant is whose data it is. Only a sweep may leave it out: all tenants.
	Tenant execution.TenantID `json:"tenant,omitzero" cairn:"required,id=64"`
	// Actor is who asks, as claimed; nil: not said.
	Actor *Actor `json:"actor,omitzero" cairn:"nocontent"`
	// RequestID makes a repeat recognisable; "": none.
	RequestID string `json:"request_id,omitzero" cairn:"text=128,nocontent"`

	// Hash and Digest identify the request; Decode and Identify set them. Hash is
	// zero without a RequestID.
	Hash execution.RequestHash `json:"-"`
	// Redacted: the secret guard replaced values in the request's data.
	Redacted bool                    `json:"-"`
	Digest   execution.ContentDigest `json:"-"`
}

func (c *Common) common() *Common { return c }

// Actor is who asked. It converts to and from execution.Actor.
type Actor struct {
	Kind string `json:"kind" cairn:"required,enum=worker|tool|human|system"`
	ID   string `json:"id" cairn:"required,text=256"`
	Via  string `json:"via,omitzero" cairn:"text=256"`
	// Verified is set where the door proved it; a request cannot claim it.
	Verified bool `json:"verified,omitzero" cairn:"reply"`
}

// Execution gives the actor as entries hold it; nil for nil.
func (a *Actor) Execution() *execution.Actor { return (*execution.Actor)(a) }

// Standing says where an execution stands; it is part of every reply and every
// error. Zero fields are unknown and left out, but with a Status known, Fence 0
// (never claimed) and Owner "" (nobody) are shown.
type Standing struct {
	Execution execution.ExecutionID `json:"execution,omitzero"`
	// Version is that of the last entry the request wrote, of the tip for a read.
	Version int64            `json:"version,omitzero"`
	Status  execution.Status `json:"status,omitzero"`
	Fence   int64            `json:"fence,omitzero" cairn:"with=status"`
	Owner   string           `json:"owner,omitzero" cairn:"with=status"`
	// LeaseRemainingMS is what is left of the owner's lease; nil: no owner, or
	// not known.
	LeaseRemainingMS *int64 `json:"lease_remaining_ms,omitzero"`
	Cost             *Cost  `json:"cost,omitzero"`
	// Replayed: the same request had been done before; Tip is where the execution
	// stands now.
	Replayed bool `json:"replayed,omitzero"`
	Tip      *Tip `json:"tip,omitzero"`
}

// Where gives the standing of a reply.
func (s *Standing) Where() *Standing { return s }

// Tip is the newest version and fence.
type Tip struct {
	Version int64 `json:"version"`
	Fence   int64 `json:"fence"`
}

// Cost is what a request cost in calls and capacity units. It converts
// from store.Cost.
type Cost struct {
	Reads          int     `json:"reads"`
	Writes         int     `json:"writes"`
	ReadUnits      float64 `json:"read_units"`
	WriteUnits     float64 `json:"write_units"`
	ObjectRequests int     `json:"object_requests"`
}

// Time is a moment in milliseconds since 1970 UTC. Its JSON form is RFC 3339 in
// UTC with milliseconds.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

func (t Time) String() string { return time.UnixMilli(int64(t)).UTC().Format(timeLayout) }

// Millis gives the milliseconds; 0 for nil.
func (t *Time) Millis() int64 {
	if t == nil {
		return 0
	}
	return int64(*t)
}

// TimeOrNil gives nil for 0 (no time), else the time.
func TimeOrNil(ms int64) *Time {
	if ms == 0 {
		return nil
	}
	t := Time(ms)
	return &t
}

// ParseTime reads RFC 3339 in UTC (ending in Z) with at most milliseconds;
// false for anything else.
func ParseTime(s string) (Time, bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || s[len(s)-1] != 'Z' || len(s) > len(timeLayout) || s[seconds] != '.' && s[seconds] != 'Z' {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, false
	}
	return Time(t.UnixMilli()), true
}

// MarshalText writes the JSON form, for encoding/json.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the JSON form, for encoding/json.
func (t *Time) UnmarshalText(text []byte) error {
	v, ok := ParseTime(string(text))
	if !ok {
		return execution.Errorf(execution.InvalidRequest, "no RFC 3339 time in UTC with milliseconds")
	}
	*t = v
	return nil
}

// Decimal is an exact decimal number as it was written: a JSON number token.
// In requests it is what execution.ParseDecimal takes, not negative, and of at
// most MaxDecimalText characters.
type Decimal string

// MaxDecimalText bounds a Decimal before anything is made of it.
const MaxDecimalText = 256

// MarshalJSON writes the token as a number, for encoding/json.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// UnmarshalJSON takes a number token, for encoding/json.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	*d = Decimal(text)
	return nil
}

// Schema names the shape of an agent's state. It converts to execution.Schema.
type Schema struct {
	Name    string `json:"name" cairn:"required,id"`
	Version int64  `json:"version" cairn:"required,min=1"`
}

// Permissions say for whom an execution acts; never credentials.
type Permissions struct {
	Principal string   `json:"principal" cairn:"required,text=256"`
	Scopes    []string `json:"scopes" cairn:"required,text=256,items=100"`
	ExpiresAt *Time    `json:"expires_at,omitzero"` // nil: never
	Ref       string   `json:"ref,omitzero" cairn:"text=1024"`
}

// Execution gives the permissions as entries hold them; nil for nil.
func (p *Permissions) Execution() *execution.Permissions {
	if p == nil {
		return nil
	}
	return &execution.Permissions{Principal: p.Principal, Scopes: p.Scopes, ExpiresAt: p.ExpiresAt.Millis(), Ref: p.Ref}
}

// Ref points to exact bytes that are too long for a reply.
type Ref struct {
	Version   int64  `json:"version,omitzero"`
	Digest    string `json:"digest"` // SHA-256, 64 lower-case hex digits
	Bytes     int64  `json:"bytes"`
	URL       string `json:"url"`
	ExpiresAt *Time  `json:"expires_at,omitzero"`
}

// Artifact describes a stored artifact.
type Artifact struct {
	Digest    string `json:"digest"` // SHA-256, 64 lower-case hex digits
	Bytes     int64  `json:"bytes"`
	Name      string `json:"name,omitzero"`
	MediaType string `json:"media_type,omitzero"`
	Version   int64  `json:"version,omitzero"` // of the entry that accepted it; 0: only staged
}

// Reason says why an execution is parked, as data. It converts from
// execution.Reason.
type Reason struct {
	Code      string                `json:"code"`
	Operation execution.OperationID `json:"operation,omitzero"`
	Name      string                `json:"name,omitzero"`
	Detail    string                `json:"detail,omitzero"`
}

// Selector names what a hold or deletion is about: exactly one field is set
// where a request embeds it.
type Selector struct {
	Execution execution.ExecutionID `json:"execution,omitzero" cairn:"id"`
	Thread    execution.ThreadID    `json:"thread,omitzero" cairn:"id"`
	Subject   string                `json:"subject,omitzero" cairn:"text=256"`
}

// InlineLimit gives the limit of bytes for a reply: n, or the default for 0,
// never more than a reply may have.
func InlineLimit(n int64) int {
	if n == 0 {
		n = execution.DefaultInlineBytes
	}
	return int(min(n, execution.MaxReplyBytes))
}

// ListLimit gives the limit of entries for a listing: n, or the default for 0.
func ListLimit(n int64) int {
	if n == 0 {
		n = execution.DefaultListLimit
	}
	return int(min(n, execution.MaxListLimit))
}
