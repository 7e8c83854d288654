package simulation

import (
	"context"
	crand "crypto/rand"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

var operationsFlag = flag.Int("operations", 6_000, "calls in the concurrent histories of TestLinearizable")

// deed is a call as the models see it, and answer what came back.
type deed struct {
	on      string // the history that it belongs to: one execution's journal, slot or holds
	what    string
	version int64
	fence   int64
	name    string // owner, nonce, outcome, hold
}

type answer struct {
	code    execution.Code // "": done; Unavailable: nobody knows
	version int64
	fence   int64
	name    string
	set     string
	is      bool
}

// stands is a journal as a sequential system.
type stands struct {
	version, fence int64
	owner          string
}

// journalStep: an entry is written at the expected version by the current
// fence, a claim moves the fence, a read shows the newest.
func journalStep(s stands, in deed) (stands, func(answer) bool) {
	refused := func(c execution.Code) (stands, func(answer) bool) {
		return s, func(out answer) bool { return out.code == c }
	}
	next := s
	switch in.what {
	case "apply":
		switch {
		case in.fence != s.fence || s.owner == "":
			return refused(execution.LeaseLost)
		case in.version != s.version:
			return refused(execution.VersionConflict)
		}
		next.version++
		return next, func(out answer) bool { return out.code == "" && out.version == next.version }
	case "claim", "force":
		if s.owner != "" && in.what == "claim" {
			return refused(execution.LeaseHeld)
		}
		next = stands{version: s.version + 1, fence: s.version + 1, owner: in.name}
		return next, func(out answer) bool {
			return out.code == "" && out.version == next.version && out.fence == next.fence
		}
	case "release":
		if in.fence != s.fence || s.owner == "" {
			return refused(execution.LeaseLost)
		}
		next.version, next.owner = s.version+1, ""
		return next, func(out answer) bool { return out.code == "" && out.version == next.version }
	case "renew":
		if in.fence != s.fence || in.name != s.owner {
			return refused(execution.LeaseLost)
		}
		return s, func(out answer) bool { return out.code == "" }
	}
	return s, func(out answer) bool {
		return out.code == "" && out.version == s.version && out.fence == s.fence && out.name == s.owner
	}
}

// slot is an attempt's place in the ledger as a sequential system.
type slot struct{ nonce, outcome string }

// slotStep: one nonce starts it, the first outcome stands.
func slotStep(s slot, in deed) (slot, func(answer) bool) {
	switch in.what {
	case "start":
		switch {
		case s.outcome != "":
			return s, func(out answer) bool { return out.code == execution.LeaseLost }
		case s.nonce != "" && s.nonce != in.name:
			return s, func(out answer) bool { return out.code == execution.OperationMismatch }
		}
		return slot{in.name, ""}, func(out answer) bool { return out.code == "" }
	case "record":
		if s.outcome == "" {
			return slot{s.nonce, in.name}, func(out answer) bool { return out.code == "" && out.is && out.name == in.name }
		}
		return s, func(out answer) bool { return out.code == "" && !out.is && out.name == s.outcome }
	}
	return s, func(out answer) bool { return out.code == "" && out.name == s.outcome }
}

// holdsStep: a set of two holds ("a", "b", "ab"), and a deletion that only an
// empty one lets through.
func holdsStep(s string, in deed) (string, func(answer) bool) {
	done := func(out answer) bool { return out.code == "" }
	without := strings.ReplaceAll(s, in.name, "")
	switch {
	case s == "deleted":
		return s, func(out answer) bool { return out.code == execution.Deleted || in.what == "delete" && out.code == "" }
	case in.what == "hold":
		both := []string{without, in.name}
		slices.Sort(both)
		return strings.Join(both, ""), done
	case in.what == "release":
		return without, done
	case in.what == "delete" && s != "":
		return s, func(out answer) bool { return out.code == execution.Held }
	case in.what == "delete":
		return "deleted", done
	}
	return s, func(out answer) bool { return out.code == "" && out.set == s }
}

// unknown: nobody knows whether the call was made; it may still be. It takes
// effect at any time after it began, at the latest when everything else is over.
const unknown execution.Code = "unknown"

// perhaps: the same, but the call is over: an earlier try inside it may have
// been made before a later one met the deletion.
const perhaps execution.Code = "perhaps"

// model makes a porcupine model of a step.
func model[S comparable](first S, step func(S, deed) (S, func(answer) bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			next, fits := step(state.(S), input.(deed))
			out := output.(answer)
			return out.code == unknown || out.code == perhaps || fits(out), next
		},
	}
}

