package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/checkpoint"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/wiring"
)

// program is what a worker of an execution does, step by step.
type program struct {
	steps   []progStep
	carried bool // a fork that carries on another one's
	leaf    bool // no children of its own
}

type progStep struct {
	ops   []string // kinds
	after string   // "", suspend, signal, until, continue, release
	async bool     // the last operation is left to a tool while the execution waits
	large bool     // leaves much state behind
	file  bool     // leaves an artifact behind
	spend int64    // of the budget
}

func (w *world) newProgram(leaf bool) *program {
	kinds := []string{plain, expires, windows, samekey, closes, tool, always, fenced, child}
	p := &program{leaf: leaf}
	for range 1 + w.rng.IntN(4) {
		var s progStep
		for range w.rng.IntN(3) {
			if k := kinds[w.rng.IntN(len(kinds))]; k != child || !leaf {
				s.ops = append(s.ops, k)
			}
		}
		s.after = []string{"", "", "", "suspend", "signal", "until", "continue", "release"}[w.rng.IntN(8)]
		s.async = w.rng.IntN(4) == 0
		s.large = w.rng.IntN(12) == 0
		s.file = w.rng.IntN(4) == 0
		s.spend = max(0, int64(w.rng.IntN(8))-3)
		p.steps = append(p.steps, s)
	}
	return p
}

func parse(b []byte) *jsonx.Value {
	v, err := jsonx.Parse(b)
	if err != nil {
		panic(err)
	}
	return v
}

func textOf(v *jsonx.Value, name string) string { s, _ := v.Get(name).Text(); return s }

func intOf(v *jsonx.Value, name string) int64 { n, _ := v.Get(name).IsInt64(); return n }

func (a *actor) common(id string) api.Common {
	return api.Common{Tenant: tenant, RequestID: id, Actor: &api.Actor{Kind: "worker", ID: a.name}}
}

func (a *actor) fresh() string { a.rand++; return fmt.Sprintf("%s.%d", a.name, a.rand) }

// shift is a worker's ownership of an execution.
type shift struct {
	*actor
	e       execution.ExecutionID
	k       *known
	fence   int64
	gen     int64
	version int64
	refused execution.Code    // why the last step was not written
	sent    *api.ApplyRequest // the last one that was
	step    int               // of the program, that comes next
	taken   []string          // signals that are in the state: whose name/key
	view    api.View
}

// work takes an execution over and goes on with it until it ends, waits, is lost
// or the worker dies.
func (a *actor) work(e execution.ExecutionID, expected int64) {
	a.execution = e
	k := a.w.truth.of(e)
	req := &api.ResumeRequest{Common: a.common(""), Claiming: api.Claiming{Execution: e, Owner: a.name, LeaseSeconds: 30, Nonce: a.fresh(), ExpectedVersion: expected, MaxInlineBytes: 1 << 20}}
	api.Identify(req)
	r, err := retry(a, "resume "+short(e), func(ctx context.Context, s *wiring.Services) (*api.ResumeReply, error) {
		return s.Recovery.Resume(ctx, req)
	})
	if err != nil || r.Parked || r.Status != execution.StatusRunning {
		return
	}
	s := &shift{actor: a, e: e, k: k, fence: r.Fence, gen: r.Generation}
	s.load(r.Version, r.State, r.View)
	if r.Replayed && r.Tip != nil {
		s.version = r.Tip.Version
	}
	for range 30 {
		if !s.turn() {
			return
		}
	}
}

// apply writes one step; false: the shift is over.
func (s *shift) apply(req *api.ApplyRequest) (*api.ApplyReply, bool) {
	req.Common = s.common(s.fresh())
	req.Execution, req.ExpectedVersion, req.Fence = s.e, s.version, s.fence
	api.Identify(req)
	r, err := retry(s.actor, "apply "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.ApplyReply, error) {
		return v.Checkpoint.Apply(ctx, req)
	})
	if s.refused = execution.CodeOf(err); err != nil {
		if (s.refused == execution.LeaseLost || s.refused == execution.VersionConflict) && s.rng.IntN(2) == 0 {
			s.zombie()
		}
		return nil, false
	}
	if s.sent != nil && req.Then == nil && s.rng.IntN(16) == 0 {
		s.version = r.Version
		s.again()
	}
	s.sent = req
	s.k.acks[req.RequestID] = ack{r.Version, s.gen}
	s.version = r.Version
	if r.Replayed && r.Tip != nil {
		s.version = r.Tip.Version
	}
	return r, req.Then == nil
}

func patch(ops ...string) *jsonx.Value { return parse([]byte("[" + strings.Join(ops, ",") + "]")) }

