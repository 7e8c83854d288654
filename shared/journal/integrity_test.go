package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// long makes an execution of n entries after its creation, whose snapshots only
// ride where the test wants.
func long(w *world, j *Journal, e execution.ExecutionID, n int) []*Handle {
	h := w.create(j, e, `{"text":"`+noise(rand.New(rand.NewPCG(1, 1)), 30_000)+`","n":0}`, "w1")
	out := []*Handle{h}
	for i := range n {
		h = w.apply(j, h, fmt.Sprint(e, i), fmt.Sprintf(`{"n":%d}`, i+1))
		out = append(out, h)
	}
	return out
}

func TestOpen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	hs := long(w, j, "e", 5)
	tip := hs[5]
	same(t, w.open(w.process(), "e"), tip)
	// Warm: no request, and it says that it is not fresh.
	w.calls()
	h, err := j.Open(ctx, tenant, "e", OpenOptions{Warm: true})
	if err != nil || h.Fresh || len(w.calls()) != 0 {
		t.Fatalf("%v fresh %v", err, h.Fresh)
	}
	same(t, h, tip)
	// Too old to justify a write: read again.
	w.advance(warmFor)
	h, err = j.Open(ctx, tenant, "e", OpenOptions{Warm: true})
	if c := w.calls(); err != nil || !h.Fresh || names(c) != "query" || c[0].Bytes > 1000 {
		t.Fatalf("%v fresh %v, %v", err, h.Fresh, c)
	}
	// Catching up with what another process wrote reads only that.
	k := w.process()
	next := w.apply(k, w.open(k, "e"), "more", `{"n":99}`)
	w.calls()
	h, err = j.Open(ctx, tenant, "e", OpenOptions{})
	if c := w.calls(); err != nil || names(c) != "query" || c[0].Bytes > 1500 {
		t.Fatalf("%v %v", err, c)
	}
	same(t, h, next)
	if len(h.Recent) == 0 || h.Recent[len(h.Recent)-1].Version != h.State.Version {
		t.Errorf("recent %v", h.Recent)
	}
	// A version that the caller has seen must be there.
	_, err = w.process().Open(ctx, tenant, "e", OpenOptions{AtLeast: next.State.Version + 1})
	wantCode(t, err, execution.Integrity, "version")
	// Nobody's id, and another tenant's.
	_, err = j.Open(ctx, tenant, "nope", OpenOptions{})
	wantCode(t, err, execution.NotFound)
	_, err2 := j.Open(ctx, "other", "e", OpenOptions{Head: true})
	wantCode(t, err2, execution.NotFound)
	if strings.ReplaceAll(err.Error(), "nope", "e") != err2.Error() {
		t.Errorf("another tenant's id answers otherwise: %v, %v", err, err2)
	}
	// A store that says no time is not believed.
	dateless := New(Options{Table: noDate{w.engine.Table(memory.Main)}, Bucket: w.engine.Bucket(), Sealer: w.sealer, Rand: &fixedRand{r: rand.NewChaCha8([32]byte{})}, Elapsed: func() time.Duration { return 0 }})
	_, err = dateless.Open(ctx, tenant, "e", OpenOptions{})
	wantCode(t, err, execution.Unavailable)
}

type noDate struct{ store.Table }

func (n noDate) Query(ctx context.Context, in store.Query) (store.Page, store.Meta, error) {
	p, m, err := n.Table.Query(ctx, in)
	m.Date = time.Time{}
	return p, m, err
}

// Chains longer than the first page, pages of one item, snapshots on the way.
func TestLongChains(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, firstPage - 2, firstPage - 1, firstPage, firstPage + 1, 3 * firstPage} {
		w := newWorld(t)
		j := w.process()
		hs := long(w, j, "e", n)
		same(t, w.open(w.process(), "e"), hs[n])
		w.faults(memory.Fault{On: "query", Count: 1000, Effect: "page_1"})
		same(t, w.open(w.process(), "e"), hs[n])
		same(t, w.open(j, "e"), hs[n])
		w.faults()
		w.calls()
		w.open(w.process(), "e")
		want := "get query"
		if n+1 > firstPage {
			want = "get query query"
		}
		if got := names(w.calls()); got != want {
			t.Errorf("%d entries: %s", n+1, got)
		}
		// Every version of the past.
		for v := int64(1); v <= int64(n+1); v += 7 {
			h, err := w.process().At(context.Background(), tenant, "e", v)
			if err != nil || asText(t, h) != asText(t, hs[v-1]) {
				t.Fatalf("version %d: %v", v, err)
			}
		}
	}
}

