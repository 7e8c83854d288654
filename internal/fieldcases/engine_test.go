package fieldcases

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/wiring"
)

// onEngine gives a caller of the handlers over a local AWS engine: real time, no
// faults, no door between.
func onEngine(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	e := enginetest.Open(t)
	began := time.Now()
	s := wiring.New(wiring.Outside{Main: e.Main, Keys: e.Keys, Bucket: e.Bucket, KMS: e.KMS, DataKey: e.Config.DataKey,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, Rand: rand.Reader})
	functions := s.Functions()
	k := &kit{TB: t, tenant: enginetest.Tenant(t), wait: time.Sleep}
	k.invoke = func(function string, request []byte) ([]byte, bool) {
		reply, err := functions[function](context.Background(), request)
		if err == nil {
			return reply, false
		}
		var known messages.InvokeResponse_Error
		if !errors.As(err, &known) {
			t.Errorf("%s: an error that is no Lambda error: %v", function, err)
		}
		text, _ := json.Marshal(known)
		return text, true
	}
	return k
}

func TestEngineC1(t *testing.T) { ownWrite(onEngine(t), "e", nil) }

func TestEngineC3(t *testing.T) {
	k := onEngine(t)
	for n := range 10 {
		readAfterWrite(k, fmt.Sprintf("e%d", n))
	}
}

func TestEngineC4(t *testing.T) { manyWriters(onEngine(t), 5) }

func TestEngineD1(t *testing.T) {
	k := onEngine(t)
	exactState(k)
	c := k.create("op", object{"claim": object{"owner": "w", "lease_seconds": 900}})
	o := k.declare("op", c.fence(), object{"args": raw(numbers), "key": "a"}).str("operation")
	k.outcome("op", o, "succeeded", object{"result": raw(numbers)})
	equal(t, k.op("op", o).at("intent", "args"), exactly(t, []byte(numbers)), "args")
	equal(t, k.op("op", o).at("result"), exactly(t, []byte(numbers)), "result")
}

func TestEngineD2(t *testing.T) {
	k := onEngine(t)
	for i, text := range []string{`[1.0]`, `[1E6]`, `[1.000000000000000005]`, `{"\u00e9":"c","e\u0301":"d"}`, `[-0,0,-0.0]`, `["\ud800","\u0000"]`, `{"":""}`} {
		execution := fmt.Sprintf("t%d", i)
		k.create(execution, object{"state": raw(`{"v":` + text + `}`)})
		equal(t, k.state(execution), exactly(t, []byte(`{"v":`+text+`}`)), text)
	}
}

func TestEngineS1(t *testing.T) {
	k := onEngine(t)
	for i, s := range []raw{sized(409_599), sized(409_600), sized(1_000_000), sized(4_500_000)} {
		execution := fmt.Sprintf("e%d", i)
		v := k.create(execution, object{"state": object{"first": 1}}).version()
		v = k.apply(execution, v, object{"state": s}).version()
		equal(t, digest([]byte(k.stateText(execution))), digest([]byte(s)), fmt.Sprintf("%d bytes", len(s)))
		k.apply(execution, v, object{"merge": object{"more": 1}})
		body := []byte(s)[:min(len(s), 1<<20)]
		d := k.put(execution, "doc", body)
		k.apply(execution, k.version(execution), object{"artifacts": []any{d}})
		equal(t, digest(k.artifact(execution, object{"name": "doc"})), digest(body), "artifact")
	}
}

func TestEngineL2(t *testing.T) { zombieHeartbeat(onEngine(t)) }

func TestEngineL6(t *testing.T) {
	k := onEngine(t)
	for n := range 10 {
		doubleResume(k, fmt.Sprintf("e%d", n), []string{"claim", "resume"}[n%2])
	}
}
