package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/wiring"
)

// begin makes the workflows and asks for the first executions.
func (w *world) begin() {
	w.spawn("deployer", func(a *actor) {
		a.deploy("main", 1)
		a.deploy("child", 1)
		a.policies()
	})
	w.drain()
	for range w.Executions {
		w.create()
	}
}

func (a *actor) deploy(name string, version int64) {
	wf := api.Workflow{Name: name, Schema: &api.Schema{Name: name, Version: version}, ResumeTarget: &api.ResumeTarget{Kind: "sandbox", ARN: "worker"}, Resolvers: map[string]api.Resolver{}, MaxRecoveries: 1000}
	for _, kind := range []string{plain, expires, windows, samekey, closes, always, fenced} {
		wf.Resolvers[kind] = api.Resolver{Kind: "sandbox", Target: kind}
	}
	for v := int64(1); v < version; v++ {
		wf.Migrations = append(wf.Migrations, api.Migration{From: v, To: v + 1, Patch: patch(fmt.Sprintf(`{"op":"add","path":"/schema","value":%d}`, v+1))})
	}
	req := &api.SetWorkflowRequest{Common: a.common(a.fresh()), Workflow: wf}
	api.Identify(req)
	_, _ = retry(a, "set_workflow", func(ctx context.Context, s *wiring.Services) (*api.SetWorkflowReply, error) {
		return s.Checkpoint.SetWorkflow(ctx, req)
	})
}

func (w *world) create() {
	e := execution.ExecutionID(fmt.Sprint("e", len(w.truth.order)+1))
	k := w.truth.of(e)
	k.program = w.newProgram(false)
	k.policy = []string{"", "short", "keep"}[w.rng.IntN(3)]
	k.expires = k.policy == "short"
	k.budget = true
	if w.rng.IntN(2) == 0 {
		k.subject = fmt.Sprint("s", w.rng.IntN(2))
	}
	if w.rng.IntN(2) == 0 {
		k.label = fmt.Sprint("c", w.rng.IntN(2))
	}
	w.spawn("creator", func(a *actor) { a.create(e, k.policy, "") })
}

func (a *actor) create(e execution.ExecutionID, policy, reuse string) {
	id, k := "create "+string(e), a.w.truth.of(e)
	if reuse != "" {
		id = a.fresh()
	}
	req := &api.CreateRequest{Common: a.common(id), Reuse: reuse, Execution: e, Workflow: "main", Thread: "t", Policy: policy, State: parse([]byte(`{"step":0,"log":[],"signals":[]}`))}
	if k.budget {
		req.Budgets = map[string]api.BudgetLimit{"b": {Limit: budgetLimit}}
	}
	if k.subject != "" {
		req.Subjects = []string{k.subject}
	}
	if k.label != "" {
		req.Labels = map[string]string{"case": k.label}
	}
	api.Identify(req)
	r, err := retry(a, "create "+short(e), func(ctx context.Context, s *wiring.Services) (*api.CreateReply, error) {
		return s.Checkpoint.Create(ctx, req)
	})
	if err != nil {
		return
	}
	k.acks[req.RequestID] = ack{r.Version, r.Generation}
	k.made, k.born = r.Generation, r.Generation
	a.w.queue = append(a.w.queue, start{e, 0})
}