// The snapshot rides when as much was stored since the last one as it takes
// itself, or 256 KB.
func TestWhenASnapshotRides(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 3000} {
		w := newWorld(t)
		w.snapshot = limit
		j := w.process()
		r := rand.New(rand.NewPCG(1, 2))
		h := w.create(j, "e", `{"text":"`+noise(r, 8000)+`"}`, "w1")
		items := func() map[string]store.Item { return w.items(h.State.PK()) }
		size := func(v int64) int64 { return int64(items()[EntryKey("", v).SK].Size()) }
		snap, since, rode := size(1), int64(0), 0
		for i := range 120 {
			h = w.apply(j, h, fmt.Sprint(i), `{"last":"`+noise(r, 50+i*7)+`"}`)
			v := h.State.Version
			it := items()[EntryKey("", v).SK]
			has := it.Int(attrChain) == 0
			if want := since >= min(max(snap, minChain), int64(j.SnapshotBytes)); has != want {
				t.Fatalf("limit %d, version %d: snapshot %v, %d bytes since one of %d; handle %d of %d", limit, v, has, since, snap, h.chainBytes, h.snapBytes)
			}
			if has {
				snap, since = size(v), 0
				rode++
			} else {
				since += size(v)
			}
		}
		if rode < 3 {
			t.Errorf("%d snapshots", rode)
		}
		same(t, w.open(w.process(), "e"), h)
	}
}

// Bodies above the inline limit lie in the bucket, whatever made them large.
func TestOversizeBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.process()
	r := rand.New(rand.NewPCG(1, 2))
	h := w.create(j, "e", `{"text":"`+noise(r, 100<<10)+`"}`, "w1")
	h = w.apply(j, h, "a", `{"more":"`+noise(r, 50<<10)+`"}`)
	h = w.apply(j, h, "b", `{"n":1}`)
	big := value(`{"text":"` + noise(r, execution.MaxStateBytes-11) + `"}`)
	c := change(h, "c", `{}`)
	c.Merge, c.State = nil, big
	got, err := j.step(context.Background(), "e", c)
	if err != nil {
		t.Fatal(err)
	}
	fresh := w.open(w.process(), "e")
	same(t, fresh, got.Handle)
	if !bytes.Equal(fresh.State.Data.Bytes(), big.Bytes()) {
		t.Error("the state came back otherwise")
	}
	n := 0
	for sk, it := range w.items(h.State.PK()) {
		if it.Has(attrObject) {
			n++
		}
		if strings.HasPrefix(sk, EntryPrefix) && it.Size() > execution.MaxInlineBody+1000 {
			t.Errorf("%s has %d bytes", sk, it.Size())
		}
	}
	if n != 3 {
		t.Errorf("%d bodies in the bucket, want 3", n)
	}
}

// change of one attribute, by its kind.
func edited(v store.Value) store.Value {
	switch v.Kind {
	case store.KindN:
		n, _ := v.Int()
		return store.N(n + 1)
	case store.KindB:
		b := bytes.Clone(v.B)
		b[len(b)/2] ^= 1
		return store.B(b)
	}
	if v.S == string(execution.KindCheckpoint) {
		return store.S(string(execution.KindReconciled))
	}
	return store.S(v.S + "x")
}

