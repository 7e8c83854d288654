package memory_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func putObject(t *testing.T, e *memory.Engine, key, body string) {
	t.Helper()
	_, err := e.Bucket().Put(t.Context(), store.PutObject{Key: key, Body: strings.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256([]byte(body))})
	must(t, err)
}

func readObject(t *testing.T, e *memory.Engine, key string) string {
	t.Helper()
	r, _, _, err := e.Bucket().Get(t.Context(), store.GetObject{Key: key})
	must(t, err)
	b, err := io.ReadAll(r)
	must(t, err)
	return string(b)
}

func TestClock(t *testing.T) {
	start := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	e := memory.New(memory.Options{Start: start})
	if e.Now() != start {
		t.Errorf("starts at %v", e.Now())
	}
	must(t, e.Advance(1500*time.Microsecond))
	if got := e.Now().Sub(start); got != time.Millisecond {
		t.Errorf("after 1.5 ms: %v", got)
	}
	must(t, e.Advance(500*time.Microsecond))
	if got := e.Now().Sub(start); got != 2*time.Millisecond {
		t.Errorf("after 2 ms: %v", got)
	}
	if e.Advance(-1) == nil || e.Now().Sub(start) != 2*time.Millisecond {
		t.Error("the clock went back")
	}
	meta, err := e.Table(memory.Main).Put(t.Context(), store.Put{Item: item("p", "a", 1)})
	must(t, err)
	if !meta.Date.Equal(e.Now()) {
		t.Errorf("answered at %v, clock %v", meta.Date, e.Now())
	}
	e.Reset()
	if e.Now().Sub(start) != 2*time.Millisecond {
		t.Error("a reset turned the clock back")
	}
	e.RealTime(true)
	time.Sleep(5 * time.Millisecond)
	ran := e.Now().Sub(start)
	if ran < 7*time.Millisecond {
		t.Errorf("a running clock ran %v", ran)
	}
	e.RealTime(false)
	stood := e.Now()
	time.Sleep(2 * time.Millisecond)
	if !e.Now().Equal(stood) || stood.Sub(start) < ran {
		t.Error("the clock did not stop where it was")
	}
}

// A write exactly Window after its validation is made, a millisecond later not.
func TestWindowEdge(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	at := e.Now()
	must(t, e.Advance(store.Window))
	_, err := tb.Put(t.Context(), store.Put{Item: item("p", "a", 1), ValidatedAt: at})
	must(t, err)
	must(t, e.Advance(time.Millisecond))
	_, err = tb.Put(t.Context(), store.Put{Item: item("p", "a", 2), ValidatedAt: at})
	if store.KindOf(err) != store.TooLate || store.Ambiguous(err) || value(t, tb, key("p", "a")) != 1 {
		t.Errorf("%v", err)
	}
}

func TestTimeToLive(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	due := func(table *memory.Table, sk string, ttl store.Value) {
		it := item("p", sk, 1)
		it["ttl"] = ttl
		_, err := table.Put(t.Context(), store.Put{Item: it})
		must(t, err)
	}
	now := e.Now().Unix()
	due(tb, "soon", store.N(now+10))
	due(tb, "later", store.N(now+20))
	due(tb, "text", store.S("1"))
	due(tb, "ancient", store.N(now-6*365*24*3600))
	due(tb, "moved", store.N(now+10))
	due(e.Table(memory.Keys), "soon", store.N(now+10))
	_, _, err := tb.Update(t.Context(), store.Update{Key: key("p", "moved"), Actions: []store.Action{store.Set{Attr: "ttl", Value: store.N(now + 30)}}})
	must(t, err)
	e.TakeRecords(0)
	must(t, e.Advance(9999*time.Millisecond))
	if tb.Len() != 5 {
		t.Errorf("%d items before the time", tb.Len())
	}
	must(t, e.Advance(time.Millisecond))
	if value(t, tb, key("p", "soon")) != -1 || value(t, tb, key("p", "moved")) != 1 || tb.Len() != 4 || value(t, e.Table(memory.Keys), key("p", "soon")) != 1 {
		t.Error("after 10 s")
	}
	must(t, e.Advance(100*365*24*time.Hour))
	if tb.Len() != 2 {
		t.Errorf("%d items at the end", tb.Len())
	}
	var order []string
	for _, r := range e.TakeRecords(0) {
		order = append(order, r.Key.SK)
		if r.Name() != "REMOVE" || !r.ByTTL || r.New != nil || r.Old.Int("n") != 1 {
			t.Errorf("record: %+v", r)
		}
	}
	if got := strings.Join(order, " "); got != "soon later moved" {
		t.Errorf("order: %s", got)
	}
}

