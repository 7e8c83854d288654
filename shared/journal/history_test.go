package journal

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// querying runs something right before the n-th query.
type querying struct {
	store.Table
	n  int
	do func()
}

func (q *querying) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	if q.n--; q.n == 0 {
		q.do()
	}
	return q.Table.Query(ctx, in)
}

// batching runs something right before a batch is read.
type batching struct {
	store.Table
	do func()
}

func (b *batching) BatchGet(ctx context.Context, keys []store.Key, consistent bool) ([]store.Item, []store.Key, store.Meta, error) {
	b.do()
	return b.Table.BatchGet(ctx, keys, consistent)
}

// head changes an execution's head behind the journal's back.
func (w *world) head(pk string, f func(it store.Item)) {
	it := maps.Clone(w.items(pk)[SKHead])
	f(it)
	w.put(it)
}

// A version that goes away under its reader: what happened is the answer, and
// damage only where nothing happened.
func TestAtUnderTheReader(t *testing.T) {
	t.Parallel()
	take := func(w *world, versions ...int64) {
		for _, v := range versions {
			w.remove("acme#e", EntryKey("", v).SK)
		}
	}
	floor := func(n int64) func(it store.Item) { return func(it store.Item) { it[HeadFloor] = store.N(n) } }
	tests := map[string]struct {
		do   func(w *world, ref execution.Ref)
		code execution.Code
		fact string
	}{
		"nothing":                 {func(*world, execution.Ref) {}, "", ""},
		"pruned":                  {func(w *world, _ execution.Ref) { take(w, 1, 2); w.head("acme#e", floor(3)) }, execution.HistoryPruned, "floor"},
		"taken away":              {func(w *world, _ execution.Ref) { take(w, 1, 2) }, execution.Integrity, ""},
		"taken away at the floor": {func(w *world, _ execution.Ref) { take(w, 1, 2); w.head("acme#e", floor(2)) }, execution.Integrity, ""},
		"only it is taken away":   {func(w *world, _ execution.Ref) { take(w, 2) }, execution.Integrity, ""},
		"another life's floor": {func(w *world, _ execution.Ref) {
			take(w, 1, 2)
			w.head("acme#e", func(it store.Item) { it[HeadGeneration], it[HeadFloor] = store.N(5), store.N(3) })
		}, execution.Deleted, "generation"},
		"being deleted": {func(w *world, _ execution.Ref) {
			take(w, 1, 2)
			w.head("acme#e", func(it store.Item) { it[HeadStatus] = store.S(string(execution.StatusDeleting)) })
		}, execution.Deleted, "in_progress"},
		"gone": {func(w *world, _ execution.Ref) { take(w, 1, 2); w.remove("acme#e", SKHead) }, execution.NotFound, ""},
		"deleted": {func(w *world, ref execution.Ref) {
			take(w, 1, 2)
			w.remove("acme#e", SKHead)
			k := ReceiptKey("acme#e", ref.Generation)
			w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadGeneration: store.N(ref.Generation), ReceiptState: store.S(ReceiptDeleted)})
		}, execution.Deleted, "generation"},
	}
	for name, tt := range tests {
		w := newWorld(t)
		w.snapshot = 1
		hs := long(w, w.process(), "e", 4)
		j := w.process()
		j.Table = &querying{j.Table, 2, func() { tt.do(w, hs[0].State.Ref) }}
		h, err := j.At(context.Background(), tenant, "e", 2)
		if execution.CodeOf(err) != tt.code || tt.fact != "" && execution.AsError(err).Facts[tt.fact] == nil {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
		if err == nil && (h.State.Version != 2 || h.Head == nil) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// Below a damaged end what is whole stays readable, and nothing else.
func TestAtBeneathDamage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do      func(w *world)
		version int64
		code    execution.Code
	}{
		"below":             {func(*world) {}, 2, ""},
		"the end":           {func(*world) {}, 5, execution.Integrity},
		"beyond":            {func(*world) {}, 6, execution.Integrity},
		"before the first":  {func(*world) {}, 0, execution.Integrity},
		"below the floor":   {func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadFloor] = store.N(3) }) }, 2, execution.Integrity},
		"at the floor":      {func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadFloor] = store.N(2) }) }, 2, ""},
		"before its first":  {func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadFirst] = store.N(3) }) }, 2, execution.Integrity},
		"archived":          {func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadStatus] = store.S("archived") }) }, 2, execution.Integrity},
		"another life":      {func(w *world) { w.head("acme#e", func(it store.Item) { it[HeadGeneration] = store.N(5) }) }, 2, execution.Integrity},
		"taken away, too":   {func(w *world) { w.remove("acme#e", EntryKey("", 2).SK) }, 2, execution.Integrity},
		"all taken away":    {func(w *world) { w.remove("acme#e", EntryKey("", 1).SK); w.remove("acme#e", EntryKey("", 2).SK) }, 2, execution.Integrity},
		"damaged there too": {func(w *world) { broken(w, 2) }, 2, execution.Integrity},
	}
	for name, tt := range tests {
		w := newWorld(t)
		w.snapshot = 1
		long(w, w.process(), "e", 4)
		broken(w, 5)
		tt.do(w)
		h, err := w.process().At(context.Background(), tenant, "e", tt.version)
		if execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", name, err, tt.code)
		}
		if err == nil && (h.State.Version != tt.version || h.Head == nil) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func broken(w *world, version int64) {
	it := maps.Clone(w.items("acme#e")[EntryKey("", version).SK])
	it[attrBody] = store.B([]byte("broken"))
	w.put(it)
}

