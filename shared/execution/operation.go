package execution

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// OnUncertain says what may be done when an operation's outcome was never
// recorded (api.md, "operations").
type OnUncertain string

// The four ways.
const (
	Ask     OnUncertain = "ask"      // the default
	Close   OnUncertain = "close"    // nothing runs before the attempt's slot is filled
	SameKey OnUncertain = "same_key" // the provider deduplicates for DedupSeconds
	Always  OnUncertain = "always"   // harmless to repeat
)

// Outcome is what became of an attempt.
type Outcome string

// Outcomes: the empty one, unknown and in_progress are open, the rest final.
const (
	OutcomeNone        Outcome = ""
	OutcomeUnknown     Outcome = "unknown"
	OutcomeInProgress  Outcome = "in_progress"
	OutcomeSucceeded   Outcome = "succeeded"
	OutcomeFailed      Outcome = "failed"       // the system says so; effects as it says
	OutcomeRejected    Outcome = "rejected"     // refused, no effect
	OutcomeNotExecuted Outcome = "not_executed" // proved never to have happened
	OutcomeAbandoned   Outcome = "abandoned"    // given up by a person
)

// Final reports a final outcome. One that this version does not know is open:
// it counts as uncertain.
func (o Outcome) Final() bool {
	switch o {
	case OutcomeSucceeded, OutcomeFailed, OutcomeRejected, OutcomeNotExecuted, OutcomeAbandoned:
		return true
	}
	return false
}

// Effectless reports an outcome that says that nothing happened.
func (o Outcome) Effectless() bool { return o == OutcomeRejected || o == OutcomeNotExecuted }

// Known reports whether this version knows the outcome.
func (o Outcome) Known() bool {
	return o.Final() || o == OutcomeNone || o == OutcomeUnknown || o == OutcomeInProgress
}

// Operation is one external effect as the fold knows it: the current attempt
// in full. Immutable.
type Operation struct {
	ID         OperationID   `json:"i"`
	Seq        int64         `json:"q"`
	Task       TaskID        `json:"tk,omitempty"`
	Name       string        `json:"n"`
	OldNames   []string      `json:"on,omitempty"` // before migrations renamed it
	Key        string        `json:"k,omitempty"`  // the caller's key; "": identified by its arguments
	Args       *jsonx.Value  `json:"a,omitempty"`
	ArgsDigest ContentDigest `json:"ad"` // of the canonical arguments

	OnUncertain     OnUncertain `json:"u"`
	DedupSeconds    int64       `json:"ds,omitempty"`
	ValidSeconds    int64       `json:"vs,omitempty"`
	DeadlineSeconds int64       `json:"dl,omitempty"`
	Resolver        string      `json:"r,omitempty"`

	Attempt    int   `json:"at"` // from 1
	Rejections int   `json:"rj,omitempty"`
	Sends      int   `json:"se"`          // times that the current attempt was given out (`go`)
	Intent     int64 `json:"it"`          // store time of the entry that declared the attempt, ms
	IntentAt   int64 `json:"iv"`          // its version
	Fence      int64 `json:"f,omitempty"` // fence under which it was last given out; negative: by an execution that this one carries on
	KeySince   int64 `json:"ks"`          // from when the current provider key counts: its first use, or since nothing of it arrived, ms

	Outcome     Outcome      `json:"o,omitempty"` // final, or empty
	Reason      string       `json:"rs,omitempty"`
	ProviderRef string       `json:"pr,omitempty"`
	Result      *jsonx.Value `json:"re,omitempty"`
	ResultRef   *Artifact    `json:"rr,omitempty"` // a result too large to keep inline
	Source      Source       `json:"so,omitempty"`
	SettledAt   int64        `json:"sv,omitempty"` // version of the entry that settled it
	Verdict     *Verdict     `json:"vd,omitempty"`

	// Open evidence about the current attempt.
	SawUnknown     bool            `json:"eu,omitempty"` // somebody reported `unknown`: a later `rejected` settles nothing
	NeedsReview    bool            `json:"nr,omitempty"` // several effects, or contradicting evidence before it was settled
	NextCheck      int64           `json:"nc,omitempty"` // not asked again before, ms
	Checks         int             `json:"cc,omitempty"` // rounds of asking
	LastFinding    Finding         `json:"lf,omitempty"`
	Contradictions []Contradiction `json:"cd,omitempty"`
	Past           []PastAttempt   `json:"pa,omitempty"`
}

// PastAttempt is an earlier attempt's end.
type PastAttempt struct {
	Attempt int     `json:"n"`
	Outcome Outcome `json:"o"`
	Reason  string  `json:"r,omitempty"`
	Source  Source  `json:"s,omitempty"`
}

// Contradiction is a final outcome that came after another one.
type Contradiction struct {
	Attempt     int     `json:"n"`
	Outcome     Outcome `json:"o"`
	ProviderRef string  `json:"p,omitempty"`
	Source      Source  `json:"s,omitempty"`
	At          int64   `json:"t,omitempty"`
}

// Verdict is a person's decision.
type Verdict struct {
	Actor     *Actor `json:"a,omitempty"`
	Reason    string `json:"r"`
	Reference string `json:"e,omitempty"`
	Force     bool   `json:"f,omitempty"`
	At        int64  `json:"t"`
}

// Final reports whether the current attempt has a final outcome.
func (op *Operation) Final() bool { return op.Outcome.Final() }

