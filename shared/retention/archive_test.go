package retention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// long is an ended execution with n more versions, small and large.
func long(w *world, e string, n int, f fields) {
	w.t.Helper()
	w.rich(e, f)
	for i := range n {
		w.apply(e, fields{"state": fields{"n": i, "text": noise(uint64(i), 100+i*i*200)}, "note": fmt.Sprintf("step %d", i)})
	}
	w.complete(e)
}

// versions are all readable versions, in full, with their history.
func versions(w *world, e string, last int) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for v := 1; v <= last; v++ {
		g, err := w.do(w.t.Context(), "checkpoint", "get", fields{"execution": e, "version": v, "max_inline_bytes": 5_000_000, "include": []string{"state", "operations", "artifacts"}})
		if err != nil {
			w.t.Fatalf("version %d: %v", v, err)
		}
		for _, name := range []string{"cost", "holds", "expires_at", "lease_remaining_ms", "wait"} {
			delete(g, name)
		}
		b, _ := json.Marshal(g)
		out[fmt.Sprintf("version %d", v)] = string(b)
	}
	cursor := any(nil)
	n := 0
	for {
		f := fields{"execution": e, "limit": 3}
		if cursor != nil {
			f["cursor"] = cursor
		}
		h := w.ok("checkpoint", "history", f)
		for _, x := range h["entries"].([]any) {
			n++
			b, _ := json.Marshal(x)
			if n <= last {
				out[fmt.Sprintf("entry %d", n)] = string(b)
			}
		}
		if cursor = h["cursor"]; cursor == nil {
			break
		}
	}
	h := w.ok("checkpoint", "history", fields{"execution": e, "newest_first": true, "limit": 1000})["entries"].([]any)
	if len(h) != n {
		w.t.Errorf("history downwards has %d entries, upwards %d", len(h), n)
	}
	for i, x := range h {
		if v := int(x.(map[string]any)["version"].(float64)); v != n-i {
			w.t.Fatalf("history downwards: %d at place %d", v, i)
		}
	}
	return out
}

// TestArchiveMeetsOthers deletes or prunes before each call of an archiving, a
// restoring or a reading of the archive, which must not take that for damage.
func TestArchiveMeetsOthers(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"completed_days": 365, "history": fields{"keep": "versions", "n": 1}})
	long(base, "e", 5, fields{"policy": "p"})
	base.advance(26 * time.Hour)
	archived := copyOf(t, base)
	archived.ok("retention", "archive", fields{"execution": "e"})
	for _, c := range []struct {
		name, function, request string
		base                    *world
		other                   func(*world)
	}{
		{"archive, deletion", "retention", `{"action":"archive","tenant":"bank","execution":"e","request_id":"r"}`, base, deleteIt},
		{"archive, pruning", "retention", `{"action":"archive","tenant":"bank","execution":"e","request_id":"r"}`, base, func(w *world) { w.ok("retention", "sweep", nil) }},
		{"restore, deletion", "retention", `{"action":"restore","tenant":"bank","execution":"e","request_id":"r"}`, archived, deleteIt},
		{"history, deletion", "checkpoint", `{"action":"history","tenant":"bank","execution":"e"}`, archived, deleteIt},
		{"get, deletion", "checkpoint", `{"action":"get","tenant":"bank","execution":"e","version":3}`, archived, deleteIt},
	} {
		codes := map[execution.Code]int{}
		beforeEachCall(t, c.base, c.function, c.request, c.other, func(_ *world, n int, _ []byte, err error) {
			code := execution.Code("")
			if err != nil {
				code = execution.CodeOf(lambdaError(err))
			}
			if codes[code]++; code != "" && code != execution.Deleted {
				t.Errorf("%s before call %d: %v", c.name, n, err)
			}
		})
		if strings.Contains(c.name, "deletion") && codes[execution.Deleted] == 0 {
			t.Errorf("%s: %v: the hook does not work", c.name, codes)
		}
	}
}

func deleteIt(w *world) { w.ok("retention", "delete", fields{"execution": "e", "reason": "r"}) }

func TestArchiveAndRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 365})
	long(w, "e", 20, fields{"policy": "p", "thread": "T"})
	tip := int(w.get("e")["version"].(float64))
	before := versions(w, "e", tip)
	fence := w.get("e")["fence"]
	gen := ref(w, "e").Generation
	op := w.get("e")["operations"].([]any)[0].(map[string]any)["operation"]

	check := func(when, status string) {
		t.Helper()
		w.restart()
		same(t, when, versions(w, "e", tip), before)
		if g := w.get("e"); g["status"] != status || g["fence"] != fence || g["generation"] != float64(gen) {
			t.Errorf("%s: %v", when, g)
		}
		if s := w.ok("checkpoint", "get_operation", fields{"execution": "e", "operation": op}); s["outcome"] != "succeeded" || s["result"] == nil {
			t.Errorf("%s: operation %v", when, s)
		}
		a := w.ok("checkpoint", "get_artifact", fields{"execution": "e", "name": "doc"})
		if a["body"] == nil {
			t.Errorf("%s: artifact %v", when, a)
		}
	}
	if c := w.code("retention", "restore", fields{"execution": "e"}); c != execution.InvalidRequest {
		t.Errorf("restore of what is not archived: %q", c)
	}
	m := w.ok("retention", "archive", fields{"execution": "e", "request_id": "the-archive"})
	if m["manifest"].(map[string]any)["entries"].(float64) != float64(tip) || m["version"].(float64) != float64(tip+1) {
		t.Errorf("archive: %v", m)
	}
	check("archived, young", "archived")
	if n := len(of(w.items(), "bank#e/j#")); n != tip+1 {
		t.Errorf("young slots must stay taken: %d of %d", n, tip+1)
	}
	w.advance(26 * time.Hour)
	w.settle()
	if n := len(of(w.items(), "bank#e/j#")); n != 1 {
		t.Errorf("a day later the table still holds %d entries", n)
	}
	check("archived", "archived")
	if r := w.ok("retention", "archive", fields{"execution": "e", "request_id": "the-archive"}); r["replayed"] != true {
		t.Errorf("archive again: %v", r)
	}
	if l := w.ok("checkpoint", "list", fields{"status": "archived"})["executions"].([]any); len(l) != 1 {
		t.Errorf("list: %v", l)
	}
	r := w.ok("retention", "restore", fields{"execution": "e", "request_id": "the-restore"})
	if r["version"].(float64) != float64(tip+2) || r["status"] != "completed" {
		t.Errorf("restore: %v", r)
	}
	if again := w.ok("retention", "restore", fields{"execution": "e", "request_id": "the-restore"}); again["replayed"] != true {
		t.Errorf("restore again: %v", again)
	}
	check("restored", "completed")
	// A second archive goes on where the first ended, holds stop it, and deletion
	// reaches all of it.
	w.ok("retention", "hold", fields{"execution": "e", "hold": "h", "reason": "r"})
	if c := w.code("retention", "archive", fields{"execution": "e"}); c != execution.Held {
		t.Errorf("archive of a held one: %q", c)
	}
	w.ok("retention", "release_hold", fields{"execution": "e", "hold": "h", "reason": "r"})
	w.ok("retention", "archive", fields{"execution": "e"})
	w.advance(26 * time.Hour)
	w.settle()
	check("archived twice", "archived")
	if f := w.ok("retention", "verify", fields{"execution": "e"})["findings"].([]any); len(f) > 0 {
		t.Errorf("verify: %v", f)
	}
	w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
	if got := append(of(w.objects(), "bank/e/e/"), of(w.objects(), "bank/archive/")...); len(got) > 0 {
		t.Errorf("after deletion: %v", got)
	}
}

func TestArchiveRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rich("open", nil)
	items := w.items()
	if c := w.code("retention", "archive", fields{"execution": "open"}); c != execution.ExecutionOpen {
		t.Errorf("an open one: %q", c)
	}
	if c := w.code("retention", "archive", fields{"execution": "never"}); c != execution.NotFound {
		t.Errorf("none: %q", c)
	}
	same(t, "after refusals", w.items(), items)
	// One that moved to a fork passes evidence on.
	w.rich("parent", nil)
	w.ok("checkpoint", "fork", fields{"execution": "parent", "at_version": 1, "new_execution": "heir", "operations": "carry"})
	if c := w.code("retention", "archive", fields{"execution": "parent"}); c != execution.ExecutionClosed {
		t.Errorf("a moved one: %q", c)
	}
	long(w, "torn", 6, nil)
	d := w.engine.Dump()
	for i, raw := range d.Items {
		if strings.Contains(string(raw), `"bank#torn"`) && strings.Contains(string(raw), `j#00000000000000000005`) {
			d.Items = append(d.Items[:i], d.Items[i+1:]...)
			break
		}
	}
	x := newWorld(t)
	if err := x.engine.Load(d); err != nil {
		t.Fatal(err)
	}
	x.restart()
	if c := x.code("retention", "archive", fields{"execution": "torn"}); c != execution.Integrity {
		t.Errorf("a journal with a gap: %q", c)
	}
}

