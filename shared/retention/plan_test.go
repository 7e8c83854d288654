package retention_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/retention"
)

const day = 86_400_000

func TestPlan(t *testing.T) {
	t.Parallel()
	days := func(n int64) *int64 { return &n }
	year := &api.Policy{Name: "p", CompletedDays: days(365), FailedDays: days(10), ReceiptDays: days(30)}
	archiving := &api.Policy{Name: "p", CompletedDays: days(365), Archive: &api.ArchiveRule{Enabled: true}}
	keep10 := &api.Policy{Name: "p", History: &api.HistoryRule{Keep: "versions", N: 10}}
	completed := retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, CreatedAt: 1 * day, EndedAt: 2 * day, PolicyName: "p", Policy: year}
	with := func(f retention.Facts, change func(*retention.Facts)) retention.Facts {
		change(&f)
		return f
	}
	for _, c := range []struct {
		name    string
		facts   retention.Facts
		now     int64
		do      retention.Act
		expires int64
		next    int64
		why     string
	}{
		{"a day before", completed, 366 * day, retention.Keep, 367 * day, 367 * day, "completed_days = 365"},
		{"on its day", completed, 367 * day, retention.Remove, 367 * day, 367 * day, "completed_days = 365"},
		{"by outcome", with(completed, func(f *retention.Facts) { f.Status, f.Outcome = execution.StatusFailed, execution.StatusFailed }), 12 * day, retention.Remove, 12 * day, 12 * day, "failed_days = 10"},
		{"no days for the outcome", with(completed, func(f *retention.Facts) { f.Status, f.Outcome = execution.StatusCancelled, execution.StatusCancelled }), 9999 * day, retention.Keep, 0, 0, "keeps it"},
		{"held", with(completed, func(f *retention.Facts) { f.Holds = []string{"h1"} }), 400 * day, retention.Keep, 367 * day, 400*day + 6*3_600_000, "held by h1"},
		{"an open operation", with(completed, func(f *retention.Facts) { f.Open = 1 }), 400 * day, retention.Keep, 367 * day, 400*day + 6*3_600_000, "1 operations are open"},
		{"an unknown status", with(completed, func(f *retention.Facts) { f.Status = "suspended_v2" }), 400 * day, retention.Keep, 0, 0, "not known"},
		{"a missing policy", with(completed, func(f *retention.Facts) { f.Policy = nil }), 400 * day, retention.Keep, 0, 0, "there is no policy p"},
		{"no policy", with(completed, func(f *retention.Facts) { f.Policy, f.PolicyName = nil, "" }), 400 * day, retention.Keep, 0, 0, "no policy: kept"},
		{"running for ever", retention.Facts{Status: execution.StatusRunning, Outcome: execution.StatusRunning, CreatedAt: day, PolicyName: "p", Policy: year}, 4000 * day, retention.Keep, 0, 0, "keeps it"},
		{"asked for and released", with(completed, func(f *retention.Facts) { f.Asked = true }), 3 * day, retention.Erase, 367 * day, 3 * day, "asked for"},
		{"archived after a day", with(completed, func(f *retention.Facts) { f.Policy = archiving }), 4 * day, retention.Archive, 367 * day, 4 * day, "archives"},
		{"moved to a fork: evidence may still come", with(completed, func(f *retention.Facts) {
			f.Policy, f.Status, f.Outcome = archiving, execution.StatusMoved, execution.StatusMoved
		}), 400 * day, retention.Keep, 0, 401 * day, "as long as something descends from it"},
		{"moved, and nothing descends from it", with(completed, func(f *retention.Facts) {
			f.Status, f.Outcome, f.Alone = execution.StatusMoved, execution.StatusMoved, true
		}), 366 * day, retention.Keep, 367 * day, 367 * day, "365 days after it moved"},
		{"and its time is over", with(completed, func(f *retention.Facts) {
			f.Status, f.Outcome, f.Alone = execution.StatusMoved, execution.StatusMoved, true
		}), 367 * day, retention.Remove, 367 * day, 367 * day, "365 days after it moved"},
		{"moved, alone and held", with(completed, func(f *retention.Facts) {
			f.Status, f.Outcome, f.Alone, f.Holds = execution.StatusMoved, execution.StatusMoved, true, []string{"h1"}
		}), 400 * day, retention.Keep, 367 * day, 400*day + 6*3_600_000, "held by h1"},
		{"moved under a history rule alone", with(completed, func(f *retention.Facts) {
			f.Policy, f.Status, f.Outcome, f.PrunedAt = keep10, execution.StatusMoved, execution.StatusMoved, 4*day
		}), 400 * day, retention.Keep, 0, 0, "keeps it"},
		{"moved, and a deletion was asked for", with(completed, func(f *retention.Facts) {
			f.Status, f.Outcome, f.Asked = execution.StatusMoved, execution.StatusMoved, true
		}), 3 * day, retention.Erase, 0, 3 * day, "asked for"},
		{"completed, whatever descends from it", with(completed, func(f *retention.Facts) { f.Alone = true }), 366 * day, retention.Keep, 367 * day, 367 * day, "completed_days = 365"},
		{"restored: not at once again", with(completed, func(f *retention.Facts) { f.Policy, f.RestoredAt = archiving, 10*day }), 12 * day, retention.Keep, 367 * day, 17 * day, "archives"},
		{"history of a running one", retention.Facts{Status: execution.StatusRunning, Outcome: execution.StatusRunning, CreatedAt: day, PolicyName: "p", Policy: keep10}, 3 * day, retention.Prune, 0, 3 * day, "history rule"},
		{"history applied today", retention.Facts{Status: execution.StatusRunning, Outcome: execution.StatusRunning, CreatedAt: day, PrunedAt: 3 * day, PolicyName: "p", Policy: keep10}, 3*day + 1, retention.Keep, 0, 4*day + 3_600_000, "history rule"},
		{"history of an ended one comes to an end", retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, PrunedAt: 4 * day, PolicyName: "p", Policy: keep10}, 90 * day, retention.Keep, 0, 0, "keeps it"},
		{"being deleted", with(completed, func(f *retention.Facts) { f.Status = execution.StatusDeleting }), 400 * day, retention.Keep, 0, 0, "being deleted"},
		{"ended, nobody knows when", with(completed, func(f *retention.Facts) { f.EndedAt = 0 }), 4000 * day, retention.Keep, 0, 0, "keeps it"},
		{"not ended, whatever else is said", with(completed, func(f *retention.Facts) { f.Status = execution.StatusRunning }), 4000 * day, retention.Keep, 0, 0, "keeps it"},
		{"archiving, but an operation is open", with(completed, func(f *retention.Facts) { f.Policy, f.Open = archiving, 1 }), 4 * day, retention.Keep, 367 * day, 4*day + 6*3_600_000, "1 operations are open"},
		{"archiving is off", with(completed, func(f *retention.Facts) { f.Policy = &api.Policy{Name: "p", Archive: &api.ArchiveRule{}} }), 400 * day, retention.Keep, 0, 0, "keeps it"},
		{"archiving what runs", retention.Facts{Status: execution.StatusRunning, Outcome: execution.StatusRunning, CreatedAt: day, PolicyName: "p", Policy: archiving}, 400 * day, retention.Keep, 0, 0, "keeps it"},
		{"restored long before the day", with(completed, func(f *retention.Facts) { f.Policy, f.EndedAt, f.RestoredAt = archiving, 30*day, 1*day }), 30 * day, retention.Keep, 395 * day, 31*day + 3_600_000, "archives"},
		{"history with an open operation", retention.Facts{Status: execution.StatusRunning, Outcome: execution.StatusRunning, CreatedAt: day, Open: 1, PolicyName: "p", Policy: keep10}, 3 * day, retention.Prune, 0, 3 * day, "history rule"},
		{"history of everything", retention.Facts{Status: execution.StatusRunning, CreatedAt: day, PolicyName: "p", Policy: &api.Policy{Name: "p", History: &api.HistoryRule{Keep: "all"}}}, 30 * day, retention.Keep, 0, 0, "keeps it"},
		{"history, archived", retention.Facts{Status: execution.StatusArchived, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, PolicyName: "p", Policy: keep10}, 30 * day, retention.Keep, 0, 0, "keeps it"},
		{"history of a restored one goes on", retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, RestoredAt: 20 * day, PrunedAt: 4 * day, PolicyName: "p", Policy: keep10}, 90 * day, retention.Prune, 0, 90 * day, "history rule"},
		{"and comes to an end", retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, RestoredAt: 20 * day, PrunedAt: 22 * day, PolicyName: "p", Policy: keep10}, 90 * day, retention.Keep, 0, 0, "keeps it"},
		{"history by days of an ended one", retention.Facts{Status: execution.StatusCompleted, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, PrunedAt: 4 * day, PolicyName: "p", Policy: &api.Policy{Name: "p", History: &api.HistoryRule{Keep: "days", N: 10}}}, 90 * day, retention.Prune, 0, 90 * day, "history rule"},
		{"archived and over before it is trimmed", retention.Facts{Status: execution.StatusArchived, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, ArchivedAt: 366 * day, Untrimmed: true, PolicyName: "p", Policy: archiving}, 368 * day, retention.Remove, 367 * day, 368 * day, "completed_days"},
		{"archived and kept, trimmed", retention.Facts{Status: execution.StatusArchived, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, ArchivedAt: 3 * day, Untrimmed: true}, 5 * day, retention.Trim, 0, 5 * day, "archive holds it"},
		{"trimmed a day after the archiving", retention.Facts{Status: execution.StatusArchived, Outcome: execution.StatusCompleted, CreatedAt: day, EndedAt: 2 * day, ArchivedAt: 3 * day, Untrimmed: true, PolicyName: "p", Policy: archiving}, 5 * day, retention.Trim, 367 * day, 5 * day, "archive holds it"},
	} {
		d := retention.Plan(c.facts, c.now)
		if d.Do != c.do || d.ExpiresAt != c.expires || d.Next != c.next || !strings.Contains(d.Why, c.why) {
			t.Errorf("%s: %+v, want %q, expires %d, next %d, %q", c.name, d, c.do, c.expires, c.next, c.why)
		}
	}
}

