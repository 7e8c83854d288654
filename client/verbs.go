package client

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
)

// The verbs. Each takes the request as it is, completes a copy of it (tenant,
// actor, request_id or nonce) and gives the reply or an *execution.Error (api.md
// lists the codes).

// Create starts an execution.
func (c *Client) Create(ctx context.Context, r *api.CreateRequest) (*api.CreateReply, error) {
	return do[api.CreateReply](ctx, c, api.Checkpoint, r)
}

// Apply writes one step.
func (c *Client) Apply(ctx context.Context, r *api.ApplyRequest) (*api.ApplyReply, error) {
	return do[api.ApplyReply](ctx, c, api.Checkpoint, r)
}

// Suspend writes a step that ends in a wait.
func (c *Client) Suspend(ctx context.Context, r *api.SuspendRequest) (*api.ApplyReply, error) {
	return do[api.ApplyReply](ctx, c, api.Checkpoint, r)
}

// Complete writes the last step.
func (c *Client) Complete(ctx context.Context, r *api.CompleteRequest) (*api.ApplyReply, error) {
	return do[api.ApplyReply](ctx, c, api.Checkpoint, r)
}

// Get reads the folded view.
func (c *Client) Get(ctx context.Context, r *api.GetRequest) (*api.GetReply, error) {
	return do[api.GetReply](ctx, c, api.Checkpoint, r)
}

// History lists entries, one page.
func (c *Client) History(ctx context.Context, r *api.HistoryRequest) (*api.HistoryReply, error) {
	return do[api.HistoryReply](ctx, c, api.Checkpoint, r)
}

// List lists executions, one page.
func (c *Client) List(ctx context.Context, r *api.ListRequest) (*api.ListReply, error) {
	return do[api.ListReply](ctx, c, api.Checkpoint, r)
}

// PutArtifact stages an artifact.
func (c *Client) PutArtifact(ctx context.Context, r *api.PutArtifactRequest) (*api.PutArtifactReply, error) {
	return do[api.PutArtifactReply](ctx, c, api.Checkpoint, r)
}

// GetArtifact reads an artifact.
func (c *Client) GetArtifact(ctx context.Context, r *api.GetArtifactRequest) (*api.GetArtifactReply, error) {
	return do[api.GetArtifactReply](ctx, c, api.Checkpoint, r)
}

// RecordOutcome delivers evidence about an attempt.
func (c *Client) RecordOutcome(ctx context.Context, r *api.RecordOutcomeRequest) (*api.RecordOutcomeReply, error) {
	return do[api.RecordOutcomeReply](ctx, c, api.Checkpoint, r)
}

// StartOperation fills an attempt's slot right before its effect.
func (c *Client) StartOperation(ctx context.Context, r *api.StartOperationRequest) (*api.StartOperationReply, error) {
	return do[api.StartOperationReply](ctx, c, api.Checkpoint, r)
}

// Signal delivers evidence without an intent.
func (c *Client) Signal(ctx context.Context, r *api.SignalRequest) (*api.SignalReply, error) {
	return do[api.SignalReply](ctx, c, api.Checkpoint, r)
}

// GetOperation reads one operation in full.
func (c *Client) GetOperation(ctx context.Context, r *api.GetOperationRequest) (*api.GetOperationReply, error) {
	return do[api.GetOperationReply](ctx, c, api.Checkpoint, r)
}

// Fork makes a new execution from a version of another.
func (c *Client) Fork(ctx context.Context, r *api.ForkRequest) (*api.ForkReply, error) {
	return do[api.ForkReply](ctx, c, api.Checkpoint, r)
}

// SetWorkflow stores a workflow.
func (c *Client) SetWorkflow(ctx context.Context, r *api.SetWorkflowRequest) (*api.SetWorkflowReply, error) {
	return do[api.SetWorkflowReply](ctx, c, api.Checkpoint, r)
}

// GetWorkflow reads a workflow.
func (c *Client) GetWorkflow(ctx context.Context, r *api.GetWorkflowRequest) (*api.GetWorkflowReply, error) {
	return do[api.GetWorkflowReply](ctx, c, api.Checkpoint, r)
}

// SetTenant stores the tenant's settings.
func (c *Client) SetTenant(ctx context.Context, r *api.SetTenantRequest) (*api.SetTenantReply, error) {
	return do[api.SetTenantReply](ctx, c, api.Checkpoint, r)
}

// GetTenant reads the tenant's settings.
func (c *Client) GetTenant(ctx context.Context, r *api.GetTenantRequest) (*api.GetTenantReply, error) {
	return do[api.GetTenantReply](ctx, c, api.Checkpoint, r)
}

// Claim makes the caller the owner.
func (c *Client) Claim(ctx context.Context, r *api.ClaimRequest) (*api.ClaimReply, error) {
	return do[api.ClaimReply](ctx, c, api.Recover, r)
}

// Renew extends a lease (a Keeper does it by itself).
func (c *Client) Renew(ctx context.Context, r *api.RenewRequest) (*api.RenewReply, error) {
	return do[api.RenewReply](ctx, c, api.Recover, r)
}

// Release gives an execution up for a fresh worker.
func (c *Client) Release(ctx context.Context, r *api.ReleaseRequest) (*api.ReleaseReply, error) {
	return do[api.ReleaseReply](ctx, c, api.Recover, r)
}

