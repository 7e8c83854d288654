package ledger

import (
	"context"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
)

// EffectOf names the operation that an execution is the effect of: its own parent's,
// or that of an execution that it carries on. nil: it is nobody's child, or what leads
// to its parent is gone.
func (l *Ledger) EffectOf(ctx context.Context, st *execution.State) (*execution.Parent, error) {
	for st.Parent == nil {
		f := st.ForkedFrom
		if f == nil || !f.Carry {
			return nil, nil
		}
		from, err := l.open(ctx, st.Tenant, f.Execution)
		if err != nil || from == nil || from.Generation != f.Generation {
			return nil, err
		}
		st = from
	}
	return st.Parent, nil
}

// CarriedOnBy gives the execution that carries another one on now: itself unless it
// moved, else the last of its forks. nil: that one is gone.
func (l *Ledger) CarriedOnBy(ctx context.Context, st *execution.State) (*execution.State, error) {
	for st.Status == execution.StatusMoved {
		to, err := l.open(ctx, st.Tenant, st.MovedTo)
		if err != nil || to == nil || !inherited(to, st) {
			return nil, err
		}
		st = to
	}
	return st, nil
}

// open gives an execution's state; nil: it is gone.
func (l *Ledger) open(ctx context.Context, t execution.TenantID, e execution.ExecutionID) (*execution.State, error) {
	h, err := l.Journal.Open(ctx, t, e, journal.OpenOptions{})
	switch execution.CodeOf(err) {
	case "":
		return h.State, nil
	case execution.NotFound, execution.Deleted:
		return nil, nil
	}
	return nil, err
}