// What is opened for a view belongs together: head, journal and slots are one
// life's.
func TestOpenWithSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	c := change(h, "d", `{}`)
	c.Operations = []execution.Declaration{{Name: "a"}, {Name: "b"}}
	if _, err := j.step(ctx, "e", c); err != nil {
		t.Fatal(err)
	}
	ops := w.open(j, "e").State.OperationsInOrder()
	for i, op := range ops {
		s := &Slot{Operation: op.ID, Attempt: 1, Generation: h.State.Generation - int64(i), Outcome: execution.OutcomeUnknown, At: 5}
		if _, _, err := j.FillSlot(ctx, h.State.Ref, s, FillOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	open := func(o OpenOptions) (*Handle, error) { return w.process().Open(ctx, tenant, "e", o) }
	got, err := open(OpenOptions{Head: true, Slots: true})
	if err != nil || got.Head == nil || len(got.Slots) != 1 || got.Slots[ops[0].ID] == nil {
		t.Fatalf("%+v %v", got, err)
	}
	// A slot that is none is damage.
	if all, err := j.ReadSlots(ctx, h.State.Ref, ops[0].ID); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	for _, sk := range []string{"#000000", "#x", "#", "#-00001"} {
		bad := store.Item{store.AttrPK: store.S("acme#e"), store.AttrSK: store.S(SlotPrefix + string(ops[1].ID) + sk), SlotGeneration: store.N(h.State.Generation)}
		w.put(bad)
		_, err = j.ReadSlots(ctx, h.State.Ref, ops[1].ID)
		wantCode(t, err, execution.Integrity)
		w.remove("acme#e", bad.Key().SK)
	}
	if !(&Slot{Nonce: []byte("n")}).Started() || !(&Slot{StartedAt: 1}).Started() || (&Slot{}).Started() {
		t.Error("what was started")
	}
	tip, _, err := j.ReadTip(ctx, h.State.Ref)
	if err != nil {
		t.Fatal(err)
	}
	// Closed between the journal and the head.
	was, k := maps.Clone(w.items("acme#e")[SKHead]), w.process()
	k.Table = &batching{k.Table, func() {
		w.head("acme#e", func(it store.Item) { it[HeadStatus] = store.S(string(execution.StatusDeleting)) })
		w.put(ClosingEntry(h.State.Ref, tip, 9))
	}}
	_, err = k.Open(ctx, tenant, "e", OpenOptions{Head: true, Slots: true})
	wantCode(t, err, execution.Deleted, "in_progress")
	w.remove("acme#e", EntryKey("", tip.Version+1).SK)
	w.put(was)
	w.head("acme#e", func(it store.Item) { it[HeadGeneration] = store.N(5) })
	for _, o := range []OpenOptions{{Head: true, Slots: true}, {Head: true}} {
		_, err = open(o)
		wantCode(t, err, execution.Integrity)
	}
	w.remove("acme#e", SKHead)
	_, err = open(OpenOptions{Head: true, Slots: true})
	wantCode(t, err, execution.NotFound)
}

// Memory is no answer for who has seen more.
func TestWarmAtLeast(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	w.apply(w.process(), h, "a", `{"n":1}`)
	for _, tt := range []struct {
		atLeast, version int64
		reads            string
	}{{1, 1, ""}, {2, 2, "query"}, {2, 2, ""}} {
		w.calls()
		got, err := j.Open(ctx, tenant, "e", OpenOptions{Warm: true, AtLeast: tt.atLeast})
		if reads := names(w.calls()); err != nil || got.State.Version != tt.version || reads != tt.reads {
			t.Errorf("at least %d: %+v after %q, %v", tt.atLeast, got, reads, err)
		}
	}
	if _, err := w.process().Open(ctx, tenant, "e", OpenOptions{AtLeast: 2}); err != nil {
		t.Error(err)
	}
}

// A snapshot says whose it is.
func TestSnapshotOfAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, f := range map[string]func(r *execution.Ref){"own": func(*execution.Ref) {}, "execution": func(r *execution.Ref) { r.Execution = "other" }, "tenant": func(r *execution.Ref) { r.Tenant = "other" }} {
		w := newWorld(t)
		j := w.process()
		h := w.create(j, "e", `{}`, "w1")
		c := change(h, "a", `{"n":1}`)
		p, err := execution.Propose(h.State, h.State.Ref, &c, execution.Environment{Now: j.Now(h)})
		if err != nil {
			t.Fatal(err)
		}
		snap, _ := execution.SnapshotOf(p.State)
		f(&snap.Ref)
		p.Entry.Body.Snapshot, p.Entry.Body.State, p.Entry.Body.Patch = snap, p.State.Data, nil
		s, _, err := j.seal(ctx, h, p.Entry)
		if err != nil {
			t.Fatal(err)
		}
		w.put(s.toItem("acme#e"))
		if _, err := w.process().Open(ctx, tenant, "e", OpenOptions{}); (err == nil) != (name == "own") || err != nil && execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A receipt that is past its time is gone, whether or not the store has removed
// it.
func TestReceiptsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := w.engine.Now()
	for i, tt := range []struct {
		expires int64
		code    execution.Code
	}{{0, execution.Deleted}, {now.UnixMilli() + 1, execution.Deleted}, {now.UnixMilli(), execution.NotFound}} {
		k := ReceiptKey("acme#e", 5)
		it := store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadGeneration: store.N(5), ReceiptState: store.S(ReceiptDeleted)}
		if tt.expires != 0 {
			it[HeadExpires] = store.N(tt.expires)
		}
		w.put(it)
		if _, err := w.process().Open(context.Background(), tenant, "e", OpenOptions{}); execution.CodeOf(err) != tt.code {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// What a hold keeps is not gone: also one on its thread.
func TestHeldIsNotGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	w.create(j, "e", `{}`, "")
	w.head("acme#e", func(it store.Item) { it[HeadExpires] = store.N(w.engine.Now().UnixMilli()) })
	head, _ := ParseHead(w.items("acme#e")[SKHead])
	now := w.engine.Now().UnixMilli()
	wantCode(t, j.Gone(ctx, head, now), execution.Deleted, "expired")
	if err := j.Gone(ctx, head, now-1); err != nil {
		t.Error(err)
	}
	w.faults(memory.Fault{On: "batch", Effect: "unavailable", Count: 9})
	wantCode(t, j.Gone(ctx, head, now), execution.Unavailable)
	w.faults(memory.Fault{On: "batch", Effect: "unprocessed", Count: 20})
	wantCode(t, j.Gone(ctx, head, now), execution.Throttled)
	w.faults()
	k := head.Holdsets()[0]
	w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadHolds: store.SS("h")})
	if err := j.Gone(ctx, head, now); err != nil {
		t.Errorf("held by its thread: %v", err)
	}
	if _, replayed, err := j.Create(ctx, creation("e", `{}`, "")); err != nil || !replayed {
		t.Errorf("%v %v", replayed, err)
	}
}