func TestTimeToLiveInRealTime(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	it := item("p", "a", 1)
	it["ttl"] = store.N(e.Now().Unix())
	_, err := tb.Put(t.Context(), store.Put{Item: it})
	must(t, err)
	e.RealTime(true)
	if got := value(t, tb, key("p", "a")); got != -1 {
		t.Errorf("still there: %d", got)
	}
}

func TestStream(t *testing.T) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	put := func(n int64) {
		_, err := tb.Put(t.Context(), store.Put{Item: item("p", "a", n)})
		must(t, err)
	}
	put(1)
	put(2)
	put(2) // changes nothing: no record
	_, err := e.Table(memory.Keys).Put(t.Context(), store.Put{Item: item("p", "a", 1)})
	must(t, err)
	it := item("p", "timer", 3)
	it["ttl"], it["body"] = store.N(e.Now().Unix()+1), store.B([]byte{0, 255})
	_, err = tb.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: it}}, {Delete: &store.Delete{Key: key("p", "a")}}}})
	must(t, err)
	must(t, e.Advance(time.Second))
	if e.PendingRecords() != 5 {
		t.Fatalf("%d records", e.PendingRecords())
	}
	records := append(e.TakeRecords(2), e.TakeRecords(0)...)
	if e.PendingRecords() != 0 || len(records) != 5 {
		t.Fatalf("%d records taken", len(records))
	}
	raw := memory.StreamEvent(records)
	var event events.DynamoDBEvent
	must(t, json.Unmarshal(raw, &event))
	var got []string
	last := ""
	for _, r := range event.Records {
		got = append(got, r.EventName+" "+r.Change.Keys["sk"].String())
		if r.Change.SequenceNumber <= last || r.Change.StreamViewType != "NEW_AND_OLD_IMAGES" || r.EventSource != "aws:dynamodb" || r.EventID == "" {
			t.Errorf("record: %+v", r)
		}
		last = r.Change.SequenceNumber
	}
	if s := strings.Join(got, ", "); s != "INSERT a, MODIFY a, INSERT timer, REMOVE a, REMOVE timer" {
		t.Errorf("records: %s", s)
	}
	if r := event.Records[1]; r.Change.OldImage["n"].Number() != "1" || r.Change.NewImage["n"].Number() != "2" || r.UserIdentity != nil {
		t.Errorf("modify: %+v", r)
	}
	if r := event.Records[4]; r.UserIdentity == nil || r.UserIdentity.Type != "Service" || r.UserIdentity.PrincipalID != "dynamodb.amazonaws.com" || !bytes.Equal(r.Change.OldImage["body"].Binary(), []byte{0, 255}) || r.Change.NewImage != nil {
		t.Errorf("removal by time to live: %+v", r)
	}
}

func TestLog(t *testing.T) {
	e := memory.New(memory.Options{LogSize: 5})
	tb := e.Table(memory.Main)
	_, err := tb.Put(t.Context(), store.Put{Item: item("p", "a", 1), Cond: store.NotThere()})
	must(t, err)
	_, err = tb.Put(t.Context(), store.Put{Item: item("p", "a", 1), Cond: store.All{store.Eq("n", store.N(2)), store.Any{store.Contains{Attr: "s", Value: "x"}, store.Not{Cond: store.There()}}}})
	if err == nil {
		t.Fatal("a condition that does not hold")
	}
	_, _, err = tb.Get(t.Context(), store.Get{Key: key("p", "a"), Consistent: true})
	must(t, err)
	_, _, err = tb.Query(t.Context(), store.Query{PK: "p", Prefix: "a"})
	must(t, err)
	putObject(t, e, "o", "hello")
	raw, err := json.Marshal(e.Log())
	must(t, err)
	want := `[{"call":"put","key":"p/a","bytes":9,"read_units":0,"write_units":1,"condition":"attribute_not_exists(pk)","consistent":false,"outcome":"ok"},` +
		`{"call":"put","key":"p/a","bytes":0,"read_units":0,"write_units":1,"condition":"(n = 2 AND (contains(s, \"x\") OR NOT (attribute_exists(pk))))","consistent":false,"outcome":"condition_failed"},` +
		`{"call":"get","key":"p/a","bytes":9,"read_units":1,"write_units":0,"consistent":true,"outcome":"ok"},` +
		`{"call":"query","key":"p/a","bytes":9,"read_units":0.5,"write_units":0,"consistent":false,"outcome":"ok"},` +
		`{"call":"put_object","key":"o","bytes":5,"read_units":0,"write_units":0,"consistent":true,"outcome":"ok"}]`
	if string(raw) != want {
		t.Errorf("log:\n%s\nwant\n%s", raw, want)
	}
	// The ring keeps the latest, oldest first.
	for i := range int64(3) {
		_, err := tb.Put(t.Context(), store.Put{Item: item("p", fmt.Sprint(i), i)})
		must(t, err)
	}
	var keys []string
	for _, c := range e.Log() {
		keys = append(keys, c.Key)
	}
	if got := strings.Join(keys, " "); got != "p/a o p/0 p/1 p/2" {
		t.Errorf("ring: %s", got)
	}
	e.Mark()
	if len(e.Log()) != 0 {
		t.Error("a mark leaves nothing")
	}
}

