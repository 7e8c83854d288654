package recovery_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

const tenant = "bank"

// kit is a world without AWS: one store, any number of processes over it.
type kit struct {
	t        testing.TB
	engine   *memory.Engine
	start    time.Time
	kms      *local.KMS
	resolver *scripted
	target   *target
	migrator recovery.Migrator
	business recovery.Resolver // of kind https
	process
	mu     sync.Mutex
	counts map[string]float64
	events []string
}

// process is one function instance: its memory is its own.
type process struct {
	services *wiring.Services
	handlers map[string]door.Handler
}

func newKit(t testing.TB) *kit {
	e := memory.New(memory.Options{})
	k := &kit{t: t, engine: e, start: e.Now(), kms: &local.KMS{Master: []byte("master")}, resolver: &scripted{answers: map[string][]string{}}, target: &target{}, counts: map[string]float64{}}
	k.process = k.newProcess()
	return k
}

func (k *kit) newProcess() process {
	s := wiring.New(wiring.Outside{Main: k.engine.Table(memory.Main), Keys: k.engine.Table(memory.Keys), Bucket: k.engine.Bucket(), KMS: k.kms, DataKey: "stack",
		Now: k.engine.Now, Elapsed: func() time.Duration { return k.engine.Now().Sub(k.start) }, Rand: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Resolvers: map[string]recovery.Resolver{"sandbox": k.resolver, "https": k.business}, Target: k.target, Migrator: k.migrator})
	s.Recovery.Count = func(name string, v float64) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.counts[name] += v
	}
	s.Recovery.Emit = func(_ context.Context, name string, detail []byte) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.events = append(k.events, name+" "+string(detail))
		return nil
	}
	return process{s, s.Functions()}
}

// restart forgets everything that the process had in memory.
func (k *kit) restart() { k.process = k.newProcess() }

func (k *kit) advance(seconds float64) {
	if err := k.engine.Advance(time.Duration(seconds * float64(time.Second))); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) faults(f ...memory.Fault) {
	if err := k.engine.SetFaults(f); err != nil {
		k.t.Fatal(err)
	}
}

// m is a request or a reply.
type m = map[string]any

// refusal is an error as a caller gets it.
type refusal struct {
	code  execution.Code
	facts m
}

func (r *refusal) Error() string { return fmt.Sprintf("%s %v", r.code, r.facts) }

// call sends a request to a function of a process.
func (p process) call(ctx context.Context, function, action string, req m) (m, error) {
	body := m{"action": action, "tenant": tenant}
	maps.Copy(body, req)
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	out, err := p.handlers[function](ctx, b)
	var le messages.InvokeResponse_Error
	if errors.As(err, &le) {
		r := &refusal{code: execution.Code(le.Type)}
		_ = json.Unmarshal([]byte(le.Message), &r.facts)
		return nil, r
	}
	if err != nil {
		return nil, err
	}
	var reply m
	return reply, json.Unmarshal(out, &reply)
}

var functions = func() map[string]string {
	out := map[string]string{}
	for _, v := range api.Verbs {
		if out[v.Action] == "" || v.Function == api.Recover {
			out[v.Action] = v.Function
		}
	}
	return out
}()

func (k *kit) try(action string, req m) (m, error) {
	return k.call(context.Background(), functions[action], action, req)
}

func (k *kit) do(action string, req m) m {
	k.t.Helper()
	r, err := k.try(action, req)
	if err != nil {
		k.t.Fatalf("%s %v: %v", action, req, err)
	}
	return r
}

func (k *kit) refuses(code execution.Code, action string, req m) m {
	k.t.Helper()
	r, err := k.try(action, req)
	var no *refusal
	if !errors.As(err, &no) || no.code != code {
		k.t.Fatalf("%s %v: %v %v, want %s", action, req, r, err, code)
	}
	return no.facts
}

func (k *kit) get(e string) m { k.t.Helper(); return k.do("get", m{"execution": e}) }

func num(v any) int64 { f, _ := v.(float64); return int64(f) }

// workflow sets the workflow w with a target and a resolver for pay.
func (k *kit) workflow(more m) {
	k.t.Helper()
	w := m{"name": "w", "schema": m{"name": "s", "version": 1}, "resume_target": m{"kind": "sandbox", "arn": "machine"}, "resolvers": m{"pay": m{"kind": "sandbox", "target": "bank"}}}
	maps.Copy(w, more)
	for n, v := range w {
		if v == nil {
			delete(w, n)
		}
	}
	k.do("set_workflow", m{"workflow": w})
}

// owned makes an execution with an owner a of 30 seconds.
func (k *kit) owned(e string) (version, fence int64) {
	k.t.Helper()
	r := k.do("create", m{"execution": e, "workflow": "w", "claim": m{"owner": "a", "lease_seconds": 30}, "state": m{"n": 0}})
	return num(r["version"]), num(r["fence"])
}

