package execution

import (
	"slices"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// Status is where an execution stands. A stored status that is not Known is
// shown as it is; nothing may run, expire or count as finished because of it.
type Status string

// The statuses.
const (
	StatusCreated   Status = "created"
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusParked    Status = "parked"
	StatusHalted    Status = "halted"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusArchived  Status = "archived"
	StatusMoved     Status = "moved"
	// StatusDeleting stands on the head of an execution that a deletion closed;
	// every reader gets Deleted.
	StatusDeleting Status = "deleting"
)

// Known reports whether this version knows the status.
func (s Status) Known() bool {
	switch s {
	case StatusCreated, StatusRunning, StatusWaiting, StatusParked, StatusHalted, StatusDeleting:
		return true
	}
	return s.Ended()
}

// Ended reports a status from which no work goes on: completed, failed,
// cancelled, archived, moved.
func (s Status) Ended() bool { return s.Terminal() || s == StatusArchived || s == StatusMoved }

// Terminal reports an outcome: completed, failed or cancelled.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Budget is an exact limit and what was spent of it; both are decimal texts.
type Budget struct {
	Limit string `json:"l"`
	Spent string `json:"s"`
}

// RequestMemory remembers one request, so that a repeat finds itself at
// whatever version.
type RequestMemory struct {
	Hash    RequestHash   `json:"h"`
	Digest  ContentDigest `json:"d"`
	Version int64         `json:"v"`
}

// State is the fold of a journal up to Version: everything that is known about
// an execution but the evidence not yet taken in. It is immutable; its JSON
// form (docs/FORMAT.md) is what a snapshot stores.
type State struct {
	Ref
	Version int64  `json:"v"`
	Status  Status `json:"st"`
	// Before is the terminal status of an archived execution.
	Before Status `json:"sb,omitempty"`

	Owner        string       `json:"ow,omitempty"` // "": nobody owns it
	Fence        int64        `json:"f,omitempty"`  // of the last claim; 0: never claimed
	LeaseSeconds int64        `json:"ls,omitempty"`
	ClaimNonce   RequestHash  `json:"cn,omitzero"`
	ClaimVersion int64        `json:"cv,omitempty"`
	ClaimedAt    int64        `json:"ca,omitempty"`
	Resume       *jsonx.Value `json:"re,omitempty"` // the claim's resume value

	TipAt      int64 `json:"ta"`           // At of the tip
	TipByOwner bool  `json:"to,omitempty"` // the tip was written by the current owner: its lease counts from TipAt
	CreatedAt  int64 `json:"at"`
	EndedAt    int64 `json:"ea,omitempty"`

	Thread       ThreadID          `json:"th,omitempty"`
	Workflow     string            `json:"wf"`
	Schema       Schema            `json:"sc,omitzero"`
	Task         TaskID            `json:"tk,omitempty"`
	Input        *jsonx.Value      `json:"in,omitempty"`
	Policy       string            `json:"po,omitempty"`
	Permissions  *Permissions      `json:"pm,omitempty"`
	Budgets      map[string]Budget `json:"bu,omitempty"`
	Labels       map[string]string `json:"lb,omitempty"`
	Subjects     []string          `json:"sj,omitempty"`
	Parent       *Parent           `json:"pa,omitempty"`
	ForkedFrom   *ForkPoint        `json:"ff,omitempty"`
	IdentityRoot Ref               `json:"ir"`

	// Data is the agent's state, an object.
	Data *jsonx.Value `json:"-"`

	Operations map[OperationID]*Operation `json:"ops,omitempty"`
	OpSeq      int64                      `json:"oq,omitempty"` // declarations so far
	Open       int                        `json:"oo,omitempty"` // operations without a final outcome
	Settled    []OperationID              `json:"os,omitempty"` // settled ones in Operations, oldest first
	// Forgotten are the first 8 bytes of the ids of settled operations that left
	// Operations, sorted; their outcome stands in their slots.
	Forgotten []byte `json:"fg,omitempty"`

	// Absorbed signals whose items may still be full: "name\x00key".
	Absorbed map[string]struct{} `json:"ab,omitempty"`

	Artifacts []Artifact `json:"ar,omitempty"` // in the order of acceptance

	Wait       *Wait       `json:"wt,omitempty"`
	Continue   *Continue   `json:"cu,omitempty"` // running without owner since a continue or release
	Parked     []Reason    `json:"pk,omitempty"`
	HaltReason string      `json:"hr,omitempty"`
	HaltedFrom Status      `json:"hf,omitempty"`
	Completion *Completion `json:"cp,omitempty"`
	MovedTo    ExecutionID `json:"mv,omitempty"`
	Bundle     *Bundle     `json:"bd,omitempty"`

	// Handovers counts hand-overs since the last entry by an owner that was no
	// claim: a crash loop.
	Handovers int64 `json:"ho,omitempty"`

	// Requests are the last MaxRequestMemory requests, oldest first; RequestFloor
	// is the version below which requests may have been forgotten.
	Requests     []RequestMemory `json:"rq,omitempty"`
	RequestFloor int64           `json:"rf,omitempty"`
}

// Operation gives an operation by id; nil when it is not in the fold.
func (s *State) Operation(id OperationID) *Operation { return s.Operations[id] }

// OperationsInOrder lists the operations of the fold in the order of their
// declaration.
func (s *State) OperationsInOrder() []*Operation {
	ops := make([]*Operation, 0, len(s.Operations))
	for _, op := range s.Operations {
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b *Operation) int { return int(a.Seq - b.Seq) })
	return ops
}

// OpenOperations lists those without a final outcome, in order.
func (s *State) OpenOperations() []*Operation {
	if s.Open == 0 {
		return nil
	}
	ops := s.OperationsInOrder()
	return slices.DeleteFunc(ops, func(op *Operation) bool { return op.Final() })
}

// LeaseEnd is when the current owner's lease ends, in milliseconds, given the
// head's lease_expires_at: progress renews. 0 when nobody owns it.
func (s *State) LeaseEnd(headExpiry int64) int64 {
	if s.Owner == "" {
		return 0
	}
	if s.TipByOwner {
		return max(headExpiry, s.TipAt+s.LeaseSeconds*1000)
	}
	return headExpiry
}

// Remembered looks a request up among those still known.
func (s *State) Remembered(h RequestHash) (RequestMemory, bool) {
	if h == (RequestHash{}) {
		return RequestMemory{}, false
	}
	for i := len(s.Requests) - 1; i >= 0; i-- {
		if s.Requests[i].Hash == h {
			return s.Requests[i], true
		}
	}
	return RequestMemory{}, false
}

func (s *State) remembers(h RequestHash) bool { _, ok := s.Remembered(h); return ok }

// ArtifactNamed is the newest accepted artifact of that name, nil if none.
func (s *State) ArtifactNamed(name string) *Artifact {
	for i := len(s.Artifacts) - 1; i >= 0; i-- {
		if s.Artifacts[i].Name == name {
			return &s.Artifacts[i]
		}
	}
	return nil
}

// ArtifactByDigest is an accepted artifact with that content, nil if none.
func (s *State) ArtifactByDigest(digest string) *Artifact {
	for i := len(s.Artifacts) - 1; i >= 0; i-- {
		if s.Artifacts[i].Digest == digest {
			return &s.Artifacts[i]
		}
	}
	return nil
}
