package api

import (
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// View is the folded execution as get, claim and resume show it, beside the
// Standing. What an `include` left out and what an execution does not have is
// left out.
type View struct {
	Generation int64              `json:"generation,omitzero"`
	Thread     execution.ThreadID `json:"thread,omitzero"`
	Workflow   string             `json:"workflow,omitzero"`
	Schema     *Schema            `json:"schema,omitzero"`
	Task       execution.TaskID   `json:"task,omitzero"`
	CreatedAt  *Time              `json:"created_at,omitzero"`
	UpdatedAt  *Time              `json:"updated_at,omitzero"` // of the newest entry
	EndedAt    *Time              `json:"ended_at,omitzero"`

	// State, or StateRef where it is too long; likewise below.
	State    *jsonx.Value `json:"state,omitzero"`
	StateRef *Ref         `json:"state_ref,omitzero"`

	Operations       []OperationView `json:"operations,omitzero"` // in the order of declaration
	OperationsCursor string          `json:"operations_cursor,omitzero"`
	Inbox            []InboxEntry    `json:"inbox,omitzero"` // by name and key
	InboxCursor      string          `json:"inbox_cursor,omitzero"`
	Artifacts        []Artifact      `json:"artifacts,omitzero"` // in the order of acceptance
	ArtifactsCursor  string          `json:"artifacts_cursor,omitzero"`
	// ArtifactsFrom is the place of the first of Artifacts among all; cursors are
	// made of it.
	ArtifactsFrom int `json:"-"`
	// Truncated: lists that have no cursor were cut to bring the reply under its
	// limit.
	Truncated bool              `json:"truncated,omitzero"`
	Budgets   map[string]Budget `json:"budgets,omitzero"`

	Labels             map[string]string     `json:"labels,omitzero"`
	Subjects           []string              `json:"subjects,omitzero"`
	Holds              []string              `json:"holds,omitzero"` // ids
	Wait               *WaitView             `json:"wait,omitzero"`
	ParkedReasons      []Reason              `json:"parked_reasons,omitzero"`
	HaltReason         string                `json:"halt_reason,omitzero"`
	Policy             string                `json:"policy,omitzero"`
	KeptForever        bool                  `json:"kept_forever,omitzero"` // no policy applies
	ExpiresAt          *Time                 `json:"expires_at,omitzero"`
	Parent             *Parent               `json:"parent,omitzero"`
	MovedTo            execution.ExecutionID `json:"moved_to,omitzero"`
	Permissions        *Permissions          `json:"permissions,omitzero"`
	PermissionsExpired bool                  `json:"permissions_expired,omitzero"`

	Input    *jsonx.Value `json:"input,omitzero"`
	InputRef *Ref         `json:"input_ref,omitzero"`
	// Resume is the value the claim brought; only its owner's view has it.
	Resume    *jsonx.Value `json:"resume,omitzero"`
	ResumeRef *Ref         `json:"resume_ref,omitzero"`
	// Result and Error are those of an ended execution.
	Result    *jsonx.Value `json:"result,omitzero"`
	ResultRef *Ref         `json:"result_ref,omitzero"`
	Error     *jsonx.Value `json:"error,omitzero"`
	ErrorRef  *Ref         `json:"error_ref,omitzero"`
}

// Parent is the operation whose effect an execution is, or the execution that
// it was forked from.
type Parent struct {
	Execution  execution.ExecutionID `json:"execution"`
	Generation int64                 `json:"generation,omitzero"`
	Operation  execution.OperationID `json:"operation,omitzero"` // of a child
	Attempt    int                   `json:"attempt,omitzero"`   // of a child
	Version    int64                 `json:"version,omitzero"`   // of a fork
	Carry      bool                  `json:"carry,omitzero"`     // of a fork
}

// Budget is an exact limit and what was spent of it.
type Budget struct {
	Limit Decimal `json:"limit"`
	Spent Decimal `json:"spent"`
}

// WaitView is what a waiting execution waits for.
type WaitView struct {
	Operations    []execution.OperationID `json:"operations,omitzero"`
	Signals       []string                `json:"signals,omitzero"`
	Until         *Time                   `json:"until,omitzero"`
	WaitingFor    *jsonx.Value            `json:"waiting_for,omitzero"`
	WaitingForRef *Ref                    `json:"waiting_for_ref,omitzero"`
	DueAt         *Time                   `json:"due_at,omitzero"`
}

// OperationView is an operation in a view. Disposition stands in the plans of
// claim and resume.
type OperationView struct {
	Operation      execution.OperationID `json:"operation"`
	Name           string                `json:"name"`
	Key            string                `json:"key,omitzero"`
	Task           execution.TaskID      `json:"task,omitzero"`
	Attempt        int                   `json:"attempt"`
	Status         string                `json:"status"` // declared, uncertain, needs_review or an outcome
	Disposition    Disposition           `json:"disposition,omitzero"`
	OnUncertain    execution.OnUncertain `json:"on_uncertain,omitzero"`
	ProviderKey    string                `json:"provider_key,omitzero"`
	SendBy         *Time                 `json:"send_by,omitzero"`
	DeclaredAt     *Time                 `json:"declared_at,omitzero"`
	NextCheckAt    *Time                 `json:"next_check_at,omitzero"`
	Outcome        execution.Outcome     `json:"outcome,omitzero"`
	Reason         string                `json:"reason,omitzero"`
	ProviderRef    string                `json:"provider_ref,omitzero"`
	Result         *jsonx.Value          `json:"result,omitzero"`
	ResultRef      *Ref                  `json:"result_ref,omitzero"`
	Evidence       *SlotView             `json:"evidence,omitzero"` // in the ledger, not absorbed yet
	Contradictions []Contradiction       `json:"contradictions,omitzero"`
	// Seq is the operation's place in the order of declaration; cursors are made
	// of it.
	Seq int64 `json:"-"`
}

// OperationDetail is one operation in full.
type OperationDetail struct {
	Operation      execution.OperationID `json:"operation"`
	Intent         Intent                `json:"intent"`
	Attempt        int                   `json:"attempt"`
	Attempts       []AttemptView         `json:"attempts"`
	ProviderKey    string                `json:"provider_key"`
	SendBy         *Time                 `json:"send_by,omitzero"`
	NextCheckAt    *Time                 `json:"next_check_at,omitzero"`
	Evidence       []SlotView            `json:"evidence"`
	Contradictions []Contradiction       `json:"contradictions"`
	Outcome        execution.Outcome     `json:"outcome,omitzero"`
	Source         execution.Source      `json:"source,omitzero"`
	Reason         string                `json:"reason,omitzero"`
	ProviderRef    string                `json:"provider_ref,omitzero"`
	Result         *jsonx.Value          `json:"result,omitzero"`
	ResultRef      *Ref                  `json:"result_ref,omitzero"`
	Verdict        *VerdictView          `json:"verdict,omitzero"`
}

// Intent is an operation as it was declared.
type Intent struct {
	Name            string                `json:"name"`
	OldNames        []string              `json:"old_names,omitzero"` // before migrations renamed it
	Key             string                `json:"key,omitzero"`
	Task            execution.TaskID      `json:"task,omitzero"`
	Args            *jsonx.Value          `json:"args,omitzero"`
	ArgsRef         *Ref                  `json:"args_ref,omitzero"`
	OnUncertain     execution.OnUncertain `json:"on_uncertain"`
	DedupSeconds    int64                 `json:"dedup_seconds,omitzero"`
	ValidSeconds    int64                 `json:"valid_seconds,omitzero"`
	DeadlineSeconds int64                 `json:"deadline_seconds,omitzero"`
	Resolver        string                `json:"resolver,omitzero"`
	Version         int64                 `json:"version"` // of the entry that declared the current attempt
	Fence           int64                 `json:"fence,omitzero"`
	DeclaredAt      *Time                 `json:"declared_at,omitzero"`
}

// AttemptView is one attempt of an operation and how it ended.
type AttemptView struct {
	Attempt int               `json:"attempt"`
	Outcome execution.Outcome `json:"outcome,omitzero"` // "": still open
	Reason  string            `json:"reason,omitzero"`
	Source  execution.Source  `json:"source,omitzero"`
}

// SlotView is what the ledger holds about one attempt.
type SlotView struct {
	Attempt     int               `json:"attempt"`
	Started     bool              `json:"started,omitzero"`
	Outcome     execution.Outcome `json:"outcome,omitzero"`
	Reason      string            `json:"reason,omitzero"`
	ProviderRef string            `json:"provider_ref,omitzero"`
	Result      *jsonx.Value      `json:"result,omitzero"`
	ResultRef   *Ref              `json:"result_ref,omitzero"`
	At          *Time             `json:"at,omitzero"`
	Actor       *Actor            `json:"actor,omitzero"`
	// Contradictions are final outcomes that came after the one above.
	Contradictions []Contradiction `json:"contradictions,omitzero"`
}

// Contradiction is a final outcome that came after another one.
type Contradiction struct {
	Attempt     int               `json:"attempt"`
	Outcome     execution.Outcome `json:"outcome"`
	ProviderRef string            `json:"provider_ref,omitzero"`
	Source      execution.Source  `json:"source,omitzero"`
	At          *Time             `json:"at,omitzero"`
}

// VerdictView is a person's decision on an operation.
type VerdictView struct {
	Actor     *Actor `json:"actor,omitzero"`
	Reason    string `json:"reason"`
	Reference string `json:"reference,omitzero"`
	Force     bool   `json:"force,omitzero"`
	At        *Time  `json:"at,omitzero"`
}

// InboxEntry is a signal that is not absorbed yet.
type InboxEntry struct {
	Name    string       `json:"name"`
	Key     string       `json:"key"`
	Body    *jsonx.Value `json:"body,omitzero"`
	BodyRef *Ref         `json:"body_ref,omitzero"`
	At      *Time        `json:"at,omitzero"` // store time
	Actor   *Actor       `json:"actor,omitzero"`
}

// HistoryEntry is one entry of the journal.
type HistoryEntry struct {
	Version   int64            `json:"version"`
	Kind      execution.Kind   `json:"kind"`
	At        Time             `json:"at"`
	Actor     *Actor           `json:"actor,omitzero"`
	Fence     int64            `json:"fence"`
	RequestID string           `json:"request_id,omitzero"`
	Task      execution.TaskID `json:"task,omitzero"`
	Note      string           `json:"note,omitzero"`
	Reason    string           `json:"reason,omitzero"`
	Owner     string           `json:"owner,omitzero"` // of a claim
	Changes   Changed          `json:"changes"`
	Resume    *jsonx.Value     `json:"resume,omitzero"`
	ResumeRef *Ref             `json:"resume_ref,omitzero"`
}

// Changed says what an entry changed, without the data.
type Changed struct {
	Absorbed   []AbsorbedSignal   `json:"absorbed,omitzero"`
	Operations []ChangedOperation `json:"operations,omitzero"`
	Outcomes   []ChangedOperation `json:"outcomes,omitzero"`
	Artifacts  []string           `json:"artifacts,omitzero"` // digests
	Spent      map[string]Decimal `json:"spent,omitzero"`
	State      bool               `json:"state"`
	Redacted   bool               `json:"redacted,omitzero"`
	Parked     []Reason           `json:"parked,omitzero"`
}

// AbsorbedSignal is a signal that an entry took in, and who sent it.
type AbsorbedSignal struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	At    *Time  `json:"at,omitzero"`
	Actor *Actor `json:"actor,omitzero"`
}

