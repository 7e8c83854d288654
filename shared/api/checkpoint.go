package api

import (
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// CreateRequest starts an execution.
type CreateRequest struct {
	Common
	Execution   execution.ExecutionID  `json:"execution,omitzero" cairn:"id"` // "": derived from tenant and request_id, or from Parent
	Thread      execution.ThreadID     `json:"thread,omitzero" cairn:"id"`
	Workflow    string                 `json:"workflow" cairn:"required,id"`
	Schema      *Schema                `json:"schema,omitzero"`
	Input       *jsonx.Value           `json:"input,omitzero"`
	State       *jsonx.Value           `json:"state,omitzero" cairn:"state"` // nil: {}
	Permissions *Permissions           `json:"permissions,omitzero"`
	Budgets     map[string]BudgetLimit `json:"budgets,omitzero" cairn:"keys=id,items=100"`
	Policy      string                 `json:"policy,omitzero" cairn:"id"`
	Labels      map[string]string      `json:"labels,omitzero" cairn:"keys=id,note=256,items=40"`
	Subjects    []string               `json:"subjects,omitzero" cairn:"text=256,items=40"`
	Parent      *ParentRef             `json:"parent,omitzero"`
	Claim       *CreateClaim           `json:"claim,omitzero"`
	Reuse       string                 `json:"reuse,omitzero" cairn:"enum=refuse|new_generation"` // "": refuse
}

// BudgetLimit is how much of something may be spent.
type BudgetLimit struct {
	Limit Decimal `json:"limit" cairn:"required"`
}

// ParentRef is the operation whose effect the new execution is.
type ParentRef struct {
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
	Operation execution.OperationID `json:"operation" cairn:"required,id"`
}

// CreateClaim makes the creator the first owner.
type CreateClaim struct {
	Owner        string `json:"owner" cairn:"required,text=128"`
	LeaseSeconds int64  `json:"lease_seconds" cairn:"required,min=5,max=86400"`
}

// CreateReply answers create and fork.
type CreateReply struct {
	Standing
	Generation int64 `json:"generation"`
	// Parent is set by a fork and for a child.
	Parent *Parent `json:"parent,omitzero"`
}

// Changes is what apply, suspend and complete have in common: one step.
type Changes struct {
	Execution       execution.ExecutionID  `json:"execution" cairn:"required,id"`
	ExpectedVersion int64                  `json:"expected_version" cairn:"required,min=1,nocontent"`
	FirstVersion    int64                  `json:"first_version,omitzero" cairn:"min=1,nocontent"` // 0: never moved
	Fence           int64                  `json:"fence,omitzero" cairn:"min=0,nocontent"`         // 0: none shown
	Task            execution.TaskID       `json:"task,omitzero" cairn:"id"`
	State           *jsonx.Value           `json:"state,omitzero" cairn:"state"`
	Patch           *jsonx.Value           `json:"patch,omitzero" cairn:"patch"`
	Merge           *jsonx.Value           `json:"merge,omitzero" cairn:"object"`
	Outcomes        []OutcomeReport        `json:"outcomes,omitzero" cairn:"items=10000"`
	Absorb          []SignalRef            `json:"absorb,omitzero" cairn:"items=5000"`
	Operations      []OperationDeclaration `json:"operations,omitzero" cairn:"items=5000"`
	Artifacts       []ArtifactRef          `json:"artifacts,omitzero" cairn:"items=10000"`
	Spend           map[string]Decimal     `json:"spend,omitzero" cairn:"keys=id,items=100"`
	Labels          map[string]string      `json:"labels,omitzero" cairn:"keys=id,note=256,items=40"`
	Subjects        []string               `json:"subjects,omitzero" cairn:"text=256,items=40"`
	Permissions     *Permissions           `json:"permissions,omitzero"`
	Note            string                 `json:"note,omitzero" cairn:"note=1024"`
	// MaxInlineBytes limits the reply (results of operations); 0: the default.
	MaxInlineBytes int64 `json:"max_inline_bytes,omitzero" cairn:"min=1,nocontent"`
}

// ApplyRequest writes one step. Then nil: the execution goes on.
type ApplyRequest struct {
	Common
	Changes
	Then *Then `json:"then,omitzero"`
}

// SuspendRequest is apply with its ending at the top level.
type SuspendRequest struct {
	Common
	Changes
	Wait *Wait `json:"wait" cairn:"required"`
}

// CompleteRequest is apply with its ending at the top level.
type CompleteRequest struct {
	Common
	Changes
	Completion
}

// Apply gives the same step as an apply; it keeps the request's own identity.
func (r *SuspendRequest) Apply() *ApplyRequest {
	return &ApplyRequest{Common: r.Common, Changes: r.Changes, Then: &Then{Suspend: r.Wait}}
}

// Apply gives the same step as an apply; it keeps the request's own identity.
func (r *CompleteRequest) Apply() *ApplyRequest {
	c := r.Completion
	return &ApplyRequest{Common: r.Common, Changes: r.Changes, Then: &Then{Complete: &c}}
}

// Then is how a step ends; exactly one field is set.
type Then struct {
	Suspend  *Wait       `json:"suspend,omitzero"`
	Complete *Completion `json:"complete,omitzero"`
	Continue *Continue   `json:"continue,omitzero"`
}

// Wait is what a suspended execution waits for; with nothing awaited it waits
// until someone claims it.
type Wait struct {
	Operations []execution.OperationID `json:"operations,omitzero" cairn:"id,items=5000"`
	Signals    []string                `json:"signals,omitzero" cairn:"id,items=1000"`
	Until      *Time                   `json:"until,omitzero"`
	WaitingFor *jsonx.Value            `json:"waiting_for,omitzero"`
	Wake       *Wake                   `json:"wake,omitzero" cairn:"nocontent"`
}

// Wake is how a waiting execution is woken instead of by its workflow's resume
// target. It is sealed and never shown.
type Wake struct {
	TaskToken string `json:"task_token" cairn:"required,text=2048"`
}

// Completion ends an execution.
type Completion struct {
	Outcome execution.Status `json:"outcome" cairn:"required,enum=completed|failed|cancelled"`
	Result  *jsonx.Value     `json:"result,omitzero"`
	Error   *jsonx.Value     `json:"error,omitzero"`
}

// Continue gives the execution up; a fresh worker is started, after
// AfterSeconds (0: at once).
type Continue struct {
	AfterSeconds int64 `json:"after_seconds,omitzero" cairn:"min=0,max=31536000"`
}

// OutcomeReport is an outcome as the owner learned it. Without Outcome it is
// taken from the ledger.
type OutcomeReport struct {
	Operation   execution.OperationID `json:"operation" cairn:"required,id"`
	Attempt     int                   `json:"attempt,omitzero" cairn:"min=1"` // 0: the only one
	Outcome     execution.Outcome     `json:"outcome,omitzero" cairn:"enum=unknown|in_progress|succeeded|failed|rejected|not_executed|abandoned"`
	Reason      string                `json:"reason,omitzero" cairn:"note=1024"`
	ProviderRef string                `json:"provider_ref,omitzero" cairn:"text=1024"`
	Result      *jsonx.Value          `json:"result,omitzero"`
}

// SignalRef names a signal.
type SignalRef struct {
	Name string `json:"name" cairn:"required,id"`
	Key  string `json:"key" cairn:"required,text=256"`
}

// OperationDeclaration declares one external effect.
type OperationDeclaration struct {
	Name            string                `json:"name" cairn:"required,id"`
	Args            *jsonx.Value          `json:"args" cairn:"required"`
	Key             string                `json:"key,omitzero" cairn:"text=256"`                                // "": identified by name and arguments
	OnUncertain     execution.OnUncertain `json:"on_uncertain,omitzero" cairn:"enum=ask|close|same_key|always"` // "": ask
	DedupSeconds    int64                 `json:"dedup_seconds,omitzero" cairn:"min=1,max=31536000"`
	ValidSeconds    int64                 `json:"valid_seconds,omitzero" cairn:"min=1,max=31536000"`
	Resolver        string                `json:"resolver,omitzero" cairn:"id"` // "": the one of the operation's name
	DeadlineSeconds int64                 `json:"deadline_seconds,omitzero" cairn:"min=1,max=31536000"`
}

// ArtifactRef names an artifact that a step accepts. On the wire it may be the
// digest alone.
type ArtifactRef struct {
	Digest    string `json:"digest" cairn:"required,digest,short"`
	Name      string `json:"name,omitzero" cairn:"text=255"`       // "": as staged
	MediaType string `json:"media_type,omitzero" cairn:"text=255"` // "": as staged
}

// ApplyReply answers apply, suspend and complete.
type ApplyReply struct {
	Standing
	Operations []OperationReply `json:"operations,omitzero"`
	StateBytes int64            `json:"state_bytes"`
	// Missed names what a suspended or ended execution had waiting already.
	Missed *Missed `json:"missed,omitzero"`
}

// OperationReply is what to do about a declared operation.
type OperationReply struct {
	Operation   execution.OperationID `json:"operation"`
	Name        string                `json:"name"`
	Key         string                `json:"key,omitzero"`
	Attempt     int                   `json:"attempt"`
	ProviderKey string                `json:"provider_key"`
	SendBy      *Time                 `json:"send_by,omitzero"` // nil: no limit was declared
	Disposition Disposition           `json:"disposition"`
	Outcome     execution.Outcome     `json:"outcome,omitzero"`
	Reason      string                `json:"reason,omitzero"`
	ProviderRef string                `json:"provider_ref,omitzero"`
	Result      *jsonx.Value          `json:"result,omitzero"`
	ResultRef   *Ref                  `json:"result_ref,omitzero"`
	// Callback authorises one record_outcome or signal for this attempt.
	Callback string `json:"callback,omitzero"`
}

// Disposition is what may be done about an operation now.
type Disposition string

// The dispositions.
const (
	Go        Disposition = "go"        // attempt it now
	Start     Disposition = "start"     // start_operation first, or let the tool fill the slot
	Settled   Disposition = "settled"   // here is what happened
	Uncertain Disposition = "uncertain" // reconcile first
)

// Missed is what had come already when an ending was written.
type Missed struct {
	Operations []execution.OperationID `json:"operations,omitzero"`
	Signals    []SignalRef             `json:"signals,omitzero"`
}

// GetRequest reads the folded view.
type GetRequest struct {
	Common
	Execution        execution.ExecutionID `json:"execution" cairn:"required,id"`
	Version          int64                 `json:"version,omitzero" cairn:"min=1"` // 0: the newest
	MaxInlineBytes   int64                 `json:"max_inline_bytes,omitzero" cairn:"min=1,nocontent"`
	OperationsCursor string                `json:"operations_cursor,omitzero" cairn:"text=2048"`
	InboxCursor      string                `json:"inbox_cursor,omitzero" cairn:"text=2048"`
	ArtifactsCursor  string                `json:"artifacts_cursor,omitzero" cairn:"text=2048"`
	// Include lists the parts that are wanted; nil: all; empty: the header alone.
	Include []string `json:"include,omitzero" cairn:"enum=state|operations|inbox|artifacts|budgets,items=5"`
}

// Wants reports whether a part of the view is asked for.
func (r *GetRequest) Wants(part string) bool {
	if r.Include == nil {
		return true
	}
	for _, p := range r.Include {
		if p == part {
			return true
		}
	}
	return false
}

// GetReply answers get.
type GetReply struct {
	Standing
	View
}

// HistoryRequest lists entries.
type HistoryRequest struct {
	Common
	Execution   execution.ExecutionID `json:"execution" cairn:"required,id"`
	FromVersion int64                 `json:"from_version,omitzero" cairn:"min=1"`
	Limit       int64                 `json:"limit,omitzero" cairn:"min=1,max=1000"` // 0: the default
	NewestFirst bool                  `json:"newest_first,omitzero"`
	Cursor      string                `json:"cursor,omitzero" cairn:"text=2048"`
}

// HistoryReply answers history; Cursor "" is the last page.
type HistoryReply struct {
	Standing
	Entries []HistoryEntry `json:"entries"`
	Cursor  string         `json:"cursor,omitzero"`
}

// ListRequest lists live executions by exactly one property.
type ListRequest struct {
	Common
	Status      execution.Status   `json:"status,omitzero" cairn:"enum=created|running|waiting|parked|halted|completed|failed|cancelled|archived|moved"`
	Thread      execution.ThreadID `json:"thread,omitzero" cairn:"id"`
	Workflow    string             `json:"workflow,omitzero" cairn:"id"`
	Label       map[string]string  `json:"label,omitzero" cairn:"keys=id,note=256"`
	Subject     string             `json:"subject,omitzero" cairn:"text=256"`
	IdleSeconds int64              `json:"idle_seconds,omitzero" cairn:"min=0"`
	Limit       int64              `json:"limit,omitzero" cairn:"min=1,max=1000"` // 0: the default
	Cursor      string             `json:"cursor,omitzero" cairn:"text=2048"`
}

// ListReply answers list; Cursor "" is the last page.
type ListReply struct {
	Standing
	Executions []Header `json:"executions"`
	Cursor     string   `json:"cursor,omitzero"`
}

// PutArtifactRequest stages an artifact: by Body, by an Upload that is asked
// for, or by saying that the upload is done.
type PutArtifactRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
	Fence     int64                 `json:"fence,omitzero" cairn:"min=0,nocontent"`
	Name      string                `json:"name,omitzero" cairn:"text=255"`       // required but with Uploaded
	MediaType string                `json:"media_type,omitzero" cairn:"text=255"` // required but with Uploaded
	Body      []byte                `json:"body,omitzero" cairn:"max=4194304"`    // base64 on the wire; nil: none
	Upload    *Upload               `json:"upload,omitzero"`
	Uploaded  string                `json:"uploaded,omitzero" cairn:"digest"`
}