// history is recorded by real goroutines.
type history struct {
	mu    sync.Mutex
	clock func() time.Duration
	by    map[string][]porcupine.Operation
}

func (h *history) do(client int, in deed, f func() answer) {
	call := h.clock()
	out := f()
	back := h.clock()
	if out.code == unknown {
		back = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[in.on] = append(h.by[in.on], porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(back)})
}

// lossy loses some answers of calls that were made.
type lossy struct {
	store.Table
	every int64
	n     *atomic.Int64
}

func (l lossy) lose(m store.Meta, err error, write bool) (store.Meta, error) {
	if err == nil && l.every > 0 && l.n.Add(1)%l.every == 0 {
		return store.Meta{}, &store.Error{Kind: store.Unavailable, Ambiguous: write, Code: "RequestTimeout"}
	}
	return m, err
}

func (l lossy) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	m, err := l.Table.Put(ctx, in)
	return l.lose(m, err, true)
}

func (l lossy) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	it, m, err := l.Table.Update(ctx, in)
	m, err = l.lose(m, err, true)
	return it, m, err
}

func (l lossy) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	m, err := l.Table.Transact(ctx, in)
	return l.lose(m, err, true)
}

// TestLinearizable records histories of concurrent callers in several processes
// and holds them against sequential models: versions and ownership, slots, holds.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	e := memory.New(memory.Options{LogSize: 1, NoStream: true})
	began, lost := e.Now(), &atomic.Int64{}
	kms := &local.KMS{Master: []byte("m")}
	process := func() *wiring.Services {
		return wiring.New(wiring.Outside{Main: lossy{e.Table(memory.Main), 97, lost}, Keys: e.Table(memory.Keys), Bucket: e.Bucket(), KMS: kms, DataKey: "stack",
			Now: e.Now, Elapsed: func() time.Duration { return e.Now().Sub(began) }, Rand: crand.Reader,
			Sleep: func(ctx context.Context, _ time.Duration) error { runtime.Gosched(); return ctx.Err() }})
	}
	linearizable(t, tenant, process, *operationsFlag)
}

// TestLinearizableOnEngine does the same over the local AWS engine.
func TestLinearizableOnEngine(t *testing.T) {
	e := enginetest.Open(t)
	began := time.Now()
	process := func() *wiring.Services {
		return wiring.New(wiring.Outside{Main: e.Main, Keys: e.Keys, Bucket: e.Bucket, KMS: seal.KMS(e.KMS), DataKey: e.Config.DataKey,
			Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, Rand: crand.Reader})
	}
	linearizable(t, execution.TenantID(enginetest.Tenant(t)), process, min(*operationsFlag, 1200))
}

const clients = 6

func linearizable(t *testing.T, tenant execution.TenantID, process func() *wiring.Services, operations int) {
	began := time.Now()
	ps := []*wiring.Services{process(), process(), process()}
	calls, checked := 0, 0
	for round := 0; calls < operations && !t.Failed(); round++ {
		h := &history{clock: func() time.Duration { return time.Since(began) }, by: map[string][]porcupine.Operation{}}
		c := &concurrent{t: t, tenant: tenant, ps: ps, h: h, e: execution.ExecutionID(fmt.Sprintf("lin%d", round))}
		c.begin()
		const each = 25
		var group sync.WaitGroup
		for n := range clients {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(n)))
				for range each {
					c.act(n, r)
				}
			})
		}
		group.Wait()
		calls += clients * each
		for name, ops := range h.by {
			checked += len(ops)
			m := model(c.first, journalStep)
			switch name {
			case "slot":
				m = model(slot{}, slotStep)
			case "holds":
				m = model("", holdsStep)
			}
			if result, info := porcupine.CheckOperationsVerbose(m, ops, 30*time.Second); result != porcupine.Ok {
				for _, op := range ops {
					t.Logf("%d..%d client %d: %+v -> %+v", op.Call, op.Return, op.ClientId, op.Input, op.Output)
				}
				_ = info
				t.Errorf("round %d: the history of the %s is %s", round, name, result)
			}
		}
	}
	took, verdict := time.Since(began), "all linearizable"
	if t.Failed() {
		verdict = "NOT linearizable"
	}
	fmt.Printf("linearizability: %s: %s, %d calls by %d clients in %d processes, %d checked, in %v\n", t.Name(), verdict, calls, clients, len(ps), checked, took.Round(time.Millisecond))
}

