package journal

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Attributes of a head. Times are epoch milliseconds but for timers' ttl.
const (
	HeadGeneration    = "generation"
	HeadStatus        = "status"
	HeadOwner         = "owner"
	HeadFence         = "fence"
	HeadLeaseExpires  = "lease_expires_at"
	HeadLeaseSeconds  = "lease_seconds"
	HeadFloor         = "floor"
	HeadHolds         = "holds"
	HeadDue           = "due"
	HeadDueKind       = "due_kind"
	HeadDueShard      = "xd"
	HeadHandover      = "handover"
	HeadPolls         = "polls"
	HeadExpires       = "expires_at"
	HeadThread        = "thread"
	HeadWorkflow      = "workflow"
	HeadSchemaName    = "schema_name"
	HeadSchemaVersion = "schema_version"
	HeadPolicy        = "policy"
	HeadCreated       = "created_at"
	HeadUpdated       = "updated_at"
	HeadEnded         = "ended_at"
	HeadLabels        = "label_tokens"
	HeadSubjects      = "subject_tokens"
	HeadQuarantine    = "quarantine"
	HeadCreateRequest = "create_request" // request hash and content digest of the create
	HeadCreateContent = "create_content"
	HeadFirst         = "first_version"
	HeadRetainDue     = "rdue"
	HeadAsked         = "asked" // a deletion that waits for holds: its reason
	HeadRetainShard   = "xr"
	headStatusShard   = "xs"
	headUpdatedKey    = "xu"
	headThreadKey     = "xt"
	headCreatedKey    = "xc"
	headWorkflowShard = "xw"
)

// Due kinds: why an execution stands in the due index.
const (
	DueLease    = "lease"    // an owner's lease ends
	DueContinue = "continue" // given up, a fresh worker is to be started
	DueWake     = "wake"     // a wait: until, evidence, or the next look at the ledger
	DueParked   = "parked"   // parked: the next look
	DueVerdict  = "verdict"  // a person decided
	DueUnhalt   = "unhalt"
	DueSignal   = "signal"    // evidence came for a waiting execution
	DueEvidence = "operation" // evidence came for an operation of a waiting execution
)

// Head is the small mutable item of an execution: who owns it, what is due,
// what holds it. Status, owner and fence are also in the fold, which decides;
// the head carries the lease's end and what no fold knows.
type Head struct {
	execution.Ref
	// Status as stored; RawStatus says in words what was there when it is none of
	// the known ones ("" where the attribute is missing).
	Status         execution.Status
	RawStatus      string
	Owner          string
	Fence          int64
	LeaseExpiresAt int64
	LeaseSeconds   int64
	Floor          int64 // oldest kept version; 0: the first
	Holds          []string
	DueAt          int64 // 0: nothing is due
	DueKind        string
	Handover       int64
	Polls          int64
	ExpiresAt      int64 // 0: kept for ever
	Thread         execution.ThreadID
	Workflow       string
	Schema         execution.Schema
	Policy         string
	CreatedAt      int64
	UpdatedAt      int64
	EndedAt        int64
	LabelTokens    []string
	SubjectTokens  []string
	Quarantine     string
	RetainAt       int64
	FirstVersion   int64 // of the creation
	// Bound are holds on its thread and subjects; ReadHead looks them up where
	// they matter: of an execution whose time is over.
	Bound []string
	// Item is the item as read.
	Item store.Item
}

// Marked reports whether the execution has the label or subject of a token now.
func (h *Head) Marked(token string) bool {
	return slices.Contains(h.LabelTokens, token) || slices.Contains(h.SubjectTokens, token)
}

