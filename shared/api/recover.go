package api

import (
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Claiming is what claim and resume have in common.
type Claiming struct {
	Execution    execution.ExecutionID `json:"execution" cairn:"required,id"`
	Owner        string                `json:"owner" cairn:"required,text=128"`
	LeaseSeconds int64                 `json:"lease_seconds" cairn:"required,min=5,max=86400"`
	// Nonce is made in the memory of the claiming process; "": a repeat is a new
	// claim.
	Nonce           string       `json:"nonce,omitzero" cairn:"text=128"`
	ExpectedVersion int64        `json:"expected_version,omitzero" cairn:"min=1,nocontent"` // 0: any
	Resume          *jsonx.Value `json:"resume,omitzero"`
	Supports        *Supports    `json:"supports,omitzero"` // nil: any
	Supersede       bool         `json:"supersede,omitzero"`
	Force           *Force       `json:"force,omitzero"`
	MaxInlineBytes  int64        `json:"max_inline_bytes,omitzero" cairn:"min=1,nocontent"`
}

// Supports are the schema versions that a build reads.
type Supports struct {
	Min int64 `json:"min" cairn:"required,min=0"`
	Max int64 `json:"max" cairn:"required,min=0"`
}

// Force says why a live lease is broken.
type Force struct {
	Reason string `json:"reason" cairn:"required,text=1024"`
}

// ClaimRequest makes an owner.
type ClaimRequest struct {
	Common
	Claiming
}

// ClaimReply is the view of the new owner.
type ClaimReply struct {
	Standing
	View
}

// ResumeRequest claims, migrates and reconciles.
type ResumeRequest struct {
	Common
	Claiming
}

// ResumeReply is the plan; Parked: nobody owns it, for Reasons.
type ResumeReply struct {
	Standing
	View
	Parked  bool     `json:"parked,omitzero"`
	Reasons []Reason `json:"reasons,omitzero"`
}

// RenewRequest extends a lease.
type RenewRequest struct {
	Common
	Execution    execution.ExecutionID `json:"execution" cairn:"required,id"`
	Owner        string                `json:"owner" cairn:"required,text=128"`
	Fence        int64                 `json:"fence" cairn:"required,min=1,nocontent"`
	LeaseSeconds int64                 `json:"lease_seconds" cairn:"required,min=5,max=86400"`
}

// RenewReply says what is left of the lease.
type RenewReply struct {
	Standing
}

// ReleaseRequest gives an execution up for a fresh worker.
type ReleaseRequest struct {
	Common
	Execution    execution.ExecutionID `json:"execution" cairn:"required,id"`
	Owner        string                `json:"owner" cairn:"required,text=128"`
	Fence        int64                 `json:"fence" cairn:"required,min=1,nocontent"`
	AfterSeconds int64                 `json:"after_seconds,omitzero" cairn:"min=0,max=31536000"`
}

// ReleaseReply answers release.
type ReleaseReply struct {
	Standing
}

// ReconcileRequest settles uncertain operations: by Evidence, or without it by
// the ledger and the resolvers.
type ReconcileRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
	Fence     int64                 `json:"fence,omitzero" cairn:"min=0,nocontent"`
	Evidence  []Evidence            `json:"evidence,omitzero" cairn:"items=5000"`
}

// Evidence is what a business system or a person answered about an attempt.
type Evidence struct {
	Operation   execution.OperationID `json:"operation" cairn:"required,id"`
	Attempt     int                   `json:"attempt,omitzero" cairn:"min=1"`
	Finding     execution.Finding     `json:"finding" cairn:"required,enum=not_found|in_progress|found|several|query_failed|rejected_duplicate|decided"`
	AskedAt     *Time                 `json:"asked_at,omitzero"`
	Count       *int64                `json:"count,omitzero" cairn:"min=0"` // nil: nobody counted
	ProviderRef string                `json:"provider_ref,omitzero" cairn:"text=1024"`
	Result      *jsonx.Value          `json:"result,omitzero"`
	Outcome     execution.Outcome     `json:"outcome,omitzero" cairn:"enum=unknown|in_progress|succeeded|failed|rejected|not_executed|abandoned"`
	Fenced      bool                  `json:"fenced,omitzero"`
	Reason      string                `json:"reason,omitzero" cairn:"note=1024"`
	Reference   string                `json:"reference,omitzero" cairn:"text=1024"`
	Force       bool                  `json:"force,omitzero"`
}

