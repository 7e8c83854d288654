package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// EntryFacts are the plain attributes of an entry's item: all that retention
// and verification need, without any key.
type EntryFacts struct {
	Version    int64
	Generation int64
	Kind       execution.Kind
	Fence      int64
	At         int64 // ms
	// Chain is the number of entries since the one with a snapshot; 0: it has one,
	// or is the creation.
	Chain int64
	// Prev names the entry before; Digest is what the next one must name.
	Prev, Digest [32]byte
	// Object is the key of the body's object in the bucket; "": the body stands in
	// the item. ObjectDigest and ObjectBytes are what must lie there.
	Object       string
	ObjectDigest []byte
	ObjectBytes  int64
	Bytes        int // of the item
	// Stub: a deletion took the content. Closing: the entry that closed the
	// journal. Damaged: the item is no entry at all; only Version and Generation
	// may be right.
	Stub, Closing, Damaged bool
}

// EntryOf reads the plain attributes of an item below EntryPrefix; false when
// its sort key is none of an entry's.
func EntryOf(ref execution.Ref, it store.Item) (EntryFacts, bool) {
	v, ok := EntryVersion(it.Key().SK)
	if !ok {
		return EntryFacts{}, false
	}
	f := EntryFacts{Version: v, Generation: it.Int(attrGeneration), Kind: execution.Kind(it.Str(attrKind)), Fence: it.Int(attrFence), At: it.Int(attrAt), Bytes: it.Size()}
	f.Closing = isClosing(it)
	f.Stub = !f.Closing && isStub(it)
	s, ok := fromItem(it)
	if !ok {
		f.Damaged = !f.Stub && !f.Closing
		copy(f.Prev[:], it.Bytes(attrPrev))
		return f, true
	}
	f.Chain, f.Prev, f.Digest = s.chain, s.prev, s.digest(ref)
	if s.object != nil {
		of := ref
		of.Generation = f.Generation
		f.Object, f.ObjectDigest, f.ObjectBytes = BodyObjectKey(of, v, [32]byte(s.object)), s.object, s.bytes
	}
	return f, true
}

// ReadTip reads the newest entry of whatever generation by its plain
// attributes; Version 0: there is none.
func (j *Journal) ReadTip(ctx context.Context, ref execution.Ref) (EntryFacts, Clock, error) {
	before := j.Elapsed()
	page, meta, err := j.Table.Query(ctx, store.Query{PK: ref.PK(), From: EntryPrefix, To: EntryPrefix + "99999999999999999999", Descending: true, Consistent: true, Limit: 1})
	if err != nil {
		return EntryFacts{}, Clock{}, Fail(err, ref)
	}
	c, err := j.clock(meta, before)
	if err != nil || len(page.Items) == 0 {
		return EntryFacts{}, c, err
	}
	f, _ := EntryOf(ref, page.Items[0])
	return f, c, nil
}

// ClosingEntry is the item that closes a journal after its tip. It has no body:
// a deletion must work without any key, and what there is to say about it stands
// on the receipt. Whoever reads it looks at the head, which is deleting, and
// answers Deleted.
func ClosingEntry(ref execution.Ref, tip EntryFacts, now int64) store.Item {
	k := EntryKey(ref.PK(), tip.Version+1)
	return store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), attrKind: store.S(string(execution.KindDeleted)), attrGeneration: store.N(ref.Generation),
		attrAt: store.N(max(now, tip.At)), attrChain: store.N(tip.Chain + 1), attrPrev: store.B(tip.Digest[:])}
}

func isClosing(it store.Item) bool {
	return it.Str(attrKind) == string(execution.KindDeleted) && !it.Has(attrBody) && !it.Has(attrObject)
}

// StubItem keeps an entry's slot taken until ttl (epoch seconds), for late
// writers.
func StubItem(ref execution.Ref, f EntryFacts, ttl int64) store.Item {
	k := EntryKey(ref.PK(), f.Version)
	return store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), attrKind: store.S(KindStub), attrGeneration: store.N(f.Generation), attrAt: store.N(f.At),
		store.AttrTTL: store.N(ttl)}
}

// slotDeleted stands in the slot of an attempt whose execution was deleted: no
// outcome that anybody reports, and one that no writer goes over.
const slotDeleted execution.Outcome = "deleted"

// SlotFacts are the plain attributes of a slot's item that a deletion needs.
type SlotFacts struct {
	Key        store.Key
	Generation int64
	// Filled: an outcome stands there, so that no writer can fill it (again).
	Filled bool
	// Stub: a deletion took the content.
	Stub bool
}

// SlotOf reads the plain attributes of an item below SlotPrefix. A contradiction
// beside a slot fills nothing.
func SlotOf(it store.Item) SlotFacts {
	k, outcome := it.Key(), it.Str(SlotOutcome)
	return SlotFacts{Key: k, Generation: it.Int(SlotGeneration), Filled: outcome != "" && !strings.Contains(k.SK, contradictionMark), Stub: outcome == string(slotDeleted)}
}

// SlotStub keeps a slot taken until ttl (epoch seconds), for late writers: a
// tool's transaction that was on its way would else bring its effect about although
// another attempt did (M).
func SlotStub(f SlotFacts, ttl int64) store.Item {
	return store.Item{store.AttrPK: store.S(f.Key.PK), store.AttrSK: store.S(f.Key.SK), SlotGeneration: store.N(f.Generation), SlotOutcome: store.S(string(slotDeleted)), store.AttrTTL: store.N(ttl)}
}

// EntryGeneration is the condition that an entry's item belongs to a generation.
func EntryGeneration(generation int64) store.Cond {
	return store.Eq(attrGeneration, store.N(generation))
}

// ArchivePrefix is where the archive of one generation lies.
func ArchivePrefix(ref execution.Ref) string {
	return string(ref.Tenant) + "/archive/" + string(ref.Execution) + "/" + strconv.FormatInt(ref.Generation, 10) + "/"
}

// ReceiptsPrefix is where a tenant's receipts lie as objects.
func ReceiptsPrefix(t execution.TenantID) string { return string(t) + "/receipts/" }

// DescendantsToken lists the children and forks of one generation of an
// execution as selector rows, so that a deletion by thread, subject or label
// finds them without any key. '~' begins no other token.
func DescendantsToken(ref execution.Ref) string {
	sum := sha256.Sum256([]byte("cairn descendants 1\x00" + ref.PK() + "\x00" + strconv.FormatInt(ref.Generation, 10)))
	return "~" + hex.EncodeToString(sum[:12])
}

// ThreadToken lists the executions of a thread as selector rows: the index of
// threads lags, and a deletion must not call itself done because of that. '='
// begins no other token.
func ThreadToken(t execution.ThreadID) string { return "=" + string(t) }

// ownTokens are the tokens under which a creation is listed besides its labels.
func ownTokens(ref execution.Ref, c *execution.Creation) []string {
	out := ancestorTokens(ref.Tenant, c)
	if c != nil && c.Thread != "" {
		out = append(out, ThreadToken(c.Thread))
	}
	return out
}

// ancestorTokens list a creation among the descendants of what it came from.
func ancestorTokens(t execution.TenantID, c *execution.Creation) []string {
	switch {
	case c == nil:
		return nil
	case c.Parent != nil:
		return []string{DescendantsToken(execution.Ref{Tenant: t, Execution: c.Parent.Execution, Generation: c.Parent.Generation})}
	case c.ForkedFrom != nil:
		return []string{DescendantsToken(execution.Ref{Tenant: t, Execution: c.ForkedFrom.Execution, Generation: c.ForkedFrom.Generation})}
	}
	return nil
}
