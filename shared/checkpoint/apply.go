package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Apply writes one step, with its ending if it has one: on a warm handle one
// conditional put. Errors as execution.Propose, and what the store answers;
// Unavailable means that the outcome is unknown and the same request finds out.
func (s *Service) Apply(ctx context.Context, r *api.ApplyRequest) (*api.ApplyReply, error) {
	base, err := change(r)
	if err != nil {
		return nil, err
	}
	var known map[execution.OperationID]*journal.Slot
	w, err := s.Journal.Write(ctx, r.Tenant, r.Execution, journal.WriteOptions{Head: len(r.Labels)+len(r.Subjects) > 0, AtLeast: r.ExpectedVersion},
		func(ctx context.Context, h *journal.Handle) (*journal.Step, error) {
			env := execution.Environment{Now: s.Journal.Now(h), Epoch: s.Journal.Epoch}
			replay, err := execution.Admit(h.State, base, env)
			if err != nil {
				return nil, s.over(ctx, h, err)
			}
			if replay != nil {
				return &journal.Step{Proposal: &execution.Proposal{Replay: replay}}, nil
			}
			c := *base
			if known, err = s.gather(ctx, h, r, &c); err != nil {
				return nil, err
			}
			p, err := execution.Propose(h.State, h.State.Ref, &c, env)
			if err != nil {
				return nil, err
			}
			return s.step(ctx, h, r, p)
		})
	if err != nil {
		if execution.CodeOf(err) == execution.VersionConflict {
			s.count(telemetry.StateConflicts, 1)
		}
		return nil, err
	}
	if w.Replay == nil && w.Proposal.Contradictions > 0 {
		s.count(telemetry.Contradictions, float64(w.Proposal.Contradictions))
	}
	return s.applied(ctx, r, w, known)
}

// over answers for an execution that has ended: once its time is over it is
// gone for every verb, whether or not the removal has run.
func (s *Service) over(ctx context.Context, h *journal.Handle, err error) error {
	if !h.Fresh || execution.CodeOf(err) != execution.ExecutionClosed {
		return err
	}
	head, clock, herr := s.Journal.ReadHead(ctx, h.State.Tenant, h.State.Execution)
	if herr != nil || head == nil {
		return err
	}
	if head.Expired(s.Journal.NowOf(clock)) {
		return execution.Errorf(execution.Deleted, "the execution's time is over").With("execution", string(h.State.Execution)).With("expired", true)
	}
	return err
}

// change takes over what needs no reading.
func change(r *api.ApplyRequest) (*execution.Change, error) {
	c := &execution.Change{Kind: execution.KindCheckpoint, Actor: r.Actor.Execution(), Request: request(&r.Common), Expected: r.ExpectedVersion, First: r.FirstVersion,
		Fence: r.Fence, HasFence: r.Fence > 0, Redacted: r.Redacted, Note: r.Note, Task: r.Task, State: r.State, Patch: r.Patch, Merge: r.Merge, Labels: r.Labels, Subjects: r.Subjects,
		Permissions: r.Permissions.Execution()}
	for _, d := range r.Operations {
		c.Operations = append(c.Operations, execution.Declaration{Name: d.Name, Args: d.Args, Key: d.Key, OnUncertain: d.OnUncertain, DedupSeconds: d.DedupSeconds,
			ValidSeconds: d.ValidSeconds, DeadlineSeconds: d.DeadlineSeconds, Resolver: d.Resolver})
	}
	if len(r.Spend) > 0 {
		c.Spend = make(map[string]string, len(r.Spend))
		for name, n := range r.Spend {
			text, err := execution.ParseDecimal("spend."+name, string(n), false)
			if err != nil {
				return nil, err
			}
			c.Spend[name] = text
		}
	}
	if t := r.Then; t != nil {
		switch {
		case t.Suspend != nil:
			c.Kind = execution.KindSuspended
			c.Wait = &execution.Wait{Operations: t.Suspend.Operations, Signals: t.Suspend.Signals, Until: t.Suspend.Until.Millis(), WaitingFor: t.Suspend.WaitingFor}
			if t.Suspend.Wake != nil {
				c.Wait.TaskToken = t.Suspend.Wake.TaskToken
			}
		case t.Complete != nil:
			c.Kind = execution.KindCompleted
			c.Complete = &execution.Completion{Outcome: t.Complete.Outcome, Result: t.Complete.Result, Error: t.Complete.Error}
		case t.Continue != nil:
			c.Kind = execution.KindContinued
			c.Continue = &execution.Continue{AfterSeconds: t.Continue.AfterSeconds}
		}
	}
	return c, nil
}