// ChangedOperation is an operation that an entry declared or settled.
type ChangedOperation struct {
	Operation   execution.OperationID `json:"operation"`
	Name        string                `json:"name,omitzero"`
	Attempt     int                   `json:"attempt"`
	Outcome     execution.Outcome     `json:"outcome,omitzero"`
	Source      execution.Source      `json:"source,omitzero"`
	Reason      string                `json:"reason,omitzero"`
	ProviderRef string                `json:"provider_ref,omitzero"`
}

// Header is an execution in a listing, from its head alone.
type Header struct {
	Execution  execution.ExecutionID `json:"execution"`
	Generation int64                 `json:"generation,omitzero"`
	Version    int64                 `json:"version,omitzero"` // 0: the head does not know it
	Status     execution.Status      `json:"status"`
	Fence      int64                 `json:"fence"`
	Owner      string                `json:"owner"`
	Thread     execution.ThreadID    `json:"thread,omitzero"`
	Workflow   string                `json:"workflow,omitzero"`
	Schema     *Schema               `json:"schema,omitzero"`
	Policy     string                `json:"policy,omitzero"`
	Holds      []string              `json:"holds,omitzero"`
	CreatedAt  *Time                 `json:"created_at,omitzero"`
	UpdatedAt  *Time                 `json:"updated_at,omitzero"`
	DueAt      *Time                 `json:"due_at,omitzero"`
	ExpiresAt  *Time                 `json:"expires_at,omitzero"`
}