// concurrent are the callers of one round.
type concurrent struct {
	t      testing.TB
	tenant execution.TenantID
	ps     []*wiring.Services
	h      *history
	e      execution.ExecutionID
	op     execution.OperationID
	slotOf execution.ExecutionID
	fence  int64
	first  stands
	serial atomic.Int64
}

func (c *concurrent) common() api.Common {
	return api.Common{Tenant: c.tenant, RequestID: fmt.Sprintf("%s.%d", c.e, c.serial.Add(1))}
}

// sure repeats a request until somebody knows. A refusal of a repeat says
// nothing about what was sent before.
func sure[R any](f func() (R, error)) (r R, err error) {
	for try := range 20 {
		r, err = f()
		switch c := execution.CodeOf(err); {
		case err == nil:
			return r, nil
		case c.Retryable() && c != execution.LeaseHeld:
		case try > 0:
			return r, execution.Errorf(unknown, "somebody knows no more")
		default:
			return r, err
		}
	}
	return r, execution.Errorf(unknown, "nobody knows")
}

func (c *concurrent) begin() {
	s, ctx := c.ps[0], context.Background()
	for _, e := range []execution.ExecutionID{c.e, c.e + "s", c.e + "h"} {
		req := &api.CreateRequest{Common: c.common(), Execution: e, Workflow: "w", Claim: &api.CreateClaim{Owner: "first", LeaseSeconds: 86400}}
		api.Identify(req)
		if _, err := sure(func() (*api.CreateReply, error) { return s.Checkpoint.Create(ctx, req) }); err != nil {
			c.t.Fatal(err)
		}
	}
	c.first, c.slotOf, c.fence = stands{1, 1, "first"}, c.e+"s", 1
	req := &api.ApplyRequest{Common: c.common(), Changes: api.Changes{Execution: c.slotOf, ExpectedVersion: 1, Fence: 1,
		Operations: []api.OperationDeclaration{{Name: "pay", Args: jsonx1, Key: "k", OnUncertain: execution.Close}}}}
	api.Identify(req)
	r, err := sure(func() (*api.ApplyReply, error) { return s.Checkpoint.Apply(ctx, req) })
	if err != nil {
		c.t.Fatal(err)
	}
	c.op = r.Operations[0].Operation
}

func code(err error) execution.Code { return execution.CodeOf(err) }

func (c *concurrent) act(n int, r *rand.Rand) {
	s := c.ps[r.IntN(len(c.ps))]
	switch r.IntN(10) {
	case 0, 1, 2, 3, 4:
		c.journal(n, r, s)
	case 5, 6, 7:
		c.slot(n, r, s)
	default:
		c.holds(n, r, s)
	}
}

func (c *concurrent) journal(n int, r *rand.Rand, s *wiring.Services) {
	ctx := context.Background()
	var now answer
	get := &api.GetRequest{Common: api.Common{Tenant: c.tenant}, Execution: c.e, Include: []string{}}
	api.Identify(get)
	c.h.do(n, deed{on: "journal", what: "get"}, func() answer {
		v, err := sure(func() (*api.GetReply, error) { return s.Checkpoint.Get(ctx, get) })
		if err == nil {
			now = answer{version: v.Version, fence: v.Fence, name: v.Owner}
		} else {
			now = answer{code: code(err)}
		}
		return now
	})
	in := deed{on: "journal", version: now.version, fence: now.fence, name: now.name}
	switch what := r.IntN(12); {
	case what < 7:
		in.what = "apply"
		req := &api.ApplyRequest{Common: c.common(), Changes: api.Changes{Execution: c.e, ExpectedVersion: in.version, Fence: in.fence, Merge: jsonx1}}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := sure(func() (*api.ApplyReply, error) { return s.Checkpoint.Apply(ctx, req) })
			if err != nil {
				return answer{code: code(err)}
			}
			return answer{version: v.Version}
		})
	case what < 10:
		in.what, in.name = "claim", fmt.Sprint("client ", n)
		req := &api.ClaimRequest{Common: c.common(), Claiming: api.Claiming{Execution: c.e, Owner: in.name, LeaseSeconds: 86400, Nonce: fmt.Sprint("n", c.serial.Add(1))}}
		if what == 9 {
			in.what, req.Force = "force", &api.Force{Reason: "r"}
		}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := sure(func() (*api.ClaimReply, error) { return s.Recovery.Claim(ctx, req) })
			if err != nil {
				return answer{code: code(err)}
			}
			return answer{version: v.Version, fence: v.Fence}
		})
	case what == 10 && in.name != "":
		in.what = "release"
		req := &api.ReleaseRequest{Common: c.common(), Execution: c.e, Owner: in.name, Fence: in.fence}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := sure(func() (*api.ReleaseReply, error) { return s.Recovery.Release(ctx, req) })
			if err != nil {
				return answer{code: code(err)}
			}
			return answer{version: v.Version}
		})
	case in.name != "":
		in.what = "renew"
		req := &api.RenewRequest{Common: c.common(), Execution: c.e, Owner: in.name, Fence: in.fence, LeaseSeconds: 86400}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			_, err := sure(func() (*api.RenewReply, error) { return s.Recovery.Renew(ctx, req) })
			return answer{code: code(err)}
		})
	}
}