// gather reads what the step refers to: outcomes that the ledger has, signals
// to absorb, staged artifacts, and the slots of operations that may have been
// settled long ago. Objects it writes (results too large for an entry) are
// staged: without the entry the orphan sweep takes them.
func (s *Service) gather(ctx context.Context, h *journal.Handle, r *api.ApplyRequest, c *execution.Change) (map[execution.OperationID]*journal.Slot, error) {
	ref := h.State.Ref
	var err error
	if c.Outcomes, err = s.outcomes(ctx, h, r.Outcomes); err != nil {
		return nil, err
	}
	if c.Ledger, err = s.against(ctx, h, r); err != nil {
		return nil, err
	}
	if len(r.Absorb) > 0 {
		refs := make([]execution.SignalRef, len(r.Absorb))
		for i, a := range r.Absorb {
			refs[i] = execution.SignalRef{Name: a.Name, Key: a.Key}
		}
		items, err := s.Ledger.Signals(ctx, h.State, refs)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			c.Absorb = append(c.Absorb, execution.SignalRef{Name: it.Name, Key: it.Key, Actor: it.Actor, At: it.At})
		}
	}
	if len(h.State.Absorbed) > manyAbsorbed {
		inbox, err := s.Ledger.Inbox(ctx, h.State)
		if err != nil {
			return nil, err
		}
		c.Emptied = inbox.Empty
	}
	if len(r.Artifacts) > 0 {
		if c.Artifacts, err = s.Artifacts.Verify(ctx, ref, r.Artifacts); err != nil {
			return nil, err
		}
	}
	return s.forgotten(ctx, h, r, c)
}

// manyAbsorbed is how many absorbed signals a fold carries before it looks for
// those whose items are empty by now.
const manyAbsorbed = 64

// forgotten looks up operations that may have been settled so long ago that
// the fold dropped them; their declarations are answered from their slots.
func (s *Service) forgotten(ctx context.Context, h *journal.Handle, r *api.ApplyRequest, c *execution.Change) (map[execution.OperationID]*journal.Slot, error) {
	if len(h.State.Forgotten) == 0 || len(r.Operations) == 0 {
		return nil, nil
	}
	known := map[execution.OperationID]*journal.Slot{}
	keep := make([]execution.Declaration, 0, len(c.Operations))
	for i, d := range c.Operations {
		id := h.State.OperationID(taskOf(h.State, r.Task), &d)
		if h.State.Operation(id) != nil || !h.State.MayBeForgotten(id) {
			keep = append(keep, d)
			continue
		}
		slots, err := s.Journal.ReadSlots(ctx, h.State.Ref, id)
		if err != nil {
			return nil, err
		}
		var last *journal.Slot
		for _, sl := range slots {
			if sl.Outcome.Final() && (last == nil || sl.Attempt > last.Attempt) {
				last = sl
			}
		}
		if last == nil {
			if c.NotForgotten == nil {
				c.NotForgotten = map[execution.OperationID]bool{}
			}
			c.NotForgotten[id] = true
			keep = append(keep, d)
			continue
		}
		if digest := execution.DigestArgs(d.Args); string(last.Args) != string(digest[:]) {
			return nil, execution.Errorf(execution.OperationMismatch, "the operation was declared before with other arguments").With("operation", string(id)).With("field", fmt.Sprintf("operations[%d].args", i))
		}
		known[id] = last
	}
	c.Operations = keep
	return known, nil
}

func taskOf(st *execution.State, asked execution.TaskID) execution.TaskID {
	if asked != "" {
		return asked
	}
	return st.Task
}