func TestPolicyArchives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"completed_days": 30, "archive": fields{"enabled": true, "storage_class": "STANDARD_IA"}})
	long(w, "e", 5, fields{"policy": "p"})
	w.advance(26 * time.Hour)
	w.settle()
	if g := w.get("e"); g["status"] != "archived" {
		t.Fatalf("status %v", g["status"])
	}
	for _, o := range w.engine.Dump().Objects {
		if strings.HasPrefix(o.Key, "bank/archive/") && o.StorageClass != "STANDARD_IA" {
			t.Errorf("%s in class %s", o.Key, o.StorageClass)
		}
	}
	w.ok("retention", "restore", fields{"execution": "e"})
	w.advance(24 * time.Hour)
	w.settle()
	if g := w.get("e"); g["status"] != "completed" {
		t.Errorf("archived again a day after its restore")
	}
	w.advance(7 * 24 * time.Hour)
	w.settle()
	if g := w.get("e"); g["status"] != "archived" {
		t.Errorf("not archived again a week after its restore")
	}
	w.advance(30 * 24 * time.Hour)
	if c := w.getCode("e"); c != execution.Deleted {
		t.Errorf("past its time: %q", c)
	}
	w.settle()
	if got := append(of(w.objects(), "bank/e/e/"), of(w.objects(), "bank/archive/")...); len(got) > 0 {
		t.Errorf("after its time: %v", got)
	}
}

// TestArchiveSurvivesEverything strikes every storage call of archive and of
// restore; done again, everything reads as before.
func TestArchiveSurvivesEverything(t *testing.T) {
	t.Parallel()
	ended := newWorld(t)
	long(ended, "e", 3, nil)
	ended.rich("other", nil)
	tip := int(ended.get("e")["version"].(float64))
	want := versions(ended, "e", tip)
	ended.advance(26 * time.Hour)
	archived := copyOf(t, ended)
	archived.ok("retention", "archive", fields{"execution": "e"})
	for _, c := range []struct {
		action, status string
		base           *world
	}{{"archive", "archived", ended}, {"restore", "completed", archived}} {
		run := func(w *world, ctx context.Context) error {
			_, err := w.do(ctx, "retention", c.action, fields{"execution": "e", "request_id": "once"})
			return err
		}
		u := copyOf(t, c.base)
		u.engine.Mark()
		if err := run(u, t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := len(u.engine.Log())
		keys := func(w *world) map[string]string {
			items, objects := outcome(w)
			out := map[string]string{}
			for k, v := range items {
				out[k] = ""
				if !strings.HasPrefix(k, "bank#e/") {
					out[k] = v
				}
			}
			for k, v := range objects {
				out[k] = v
			}
			return out
		}
		rows := 0
		for _, effect := range []string{"lost", "landed", "crash_before", "crash_after"} {
			for n := 1; n <= calls; n += stride() {
				w := copyOf(t, c.base)
				w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
				err := w.crash(func(ctx context.Context) error { return run(w, ctx) })
				w.faults()
				w.restart()
				if n%5 == 0 {
					same(t, fmt.Sprintf("%s, %s at call %d (%v), at once", c.action, effect, n, err), versions(w, "e", tip), want)
				} else if c := w.getCode("e"); c != "" {
					t.Errorf("at once: %s", c)
				}
				if err := run(w, t.Context()); err != nil {
					t.Errorf("%s, %s at call %d, again: %v", c.action, effect, n, err)
				}
				if g := w.get("e"); g["status"] != c.status || int(g["version"].(float64)) != int(u.get("e")["version"].(float64)) {
					t.Errorf("%s, %s at call %d: %v at %v", c.action, effect, n, g["status"], g["version"])
				}
				if n%3 == 0 {
					same(t, fmt.Sprintf("%s, %s at call %d, again", c.action, effect, n), versions(w, "e", tip), want)
				}
				w.settle()
				same(t, fmt.Sprintf("%s, %s at call %d: keys", c.action, effect, n), keys(w), keys(u))
				if rows++; t.Failed() {
					return
				}
			}
		}
		t.Logf("%s: %d rows", c.action, rows)
	}
}

func TestHistoryRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"history": fields{"keep": "versions", "n": 10}})
	w.rich("e", fields{"policy": "p"})
	bodies := map[int]string{}
	for i := range 40 {
		state := fields{"i": i, "text": noise(uint64(i), 300_000)}
		r := w.apply("e", fields{"state": state})
		b, _ := json.Marshal(state)
		bodies[int(r["version"].(float64))] = string(b)
	}
	tip := int(w.get("e")["version"].(float64))
	w.advance(24*time.Hour - time.Minute)
	w.settle()
	if n := len(of(w.items(), "bank#e/j#")); n != tip {
		t.Errorf("%d of %d entries within a day", n, tip)
	}
	w.advance(25 * time.Hour)
	w.settle()
	if n := len(of(w.items(), "bank#e/j#")); n > 12 {
		t.Errorf("%d entries under keep=10", n)
	}
	if n := len(of(w.objects(), "bank/e/e/")); n > 24 {
		t.Errorf("%d objects under keep=10", n)
	}
	for v := tip - 9; v <= tip; v++ {
		g := w.ok("checkpoint", "get", fields{"execution": "e", "version": v, "max_inline_bytes": 5_000_000})
		if b, _ := json.Marshal(g["state"]); string(b) != bodies[v] {
			t.Errorf("version %d reads otherwise", v)
		}
	}
	_, err := w.do(t.Context(), "checkpoint", "get", fields{"execution": "e", "version": 3})
	if e := execution.AsError(err); e.Code != execution.HistoryPruned || e.Facts["floor"] != float64(tip-9) {
		t.Errorf("version 3: %v", err)
	}
	if h := w.ok("checkpoint", "history", fields{"execution": "e"})["entries"].([]any); len(h) != 10 {
		t.Errorf("%d entries in the history", len(h))
	}
	if f := w.ok("retention", "verify", fields{"execution": "e"})["findings"].([]any); len(f) > 0 {
		t.Errorf("verify: %v", f)
	}
	// It never ends: storage stays bounded.
	for round := range 3 {
		for i := range 15 {
			w.apply("e", fields{"state": fields{"r": round, "text": noise(uint64(100*round+i), 30_000)}})
		}
		w.advance(26 * time.Hour)
		w.settle()
	}
	if n := len(of(w.items(), "bank#e/j#")); n > 30 {
		t.Errorf("%d entries after three more days", n)
	}
}