// happen is something that comes from outside: time, records, sweeps, people.
// When nobody has anything to do it is mostly time.
func (w *world) happen(idle bool) {
	any := w.truth.order[w.rng.IntN(len(w.truth.order))]
	if w.biz.deaf && w.rng.IntN(40) == 0 {
		w.biz.deaf = false
		w.note("the providers answer again")
	}
	if w.keyOutage && w.rng.IntN(8) == 0 {
		w.keyOutage = false
		w.note("the keys are back")
	}
	n, most := w.rng.IntN(200), 15
	if idle && w.rng.IntN(2) == 0 {
		n, most = 0, 60
	}
	switch {
	case n < 80:
		d := time.Duration(w.rng.IntN(most*1000)) * time.Millisecond
		if w.rng.IntN(25) == 0 {
			d = time.Duration(w.rng.IntN(40)) * time.Minute
		}
		if w.slow && w.rng.IntN(12) == 0 {
			d = time.Duration(5+w.rng.IntN(60)) * time.Hour
			if w.rng.IntN(2) == 0 { // and retention is the first to look
				w.sweep("retention")
			}
		}
		w.advance(d)
	case n < 142:
		w.takeUp()
	case n < 163:
		w.deliverRecords()
	case n < 168:
		w.sweep("recover")
	case n < 170:
		w.sweep("retention")
	case n < 176:
		w.signal(any, fmt.Sprint("sig", w.rng.IntN(3)), fmt.Sprint("k", w.rng.IntN(2)))
	case n < 179:
		w.spawn("poacher", func(a *actor) { a.work(any, 0) }) // a worker that nobody sent
	case n < 184:
		w.operate(any)
	case n < 186 && !w.Without["key"] && w.Intensity > 0:
		w.keyOutage = true
		w.tally["fault key_outage"]++
		w.note("the keys are away")
	case n < 188 && w.deploys < 2:
		w.deploys++
		v := int64(1 + w.deploys)
		w.spawn("deployer", func(a *actor) { a.deploy("main", v) })
	case n < 190 && len(w.truth.order) < 8:
		w.fork(any)
	case n < 191:
		w.spawn("reader", func(a *actor) { a.read(any) })
	case n < 193:
		w.spawn("reader", func(a *actor) { a.fetch(any) })
	case n < 195:
		w.spawn("operator", func(a *actor) { a.keep() })
	case n < 196:
		w.spawn("auditor", func(a *actor) { a.audit() })
	case n < 198 && !w.Without["deaf"] && w.Intensity > 0:
		w.biz.deaf = true
		w.tally["fault deaf"]++
		w.note("the providers answer no questions")
	}
}

// takeUp starts a worker for a hand-over; the start may come twice.
func (w *world) takeUp() {
	if len(w.queue) == 0 {
		return
	}
	i := w.rng.IntN(len(w.queue))
	s := w.queue[i]
	if w.healing || w.rng.IntN(10) > 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	if !w.healing && w.rng.IntN(20) == 0 {
		return // it dies before it does anything
	}
	w.spawn("worker", func(a *actor) { a.work(s.execution, s.version) })
}

// deliverRecords hands a batch to the functions: in any order, perhaps again,
// perhaps never.
func (w *world) deliverRecords() {
	if len(w.records) == 0 {
		return
	}
	n := min(len(w.records), 1+w.rng.IntN(6))
	at := w.rng.IntN(len(w.records) - n + 1)
	if w.healing {
		at = 0
	}
	batch := slices.Clone(w.records[at : at+n])
	switch lot := w.rng.IntN(10); {
	case w.healing || lot < 7:
		w.records = slices.Delete(w.records, at, at+n)
	case lot < 8: // lost
		w.records = slices.Delete(w.records, at, at+n)
		return
	}
	records := make([]json.RawMessage, len(batch))
	for i, r := range batch {
		records[i] = r.Event()
	}
	w.spawn("stream", func(a *actor) {
		_, _ = call(a, "stream", func(ctx context.Context, s *wiring.Services) (bool, error) {
			s.Recovery.Stream(ctx, records)
			return true, nil
		})
		if a.rng.IntN(3) == 0 {
			_, _ = call(a, "stream of retention", func(ctx context.Context, s *wiring.Services) (bool, error) {
				s.Retention.Stream(ctx, records)
				return true, nil
			})
		}
	})
}

func (w *world) sweep(function string) {
	w.spawn("sweep-"+function, func(a *actor) {
		req := &api.SweepRequest{Common: api.Common{Tenant: tenant}}
		api.Identify(req)
		_, _ = call(a, function+" sweep", func(ctx context.Context, s *wiring.Services) (*api.SweepReply, error) {
			if function == "recover" {
				return s.Recovery.Sweep(ctx, req)
			}
			return s.Retention.Sweep(ctx, req)
		})
	})
}

func (w *world) signal(e execution.ExecutionID, name, key string) {
	w.spawn("customer", func(a *actor) {
		req := &api.SignalRequest{Common: api.Common{Tenant: tenant, Actor: &api.Actor{Kind: "human", ID: "c"}}, Execution: e, Name: name, Key: key, Body: jsonx1}
		api.Identify(req)
		_, err := retry(a, "signal "+short(e), func(ctx context.Context, s *wiring.Services) (*api.SignalReply, error) {
			return s.Ledger.Signal(ctx, req)
		})
		if err == nil {
			w.truth.of(e).signals[name+"/"+key] = true
		}
	})
}

