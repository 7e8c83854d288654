package checkpoint

import (
	"context"
	"slices"
	"strconv"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/view"
)

// Get shows the folded view, the newest or as of a version: at most three
// requests (head, tail, inbox), one more when the newest snapshot lies in the
// bucket. Errors: NotFound, Deleted, HistoryPruned {floor}, Integrity (also for
// a version beyond the tip), TooLarge when not even a header fits.
func (s *Service) Get(ctx context.Context, r *api.GetRequest) (*api.GetReply, error) {
	h, err := s.open(ctx, r.Tenant, r.Execution, r.Version, r.Wants("operations"))
	if err != nil {
		return nil, err
	}
	v, err := s.Views.View(ctx, h, view.Options{Inbox: r.Wants("inbox") && r.Version == 0, Evidence: r.Wants("operations") && r.Version == 0})
	if err != nil {
		return nil, err
	}
	out := &api.GetReply{Standing: s.Views.Standing(h), View: *v}
	if err := only(&out.View, r); err != nil {
		return nil, err
	}
	if err := api.FitView(out, api.InlineLimit(r.MaxInlineBytes), s.Views.References(ctx, h)); err != nil {
		return nil, err
	}
	return out, nil
}

// open opens an execution with its head, at the tip (with the slots of open
// operations, if asked) or as of a version, and
// refuses one whose time is over.
func (s *Service) open(ctx context.Context, t execution.TenantID, e execution.ExecutionID, version int64, slots bool) (*journal.Handle, error) {
	var h *journal.Handle
	var err error
	if version > 0 {
		h, err = s.Journal.At(ctx, t, e, version)
	} else {
		h, err = s.Journal.Open(ctx, t, e, journal.OpenOptions{Head: true, Slots: slots})
	}
	if err != nil {
		return nil, err
	}
	return h, s.Journal.Readable(h)
}

// only leaves what was asked for and goes on from the cursors.
func only(v *api.View, r *api.GetRequest) error {
	if !r.Wants("state") {
		v.State = nil
	}
	if !r.Wants("operations") {
		v.Operations = nil
	}
	if !r.Wants("artifacts") {
		v.Artifacts = nil
	}
	if !r.Wants("budgets") {
		v.Budgets = nil
	}
	if r.Include != nil && len(r.Include) == 0 {
		v.Input, v.Result, v.Error = nil, nil, nil
	}
	return from(v, r)
}

// History lists entries in version order, whatever the clocks said.
func (s *Service) History(ctx context.Context, r *api.HistoryRequest) (*api.HistoryReply, error) {
	h, err := s.open(ctx, r.Tenant, r.Execution, 0, false)
	if err != nil {
		return nil, err
	}
	from := r.FromVersion
	if r.Cursor != "" {
		p, err := api.ParseCursor("cursor", api.HistoryListing(r.Execution), r.Cursor, 1)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseInt(p[0], 10, 64)
		if err != nil {
			return nil, execution.Invalid("cursor", "is no cursor of this list")
		}
		from = last + 1
		if r.NewestFirst {
			from = last - 1
		}
	}
	out := &api.HistoryReply{Standing: s.Views.Standing(h), Entries: []api.HistoryEntry{}}
	floor := max(h.Head.Floor, h.Head.FirstVersion)
	if r.NewestFirst && from != 0 && from < floor {
		return out, nil
	}
	if !r.NewestFirst {
		from = max(from, floor)
	}
	page, err := s.Journal.History(ctx, h, from, r.NewestFirst, api.ListLimit(r.Limit))
	if err != nil {
		return nil, err
	}
	for _, e := range page.Entries {
		if e.Version >= floor {
			out.Entries = append(out.Entries, historyEntry(h.State, e))
		}
	}
	if page.Next > 0 && page.Next >= floor && len(out.Entries) > 0 {
		out.Cursor = api.Cursor(api.HistoryListing(r.Execution), strconv.FormatInt(out.Entries[len(out.Entries)-1].Version, 10))
	}
	return out, api.FitHistory(out, execution.MaxReplyBytes, s.Views.References(ctx, h))
}

