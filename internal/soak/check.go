package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// report is what came of a run.
type report struct {
	rows     [][2]string
	failures []string
}

func (r *report) row(name, format string, args ...any) {
	r.rows = append(r.rows, [2]string{name, fmt.Sprintf(format, args...)})
}

func (r *report) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// maxFailures bounds what is printed.
const maxFailures = 30

func (r *report) print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range r.rows {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	_ = w.Flush()
	for i, f := range r.failures {
		if i == maxFailures {
			fmt.Fprintf(to, "... and %d more\n", len(r.failures)-i)
			break
		}
		fmt.Fprintf(to, "FAILED: %s\n", f)
	}
}

// check looks at everything once all faults are over.
func (r *run) check(ctx context.Context, f *fleet, mem []memory) *report {
	out := &report{}
	requests := r.proxy.requests.Load()
	statuses, entries := map[execution.Status]int{}, int64(0)
	acks := r.queue.acknowledged()
	for _, id := range r.executions {
		status, n := r.checkOne(ctx, out, id, acks[id])
		statuses[status]++
		entries += n
	}
	out.row("load", "%v at %.3g executions a second, seed %d", r.length, r.rate, r.seed)
	out.row("executions", "%d: %s", len(r.executions), counted(statuses))
	out.row("entries", "%d, %d of them witnessed steps", entries, len(r.queue.acks))
	out.row("workers", "%d, %d kills, %d freezes", r.workers, f.kills, f.freezes)
	out.row("connection faults", "%d in %d requests, %.1f requests for each entry", r.proxy.faults.Load(), requests, float64(requests)/float64(max(1, entries)))
	out.row("hand-overs", "%d, %d lost, %d delivered twice; ends of drives: %s", len(r.queue.started), r.queue.lost, r.queue.doubled, counted(r.queue.endings))
	c := r.provider.total()
	out.row("effects", "%d happened once each; %d requests got no answer", c.Effects, c.Broken)
	out.row("duplicates prevented", "%d by key, %d by asking, %d by fence, %d by a person", c.Recognised, c.Found, c.Fenced, c.Decided)
	for _, t := range r.queue.troubles {
		out.fail("%s: %s: %s", t.Where, t.Code, t.Text)
	}
	findings, err := r.verified(ctx)
	switch {
	case err != nil:
		out.fail("verify: %v", err)
	case findings != "":
		out.fail("verify: %s", findings)
	}
	out.row("verify", "%s", verdictOf(findings, err))
	for _, m := range mem {
		out.row("memory, "+m.name, "%v", m)
		if wrong := m.check(); wrong != "" {
			out.fail("%s", wrong)
		}
	}
	out.row("took", "%v", time.Since(r.started).Round(time.Second))
	return out
}

func verdictOf(findings string, err error) string {
	if err == nil && findings == "" {
		return "clean"
	}
	return "not clean"
}

// checkOne looks at an execution: its status, its effects, its history. It gives
// its status and how many entries it has.
func (r *run) checkOne(ctx context.Context, out *report, id execution.ExecutionID, acks []ack) (execution.Status, int64) {
	view, err := r.client.Get(ctx, &api.GetRequest{Execution: id, MaxInlineBytes: execution.MaxReplyBytes})
	if err != nil {
		out.fail("%s: %v", id, err)
		return "unreadable", 0
	}
	done := view.Status == execution.StatusCompleted
	switch {
	case done:
	case !atEnd(id, view):
		out.fail("%s is %s and not at its end: %s", id, view.Status, why(view))
	case len(view.ParkedReasons) == 0:
		out.fail("%s is %s and says no reason", id, view.Status)
	}
	for _, e := range effects(id) {
		if n := r.provider.times(string(id) + "/" + e); n > 1 || n == 0 && done {
			out.fail("%s (%s): effect %q happened %d times", id, view.Status, e, n)
		}
	}
	if done {
		for _, op := range view.Operations {
			if op.Outcome != execution.OutcomeSucceeded {
				out.fail("%s is completed and its operation %s is %s", id, op.Key, op.Status)
			}
		}
	}
	var file caseFile
	if err := jsonInto(view.State, &file); err != nil {
		out.fail("%s: state: %v", id, err)
	}
	notes := map[int64]string{}
	for e, err := range r.client.Entries(ctx, &api.HistoryRequest{Execution: id}) {
		if err != nil {
			out.fail("%s: history: %v", id, err)
			break
		}
		notes[e.Version] = e.Note
	}
	if int64(len(notes)) != view.Version {
		out.fail("%s has %d entries at version %d", id, len(notes), view.Version)
	}
	for _, a := range acks {
		if notes[a.Version] != a.Note || !slices.Contains(file.Trail, a.Note) {
			out.fail("%s: the step %q acknowledged at version %d is not there", id, a.Note, a.Version)
		}
	}
	if t := slices.Sorted(slices.Values(file.Trail)); len(slices.Compact(t)) != len(file.Trail) {
		out.fail("%s: a step was taken twice: %s", id, strings.Join(file.Trail, ", "))
	}
	return view.Status, int64(len(notes))
}

// why says what an execution waits for.
func why(view *api.GetReply) string {
	var parts []string
	for _, p := range view.ParkedReasons {
		parts = append(parts, strings.TrimSpace(p.Code+" "+p.Name+" "+p.Detail))
	}
	for _, op := range view.Operations {
		if !op.Outcome.Final() {
			parts = append(parts, fmt.Sprintf("%s is %s (attempt %d)", op.Key, op.Status, op.Attempt))
		}
	}
	return strings.Join(parts, "; ")
}

// verified runs `cairn verify`, or where there is none the verb it calls.
func (r *run) verified(ctx context.Context) (string, error) {
	if r.verify != nil {
		door, err := serve(lambda(r.functions))
		if err != nil {
			return "", err
		}
		defer door.Close()
		return r.verify(ctx, "http://"+door.Addr)
	}
	var found []string
	for cursor := ""; ; {
		reply, err := r.client.Verify(ctx, &api.VerifyRequest{Cursor: cursor})
		if err != nil {
			return "", err
		}
		for _, f := range reply.Findings {
			found = append(found, fmt.Sprintf("%s %s %s: %s", f.Kind, f.Execution, f.Key, f.Detail))
		}
		if cursor = reply.Cursor; cursor == "" {
			return strings.Join(found, "; "), nil
		}
	}
}

// acknowledged are the witnessed steps by execution.
func (q *queue) acknowledged() map[execution.ExecutionID][]ack {
	q.mu.Lock()
	defer q.mu.Unlock()
	by := map[execution.ExecutionID][]ack{}
	for _, a := range q.acks {
		by[a.Execution] = append(by[a.Execution], a)
	}
	return by
}

func (q *queue) report(t trouble) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.troubles = append(q.troubles, t)
}

// counted prints counts in order of their names.
func counted[K ~string](counts map[K]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(parts, ", ")
}
