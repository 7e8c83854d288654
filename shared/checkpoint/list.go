package checkpoint

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/view"
)

// List shows the live executions of one status, thread, workflow, label or
// subject. Pages follow each other without gap or repeat for what does not
// change meanwhile; the last page is never an empty one. An index lags behind
// the table by moments: a listing decides nothing.
func (s *Service) List(ctx context.Context, r *api.ListRequest) (*api.ListReply, error) {
	src, err := s.source(ctx, r)
	if err != nil {
		return nil, err
	}
	after := ""
	kind := api.Listing("list", r.Tenant, r.Status, r.Thread, r.Workflow, r.Label, r.Subject)
	if r.Cursor != "" {
		p, err := api.ParseCursor("cursor", kind, r.Cursor, 1)
		if err != nil {
			return nil, err
		}
		after = p[0]
	}
	limit := api.ListLimit(r.Limit)
	l := &lister{s: s, r: r, src: src}
	// One more than asked: whether another page follows is known, not guessed.
	rows, err := l.collect(ctx, after, limit+1)
	if err != nil {
		return nil, err
	}
	out := &api.ListReply{Executions: []api.Header{}}
	for i, row := range rows {
		if i == limit {
			out.Cursor = api.Cursor(kind, rows[i-1].key)
			break
		}
		out.Executions = append(out.Executions, view.Header(row.head))
	}
	return out, nil
}

// source says where a listing reads: the partitions of an index, or the
// selector rows of a token.
type source struct {
	index      string
	sortKey    string
	partitions []string
	selector   bool
	token      string // of the selector
}

func (s *Service) source(ctx context.Context, r *api.ListRequest) (source, error) {
	one, n := source{}, 0
	pick := func(given bool, src source) {
		if given {
			one = src
			n++
		}
	}
	var status, workflow []string
	for i := range journal.StatusShards {
		status = append(status, journal.StatusPartition(r.Tenant, string(r.Status), i))
	}
	for i := range journal.WorkflowShards {
		workflow = append(workflow, journal.WorkflowPartition(r.Tenant, r.Workflow, i))
	}
	pick(r.Status != "", source{index: "status", sortKey: "xu", partitions: status})
	pick(r.Thread != "", source{index: "thread", sortKey: "xc", partitions: []string{journal.ThreadPartition(r.Tenant, r.Thread)}})
	pick(r.Workflow != "", source{index: "workflow", sortKey: "xc", partitions: workflow})
	pick(r.Label != nil, source{selector: true})
	pick(r.Subject != "", source{selector: true})
	if n != 1 {
		return one, execution.Invalid("status", "exactly one of status, thread, workflow, label and subject must be given")
	}
	if !one.selector {
		return one, nil
	}
	lt, st, err := s.tokens(ctx, r.Tenant, r.Label, nonEmpty(r.Subject))
	if err != nil {
		return one, err
	}
	one.token = append(lt, st...)[0]
	one.partitions = []string{journal.SelectorPartition(r.Tenant, one.token)}
	return one, nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

type row struct {
	key  string
	head *journal.Head
}

type lister struct {
	s   *Service
	r   *api.ListRequest
	src source
	now int64
}

// pageRows is how many rows a query of a partition asks for: far more than a
// page shows, so that a run of expired ones costs few calls (case R1).
const pageRows = 500

// collect merges the partitions in key order until n live ones are there.
func (l *lister) collect(ctx context.Context, after string, n int) ([]row, error) {
	streams := make([]*stream, len(l.src.partitions))
	for i, p := range l.src.partitions {
		streams[i] = &stream{l: l, partition: p, from: after, more: true}
	}
	var out []row
	for len(out) < n {
		var next *stream
		for _, st := range streams {
			if err := st.fill(ctx, n); err != nil {
				return nil, err
			}
			if len(st.rows) > 0 && (next == nil || st.rows[0].key < next.rows[0].key) {
				next = st
			}
		}
		if next == nil {
			return out, nil
		}
		if l.live(next.rows[0].head) {
			out = append(out, next.rows[0])
		}
		next.rows = next.rows[1:]
	}
	return out, nil
}

// live leaves out what is gone for every reader and what was not asked for.
func (l *lister) live(h *journal.Head) bool {
	switch {
	case h.Tenant != l.r.Tenant, h.Status == execution.StatusDeleting, h.Expired(l.now):
		return false
	case l.r.Status != "" && h.Status != l.r.Status:
		return false
	case l.r.IdleSeconds > 0 && l.now-h.UpdatedAt < l.r.IdleSeconds*1000:
		return false
	}
	return true
}

// stream reads one partition page by page.
type stream struct {
	l         *lister
	partition string
	from      string
	rows      []row
	next      store.Item
	more      bool
}

func (st *stream) fill(ctx context.Context, n int) error {
	for len(st.rows) == 0 && st.more {
		limit := pageRows
		if len(st.l.src.partitions) > 1 {
			limit = max(50, min(pageRows, n))
		}
		q := store.Query{PK: st.partition, Index: st.l.src.index, Limit: limit, Start: st.next, Consistent: st.l.src.selector}
		if st.from != "" {
			q.From = st.from + "\x00"
			q.To = "\U0010FFFF"
		}
		page, meta, err := st.l.s.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, execution.Ref{Tenant: st.l.r.Tenant})
		}
		if !meta.Date.IsZero() {
			st.l.now = max(st.l.now, meta.Date.UnixMilli())
		}
		st.next, st.more = page.Next, page.Next != nil
		if st.l.src.selector {
			if err := st.heads(ctx, page.Items); err != nil {
				return err
			}
			continue
		}
		for _, it := range page.Items {
			if h, ok := journal.ParseHead(it); ok {
				st.rows = append(st.rows, row{it.Str(st.l.src.sortKey), h})
			}
		}
	}
	return nil
}

// heads reads the heads that selector rows point to.
func (st *stream) heads(ctx context.Context, items []store.Item) error {
	byPK := map[string]string{}
	var keys []store.Key
	for _, it := range items {
		e, _, _ := strings.Cut(it.Key().SK, "#")
		pk := execution.PartitionKey(st.l.r.Tenant, execution.ExecutionID(e))
		byPK[pk] = it.Key().SK
		if k := journal.HeadKey(pk); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for try := 0; len(keys) > 0; try++ {
		n := min(len(keys), store.MaxBatchGet)
		found, left, meta, err := st.l.s.Table.BatchGet(ctx, keys[:n], true)
		if err != nil {
			return journal.Fail(err, execution.Ref{Tenant: st.l.r.Tenant})
		}
		if len(left) == n {
			if try == 8 {
				return execution.Errorf(execution.Throttled, "the listing could not be read whole")
			}
			if err := st.l.s.Journal.Sleep(ctx, time.Duration(try+1)*20*time.Millisecond); err != nil {
				return journal.Fail(err, execution.Ref{Tenant: st.l.r.Tenant})
			}
		}
		keys = append(left, keys[n:]...)
		if !meta.Date.IsZero() {
			st.l.now = max(st.l.now, meta.Date.UnixMilli())
		}
		for _, it := range found {
			// A row may be left from an earlier generation of the id.
			if h, ok := journal.ParseHead(it); ok && h.Marked(st.l.src.token) {
				st.rows = append(st.rows, row{byPK[it.Key().PK], h})
			}
		}
	}
	slices.SortFunc(st.rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return nil
}
