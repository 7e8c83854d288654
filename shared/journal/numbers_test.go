package journal

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
)

// prose is text like what agents and customers write: words, numbers, ids.
type prose struct{ r *rand.Rand }

func (p prose) text(n int) string {
	words := strings.Fields("the reservation flight was booked for customer and payment of EUR please confirm your address passenger cancelled refund policy economy business class " +
		"departure arrival airport baggage insurance certificate number remaining balance gift card credit membership silver gold regular delayed status date origin destination available seats " +
		"price update change request I would like to thank you help with my upcoming trip could tell me more details about could not process because system returned an error try again later")
	var b strings.Builder
	for b.Len() < n {
		switch p.r.IntN(9) {
		case 0:
			fmt.Fprintf(&b, "%d ", p.r.IntN(100_000))
		case 1:
			fmt.Fprintf(&b, "%c%c%d%c ", 'A'+p.r.IntN(26), 'A'+p.r.IntN(26), p.r.IntN(1000), 'A'+p.r.IntN(26))
		default:
			b.WriteString(words[p.r.IntN(len(words))] + " ")
		}
	}
	return b.String()[:n]
}

// noise is text in which nothing compresses much: base64 of random bytes.
func noise(r *rand.Rand, n int) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[r.IntN(64)]
	}
	return string(b)
}

// recorded gives the messages of the recorded agent runs, one after the other.
func recorded(t testing.TB) func() string {
	var all []string
	for _, r := range recordedRuns(t) {
		all = append(all, r...)
	}
	i := 0
	return func() string { i++; return all[(i-1)%len(all)] }
}

func recordedRuns(t testing.TB) [][]string {
	f, err := os.Open("../../../shared/data/agent-runs/airline-runs.json.gz")
	if err != nil {
		skip(t, "the recorded agent runs are not there")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct{ Traj []json.RawMessage }
	if err := json.NewDecoder(z).Decode(&runs); err != nil {
		t.Fatal(err)
	}
	all := make([][]string, len(runs))
	for i, r := range runs {
		for _, m := range r.Traj {
			all[i] = append(all[i], string(m))
		}
	}
	return all
}

func skip(t testing.TB, why string) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "journal: 1 SKIP %s: %s\n", t.Name(), why)
	t.Skip("SKIP " + why)
}

// stored sums what lies in the table and the bucket.
func (w *world) stored(pk string) (n int64) {
	for _, it := range w.items(pk) {
		n += int64(it.Size())
	}
	page, _, err := w.engine.Bucket().List(context.Background(), store.ListObjects{Prefix: ""})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range page.Objects {
		n += o.Bytes
	}
	return n
}

// Steps of 1 KB beside a constant 10 KB: what 200 of them store in all.
func TestStoredBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	p := prose{r}
	runs := [...]struct {
		name  string
		text  func(n int) string
		limit int64
	}{
		{"prose", p.text, 350_000},
		{"recorded runs", nil, 350_000},
		{"nothing compresses", func(n int) string { return noise(r, n) }, 620_000},
	}
	for _, tt := range runs {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if text == nil {
				next := recorded(t)
				rest := ""
				text = func(n int) string { // messages, cut to n characters
					for len([]rune(rest)) < n {
						rest += next()
					}
					rs := []rune(rest)
					rest = string(rs[n:])
					return string(rs[:n])
				}
			}
			w := newWorld(t)
			j := w.process()
			h := w.create(j, "e", `{"constant":`+jsonx.Quote(text(10<<10))+`,"last":""}`, "w1")
			for i := range 200 {
				h = w.apply(j, h, fmt.Sprintf("6f1c%04d-2b1c-4c3d-9e8f-%012x", i, r.Uint64()>>16), `{"last":`+jsonx.Quote(text(1000))+`}`)
			}
			n := w.stored(h.State.PK())
			t.Logf("%d bytes stored (limit %d), %.0f a step", n, tt.limit, float64(n)/200)
			if n > tt.limit {
				t.Errorf("%d bytes stored, at most %d", n, tt.limit)
			}
			same(t, w.open(w.process(), "e"), h)
		})
	}
}

