package recovery

import (
	"context"
	"strconv"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/schema"
	"github.com/cairnstate/cairn/shared/store"
)

// Migrator runs a migration that is a function of the customer's. Safe for
// concurrent use; it may be asked again about the same state.
type Migrator interface {
	// Migrate sends {tenant, execution, schema {name, version}, to, state} and gives
	// the answer {state, renamed? [{from, to}]}, not yet checked. An error means
	// that there is no answer; its text holds no state.
	Migrate(ctx context.Context, function string, question []byte) ([]byte, error)
}

// plan finds how a state gets to the version that its workflow writes now (to 0)
// or to another, never beyond what the reader supports. No steps: it is there,
// or its workflow declares no migrations. MigrationFailed when no way leads there.
func (s *Service) plan(ctx context.Context, st *execution.State, r *api.Supports, to int64) (chain []schema.Step, target int64, err error) {
	w, err := s.Catalog.Workflow(ctx, st.Tenant, st.Workflow)
	if err != nil {
		return nil, 0, err
	}
	target = st.Schema.Version
	if w != nil && w.Schema != nil && w.Schema.Name == st.Schema.Name && target > 0 {
		target = max(target, w.Schema.Version)
		if to > 0 {
			target = max(st.Schema.Version, to)
		}
	}
	if r != nil {
		target = max(st.Schema.Version, min(target, r.Max))
		if target < r.Min {
			return nil, 0, execution.Errorf(execution.MigrationFailed, "no migration leads to a version that this build reads").With("from", st.Schema.Version).With("to", r.Min)
		}
	}
	steps := s.steps(st, w)
	if len(steps) == 0 && r == nil && to == 0 {
		return nil, st.Schema.Version, nil
	}
	chain, err = schema.Chain(steps, st.Schema.Version, target)
	return chain, target, err
}

