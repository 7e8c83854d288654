package execution

import "github.com/cairnstate/cairn/shared/jsonx"

// Change is what one request wants to add to an execution, its form already
// checked. Kind and what belongs to it are required; everything else may be
// left out.
type Change struct {
	Kind    Kind
	Actor   *Actor
	Request RequestID
	// Expected is the version that the caller builds on; 0: whatever is there
	// (system entries). First is where the request was first aimed; 0: Expected.
	Expected, First int64
	// Fence is the caller's; HasFence false: none given.
	Fence    int64
	HasFence bool
	// System: written by recovery or retention, not by an owner: no fence is
	// asked for. The journal's conditions still hold.
	System bool

	Note string
	Task TaskID
	// At most one of State, Patch and Merge.
	State, Patch, Merge *jsonx.Value

	Outcomes []Settlement // of the owner: what it learned
	// Ledger is what the ledger says about operations in Outcomes and Operations;
	// it is judged together with what the owner says of them.
	Ledger     []Evidence
	Evidence   []Evidence // to be judged together (reconcile)
	Checks     []Check
	Operations []Declaration
	// NotForgotten are operations of which the ledger knows nothing, although the
	// fold could not tell them from ones settled long ago.
	NotForgotten map[OperationID]bool
	Absorb       []SignalRef
	Emptied      []SignalRef
	Artifacts    []Artifact
	Spend        map[string]string // exact decimals, not negative
	Labels       map[string]string
	Subjects     []string
	Permissions  *Permissions

	Wait     *Wait
	Complete *Completion
	Continue *Continue
	Parked   []Reason
	Reason   string
	Schema   *Schema
	Renamed  []Rename
	MovedTo  ExecutionID
	Bundle   *Bundle
	Created  *Creation
	// FirstVersion is where a creation starts counting; 0: 1. A recreated id goes
	// on at the receipt's last + 2.
	FirstVersion int64
	Claim        *ClaimRequest
	Handovers    int64
	// Redacted: the secret guard replaced values of the request.
	Redacted bool
}

// RequestID is a request's identity: its text, the hash of it and the digest
// of its content.
type RequestID struct {
	ID     string
	Hash   RequestHash
	Digest ContentDigest
}

// Declaration asks for one external effect.
type Declaration struct {
	Name            string
	Args            *jsonx.Value
	Key             string
	OnUncertain     OnUncertain // "" means Ask
	DedupSeconds    int64
	ValidSeconds    int64
	DeadlineSeconds int64
	Resolver        string
}

// ClaimRequest asks for ownership. HeadExpiry is lease_expires_at of the head
// as read, in milliseconds.
type ClaimRequest struct {
	Owner        string
	LeaseSeconds int64
	Nonce        RequestHash
	Resume       *jsonx.Value
	Supersede    bool
	Force        string
	HeadExpiry   int64
}

// Environment is what a proposal is judged by besides the state.
type Environment struct {
	// Now is the store's time in milliseconds.
	Now int64
	// Epoch ranks fences above all older ones after a restore of the table.
	Epoch int64
}

// Disposition says what a caller may do about a declared operation.
type Disposition string

// The dispositions (api.md, "operations").
const (
	Go            Disposition = "go"
	StartFirst    Disposition = "start"
	Settled       Disposition = "settled"
	UncertainDisp Disposition = "uncertain"
)

// Given is the answer to one declaration.
type Given struct {
	Operation   *Operation
	Disposition Disposition
}

// Proposal is a change that every rule accepts: the entry to write, the state
// after it and the answers to the declarations.
type Proposal struct {
	Entry *Entry
	State *State
	Given []Given
	// Replay: the request was done before, at this version; nothing is to be
	// written. Entry and State are nil.
	Replay *RequestMemory
	// Slots must be written before the entry: outcomes not_executed and abandoned
	// count only when they stand in the attempt's slot (M).
	Slots []Settlement
	// Contradictions that the change brought to light.
	Contradictions int
}