// TestHistoryRuleWithoutAnEnd: however an execution comes into being under a policy
// that was set long before, its history is bounded while it goes on.
func TestHistoryRuleWithoutAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"history": fields{"keep": "versions", "n": 4}})
	w.advance(2 * time.Hour)
	w.settle() // the policy's own look at everything is over
	claim := fields{"owner": "w", "lease_seconds": 86_400}
	w.create("made", fields{"policy": "p", "claim": claim})
	for _, how := range []string{"refuse", "carry"} {
		w.create(how, fields{"policy": "p", "claim": claim})
		w.ok("checkpoint", "fork", fields{"execution": how, "at_version": 1, "new_execution": "fork-" + how, "operations": how})
		w.ok("recover", "claim", fields{"execution": "fork-" + how, "owner": "w", "lease_seconds": 86_400})
	}
	for _, e := range []string{"made", "fork-refuse", "fork-carry"} {
		for i := range 12 {
			w.apply(e, fields{"state": fields{"i": i}})
		}
	}
	w.advance(26 * time.Hour)
	w.settle()
	for _, e := range []string{"made", "fork-refuse", "fork-carry"} {
		if c := w.code("checkpoint", "get", fields{"execution": e, "version": 3}); c != execution.HistoryPruned {
			t.Errorf("%s: version 3 of 13 answers %q under keep=4", e, c)
		}
	}
}

