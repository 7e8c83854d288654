package ledger

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Ledger takes in and gives out evidence. Safe for concurrent use.
type Ledger struct {
	Journal   *journal.Journal
	Artifacts *artifact.Store
	Catalog   *catalog.Catalog
}

// RecordOutcome answers record_outcome.
func (l *Ledger) RecordOutcome(ctx context.Context, r *api.RecordOutcomeRequest) (*api.RecordOutcomeReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Signal answers signal.
func (l *Ledger) Signal(ctx context.Context, r *api.SignalRequest) (*api.SignalReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// StartOperation answers start_operation.
func (l *Ledger) StartOperation(ctx context.Context, r *api.StartOperationRequest) (*api.StartOperationReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// GetOperation answers get_operation.
func (l *Ledger) GetOperation(ctx context.Context, r *api.GetOperationRequest) (*api.GetOperationReply, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// SignalItem is a signal as it lies in the table. Emptied: it was absorbed and
// its body is gone.
type SignalItem struct {
	Name, Key string
	Body      *jsonx.Value
	At        int64 // store time, ms
	Actor     *execution.Actor
	Emptied   bool
}

// Inbox is what lies in an execution's inbox, seen against its fold.
type Inbox struct {
	// Open signals are full and not absorbed, by name and key.
	Open []SignalItem
	// StillFull are absorbed ones whose item is to be emptied; Empty absorbed ones
	// that are seen to be empty: the fold may forget them (Change.Emptied).
	StillFull, Empty []execution.SignalRef
}

// Inbox reads the signals of a generation.
func (l *Ledger) Inbox(ctx context.Context, s *execution.State) (*Inbox, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Signals reads exactly these signals, in order. One that is not there, was
// absorbed or is empty is InvalidRequest absorb[i].
func (l *Ledger) Signals(ctx context.Context, s *execution.State, refs []execution.SignalRef) ([]SignalItem, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Empty removes the bodies of absorbed signals.
func (l *Ledger) Empty(ctx context.Context, ref execution.Ref, refs []execution.SignalRef) error {
	return execution.Errorf(execution.Internal, "not ready")
}

// Evidence turns the slots of operations into evidence for execution.Judge.
func (l *Ledger) Evidence(ctx context.Context, s *execution.State, ops []*execution.Operation) ([]execution.Evidence, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Settle writes settlements into their slots before they count.
func (l *Ledger) Settle(ctx context.Context, h *journal.Handle, ts []execution.Settlement) ([]execution.Settlement, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Shrink moves a result that is too large for a slot or an entry into an
// artifact; at most one of the two is not nil.
func (l *Ledger) Shrink(ctx context.Context, ref execution.Ref, result *jsonx.Value) (*jsonx.Value, *execution.Artifact, error) {
	return nil, nil, execution.Errorf(execution.Internal, "not ready")
}

// Expand reads a result that Shrink moved.
func (l *Ledger) Expand(ctx context.Context, ref execution.Ref, a *execution.Artifact) (*jsonx.Value, error) {
	return nil, execution.Errorf(execution.Internal, "not ready")
}

// Callback makes a handle for one attempt.
func (l *Ledger) Callback(ctx context.Context, ref execution.Ref, op execution.OperationID, attempt int) (string, error) {
	return "", execution.Errorf(execution.Internal, "not ready")
}

// CallbackTarget is what a callback stands for.
type CallbackTarget struct {
	execution.Ref
	Operation execution.OperationID
	Attempt   int
}

// ParseCallback verifies a handle of a tenant.
func (l *Ledger) ParseCallback(ctx context.Context, tenant execution.TenantID, handle string) (CallbackTarget, error) {
	return CallbackTarget{}, execution.Errorf(execution.Internal, "not ready")
}