// step adds to an accepted proposal what goes with it: a plain checkpoint is
// one put, everything else a transaction with the head.
func (s *Service) step(ctx context.Context, h *journal.Handle, r *api.ApplyRequest, p *execution.Proposal) (*journal.Step, error) {
	step := &journal.Step{Proposal: p}
	st := p.State
	if len(p.Slots) > 0 {
		step.Before = func(ctx context.Context) error {
			_, err := s.Ledger.Settle(ctx, h, p.Slots)
			return err
		}
	}
	var hc journal.HeadChange
	switch p.Entry.Kind {
	case execution.KindSuspended:
		hc.Due, hc.Timer = journal.Due{At: wakeAt(st), Kind: journal.DueWake}, "wake"
	case execution.KindContinued:
		hc.Due, hc.Timer = journal.Due{At: p.Entry.At + st.Continue.AfterSeconds*1000, Kind: journal.DueContinue}, "lease"
	case execution.KindCompleted:
		expires, retain, err := s.lifetime(ctx, st)
		if err != nil {
			return nil, err
		}
		hc.RetainAt(st.Execution, h.Head, retain)
		if expires > 0 {
			hc.Actions = append(hc.Actions, store.Set{Attr: journal.HeadExpires, Value: store.N(expires)})
			step.With = append(step.With, store.Write{Put: &store.Put{Item: journal.TimerItem(st.Ref, "retention", expires)}})
		}
	default:
		if len(r.Labels)+len(r.Subjects) == 0 {
			return step, nil
		}
		if st.Owner != "" {
			hc.LeaseExpires = max(h.Head.LeaseExpiresAt, p.Entry.At+st.LeaseSeconds*1000)
			hc.Due = journal.Due{At: hc.LeaseExpires, Kind: journal.DueLease}
		}
	}
	if err := s.mark(ctx, h, r, &hc, step); err != nil {
		return nil, err
	}
	step.Head = &hc
	return step, nil
}

// mark puts the tokens of new labels and subjects on the head, with their
// selector rows, and takes those of replaced values away: an execution must not
// be listed, let alone deleted, by a label that it no longer has.
func (s *Service) mark(ctx context.Context, h *journal.Handle, r *api.ApplyRequest, hc *journal.HeadChange, step *journal.Step) error {
	if len(r.Labels)+len(r.Subjects) == 0 {
		return nil
	}
	lt, sj, err := s.tokens(ctx, r.Tenant, r.Labels, r.Subjects)
	if err != nil {
		return err
	}
	replaced := map[string]string{}
	for name, value := range r.Labels {
		if old, ok := h.State.Labels[name]; ok && old != value {
			replaced[name] = old
		}
	}
	gone, _, err := s.tokens(ctx, r.Tenant, replaced, nil)
	switch {
	case err != nil:
		return err
	case len(gone) > 0:
		// One update cannot both add to a set and take from it: the whole set, as long
		// as it is the one that was read.
		was := store.Cond(store.Absent{Attr: journal.HeadLabels})
		if len(h.Head.LabelTokens) > 0 {
			was = store.Eq(journal.HeadLabels, store.SS(h.Head.LabelTokens...))
		}
		hc.Conditions = append(hc.Conditions, was)
		kept := slices.DeleteFunc(slices.Clone(h.Head.LabelTokens), func(t string) bool { return slices.Contains(gone, t) || slices.Contains(lt, t) })
		hc.Actions = append(hc.Actions, store.Set{Attr: journal.HeadLabels, Value: store.SS(append(kept, lt...)...)})
		for _, t := range gone {
			step.With = append(step.With, store.Write{Delete: &store.Delete{Key: journal.SelectorKey(h.State.Ref, t)}})
		}
	case len(lt) > 0:
		hc.Actions = append(hc.Actions, store.AddToSet{Attr: journal.HeadLabels, Values: lt})
	}
	if len(sj) > 0 {
		hc.Actions = append(hc.Actions, store.AddToSet{Attr: journal.HeadSubjects, Values: sj})
	}
	step.With = append(step.With, journal.SelectorWrites(h.State.Ref, append(lt, sj...))...)
	return nil
}

// firstPoll is when a waiting execution is looked at for the first time: every
// wait has an alarm, so that no lost wake-up keeps it for ever (M).
const firstPoll = 60_000

func wakeAt(st *execution.State) int64 {
	at := st.TipAt + firstPoll
	if u := st.Wait.Until; u > 0 && u < at {
		at = max(u, st.TipAt)
	}
	return at
}

