package api

import "github.com/cairnstate/cairn/shared/execution"

// Policy says how long what is kept. A missing number of days means: keep.
type Policy struct {
	Name          string       `json:"name" cairn:"required,id"`
	CompletedDays *int64       `json:"completed_days,omitzero" cairn:"min=0,max=36500"`
	FailedDays    *int64       `json:"failed_days,omitzero" cairn:"min=0,max=36500"`
	CancelledDays *int64       `json:"cancelled_days,omitzero" cairn:"min=0,max=36500"`
	History       *HistoryRule `json:"history,omitzero"`
	Archive       *ArchiveRule `json:"archive,omitzero"`
	ReceiptDays   *int64       `json:"receipt_days,omitzero" cairn:"min=7,max=36500"` // nil: the default
}

// HistoryRule says which versions are kept: all, the last N versions, or those
// of the last N days.
type HistoryRule struct {
	Keep string `json:"keep" cairn:"required,enum=all|versions|days"`
	N    int64  `json:"n,omitzero" cairn:"min=1,max=1000000000"`
}

// ArchiveRule says whether ended executions are archived before removal.
type ArchiveRule struct {
	Enabled      bool   `json:"enabled" cairn:"required"`
	StorageClass string `json:"storage_class,omitzero" cairn:"enum=STANDARD|STANDARD_IA|ONEZONE_IA|INTELLIGENT_TIERING|GLACIER_IR|GLACIER|DEEP_ARCHIVE"` // "": GLACIER_IR
}

// SetPolicyRequest stores a policy.
type SetPolicyRequest struct {
	Common
	Policy Policy `json:"policy" cairn:"required"`
}

// SetPolicyReply gives the stored policy.
type SetPolicyReply struct {
	Standing
	Policy *Policy `json:"policy"`
}

// GetPolicyRequest reads a policy by its name; on the wire the name, or an
// object that has it.
type GetPolicyRequest struct {
	Common
	Policy PolicyName `json:"policy" cairn:"required"`
}

// PolicyName names a policy.
type PolicyName struct {
	Name string `json:"name" cairn:"required,id,short"`
}

// GetPolicyReply gives the stored policy.
type GetPolicyReply = SetPolicyReply

// HoldRequest keeps an execution, or all of a thread or subject, from being
// removed.
type HoldRequest struct {
	Common
	Selector
	Hold   string `json:"hold" cairn:"required,id"`
	Reason string `json:"reason" cairn:"required,text=1024"`
}

// HoldReply gives the holds in force on what was named.
type HoldReply = HoldsReply

// ReleaseHoldRequest ends a hold.
type ReleaseHoldRequest struct {
	Common
	Selector
	Hold   string `json:"hold" cairn:"required,id"`
	Reason string `json:"reason" cairn:"required,text=1024"`
}

// ReleaseHoldReply gives the holds still in force.
type ReleaseHoldReply = HoldsReply

// HoldsRequest lists the holds in force.
type HoldsRequest struct {
	Common
	Selector
}

// HoldsReply lists the holds in force.
type HoldsReply struct {
	Standing
	Holds []HoldView `json:"holds"`
}

// HoldView is one hold.
type HoldView struct {
	Hold   string   `json:"hold"`
	Reason string   `json:"reason"`
	Actor  *Actor   `json:"actor,omitzero"`
	Since  *Time    `json:"since,omitzero"`
	On     Selector `json:"on"`
}

// ArchiveRequest moves an ended execution into the archive.
type ArchiveRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
}

// ArchiveReply names what the archive holds.
type ArchiveReply struct {
	Standing
	Manifest *Manifest `json:"manifest"`
}

// Manifest lists an archive's content by digest.
type Manifest struct {
	Key       string         `json:"key"`
	Digest    string         `json:"digest"`
	Bytes     int64          `json:"bytes"`
	Version   int64          `json:"version"` // the newest that it holds
	Entries   int64          `json:"entries"`
	Artifacts []Artifact     `json:"artifacts,omitzero"`
	Files     []ManifestFile `json:"files,omitzero"`
}

// ManifestFile is one part of an archive.
type ManifestFile struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// RestoreRequest brings an archived execution back.
type RestoreRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
}

// RestoreReply names the archive that was restored.
type RestoreReply struct {
	Standing
	Manifest *Manifest `json:"manifest"`
}

// DeleteRequest removes one execution, or all of a thread, subject or label.
type DeleteRequest struct {
	Common
	Selector
	// Generation deletes the execution only if it is that one (a receipt that is
	// replayed after a restore of the table); 0: whichever it is.
	Generation   int64             `json:"generation,omitzero" cairn:"min=1"`
	Label        map[string]string `json:"label,omitzero" cairn:"keys=id,note=256"`
	Reason       string            `json:"reason" cairn:"required,text=1024"`
	WhenReleased bool              `json:"when_released,omitzero"`
	Cursor       string            `json:"cursor,omitzero" cairn:"text=2048"`
	Limit        int64             `json:"limit,omitzero" cairn:"min=1,max=1000"`
}