// Every attribute of every entry changed, taken away, or as another entry has
// it; entries taken away and swapped: Integrity, for a process that starts, for
// one that catches up, and in the history. Nothing is ever read over.
func TestDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	build := func() (*world, []*Handle, *Journal, *Journal) {
		w := newWorld(t)
		w.inline = 12 << 10
		j := w.process()
		hs := long(w, j, "e", 2)
		warm := w.process() // knows versions 1 to 3
		w.open(warm, "e")
		h := w.apply(j, hs[2], "big", `{"big":"`+noise(rand.New(rand.NewPCG(3, 3)), 14<<10)+`"}`) // version 4, in the bucket
		h = w.apply(j, h, "last", `{"n":77}`)
		hs = append(hs, h)
		return w, hs, warm, j
	}
	w0, _, _, _ := build()
	items := w0.items("acme#e")
	rows := 0
	check := func(name string, damage func(w *world), version int64, codes ...execution.Code) {
		t.Helper()
		rows++
		if codes == nil {
			codes = []execution.Code{execution.Integrity}
		}
		w, _, warm, tip := build()
		damage(w)
		for who, j := range map[string]*Journal{"cold": w.process(), "catching up": warm, "at the tip": tip} {
			if who == "at the tip" && version < 5 || who == "catching up" && version < 3 {
				continue // what it has seen it need not see again
			}
			h, err := j.Open(ctx, tenant, "e", OpenOptions{})
			if !slices.Contains(codes, execution.CodeOf(err)) {
				t.Errorf("%s, %s: got version %v, %v", name, who, h, err)
			}
		}
		// And a writer is refused likewise, whatever it holds.
		c := execution.Change{Kind: execution.KindCheckpoint, Expected: 5, Fence: 1, HasFence: true, Merge: value(`{"n":1}`)}
		if got, err := w.process().step(ctx, "e", c); !slices.Contains(codes, execution.CodeOf(err)) {
			t.Errorf("%s: a write: %+v %v", name, got, err)
		}
		// History by an opened handle from before.
		if version <= 5 {
			wh, _, _, j := build()
			h := wh.open(j, "e")
			damage(wh)
			for _, newest := range []bool{true, false} {
				if page, err := j.History(ctx, h, 0, newest, 100); !slices.Contains(codes, execution.CodeOf(err)) {
					t.Errorf("%s: history (newest first %v): %d entries, %v", name, newest, len(page.Entries), err)
				}
			}
		}
	}
	for sk, it := range items {
		v, ok := EntryVersion(sk)
		if !ok {
			continue
		}
		for _, attr := range slices.Sorted(maps.Keys(it)) {
			if attr == store.AttrPK || attr == store.AttrSK {
				continue
			}
			write := func(val store.Value) func(w *world) {
				return func(w *world) {
					is := maps.Clone(w.items("acme#e")[sk])
					was := is[attr]
					if val.Kind == store.KindInvalid {
						delete(is, attr)
					} else if val.Kind == store.KindNULL {
						is[attr] = edited(was)
					} else {
						is[attr] = val
					}
					w.put(is)
				}
			}
			check(fmt.Sprintf("version %d: %s changed", v, attr), write(store.Value{Kind: store.KindNULL}), v)
			check(fmt.Sprintf("version %d: %s taken away", v, attr), write(store.Value{}), v)
			check(fmt.Sprintf("version %d: %s of another kind", v, attr), write(store.Bool(true)), v)
			for _, other := range []int64{2, 3, 5} {
				if o := items[EntryKey("", other).SK]; other != v && o.Has(attr) && !o[attr].Equal(it[attr]) {
					check(fmt.Sprintf("version %d: %s of version %d", v, attr, other), func(w *world) { write(w.items("acme#e")[EntryKey("", other).SK][attr])(w) }, v)
				}
			}
		}
		check(fmt.Sprintf("version %d: attributes that were never there", v), func(w *world) {
			is := maps.Clone(w.items("acme#e")[sk])
			if is.Has(attrFence) {
				delete(is, attrFence)
			} else {
				is[attrFence] = store.N(7)
			}
			w.put(is)
		}, v)
		if v < 5 {
			check(fmt.Sprintf("version %d taken away", v), func(w *world) { w.remove("acme#e", sk) }, v)
		}
	}
	swap := func(a, b int64) func(w *world) {
		return func(w *world) {
			x, y := maps.Clone(w.items("acme#e")[EntryKey("", a).SK]), maps.Clone(w.items("acme#e")[EntryKey("", b).SK])
			x[store.AttrSK], y[store.AttrSK] = y[store.AttrSK], x[store.AttrSK]
			w.put(x)
			w.put(y)
		}
	}
	check("versions 2 and 3 swapped", swap(2, 3), 3)
	check("versions 4 and 5 swapped", swap(4, 5), 5)
	check("no entry at all", func(w *world) {
		k := EntryKey("acme#e", 5)
		w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), "hello": store.S("world")})
	}, 5)
	check("something after the tip", func(w *world) {
		it := maps.Clone(w.items("acme#e")[EntryKey("", 5).SK])
		it[store.AttrSK] = store.S(EntryKey("", 6).SK)
		w.put(it)
	}, 6)
	check("a stub under a living head", func(w *world) {
		k := EntryKey("acme#e", 5)
		w.put(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), attrKind: store.S(KindStub)})
	}, 5)
	object := func(f func(w *world, key string)) func(w *world) {
		return func(w *world) {
			page, _, err := w.engine.Bucket().List(ctx, store.ListObjects{Prefix: fmt.Sprintf("%sjournal/%020d-", ObjectPrefix(execution.Ref{Tenant: tenant, Execution: "e", Generation: w.start.UnixMilli()}), 4)})
			if err != nil || len(page.Objects) != 1 {
				t.Fatalf("%d objects, %v", len(page.Objects), err)
			}
			if _, _, err := w.engine.Bucket().Delete(ctx, []store.ObjectVersion{{Key: page.Objects[0].Key, VersionID: page.Objects[0].VersionID}}); err != nil {
				t.Fatal(err)
			}
			f(w, page.Objects[0].Key)
		}
	}
	putObject := func(w *world, key string, b []byte) {
		if _, err := w.engine.Bucket().Put(ctx, store.PutObject{Key: key, Body: bytes.NewReader(b), Bytes: int64(len(b)), SHA256: sha256.Sum256(b)}); err != nil {
			t.Fatal(err)
		}
	}
	body := func(w *world) int64 { return w.items("acme#e")[EntryKey("", 4).SK].Int(attrObjectSize) }
	check("the object is missing", object(func(w *world, key string) {}), 4)
	check("the object is empty", object(func(w *world, key string) { putObject(w, key, nil) }), 4)
	check("the object has other bytes", object(func(w *world, key string) { putObject(w, key, make([]byte, body(w))) }), 4)
	t.Logf("%d kinds of damage", rows)
}