var jsonx1 = parse([]byte(`{"n":1}`))

// operate is what people do.
func (w *world) operate(e execution.ExecutionID) {
	k := w.truth.of(e)
	what := w.rng.IntN(11)
	hold := fmt.Sprint("h", w.rng.IntN(2))
	if what == 4 && w.rng.IntN(2) == 0 { // somebody else wants to keep it
		on, id := api.Selector{Execution: e}, hold
		if w.rng.IntN(2) == 0 {
			on, id = api.Selector{Thread: "t"}, "ht"
		}
		w.spawn("operator", func(a *actor) { a.hold(on, id) })
	}
	w.spawn("operator", func(a *actor) {
		switch what {
		case 0:
			req := &api.HaltRequest{Common: a.common(a.fresh()), Execution: e, Reason: "look"}
			api.Identify(req)
			_, _ = retry(a, "halt "+short(e), func(ctx context.Context, s *wiring.Services) (*api.HaltReply, error) {
				return s.Recovery.Halt(ctx, req)
			})
		case 1:
			a.unhalt(e)
		case 2:
			a.hold(api.Selector{Execution: e}, hold)
		case 3:
			a.release(e, hold)
		case 4:
			k.asked = true
			req := &api.DeleteRequest{Common: a.common(a.fresh()), Selector: api.Selector{Execution: e}, Reason: "asked"}
			api.Identify(req)
			_, _ = retry(a, "delete "+short(e), func(ctx context.Context, s *wiring.Services) (*api.DeleteReply, error) {
				return s.Retention.Delete(ctx, req)
			})
		case 5:
			a.verdicts(e)
		case 6:
			req := &api.ArchiveRequest{Common: a.common(a.fresh()), Execution: e}
			api.Identify(req)
			_, _ = retry(a, "archive "+short(e), func(ctx context.Context, s *wiring.Services) (*api.ArchiveReply, error) {
				return s.Retention.Archive(ctx, req)
			})
		case 7:
			req := &api.RestoreRequest{Common: a.common(a.fresh()), Execution: e}
			api.Identify(req)
			_, _ = retry(a, "restore "+short(e), func(ctx context.Context, s *wiring.Services) (*api.RestoreReply, error) {
				return s.Retention.Restore(ctx, req)
			})
		case 8:
			a.hold(api.Selector{Thread: "t"}, "ht")
		case 9:
			a.releaseThread()
		case 10:
			if k.program != nil && !k.program.leaf && !k.program.carried && k.deleted {
				a.create(e, k.policy, "new_generation")
			}
		}
	})
}

func (a *actor) hold(on api.Selector, hold string) {
	req := &api.HoldRequest{Common: a.common(a.fresh()), Selector: on, Hold: hold, Reason: "case"}
	api.Identify(req)
	_, _ = retry(a, "hold", func(ctx context.Context, s *wiring.Services) (*api.HoldReply, error) {
		return s.Retention.Hold(ctx, req)
	})
}

func (a *actor) release(e execution.ExecutionID, hold string) {
	req := &api.ReleaseHoldRequest{Common: a.common(a.fresh()), Selector: api.Selector{Execution: e}, Hold: hold, Reason: "closed"}
	api.Identify(req)
	_, _ = retry(a, "release_hold "+short(e), func(ctx context.Context, s *wiring.Services) (*api.ReleaseHoldReply, error) {
		return s.Retention.ReleaseHold(ctx, req)
	})
}

func (a *actor) releaseThread() {
	req := &api.ReleaseHoldRequest{Common: a.common(a.fresh()), Selector: api.Selector{Thread: "t"}, Hold: "ht", Reason: "closed"}
	api.Identify(req)
	_, _ = retry(a, "release_hold thread", func(ctx context.Context, s *wiring.Services) (*api.ReleaseHoldReply, error) {
		return s.Retention.ReleaseHold(ctx, req)
	})
}

func (a *actor) unhalt(e execution.ExecutionID) {
	v := a.view(e)
	if v == nil || v.Status != execution.StatusHalted {
		return
	}
	req := &api.UnhaltRequest{Common: a.common(a.fresh()), Execution: e, Reason: "fine", ExpectedVersion: v.Version}
	api.Identify(req)
	_, _ = retry(a, "unhalt "+short(e), func(ctx context.Context, s *wiring.Services) (*api.UnhaltReply, error) {
		return s.Recovery.Unhalt(ctx, req)
	})
}