// reload reads the view again, if the execution is still this shift's.
func (s *shift) reload() bool {
	req := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: s.e, MaxInlineBytes: 1 << 20}
	api.Identify(req)
	r, err := retry(s.actor, "get "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.GetReply, error) {
		return v.Checkpoint.Get(ctx, req)
	})
	if err != nil || r.Fence != s.fence || r.Generation != s.gen || r.Status != execution.StatusRunning {
		return false
	}
	s.load(r.Version, r.State, r.View)
	return true
}

func (s *shift) load(version int64, state *jsonx.Value, view api.View) {
	s.version, s.step, s.view, s.taken = version, int(intOf(state, "step")), view, nil
	for _, v := range state.Get("signals").Elems() {
		text, _ := v.Text()
		s.taken = append(s.taken, text)
	}
}

// turn does one step of the program; false: the shift is over.
func (s *shift) turn() bool {
	n := s.step
	if s.k.program == nil || n > len(s.k.program.steps) {
		s.w.fail("%s stands at step %d", s.e, n)
		return false
	}
	if n == len(s.k.program.steps) {
		return s.end()
	}
	st := s.k.program.steps[n]
	s.k.begun = max(s.k.begun, n)
	if s.rng.IntN(12) == 0 {
		s.greedy()
	}
	reports, open, ok := s.perform(n, st)
	if !ok {
		return false
	}
	if len(open) > 0 {
		// What stays open is waited for; whoever comes next declares it again.
		then := &api.Then{Suspend: &api.Wait{Operations: open}}
		_, on := s.apply(&api.ApplyRequest{Changes: api.Changes{Outcomes: reports}, Then: then})
		return on
	}
	return s.finish(n, st, reports)
}

// declaration of the i-th operation of step n.
func declaration(n, i int, kind string) api.OperationDeclaration {
	on, dedup, valid := declared(kind)
	return api.OperationDeclaration{Name: kind, Key: fmt.Sprintf("s%d-%d", n, i), Args: jsonx.NewInt(int64(i)), OnUncertain: on, DedupSeconds: dedup, ValidSeconds: valid}
}

// perform declares the step's operations and carries them out until all are
// settled; open are those that stay uncertain or were left to somebody else.
func (s *shift) perform(n int, st progStep) (reports []api.OutcomeReport, open []execution.OperationID, ok bool) {
	var left []api.OperationDeclaration
	for i, kind := range st.ops {
		left = append(left, declaration(n, i, kind))
	}
	for round := 0; len(left) > 0 && round < 4; round++ {
		r, ok := s.apply(&api.ApplyRequest{Changes: api.Changes{Operations: left, Outcomes: reports}})
		if !ok {
			return nil, nil, false
		}
		reports, open = nil, nil
		asked := left
		left = nil
		uncertain := false
		for i, op := range r.Operations {
			if op.Disposition == api.Settled {
				if op.Outcome == execution.OutcomeRejected || op.Outcome == execution.OutcomeNotExecuted {
					left = append(left, asked[i])
				}
				continue
			}
			if op.Disposition == api.Uncertain {
				uncertain = true
				left, open = append(left, asked[i]), append(open, op.Operation)
				continue
			}
			out, heard := s.attempt(op, asked[i], st.async && i == len(r.Operations)-1)
			switch {
			case out == "lost":
				return nil, nil, false
			case !heard:
				open, left, uncertain = append(open, op.Operation), append(left, asked[i]), true
			case out != "":
				reports = append(reports, api.OutcomeReport{Operation: op.Operation, Attempt: op.Attempt, Outcome: out})
				if out == execution.OutcomeRejected {
					left = append(left, asked[i])
				}
			}
		}
		if len(open) > 0 && s.rng.IntN(3) == 0 {
			return reports, open, true
		}
		if uncertain && !s.reconcile() {
			return nil, nil, false
		}
	}
	return reports, open, true
}

// reconcile asks the ledger and the resolvers as the owner.
func (s *shift) reconcile() bool {
	req := &api.ReconcileRequest{Common: s.common(s.fresh()), Execution: s.e, Fence: s.fence}
	api.Identify(req)
	_, err := retry(s.actor, "reconcile "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.ReconcileReply, error) {
		return v.Recovery.Reconcile(ctx, req)
	})
	return err == nil && s.reload()
}