// Upload announces an artifact that will be put by a presigned URL.
type Upload struct {
	Bytes  int64  `json:"bytes" cairn:"required,min=0,max=5368709120"`
	SHA256 string `json:"sha256" cairn:"required,digest"` // 64 lower-case hex digits
}

// PutArtifactReply answers put_artifact; URL and what follows only for an
// Upload.
type PutArtifactReply struct {
	Standing
	Artifact  Artifact          `json:"artifact"`
	URL       string            `json:"url,omitzero"`
	Headers   map[string]string `json:"headers,omitzero"`
	ExpiresAt *Time             `json:"expires_at,omitzero"`
}

// GetArtifactRequest reads an artifact by its digest or the newest of a name.
type GetArtifactRequest struct {
	Common
	Execution      execution.ExecutionID `json:"execution" cairn:"required,id"`
	Digest         string                `json:"digest,omitzero" cairn:"digest"`
	Name           string                `json:"name,omitzero" cairn:"text=255"`
	Version        int64                 `json:"version,omitzero" cairn:"min=1"` // 0: the newest
	MaxInlineBytes int64                 `json:"max_inline_bytes,omitzero" cairn:"min=1,nocontent"`
}

// GetArtifactReply has the Body, or the URL where it is too long.
type GetArtifactReply struct {
	Standing
	Artifact  Artifact `json:"artifact"`
	Body      []byte   `json:"body,omitzero"` // base64 on the wire; nil: see URL
	URL       string   `json:"url,omitzero"`
	ExpiresAt *Time    `json:"expires_at,omitzero"`
}

