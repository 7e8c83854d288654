package journal

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// The bytes that bind an entry to its place and to the one before it must never
// change: every stored journal would be damaged.
func TestGoldenLayout(t *testing.T) {
	t.Parallel()
	ref := execution.Ref{Tenant: "acme", Execution: "order-1", Generation: 1_700_000_000_000}
	s := &stored{entry: execution.Entry{Version: 42, Kind: execution.KindCheckpoint, Generation: ref.Generation, Fence: 1<<40 + 7, At: 1_700_000_000_123}, chain: 3, body: []byte("sealed")}
	for i := range 16 {
		s.entry.Request[i], s.entry.Content[i], s.prev[i], s.prev[31-i] = byte(i), byte(0x10+i), byte(0x20+i), byte(0x30+i)
	}
	if got, want := hex.EncodeToString(s.plain()), "010a636865636b706f696e740000010000000007000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3f3e3d3c3b3a393837363534333231300000018bcfe5687b0000000000000003"; got != want {
		t.Errorf("plain attributes\n%s\n%s", got, want)
	}
	const inline, object = "f0084f9367158b520ff60a5286efe603e3af8748e28a7055aed8c84714edb869", "091b80fbb74cc5757ac87e96947360585c8d485caec2d07aebe14ee9410bd7f7"
	d := s.digest(ref)
	if got := hex.EncodeToString(d[:]); got != inline {
		t.Errorf("digest %s", got)
	}
	o := *s
	o.body, o.object, o.bytes = nil, make([]byte, 32), 99
	d = o.digest(ref)
	if got := hex.EncodeToString(d[:]); got != object {
		t.Errorf("digest with an object %s", got)
	}
	if p := s.place(ref); p.Kind != "entry" || p.Name != "42" || p.Tenant != "acme" || p.Execution != "order-1" || p.Generation != ref.Generation {
		t.Errorf("%+v", p)
	}
	for _, x := range []*stored{s, &o} {
		back, ok := fromItem(x.toItem(ref.PK()))
		if !ok || back.digest(ref) != x.digest(ref) || back.entry.Version != 42 || back.bytes != x.bytes {
			t.Errorf("%+v does not come back: %+v", x, back)
		}
	}
	for got, want := range map[string]string{
		EntryKey("p", 42).SK:                          "j#00000000000000000042",
		SlotKey("p", "0a", 7).SK:                      "op#0a#000007",
		ReceiptKey("p", 5).SK:                         "receipt#00000000000000000005",
		RegistryKey(ref).PK:                           "acme#~5",
		RegistryKey(ref).SK:                           "order-1#00000001700000000000",
		SelectorKey(ref, "tok").PK:                    "acme#~stok",
		BodyObjectKey(ref, 42, [32]byte{1}):           "acme/e/order-1/1700000000000/journal/00000000000000000042-01" + strings.Repeat("00", 31),
		SignalItemKey("p", 3, "n", "k").SK:            "sig#3#n#8254c329a92850f6d539dd376f4816ee",
		StatusPartition("acme", "running", 3):         "acme#running#3",
		WorkflowPartition("acme", "wf", 3):            "acme#wf#3",
		ThreadPartition("acme", "case"):               "acme#case",
		timeKey(1_700_000_000_123, "order-1"):         "001700000000123#order-1",
		DuePartition(3):                               "~due#3",
		RetainPartition(3):                            "~retain#3",
		ObjectPrefix(ref):                             "acme/e/order-1/1700000000000/",
		ArtifactObjectKey(ref, "d"):                   "acme/e/order-1/1700000000000/artifacts/d",
		TimerKey("p", "lease").SK:                     "timer#lease",
		string(TimerItem(ref, "wake", 1001)["ttl"].S): "2",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestEntryVersion(t *testing.T) {
	t.Parallel()
	for sk, want := range map[string]int64{"j#00000000000000000001": 1, "j#09223372036854775807": 1<<63 - 1, "j#1": 0, "j#00000000000000000000": 0, "j#-0000000000000000001": 0,
		"j#00000000000000000001x": 0, "head": 0, "j#99999999999999999999": 0, "j#+0000000000000000001": 0} {
		v, ok := EntryVersion(sk)
		if ok != (want > 0) || ok && v != want {
			t.Errorf("%s: %d %v", sk, v, ok)
		}
	}
}

// A status is shown as it is, whatever stands there, and never taken for one
// that is known.
func TestParseHead(t *testing.T) {
	t.Parallel()
	base := store.Item{store.AttrPK: store.S("acme#e"), store.AttrSK: store.S(SKHead), HeadGeneration: store.N(5)}
	for _, tt := range []struct {
		status store.Value
		want   execution.Status
	}{{store.S("running"), "running"}, {store.S("dreaming"), "dreaming"}, {store.N(3), "3"}, {store.Value{Kind: store.KindNULL}, "null"}, {store.Value{}, "unknown"}, {store.S(""), "unknown"},
		{store.Bool(true), "unknown"}, {store.B([]byte("running")), "unknown"}} {
		it := store.Item{}
		for k, v := range base {
			it[k] = v
		}
		if tt.status.Kind != store.KindInvalid {
			it[HeadStatus] = tt.status
		}
		h, ok := ParseHead(it)
		if !ok || h.Status != tt.want || (h.RawStatus == "") != (tt.want == "running") {
			t.Errorf("%+v: %+v", tt.status, h)
		}
	}
	for _, k := range []store.Key{{PK: "acme#~1", SK: SKHead}, {PK: "acme#e", SK: "timer#lease"}, {PK: "acme", SK: SKHead}} {
		if _, ok := ParseHead(store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK)}); ok {
			t.Errorf("%v is no head", k)
		}
	}
}

