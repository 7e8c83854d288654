package retention

import (
	"fmt"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// Act is one thing that retention does to an execution.
type Act string

// The acts. Keep: nothing is due.
const (
	Keep    Act = ""
	Remove  Act = "remove"  // its time is over
	Erase   Act = "erase"   // a deletion was asked for and waited for holds
	Archive Act = "archive" // into the archive
	Trim    Act = "trim"    // table items that the archive holds and that are old enough
	Prune   Act = "prune"   // superseded versions, by the history rule
)

// Times of the plan, in milliseconds.
const (
	day  = 24 * 60 * 60 * 1000
	hour = 60 * 60 * 1000
	// settle is how long an entry's successor must stand before the entry goes
	// (execution.PruneSafety), and the pace of the history rule.
	settle = day + hour
	// restoredFor is how long a restored execution stays before its policy archives
	// it again.
	restoredFor = 7 * day
	// heldPoll is when a held execution that would be due is looked at again; the
	// release of a hold brings it forward.
	heldPoll = 6 * hour
)

// Facts are what a plan is made from: an execution as its head has it, and its
// policy. Times are in milliseconds, 0 where there is none.
type Facts struct {
	Status execution.Status
	// Outcome is the terminal status of an ended execution, also of an archived one.
	Outcome            execution.Status
	CreatedAt, EndedAt int64
	RestoredAt         int64 // from the archive
	ArchivedAt         int64
	PrunedAt           int64 // when the history rule was last applied
	Holds              []string
	// Open counts operations without a final outcome.
	Open int
	// Alone: nothing that descends from it is left. It counts for one that moved to a
	// fork alone, whose evidence reaches the fork through it.
	Alone bool
	// PolicyName is what the execution names, "" for none; Policy is nil when there
	// is none of that name.
	PolicyName string
	Policy     *api.Policy
	// Asked: a deletion was asked for and remembered.
	Asked bool
	// Untrimmed: the table still holds items that the archive holds.
	Untrimmed bool
}

// Decision is what is to be done now and when to look again.
type Decision struct {
	Do  Act
	Why string
	// ExpiresAt is when the execution's time is over; 0: never.
	ExpiresAt int64
	// Next is when something will be due; 0: never. It is now when Do is set.
	Next int64
}

// Plan decides what is to be done with an execution at a time. It acts on
// nothing that is held, has an open operation or a status that this version does
// not know, and on nothing before its date.
func Plan(f Facts, now int64) Decision {
	switch {
	case !f.Status.Known():
		return Decision{Why: "the status is not known to this version: kept"}
	case f.Status == execution.StatusDeleting:
		return Decision{Why: "being deleted"}
	}
	d := Decision{ExpiresAt: expiry(f)}
	due, at, why := next(f, d.ExpiresAt)
	d.Why, d.Next = why, at
	if waits(f) && (due == Keep || at > now+day) {
		return Decision{Why: "the policy " + f.PolicyName + " keeps it as long as something descends from it", Next: now + day}
	}
	if due == Keep || at > now {
		return d
	}
	switch {
	case len(f.Holds) > 0:
		d.Why = why + "; held by " + strings.Join(f.Holds, ", ")
		d.Next = now + heldPoll
	case f.Open > 0 && (due == Remove || due == Archive):
		d.Why, d.Next = fmt.Sprintf("%s; %d operations are open", why, f.Open), now+heldPoll
	default:
		d.Do, d.Next = due, now
	}
	return d
}

// expiry is when a policy ends an execution; 0: never.
func expiry(f Facts) int64 {
	if f.Policy == nil || f.EndedAt == 0 || !f.Status.Ended() {
		return 0
	}
	days := daysOf(f)
	if days == nil {
		return 0
	}
	// At least 1: 0 on the head means never.
	return max(f.EndedAt+*days*day, 1)
}

// daysOf is the rule that ends an execution; nil: none does.
func daysOf(f Facts) *int64 {
	switch p := f.Policy; f.Outcome {
	case execution.StatusCompleted:
		return p.CompletedDays
	case execution.StatusFailed:
		return p.FailedDays
	case execution.StatusCancelled:
		return p.CancelledDays
	case execution.StatusMoved:
		if f.Alone {
			return longest(p)
		}
	}
	return nil
}

// longest is what holds for an execution that moved: how it would have ended,
// nobody knows. nil: the policy ends none.
func longest(p *api.Policy) (days *int64) {
	for _, n := range []*int64{p.CompletedDays, p.FailedDays, p.CancelledDays} {
		if n != nil && (days == nil || *n > *days) {
			days = n
		}
	}
	return days
}

// waits: it moved, and its policy ends it when nothing that descends from it is
// left, which no write to it tells: it is looked at daily.
func waits(f Facts) bool {
	return f.Status == execution.StatusMoved && !f.Alone && f.Policy != nil && longest(f.Policy) != nil && !f.Asked
}

// next is the earliest act and its time, held or not.
func next(f Facts, expires int64) (Act, int64, string) {
	if f.Asked {
		return Erase, 0, "a deletion was asked for"
	}
	if f.Untrimmed && (expires == 0 || f.ArchivedAt+settle < expires) {
		return Trim, f.ArchivedAt + settle, "the archive holds it"
	}
	if f.PolicyName == "" {
		return Keep, 0, "no policy: kept"
	}
	if f.Policy == nil {
		return Keep, 0, "there is no policy " + f.PolicyName + ": kept"
	}
	do, at, why := Keep, int64(0), "the policy "+f.PolicyName+" keeps it"
	earlier := func(a Act, t int64, text string) {
		if do == Keep || t < at {
			do, at, why = a, t, text
		}
	}
	if expires > 0 {
		earlier(Remove, expires, rule(f))
	}
	if a := f.Policy.Archive; a != nil && a.Enabled && f.Status.Ended() && f.Status != execution.StatusArchived && f.Status != execution.StatusMoved {
		t := f.EndedAt + settle
		if f.RestoredAt > 0 {
			t = max(t, f.RestoredAt+restoredFor)
		}
		earlier(Archive, t, "the policy "+f.PolicyName+" archives ended executions")
	}
	if t := pruneAt(f); t > 0 {
		earlier(Prune, t, "the history rule of the policy "+f.PolicyName)
	}
	return do, at, why
}

// rule says in words which rule ends an execution.
func rule(f Facts) string {
	if f.Outcome == execution.StatusMoved {
		return fmt.Sprintf("policy %s: %d days after it moved, and nothing descends from it", f.PolicyName, *daysOf(f))
	}
	return fmt.Sprintf("policy %s: %s_days = %d", f.PolicyName, f.Outcome, *daysOf(f))
}

// pruneAt is when the history rule is to be applied next; 0: never.
func pruneAt(f Facts) int64 {
	h := f.Policy.History
	if h == nil || h.Keep == "all" || h.N == 0 || f.Status == execution.StatusArchived {
		return 0
	}
	at := max(f.CreatedAt, f.PrunedAt) + settle
	if f.Status.Ended() && f.EndedAt > 0 {
		// Nothing comes any more: the last time is when the last version, that of a
		// restore if there was one, is old enough.
		last := max(f.EndedAt, f.RestoredAt) + settle
		if h.Keep == "days" {
			last += h.N * day
		}
		if f.PrunedAt >= last {
			return 0
		}
	}
	return at
}