// Every failure of the store has its code.
func TestFail(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	for want, err := range map[execution.Code]error{execution.Unavailable: context.Canceled, execution.Internal: context.Background().Err(), execution.Held: execution.Errorf(execution.Held, "no")} {
		if err == nil {
			if Fail(nil, execution.Ref{}) != nil {
				t.Error("a failure of nothing")
			}
			continue
		}
		if got := execution.CodeOf(Fail(err, execution.Ref{Execution: "e"})); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	for kind, want := range map[store.ErrorKind]execution.Code{store.Throttled: execution.Throttled, store.Unavailable: execution.Unavailable, store.Stopped: execution.Unavailable, store.Conflict: execution.Unavailable,
		store.TooLate: execution.Unavailable, store.KeyTrouble: execution.KeyUnavailable, store.Denied: execution.KeyUnavailable, store.TooLarge: execution.TooLarge, store.Invalid: execution.Internal, store.NotFound: execution.Internal} {
		err := Fail(&store.Error{Kind: kind}, execution.Ref{Execution: "e"})
		if execution.CodeOf(err) != want || execution.AsError(err).Facts["execution"] != "e" {
			t.Errorf("%s: %v, want %s", kind, err, want)
		}
	}
	if got := Fail(ended.Err(), execution.Ref{}); execution.CodeOf(got) != execution.Unavailable {
		t.Error(got)
	}
}

// A page ends where a stub lies, or an entry of another life; anything else
// there is damage.
func TestEntriesEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		f    func(it store.Item)
		code execution.Code
	}{
		"whole":        {func(store.Item) {}, ""},
		"a stub":       {func(it store.Item) { it[attrKind] = store.S(KindStub); delete(it, attrBody) }, ""},
		"another life": {func(it store.Item) { it[attrGeneration] = store.N(5) }, ""},
		"no entry":     {func(it store.Item) { delete(it, attrPrev) }, execution.Integrity},
	} {
		w := newWorld(t)
		j := w.process()
		ref := long(w, j, "e", 4)[0].State.Ref
		it := maps.Clone(w.items("acme#e")[EntryKey("", 2).SK])
		tt.f(it)
		w.put(it)
		page, err := j.Entries(context.Background(), ref, 1, 5, true, 100)
		if execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[string]int{"whole": 5, "a stub": 3, "another life": 3}[name]; err == nil && len(page.Entries) != want {
			t.Errorf("%s: %d entries, want %d", name, len(page.Entries), want)
		}
	}
}