func historyEntry(s *execution.State, e *execution.Entry) api.HistoryEntry {
	b := &e.Body
	out := api.HistoryEntry{Version: e.Version, Kind: e.Kind, At: api.Time(e.At), Actor: (*api.Actor)(b.Actor), Fence: e.Fence, RequestID: b.RequestID, Task: b.Task, Note: b.Note, Reason: b.Reason}
	ch := &out.Changes
	ch.State, ch.Redacted = b.StateChanged, b.Redacted
	if c := b.Claim; c != nil {
		out.Owner, out.Resume = c.Owner, c.Resume
		if c.Force != "" {
			out.Reason = c.Force
		}
	}
	for _, a := range b.Absorbed {
		ch.Absorbed = append(ch.Absorbed, api.AbsorbedSignal{Name: a.Name, Key: a.Key, At: api.TimeOrNil(a.At), Actor: (*api.Actor)(a.Actor)})
	}
	name := func(id execution.OperationID) string {
		if op := s.Operation(id); op != nil {
			return op.Name
		}
		return ""
	}
	for _, d := range b.Declared {
		if d.Operation != nil {
			ch.Operations = append(ch.Operations, api.ChangedOperation{Operation: d.Operation.ID, Name: d.Operation.Name, Attempt: d.Operation.Attempt})
		} else {
			ch.Operations = append(ch.Operations, api.ChangedOperation{Operation: d.ID, Name: name(d.ID), Attempt: d.Attempt})
		}
	}
	for _, t := range b.Outcomes {
		ch.Outcomes = append(ch.Outcomes, api.ChangedOperation{Operation: t.Operation, Name: name(t.Operation), Attempt: t.Attempt, Outcome: t.Outcome, Source: t.Source, Reason: t.Reason, ProviderRef: t.ProviderRef})
	}
	for _, a := range b.Artifacts {
		ch.Artifacts = append(ch.Artifacts, a.Digest)
	}
	for n, v := range b.Spent {
		if ch.Spent == nil {
			ch.Spent = map[string]api.Decimal{}
		}
		ch.Spent[n] = api.Decimal(v)
	}
	for _, p := range b.Parked {
		ch.Parked = append(ch.Parked, api.Reason(p))
	}
	return out
}

// SetWorkflow stores a workflow.
func (s *Service) SetWorkflow(ctx context.Context, r *api.SetWorkflowRequest) (*api.SetWorkflowReply, error) {
	if err := s.Catalog.SetWorkflow(ctx, r.Tenant, &r.Workflow); err != nil {
		return nil, err
	}
	return &api.SetWorkflowReply{Workflow: &r.Workflow}, nil
}

// GetWorkflow reads a workflow; NotFound when it was never set.
func (s *Service) GetWorkflow(ctx context.Context, r *api.GetWorkflowRequest) (*api.GetWorkflowReply, error) {
	w, err := s.Catalog.Workflow(ctx, r.Tenant, r.Workflow)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, execution.Errorf(execution.NotFound, "no such workflow").With("workflow", r.Workflow)
	}
	return &api.GetWorkflowReply{Workflow: w}, nil
}

// SetTenant stores a tenant's settings.
func (s *Service) SetTenant(ctx context.Context, r *api.SetTenantRequest) (*api.SetTenantReply, error) {
	if err := s.Catalog.SetSettings(ctx, r.Tenant, r.Settings); err != nil {
		return nil, err
	}
	return &api.SetTenantReply{Settings: r.Settings}, nil
}

// GetTenant reads a tenant's settings.
func (s *Service) GetTenant(ctx context.Context, r *api.GetTenantRequest) (*api.GetTenantReply, error) {
	set, err := s.Catalog.Settings(ctx, r.Tenant)
	if err != nil {
		return nil, err
	}
	return &api.GetTenantReply{Settings: set}, nil
}

// from goes on where the cursors of an earlier page left off.
func from(v *api.View, r *api.GetRequest) error {
	if r.OperationsCursor != "" {
		p, err := api.ParseCursor("operations_cursor", "operations", r.OperationsCursor, 1)
		if err != nil {
			return err
		}
		seq, err := strconv.ParseInt(p[0], 10, 64)
		if err != nil {
			return execution.Invalid("operations_cursor", "is no cursor of this list")
		}
		v.Operations = slices.DeleteFunc(v.Operations, func(o api.OperationView) bool { return o.Seq <= seq })
	}
	if r.InboxCursor != "" {
		p, err := api.ParseCursor("inbox_cursor", "inbox", r.InboxCursor, 2)
		if err != nil {
			return err
		}
		v.Inbox = slices.DeleteFunc(v.Inbox, func(e api.InboxEntry) bool { return e.Name < p[0] || e.Name == p[0] && e.Key <= p[1] })
	}
	if r.ArtifactsCursor != "" {
		p, err := api.ParseCursor("artifacts_cursor", "artifacts", r.ArtifactsCursor, 1)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(p[0])
		if err != nil || n < 0 {
			return execution.Invalid("artifacts_cursor", "is no cursor of this list")
		}
		v.ArtifactsFrom = min(n, len(v.Artifacts))
		v.Artifacts = v.Artifacts[v.ArtifactsFrom:]
	}
	return nil
}