// applied is the reply of a step, first or repeated.
func (s *Service) applied(ctx context.Context, r *api.ApplyRequest, w *journal.Written, known map[execution.OperationID]*journal.Slot) (*api.ApplyReply, error) {
	h := w.Handle
	out := &api.ApplyReply{Standing: s.Views.Standing(h), StateBytes: int64(h.State.Data.Size())}
	if w.Replay != nil {
		out.Version, out.Replayed, out.Tip = w.Replay.Version, true, &api.Tip{Version: h.State.Version, Fence: h.State.Fence}
		s.count(telemetry.RepeatedRequests, 1)
		if token := newerToken(r, w); token != "" {
			if err := s.Journal.Rewake(ctx, h, token); err != nil {
				return nil, err
			}
		}
	}
	given, err := s.given(ctx, r, w, known)
	if err != nil {
		return nil, err
	}
	for _, g := range given {
		o, err := s.operation(ctx, h, g)
		if err != nil {
			return nil, err
		}
		out.Operations = append(out.Operations, o)
	}
	if len(r.Absorb) > 0 {
		// The entry stands, so the items may be emptied; a crash before leaves them
		// full and any opener does it.
		refs := make([]execution.SignalRef, len(r.Absorb))
		for i, a := range r.Absorb {
			refs[i] = execution.SignalRef{Name: a.Name, Key: a.Key}
		}
		if err := s.Ledger.Empty(ctx, h.State.Ref, refs); err != nil && !execution.CodeOf(err).Retryable() {
			return nil, err
		}
	}
	if err := s.ended(ctx, h, out); err != nil {
		return nil, err
	}
	s.count(telemetry.CheckpointBytes, float64(out.StateBytes))
	if err := api.FitApply(out, api.InlineLimit(r.MaxInlineBytes), s.Views.References(ctx, h)); err != nil {
		return nil, err
	}
	return out, nil
}

// newerToken is the task token of a suspension that was repeated while it is still
// the newest entry: the last one wins, because a caller that is tried again waits
// behind a token of its own. "": there is none, or nothing to replace.
func newerToken(r *api.ApplyRequest, w *journal.Written) string {
	st := w.Handle.State
	if r.Then == nil || r.Then.Suspend == nil || r.Then.Suspend.Wake == nil || st.Wait == nil || st.Wait.TaskToken == "" || st.Version != w.Replay.Version {
		return ""
	}
	return r.Then.Suspend.Wake.TaskToken
}