// TestPrunedThenArchived: what the history rule passed while its successor was young
// is in no archive. It goes with its body all the same, also when the process dies.
func TestPrunedThenArchived(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.setPolicy(fields{"history": fields{"keep": "versions", "n": 3}, "archive": fields{"enabled": true}})
	base.create("e", fields{"policy": "p", "claim": fields{"owner": "w", "lease_seconds": 86_400}})
	big := func(n int) {
		for i := range n {
			base.apply("e", fields{"state": fields{"text": noise(uint64(10*n+i), 300_000)}})
		}
	}
	big(3)
	base.advance(20 * time.Hour)
	big(4)
	base.complete("e")
	base.advance(6 * time.Hour)
	base.settle()
	if n := len(of(base.items(), "bank#e/j#")); n != 6 {
		t.Fatalf("%d entries after pruning, want 4 to 9", n)
	}
	base.advance(20 * time.Hour)
	base.settle()
	if s := base.get("e")["status"]; s != "archived" {
		t.Fatalf("it is %v", s)
	}
	for _, effect := range []string{"", "crash_before", "crash_after"} {
		for n := 1; ; n++ {
			w := copyOf(t, base)
			w.advance(26 * time.Hour)
			struck := false
			if effect != "" {
				w.faults(memory.Fault{On: "*", Nth: n, Effect: effect})
				w.engine.Mark()
				_ = w.crash(func(ctx context.Context) error { _, err := w.do(ctx, "retention", "sweep", nil); return err })
				w.faults()
				struck = len(w.engine.Log()) >= n
				w.restart()
			}
			for range 3 {
				w.advance(2 * time.Hour)
				w.settle()
			}
			at := fmt.Sprintf("%s at call %d", effect, n)
			if n := len(of(w.items(), "bank#e/j#")); n > 1 {
				t.Errorf("%s: %d entries are left", at, n)
			}
			for _, o := range of(w.objects(), "bank/e/e/") {
				if _, name, _ := strings.Cut(o, "/journal/"); name < "00000000000000000007" {
					t.Errorf("%s: left is %s", at, o)
				}
			}
			if f := w.findings(fields{"execution": "e"}); len(f) > 0 {
				t.Errorf("%s: %v", at, f)
			}
			if !struck || t.Failed() {
				break
			}
		}
	}
}

// TestHistoryRuleAfterRestore: kept versions may lie in the archive.
func TestHistoryRuleAfterRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"history": fields{"keep": "versions", "n": 5}})
	w.rich("e", fields{"policy": "p"})
	w.complete("e")
	w.ok("retention", "archive", fields{"execution": "e"})
	w.ok("retention", "restore", fields{"execution": "e"})
	tip := int(w.get("e")["version"].(float64))
	w.advance(3 * 24 * time.Hour)
	w.settle()
	for v := 1; v <= tip; v++ {
		want := execution.Code("")
		if v <= tip-5 {
			want = execution.HistoryPruned
		}
		if c := w.code("checkpoint", "get", fields{"execution": "e", "version": v}); c != want {
			t.Errorf("version %d of %d: %q, want %q", v, tip, c, want)
		}
	}
	if f := w.findings(fields{"execution": "e"}); len(f) > 0 {
		t.Errorf("findings: %v", f)
	}
}

// TestHistoryRuleByDaysAfterRestore: while nothing that the table holds is old
// enough, what the archive holds is kept too.
func TestHistoryRuleByDaysAfterRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"history": fields{"keep": "days", "n": 3}})
	w.rich("e", fields{"policy": "p"})
	w.complete("e")
	w.advance(2 * 24 * time.Hour)
	w.ok("retention", "archive", fields{"execution": "e"})
	w.ok("retention", "restore", fields{"execution": "e"})
	for days, want := range []execution.Code{"", "", execution.HistoryPruned, execution.HistoryPruned} {
		w.advance(25 * time.Hour)
		w.settle()
		if c := w.code("checkpoint", "get", fields{"execution": "e", "version": 1}); c != want {
			t.Errorf("%d days after the restore version 1 answers %q, want %q", days+1, c, want)
		}
	}
	if f := w.findings(fields{"execution": "e"}); len(f) > 0 {
		t.Errorf("findings: %v", f)
	}
}