// attempt carries out one operation that the worker was told to.
func (s *shift) attempt(op api.OperationReply, d api.OperationDeclaration, async bool) (out execution.Outcome, heard bool) {
	w := s.w
	w.truth.kinds[op.Operation] = d.Name
	m := &message{kind: d.Name, execution: s.e, operation: op.Operation, attempt: op.Attempt, key: op.ProviderKey, fence: s.fence, expiry: op.SendBy.Millis(), callback: op.Callback}
	sendBy := op.SendBy.Millis()
	switch d.Name {
	case child:
		return "", s.begetChild(op)
	case tool:
		w.truth.tools[op.Operation] = true
		return s.tool(op)
	case closes:
		req := &api.StartOperationRequest{Common: s.common(""), Execution: s.e, Operation: op.Operation, Attempt: op.Attempt, Fence: s.fence, Nonce: s.fresh()}
		api.Identify(req)
		r, err := retry(s.actor, "start "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.StartOperationReply, error) {
			return v.Ledger.StartOperation(ctx, req)
		})
		if err != nil || r.Disposition != api.Go {
			return "", false
		}
		sendBy = r.SendBy.Millis()
	}
	if async {
		w.spawn("tool", func(a *actor) {
			out, heard := a.send(m, sendBy)
			if heard && out != "" {
				a.record(m, out)
			}
		}).execution = s.e // also before it begins: nobody may say yet that nothing will happen (mayStill)
		return "", false
	}
	out, heard = s.send(m, sendBy)
	if !heard || out == "" {
		if s.rng.IntN(3) == 0 && s.record(m, execution.OutcomeUnknown) {
			return "", false
		}
		return "", false
	}
	if s.rng.IntN(2) == 0 {
		s.record(m, out)
	}
	return out, true
}

// send puts a request into the network and waits for an answer, unless it is too
// late to begin.
func (a *actor) send(m *message, sendBy int64) (execution.Outcome, bool) {
	now := a.w.engine.Now()
	if sendBy > 0 && now.UnixMilli() >= sendBy {
		return "", false
	}
	m.deadline = now.Add(execution.NetworkDelay)
	if !a.w.healing && a.w.Intensity > 0 && a.rng.IntN(3) == 0 {
		m.ready = now.Add(time.Duration(a.rng.IntN(290)) * time.Second)
	}
	a.park("send", m.kind+" "+string(m.operation), false)
	a.w.biz.flights = append(a.w.biz.flights, m)
	for range 3 {
		if a.park("await", m.kind, false); m.arrived {
			return m.outcome, a.rng.IntN(8) > 0 || a.w.healing
		}
	}
	if a.w.healing {
		a.w.biz.deliver(len(a.w.biz.flights) - 1)
		return m.outcome, m.arrived
	}
	return "", false
}

// record delivers evidence, by the callback or by name.
func (a *actor) record(m *message, out execution.Outcome) bool {
	req := &api.RecordOutcomeRequest{Common: api.Common{Tenant: tenant, Actor: &api.Actor{Kind: "tool", ID: a.name}}, Outcome: out}
	if out == execution.OutcomeSucceeded && a.rng.IntN(8) == 0 {
		req.Result = jsonx.NewString(strings.Repeat(m.key, 600)) // too large for a slot
	}
	if m.callback != "" && a.rng.IntN(2) == 0 {
		req.Callback = m.callback
	} else {
		req.Execution, req.Operation, req.Attempt = m.execution, m.operation, m.attempt
	}
	api.Identify(req)
	r, err := retry(a, "record "+short(m.execution), func(ctx context.Context, v *wiring.Services) (*api.RecordOutcomeReply, error) {
		return v.Ledger.RecordOutcome(ctx, req)
	})
	if err == nil && r.Recorded && out.Final() && r.Execution == m.execution {
		a.w.truth.of(m.execution).outcomes[fmt.Sprintf("%s#%d", m.operation, m.attempt)] = out
	}
	return err == nil
}

// tool commits effect and evidence in one transaction, as a business tool does.
func (s *shift) tool(op api.OperationReply) (execution.Outcome, bool) {
	_, err := retry(s.actor, "tool "+short(s.e), func(ctx context.Context, v *wiring.Services) (bool, error) {
		head, clock, err := v.Journal.LiveHead(ctx, tenant, s.e)
		if err != nil {
			return false, err
		}
		if head.Generation != s.gen { // the execution was deleted since, and is another one now
			return false, execution.Errorf(execution.LeaseLost, "another generation")
		}
		now := v.Journal.NowOf(clock)
		slot := &journal.Slot{Operation: op.Operation, Attempt: op.Attempt, Generation: head.Generation, Outcome: execution.OutcomeSucceeded, At: now}
		_, filled, err := v.Journal.FillSlot(ctx, head.Ref, slot, journal.FillOptions{ValidatedAt: time.UnixMilli(now)})
		return filled, err
	})
	if err != nil {
		return "", false
	}
	return "", false // the outcome is taken from the ledger
}