// RecordOutcomeRequest delivers evidence about an attempt.
type RecordOutcomeRequest struct {
	Common
	Execution   execution.ExecutionID `json:"execution,omitzero" cairn:"id"` // required but with Callback
	Operation   execution.OperationID `json:"operation,omitzero" cairn:"id"` // required but with Callback
	Attempt     int                   `json:"attempt,omitzero" cairn:"min=1"`
	Callback    string                `json:"callback,omitzero" cairn:"text=4096"`
	Outcome     execution.Outcome     `json:"outcome" cairn:"required,enum=unknown|in_progress|succeeded|failed|rejected|not_executed|abandoned"`
	Reason      string                `json:"reason,omitzero" cairn:"note=1024"`
	ProviderRef string                `json:"provider_ref,omitzero" cairn:"text=1024"`
	Result      *jsonx.Value          `json:"result,omitzero"`
	// Args, where given, must be those of the operation.
	Args *jsonx.Value `json:"args,omitzero"`
}

// RecordOutcomeReply answers record_outcome. Recorded false: the slot held a
// final outcome already.
type RecordOutcomeReply struct {
	Standing
	Recorded bool      `json:"recorded"`
	Ledger   *SlotView `json:"ledger,omitzero"`
}

// StartOperationRequest fills an attempt's slot right before its effect.
type StartOperationRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution" cairn:"required,id"`
	Operation execution.OperationID `json:"operation" cairn:"required,id"`
	Attempt   int                   `json:"attempt" cairn:"required,min=1"`
	Fence     int64                 `json:"fence" cairn:"required,min=1,nocontent"`
	Nonce     string                `json:"nonce" cairn:"required,text=128"`
}

