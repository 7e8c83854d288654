package api

import (
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Workflow is what is known about a kind of execution.
type Workflow struct {
	Name          string              `json:"name" cairn:"required,id"`
	Schema        *Schema             `json:"schema" cairn:"required"` // the version that its code writes
	DefaultPolicy string              `json:"default_policy,omitzero" cairn:"id"`
	ResumeTarget  *ResumeTarget       `json:"resume_target,omitzero"`
	Resolvers     map[string]Resolver `json:"resolvers,omitzero" cairn:"keys=id,items=100"` // by operation name
	Migrations    []Migration         `json:"migrations,omitzero" cairn:"items=100"`
	LeaseSeconds  int64               `json:"lease_seconds,omitzero" cairn:"min=5,max=86400"` // 0: none said
	MaxRecoveries int64               `json:"max_recoveries,omitzero" cairn:"min=1,max=1000"` // 0: the default
}

// ResumeTarget is what is started to take an execution over.
type ResumeTarget struct {
	Kind string `json:"kind" cairn:"required,enum=state_machine|lambda|event_bus|sandbox"`
	ARN  string `json:"arn" cairn:"required,text=2048"`
}

// Resolver is who is asked about an operation's outcome.
type Resolver struct {
	Kind           string `json:"kind" cairn:"required,enum=lambda|https|sandbox"`
	Target         string `json:"target" cairn:"required,text=2048"`
	TimeoutSeconds int64  `json:"timeout_seconds,omitzero" cairn:"min=1,max=300"` // 0: the default
}

// Migration brings a state from one schema version to a later one, by Patch or
// by a function.
type Migration struct {
	From   int64        `json:"from" cairn:"required,min=1"`
	To     int64        `json:"to" cairn:"required,min=1"`
	Patch  *jsonx.Value `json:"patch,omitzero" cairn:"patch"`
	Lambda string       `json:"lambda,omitzero" cairn:"text=2048"`
}

// SetWorkflowRequest stores a workflow.
type SetWorkflowRequest struct {
	Common
	Workflow Workflow `json:"workflow" cairn:"required"`
}

// SetWorkflowReply gives the stored workflow.
type SetWorkflowReply struct {
	Standing
	Workflow *Workflow `json:"workflow"`
}

// GetWorkflowRequest reads a workflow by its name.
type GetWorkflowRequest struct {
	Common
	Workflow string `json:"workflow" cairn:"required,id"`
}

// GetWorkflowReply gives the stored workflow.
type GetWorkflowReply = SetWorkflowReply

// Settings are a tenant's.
type Settings struct {
	Secrets      string   `json:"secrets,omitzero" cairn:"enum=refuse|redact|allow"` // "": refuse
	SecretFields []string `json:"secret_fields,omitzero" cairn:"text=256,items=100"`
	Allowed      []string `json:"allowed,omitzero" cairn:"pointer,items=100"` // JSON paths, from the request on
	KMSKey       string   `json:"kms_key,omitzero" cairn:"text=2048"`
}

// SetTenantRequest stores a tenant's settings.
type SetTenantRequest struct {
	Common
	Settings Settings `json:"settings" cairn:"required"`
}

// SetTenantReply gives the stored settings.
type SetTenantReply struct {
	Standing
	Settings Settings `json:"settings"`
}

// GetTenantRequest reads a tenant's settings.
type GetTenantRequest struct {
	Common
}

// GetTenantReply gives the stored settings.
type GetTenantReply = SetTenantReply
