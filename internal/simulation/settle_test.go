package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/wiring"
)

// settle is the check at the end, when everything has come to rest: what the
// services say is what was written, acknowledged and done.
func (w *world) settle() {
	p := w.instance(w.rng)
	if w.rng.IntN(2) == 0 { // one that remembers nothing
		p = w.newProcess()
	}
	s, ctx := p.services, context.Background()
	for _, e := range w.truth.order {
		k := w.truth.known[e]
		if w.failed != nil {
			return
		}
		if k.tip == 0 { // never created
			continue
		}
		if k.deleted || k.status == execution.StatusDeleting {
			if !w.truth.wanted(k) {
				w.fail("%s was deleted, and nobody asked for it", e)
			}
			if k.deleted {
				w.leftovers(e, false)
			}
			continue
		}
		if !k.status.Ended() && k.status != execution.StatusHalted {
			w.fail("%s is stuck: %s, due %s at %d, handovers %d", e, k.status, k.head.Str(journal.HeadDueKind), k.head.Int(journal.HeadDue), k.head.Int(journal.HeadHandover))
			continue
		}
		get := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: e, MaxInlineBytes: 1 << 20}
		api.Identify(get)
		view, err := s.Checkpoint.Get(ctx, get)
		if err != nil {
			w.fail("get %s: %v", e, err)
			return
		}
		w.settleOne(ctx, p, e, k, view)
	}
	w.verify(p)
}

// verify asks the product itself.
func (w *world) verify(p *process) {
	s, ctx := p.services, context.Background()
	verify := &api.VerifyRequest{Common: api.Common{Tenant: tenant}}
	api.Identify(verify)
	for range 50 {
		found, err := s.Retention.Verify(ctx, verify)
		if err != nil {
			w.fail("verify: %v", err)
			return
		}
		for _, f := range found.Findings {
			if f.Kind != "orphan_object" || w.days { // bodies of writes that lost; the orphan sweep's, a day later
				w.fail("verify finds %s of %s: %s %s", f.Kind, f.Execution, f.Key, f.Detail)
			}
		}
		if found.Cursor == "" {
			return
		}
		verify.Cursor = found.Cursor
	}
}

// audit verifies while everything goes on: what is only under way is no finding.
func (a *actor) audit() {
	req := &api.VerifyRequest{Common: api.Common{Tenant: tenant}}
	for range 20 {
		api.Identify(req)
		r, err := call(a, "verify", func(ctx context.Context, s *wiring.Services) (*api.VerifyReply, error) {
			return s.Retention.Verify(ctx, req)
		})
		if err != nil {
			return
		}
		for _, f := range r.Findings {
			switch f.Kind {
			case "orphan_object", "stuck_deletion", "expired_present", "unreadable": // sweeps come late, keys are away
			default:
				a.w.fail("verify finds %s of %s: %s %s", f.Kind, f.Execution, f.Key, f.Detail)
			}
		}
		if req.Cursor = r.Cursor; req.Cursor == "" {
			return
		}
	}
}

func (w *world) settleOne(ctx context.Context, p *process, e execution.ExecutionID, k *known, view *api.GetReply) {
	j := p.services.Journal
	h, err := j.Open(ctx, tenant, e, journal.OpenOptions{Head: true})
	if err != nil {
		w.fail("open %s: %v", e, err)
		return
	}
	if view.Version != k.tip || h.State.Version != k.tip {
		w.fail("%s stands at %d, get says %d", e, k.tip, view.Version)
	}
	page, err := j.History(ctx, h, 0, false, 10_000)
	if err != nil {
		w.fail("entries of %s: %v", e, err)
		return
	}
	requests := map[string]int64{}
	for _, entry := range page.Entries {
		if id := entry.Body.RequestID; id != "" {
			if at, twice := requests[id]; twice {
				w.fail("request %s of %s is in the journal at %d and %d", id, e, at, entry.Version)
			}
			requests[id] = entry.Version
		}
	}
	if h.Head.Floor <= 1 && len(page.Entries) > 0 {
		fold, err := execution.Fold(&execution.State{Ref: execution.Ref{Tenant: tenant, Execution: e}}, page.Entries...)
		if err != nil {
			w.fail("fold of %s: %v", e, err)
			return
		}
		a, _ := json.Marshal(fold)
		b, _ := json.Marshal(h.State)
		if len(fold.Forgotten) == 0 && !bytes.Equal(a, b) || !jsonx.Equal(fold.Data, h.State.Data) || !jsonx.Equal(view.State, fold.Data) {
			w.fail("the fold of %s is not what the services answer:\n%s\n%s", e, a, b)
		}
		for _, id := range slices.Sorted(maps.Keys(k.acks)) {
			if v := requests[id]; k.acks[id].gen == k.gen && v != k.acks[id].version {
				w.fail("request %s of %s was acknowledged at %d and stands at %d", id, e, k.acks[id].version, v)
			}
		}
	}
	w.settleState(ctx, p, e, k, h)
	w.settleKept(ctx, p, e, k, h)
}