// steps are the migrations registered in Go, then the workflow's.
func (s *Service) steps(st *execution.State, w *api.Workflow) []schema.Step {
	steps := s.Migrations[st.Schema.Name]
	steps = steps[:len(steps):len(steps)]
	if w == nil {
		return steps
	}
	for _, m := range w.Migrations {
		step := schema.Step{From: m.From, To: m.To, Patch: m.Patch}
		if m.Lambda != "" {
			step.Do = func(ctx context.Context, state *jsonx.Value) (schema.Result, error) {
				return s.callMigrator(ctx, st, m, state)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// callMigrator asks the customer's function and checks its answer.
func (s *Service) callMigrator(ctx context.Context, st *execution.State, m api.Migration, state *jsonx.Value) (schema.Result, error) {
	if s.Migrator == nil {
		return schema.Result{}, schema.Reason("functions cannot be called here")
	}
	text := func(k, v string) jsonx.Member { return jsonx.Member{Key: jsonx.Key(k), Value: jsonx.NewString(v)} }
	question := jsonx.NewObject(text("tenant", string(st.Tenant)), text("execution", string(st.Execution)),
		jsonx.Member{Key: jsonx.Key("schema"), Value: jsonx.NewObject(text("name", st.Schema.Name), jsonx.Member{Key: jsonx.Key("version"), Value: jsonx.NewInt(m.From)})},
		jsonx.Member{Key: jsonx.Key("to"), Value: jsonx.NewInt(m.To)}, jsonx.Member{Key: jsonx.Key("state"), Value: state})
	b, err := s.Migrator.Migrate(ctx, m.Lambda, question.Bytes())
	if err != nil {
		return schema.Result{}, execution.Errorf(execution.Unavailable, "the migration's function gave no answer").Because(err)
	}
	v, err := jsonx.ParseLimits(b, jsonx.Limits{Depth: jsonx.DefaultLimits.Depth + 1})
	if err != nil || v.Kind() != jsonx.Object {
		return schema.Result{}, schema.Reason("the function's answer is no JSON object")
	}
	out := schema.Result{State: v.Get("state")}
	if names := v.Get("renamed"); names != nil {
		for _, n := range names.Elems() {
			from, ok1 := n.Get("from").Text()
			to, ok2 := n.Get("to").Text()
			if !ok1 || !ok2 || !execution.ValidIdentifier(from, execution.MaxIdentifier) || !execution.ValidIdentifier(to, execution.MaxIdentifier) {
				return schema.Result{}, schema.Reason("renamed must be a list of {from, to} names")
			}
			out.Renamed = append(out.Renamed, execution.Rename{From: from, To: to})
		}
	}
	return out, nil
}

// migration computes the change that brings a state to its target; nil: none is
// needed.
func (s *Service) migration(ctx context.Context, st *execution.State, r *api.Supports, to int64) (*execution.Change, error) {
	chain, target, err := s.plan(ctx, st, r, to)
	if err != nil || len(chain) == 0 {
		return nil, err
	}
	got, err := schema.Run(ctx, chain, st.Data)
	if err != nil {
		return nil, err
	}
	return &execution.Change{Kind: execution.KindMigrated, Actor: system, State: got.State, Renamed: got.Renamed, Schema: &execution.Schema{Name: st.Schema.Name, Version: target}, Expected: st.Version}, nil
}

// migrateOwned migrates under the fence that was just claimed. What cannot be
// migrated is parked, with its bytes and version kept, and MigrationFailed.
//
// Lost: the state is as it was and the owner's repeat comes here again. Landed,
// reply lost: the version tells. A crash right after: the next owner finds it
// migrated.
func (s *Service) migrateOwned(ctx context.Context, w *journal.Written, r *api.Claiming) (*journal.Written, error) {
	st := w.Handle.State
	c, err := s.migration(ctx, st, r.Supports, 0)
	if err != nil {
		if execution.CodeOf(err) == execution.MigrationFailed {
			if _, perr := s.park(ctx, w.Handle, st.Fence, []execution.Reason{migrationFailed(err)}, 0); perr != nil {
				return nil, perr
			}
		}
		return nil, execution.AsError(err).At(st)
	}
	if c == nil {
		return w, nil
	}
	c.Fence, c.HasFence = st.Fence, true
	next, err := s.writeMigrated(ctx, st, c)
	if err != nil {
		return nil, err
	}
	next.Replay = w.Replay
	return next, nil
}

// writeMigrated writes the entry and carries the schema to the head. What was due
// stays due.
func (s *Service) writeMigrated(ctx context.Context, st *execution.State, c *execution.Change) (*journal.Written, error) {
	return s.write(ctx, st.Tenant, st.Execution, func(h *journal.Handle) (*journal.Step, error) {
		p, err := s.propose(h, c)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		hc := &journal.HeadChange{Conditions: []store.Cond{leaseAsRead(h.Head), dueAsRead(h.Head)}, Due: journal.Due{At: h.Head.DueAt, Kind: h.Head.DueKind}}
		if h.State.Owner != "" {
			hc.LeaseExpires = max(h.Head.LeaseExpiresAt, p.Entry.At+h.State.LeaseSeconds*1000)
			hc.Due = journal.Due{At: hc.LeaseExpires, Kind: journal.DueLease}
		}
		return &journal.Step{Proposal: p, Head: hc}, nil
	})
}

// dueAsRead is the condition that what is due is what was read.
func dueAsRead(h *journal.Head) store.Cond {
	if h.DueAt == 0 {
		return store.Absent{Attr: journal.HeadDue}
	}
	return store.Eq(journal.HeadDue, store.N(h.DueAt))
}

func migrationFailed(err error) execution.Reason {
	e := execution.AsError(err)
	detail := e.Message
	if why, ok := e.Facts["reason"].(string); ok {
		detail += ": " + why
	}
	return execution.Reason{Code: "migration_failed", Detail: detail}
}

// Migrate brings a workflow's executions to a schema version, a page per call.
// Executions with an owner are left to their next resume, ended and halted ones
// as they are: skipped. One that fails keeps its bytes and version and is named;
// its next resume parks it.
func (s *Service) Migrate(ctx context.Context, r *api.MigrateRequest) (*api.MigrateReply, error) {
	w, err := s.Catalog.Workflow(ctx, r.Tenant, r.Workflow)
	if err != nil {
		return nil, err
	}
	if w == nil || w.Schema == nil {
		return nil, execution.Errorf(execution.NotFound, "no such workflow").With("workflow", r.Workflow)
	}
	to := r.To
	if to == 0 {
		to = w.Schema.Version
	}
	at, err := parseMigrateCursor(migrateListing(r), r.Cursor)
	if err != nil {
		return nil, err
	}
	reply := &api.MigrateReply{Failures: []api.Failure{}}
	for n := api.ListLimit(r.Limit); at.shard < journal.WorkflowShards; {
		if n <= 0 || !s.timeLeft(ctx) {
			reply.Cursor = at.text(migrateListing(r))
			return reply, nil
		}
		q := store.Query{Index: "workflow", PK: journal.WorkflowPartition(r.Tenant, r.Workflow, at.shard), From: at.after, Limit: min(n, 100) + 1}
		page, _, err := s.Table.Query(ctx, q)
		if err != nil {
			return nil, journal.Fail(err, execution.Ref{Tenant: r.Tenant})
		}
		for _, it := range page.Items {
			key := it.Str("xc")
			if key == at.after {
				continue
			}
			if n <= 0 {
				break
			}
			n--
			if err := s.migrateOne(ctx, it, to, reply); err != nil {
				return nil, err
			}
			at.after = key
		}
		if page.Next == nil && n > 0 {
			at = migrateCursor{shard: at.shard + 1}
		}
	}
	reply.Done = true
	return reply, nil
}

// migrateOne migrates one execution of a page. Only an error that strikes all of
// them is returned.
func (s *Service) migrateOne(ctx context.Context, item store.Item, to int64, reply *api.MigrateReply) error {
	head, ok := journal.ParseHead(item)
	if !ok {
		return nil
	}
	migrated, err := s.migrateUnowned(ctx, head, to)
	switch code := execution.CodeOf(err); {
	case err == nil && migrated:
		reply.Migrated++
	case err == nil, code == execution.NotFound, code == execution.Deleted:
		reply.Skipped++
	case ctx.Err() != nil, code == execution.Throttled:
		return err
	default:
		reply.Failures = append(reply.Failures, api.Failure{Execution: head.Execution, Code: code, Message: execution.AsError(err).Message})
	}
	return nil
}

func (s *Service) migrateUnowned(ctx context.Context, head *journal.Head, to int64) (bool, error) {
	for range 3 {
		h, err := s.Journal.Open(ctx, head.Tenant, head.Execution, journal.OpenOptions{Head: true})
		if err != nil {
			return false, err
		}
		if err := s.usable(h); err != nil {
			return false, err
		}
		st := h.State
		if st.Schema.Version >= to || st.Owner != "" || st.Status.Ended() || st.Status == execution.StatusHalted {
			return false, nil
		}
		c, err := s.migration(ctx, st, nil, to)
		if err != nil || c == nil {
			return false, err
		}
		c.System = true
		_, err = s.writeMigrated(ctx, st, c)
		if execution.CodeOf(err) == execution.VersionConflict {
			continue
		}
		return err == nil, err
	}
	return false, execution.Errorf(execution.Unavailable, "the execution is changed by others: repeat")
}

// migrateCursor is where the next page begins: behind a sort key of a shard.
type migrateCursor struct {
	shard int
	after string
}

func (c migrateCursor) text(kind string) string {
	return api.Cursor(kind, strconv.Itoa(c.shard), c.after)
}

func migrateListing(r *api.MigrateRequest) string {
	return api.Listing("migrate", r.Tenant, r.Workflow, r.To)
}

func parseMigrateCursor(kind, text string) (migrateCursor, error) {
	if text == "" {
		return migrateCursor{}, nil
	}
	parts, err := api.ParseCursor("cursor", kind, text, 2)
	if err != nil {
		return migrateCursor{}, err
	}
	n, err := strconv.Atoi(parts[0])
	if err != nil || n < 0 || n >= journal.WorkflowShards {
		return migrateCursor{}, execution.Invalid("cursor", "is none of this verb's")
	}
	return migrateCursor{shard: n, after: parts[1]}, nil
}
