package retention

import (
	"context"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// walk goes through the executions of a thread, subject, label or token, in
// pages; those that a deletion has closed are among them. It reads selector rows,
// which are complete (consistent reads): an index may lag.
type walk struct {
	s      *Service
	tenant execution.TenantID
	sel    api.Selector
	label  map[string]string
	token  string // instead of sel and label
	// after is the sort key of the last row seen; "": the beginning.
	after string
	// now is the store's time at the last read, in milliseconds.
	now int64
}

// next gives up to n heads and whether more may follow.
func (w *walk) next(ctx context.Context, n int) (heads []*journal.Head, more bool, err error) {
	if err := w.resolve(ctx); err != nil {
		return nil, false, err
	}
	q := store.Query{PK: journal.SelectorPartition(w.tenant, w.token), Consistent: true, Limit: n}
	if w.after != "" {
		q.From, q.To = w.after+"\x00", "\U0010FFFF"
	}
	page, meta, err := w.s.Table.Query(ctx, q)
	if err != nil {
		return nil, false, journal.Fail(err, execution.Ref{Tenant: w.tenant})
	}
	w.now = meta.Date.UnixMilli()
	for _, it := range page.Items {
		w.after = it.Str(store.AttrSK)
		ref, ok := rowRef(w.tenant, it)
		if !ok {
			continue
		}
		h, _, err := w.s.Journal.ReadHead(ctx, w.tenant, ref.Execution)
		if err != nil {
			return nil, false, err
		}
		if h != nil && h.Generation == ref.Generation && h.Marked(w.token) {
			heads = append(heads, h)
		}
	}
	return heads, page.Next != nil, nil
}

// resolve computes the token of a thread, subject or label.
func (w *walk) resolve(ctx context.Context) (err error) {
	switch {
	case w.token != "":
	case w.sel.Thread != "":
		w.token = journal.ThreadToken(w.sel.Thread)
	case w.sel.Subject != "":
		w.token, err = w.s.token(ctx, w.tenant, "subject", w.sel.Subject)
	default:
		for name, value := range w.label {
			w.token, err = w.s.token(ctx, w.tenant, "label", name+"\x00"+value)
		}
	}
	return err
}

// rowRef reads the execution and generation of a registry or selector row.
func rowRef(t execution.TenantID, it store.Item) (execution.Ref, bool) {
	e, g, ok := strings.Cut(it.Key().SK, "#")
	n, err := strconv.ParseInt(g, 10, 64)
	if !ok || err != nil {
		return execution.Ref{}, false
	}
	return execution.Ref{Tenant: t, Execution: execution.ExecutionID(e), Generation: n}, true
}