// DeleteReply says how far a deletion is.
type DeleteReply struct {
	Standing
	Receipt      *Receipt         `json:"receipt,omitzero"` // of one execution
	Receipts     []Receipt        `json:"receipts,omitzero"`
	Done         bool             `json:"done"`
	Cursor       string           `json:"cursor,omitzero"`
	Counts       map[string]int64 `json:"counts"`
	Deferred     []Deferred       `json:"deferred"`
	RetryAfterMS int64            `json:"retry_after_ms,omitzero"`
}

// Deferred is an execution that holds keep.
type Deferred struct {
	Execution execution.ExecutionID `json:"execution"`
	Holds     []string              `json:"holds"`
}

// PurgeTenantRequest removes everything of a tenant.
type PurgeTenantRequest struct {
	Common
	Cursor string `json:"cursor,omitzero" cairn:"text=2048"`
	Limit  int64  `json:"limit,omitzero" cairn:"min=1,max=1000"`
	Shred  bool   `json:"shred,omitzero"`
}

// PurgeTenantReply says how far a purge is. Done: nothing is left.
type PurgeTenantReply struct {
	Standing
	Done         bool             `json:"done"`
	Cursor       string           `json:"cursor,omitzero"`
	Counts       map[string]int64 `json:"counts"`
	Deferred     []Deferred       `json:"deferred"`
	RetryAfterMS int64            `json:"retry_after_ms,omitzero"`
}

// Receipt is what stays of a deleted execution.
type Receipt struct {
	Execution        execution.ExecutionID `json:"execution"`
	Generation       int64                 `json:"generation"`
	State            string                `json:"state"` // deleting or deleted
	Last             int64                 `json:"last"`  // the tip before the closing entry
	Reason           string                `json:"reason,omitzero"`
	Rule             string                `json:"rule,omitzero"` // of the policy, for an expiry
	Actor            *Actor                `json:"actor,omitzero"`
	Counts           map[string]int64      `json:"counts,omitzero"`
	Digests          map[string]string     `json:"digests,omitzero"`
	RequestID        string                `json:"request_id,omitzero"`
	ClosedAt         *Time                 `json:"closed_at,omitzero"`
	DeletedAt        *Time                 `json:"deleted_at,omitzero"`
	RecoverableUntil *Time                 `json:"recoverable_until,omitzero"` // backups, stream, noncurrent versions
	ExpiresAt        *Time                 `json:"expires_at,omitzero"`        // of the receipt
}

// GetReceiptRequest reads the newest receipt of an id.
type GetReceiptRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
}

// GetReceiptReply gives the newest receipt, and older ones that still live.
type GetReceiptReply struct {
	Standing
	Receipt  *Receipt  `json:"receipt"`
	Receipts []Receipt `json:"receipts,omitzero"`
}

// ReceiptsRequest lists a tenant's receipts.
type ReceiptsRequest struct {
	Common
	Since  *Time  `json:"since,omitzero"`
	Limit  int64  `json:"limit,omitzero" cairn:"min=1,max=1000"`
	Cursor string `json:"cursor,omitzero" cairn:"text=2048"`
}

// ReceiptsReply lists receipts; Cursor "" is the last page.
type ReceiptsReply struct {
	Standing
	Receipts []Receipt `json:"receipts"`
	Cursor   string    `json:"cursor,omitzero"`
}

// VerifyRequest checks one execution, or a page of the tenant. Read-only.
type VerifyRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution,omitzero" cairn:"id"`
	Cursor    string                `json:"cursor,omitzero" cairn:"text=2048"`
}

// VerifyReply lists what is wrong; empty: nothing is. Cursor "" is the last
// page.
type VerifyReply struct {
	Standing
	Findings []VerifyFinding `json:"findings"`
	Checked  int64           `json:"checked"`
	Cursor   string          `json:"cursor,omitzero"`
}

// VerifyFinding is one thing that is wrong.
type VerifyFinding struct {
	Kind      string                `json:"kind"` // dangling_reference, orphan_object, gap, digest_mismatch, stray_entry, timer_missing, stuck_deletion
	Execution execution.ExecutionID `json:"execution,omitzero"`
	Key       string                `json:"key,omitzero"`
	Detail    string                `json:"detail,omitzero"`
}

// RotateKeyRequest makes a new tenant key for new writes.
type RotateKeyRequest struct {
	Common
}

// RotateKeyReply lists the generations after the rotation.
type RotateKeyReply = KeysReply

// KeysRequest lists a tenant's key generations.
type KeysRequest struct {
	Common
}

// KeysReply lists a tenant's key generations.
type KeysReply struct {
	Standing
	Keys []KeyView `json:"keys"`
}

// KeyView is one generation of a tenant's key.
type KeyView struct {
	Generation int64 `json:"generation"`
	Current    bool  `json:"current"`
	Created    *Time `json:"created,omitzero"`
	Items      int64 `json:"items"`
}