func TestObjectFaults(t *testing.T) {
	e := memory.New(memory.Options{})
	b := e.Bucket()
	putObject(t, e, "a", "x")
	putObject(t, e, "b", "y")
	setFaults(t, e, memory.Fault{On: "get_object", Match: "a", Effect: "not_found"}, memory.Fault{On: "head_object", Effect: "not_found"},
		memory.Fault{On: "list_objects", Effect: "page_1", Count: 10}, memory.Fault{On: "delete_objects", Effect: "unprocessed"}, memory.Fault{On: "put_object", Effect: "landed"})
	_, _, _, err := b.Get(t.Context(), store.GetObject{Key: "a"})
	_, _, err2 := b.Head(t.Context(), "b")
	if store.KindOf(err) != store.NotFound || store.KindOf(err2) != store.NotFound {
		t.Errorf("not_found: %v, %v", err, err2)
	}
	page, _, err := b.List(t.Context(), store.ListObjects{})
	must(t, err)
	if len(page.Objects) != 1 || page.Cursor == "" {
		t.Errorf("page_1: %+v", page)
	}
	versions := []store.ObjectVersion{{Key: "a", VersionID: page.Objects[0].VersionID}}
	failed, _, err := b.Delete(t.Context(), versions)
	must(t, err)
	if len(failed) != 1 || readObject(t, e, "a") != "x" {
		t.Errorf("unprocessed: %v", failed)
	}
	_, err = b.Put(t.Context(), store.PutObject{Key: "c", SHA256: sha256.Sum256(nil)})
	if store.KindOf(err) != store.Unavailable || !store.Ambiguous(err) || readObject(t, e, "c") != "" {
		t.Errorf("landed: %v", err)
	}
}

func TestUnits(t *testing.T) {
	for _, count := range []bool{false, true} {
		e := memory.New(memory.Options{CountIndexWrites: count})
		tb := e.Table(memory.Main)
		x := store.Indexes[0]
		it := item("p", "head", 1)
		it[x.PK], it[x.SK], it["body"] = store.S("i"), store.S("1"), store.B(make([]byte, 1500))
		put := func(want, withIndex float64) {
			t.Helper()
			m, err := tb.Put(t.Context(), store.Put{Item: it})
			must(t, err)
			if count {
				want += withIndex
			}
			if m.WriteUnits != want {
				t.Errorf("indexes counted %v: %v units, want %v", count, m.WriteUnits, want)
			}
		}
		put(2, 2) // new in the index
		it[x.SK] = store.S("2")
		put(2, 4) // moved: out and in
		delete(it, "body")
		delete(it, x.PK)
		put(2, 2) // the larger of old and new; out of the index
		put(1, 0)
	}
}