func (w *world) settleState(ctx context.Context, p *process, e execution.ExecutionID, k *known, h *journal.Handle) {
	absorbed := map[string]int{}
	for _, v := range h.State.Data.Get("signals").Elems() {
		s, _ := v.Text()
		absorbed[s]++
	}
	inbox, err := p.services.Ledger.Inbox(ctx, h.State)
	if err != nil {
		w.fail("inbox of %s: %v", e, err)
		return
	}
	open := map[string]bool{}
	for _, it := range inbox.Open {
		open[it.Name+"/"+it.Key] = true
	}
	for _, s := range slices.Sorted(maps.Keys(k.signals)) {
		n := absorbed[string(e)+" "+s]
		if open[s] {
			n++
		}
		if n != 1 && !k.again && h.State.Status != execution.StatusMoved && !(k.program != nil && k.program.carried) {
			w.fail("signal %s of %s was taken in %d times", s, e, n)
		}
	}
	for s, n := range absorbed {
		if n > 1 {
			w.fail("signal %s of %s was taken in %d times", s, e, n)
		}
	}
	if h.State.Status == execution.StatusMoved {
		return
	}
	for _, op := range h.State.OperationsInOrder() {
		w.settleOperation(e, k, op)
	}
	if h.State.Status == execution.StatusCompleted && k.program != nil {
		log := h.State.Data.Get("log").Elems()
		if len(log) != len(k.program.steps) {
			w.fail("%s completed with the steps %v of %d", e, h.State.Data.Get("log"), len(k.program.steps))
		}
		for i, v := range log {
			if s, _ := v.Text(); s != fmt.Sprint("step ", i) {
				w.fail("%s completed with the steps %v", e, h.State.Data.Get("log"))
			}
		}
	}
}

// settleOperation compares what the journal says about an operation with what
// really happened.
func (w *world) settleOperation(e execution.ExecutionID, k *known, op *execution.Operation) {
	if op.Name == child {
		return
	}
	happened := len(w.biz.effects[op.ID])
	switch {
	case op.Outcome == execution.OutcomeSucceeded && happened == 0:
		w.fail("operation %s (%s) of %s succeeded and never happened", op.ID, op.Name, e)
	case (op.Outcome == execution.OutcomeNotExecuted || op.Outcome == execution.OutcomeRejected) && happened > 0 && op.Name != always:
		w.fail("operation %s (%s) of %s is %s and happened", op.ID, op.Name, e, op.Outcome)
	}
	for _, x := range slices.Sorted(maps.Keys(k.outcomes)) {
		id, attempt, _ := strings.Cut(x, "#")
		if execution.OperationID(id) != op.ID || attempt != fmt.Sprint(op.Attempt) || op.Outcome == k.outcomes[x] {
			continue
		}
		if op.Verdict == nil && !slices.ContainsFunc(op.Contradictions, func(c execution.Contradiction) bool { return c.Outcome == k.outcomes[x] }) && op.Final() {
			w.fail("the outcome %s of %s of %s was acknowledged, and the journal says %s", k.outcomes[x], op.ID, e, op.Outcome)
		}
	}
}
