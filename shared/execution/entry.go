package execution

import "github.com/cairnstate/cairn/shared/jsonx"

// Kind says what an entry did.
type Kind string

// The kinds of entries. A kind that is not listed is from a newer version:
// the fold refuses it with SchemaTooNew.
const (
	KindCreated    Kind = "created"
	KindCheckpoint Kind = "checkpoint" // apply, the execution goes on
	KindClaimed    Kind = "claimed"
	KindSuspended  Kind = "suspended"
	KindContinued  Kind = "continued" // given up for a fresh worker (continue, release)
	KindCompleted  Kind = "completed"
	KindParked     Kind = "parked"
	KindHalted     Kind = "halted"
	KindUnhalted   Kind = "unhalted"
	KindVerdict    Kind = "verdict"    // a person's decision on an operation
	KindReconciled Kind = "reconciled" // evidence taken in by the owner or by recovery
	KindMigrated   Kind = "migrated"   // schema migration
	KindMoved      Kind = "moved"      // the right to act went to a fork
	KindArchived   Kind = "archived"
	KindRestored   Kind = "restored"
	KindDeleted    Kind = "deleted" // closes the journal; nothing follows
)

// Known reports whether this version knows the kind.
func (k Kind) Known() bool {
	switch k {
	case KindCreated, KindCheckpoint, KindClaimed, KindSuspended, KindContinued, KindCompleted, KindParked, KindHalted,
		KindUnhalted, KindVerdict, KindReconciled, KindMigrated, KindMoved, KindArchived, KindRestored, KindDeleted:
		return true
	}
	return false
}

// RequestHash identifies a request_id (16 bytes of SHA-256); zero: the request
// carried none.
type RequestHash [16]byte

// ContentDigest identifies a request's content (16 bytes of SHA-256 over its
// digest form).
type ContentDigest [16]byte

// Entry is one immutable step of a journal. The plain part can be read without
// a key and is bound to the sealed body as associated data.
type Entry struct {
	Version    int64
	Kind       Kind
	Generation int64
	// Fence is the position under which it was written; 0 before the first claim.
	Fence   int64
	Request RequestHash
	Content ContentDigest
	// At is the store's time of the write in milliseconds (last Date seen plus
	// time elapsed since); the order of entries is their version, whatever At says.
	At   int64
	Body Body
}

// Actor is who asked, as claimed; Verified where the door proved it.
type Actor struct {
	Kind     string `json:"kind"` // worker, tool, human or system
	ID       string `json:"id"`
	Via      string `json:"via,omitempty"`
	Verified bool   `json:"verified,omitempty"`
}

// Body is the sealed part of an entry: what it changed. A field that is absent
// changed nothing. Its JSON form is stored (docs/FORMAT.md): names are never
// reused, unknown ones are SchemaTooNew.
type Body struct {
	Actor     *Actor `json:"a,omitempty"`
	RequestID string `json:"rid,omitempty"`
	Note      string `json:"n,omitempty"`
	Task      TaskID `json:"tk,omitempty"`

	Created *Creation `json:"cr,omitempty"`
	Claim   *Claim    `json:"cl,omitempty"`

	// State and Patch are the change of the agent's state: the whole new state, or
	// an RFC 6902 patch of it; at most one is set. They are stored beside the
	// control JSON, see Encode.
	State *jsonx.Value `json:"-"`
	Patch *jsonx.Value `json:"-"`

	Outcomes    []Settlement      `json:"oc,omitempty"`
	Evidence    []Evidence        `json:"ev,omitempty"` // open evidence taken in: changes no outcome
	Declared    []Declared        `json:"op,omitempty"`
	Absorbed    []SignalRef       `json:"ab,omitempty"`
	Emptied     []SignalRef       `json:"em,omitempty"` // absorbed signals whose items are seen to be empty: forgotten
	Artifacts   []Artifact        `json:"ar,omitempty"`
	Spent       map[string]string `json:"sp,omitempty"` // exact decimals
	Labels      map[string]string `json:"lb,omitempty"` // set or replaced
	Subjects    []string          `json:"sj,omitempty"` // added
	Permissions *Permissions      `json:"pm,omitempty"`

	Wait      *Wait       `json:"wt,omitempty"`
	Complete  *Completion `json:"cp,omitempty"`
	Continue  *Continue   `json:"cn,omitempty"`
	Parked    []Reason    `json:"pk,omitempty"`
	Reason    string      `json:"rs,omitempty"` // halt, unhalt, delete ... in words
	Schema    *Schema     `json:"sc,omitempty"` // migrated to
	Renamed   []Rename    `json:"rn,omitempty"` // migrated operations
	MovedTo   ExecutionID `json:"mv,omitempty"`
	Bundle    *Bundle     `json:"bd,omitempty"` // archived or restored
	Checked   []Check     `json:"ck,omitempty"` // when operations were asked about and when to ask again
	Handovers int64       `json:"ho,omitempty"` // hand-overs counted at a claim since the last progress

	// StateChanged: the step changed the agent's state (with a snapshot, State
	// alone does not tell).
	StateChanged bool `json:"sx,omitempty"`

	// Redacted: values that looked like credentials were replaced before the step
	// was written.
	Redacted bool `json:"rd,omitempty"`

	// Snapshot is the whole fold after this entry; it rides along when enough
	// bytes were stored since the last one. Its agent state is stored beside the
	// control JSON like State.
	Snapshot *State `json:"ss,omitempty"`
}