// A system entry has no identity by which a repeat would find it: landed and
// unheard it must be recognised by its bytes, or it stands there twice.
func TestSystemEntriesLandOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []execution.Kind{execution.KindHalted, execution.KindCheckpoint} {
		for _, on := range []string{"put", "transact"} {
			for _, effect := range []string{"landed", "lost", "unavailable"} {
				w := newWorld(t)
				j := w.process()
				w.create(j, "e", `{}`, "w1")
				w.faults(memory.Fault{On: on, Effect: effect})
				got, err := j.step(context.Background(), "e", execution.Change{Kind: kind, System: true, Reason: "r"})
				if err != nil || got.Handle.State.Version != 2 || len(w.history("e")) != 2 {
					t.Errorf("%s %s %s: %v", kind, on, effect, err)
				}
				same(t, w.open(w.process(), "e"), got.Handle)
			}
		}
	}
}

// Facts of an item below EntryPrefix, whatever lies there.
func TestEntryOf(t *testing.T) {
	t.Parallel()
	ref := execution.Ref{Tenant: "acme", Execution: "e", Generation: 7}
	tip := EntryFacts{Version: 3, Generation: 7, At: 100, Chain: 2}
	closing, late := ClosingEntry(ref, tip, 50), ClosingEntry(ref, tip, 150)
	if closing.Int(attrAt) != 100 || late.Int(attrAt) != 150 || closing.Int(attrChain) != 3 {
		t.Errorf("%v %v", closing, late)
	}
	stub := StubItem(ref, tip, 9)
	broken := store.Item{store.AttrPK: store.S(ref.PK()), store.AttrSK: stub[store.AttrSK], attrKind: store.S("checkpoint")}
	bodied, large := maps.Clone(closing), maps.Clone(closing)
	bodied[attrBody], large[attrObject] = store.B([]byte("b")), store.B(make([]byte, 32))
	for name, tt := range map[string]struct {
		it                     store.Item
		stub, closing, damaged bool
	}{"stub": {stub, true, false, false}, "closing": {closing, false, true, false}, "broken": {broken, false, false, true}, "deleted with a body": {bodied, false, false, false}, "deleted with an object": {large, false, false, false}} {
		f, ok := EntryOf(ref, tt.it)
		if !ok || f.Stub != tt.stub || f.Closing != tt.closing || f.Damaged != tt.damaged {
			t.Errorf("%s: %+v %v", name, f, ok)
		}
	}
	for _, sk := range []string{"head", "j#", "j#3", "j#00000000000000000000", "j#0000000000000000000x", "k#00000000000000000003"} {
		if _, ok := EntryOf(ref, store.Item{store.AttrPK: store.S(ref.PK()), store.AttrSK: store.S(sk)}); ok {
			t.Errorf("%s is an entry", sk)
		}
	}
}

