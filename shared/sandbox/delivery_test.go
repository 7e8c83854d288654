package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/store"
)

func (d *door) put(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		d.must("checkpoint", `{"action":"put","key":"`+key+`"}`)
	}
}

func (d *door) remove(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		d.must("checkpoint", `{"action":"remove","key":"`+key+`"}`)
	}
}

func keysOf(all []delivered, function string) string {
	var keys []string
	for _, r := range all {
		if r.Function == function {
			keys = append(keys, r.Name+" "+r.SK)
		}
	}
	return strings.Join(keys, ", ")
}

// The mappings' filters let through what the stack's would.
func TestRunFilters(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	d.put("head", "timer#lease", "timer#retention", "j#1", "hold#x")
	d.kit("POST", "/sandbox/clock", `{"advance_seconds":1}`)
	d.put("head lease", "head wake", "head signal", "head verdict", "hold#x signal")
	d.remove("timer#lease", "timer#retention", "j#1", "head")
	want(t, "run", d.kit("POST", "/sandbox/run", "{}"), `{"delivered":4,"failed":0}`)
	seen := d.fake.taken()
	want(t, "recover", keysOf(seen, "recover"), "MODIFY head, MODIFY head, REMOVE timer#lease")
	want(t, "retention", keysOf(seen, "retention"), "REMOVE timer#retention")
	want(t, "nothing left", d.kit("POST", "/sandbox/run", ""), `{"delivered":0,"failed":0}`)
	want(t, "nothing again", len(d.fake.taken()), len(seen))
}

func TestRunSchedules(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	d.fake.work = 3
	want(t, "run", d.kit("POST", "/sandbox/run", "{}"), `{"delivered":3,"failed":0}`)
	want(t, "recover", d.fake.swept()["recover"], 4)
	want(t, "retention", d.fake.swept()["retention"], 4)
	d.fake.work = 1000
	want(t, "bounded", d.kit("POST", "/sandbox/run", "{}"), `{"delivered":100,"failed":0,"more":true}`)
}

// only is the mapping of recover alone, in small batches.
var only = []store.Mapping{{Function: sandbox.Recover, Filters: []string{`{"dynamodb":{"Keys":{"sk":{"S":[{"prefix":"x"}]}}}}`}, BatchSize: 4, Retries: 5}}

// A record that always fails is tried 1 + 5 times and then buried by its keys;
// its neighbours are delivered once each, in order.
func TestPoison(t *testing.T) {
	t.Parallel()
	partial := func(_ string, batch []events.DynamoDBEventRecord) (any, error) {
		failures := []map[string]string{}
		for _, r := range batch {
			if r.Change.Keys["sk"].String() == "x3" {
				failures = append(failures, map[string]string{"itemIdentifier": r.Change.SequenceNumber})
			}
		}
		return map[string]any{"batchItemFailures": failures}, nil
	}
	whole := func(_ string, batch []events.DynamoDBEventRecord) (any, error) {
		for _, r := range batch {
			if r.Change.Keys["sk"].String() == "x3" {
				return nil, errors.New("boom")
			}
		}
		return nil, nil
	}
	unknown := func(_ string, batch []events.DynamoDBEventRecord) (any, error) {
		for _, r := range batch {
			if r.Change.Keys["sk"].String() == "x3" {
				return map[string]any{"batchItemFailures": []map[string]string{{"itemIdentifier": "none of these"}}}, nil
			}
		}
		return map[string]any{}, nil
	}
	for name, answer := range map[string]func(string, []events.DynamoDBEventRecord) (any, error){"partial": partial, "whole": whole, "unknown": unknown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, sandbox.Options{Mappings: only})
			d.fake.stream = answer
			d.put("x1", "x2", "x3", "x4", "x5", "x6", "x7")
			want(t, "run", d.kit("POST", "/sandbox/run", "{}"), `{"delivered":6,"failed":1}`)
			tries, last := map[string]int{}, map[string]int{}
			for n, r := range d.fake.taken() {
				tries[r.SK]++
				last[r.SK] = n
			}
			if name == "partial" {
				want(t, "tries of the poison", tries["x3"], 6)
				want(t, "tries of its forerunner", tries["x2"], 1)
			}
			for n := 1; n < 7; n++ {
				a, b := fmt.Sprintf("x%d", n), fmt.Sprintf("x%d", n+1)
				if last[a] > last[b] {
					t.Errorf("%s was delivered after %s", a, b)
				}
			}
			var dump struct {
				DeadLetters []struct {
					Function string
					Attempts int
					Name     string `json:"event_name"`
					Keys     struct{ PK, SK string }
				} `json:"dead_letters"`
			}
			text := d.kit("GET", "/sandbox/dump", "")
			if err := json.Unmarshal([]byte(text), &dump); err != nil {
				t.Fatal(err)
			}
			if len(dump.DeadLetters) != 1 {
				t.Fatalf("dead letters: %v", dump.DeadLetters)
			}
			l := dump.DeadLetters[0]
			want(t, "dead letter", fmt.Sprint(l.Function, l.Attempts, l.Name, l.Keys), "recover6INSERT{t#e x3}")
		})
	}
}

// A crash in the middle of a delivery is a failed batch: it comes again.
func TestDeliveryAfterCrash(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{Mappings: only})
	d.put("x1", "x2")
	crashed := false
	d.fake.stream = func(string, []events.DynamoDBEventRecord) (any, error) {
		if !crashed {
			crashed = true
			panic("dies once")
		}
		return nil, nil
	}
	want(t, "run", d.kit("POST", "/sandbox/run", "{}"), `{"delivered":2,"failed":0}`)
}

func TestStream(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{})
	event := `{"Records":[{"eventID":"1","eventName":"REMOVE","dynamodb":{"SequenceNumber":"7","Keys":{"pk":{"S":"t#e"},"sk":{"S":"timer#lease"}}}}]}`
	want(t, "reply", d.kit("POST", "/sandbox/stream", `{"function":"recover","event":`+event+`}`), `{"batchItemFailures":[]}`)
	want(t, "seen", fmt.Sprint(d.fake.taken()), "[{recover REMOVE t#e timer#lease 7}]")
	d.fake.stream = func(string, []events.DynamoDBEventRecord) (any, error) { return nil, errors.New("boom") }
	contains(t, "failed", d.kit("POST", "/sandbox/stream", `{"function":"recover","event":`+event+`}`), `"errorType":"Internal"`)
	for _, body := range []string{`{"function":"nothing","event":{}}`, `{"function":"recover"}`, `{"event":{}}`, `{"function":"recover","event":{},"x":1}`} {
		resp, _ := d.http("POST", "/sandbox/stream", body)
		want(t, body, resp.StatusCode, 400)
	}
}

func TestAuto(t *testing.T) {
	t.Parallel()
	d := open(t, sandbox.Options{Auto: true, Mappings: only})
	d.put("x1")
	eventually(t, "a delivery by itself", func() bool { return keysOf(d.fake.taken(), "recover") == "INSERT x1" })
	swept := d.fake.swept()["recover"]
	d.kit("POST", "/sandbox/clock", `{"advance_seconds":1}`)
	eventually(t, "a sweep after the clock moved", func() bool { return d.fake.swept()["recover"] > swept })
}

func TestBadFilter(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{`{`, `{"eventName":"REMOVE"}`, `{"eventName":[{"anything-but":"REMOVE"}]}`} {
		_, err := sandbox.New(sandbox.Options{Build: (&fake{}).build, Mappings: []store.Mapping{{Function: "recover", Filters: []string{filter}}}})
		if err == nil {
			t.Errorf("%s was accepted", filter)
		}
	}
}