// Declared is one operation that an entry declares: the operation as it stands
// after the entry (first attempt or a next one).
type Declared struct {
	Operation *Operation `json:"o,omitempty"` // a new operation, whole
	// Again: an operation of the fold is given out once more.
	ID      OperationID `json:"i,omitempty"`
	Attempt int         `json:"n,omitempty"` // the attempt it is in now
}

// Identify computes an operation's identity: the same logical call after a
// crash gets the same id, whatever call id a model invented. With a key it is
// hash(identity root, task, key); without one hash(identity root, task, name,
// canonical arguments).
func Identify(root Ref, task TaskID, name, key string, args *jsonx.Value) OperationID {
	h := sha256.New()
	part := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	part("cairn operation 1")
	part(string(root.Tenant))
	part(string(root.Execution))
	var g [8]byte
	binary.BigEndian.PutUint64(g[:], uint64(root.Generation))
	h.Write(g[:])
	part(string(task))
	if key != "" {
		part("key")
		part(key)
	} else {
		part("args")
		part(name)
		h.Write(jsonx.AppendCanonical(nil, argsOrNull(args)))
	}
	return OperationID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// OperationID is the identity of a declaration in this execution: Identify,
// but an operation that was declared under a name before a migration renamed it
// keeps the identity it had.
func (s *State) OperationID(task TaskID, d *Declaration) OperationID {
	id := Identify(s.IdentityRoot, task, d.Name, d.Key, d.Args)
	if d.Key != "" || s.Operations[id] != nil {
		return id
	}
	tried := map[string]bool{}
	for _, op := range s.Operations {
		if op.Name != d.Name {
			continue
		}
		for _, old := range op.OldNames {
			if tried[old] {
				continue
			}
			tried[old] = true
			if was := Identify(s.IdentityRoot, task, old, "", d.Args); s.Operations[was] != nil && s.Operations[was].Name == d.Name {
				return was
			}
		}
	}
	return id
}

// DigestArgs is the digest of canonical arguments: numbers by value, key order
// free.
func DigestArgs(args *jsonx.Value) ContentDigest {
	sum := sha256.Sum256(jsonx.AppendCanonical(nil, argsOrNull(args)))
	return ContentDigest(sum[:16])
}

var jsonNull = jsonx.MustParse("null")

func argsOrNull(v *jsonx.Value) *jsonx.Value {
	if v == nil {
		return jsonNull
	}
	return v
}

// ProviderKey is the idempotency key that the provider is shown: it changes
// only after a rejection, so that a repeat after proof of absence is still
// recognised.
func (op *Operation) ProviderKey(root Ref) string {
	h := sha256.New()
	h.Write([]byte("cairn provider key 1\x00" + string(root.Tenant) + "\x00" + string(root.Execution) + "\x00"))
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(root.Generation))
	binary.BigEndian.PutUint64(n[8:], uint64(op.Rejections))
	h.Write(n[:])
	h.Write([]byte(op.ID))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// SendBy is the time after which no effect may be started for the current
// attempt, in milliseconds; 0 when it declared no such time.
func (op *Operation) SendBy() int64 {
	var by int64
	if op.ValidSeconds > 0 {
		by = op.Intent + op.ValidSeconds*1000
	}
	if op.DedupSeconds > 0 {
		d := op.KeySince + op.DedupSeconds*1000
		if margin := NetworkDelay.Milliseconds(); d-margin > op.KeySince {
			d -= margin
		}
		if by == 0 || d < by {
			by = d
		}
	}
	return by
}

// RepeatBy is the time until which the operation may go again under the same
// key (same_key), 0 when never: the dedup window less the network delay, so
// that the repeat still arrives inside it.
func (op *Operation) RepeatBy() int64 {
	if op.OnUncertain != SameKey {
		return 0
	}
	by := op.KeySince + op.DedupSeconds*1000 - NetworkDelay.Milliseconds()
	if by <= op.KeySince {
		return 0
	}
	return by
}

// ImpossibleAfter is the time from which the effect of the current attempt can
// no longer come into being, 0 when there is none: only a not_found asked after
// it proves anything (M). valid_seconds: the provider itself refuses later
// requests. dedup_seconds: nothing is sent after SendBy, and what was sent has
// arrived after the network delay.
func (op *Operation) ImpossibleAfter() int64 {
	if op.ValidSeconds > 0 {
		return op.Intent + op.ValidSeconds*1000
	}
	if op.DedupSeconds > 0 {
		return op.SendBy() + NetworkDelay.Milliseconds()
	}
	return 0
}

// Uncertain reports whether an open operation must be reconciled before
// anything is done about it, seen by the owner of fence at time now: its
// outcome was left open by an earlier owner, its deadline has passed, somebody
// reported `unknown`, or evidence contradicts itself.
func (op *Operation) Uncertain(fence, now int64) bool {
	switch {
	case op.Final():
		return false
	case op.NeedsReview, op.SawUnknown, op.Fence != fence:
		return true
	}
	return op.DeadlineSeconds > 0 && now >= op.Intent+op.DeadlineSeconds*1000
}

// ViewStatus is the operation's status in views: an outcome, or declared,
// uncertain, needs_review. owned: the execution has an owner under s.Fence.
func (op *Operation) ViewStatus(s *State, now int64) string {
	switch {
	case op.NeedsReview:
		return "needs_review"
	case op.Final():
		return string(op.Outcome)
	case s.Owner == "" && s.Fence > 0, op.Uncertain(s.Fence, now):
		return "uncertain"
	}
	return "declared"
}