func (a *actor) view(e execution.ExecutionID) *api.GetReply {
	req := &api.GetRequest{Common: api.Common{Tenant: tenant}, Execution: e, MaxInlineBytes: 1 << 20}
	api.Identify(req)
	v, err := retry(a, "get "+short(e), func(ctx context.Context, s *wiring.Services) (*api.GetReply, error) {
		return s.Checkpoint.Get(ctx, req)
	})
	if err != nil {
		return nil
	}
	return v
}

// read checks that what was acknowledged is found.
func (a *actor) read(e execution.ExecutionID) {
	k := a.w.truth.of(e)
	var newest int64
	gen := k.gen
	for _, v := range k.acks {
		if v.gen == gen {
			newest = max(newest, v.version)
		}
	}
	if v := a.view(e); v != nil && v.Version < newest && v.Generation == gen {
		a.w.fail("get of %s answers version %d after %d was acknowledged", e, v.Version, newest)
	}
	req := &api.HistoryRequest{Common: api.Common{Tenant: tenant}, Execution: e}
	api.Identify(req)
	_, _ = retry(a, "history "+short(e), func(ctx context.Context, s *wiring.Services) (*api.HistoryReply, error) {
		return s.Checkpoint.History(ctx, req)
	})
}

// verdicts decide, truthfully, about what nobody else can know any more.
func (a *actor) verdicts(e execution.ExecutionID) {
	v := a.view(e)
	if v == nil || v.Status != execution.StatusParked && v.Status != execution.StatusWaiting {
		return
	}
	for _, op := range v.Operations {
		if op.Outcome.Final() && op.Status != "needs_review" {
			continue
		}
		out := execution.OutcomeNotExecuted
		if happened := a.w.biz.effects[op.Operation]; len(happened) > 0 {
			out = happened[len(happened)-1].outcome
		} else if a.w.biz.mayStill(op.Operation, e) {
			continue
		} else if op.Name == child && a.w.truth.begun[op.Operation] {
			if out = a.w.truth.childEnded(op.Operation); out == "" {
				continue // the child says how it ended
			}
		}
		req := &api.ReconcileRequest{Common: a.common(a.fresh()), Execution: e, Evidence: []api.Evidence{{Operation: op.Operation, Attempt: op.Attempt, Finding: execution.Decided, Outcome: out, Reason: "looked", Force: true}}}
		api.Identify(req)
		_, _ = retry(a, fmt.Sprintf("verdict %s %s/%.6s", out, short(e), op.Operation), func(ctx context.Context, s *wiring.Services) (*api.ReconcileReply, error) {
			return s.Recovery.Reconcile(ctx, req)
		})
	}
}

// fork makes an execution of another; with carry it takes its right to act.
func (w *world) fork(e execution.ExecutionID) {
	k := w.truth.of(e)
	carry := w.rng.IntN(2) == 0
	if k.program == nil || k.program.leaf && !carry || k.deleted || k.tip == 0 {
		return
	}
	at := 1 + w.rng.Int64N(k.tip)
	to := execution.ExecutionID(fmt.Sprint("e", len(w.truth.order)+1))
	child := w.truth.of(to)
	child.program = &program{steps: k.program.steps, carried: carry, leaf: k.program.leaf}
	for op, made := range w.truth.children {
		if slices.Contains(made, e) { // an effect that is carried on is one still
			w.truth.children[op] = append(made, to)
		}
	}
	child.begun, child.policy, child.expires, child.subject, child.label, child.parent = k.begun, k.policy, k.expires, k.subject, k.label, e
	w.spawn("forker", func(a *actor) {
		under := k.gen
		req := &api.ForkRequest{Common: a.common(a.fresh()), Execution: e, AtVersion: at, NewExecution: to}
		if carry {
			req.Operations = "carry"
		}
		api.Identify(req)
		r, err := retry(a, "fork "+short(e), func(ctx context.Context, s *wiring.Services) (*api.ForkReply, error) {
			return s.Checkpoint.Fork(ctx, req)
		})
		if err == nil {
			child.born = r.Generation
			if k.gen == under {
				child.under = under
			}
			w.queue = append(w.queue, start{r.Execution, 0})
		}
	})
}