// ParseHead reads a head item; false when it is no head of an execution.
func ParseHead(it store.Item) (*Head, bool) {
	k := it.Key()
	t, e, ok := execution.ParsePartitionKey(k.PK)
	if !ok || k.SK != SKHead {
		return nil, false
	}
	h := &Head{Ref: execution.Ref{Tenant: t, Execution: e, Generation: it.Int(HeadGeneration)}, Item: it,
		Owner: it.Str(HeadOwner), Fence: it.Int(HeadFence), LeaseExpiresAt: it.Int(HeadLeaseExpires), LeaseSeconds: it.Int(HeadLeaseSeconds), Floor: it.Int(HeadFloor),
		Holds: slices.Clone(it[HeadHolds].SS), DueAt: it.Int(HeadDue), DueKind: it.Str(HeadDueKind), Handover: it.Int(HeadHandover), Polls: it.Int(HeadPolls),
		ExpiresAt: it.Int(HeadExpires), Thread: execution.ThreadID(it.Str(HeadThread)), Workflow: it.Str(HeadWorkflow),
		Schema: execution.Schema{Name: it.Str(HeadSchemaName), Version: it.Int(HeadSchemaVersion)}, Policy: it.Str(HeadPolicy),
		CreatedAt: it.Int(HeadCreated), UpdatedAt: it.Int(HeadUpdated), EndedAt: it.Int(HeadEnded), LabelTokens: slices.Clone(it[HeadLabels].SS),
		SubjectTokens: slices.Clone(it[HeadSubjects].SS), Quarantine: it.Str(HeadQuarantine), RetainAt: it.Int(HeadRetainDue), FirstVersion: max(1, it.Int(HeadFirst))}
	slices.Sort(h.Holds)
	h.Status = execution.Status(it.Str(HeadStatus))
	if !h.Status.Known() {
		h.RawStatus = rawStatus(it[HeadStatus])
		h.Status = execution.Status(h.RawStatus)
	}
	return h, true
}

// rawStatus shows a status attribute of whatever type. It never looks like a
// status that this version knows.
func rawStatus(v store.Value) string {
	s := ""
	switch v.Kind {
	case store.KindS, store.KindN:
		s = v.S
	case store.KindNULL:
		s = "null"
	}
	if s == "" || execution.Status(s).Known() {
		return "unknown"
	}
	return s
}

// Oldest is the oldest version that is kept, at least 1.
func (h *Head) Oldest() int64 { return max(h.Floor, h.FirstVersion, 1) }

// Expired reports whether the execution's time is over at now (ms) and nothing
// holds it: by itself, or (where ReadHead gave the head) by its thread or a
// subject.
func (h *Head) Expired(now int64) bool {
	return h.ExpiresAt > 0 && now >= h.ExpiresAt && len(h.Holds) == 0 && len(h.Bound) == 0
}

// newHead is the item that create writes: the only time a head is written
// whole.
func newHead(s *execution.State, e *execution.Entry, lease int64) store.Item {
	k := HeadKey(s.PK())
	it := store.Item{
		store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK),
		HeadGeneration: store.N(s.Generation), HeadStatus: store.S(string(s.Status)), HeadCreated: store.N(s.CreatedAt), HeadUpdated: store.N(s.TipAt),
		HeadWorkflow: store.S(s.Workflow), headStatusShard: store.S(StatusPartition(s.Tenant, string(s.Status), shard(string(s.Execution), StatusShards))),
		headUpdatedKey: store.S(timeKey(s.TipAt, s.Execution)), headCreatedKey: store.S(timeKey(s.CreatedAt, s.Execution)),
		headWorkflowShard: store.S(WorkflowPartition(s.Tenant, s.Workflow, shard(string(s.Execution), WorkflowShards))),
	}
	it[HeadCreateContent] = store.B(e.Content[:])
	if e.Request != (execution.RequestHash{}) {
		it[HeadCreateRequest] = store.B(e.Request[:])
	}
	if e.Version != 1 {
		it[HeadFirst] = store.N(e.Version)
	}
	if s.Thread != "" {
		it[HeadThread] = store.S(string(s.Thread))
		it[headThreadKey] = store.S(ThreadPartition(s.Tenant, s.Thread))
	}
	if s.Schema.Name != "" {
		it[HeadSchemaName] = store.S(s.Schema.Name)
	}
	if s.Schema.Version != 0 {
		it[HeadSchemaVersion] = store.N(s.Schema.Version)
	}
	if s.Policy != "" {
		it[HeadPolicy] = store.S(s.Policy)
	}
	if s.Owner != "" {
		it[HeadOwner], it[HeadFence], it[HeadLeaseSeconds], it[HeadLeaseExpires] = store.S(s.Owner), store.N(s.Fence), store.N(s.LeaseSeconds), store.N(lease)
		for _, a := range dueActions(s.Execution, Due{At: lease, Kind: DueLease}) {
			set := a.(store.Set)
			it[set.Attr] = set.Value
		}
	}
	return it
}

