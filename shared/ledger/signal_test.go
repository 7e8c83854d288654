package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func (w *world) signal(id, name, key, body string) *api.SignalRequest {
	r := &api.SignalRequest{Common: w.common(), Execution: execution.ExecutionID(id), Name: name, Key: key}
	r.Actor = &api.Actor{Kind: "human", ID: "alice"}
	if body != "" {
		r.Body = jsonx.MustParse(body)
	}
	return identified(r)
}

func (w *world) send(r *api.SignalRequest) *api.SignalReply {
	w.t.Helper()
	out, err := w.Ledger.Signal(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("signal: %v", err)
	}
	return out
}

func TestSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	bodies := map[string]string{"a": `{"n":1.0}`, "b": `null`, "c": "", "d": `"\ud83d\u0000"`}
	for key, body := range bodies {
		if r := w.send(w.signal("e", "answer", key, body)); !r.Recorded || r.Replayed {
			t.Errorf("%s: %+v", key, r)
		}
		if r := w.send(w.signal("e", "answer", key, body)); r.Recorded || !r.Replayed {
			t.Errorf("%s again: %+v", key, r)
		}
		for other, b := range bodies {
			if other != key {
				_, err := w.Ledger.Signal(t.Context(), w.signal("e", "answer", key, b))
				refused(t, err, execution.RequestMismatch, "key")
			}
		}
	}
	_, err := w.Ledger.Signal(t.Context(), w.signal("e", "answer", "a", `{"n":1}`))
	refused(t, err, execution.RequestMismatch, "key") // every token counts
	w.send(w.signal("e", "an", "z", `1`))
	s := w.where("e")
	inbox, err := w.Ledger.Inbox(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, it := range inbox.Open {
		seen = append(seen, it.Name+"/"+it.Key+"="+text(it.Body))
		if it.At == 0 || it.Actor == nil || it.Actor.ID != "alice" {
			t.Errorf("%+v", it)
		}
	}
	if got := strings.Join(seen, " "); got != `an/z=1 answer/a={"n":1.0} answer/b=null answer/c=absent answer/d="\ud83d\u0000"` {
		t.Errorf("inbox: %s", got)
	}
	// Absorbed, emptied, forgotten; a duplicate is still a replay.
	w.apply("e", func(r *api.ApplyRequest) { r.Absorb = []api.SignalRef{{Name: "answer", Key: "a"}} })
	s = w.where("e")
	inbox, err = w.Ledger.Inbox(t.Context(), s)
	if err != nil || len(inbox.Open) != 4 || len(inbox.StillFull) != 0 || len(inbox.Empty) != 1 || inbox.Empty[0].Key != "a" {
		t.Errorf("after absorbing: %+v, %v", inbox, err)
	}
	it, _, _ := w.engine.Table(memory.Main).Get(t.Context(), store.Get{Key: journal.SignalItemKey("bank#e", s.Generation, "answer", "a"), Consistent: true})
	if it.Has("b") || it.Int(store.AttrTTL) != w.engine.Now().Add(30*24*time.Hour).Unix() {
		t.Errorf("emptied item: %v", it)
	}
	if r := w.send(w.signal("e", "answer", "a", `{"n":1.0}`)); r.Recorded || !r.Replayed {
		t.Errorf("after absorption: %+v", r)
	}
	_, err = w.Ledger.Signal(t.Context(), w.signal("e", "answer", "a", `2`))
	refused(t, err, execution.RequestMismatch, "key")
	for i, refs := range [][]execution.SignalRef{{{Name: "answer", Key: "a"}}, {{Name: "answer", Key: "none"}}, {{Name: "answer", Key: "b"}, {Name: "answer", Key: "b"}}} {
		_, err := w.Ledger.Signals(t.Context(), s, refs)
		refused(t, err, execution.InvalidRequest, fmt.Sprintf("absorb[%d]", i/2))
	}
}

// A signal whose writing was not heard of is its sender's own: recorded, not a repeat.
func TestSignalRecognisesItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	w.faults(memory.Fault{On: "put", Match: journal.SignalPrefix, Effect: "landed"})
	if r := w.send(w.signal("e", "doc", "1", `{"n":1}`)); !r.Recorded || r.Replayed {
		t.Errorf("%+v", r)
	}
	w.faults()
	if r := w.send(w.signal("e", "doc", "1", `{"n":1}`)); r.Recorded || !r.Replayed {
		t.Errorf("once more: %+v", r)
	}
}

func TestSignalRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	w.send(w.signal("e", "before", "k", `1`))
	for name, r := range map[string]*api.SignalRequest{"unknown": w.signal("none", "a", "k", "1"), "foreign": func() *api.SignalRequest {
		r := w.signal("e", "a", "k", "1")
		r.Tenant = "other"
		return r
	}()} {
		_, err := w.Ledger.Signal(t.Context(), r)
		if execution.CodeOf(err) != execution.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.Ledger.Signal(t.Context(), w.signal("e", "a", "k", `"`+strings.Repeat("x", 256<<10)+`"`))
	refused(t, err, execution.TooLarge, "body")
	w.apply("e", func(r *api.ApplyRequest) {
		r.Then = &api.Then{Complete: &api.Completion{Outcome: execution.StatusCompleted}}
	})
	_, err = w.Ledger.Signal(t.Context(), w.signal("e", "after", "k", `1`))
	refused(t, err, execution.ExecutionClosed, "")
	if r := w.send(w.signal("e", "before", "k", `1`)); !r.Replayed {
		t.Errorf("what came before the end: %+v", r)
	}
}

func TestSignalWakes(t *testing.T) {
	t.Parallel()
	everyFault(t, []string{"get", "put", "update", "query"}, func(t *testing.T, f memory.Fault) {
		w := newWorld(t)
		w.claimed("e")
		w.apply("e", func(r *api.ApplyRequest) { r.Then = &api.Then{Suspend: &api.Wait{Signals: []string{"answer"}}} })
		if w.head("e").Int(journal.HeadDue) <= w.engine.Now().UnixMilli() {
			t.Fatal("due before anything came")
		}
		w.restart()
		w.faults(f)
		_, err := attempt(t, func(ctx context.Context) (*api.SignalReply, error) {
			return w.Ledger.Signal(ctx, w.signal("e", "answer", "k", `1`))
		})
		if err != nil && !execution.CodeOf(err).Retryable() {
			t.Fatalf("not retryable: %v", err)
		}
		w.faults()
		w.restart()
		w.send(w.signal("e", "answer", "k", `1`))
		if inbox, err := w.Ledger.Inbox(t.Context(), w.where("e")); err != nil || len(inbox.Open) != 1 {
			t.Errorf("inbox %+v, %v", inbox, err)
		}
		if head := w.head("e"); head.Int(journal.HeadDue) > w.engine.Now().UnixMilli() || head.Str(journal.HeadDueKind) != journal.DueSignal {
			t.Errorf("not due: %d %s", head.Int(journal.HeadDue), head.Str(journal.HeadDueKind))
		}
	})
}

// Sixteen senders of two bodies under one key: one body stands.
func TestSignalRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for i := range 16 {
		p := w.process()
		wg.Go(func() {
			r, err := p.Ledger.Signal(context.Background(), w.signal("e", "answer", "k", fmt.Sprint(i%2)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && r.Recorded:
				counts["first"]++
			case err == nil:
				counts["replay"]++
			default:
				counts[string(execution.CodeOf(err))]++
			}
		})
	}
	wg.Wait()
	if counts["first"] != 1 || counts["replay"] != 7 || counts["RequestMismatch"] != 8 {
		t.Errorf("%v", counts)
	}
}

// The inbox takes 5,000 and no more, replays are still answered, and there is
// room again after absorption.
func TestInboxBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	ref := w.where("e").Ref
	// All but the last few come from elsewhere, written without this process.
	for i := range execution.MaxUnabsorbedSignals - 100 {
		k := journal.SignalItemKey(ref.PK(), ref.Generation, "a", fmt.Sprint("x", i))
		if _, err := w.engine.Table(memory.Main).Put(t.Context(), store.Put{Item: store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "b": store.B([]byte("sealed"))}}); err != nil {
			t.Fatal(err)
		}
	}
	taken := 0
	for i := range 300 {
		_, err := w.Ledger.Signal(t.Context(), w.signal("e", "a", fmt.Sprint(i), `1`))
		if err == nil {
			taken++
			continue
		}
		refused(t, err, execution.TooLarge, "")
		if limit := execution.AsError(err).Facts["limit"]; limit != execution.MaxUnabsorbedSignals {
			t.Errorf("limit %v", limit)
		}
		break
	}
	if taken != 100 {
		t.Errorf("%d of 100 taken", taken)
	}
	if r := w.send(w.signal("e", "a", "7", `1`)); !r.Replayed {
		t.Errorf("a replay at a full inbox: %+v", r)
	}
	if err := w.Ledger.Empty(t.Context(), ref, []execution.SignalRef{{Name: "a", Key: "7"}}); err != nil {
		t.Fatal(err)
	}
	w.send(w.signal("e", "a", "new", `1`))
	_, err := w.Ledger.Signal(t.Context(), w.signal("e", "a", "newer", `1`))
	refused(t, err, execution.TooLarge, "")
}

func TestCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claimed("e")
	op := w.declare("e", api.OperationDeclaration{})
	if op.Callback == "" {
		t.Fatal("no callback")
	}
	ref := w.where("e").Ref
	got, err := w.Ledger.ParseCallback(t.Context(), w.tenant, op.Callback)
	if err != nil || got.Ref != ref || got.Operation != op.Operation || got.Attempt != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	// Altered in any character, cut, another tenant's: the same refusal.
	bad := []string{"", "A", op.Callback[1:], op.Callback[:len(op.Callback)-1], op.Callback + "A", strings.Repeat("A", 200)}
	for i := range op.Callback {
		c := byte('A')
		if op.Callback[i] == c {
			c = 'B'
		}
		bad = append(bad, op.Callback[:i]+string(c)+op.Callback[i+1:])
	}
	for _, h := range bad {
		_, err := w.Ledger.ParseCallback(t.Context(), w.tenant, h)
		refused(t, err, execution.InvalidRequest, "callback")
	}
	_, err = w.Ledger.ParseCallback(t.Context(), "other", op.Callback)
	refused(t, err, execution.InvalidRequest, "callback")

	use := func(o execution.Outcome, change func(*api.RecordOutcomeRequest)) (*api.RecordOutcomeReply, error) {
		r := &api.RecordOutcomeRequest{Common: w.common(), Callback: op.Callback, Outcome: o}
		if change != nil {
			change(r)
		}
		return w.Ledger.RecordOutcome(t.Context(), identified(r))
	}
	for field, change := range map[string]func(*api.RecordOutcomeRequest){"execution": func(r *api.RecordOutcomeRequest) { r.Execution = "x" },
		"operation": func(r *api.RecordOutcomeRequest) { r.Operation = "x" }, "attempt": func(r *api.RecordOutcomeRequest) { r.Attempt = 2 }} {
		_, err := use(execution.OutcomeSucceeded, change)
		refused(t, err, execution.InvalidRequest, field)
	}
	if r, err := use(execution.OutcomeInProgress, nil); err != nil || !r.Recorded {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := use(execution.OutcomeInProgress, nil); err != nil {
		t.Errorf("the same again: %v", err)
	}
	_, err = use(execution.OutcomeSucceeded, nil)
	refused(t, err, execution.RequestMismatch, "")
	signal := func(cb, body string) error {
		r := w.signal("", "answer", "k", body)
		r.Callback = cb
		_, err := w.Ledger.Signal(t.Context(), identified(r))
		return err
	}
	refused(t, signal(op.Callback, `1`), execution.RequestMismatch, "")

	// A signal uses one up too, and then it records nothing else.
	two := w.declare("e", api.OperationDeclaration{Key: "two"})
	for range 2 {
		if err := signal(two.Callback, `1`); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, signal(two.Callback, `2`), execution.RequestMismatch, "")
	op = two
	_, err = use(execution.OutcomeSucceeded, nil)
	refused(t, err, execution.RequestMismatch, "")
	// The plain way is still open.
	if r := w.record(w.outcome("e", two.Operation, execution.OutcomeSucceeded, "")); !r.Recorded {
		t.Errorf("%+v", r)
	}
	// An outcome that had come another way uses it up all the same.
	three := w.declare("e", api.OperationDeclaration{Key: "three"})
	w.record(w.outcome("e", three.Operation, execution.OutcomeSucceeded, `1`))
	op = three
	if r, err := use(execution.OutcomeSucceeded, func(r *api.RecordOutcomeRequest) { r.Result = jsonx.MustParse(`1`) }); err != nil || r.Recorded || !r.Replayed {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = use(execution.OutcomeFailed, nil)
	refused(t, err, execution.RequestMismatch, "")
	// A contradiction through a callback is kept once.
	four := w.declare("e", api.OperationDeclaration{Key: "four"})
	w.record(w.outcome("e", four.Operation, execution.OutcomeSucceeded, `1`))
	op = four
	for range 2 {
		if r, err := use(execution.OutcomeFailed, nil); err != nil || len(r.Ledger.Contradictions) == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	_, err = use(execution.OutcomeRejected, nil)
	refused(t, err, execution.RequestMismatch, "")
}

// FuzzCallback: nothing but our own handles parses, and nothing panics.
func FuzzCallback(f *testing.F) {
	w := newWorld(f)
	ref := execution.Ref{Tenant: w.tenant, Execution: "e", Generation: 7}
	good, err := w.Ledger.Callback(context.Background(), ref, "0123456789abcdef0123456789abcdef", 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("")
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, handle string) {
		got, err := w.Ledger.ParseCallback(context.Background(), w.tenant, handle)
		if (err == nil) != (handle == good) || err == nil && got.Ref != ref {
			t.Errorf("%q: %+v, %v", handle, got, err)
		}
	})
}
