package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// Tenant and workflow of the replay.
const (
	tenant   = execution.TenantID("replay")
	workflow = "airline"
)

// world is one run's: a memory engine, the functions over it, and the airline.
type world struct {
	engine    *memory.Engine
	kms       *local.KMS
	airline   *airline
	functions client.Functions
	random    *mathrand.Rand
}

func newWorld(a *airline) *world {
	w := &world{engine: memory.New(memory.Options{NoStream: true}), kms: &local.KMS{Master: []byte("replay")}, airline: a, random: mathrand.New(mathrand.NewPCG(1, 2))}
	w.restart()
	return w
}

// restart gives the functions a new process: nothing in memory.
func (w *world) restart() {
	start := w.engine.Now()
	services := wiring.New(wiring.Outside{
		Main: w.engine.Table(memory.Main), Keys: w.engine.Table(memory.Keys), Bucket: w.engine.Bucket(), KMS: w.kms, DataKey: "alias/replay",
		Now: w.engine.Now, Elapsed: func() time.Duration { return w.engine.Now().Sub(start) }, Rand: rand.Reader,
		Sleep:     func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Resolvers: map[string]recovery.Resolver{"sandbox": w.airline},
	})
	w.functions = client.Functions{}
	for name, handler := range services.Functions() {
		w.functions[name] = handler
	}
}

// crash is where something dies, at every step.
type crash string

// The crashes. Those of a worker end its process; the functions' leave the
// worker alive, which repeats its request.
const (
	none     crash = "none"
	cold     crash = "cold"     // no crash: the functions have nothing in memory
	before   crash = "before"   // the worker, before a step is sent (and after an effect)
	landed   crash = "landed"   // the worker, when the step has landed and it has not heard so (and before an effect)
	function crash = "function" // the function's process, right before or right after its write
)

var (
	errDead = execution.Errorf(execution.InvalidRequest, "the worker is dead")
	errDied = errors.New("the function's process died")
)

// door is the worker's way to the functions; it belongs to one worker process.
type door struct {
	world *world
	crash crash
	costs *figures
	steps int // sent by this process
	last  int // the step that it does not do any more
	dead  bool
	armed []byte // the request for which the function was to die
}

// Invoke implements client.Door.
func (d *door) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	step := isStep(name, payload)
	if step {
		d.steps++
	}
	if d.crash == before && step && d.steps == d.last {
		d.dead = true
		d.costs.crashes++
	}
	if d.dead {
		return nil, errDead
	}
	if d.crash == cold && step {
		d.world.restart()
	}
	d.world.engine.Mark()
	reply, err := d.invoke(ctx, name, payload, step)
	if err == nil && step {
		d.costs.step(d.world.engine.Log())
	}
	if d.crash == landed && step && d.steps == d.last-1 {
		d.dead = true
		d.costs.crashes++
		return nil, errDead
	}
	return reply, err
}

// isStep reports an apply that is no ending.
func isStep(name string, payload []byte) bool {
	_, req, err := api.Decode(name, payload)
	r, ok := req.(*api.ApplyRequest)
	return err == nil && ok && r.Then == nil
}

// invoke calls the function, whose process may die.
func (d *door) invoke(ctx context.Context, name string, payload []byte, step bool) ([]byte, error) {
	if d.crash == function && step && !bytes.Equal(payload, d.armed) {
		d.armed = bytes.Clone(payload)
		effect := "crash_before"
		if d.world.random.IntN(2) == 0 {
			effect = "crash_after"
		}
		if err := d.world.engine.SetFaults([]memory.Fault{{On: "put", Match: "/j#", Effect: effect}}); err != nil {
			return nil, err
		}
	}
	ctx, invocation := memory.WithInvocation(ctx)
	defer invocation.End()
	reply, err := d.world.functions.Invoke(ctx, name, payload)
	if invocation.Crashed() {
		d.costs.crashes++
		d.world.restart()
		return nil, errDied
	}
	return reply, err
}

// execute is the effect, unless the worker is dead.
func (d *door) execute(ctx context.Context, e client.Effect) (client.Outcome, error) {
	if d.dead {
		return client.Outcome{}, errDead
	}
	return d.world.airline.execute(ctx, e)
}

// impatient is a clock on which pauses take no time; leases are the engine's.
type impatient struct{ client.Clock }

func (c impatient) Sleep(ctx context.Context, d time.Duration) error {
	if d > time.Second/2 { // a lease keeper's look
		return c.Clock.Sleep(ctx, d)
	}
	return ctx.Err()
}

// stored is what an execution occupies: items by DynamoDB's counting, and
// objects.
func (w *world) stored(id execution.ExecutionID) (size int, err error) {
	dump := w.engine.Dump()
	for _, raw := range dump.Items {
		item, err := memory.DecodeItem(raw)
		if err != nil {
			return 0, err
		}
		if item[store.AttrPK].S == execution.PartitionKey(tenant, id) {
			size += item.Size()
		}
	}
	for _, o := range dump.Objects {
		if strings.HasPrefix(o.Key, string(tenant)+"/e/"+string(id)+"/") {
			size += len(o.Body)
		}
	}
	return size, nil
}

// create makes the execution and its workflow.
func (w *world) create(ctx context.Context, c *client.Client, id execution.ExecutionID, r *recording) error {
	resolvers := map[string]api.Resolver{}
	for _, m := range r.messages {
		if e, err := effectOf(m); err != nil {
			return err
		} else if e != nil {
			resolvers[e.name] = api.Resolver{Kind: "sandbox", Target: "airline"}
		}
	}
	_, err := c.SetWorkflow(ctx, &api.SetWorkflowRequest{Workflow: api.Workflow{Name: workflow, Schema: &api.Schema{Name: "conversation", Version: 1}, Resolvers: resolvers}})
	if err != nil {
		return err
	}
	_, err = c.Create(ctx, &api.CreateRequest{Execution: id, Workflow: workflow, Schema: &api.Schema{Name: "conversation", Version: 1},
		State: client.JSON(map[string][]string{"messages": {}})})
	return err
}