// Reconcile settles uncertain operations.
func (c *Client) Reconcile(ctx context.Context, r *api.ReconcileRequest) (*api.ReconcileReply, error) {
	return do[api.ReconcileReply](ctx, c, api.Recover, r)
}

// Resume claims, migrates and reconciles (Drive does it by itself).
func (c *Client) Resume(ctx context.Context, r *api.ResumeRequest) (*api.ResumeReply, error) {
	return do[api.ResumeReply](ctx, c, api.Recover, r)
}

// Halt fences the owner out at once.
func (c *Client) Halt(ctx context.Context, r *api.HaltRequest) (*api.HaltReply, error) {
	return do[api.HaltReply](ctx, c, api.Recover, r)
}

// Unhalt lets a halted execution go on.
func (c *Client) Unhalt(ctx context.Context, r *api.UnhaltRequest) (*api.UnhaltReply, error) {
	return do[api.UnhaltReply](ctx, c, api.Recover, r)
}

// Migrate brings a workflow's executions to a schema version.
func (c *Client) Migrate(ctx context.Context, r *api.MigrateRequest) (*api.MigrateReply, error) {
	return do[api.MigrateReply](ctx, c, api.Recover, r)
}

// SweepRecovery handles due leases, waits and reconciliations.
func (c *Client) SweepRecovery(ctx context.Context, r *api.SweepRequest) (*api.SweepReply, error) {
	return do[api.SweepReply](ctx, c, api.Recover, r)
}

// SetPolicy stores a retention policy.
func (c *Client) SetPolicy(ctx context.Context, r *api.SetPolicyRequest) (*api.SetPolicyReply, error) {
	return do[api.SetPolicyReply](ctx, c, api.Retention, r)
}

// GetPolicy reads a retention policy.
func (c *Client) GetPolicy(ctx context.Context, r *api.GetPolicyRequest) (*api.GetPolicyReply, error) {
	return do[api.GetPolicyReply](ctx, c, api.Retention, r)
}

// Hold keeps something from being removed.
func (c *Client) Hold(ctx context.Context, r *api.HoldRequest) (*api.HoldReply, error) {
	return do[api.HoldReply](ctx, c, api.Retention, r)
}

// ReleaseHold ends a hold.
func (c *Client) ReleaseHold(ctx context.Context, r *api.ReleaseHoldRequest) (*api.ReleaseHoldReply, error) {
	return do[api.ReleaseHoldReply](ctx, c, api.Retention, r)
}

// Holds lists the holds in force.
func (c *Client) Holds(ctx context.Context, r *api.HoldsRequest) (*api.HoldsReply, error) {
	return do[api.HoldsReply](ctx, c, api.Retention, r)
}

// Archive moves an ended execution into the archive.
func (c *Client) Archive(ctx context.Context, r *api.ArchiveRequest) (*api.ArchiveReply, error) {
	return do[api.ArchiveReply](ctx, c, api.Retention, r)
}

// Restore brings an archived execution back.
func (c *Client) Restore(ctx context.Context, r *api.RestoreRequest) (*api.RestoreReply, error) {
	return do[api.RestoreReply](ctx, c, api.Retention, r)
}

// Delete removes executions.
func (c *Client) Delete(ctx context.Context, r *api.DeleteRequest) (*api.DeleteReply, error) {
	return do[api.DeleteReply](ctx, c, api.Retention, r)
}

// PurgeTenant removes everything of the tenant.
func (c *Client) PurgeTenant(ctx context.Context, r *api.PurgeTenantRequest) (*api.PurgeTenantReply, error) {
	return do[api.PurgeTenantReply](ctx, c, api.Retention, r)
}

// GetReceipt reads the newest receipt of a deleted execution.
func (c *Client) GetReceipt(ctx context.Context, r *api.GetReceiptRequest) (*api.GetReceiptReply, error) {
	return do[api.GetReceiptReply](ctx, c, api.Retention, r)
}

// Receipts lists receipts, one page.
func (c *Client) Receipts(ctx context.Context, r *api.ReceiptsRequest) (*api.ReceiptsReply, error) {
	return do[api.ReceiptsReply](ctx, c, api.Retention, r)
}

// Verify checks what is stored, read-only.
func (c *Client) Verify(ctx context.Context, r *api.VerifyRequest) (*api.VerifyReply, error) {
	return do[api.VerifyReply](ctx, c, api.Retention, r)
}

// RotateKey makes a new key generation for new writes.
func (c *Client) RotateKey(ctx context.Context, r *api.RotateKeyRequest) (*api.RotateKeyReply, error) {
	return do[api.RotateKeyReply](ctx, c, api.Retention, r)
}

// Keys lists the tenant's key generations.
func (c *Client) Keys(ctx context.Context, r *api.KeysRequest) (*api.KeysReply, error) {
	return do[api.KeysReply](ctx, c, api.Retention, r)
}

// SweepRetention handles due retention timers, history rules and orphans.
func (c *Client) SweepRetention(ctx context.Context, r *api.SweepRequest) (*api.SweepReply, error) {
	return do[api.SweepReply](ctx, c, api.Retention, r)
}