// declare adds an operation and gives its reply.
func (k *kit) declare(e string, fence int64, op m) m {
	k.t.Helper()
	o := m{"name": "pay", "args": m{"n": 1}, "key": "k"}
	maps.Copy(o, op)
	r := k.do("apply", m{"execution": e, "expected_version": k.get(e)["version"], "fence": fence, "operations": []m{o}})
	return r["operations"].([]any)[0].(m)
}

func (k *kit) status(e, op string) string {
	k.t.Helper()
	return k.do("get_operation", m{"execution": e, "operation": op})["status"].(string)
}

func (k *kit) sweep() m { k.t.Helper(); return k.do("sweep", m{}) }

func (k *kit) versions(e string) []string {
	k.t.Helper()
	var out []string
	for _, x := range k.do("history", m{"execution": e, "limit": 1000})["entries"].([]any) {
		out = append(out, x.(m)["kind"].(string))
	}
	return out
}

// head reads an attribute of a head as it lies.
func (k *kit) head(e, attr string) string { return text(k.rawHead(e)[attr]) }

func text(raw json.RawMessage) string {
	var v map[string]any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	for _, x := range v {
		return fmt.Sprint(x)
	}
	return ""
}

// scripted answers questions by the name of the target; the last answer repeats.
type scripted struct {
	mu      sync.Mutex
	answers map[string][]string
	asked   []recovery.Question
	// block, when set, is waited for before each answer.
	block func(context.Context)
}

func (s *scripted) set(name string, answers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name], s.asked = answers, nil
}

func (s *scripted) questions() []recovery.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]recovery.Question(nil), s.asked...)
}

func (s *scripted) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	if s.block != nil {
		s.block(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	all := s.answers[q.Config.Target]
	if len(all) == 0 {
		return recovery.Answer{}, errors.New("no such system")
	}
	a := all[0]
	if len(all) > 1 {
		s.answers[q.Config.Target] = all[1:]
	}
	switch a {
	case "error":
		return recovery.Answer{}, errors.New("secret-value")
	case "timeout":
		return recovery.Answer{}, context.DeadlineExceeded
	case "panic":
		panic("secret-value")
	}
	return recovery.Answer{JSON: []byte(a)}, nil
}

// target takes hand-overs.
type target struct {
	mu      sync.Mutex
	started []recovery.Handover
	names   map[string]bool
	tokens  []string
	gone    map[string]bool // tokens behind which nobody waits
	fail    error
}

func (x *target) Start(_ context.Context, h recovery.Handover) (recovery.StartOutcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail != nil {
		return "", x.fail
	}
	if x.names[h.Name] {
		return recovery.Existed, nil
	}
	if x.names == nil {
		x.names = map[string]bool{}
	}
	x.names[h.Name] = true
	x.started = append(x.started, h)
	return recovery.Started, nil
}

func (x *target) AnswerToken(_ context.Context, token string, input []byte) (recovery.StartOutcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail != nil {
		return "", x.fail
	}
	if x.gone[token] {
		return recovery.Gone, nil
	}
	x.tokens = append(x.tokens, token+" "+string(input))
	return recovery.Started, nil
}

// inputs of what was started, in order.
func (x *target) inputs() []m {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []m
	for _, h := range x.started {
		var v m
		_ = json.Unmarshal(h.Input, &v)
		out = append(out, v)
	}
	return out
}

// causes of what was started, in order.
func (x *target) causes() string {
	var out []string
	for _, in := range x.inputs() {
		out = append(out, in["cause"].(string))
	}
	return strings.Join(out, " ")
}

// rawHead is the head's item as it lies.
func (k *kit) rawHead(e string) map[string]json.RawMessage {
	for _, raw := range k.engine.Dump().Items {
		var it map[string]json.RawMessage
		if json.Unmarshal(raw, &it) == nil && text(it["pk"]) == tenant+"#"+e && text(it["sk"]) == "head" {
			return it
		}
	}
	return nil
}

// setHead writes an attribute of a head behind everybody's back; "" removes it.
func (k *kit) setHead(e, attr, value string) {
	k.t.Helper()
	it := k.rawHead(e)
	it[attr] = json.RawMessage(value)
	if value == "" {
		delete(it, attr)
	}
	raw, err := json.Marshal(it)
	if err == nil {
		err = k.engine.Load(memory.Dump{Items: []json.RawMessage{raw}})
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func rawJSON(s string) json.RawMessage { return json.RawMessage(s) }

// getRaw is get's reply as text.
func (k *kit) getRaw(e string) string {
	k.t.Helper()
	out, err := k.handlers["checkpoint"](context.Background(), []byte(fmt.Sprintf(`{"action":"get","tenant":%q,"execution":%q}`, tenant, e)))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(out)
}
