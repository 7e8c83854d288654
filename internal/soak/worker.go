package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/wiring"
)

// The load's tenant and workflow.
const (
	tenant   = execution.TenantID("soak")
	workflow = "case"
)

// Variables of a worker process, besides those of package config.
const (
	varWorker = "CAIRN_SOAK_WORKER" // its name; set: this process is a worker
	varDesk   = "CAIRN_SOAK_DESK"   // the parent's URL
	varSeed   = "CAIRN_SOAK_SEED"
)

const (
	lease      = execution.MinLeaseSeconds * time.Second
	sweepEvery = 2 * time.Second
	invocation = 30 * time.Second // a function's time limit
	atOnce     = 4                // executions that a worker drives at a time
)

// openFunctions makes the functions over services of their own, as a process of
// theirs has them.
func openFunctions(getenv func(string) string, target recovery.Target, resolver recovery.Resolver) (client.Functions, error) {
	c, err := config.Load(getenv)
	if err != nil {
		return nil, err
	}
	st, start := c.Stores(c.Lambda(getenv)), time.Now()
	services := wiring.New(wiring.Outside{Main: st.Main, Keys: st.Keys, Bucket: st.Bucket, KMS: st.KMS, DataKey: c.DataKey,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(start) }, Rand: rand.Reader,
		Target: target, Resolvers: map[string]recovery.Resolver{"sandbox": resolver}})
	functions := client.Functions{}
	for name, handle := range services.Functions() {
		functions[name] = func(ctx context.Context, payload []byte) ([]byte, error) {
			// Like Lambda: it goes on when its caller has left, and not for ever.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), invocation)
			defer cancel()
			return handle(ctx, payload)
		}
	}
	return functions, nil
}

// desk is the parent, as a worker sees it: queue, provider and witness.
type desk struct{ url string }

// errStatus is an answer that is no success.
type errStatus int

func (e errStatus) Error() string { return "HTTP status " + strconv.Itoa(int(e)) }

func (d desk) call(ctx context.Context, method, path string, body, into any) (found bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return false, nil
	case http.StatusOK:
	default:
		return false, errStatus(resp.StatusCode)
	}
	text, err = io.ReadAll(resp.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err == nil, err
}

// Start implements recovery.Target.
func (d desk) Start(ctx context.Context, h recovery.Handover) (out recovery.StartOutcome, err error) {
	_, err = d.call(ctx, http.MethodPost, "/start", h, &out)
	return out, err
}

// AnswerToken implements recovery.Target; nobody waits by a token here.
func (d desk) AnswerToken(context.Context, string, []byte) (recovery.StartOutcome, error) {
	return recovery.Gone, nil
}

// Ask implements recovery.Resolver.
func (d desk) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	var said json.RawMessage
	path := "/effects/" + url.PathEscape(q.ProviderKey) + "?" + url.Values{"execution": {string(q.Execution)}, "fence": {strconv.FormatInt(q.Fence, 10)}}.Encode()
	_, err := d.call(ctx, http.MethodGet, path, nil, &said)
	return recovery.Answer{JSON: said}, err
}

// worker is one process.
type worker struct {
	name   string
	desk   desk
	client *client.Client
	random *mathrand.Rand // of the sweeps
}

// work is the process's main: it ends with the parent's end of its input.
func work(name string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the parent is gone, or has had enough
	}()
	seed, _ := strconv.ParseUint(os.Getenv(varSeed), 10, 64)
	w := &worker{name: name, desk: desk{os.Getenv(varDesk)}, random: mathrand.New(mathrand.NewPCG(seed, 4))}
	functions, err := openFunctions(os.Getenv, w.desk, w.desk)
	if err != nil {
		return err
	}
	w.client = client.New(client.Options{Door: functions, Tenant: tenant})
	ctx := context.Background()
	for range atOnce {
		go w.serve(ctx)
	}
	for {
		time.Sleep(sweepEvery/2 + time.Duration(w.random.Int64N(int64(sweepEvery))))
		reply, err := w.client.SweepRecovery(ctx, &api.SweepRequest{Common: api.Common{Tenant: tenant}, Limit: 50})
		w.expect(ctx, "sweep", err)
		if err == nil {
			for _, f := range reply.Failures {
				w.expect(ctx, "sweep of an execution", execution.Errorf(f.Code, "%s", f.Message))
			}
		}
	}
}

// serve takes job after job.
func (w *worker) serve(ctx context.Context) {
	for {
		var j job
		found, err := w.desk.call(ctx, http.MethodPost, "/next", nil, &j)
		if err != nil || !found {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		result, err := w.client.Drive(ctx, j.Execution, client.DriveOptions{Owner: w.name, Lease: lease, ExpectedVersion: j.Version, StuckAfter: time.Minute}, w.body)
		ending := string(result.Ending)
		if err != nil && ending == "" {
			ending = "not reached" // a durable job comes again
		}
		w.expect(ctx, "drive", err)
		if ending == "not reached" {
			continue
		}
		_, _ = w.desk.call(ctx, http.MethodPost, "/done", map[string]any{"id": j.ID, "ending": ending}, nil)
	}
}

// explained are the codes that faults, and other workers, explain.
var explained = map[execution.Code]bool{execution.Unavailable: true, execution.Throttled: true, execution.KeyUnavailable: true,
	execution.LeaseLost: true, execution.LeaseHeld: true, execution.VersionConflict: true, execution.ExecutionClosed: true}

// expect reports what nothing explains. An error that is none of the product's
// is a provider's, and those break off.
func (w *worker) expect(ctx context.Context, where string, err error) {
	var e *execution.Error
	if !errors.As(err, &e) || explained[e.Code] {
		return
	}
	_, _ = w.desk.call(ctx, http.MethodPost, "/trouble", trouble{Where: w.name + ": " + where, Code: string(e.Code), Text: err.Error()}, nil)
}
