package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store/enginetest"
)

// options of a run.
type options struct {
	endpoint  string        // of the engine
	length    time.Duration // of the load
	rate      float64       // executions a second
	most      int           // executions in all
	workers   int
	killEvery time.Duration
	drain     time.Duration // at most, after the load
	answer    time.Duration // from an execution's start to its signal, at most
	redeliver time.Duration // of jobs that are not done
	durable   bool          // hand-overs are redelivered too
	seed      uint64
	verify    func(ctx context.Context, url string) (findings string, err error)
}

// run is one soak.
type run struct {
	options
	engine   *enginetest.Engine
	proxy    *proxy
	queue    *queue
	provider *provider
	// The outside world's, through the proxy too.
	functions client.Functions
	client    *client.Client
	started   time.Time

	mu         sync.Mutex
	executions []execution.ExecutionID
}

// soak does it all and gives the report; an error: it could not be done.
func soak(ctx context.Context, o options) (*report, error) {
	r := &run{options: o, queue: newQueue(o.seed, o.redeliver, o.durable), provider: newProvider(o.seed), started: time.Now()}
	var err error
	if r.engine, err = enginetest.Prepare(o.endpoint); err != nil {
		return nil, err
	}
	if r.proxy, err = startProxy(hostOf(o.endpoint), o.seed); err != nil {
		return nil, err
	}
	defer r.proxy.close()
	mux := http.NewServeMux()
	r.queue.routes(mux)
	r.provider.routes(mux)
	desk, err := serve(mux)
	if err != nil {
		return nil, err
	}
	defer desk.Close()
	env, err := r.environment(ctx, desk.Addr)
	if err != nil {
		return nil, err
	}
	if err := r.open(ctx, env); err != nil {
		return nil, err
	}
	f, err := launch(o.workers, pairs(env), o.seed)
	if err != nil {
		return nil, err
	}
	report, err := r.load(ctx, f)
	if stopped := f.stop(); stopped != nil && report != nil {
		report.fail("a worker ended by itself: %v", stopped)
	}
	return report, err
}

// load is the part with workers.
func (r *run) load(ctx context.Context, f *fleet) (*report, error) {
	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	sampled := make(chan []memory, 1)
	go func() {
		sampled <- watch(sampling, map[string]int{"steady worker": f.steady(), "this process": os.Getpid()})
	}()
	r.faults(true)
	stormy, calm := context.WithTimeout(ctx, r.length)
	defer calm()
	var storm sync.WaitGroup
	var harassed error
	storm.Go(func() { harassed = f.harass(stormy, r.killEvery) })
	var outside sync.WaitGroup
	outside.Go(func() { r.arrivals(ctx, stormy, &outside) })
	person, home := context.WithCancel(ctx)
	defer home()
	var office sync.WaitGroup
	office.Go(func() { r.decide(person) })
	storm.Wait()
	r.faults(false)
	stopSampling()
	mem := <-sampled
	outside.Wait()
	drained := r.drained(ctx)
	home()
	office.Wait()
	report := r.check(ctx, f, mem)
	if !drained {
		report.fail("not all executions came to their end within %v", r.drain)
	}
	if harassed != nil {
		report.fail("%v", harassed)
	}
	return report, ctx.Err()
}

func (r *run) faults(on bool) {
	r.proxy.faulty.Store(on)
	r.queue.faulty.Store(on)
	r.provider.faulty.Store(on)
}

// environment is that of a function's process, the engine behind the proxy.
func (r *run) environment(ctx context.Context, desk string) (map[string]string, error) {
	cred, err := r.engine.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	c := r.engine.Config
	return map[string]string{config.VarTable: c.Table, config.VarKeyTable: c.KeyTable, config.VarBucket: c.Bucket, config.VarDataKey: c.DataKey,
		config.VarRegion: c.Region, config.VarEndpoint: r.proxy.url(), "AWS_ACCESS_KEY_ID": cred.AccessKeyID, "AWS_SECRET_ACCESS_KEY": cred.SecretAccessKey,
		varDesk: "http://" + desk}, nil
}

// open makes the outside world's client and the workflow.
func (r *run) open(ctx context.Context, env map[string]string) (err error) {
	d := desk{env[varDesk]}
	if r.functions, err = openFunctions(func(name string) string { return env[name] }, d, d); err != nil {
		return err
	}
	r.client = client.New(client.Options{Door: r.functions, Tenant: tenant})
	_, err = r.client.SetWorkflow(ctx, &api.SetWorkflowRequest{Workflow: api.Workflow{Name: workflow, Schema: &api.Schema{Name: workflow, Version: 1},
		ResumeTarget: &api.ResumeTarget{Kind: "sandbox", ARN: "queue"}, MaxRecoveries: 1000,
		Resolvers: map[string]api.Resolver{byQuery: {Kind: "sandbox", Target: "provider"}}}})
	return err
}