// ReconcileReply says per operation what is known now.
type ReconcileReply struct {
	Standing
	Operations []Reconciled `json:"operations"`
}

// Reconciled is one operation after a reconcile.
type Reconciled struct {
	Operation   execution.OperationID `json:"operation"`
	Name        string                `json:"name,omitzero"`
	Attempt     int                   `json:"attempt,omitzero"`
	Status      string                `json:"status"`
	Outcome     execution.Outcome     `json:"outcome,omitzero"`
	Finding     execution.Finding     `json:"finding,omitzero"` // the newest answer
	NextCheckAt *Time                 `json:"next_check_at,omitzero"`
	Detail      string                `json:"detail,omitzero"`
}

// HaltRequest fences the owner out at once.
type HaltRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
	Reason    string                `json:"reason" cairn:"required,text=1024"`
}

// HaltReply answers halt.
type HaltReply struct {
	Standing
}

// UnhaltRequest lets a halted execution go on.
type UnhaltRequest struct {
	Common
	Execution       execution.ExecutionID `json:"execution" cairn:"required,id"`
	Reason          string                `json:"reason" cairn:"required,text=1024"`
	ExpectedVersion int64                 `json:"expected_version" cairn:"required,min=1,nocontent"`
}

// UnhaltReply answers unhalt.
type UnhaltReply struct {
	Standing
}

// MigrateRequest brings a workflow's executions to a schema version.
type MigrateRequest struct {
	Common
	Workflow string `json:"workflow" cairn:"required,id"`
	To       int64  `json:"to,omitzero" cairn:"min=1"` // 0: the workflow's own
	Limit    int64  `json:"limit,omitzero" cairn:"min=1,max=1000"`
	Cursor   string `json:"cursor,omitzero" cairn:"text=2048"`
}

// MigrateReply counts; a failed execution keeps its bytes and version.
type MigrateReply struct {
	Standing
	Migrated int64     `json:"migrated"`
	Skipped  int64     `json:"skipped,omitzero"` // already there
	Failures []Failure `json:"failures"`
	Cursor   string    `json:"cursor,omitzero"`
	Done     bool      `json:"done"`
}

// Failure is an execution that could not be handled.
type Failure struct {
	Tenant    execution.TenantID    `json:"tenant,omitzero"` // where a sweep covers all tenants
	Execution execution.ExecutionID `json:"execution"`
	Code      execution.Code        `json:"code"`
	Message   string                `json:"message,omitzero"`
}

// SweepRequest handles what is due: leases, wakes and reconcile timers in
// recover; retention timers, history rules and orphans in retention. Without a
// tenant, all.
type SweepRequest struct {
	Common `cairn:"alltenants"`
	Limit  int64 `json:"limit,omitzero" cairn:"min=1,max=1000"`
}

// SweepReply counts what was handled.
type SweepReply struct {
	Standing
	HandedOver int64     `json:"handed_over"`
	Parked     int64     `json:"parked"`
	Removed    int64     `json:"removed"`
	Failures   []Failure `json:"failures"`
}

// BatchReply answers a batch of stream records: those that are to be delivered
// again, none when empty (Lambda, ReportBatchItemFailures).
type BatchReply struct {
	Failures []BatchFailure `json:"batchItemFailures"`
}

// BatchFailure is one record by its exact sequence number.
type BatchFailure struct {
	Item string `json:"itemIdentifier"`
}