// TestArchivedAgainAfterPruning: the history rule has pruned beyond what an earlier
// archive holds, so that entries between it and the oldest kept version are gone.
// The execution is archived again all the same, and what is kept stays readable
// (found by the simulation, seed 5007067).
func TestArchivedAgainAfterPruning(t *testing.T) {
	t.Parallel()
	for keep := 1; keep <= 4; keep++ {
		w := newWorld(t)
		w.setPolicy(fields{"history": fields{"keep": "versions", "n": keep}})
		w.rich("e", fields{"policy": "p"})
		w.complete("e")
		for range 3 {
			w.ok("retention", "archive", fields{"execution": "e"})
			w.ok("retention", "restore", fields{"execution": "e"})
			w.advance(3 * 24 * time.Hour)
			w.settle()
		}
		w.ok("retention", "archive", fields{"execution": "e"})
		w.advance(3 * 24 * time.Hour)
		w.settle()
		tip := int(w.get("e")["version"].(float64))
		pruned := 0
		for v := 1; v <= tip; v++ {
			c := w.code("checkpoint", "get", fields{"execution": "e", "version": v})
			if c == execution.HistoryPruned {
				pruned++
			}
			if v > tip-keep && c != "" || c != "" && c != execution.HistoryPruned {
				t.Errorf("of %d kept, version %d of %d: %q", keep, v, tip, c)
			}
		}
		if pruned == 0 {
			t.Errorf("of %d kept, nothing is pruned", keep)
		}
		if f := w.findings(fields{"execution": "e"}); len(f) > 0 {
			t.Errorf("of %d kept, findings: %v", keep, f)
		}
		w.ok("retention", "delete", fields{"execution": "e", "reason": "r"})
		w.advance(3 * 24 * time.Hour)
		w.settle()
		if left := of(w.objects(), "bank/archive/e/"); len(left) > 0 {
			t.Errorf("of %d kept, after the deletion: %v", keep, left)
		}
	}
}

func TestHistoryRuleByDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPolicy(fields{"history": fields{"keep": "days", "n": 3}})
	w.create("e", fields{"policy": "p"})
	for i := range 10 {
		w.apply("e", fields{"state": fields{"day": i}})
		w.advance(24 * time.Hour)
		w.settle()
	}
	// The version that was the newest three days ago is kept, and all after it.
	tip := int(w.get("e")["version"].(float64))
	for v := 1; v <= tip; v++ {
		c := w.code("checkpoint", "get", fields{"execution": "e", "version": v})
		if want := map[bool]execution.Code{true: "", false: execution.HistoryPruned}[v >= tip-3]; c != want && v != tip-3 {
			t.Errorf("version %d of %d: %q, want %q", v, tip, c, want)
		}
	}
	if n := len(of(w.items(), "bank#e/j#")); n > tip {
		t.Errorf("%d entries", n)
	}
}

// A reader that opened the execution before its entries went to the archive finds
// them there: what moved is no gap (found by the simulation, seed 502419).
func TestHistoryFollowsIntoTheArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long(w, "e", 5, nil)
	w.advance(26 * time.Hour)
	for _, newestFirst := range []bool{true, false} {
		h, err := w.Journal.Open(t.Context(), "bank", "e", journal.OpenOptions{Head: true})
		if err != nil {
			t.Fatal(err)
		}
		before, err := w.Journal.History(t.Context(), h, 0, newestFirst, 100)
		if err != nil || len(before.Entries) < 5 {
			t.Fatalf("%+v, %v", before, err)
		}
		if newestFirst {
			w.ok("retention", "archive", fields{"execution": "e"})
			if left := of(w.items(), "bank#e/j#"); len(left) >= len(before.Entries) {
				t.Fatalf("%d entries still in the table", len(left))
			}
		}
		after, err := w.Journal.History(t.Context(), h, 0, newestFirst, 100)
		if err != nil || len(after.Entries) < len(before.Entries) {
			t.Errorf("newest first %v: %v, %v", newestFirst, after, err)
		}
	}
}

// TestReadersMeetAnArchive archives an execution before each call of a reader:
// whatever lies where, it gets what it asked for.
func TestReadersMeetAnArchive(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	long(base, "e", 5, nil)
	base.advance(26 * time.Hour)
	for _, request := range []string{
		`{"action":"get","tenant":"bank","execution":"e","version":1}`,
		`{"action":"get","tenant":"bank","execution":"e","version":3}`,
		`{"action":"get","tenant":"bank","execution":"e"}`,
		`{"action":"history","tenant":"bank","execution":"e"}`,
		`{"action":"history","tenant":"bank","execution":"e","newest_first":true}`,
		`{"action":"fork","tenant":"bank","execution":"e","at_version":1,"new_execution":"f","request_id":"f"}`,
	} {
		met := beforeEachCall(t, base, "checkpoint", request, func(w *world) { w.ok("retention", "archive", fields{"execution": "e"}) }, func(_ *world, n int, _ []byte, err error) {
			if err != nil {
				t.Errorf("%s, archived before call %d: %v", request, n, err)
			}
		})
		if met < 2 {
			t.Errorf("%s: only %d calls", request, met)
		}
	}
}