// given answers the declarations in their order. Those of a repeated request
// are computed from the fold at the tip, never replayed (M).
func (s *Service) given(ctx context.Context, r *api.ApplyRequest, w *journal.Written, known map[execution.OperationID]*journal.Slot) ([]execution.Given, error) {
	if len(r.Operations) == 0 {
		return nil, nil
	}
	st, then := w.Handle.State, w.Handle.State
	if w.Replay != nil && r.Task == "" && w.Replay.Version != st.Version {
		h, err := s.Journal.At(ctx, r.Tenant, r.Execution, w.Replay.Version)
		if err != nil && execution.CodeOf(err) != execution.HistoryPruned {
			return nil, err
		}
		if err == nil {
			then = h.State
		}
	}
	unsent := map[execution.OperationID]int64{} // the first of several declarations of one operation was to go
	fresh := map[execution.OperationID][]execution.Given{}
	if w.Replay == nil {
		for _, g := range w.Proposal.Given {
			fresh[g.Operation.ID] = append(fresh[g.Operation.ID], g)
		}
	}
	out := make([]execution.Given, 0, len(r.Operations))
	for _, d := range r.Operations {
		id := st.OperationID(taskOf(then, r.Task), &execution.Declaration{Name: d.Name, Key: d.Key, Args: d.Args})
		op := st.Operation(id)
		switch {
		case len(fresh[id]) > 0:
			out = append(out, fresh[id][0])
			fresh[id] = fresh[id][1:]
		case op != nil:
			at, answered := unsent[id]
			if !answered && w.Unsent {
				at = w.Replay.Version
			}
			unsent[id] = 0
			out = append(out, execution.Given{Operation: op, Disposition: execution.Replayed(op, st.Fence, s.Journal.Now(w.Handle), at)})
		default:
			slot := known[id]
			if slot == nil {
				slots, err := s.Journal.ReadSlots(ctx, st.Ref, id)
				if err != nil {
					return nil, err
				}
				for _, sl := range slots {
					if sl.Outcome.Final() && (slot == nil || sl.Attempt > slot.Attempt) {
						slot = sl
					}
				}
			}
			g := execution.Given{Operation: &execution.Operation{ID: id, Name: d.Name, Key: d.Key, Attempt: 1}, Disposition: execution.UncertainDisp}
			if slot != nil {
				g.Operation.Attempt, g.Operation.Outcome, g.Operation.Reason = slot.Attempt, slot.Outcome, slot.Reason
				g.Operation.ProviderRef, g.Operation.Result, g.Operation.ResultRef = slot.ProviderRef, slot.Result, slot.ResultRef
				g.Disposition = execution.Settled
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// operation shows what to do about a declared operation.
func (s *Service) operation(ctx context.Context, h *journal.Handle, g execution.Given) (api.OperationReply, error) {
	op := g.Operation
	out := api.OperationReply{Operation: op.ID, Name: op.Name, Key: op.Key, Attempt: op.Attempt, ProviderKey: op.ProviderKey(h.State.IdentityRoot), SendBy: api.TimeOrNil(op.SendBy()),
		Disposition: api.Disposition(g.Disposition)}
	if g.Disposition == execution.Settled {
		out.Outcome, out.Reason, out.ProviderRef, out.Result = op.Outcome, op.Reason, op.ProviderRef, op.Result
		if op.ResultRef != nil {
			ref, err := s.Artifacts.RefTo(ctx, h.State.Ref, op.ResultRef)
			if err != nil {
				return out, err
			}
			out.ResultRef = ref
		}
		return out, nil
	}
	var err error
	out.Callback, err = s.Ledger.Callback(ctx, h.State.Ref, op.ID, op.Attempt)
	return out, err
}

// ended looks at the ledger after an ending was written: what came before the
// entry is named as missed, so that no wake-up is lost, whoever was first (M).
func (s *Service) ended(ctx context.Context, h *journal.Handle, out *api.ApplyReply) error {
	st := h.State
	child := st.Parent != nil || st.ForkedFrom != nil && st.ForkedFrom.Carry // perhaps by what it carries on
	if st.Status.Terminal() && child && s.ChildEnded != nil {
		if err := s.ChildEnded(ctx, st); err != nil && !execution.CodeOf(err).Retryable() {
			return err
		}
	}
	if st.Wait == nil || len(st.Wait.Operations)+len(st.Wait.Signals) == 0 {
		return nil
	}
	missed, err := s.missed(ctx, st)
	if err != nil || missed == nil {
		return err
	}
	out.Missed = missed
	// Due now. Lost: the poll finds it. Landed: the sweep hands over once, whatever
	// else rings.
	_, _, err = s.Table.Update(ctx, store.Update{Key: journal.HeadKey(st.PK()), Cond: journal.HeadIs(st), ValidatedAt: h.ValidatedAt(),
		Actions: journal.DueActions(st.Execution, journal.Due{At: s.Journal.Now(h), Kind: journal.DueEvidence})})
	if _, moved := err.(*store.ConditionFailed); moved {
		return nil
	}
	return journal.Fail(err, st.Ref)
}

// missed is what an execution waits for and has already; nil: nothing.
func (s *Service) missed(ctx context.Context, st *execution.State) (*api.Missed, error) {
	var out api.Missed
	ops := make([]*execution.Operation, 0, len(st.Wait.Operations))
	for _, id := range st.Wait.Operations {
		if op := st.Operation(id); op == nil || op.Final() {
			out.Operations = append(out.Operations, id)
		} else {
			ops = append(ops, op)
		}
	}
	slots, err := s.Journal.GetSlots(ctx, st.Ref, ops)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		if sl := slots[op.ID]; sl != nil && sl.Outcome.Final() {
			out.Operations = append(out.Operations, op.ID)
		}
	}
	if len(st.Wait.Signals) > 0 {
		inbox, err := s.Ledger.Inbox(ctx, st)
		if err != nil {
			return nil, err
		}
		for _, it := range inbox.Open {
			for _, name := range st.Wait.Signals {
				if it.Name == name {
					out.Signals = append(out.Signals, api.SignalRef{Name: it.Name, Key: it.Key})
				}
			}
		}
	}
	if len(out.Operations)+len(out.Signals) == 0 {
		return nil, nil
	}
	return &out, nil
}
