package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// fake is a small product: functions over the world that do one thing per
// action, so that the tests see what the sandbox does and nothing else.
type fake struct {
	mu     sync.Mutex
	builds int
	// stream answers a batch of records sent to a function; nil: all taken.
	stream func(function string, batch []events.DynamoDBEventRecord) (any, error)
	seen   []delivered // records as they came, by function
	sweeps map[string]int
	// work is how many sweeps of recover still find work.
	work int
}

type delivered struct{ Function, Name, PK, SK, Sequence string }

func (f *fake) build(w sandbox.World) (map[string]sandbox.Function, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.builds++
	functions := map[string]sandbox.Function{}
	for _, name := range []string{sandbox.Checkpoint, sandbox.Recover, sandbox.Retention} {
		process := &process{fake: f, world: w, name: name}
		functions[name] = process.handle
	}
	return functions, nil
}

// process is one function with its memory.
type process struct {
	fake  *fake
	world sandbox.World
	name  string

	mu    sync.Mutex
	calls int
}

func (p *process) handle(ctx context.Context, payload []byte) ([]byte, error) {
	var in struct {
		Action  string
		Key     string
		Size    int
		Records []events.DynamoDBEventRecord
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, execution.Errorf(execution.InvalidRequest, "no JSON object")
	}
	if in.Records != nil {
		return p.records(in.Records)
	}
	out, err := p.act(ctx, in.Action, in.Key, in.Size)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (p *process) act(ctx context.Context, action, key string, size int) (any, error) {
	lc, _ := lambdacontext.FromContext(ctx)
	switch action {
	case "":
		return map[string]bool{"empty": true}, nil
	case "arn":
		return map[string]string{"arn": lc.InvokedFunctionArn, "id": lc.AwsRequestID}, nil
	case "count":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls++
		return map[string]int{"count": p.calls}, nil
	case "put": // what is due may follow the key
		key, due, _ := strings.Cut(key, " ")
		it := store.Item{store.AttrPK: store.S("t#e"), store.AttrSK: store.S(key), "at": store.S(p.world.Now(ctx).Format(time.RFC3339Nano))}
		if due != "" {
			it["due_kind"] = store.S(due)
		}
		_, err := p.world.Engine.Table(memory.Main).Put(ctx, store.Put{Item: it})
		return map[string]bool{"put": true}, err
	case "remove":
		_, _, err := p.world.Engine.Table(memory.Main).Delete(ctx, store.Delete{Key: store.Key{PK: "t#e", SK: key}})
		return map[string]bool{"removed": true}, err
	case "now":
		return map[string]string{"now": p.world.Now(ctx).Format(time.RFC3339Nano)}, nil
	case "error":
		return nil, execution.Invalid("state", "no good").With("path", "/a/b")
	case "made":
		return nil, messages.InvokeResponse_Error{Type: "LeaseLost", Message: `{"code":"LeaseLost"}`}
	case "plain":
		return nil, errors.New("secret text")
	case "panic":
		panic("secret text")
	case "big":
		return strings.Repeat("x", size), nil
	case "say":
		slog.New(p.world.Log).InfoContext(ctx, "said", "tenant", "t")
		_, _ = io.WriteString(p.world.Metrics, "{\"m\":1}\n")
		return map[string]bool{"said": true}, p.world.Emit(ctx, "Contradiction", []byte(`{"operation":"o"}`))
	case "key":
		_, wrapped, err := p.world.KMS.GenerateDataKey(ctx, p.world.KMSKey, map[string]string{"tenant": "t", "generation": "1"})
		if err != nil {
			return nil, execution.Errorf(execution.KeyUnavailable, "no key").Because(err)
		}
		_, err = p.world.Engine.Table(memory.Keys).Put(ctx, store.Put{Item: store.Item{store.AttrPK: store.S("t"), store.AttrSK: store.S("keys"), "w": store.B(wrapped)}})
		return map[string]bool{"key": true}, err
	case "unwrap":
		it, _, err := p.world.Engine.Table(memory.Keys).Get(ctx, store.Get{Key: store.Key{PK: "t", SK: "keys"}})
		if err != nil {
			return nil, err
		}
		plain, err := p.world.KMS.Decrypt(ctx, p.world.KMSKey, it.Bytes("w"), map[string]string{"tenant": "t", "generation": "1"})
		return map[string]int{"bytes": len(plain)}, err
	case "object":
		return p.object(ctx, key)
	case "ask":
		a, err := p.world.Resolver.Ask(ctx, recovery.Question{Tenant: "t", Execution: "e", Operation: "o", Attempt: 1, Config: recovery.ResolverConfig{Kind: "sandbox", Target: key}})
		if err != nil {
			return map[string]string{"failed": err.Error()}, nil
		}
		return json.RawMessage(a.JSON), nil
	case "start":
		got, err := p.world.Target.Start(ctx, recovery.Handover{Kind: "sandbox", ARN: "worker", Name: key, Input: []byte(`{"execution":"e"}`)})
		return outcome(got, err), nil
	case "token":
		got, err := p.world.Target.AnswerToken(ctx, key, []byte(`{"execution":"e"}`))
		return outcome(got, err), nil
	case "sweep":
		return p.sweep()
	}
	return nil, execution.Invalid("action", "unknown")
}

func outcome(got recovery.StartOutcome, err error) any {
	return map[string]any{"outcome": got, "failed": err != nil}
}

func (p *process) object(ctx context.Context, key string) (any, error) {
	bucket := p.world.Engine.Bucket()
	body := []byte("object " + key)
	if _, err := bucket.Put(ctx, store.PutObject{Key: key, Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sum(body)}); err != nil {
		return nil, err
	}
	u, err := bucket.PresignGet(ctx, store.PresignGet{Key: key, Expires: time.Minute})
	return map[string]string{"url": u.URL}, err
}

func (p *process) sweep() (any, error) {
	f := p.fake
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sweeps == nil {
		f.sweeps = map[string]int{}
	}
	f.sweeps[p.name]++
	n := 0
	if p.name == sandbox.Recover && f.work > 0 {
		f.work--
		n = 1
	}
	return map[string]any{"handed_over": n, "parked": 0, "removed": []string{}, "failures": []string{}}, nil
}

func (p *process) records(batch []events.DynamoDBEventRecord) ([]byte, error) {
	f := p.fake
	f.mu.Lock()
	for _, r := range batch {
		f.seen = append(f.seen, delivered{p.name, r.EventName, r.Change.Keys["pk"].String(), r.Change.Keys["sk"].String(), r.Change.SequenceNumber})
	}
	answer := f.stream
	f.mu.Unlock()
	if answer == nil {
		return []byte(`{"batchItemFailures":[]}`), nil
	}
	out, err := answer(p.name, batch)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (f *fake) taken() []delivered {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func (f *fake) swept() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.sweeps)
}

// door is a running sandbox as a client sees it.
type door struct {
	t    *testing.T
	fake *fake
	url  string
	srv  *sandbox.Server
}

// open starts a sandbox on a free port; it stops with the test.
func open(t *testing.T, o sandbox.Options) *door {
	t.Helper()
	f := &fake{}
	o.Build = f.build
	s, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &door{t: t, fake: f, url: sandbox.URL(l), srv: s}
}

func (d *door) http(method, path, body string, header ...string) (*http.Response, string) {
	d.t.Helper()
	r, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp, string(text)
}

// kit calls the kit and expects it to succeed.
func (d *door) kit(method, path, body string) string {
	d.t.Helper()
	resp, text := d.http(method, path, body)
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return strings.TrimSpace(text)
}

// call invokes a function and gives the reply's text and whether it failed.
func (d *door) call(function, body string, header ...string) (string, bool) {
	d.t.Helper()
	resp, text := d.http("POST", "/2015-03-31/functions/"+function+"/invocations", body, header...)
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %d %s", function, resp.StatusCode, text)
	}
	return text, resp.Header.Get("X-Amz-Function-Error") != ""
}

// must invokes a function and expects a reply.
func (d *door) must(function, body string, header ...string) string {
	d.t.Helper()
	text, failed := d.call(function, body, header...)
	if failed {
		d.t.Fatalf("%s %s: %s", function, body, text)
	}
	return text
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in %s", what, part, text)
		}
	}
}
