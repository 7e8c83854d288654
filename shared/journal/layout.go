package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// Sort keys of an execution's partition (docs/FORMAT.md).
const (
	SKHead        = "head"
	EntryPrefix   = "j#"
	SlotPrefix    = "op#"
	SignalPrefix  = "sig#"
	HoldPrefix    = "hold#"
	ReceiptPrefix = "receipt#"
	TimerPrefix   = "timer#"
)

// Attributes of an entry item. They are short because every step pays for
// them; docs/FORMAT.md says what each is.
const (
	attrKind       = "k"
	attrGeneration = "g"
	attrFence      = "f"
	attrRequest    = "r"
	attrContent    = "c"
	attrPrev       = "p"
	attrAt         = "t"
	attrChain      = "n" // entries since the one with a snapshot; 0: this has one (or is the creation)
	attrBody       = "b"
	attrObject     = "o"  // SHA-256 of the sealed body in the bucket, instead of b
	attrObjectSize = "os" // its bytes
)

// KindStub stands in place of an entry that a deletion removed: the version
// stays taken until no late writer can come any more.
const KindStub = "stub"

// EntryKey is the key of an entry.
func EntryKey(pk string, version int64) store.Key {
	return store.Key{PK: pk, SK: fmt.Sprintf("%s%020d", EntryPrefix, version)}
}

// EntryVersion reads a version from an entry's sort key.
func EntryVersion(sk string) (int64, bool) {
	if len(sk) != len(EntryPrefix)+20 || sk[:len(EntryPrefix)] != EntryPrefix {
		return 0, false
	}
	n, err := strconv.ParseUint(sk[len(EntryPrefix):], 10, 63)
	return int64(n), err == nil && n > 0
}

// HeadKey is the key of an execution's head.
func HeadKey(pk string) store.Key { return store.Key{PK: pk, SK: SKHead} }

// SlotKey is the key of an attempt's ledger slot.
func SlotKey(pk string, op execution.OperationID, attempt int) store.Key {
	return store.Key{PK: pk, SK: fmt.Sprintf("%s%s#%06d", SlotPrefix, op, attempt)}
}

// SignalItemKey is the key of a signal's item. The key text is free, so it is
// hashed; the text itself stands sealed inside.
func SignalItemKey(pk string, generation int64, name, key string) store.Key {
	sum := sha256.Sum256([]byte(key))
	return store.Key{PK: pk, SK: fmt.Sprintf("%s%d#%s#%s", SignalPrefix, generation, name, hex.EncodeToString(sum[:16]))}
}

// TimerKey is the key of a timer of an execution: lease, wake, reconcile or
// retention.
func TimerKey(pk, kind string) store.Key { return store.Key{PK: pk, SK: TimerPrefix + kind} }

// ReceiptKey is the key of a deletion's receipt.
func ReceiptKey(pk string, generation int64) store.Key {
	return store.Key{PK: pk, SK: fmt.Sprintf("%s%020d", ReceiptPrefix, generation)}
}

// RegistryShards is how many partitions a tenant's registry has.
const RegistryShards = 8

// RegistryKey is the row that lists an execution's generation in its tenant's
// registry.
func RegistryKey(ref execution.Ref) store.Key {
	return store.Key{PK: RegistryPartition(ref.Tenant, shard(string(ref.Execution), RegistryShards)), SK: fmt.Sprintf("%s#%020d", ref.Execution, ref.Generation)}
}

// RegistryPartition is one shard of a tenant's registry.
func RegistryPartition(t execution.TenantID, n int) string { return fmt.Sprintf("%s#~%d", t, n) }

// SelectorKey is the row by which an execution is found under the token of a
// label or subject.
func SelectorKey(ref execution.Ref, token string) store.Key {
	return store.Key{PK: SelectorPartition(ref.Tenant, token), SK: fmt.Sprintf("%s#%020d", ref.Execution, ref.Generation)}
}

// SelectorPartition lists the executions under one token.
func SelectorPartition(t execution.TenantID, token string) string {
	return fmt.Sprintf("%s#~s%s", t, token)
}

// ClosingKey marks a tenant that is being purged.
func ClosingKey(t execution.TenantID) store.Key { return store.Key{PK: string(t), SK: "closing"} }

// Object keys (architecture, "Tables and bucket").

// ObjectPrefix is where everything of one generation lies.
func ObjectPrefix(ref execution.Ref) string {
	return fmt.Sprintf("%s/e/%s/%d/", ref.Tenant, ref.Execution, ref.Generation)
}

// BodyObjectKey is the object of an entry's body that is too large to stand in
// its item.
func BodyObjectKey(ref execution.Ref, version int64, digest [32]byte) string {
	return fmt.Sprintf("%sjournal/%020d-%s", ObjectPrefix(ref), version, hex.EncodeToString(digest[:]))
}

// ArtifactObjectKey is an artifact's object.
func ArtifactObjectKey(ref execution.Ref, digest string) string {
	return ObjectPrefix(ref) + "artifacts/" + digest
}

// Shards of the sparse indexes.
const (
	StatusShards   = 8
	WorkflowShards = 8
	DueShards      = 16
)

func shard(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(n))
}