// timeKey sorts by time, then by execution.
func timeKey(ms int64, e execution.ExecutionID) string {
	return fmt.Sprintf("%015d#%s", ms, e)
}

// Due is what is to happen next and when; the zero Due: nothing.
type Due struct {
	At   int64 // epoch milliseconds
	Kind string
}

// dueActions sets or clears what is due.
func dueActions(e execution.ExecutionID, d Due) []store.Action {
	if d.At == 0 {
		return []store.Action{store.Remove{Attr: HeadDue}, store.Remove{Attr: HeadDueKind}, store.Remove{Attr: HeadDueShard}}
	}
	return []store.Action{store.Set{Attr: HeadDue, Value: store.N(d.At)}, store.Set{Attr: HeadDueKind, Value: store.S(d.Kind)},
		store.Set{Attr: HeadDueShard, Value: store.S(DuePartition(shard(string(e), DueShards)))}}
}

// DueActions sets or clears what is due on the head of e, for updates outside
// a transition (renew, hand-over, evidence).
func DueActions(e execution.ExecutionID, d Due) []store.Action { return dueActions(e, d) }

// RetainActions sets or clears when retention looks at the execution again.
func RetainActions(e execution.ExecutionID, at int64) []store.Action {
	if at == 0 {
		return []store.Action{store.Remove{Attr: HeadRetainDue}, store.Remove{Attr: HeadRetainShard}}
	}
	return []store.Action{store.Set{Attr: HeadRetainDue, Value: store.N(at)}, store.Set{Attr: HeadRetainShard, Value: store.S(RetainPartition(shard(string(e), DueShards)))}}
}

// statusActions carries the fold's standing to the head.
func statusActions(s *execution.State, lease int64, d Due) []store.Action {
	acts := []store.Action{
		store.Set{Attr: HeadStatus, Value: store.S(string(s.Status))},
		store.Set{Attr: HeadUpdated, Value: store.N(s.TipAt)},
		store.Set{Attr: headStatusShard, Value: store.S(StatusPartition(s.Tenant, string(s.Status), shard(string(s.Execution), StatusShards)))},
		store.Set{Attr: headUpdatedKey, Value: store.S(timeKey(s.TipAt, s.Execution))},
		store.Remove{Attr: HeadHandover}, store.Remove{Attr: HeadPolls}, store.Remove{Attr: HeadQuarantine}, store.Remove{Attr: HeadWake},
	}
	if s.Owner != "" {
		acts = append(acts, store.Set{Attr: HeadOwner, Value: store.S(s.Owner)}, store.Set{Attr: HeadFence, Value: store.N(s.Fence)},
			store.Set{Attr: HeadLeaseSeconds, Value: store.N(s.LeaseSeconds)}, store.Set{Attr: HeadLeaseExpires, Value: store.N(lease)})
	} else {
		acts = append(acts, store.Remove{Attr: HeadOwner}, store.Remove{Attr: HeadLeaseExpires}, store.Remove{Attr: HeadLeaseSeconds})
	}
	if s.Schema.Version != 0 {
		acts = append(acts, store.Set{Attr: HeadSchemaVersion, Value: store.N(s.Schema.Version)})
	}
	if s.EndedAt != 0 {
		acts = append(acts, store.Set{Attr: HeadEnded, Value: store.N(s.EndedAt)})
	}
	return append(acts, dueActions(s.Execution, d)...)
}

// TimerItem rings at a time: DynamoDB removes it some time after ttl (epoch
// seconds) and the stream tells. It is never trusted: what is due stands on
// the head.
func TimerItem(ref execution.Ref, kind string, at int64) store.Item {
	k := TimerKey(ref.PK(), kind)
	return store.Item{store.AttrPK: store.S(k.PK), store.AttrSK: store.S(k.SK), HeadGeneration: store.N(ref.Generation),
		store.AttrTTL: {Kind: store.KindN, S: strconv.FormatInt(EpochSeconds(at), 10)}}
}

// worthRinging reports whether a timer that far ahead (ms) is worth its write.
// The sweep looks every minute, and DynamoDB removes what is past its ttl some
// time later: a near timer never rings first.
func worthRinging(ms int64) bool { return ms >= 3_600_000 }

// EpochSeconds is the TTL attribute's unit: whole seconds, rounded up, so that a
// timer never rings before its time.
func EpochSeconds(ms int64) int64 { return (ms + 999) / 1000 }