// StartOperationReply answers start_operation.
type StartOperationReply struct {
	Standing
	Disposition Disposition `json:"disposition"`
	ProviderKey string      `json:"provider_key"`
	SendBy      *Time       `json:"send_by,omitzero"`
}

// SignalRequest delivers evidence without an intent.
type SignalRequest struct {
	Common
	Execution execution.ExecutionID `json:"execution,omitzero" cairn:"id"` // required but with Callback
	Callback  string                `json:"callback,omitzero" cairn:"text=4096"`
	Name      string                `json:"name" cairn:"required,id"`
	Key       string                `json:"key" cairn:"required,text=256"`
	Body      *jsonx.Value          `json:"body,omitzero"`
}

// SignalReply answers signal. Recorded false: the same had come before.
type SignalReply struct {
	Standing
	Recorded bool `json:"recorded"`
}

// GetOperationRequest reads one operation.
type GetOperationRequest struct {
	Common
	Execution      execution.ExecutionID `json:"execution" cairn:"required,id"`
	Operation      execution.OperationID `json:"operation" cairn:"required,id"`
	MaxInlineBytes int64                 `json:"max_inline_bytes,omitzero" cairn:"min=1,nocontent"`
}

// GetOperationReply answers get_operation. Its Status is the operation's;
// Status, Outcome and Result count ledger evidence that is not absorbed yet.
type GetOperationReply struct {
	Standing
	OperationDetail
	Status          string           `json:"status"`
	ExecutionStatus execution.Status `json:"execution_status,omitzero"`
}

// ForkRequest makes a new execution from a version of another.
type ForkRequest struct {
	Common
	Execution    execution.ExecutionID `json:"execution" cairn:"required,id"`
	AtVersion    int64                 `json:"at_version" cairn:"required,min=1"`
	NewExecution execution.ExecutionID `json:"new_execution,omitzero" cairn:"id"`             // "": derived
	Operations   string                `json:"operations,omitzero" cairn:"enum=refuse|carry"` // "": refuse
}

// ForkReply is like create's, with Parent set.
type ForkReply = CreateReply