// begetChild makes the execution that is the operation's effect.
func (s *shift) begetChild(op api.OperationReply) bool {
	req := &api.CreateRequest{Common: s.common(s.fresh()), Workflow: "child", Parent: &api.ParentRef{Execution: s.e, Operation: op.Operation}, State: parse([]byte(`{"step":0,"log":[],"signals":[]}`))}
	api.Identify(req)
	id := checkpoint.ChildID(execution.Ref{Tenant: tenant, Execution: s.e, Generation: s.gen}, &execution.Operation{ID: op.Operation, Attempt: op.Attempt})
	s.w.truth.children[op.Operation] = append(s.w.truth.children[op.Operation], id)
	if k := s.w.truth.of(id); k.program == nil {
		k.parent = s.e
		k.program = &program{leaf: true, steps: []progStep{{ops: []string{plain}[:s.rng.IntN(2)]}}}
	}
	r, err := retry(s.actor, "child of "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.CreateReply, error) {
		return v.Checkpoint.Create(ctx, req)
	})
	if err == nil {
		k := s.w.truth.of(r.Execution)
		k.born, k.under = r.Generation, s.gen
		s.w.queue = append(s.w.queue, start{r.Execution, 0})
	}
	return false
}

// absorb names what lies in the inbox, as far as this shift saw it, and how the
// state remembers it.
func (s *shift) absorb() (refs []api.SignalRef, ops []string) {
	for _, it := range s.view.Inbox {
		text := fmt.Sprintf("%s %s/%s", s.e, it.Name, it.Key)
		if slices.Contains(s.taken, text) {
			continue
		}
		refs = append(refs, api.SignalRef{Name: it.Name, Key: it.Key})
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/signals/-","value":%q}`, text))
		s.taken = append(s.taken, text)
	}
	return refs, ops
}

// finish writes the step as done. Some read again before they do.
func (s *shift) finish(n int, st progStep, reports []api.OutcomeReport) bool {
	if s.rng.IntN(4) == 0 && !s.reload() {
		return false
	}
	refs, ops := s.absorb()
	ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/log/-","value":"step %d"}`, n), fmt.Sprintf(`{"op":"replace","path":"/step","value":%d}`, n+1))
	if st.large {
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/fill%d","value":%q}`, n, s.filling()))
	}
	req := &api.ApplyRequest{Changes: api.Changes{Absorb: refs, Patch: patch(ops...), Outcomes: reports}}
	switch st.after {
	case "suspend", "until":
		until := api.Time(s.w.engine.Now().Add(time.Duration(10+s.rng.IntN(600)) * time.Second).UnixMilli())
		req.Then = &api.Then{Suspend: &api.Wait{Until: &until}}
	case "signal":
		req.Then = &api.Then{Suspend: &api.Wait{Signals: []string{fmt.Sprint("sig", n)}}}
		if s.rng.IntN(3) == 0 {
			req.Then.Suspend.Wake = &api.Wake{TaskToken: s.fresh()}
		}
	case "continue":
		req.Then = &api.Then{Continue: &api.Continue{AfterSeconds: int64(s.rng.IntN(60))}}
	}
	if st.file {
		req.Artifacts = s.stage(n)
	}
	if !s.spending(req, st.spend) {
		return s.refused == execution.VersionConflict && s.reload() // somebody wrote meanwhile
	}
	if st.after == "release" {
		req := &api.ReleaseRequest{Common: s.common(s.fresh()), Execution: s.e, Owner: s.name, Fence: s.fence}
		api.Identify(req)
		_, _ = retry(s.actor, "release "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.ReleaseReply, error) {
			return v.Recovery.Release(ctx, req)
		})
		return false
	}
	if s.rng.IntN(4) == 0 {
		req := &api.RenewRequest{Common: s.common(""), Execution: s.e, Owner: s.name, Fence: s.fence, LeaseSeconds: 30}
		api.Identify(req)
		if _, err := retry(s.actor, "renew "+short(s.e), func(ctx context.Context, v *wiring.Services) (*api.RenewReply, error) {
			return v.Recovery.Renew(ctx, req)
		}); err != nil {
			return false
		}
	}
	s.step = n + 1
	return true
}

// filling does not compress.
func (s *shift) filling() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	b := make([]byte, 2000+s.rng.IntN(60_000))
	for i := range b {
		b[i] = letters[s.rng.IntN(64)]
	}
	return string(b)
}

// end completes the execution, or finds out what is still open.
func (s *shift) end() bool {
	if !s.reload() {
		return false
	}
	var open []execution.OperationID
	for _, op := range s.view.Operations {
		if !op.Outcome.Final() || op.Status == "needs_review" {
			open = append(open, op.Operation)
		}
	}
	if len(open) > 0 {
		if !s.reconcile() {
			return false
		}
		_, on := s.apply(&api.ApplyRequest{Then: &api.Then{Suspend: &api.Wait{Operations: open}}})
		return on
	}
	refs, ops := s.absorb()
	req := &api.ApplyRequest{Changes: api.Changes{Absorb: refs}, Then: &api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted}}}
	if len(ops) > 0 {
		req.Patch = patch(ops...)
	}
	_, on := s.apply(req)
	return on
}
