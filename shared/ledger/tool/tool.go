package tool

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/dynamo"
)

// Effect is what a transaction of the tool brings about.
type Effect struct {
	// Table is Cairn's main table.
	Table string
	// Target is the attempt that the effect belongs to.
	Target ledger.CallbackTarget
	// Fence is the one that the worker was given with `go` or `start`; only
	// FencedTransactItems uses it.
	Fence int64
	// Outcome: succeeded, failed or rejected; "" is succeeded.
	Outcome execution.Outcome
	// At is the time of the effect, for readers only.
	At time.Time
	// Sealer seals what is recorded under the tenant's key (the key table and the
	// KMS are all it needs), so that nobody else can write evidence.
	Sealer      *seal.Sealer
	Reason      string
	ProviderRef string
	// Result has at most ledger.MaxInlineResult bytes.
	Result *jsonx.Value
	Actor  *execution.Actor
}

// TransactItem records the outcome in the attempt's slot: it fills an empty slot
// or finishes a started one, never one that holds a final outcome. Errors:
// InvalidRequest, TooLarge, and the sealer's.
func TransactItem(ctx context.Context, e Effect) (types.TransactWriteItem, error) {
	w, err := slotWrite(ctx, &e)
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	return item(e.Table, w)
}

// FencedTransactItems are TransactItem and a check of the head: the execution
// is running and the fence is the current owner's, so that an effect of a worker
// that was fenced out cannot commit either. Errors as TransactItem.
func FencedTransactItems(ctx context.Context, e Effect) ([]types.TransactWriteItem, error) {
	ws, err := fencedWrites(ctx, &e)
	if err != nil {
		return nil, err
	}
	out := make([]types.TransactWriteItem, len(ws))
	for i, w := range ws {
		if out[i], err = item(e.Table, w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func item(table string, w store.Write) (types.TransactWriteItem, error) {
	it, err := dynamo.TransactWrite(table, w)
	if err != nil {
		return it, execution.Errorf(execution.Internal, "a write cannot be expressed").Because(err)
	}
	return it, nil
}

func fencedWrites(ctx context.Context, e *Effect) ([]store.Write, error) {
	if e.Fence <= 0 {
		return nil, execution.Invalid("fence", "is required")
	}
	slot, err := slotWrite(ctx, e)
	if err != nil {
		return nil, err
	}
	head := store.Check{Key: journal.HeadKey(e.Target.PK()), Cond: store.All{
		store.Eq(journal.HeadGeneration, store.N(e.Target.Generation)), store.Eq(journal.HeadStatus, store.S(string(execution.StatusRunning))),
		store.Eq(journal.HeadFence, store.N(e.Fence)), store.Present{Attr: journal.HeadOwner}}}
	return []store.Write{slot, {Check: &head}}, nil
}

func slotWrite(ctx context.Context, e *Effect) (store.Write, error) {
	t := e.Target
	switch {
	case e.Table == "":
		return store.Write{}, execution.Invalid("table", "is required")
	case t.Tenant == "" || t.Execution == "" || t.Operation == "" || t.Generation <= 0 || t.Attempt <= 0:
		return store.Write{}, execution.Invalid("target", "must name an attempt")
	case e.At.IsZero():
		return store.Write{}, execution.Invalid("at", "is required")
	case e.Sealer == nil:
		return store.Write{}, execution.Invalid("sealer", "is required")
	case e.Result.Size() > ledger.MaxInlineResult:
		return store.Write{}, execution.Errorf(execution.TooLarge, "the result is too large for a slot").With("field", "result").With("limit", ledger.MaxInlineResult)
	}
	outcome := e.Outcome
	switch outcome {
	case "":
		outcome = execution.OutcomeSucceeded
	case execution.OutcomeSucceeded, execution.OutcomeFailed, execution.OutcomeRejected:
	default:
		return store.Write{}, execution.Invalid("outcome", "must be succeeded, failed or rejected")
	}
	up, err := journal.FillWrite(ctx, e.Sealer, t.Ref, &journal.Slot{Operation: t.Operation, Attempt: t.Attempt, Generation: t.Generation, Outcome: outcome, At: e.At.UnixMilli(),
		Reason: e.Reason, ProviderRef: e.ProviderRef, Result: e.Result, Actor: e.Actor, Source: execution.FromLedger})
	if err != nil {
		return store.Write{}, err
	}
	return store.Write{Update: up}, nil
}