// arrivals creates executions at the rate until the load is over or there are
// enough, each with its signal some time later.
func (r *run) arrivals(ctx, stormy context.Context, outside *sync.WaitGroup) {
	random := rand.New(rand.NewPCG(r.seed, 6))
	for n := range r.most {
		if !pause(stormy, time.Duration(random.ExpFloat64()/r.rate*float64(time.Second))) {
			return
		}
		id := execution.ExecutionID(fmt.Sprintf("case-%d-%d", r.seed%100_000, n))
		later, twice := time.Duration(random.Int64N(int64(r.answer))), random.IntN(4) == 0
		outside.Go(func() { r.begin(ctx, id, n, later, twice) })
	}
}

// begin opens a case and sends the customer's answer.
func (r *run) begin(ctx context.Context, id execution.ExecutionID, n int, later time.Duration, twice bool) {
	create := &api.CreateRequest{Common: api.Common{RequestID: "open " + string(id)}, Execution: id, Workflow: workflow, Thread: execution.ThreadID(fmt.Sprintf("thread-%d", n/5)), State: client.JSON(caseFile{Trail: []string{}})}
	if !r.insist(ctx, "create", func() error { _, err := r.client.Create(ctx, create); return err }) {
		return
	}
	r.mu.Lock()
	r.executions = append(r.executions, id)
	r.mu.Unlock()
	r.queue.add(id, 1)
	pause(ctx, later)
	signal := &api.SignalRequest{Execution: id, Name: "answer", Key: "the only one", Body: client.JSON("yes")}
	for range 1 + btoi(twice) {
		r.insist(ctx, "signal", func() error { _, err := r.client.Signal(ctx, signal); return err })
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// insist repeats a call until it is done; an answer that no fault explains is
// trouble.
func (r *run) insist(ctx context.Context, what string, call func() error) bool {
	for ctx.Err() == nil {
		err := call()
		if err == nil {
			return true
		}
		if !execution.CodeOf(err).Retryable() {
			r.queue.report(trouble{Where: what, Code: string(execution.CodeOf(err)), Text: err.Error()})
			return false
		}
		pause(ctx, 100*time.Millisecond)
	}
	return false
}

// decide is a person who looks at parked executions now and then, asks the
// provider about their letters, and gives a verdict, but for those that nobody
// decides about.
func (r *run) decide(ctx context.Context) {
	for pause(ctx, 3*time.Second) {
		for h, err := range r.client.Executions(ctx, &api.ListRequest{Status: execution.StatusParked}) {
			if err != nil {
				break // the next round
			}
			if t := traitsOf(h.Execution); !t.abandoned {
				r.verdict(ctx, h.Execution)
			}
		}
	}
}

func (r *run) verdict(ctx context.Context, id execution.ExecutionID) {
	view, err := r.client.Get(ctx, &api.GetRequest{Execution: id, Include: []string{"operations"}})
	if err != nil || view.Status != execution.StatusParked {
		return
	}
	var said []api.Evidence
	for _, op := range view.Operations {
		if op.Status != "uncertain" || op.Name != byHand {
			continue
		}
		outcome := execution.OutcomeNotExecuted
		if r.provider.look(op.ProviderKey, view.Fence) {
			outcome = execution.OutcomeSucceeded
		}
		said = append(said, api.Evidence{Operation: op.Operation, Attempt: op.Attempt, Finding: execution.Decided, Outcome: outcome, Reason: "the provider was asked, and cancels what has not happened", Force: true})
	}
	if len(said) > 0 {
		// Refused or lost: the next round asks again.
		_, _ = r.client.Reconcile(ctx, &api.ReconcileRequest{Execution: id, Evidence: said})
	}
}

// drained waits until every execution is at its end, or waits for a person.
func (r *run) drained(ctx context.Context) bool {
	open := append([]execution.ExecutionID(nil), r.executions...)
	for end := time.Now().Add(r.drain); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, time.Second) {
		var still []execution.ExecutionID
		for _, id := range open {
			view, err := r.client.Get(ctx, &api.GetRequest{Execution: id, Include: []string{}})
			if err != nil || !atEnd(id, view) {
				still = append(still, id)
			}
		}
		if open = still; len(open) == 0 {
			return true
		}
	}
	return false
}

// atEnd reports an execution that has ended or is left to a person.
func atEnd(id execution.ExecutionID, view *api.GetReply) bool {
	t := traitsOf(id)
	return view.Status.Ended() || view.Status == execution.StatusParked && t.letter && t.abandoned
}

// serve answers on loopback.
func serve(h http.Handler) (*http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Addr: l.Addr().String(), Handler: h, ErrorLog: silent}
	go func() { _ = s.Serve(l) }()
	return s, nil
}