// Bytes of one place are of no use in another: tenants, executions, versions,
// kinds, generations.
func TestSwapsBetweenPlaces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	mine := long(w, j, "e", 3)
	long(w, j, "other", 3)
	c := creation("e", `{"text":"theirs","n":0}`, "w1")
	c.Tenant = "rival"
	if _, _, err := j.Create(ctx, c); err != nil {
		t.Fatal(err)
	}
	// A slot of the same sealed form.
	s := &Slot{Operation: "0123456789abcdef0123456789abcdef", Attempt: 1, Generation: mine[0].State.Generation, Outcome: execution.OutcomeSucceeded, At: 5, Reason: "r"}
	if _, _, err := j.FillSlot(ctx, mine[0].State.Ref, s, FillOptions{}); err != nil {
		t.Fatal(err)
	}
	sk := EntryKey("", 4).SK
	keep := w.items("acme#e")[sk]
	foreign := map[string]store.Item{
		"another execution's": w.items("acme#other")[sk],
		"another tenant's":    w.items("rival#e")[EntryKey("", 1).SK],
	}
	for name, it := range foreign {
		x := maps.Clone(it)
		x[store.AttrPK], x[store.AttrSK] = store.S("acme#e"), store.S(sk)
		w.put(x)
		_, err := w.process().Open(ctx, tenant, "e", OpenOptions{})
		wantCode(t, err, execution.Integrity, "execution")
		// Only its body, under our own attributes.
		y := maps.Clone(keep)
		y[attrBody] = it[attrBody]
		w.put(y)
		if _, err := w.process().Open(ctx, tenant, "e", OpenOptions{}); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s body: %v", name, err)
		}
	}
	z := maps.Clone(keep)
	slotItem := w.items("acme#e")[SlotKey("", s.Operation, 1).SK]
	z[attrBody] = slotItem[SlotBody]
	w.put(z)
	_, err := w.process().Open(ctx, tenant, "e", OpenOptions{})
	wantCode(t, err, execution.Integrity)
	w.put(keep)
	same(t, w.open(w.process(), "e"), mine[3])
	// Slots: another attempt's, another outcome, another generation.
	for name, f := range map[string]func(it store.Item){
		"outcome": func(it store.Item) { it[SlotOutcome] = store.S(string(execution.OutcomeFailed)) },
		"time":    func(it store.Item) { it[SlotAt] = store.N(6) },
		"attempt": func(it store.Item) { it[store.AttrSK] = store.S(SlotKey("", s.Operation, 2).SK) },
		"entry":   func(it store.Item) { it[SlotBody] = keep[attrBody] },
		"no body": func(it store.Item) { delete(it, SlotBody) },
	} {
		x := maps.Clone(slotItem)
		f(x)
		w.remove("acme#e", SlotKey("", s.Operation, 1).SK)
		w.put(x)
		if _, err := j.ReadSlots(ctx, mine[0].State.Ref, s.Operation); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("slot, %s: %v", name, err)
		}
		w.remove("acme#e", x.Key().SK)
	}
	x := maps.Clone(slotItem)
	x[SlotGeneration] = store.N(7)
	w.put(x)
	if got, err := j.ReadSlots(ctx, mine[0].State.Ref, s.Operation); err != nil || len(got) != 0 {
		t.Errorf("another generation's slot counts: %v %v", got, err)
	}
}