// TestPlanProperties: it never acts on a hold, an open operation, an unknown
// status or before its date, and always says in words why.
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 1000*day)
		days := func(name string) *int64 {
			if rapid.Bool().Draw(t, name) {
				n := rapid.Int64Range(0, 400).Draw(t, name+" n")
				return &n
			}
			return nil
		}
		f := retention.Facts{
			Status:    execution.Status(rapid.SampledFrom([]string{"created", "running", "waiting", "parked", "halted", "completed", "failed", "cancelled", "archived", "moved", "deleting", "suspended_v2", "", "Completed"}).Draw(t, "status")),
			Outcome:   execution.Status(rapid.SampledFrom([]string{"completed", "failed", "cancelled", "moved"}).Draw(t, "outcome")),
			CreatedAt: at.Draw(t, "created"), EndedAt: at.Draw(t, "ended"), RestoredAt: at.Draw(t, "restored"), ArchivedAt: at.Draw(t, "archived"), PrunedAt: at.Draw(t, "pruned"),
			Open: rapid.IntRange(0, 2).Draw(t, "open"), PolicyName: rapid.SampledFrom([]string{"", "p"}).Draw(t, "policy"), Asked: rapid.Bool().Draw(t, "asked"), Untrimmed: rapid.Bool().Draw(t, "untrimmed"),
		}
		if rapid.Bool().Draw(t, "held") {
			f.Holds = []string{"h"}
		}
		if f.PolicyName != "" && rapid.Bool().Draw(t, "policy exists") {
			f.Policy = &api.Policy{Name: "p", CompletedDays: days("completed"), FailedDays: days("failed"), CancelledDays: days("cancelled")}
			if rapid.Bool().Draw(t, "archive") {
				f.Policy.Archive = &api.ArchiveRule{Enabled: true}
			}
			if keep := rapid.SampledFrom([]string{"", "all", "versions", "days"}).Draw(t, "keep"); keep != "" {
				f.Policy.History = &api.HistoryRule{Keep: keep, N: rapid.Int64Range(1, 100).Draw(t, "n")}
			}
		}
		now := at.Draw(t, "now")
		d := retention.Plan(f, now)
		if d.Why == "" {
			t.Fatal("no reason")
		}
		if d.Do != retention.Keep {
			switch {
			case len(f.Holds) > 0:
				t.Fatalf("acts on a hold: %+v", d)
			case !f.Status.Known() || f.Status == execution.StatusDeleting:
				t.Fatalf("acts on status %q: %+v", f.Status, d)
			case f.Open > 0 && (d.Do == retention.Remove || d.Do == retention.Archive):
				t.Fatalf("acts with an open operation: %+v", d)
			case d.Do == retention.Remove && (d.ExpiresAt == 0 || now < d.ExpiresAt || !f.Status.Ended() || f.Policy == nil):
				t.Fatalf("removes before its date: %+v", d)
			case d.Next > now:
				t.Fatalf("acts, but is due later: %+v", d)
			}
			return
		}
		// Nothing was due before Next: planning at Next does something or says why not.
		if d.Next != 0 && d.Next <= now {
			t.Fatalf("keeps, but is due: %+v", d)
		}
		if d.Next > 0 && len(f.Holds) == 0 && f.Open == 0 {
			if then := retention.Plan(f, d.Next); then.Do == retention.Keep {
				t.Fatalf("nothing to do at the time it named: %+v then %+v", d, then)
			}
			if before := retention.Plan(f, d.Next-1); d.Next-1 > now && before.Do != retention.Keep {
				t.Fatalf("acts before the time it named: %+v then %+v", d, before)
			}
		}
	})
}