// The recorded runs as executions, every message an apply: requests, units and
// bytes beside the messages' own.
func TestRecordedRuns(t *testing.T) {
	t.Parallel()
	var own, stored int64
	var steps, writes int
	var units float64
	for i, run := range recordedRuns(t) {
		w := newWorld(t)
		j := w.process()
		e := execution.ExecutionID(fmt.Sprint("run-", i))
		h := w.create(j, e, `{"messages":[]}`, "w1")
		w.calls()
		for k, m := range run {
			v := value(m)
			own += int64(v.Size())
			c := change(h, fmt.Sprint(i, "-", k), `{}`)
			c.Merge, c.Patch = nil, value(`[{"op":"add","path":"/messages/-","value":`+v.String()+`}]`)
			got, err := j.step(context.Background(), e, c)
			if err != nil {
				t.Fatal(err)
			}
			h = got.Handle
			steps++
		}
		for _, c := range w.calls() {
			units += c.WriteUnits
			writes++
		}
		for sk, it := range w.items(h.State.PK()) {
			if v, ok := EntryVersion(sk); ok && v > 1 {
				stored += int64(it.Size())
			}
		}
		w.calls()
		same(t, w.open(w.process(), e), h)
	}
	t.Logf("%d steps: %.2f requests, %.2f write units a step, %d bytes stored for %d bytes of messages: %.2f x", steps, float64(writes)/float64(steps), units/float64(steps), stored, own, float64(stored)/float64(own))
	if writes > steps+len(recordedRuns(t)) || units > 1.6*float64(steps) || float64(stored) > 1.6*float64(own) {
		t.Error("over the limits: 1 request, 1.6 units a step, 1.6 times the bytes")
	}
}

// A stored item's own overhead: everything of a step but the agent's text.
func TestOverheadOfAnEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	r := rand.New(rand.NewPCG(1, 2))
	h := w.create(j, "order-2026-11-29-0001", `{"constant":`+jsonx.Quote(noise(r, 40<<10))+`,"last":""}`, "worker-7")
	c := change(h, "6f1c0001-2b1c-4c3d-9e8f-0123456789ab", `{}`)
	c.Actor, c.Merge = &execution.Actor{Kind: "worker", ID: "worker-7"}, nil
	text := noise(r, 1000)
	c.Patch = value(`[{"op":"replace","path":"/last","value":"` + text + `"}]`)
	got, err := j.step(context.Background(), "order-2026-11-29-0001", c)
	if err != nil {
		t.Fatal(err)
	}
	it := w.items(h.State.PK())[EntryKey("", got.Handle.State.Version).SK]
	over := it.Size() - c.Patch.Size() // noise: nothing of it compresses away
	t.Logf("item %d bytes, %d of them not the agent's text", it.Size(), over)
	if over > 330 {
		t.Errorf("overhead %d bytes, at most 330", over)
	}
}

// Requests and units of the everyday verbs, from the call log.
func TestRequestsOfASteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	p := prose{rand.New(rand.NewPCG(3, 4))}
	w.create(w.process(), "warm-up", `{}`, "") // the tenant's key is made
	w.calls()
	h := w.create(j, "e", `{"constant":`+jsonx.Quote(p.text(10<<10))+`}`, "w1")
	if got := names(w.calls()); got != "query transact" {
		t.Errorf("create: %s", got)
	}
	h = w.apply(j, h, "a", `{"last":`+jsonx.Quote(p.text(1000))+`}`)
	c := w.calls()
	if names(c) != "put" || c[0].WriteUnits != 1 {
		t.Errorf("warm apply of 1 KB: %s, %v units, %d bytes", names(c), c[0].WriteUnits, c[0].Bytes)
	}
	h = w.apply(w.process(), h, "b", `{"last":`+jsonx.Quote(p.text(1000))+`}`)
	c = w.calls()
	if names(c) != "query put" {
		t.Errorf("cold apply: %s", names(c))
	}
	// Twice (snapshot and chain), in units of 4 KB read consistently.
	var bytes int
	for sk, it := range w.items(h.State.PK()) {
		if strings.HasPrefix(sk, EntryPrefix) {
			bytes += it.Size()
		}
	}
	w.calls()
	w.open(w.process(), "e")
	c = w.calls()
	if names(c) != "get query" || c[1].ReadUnits > 2*float64(bytes+4095)/4096 {
		t.Errorf("cold open: %s, %v units for %d bytes", names(c), c[1].ReadUnits, bytes)
	}
	h2, err := j.Claim(context.Background(), tenant, "e", claiming("w1", "n1"), nil)
	wantCode(t, err, execution.LeaseHeld)
	_ = h2
	w.calls()
	w.advance(61_000_000_000)
	if _, err := j.Claim(context.Background(), tenant, "e", claiming("w2", "n2"), nil); err != nil {
		t.Fatal(err)
	}
	if got := names(w.calls()); got != "get query transact" {
		t.Errorf("claim: %s", got)
	}
	if _, err := j.Renew(context.Background(), tenant, "e", "w2", w.open(j, "e").State.Fence, 120); err != nil {
		t.Fatal(err)
	}
	if got := names(w.calls()); got != "get query get update" {
		t.Errorf("open and renew: %s", got)
	}
}

