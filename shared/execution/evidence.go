package execution

import "github.com/cairnstate/cairn/shared/jsonx"

// Source says where an outcome came from.
type Source string

// The sources.
const (
	FromOwner    Source = "owner"    // the owner's own apply
	FromLedger   Source = "ledger"   // a slot
	FromResolver Source = "resolver" // the operation's resolver
	FromCaller   Source = "caller"   // reconcile with evidence
	FromVerdict  Source = "verdict"  // a person
	FromSlot     Source = "slot"     // an empty slot that recovery closed
)

// Finding is what a business system or a person answered.
type Finding string

// The findings (api.md, "reconcile").
const (
	NotFoundFinding   Finding = "not_found"
	InProgress        Finding = "in_progress"
	Found             Finding = "found"
	Several           Finding = "several"
	QueryFailed       Finding = "query_failed"
	RejectedDuplicate Finding = "rejected_duplicate"
	Decided           Finding = "decided"
)

// Counted reports whether a number of effects goes with a finding: what found
// none has not found, and what counted some is no proof of absence.
func Counted(f Finding, n int64) bool {
	switch f {
	case Found:
		return n > 0
	case NotFoundFinding:
		return n == 0
	}
	return true
}

// Evidence is one answer about one attempt.
type Evidence struct {
	Operation   OperationID  `json:"o"`
	Attempt     int          `json:"n"`
	Finding     Finding      `json:"f"`
	Outcome     Outcome      `json:"c,omitempty"` // with found, decided
	Source      Source       `json:"s,omitempty"`
	AskedAt     int64        `json:"t,omitempty"` // store time of the question, ms
	Count       int64        `json:"m,omitempty"`
	ProviderRef string       `json:"p,omitempty"`
	Result      *jsonx.Value `json:"r,omitempty"`
	ResultRef   *Artifact    `json:"rr,omitempty"`
	Fenced      bool         `json:"x,omitempty"`
	Reason      string       `json:"d,omitempty"`
	Reference   string       `json:"e,omitempty"`
	Force       bool         `json:"z,omitempty"`
	// Started: the attempt's slot says that the effect was started. SlotClosed:
	// recovery found the slot empty and closed it (exact).
	Started    bool   `json:"g,omitempty"`
	SlotClosed bool   `json:"l,omitempty"`
	Actor      *Actor `json:"a,omitempty"`
}

// Settlement is a final outcome that an entry takes in.
type Settlement struct {
	Operation   OperationID  `json:"o"`
	Attempt     int          `json:"n"`
	Outcome     Outcome      `json:"c"`
	Source      Source       `json:"s"`
	Reason      string       `json:"d,omitempty"`
	ProviderRef string       `json:"p,omitempty"`
	Result      *jsonx.Value `json:"r,omitempty"`
	ResultRef   *Artifact    `json:"rr,omitempty"`
	Verdict     *Verdict     `json:"v,omitempty"`
}