// StatusPartition, ThreadPartition, WorkflowPartition and DuePartition are
// partition keys of the indexes. '~' occurs in no identifier.
func StatusPartition(t execution.TenantID, status string, n int) string {
	return fmt.Sprintf("%s#%s#%d", t, status, n)
}

// ThreadPartition lists a thread's executions.
func ThreadPartition(t execution.TenantID, th execution.ThreadID) string {
	return string(t) + "#" + string(th)
}

// WorkflowPartition lists a shard of a workflow's executions.
func WorkflowPartition(t execution.TenantID, workflow string, n int) string {
	return fmt.Sprintf("%s#%s#%d", t, workflow, n)
}

// DuePartition lists a shard of what is due, of all tenants.
func DuePartition(n int) string { return fmt.Sprintf("~due#%d", n) }

// RetainPartition lists a shard of what retention has to do, of all tenants.
func RetainPartition(n int) string { return fmt.Sprintf("~retain#%d", n) }

// stored is an entry as it lies in the table.
type stored struct {
	entry  execution.Entry // Body is filled by open
	prev   [32]byte
	chain  int64
	body   []byte // sealed; nil when in the bucket
	object []byte // digest of the sealed body in the bucket
	bytes  int64  // of the object
	item   int    // bytes of the item
}

// plain is the encoding of the plain attributes that the body is bound to.
func (s *stored) plain() []byte {
	e := &s.entry
	b := make([]byte, 0, 128)
	b = append(b, 1)
	b = binary.AppendUvarint(b, uint64(len(e.Kind)))
	b = append(b, e.Kind...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Fence))
	b = append(b, e.Request[:]...)
	b = append(b, e.Content[:]...)
	b = append(b, s.prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At))
	return binary.BigEndian.AppendUint64(b, uint64(s.chain))
}

func (s *stored) place(ref execution.Ref) seal.Place {
	return seal.Place{Tenant: string(ref.Tenant), Execution: string(ref.Execution), Generation: s.entry.Generation, Kind: "entry", Name: strconv.FormatInt(s.entry.Version, 10), Plain: s.plain()}
}

// digest is what the next entry names as its predecessor: everything of this
// one, its sealed body included.
func (s *stored) digest(ref execution.Ref) [32]byte {
	h := sha256.New()
	h.Write([]byte("cairn entry 1\x00"))
	h.Write([]byte(ref.PK() + "\x00"))
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(s.entry.Generation))
	binary.BigEndian.PutUint64(n[8:], uint64(s.entry.Version))
	h.Write(n[:])
	h.Write(s.plain())
	if s.object != nil {
		h.Write(s.object)
	} else {
		sum := sha256.Sum256(s.body)
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// toItem gives the table's form.
func (s *stored) toItem(pk string) store.Item {
	e := &s.entry
	k := EntryKey(pk, e.Version)
	it := store.Item{
		store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK),
		attrKind: store.S(string(e.Kind)), attrGeneration: store.N(e.Generation), attrAt: store.N(e.At), attrChain: store.N(s.chain), attrPrev: store.B(s.prev[:]),
	}
	if e.Fence != 0 {
		it[attrFence] = store.N(e.Fence)
	}
	if e.Request != (execution.RequestHash{}) {
		it[attrRequest] = store.B(e.Request[:])
	}
	if e.Content != (execution.ContentDigest{}) {
		it[attrContent] = store.B(e.Content[:])
	}
	if s.object != nil {
		it[attrObject], it[attrObjectSize] = store.B(s.object), store.N(s.bytes)
	} else {
		it[attrBody] = store.B(s.body)
	}
	return it
}

// fromItem reads the table's form; false when it is no entry of ours (a stub
// is none either, see isStub).
func fromItem(it store.Item) (*stored, bool) {
	v, ok := EntryVersion(it.Key().SK)
	if !ok {
		return nil, false
	}
	s := &stored{item: it.Size()}
	e := &s.entry
	e.Version, e.Kind = v, execution.Kind(it.Str(attrKind))
	ints := []struct {
		name string
		to   *int64
		must bool
	}{{attrGeneration, &e.Generation, true}, {attrAt, &e.At, true}, {attrChain, &s.chain, true}, {attrFence, &e.Fence, false}, {attrObjectSize, &s.bytes, false}}
	for _, f := range ints {
		n, ok := it[f.name].Int()
		if !ok && (f.must || it.Has(f.name)) {
			return nil, false
		}
		*f.to = n
	}
	for _, f := range []struct {
		name string
		to   []byte
		must bool
	}{{attrPrev, s.prev[:], true}, {attrRequest, e.Request[:], false}, {attrContent, e.Content[:], false}} {
		b := it.Bytes(f.name)
		if len(b) != len(f.to) && (f.must || it.Has(f.name)) {
			return nil, false
		}
		copy(f.to, b)
	}
	s.body, s.object = it.Bytes(attrBody), it.Bytes(attrObject)
	if e.Kind == "" || (s.body == nil) == (s.object == nil) || s.object != nil && len(s.object) != sha256.Size {
		return nil, false
	}
	return s, true
}

// isStub reports an item that holds a slot but no content: a deletion closed or
// removed what was there.
func isStub(it store.Item) bool { return it.Str(attrKind) == KindStub || isClosing(it) }