// Creation is what create fixed.
type Creation struct {
	Thread       ThreadID          `json:"th,omitempty"`
	Workflow     string            `json:"wf"`
	Schema       Schema            `json:"sc"`
	Input        *jsonx.Value      `json:"in,omitempty"`
	Policy       string            `json:"po,omitempty"`
	Budgets      map[string]string `json:"bu,omitempty"` // limits, exact decimals
	Parent       *Parent           `json:"pa,omitempty"`
	IdentityRoot *Ref              `json:"ir,omitempty"` // inherited by a fork with carry; nil: its own
	// Operations come along with a fork that carries.
	Operations []*Operation `json:"ops,omitempty"`
	Forgotten  []byte       `json:"fg,omitempty"`
	ForkedFrom *ForkPoint   `json:"ff,omitempty"`
}

// ForkPoint is where a fork took its state from.
type ForkPoint struct {
	Execution  ExecutionID `json:"e"`
	Generation int64       `json:"g"`
	Version    int64       `json:"v"`
	Carry      bool        `json:"c,omitempty"`
}

// Parent is the operation of another execution that an execution is the
// effect of.
type Parent struct {
	Execution  ExecutionID `json:"e"`
	Generation int64       `json:"g"`
	Operation  OperationID `json:"o"`
	Attempt    int         `json:"n"`
}

// Schema names the shape of an agent's state; Version 0: none declared.
type Schema struct {
	Name    string `json:"n,omitempty"`
	Version int64  `json:"v,omitempty"`
}

// Claim makes an owner.
type Claim struct {
	Owner        string       `json:"o"`
	LeaseSeconds int64        `json:"l"`
	NonceHash    RequestHash  `json:"nh,omitzero"` // zero: no nonce was given
	Resume       *jsonx.Value `json:"r,omitempty"`
	Force        string       `json:"f,omitempty"` // reason of a forced claim
	Superseded   bool         `json:"su,omitempty"`
}

// Permissions say for whom an execution acts; never credentials.
type Permissions struct {
	Principal string   `json:"p,omitempty"`
	Scopes    []string `json:"s,omitempty"`
	ExpiresAt int64    `json:"x,omitempty"` // ms; 0: never
	Ref       string   `json:"r,omitempty"`
}

// SignalRef names a signal; Actor and At come from its item.
type SignalRef struct {
	Name  string `json:"n"`
	Key   string `json:"k"`
	Actor *Actor `json:"a,omitempty"`
	At    int64  `json:"t,omitempty"`
}

// Artifact is an accepted artifact. Name may be empty: it is reachable by its
// digest alone.
type Artifact struct {
	Digest    string `json:"d"` // 64 lower-case hex digits of SHA-256
	Bytes     int64  `json:"b"`
	Name      string `json:"n,omitempty"`
	MediaType string `json:"m,omitempty"`
	Version   int64  `json:"v,omitempty"` // of the entry that accepted it
}

// Wait is what a waiting execution waits for. With nothing awaited it waits
// until someone claims it.
type Wait struct {
	Operations []OperationID `json:"o,omitempty"`
	Signals    []string      `json:"s,omitempty"` // names
	Until      int64         `json:"u,omitempty"` // ms; 0: no time
	WaitingFor *jsonx.Value  `json:"f,omitempty"`
	TaskToken  string        `json:"k,omitempty"` // never shown
}

// Completion ends an execution.
type Completion struct {
	Outcome Status       `json:"o"` // completed, failed or cancelled
	Result  *jsonx.Value `json:"r,omitempty"`
	Error   *jsonx.Value `json:"e,omitempty"`
}

// Continue gives an execution up for a fresh worker.
type Continue struct {
	AfterSeconds int64 `json:"s,omitempty"`
}

// Reason says why an execution is parked, as data.
type Reason struct {
	Code      string      `json:"c"` // uncertain, needs_review, no_workflow, no_resume_target, crash_loop, migration_failed ...
	Operation OperationID `json:"o,omitempty"`
	Name      string      `json:"n,omitempty"`
	Detail    string      `json:"d,omitempty"`
}

// Rename is an operation's new name after a migration.
type Rename struct {
	From string `json:"f"`
	To   string `json:"t"`
}

// Bundle names an archive.
type Bundle struct {
	Key     string `json:"k"`
	Digest  string `json:"d"`
	Bytes   int64  `json:"b"`
	Version int64  `json:"v"` // tip that it holds
}

// Check is a round of asking about one operation.
type Check struct {
	Operation OperationID `json:"o"`
	At        int64       `json:"t"`
	Next      int64       `json:"n,omitempty"` // not asked again before; ms
	Finding   Finding     `json:"f,omitempty"`
	Detail    string      `json:"d,omitempty"`
}