func TestMeterAddsUp(t *testing.T) {
	e := memory.New(memory.Options{})
	tb, b := store.Metered(e.Table(memory.Main)), store.MeteredBucket(e.Bucket())
	var m store.Meter
	ctx := store.WithMeter(t.Context(), &m)
	_, err := tb.Put(ctx, store.Put{Item: item("p", "a", 1)})
	must(t, err)
	_, err = tb.Put(ctx, store.Put{Item: item("p", "a", 1), Cond: store.NotThere()})
	if err == nil {
		t.Fatal("created twice")
	}
	_, err = tb.Transact(ctx, store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item("p", "b", 1)}}, {Check: &store.Check{Key: key("p", "a"), Cond: store.There()}}}})
	must(t, err)
	_, _, err = tb.Get(ctx, store.Get{Key: key("p", "a"), Consistent: true})
	must(t, err)
	_, _, err = tb.Query(ctx, store.Query{PK: "p"})
	must(t, err)
	_, _, err = b.Head(ctx, "none")
	if err == nil {
		t.Fatal("an object that is not there")
	}
	_, _, err = b.List(ctx, store.ListObjects{})
	must(t, err)
	want := store.Cost{Reads: 2, Writes: 3, ReadUnits: 2 + 1 + 0.5, WriteUnits: 1 + 1 + 2, ObjectRequests: 2}
	if got := store.CostOf(ctx); got != want {
		t.Errorf("cost %+v, want %+v", got, want)
	}
	if got := store.CostOf(t.Context()); got != (store.Cost{}) {
		t.Errorf("cost without a meter: %+v", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	e := memory.New(memory.Options{LogSize: 100})
	tb := e.Table(memory.Main)
	var wg sync.WaitGroup
	for w := range int64(16) {
		wg.Go(func() {
			for i := range int64(200) {
				_, err := tb.Put(t.Context(), store.Put{Item: item(fmt.Sprint("p", w%4), fmt.Sprint(w, "/", i), i)})
				if err != nil {
					t.Error(err)
				}
				switch i % 20 {
				case 0:
					e.Log()
					e.TakeRecords(50)
				case 1:
					_ = e.Advance(time.Millisecond)
				case 2:
					putObject(t, e, fmt.Sprint(w, "/", i), "x")
				case 3:
					_, _, _ = tb.Query(t.Context(), store.Query{PK: fmt.Sprint("p", w%4)})
				case 4:
					e.Dump()
				}
			}
		})
	}
	wg.Wait()
	if tb.Len() != 3200 {
		t.Errorf("%d items", tb.Len())
	}
}

func TestTTLLate(t *testing.T) {
	t.Parallel()
	late := map[string]time.Duration{"a": 48 * time.Hour, "b": 0, "c": time.Hour}
	e := memory.New(memory.Options{TTLLate: func(k store.Key, _ int64) time.Duration { return late[k.SK] }})
	tb := e.Table(memory.Main)
	for sk := range late {
		_, err := tb.Put(t.Context(), store.Put{Item: store.Item{"pk": store.S("p"), "sk": store.S(sk), "ttl": store.N(e.Now().Unix() + 60)}})
		must(t, err)
	}
	for _, step := range []struct {
		by   time.Duration
		gone string
	}{{59 * time.Second, ""}, {time.Second, "b"}, {time.Hour, "c"}, {46 * time.Hour, ""}, {time.Hour, "a"}} {
		e.TakeRecords(0)
		must(t, e.Advance(step.by))
		gone := ""
		for _, r := range e.TakeRecords(0) {
			gone += r.Key.SK
		}
		if gone != step.gone {
			t.Errorf("after %v more: %q went, not %q", step.by, gone, step.gone)
		}
	}
}

func TestSharedItems(t *testing.T) {
	t.Parallel()
	e := memory.New(memory.Options{ShareItems: true})
	tb := e.Table(memory.Main)
	_, err := tb.Put(t.Context(), store.Put{Item: store.Item{"pk": store.S("p"), "sk": store.S("s"), "n": store.N(1)}})
	must(t, err)
	it, _, err := tb.Get(t.Context(), store.Get{Key: key("p", "s")})
	must(t, err)
	_, _, err = tb.Update(t.Context(), store.Update{Key: key("p", "s"), Actions: []store.Action{store.Add{Attr: "n", N: 1}}})
	must(t, err)
	if it.Int("n") != 1 || !e.Untouched() {
		t.Errorf("a write changed what a reader has: %v", it)
	}
	it, _, err = tb.Get(t.Context(), store.Get{Key: key("p", "s")})
	must(t, err)
	if it["n"] = store.N(7); e.Untouched() {
		t.Error("a reader changed an item, and nobody noticed")
	}
}