// Whose time is over: not while anything holds it.
func TestHeadExpired(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		h    Head
		want bool
	}{"kept": {Head{}, false}, "before": {Head{ExpiresAt: 11}, false}, "at": {Head{ExpiresAt: 10}, true}, "held": {Head{ExpiresAt: 10, Holds: []string{"h"}}, false}, "held by its thread": {Head{ExpiresAt: 10, Bound: []string{"h"}}, false}} {
		if tt.h.Expired(10) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// An item is an entry with everything that one must have, each of its type.
func TestFromItem(t *testing.T) {
	t.Parallel()
	s := &stored{entry: execution.Entry{Version: 3, Kind: execution.KindCheckpoint, Generation: 7, Fence: 5, At: 9}, chain: 1, body: []byte("b")}
	s.entry.Request[0], s.entry.Content[0] = 1, 2
	large := *s
	large.body, large.object, large.bytes = nil, make([]byte, 32), 99
	set := func(name string, v store.Value) func(it store.Item) { return func(it store.Item) { it[name] = v } }
	without := func(name string) func(it store.Item) { return func(it store.Item) { delete(it, name) } }
	for name, tt := range map[string]struct {
		of *stored
		f  func(it store.Item)
		ok bool
	}{
		"whole": {s, func(store.Item) {}, true}, "large": {&large, func(store.Item) {}, true},
		"no kind": {s, without(attrKind), false}, "no generation": {s, without(attrGeneration), false}, "no time": {s, without(attrAt), false}, "no chain": {s, without(attrChain), false},
		"no predecessor": {s, without(attrPrev), false}, "no fence": {s, without(attrFence), true}, "no request": {s, without(attrRequest), true}, "no content": {s, without(attrContent), true},
		"generation is text": {s, set(attrGeneration, store.S("7")), false}, "fence is text": {s, set(attrFence, store.S("5")), false}, "size is text": {&large, set(attrObjectSize, store.S("9")), false},
		"predecessor cut": {s, set(attrPrev, store.B(make([]byte, 31))), false}, "request cut": {s, set(attrRequest, store.B(make([]byte, 15))), false}, "content is text": {s, set(attrContent, store.S("c")), false},
		"no body": {s, without(attrBody), false}, "two bodies": {s, set(attrObject, store.B(make([]byte, 32))), false}, "digest cut": {&large, set(attrObject, store.B(make([]byte, 31))), false},
	} {
		it := tt.of.toItem("acme#e")
		tt.f(it)
		if _, ok := fromItem(it); ok != tt.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
	ref := execution.Ref{Tenant: "acme", Execution: "e", Generation: 7}
	if f, ok := EntryOf(ref, large.toItem("acme#e")); !ok || f.Object != BodyObjectKey(ref, 3, [32]byte(large.object)) || f.ObjectBytes != 99 || f.Digest != large.digest(ref) {
		t.Errorf("%+v %v", f, ok)
	}
	if f, ok := EntryOf(ref, s.toItem("acme#e")); !ok || f.Object != "" || f.ObjectBytes != 0 {
		t.Errorf("%+v %v", f, ok)
	}
}

// Executions spread over all shards, each always in its own.
func TestShards(t *testing.T) {
	t.Parallel()
	seen := map[int]int{}
	for i := range 200 {
		n := shard(fmt.Sprint("order-", i), RegistryShards)
		if n != shard(fmt.Sprint("order-", i), RegistryShards) {
			t.Fatal("another shard")
		}
		seen[n]++
	}
	if len(seen) != RegistryShards {
		t.Errorf("%v", seen)
	}
}