// An entry that was sealed for this very place, but is not the one that the next
// names: a rival's that lost, or one from another copy of the table.
func TestEntryOfAnotherPast(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	hs := long(w, j, "e", 3)
	c := change(hs[1], "rival", `{"n":"rival"}`)
	p, err := execution.Propose(hs[1].State, hs[1].State.Ref, &c, execution.Environment{Now: j.Now(hs[1])})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := j.seal(ctx, hs[1], p.Entry)
	if err != nil {
		t.Fatal(err)
	}
	opened := w.open(j, "e")
	w.put(s.toItem("acme#e")) // version 3; version 4 names another
	_, err = w.process().Open(ctx, tenant, "e", OpenOptions{})
	wantCode(t, err, execution.Integrity)
	for _, newest := range []bool{true, false} {
		_, err = j.History(ctx, opened, 0, newest, 100)
		wantCode(t, err, execution.Integrity)
	}
	// Up to there it is a journal of its own; whoever has seen more knows better.
	w.remove("acme#e", EntryKey("", 4).SK)
	_, err = w.process().Open(ctx, tenant, "e", OpenOptions{AtLeast: 4})
	wantCode(t, err, execution.Integrity)
	_, err = j.Open(ctx, tenant, "e", OpenOptions{AtLeast: 4})
	wantCode(t, err, execution.Integrity)
}