// With the snapshot in the bucket: one request more.
func TestRequestsWithASnapshotInTheBucket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{"big":`+jsonx.Quote(noise(rand.New(rand.NewPCG(1, 1)), 200<<10))+`}`, "w1")
	w.calls()
	w.apply(w.process(), h, "a", `{"n":1}`)
	if got := names(w.calls()); got != "query get_object put" {
		t.Errorf("cold apply: %s", got)
	}
}

// A step costs the same at step 20 and at step 4,000, whether or not the state
// grows.
func TestWriteUnitsStayFlat(t *testing.T) {
	t.Parallel()
	steps := 4000
	if testing.Short() {
		steps = 400
	}
	p := prose{rand.New(rand.NewPCG(5, 6))}
	for _, grows := range []bool{true, false} {
		w := newWorld(t)
		j := w.process()
		h := w.create(j, "e", `{"constant":`+jsonx.Quote(p.text(10<<10))+`,"list":[],"last":0}`, "w1")
		w.calls()
		units := make([]float64, 0, steps)
		objects := 0
		for i := range steps {
			c := change(h, fmt.Sprint("r", i), `{"last":`+jsonx.Quote(p.text(1000))+`}`)
			if grows {
				c.Merge, c.Patch = nil, value(`[{"op":"add","path":"/list/-","value":`+jsonx.Quote(p.text(1000))+`}]`)
			}
			got, err := j.step(context.Background(), "e", c)
			if err != nil {
				t.Fatal(err)
			}
			h = got.Handle
			n := 0.0
			for _, c := range w.calls() {
				n += c.WriteUnits
				if c.Call == "put_object" {
					objects++
				}
			}
			units = append(units, n)
		}
		mean := func(u []float64) (m float64) {
			for _, n := range u {
				m += n / float64(len(u))
			}
			return m
		}
		early, late, all := mean(units[20:220]), mean(units[len(units)-200:]), mean(units)
		t.Logf("grows %v: %.2f write units a step early, %.2f late, %.2f in all; %d objects", grows, early, late, all, objects)
		if late > early*1.25+0.05 {
			t.Errorf("grows %v: %.2f units early, %.2f late", grows, early, late)
		}
		if grows && all > 1.3 {
			t.Errorf("%.2f write units a step, at most 1.3", all)
		}
	}
}

// Opening an execution costs the same at any age.
func TestOpenAfter10000Steps(t *testing.T) {
	t.Parallel()
	steps := 10_000
	if testing.Short() {
		steps = 1_000
	}
	w := newWorld(t)
	j := w.process()
	p := prose{rand.New(rand.NewPCG(7, 8))}
	h := w.create(j, "e", `{"list":[]}`, "w1")
	worst, worstRead := 0, 0.0
	for i := range steps {
		c := change(h, fmt.Sprint("r", i), `{}`)
		c.Merge, c.Patch = nil, value(`[{"op":"add","path":"/list/-","value":`+jsonx.Quote(p.text(200))+`}]`)
		got, err := j.step(context.Background(), "e", c)
		if err != nil {
			t.Fatal(err)
		}
		h = got.Handle
		if i%97 == 0 || i == steps-1 {
			w.calls()
			got := w.open(w.process(), "e")
			calls := w.calls()
			read := 0.0
			for _, c := range calls {
				read += c.ReadUnits
			}
			worst, worstRead = max(worst, len(calls)), max(worstRead, read)
			same(t, got, h)
		}
	}
	t.Logf("at most %d requests and %.0f read units to open (head included)", worst, worstRead)
	if worst > 5 { // resume may have 6 in all: these, and its transaction
		t.Errorf("%d requests", worst)
	}
}