func (c *concurrent) slot(n int, r *rand.Rand, s *wiring.Services) {
	ctx := context.Background()
	in := deed{on: "slot"}
	switch r.IntN(8) {
	case 0:
		in.what, in.name = "start", fmt.Sprint("nonce ", r.IntN(3))
		req := &api.StartOperationRequest{Common: api.Common{Tenant: c.tenant}, Execution: c.slotOf, Operation: c.op, Attempt: 1, Fence: c.fence, Nonce: in.name}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			_, err := sure(func() (*api.StartOperationReply, error) { return s.Ledger.StartOperation(ctx, req) })
			return answer{code: code(err)}
		})
	case 1:
		in.what, in.name = "record", []string{"succeeded", "failed", "rejected"}[r.IntN(3)]
		req := &api.RecordOutcomeRequest{Common: api.Common{Tenant: c.tenant}, Execution: c.slotOf, Operation: c.op, Attempt: 1, Outcome: execution.Outcome(in.name)}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := s.Ledger.RecordOutcome(ctx, req)
			if c := code(err); c.Retryable() { // a repeat would find itself and not say so
				return answer{code: unknown}
			} else if err != nil {
				return answer{code: c}
			}
			return answer{is: v.Recorded, name: string(v.Ledger.Outcome)}
		})
	default:
		in.what = "read"
		req := &api.GetOperationRequest{Common: api.Common{Tenant: c.tenant}, Execution: c.slotOf, Operation: c.op}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := sure(func() (*api.GetOperationReply, error) { return s.Ledger.GetOperation(ctx, req) })
			if err != nil {
				return answer{code: code(err)}
			}
			for _, ev := range v.Evidence { // the slot's; the outcome also weighs contradictions
				if ev.Attempt == 1 {
					return answer{name: string(ev.Outcome)}
				}
			}
			return answer{}
		})
	}
}

func gone(c execution.Code) answer {
	if c == execution.Deleted {
		c = perhaps
	}
	return answer{code: c}
}

func (c *concurrent) holds(n int, r *rand.Rand, s *wiring.Services) {
	ctx := context.Background()
	on := api.Selector{Execution: c.e + "h"}
	in := deed{on: "holds", name: []string{"a", "b"}[r.IntN(2)]}
	switch what := r.IntN(20); {
	case what < 6:
		in.what = "hold"
		req := &api.HoldRequest{Common: c.common(), Selector: on, Hold: in.name, Reason: "r"}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			_, err := sure(func() (*api.HoldReply, error) { return s.Retention.Hold(ctx, req) })
			return gone(code(err))
		})
	case what < 12:
		in.what = "release"
		req := &api.ReleaseHoldRequest{Common: c.common(), Selector: on, Hold: in.name, Reason: "r"}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			_, err := sure(func() (*api.ReleaseHoldReply, error) { return s.Retention.ReleaseHold(ctx, req) })
			return gone(code(err))
		})
	case what < 13:
		in.what = "delete"
		req := &api.DeleteRequest{Common: c.common(), Selector: on, Reason: "r"}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			_, err := sure(func() (*api.DeleteReply, error) { return s.Retention.Delete(ctx, req) })
			return answer{code: code(err)}
		})
	default:
		in.what = "holds"
		req := &api.HoldsRequest{Common: api.Common{Tenant: c.tenant}, Selector: on}
		api.Identify(req)
		c.h.do(n, in, func() answer {
			v, err := sure(func() (*api.HoldsReply, error) { return s.Retention.Holds(ctx, req) })
			if err != nil {
				return answer{code: code(err)}
			}
			set := ""
			for _, h := range v.Holds {
				set += h.Hold
			}
			return answer{set: set}
		})
	}
}