// What a deletion leaves at every stage, and what pruning leaves.
func TestClosedAndPruned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	j := w.process()
	hs := long(w, j, "e", 4)
	ref := hs[0].State.Ref
	old := w.process()
	w.open(old, "e")
	// Pruned below 3: the chain has its snapshot at 1, so take versions that were
	// written with snapshots.
	w2 := newWorld(t)
	w2.snapshot = 1
	jp := w2.process()
	ps := long(w2, jp, "p", 5)
	head := maps.Clone(w2.items("acme#p")[SKHead])
	head[HeadFloor] = store.N(5) // which has a snapshot
	w2.put(head)
	for v := int64(1); v < 5; v++ {
		w2.remove("acme#p", EntryKey("", v).SK)
	}
	same(t, w2.open(w2.process(), "p"), ps[5])
	_, err := jp.At(ctx, tenant, "p", 4)
	wantCode(t, err, execution.HistoryPruned, "floor")
	if h, err := w2.process().At(ctx, tenant, "p", 5); err != nil || h.State.Version != 5 {
		t.Errorf("%v", err)
	}
	_, err = jp.At(ctx, tenant, "p", 7)
	wantCode(t, err, execution.Integrity)
	h := w2.open(jp, "p")
	for _, newest := range []bool{false, true} {
		page, err := jp.History(ctx, h, 0, newest, 100)
		if err != nil || len(page.Entries) != 2 {
			t.Errorf("history newest first %v: %v", newest, err)
		}
	}
	// Pruned under the reader: it opened before.
	stale := *h
	sh := *h.Head
	sh.Floor = 0
	stale.Head = &sh
	if _, err := jp.History(ctx, &stale, 1, false, 100); execution.CodeOf(err) != execution.HistoryPruned {
		t.Errorf("pruned under the reader: %v", err)
	}

	// Closed: head deleting, closing entry at tip + 1.
	tip, _, err := j.ReadTip(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	hd := maps.Clone(w.items("acme#e")[SKHead])
	hd[HeadStatus] = store.S(string(execution.StatusDeleting))
	w.put(hd)
	w.put(ClosingEntry(ref, tip, 9))
	refused := func(stage string, code execution.Code, facts ...string) {
		t.Helper()
		for who, j := range map[string]*Journal{"cold": w.process(), "warm": j, "behind": old} {
			if _, err := j.Open(ctx, tenant, "e", OpenOptions{}); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: open: %v", stage, who, err)
			} else {
				wantCode(t, err, code, facts...)
			}
			if _, err := j.Open(ctx, tenant, "e", OpenOptions{Head: true}); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: open with head: %v", stage, who, err)
			}
			if _, err := j.step(ctx, "e", change(hs[4], "late", `{"n":-5}`)); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: write: %v", stage, who, err)
			}
			if _, err := j.Claim(ctx, tenant, "e", claiming("w9", ""), nil); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: claim: %v", stage, who, err)
			}
			if _, err := j.Renew(ctx, tenant, "e", "w1", 1, 60); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: renew: %v", stage, who, err)
			}
			if _, err := j.At(ctx, tenant, "e", 2); execution.CodeOf(err) != code {
				t.Errorf("%s, %s: at: %v", stage, who, err)
			}
		}
	}
	refused("closing", execution.Deleted, "in_progress")
	_, _, err = j.Create(ctx, creation("e", `{}`, ""))
	wantCode(t, err, execution.Deleted, "in_progress")
	// Entries are stubs by now, the head still there.
	for v := int64(1); v <= 6; v++ {
		f, _ := EntryOf(ref, w.items("acme#e")[EntryKey("", v).SK])
		w.put(StubItem(ref, f, 99))
	}
	refused("stubs", execution.Deleted, "in_progress")
	// Done: head gone, receipt lives, stubs stay an hour.
	w.remove("acme#e", SKHead)
	rk := ReceiptKey("acme#e", ref.Generation)
	half := store.Item{store.AttrPK: store.S(rk.PK), store.AttrSK: store.S(rk.SK), HeadGeneration: store.N(ref.Generation), ReceiptState: store.S("deleting"), ReceiptLast: store.N(5)}
	w.put(half)
	early := creation("e", `{}`, "")
	early.Reuse, early.Change.Request = true, request("too early")
	_, _, err = j.Create(ctx, early)
	wantCode(t, err, execution.Deleted, "in_progress")
	receipt := store.Item{store.AttrPK: store.S(rk.PK), store.AttrSK: store.S(rk.SK), HeadGeneration: store.N(ref.Generation), ReceiptState: store.S(ReceiptDeleted), ReceiptLast: store.N(5),
		HeadExpires: store.N(w.engine.Now().Add(time.Hour * 24).UnixMilli()), HeadCreateRequest: store.B(hash("create e"))}
	w.put(receipt)
	refused("deleted", execution.Deleted, "generation")
	_, _, err = j.Create(ctx, creation("e", `{}`, ""))
	wantCode(t, err, execution.Deleted, "generation")
	unasked := creation("e", `{}`, "")
	unasked.Change.Request = request("somebody else's")
	_, _, err = j.Create(ctx, unasked)
	wantCode(t, err, execution.Deleted, "generation")
	again := creation("e", `{}`, "")
	again.Reuse = true // the same request made the one that was deleted
	_, _, err = j.Create(ctx, again)
	wantCode(t, err, execution.Deleted)
	// A new life begins behind whatever a late writer could aim at.
	fresh := creation("e", `{"n":"new"}`, "w5")
	fresh.Reuse, fresh.Change.Request = true, request("second life")
	nh, _, err := j.Create(ctx, fresh)
	if err != nil || nh.State.Version != 7 || nh.State.Generation <= ref.Generation || nh.State.Fence != 7 {
		t.Fatalf("%+v %v", nh, err)
	}
	same(t, w.open(w.process(), "e"), nh)
	if _, err := old.step(ctx, "e", change(hs[4], "late", `{"n":-5}`)); err == nil {
		t.Error("a writer of the old life was let in")
	}
	_, err = w.process().At(ctx, tenant, "e", 3)
	wantCode(t, err, execution.HistoryPruned, "floor")
	if _, err := w.process().Renew(ctx, tenant, "e", "w1", 1, 60); execution.CodeOf(err) != execution.LeaseLost {
		t.Errorf("renew of the old life: %v", err)
	}
	// The receipt's time is over: the id is free.
	w.remove("acme#e", SKHead)
	for sk := range w.items("acme#e") {
		if strings.HasPrefix(sk, EntryPrefix) {
			w.remove("acme#e", sk)
		}
	}
	w.advance(25 * time.Hour)
	_, err = w.process().Open(ctx, tenant, "e", OpenOptions{})
	wantCode(t, err, execution.NotFound)
	third, _, err := w.process().Create(ctx, creation("e", `{}`, ""))
	if err != nil || third.State.Version != 1 || third.State.Generation <= nh.State.Generation {
		t.Errorf("%v", err)
	}
}

func hash(id string) []byte { h := request(id).Hash; return h[:] }
