package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// mailsDue is how many different mails the story needs: three requests, one
// reminder for each of the two late documents, a confirmation.
const mailsDue = 6

// finish prints the journal and the figures, and says what is not as it should
// be.
func (s *story) finish(ctx context.Context) error {
	got, err := s.client.Get(ctx, &api.GetRequest{Execution: s.id})
	if err != nil {
		return err
	}
	for _, id := range []execution.ExecutionID{s.id, sheetOf(s.id)} {
		if err := s.timeline(ctx, id, got); err != nil {
			return err
		}
	}
	s.say("\nDocuments, as the case keeps them:")
	if err := s.sameDocuments(ctx); err != nil {
		return err
	}
	counted, err := s.mail.tally(ctx)
	if err != nil {
		return err
	}
	unsent, err := s.unsent(ctx, got)
	if err != nil {
		return err
	}
	size, items, err := s.office.stored(ctx, s.id)
	if err != nil {
		return err
	}
	s.figures(got, counted, size, items)
	conflicts := 1
	if s.deskDied {
		conflicts = s.conflicts
	}
	return errors.Join(
		same("status", got.Status, execution.StatusCompleted),
		same("recoveries", s.recoveries, s.kills),
		same("state conflicts", s.conflicts, conflicts),
		same("repeated customer requests", counted.Repeated, 0),
		same("mails that were sent", counted.Sent, mailsDue),
		same("operations that the gateway does not know", unsent, 0),
	)
}

func same[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: %v, should be %v", what, got, want)
}

// unsent counts operations that succeeded by the journal and that the gateway
// knows nothing of.
func (s *story) unsent(ctx context.Context, got *api.GetReply) (n int, err error) {
	for _, op := range got.Operations {
		r, found, err := s.mail.find(ctx, op.ProviderKey)
		if err != nil {
			return n, err
		}
		if !found || op.Outcome != execution.OutcomeSucceeded || r.ID != op.ProviderRef {
			n++
		}
	}
	return n, nil
}

func (s *story) figures(got *api.GetReply, counted tally, size, items int) {
	t := newTable(s, "Figures")
	recovery := "nobody was killed"
	if s.kills > 0 {
		recovery = fmt.Sprintf("%d of %d killed workers replaced, %d hand-overs in all", s.recoveries, s.kills, s.handedOver)
	}
	stored := ""
	if items > 0 {
		stored = fmt.Sprintf("; %d bytes in %d items at rest, sealed", size, items)
	}
	t.AppendRows([]table.Row{
		{"recovery success", recovery},
		{"state conflicts", fmt.Sprintf("%d, resolved by reading again", s.conflicts)},
		{"checkpoint size", fmt.Sprintf("state of %d bytes at version %d%s", got.State.Size(), got.Version, stored)},
		{"repeated customer requests", fmt.Sprintf("%d, counted by the gateway: %d mails sent, %d repeats recognised and not sent", counted.Repeated, counted.Sent, counted.Recognised)},
	})
	t.Render()
}

// timeline prints an execution's journal, its days counted from the case's first.
func (s *story) timeline(ctx context.Context, id execution.ExecutionID, of *api.GetReply) error {
	first := time.UnixMilli(of.CreatedAt.Millis()).UTC().Truncate(day)
	keys := map[execution.OperationID]string{}
	for _, op := range of.Operations {
		keys[op.Operation] = op.Key
	}
	t := newTable(s, "Journal of "+string(id))
	t.AppendHeader(table.Row{"v", "when", "entry", "by", "what"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, Align: text.AlignRight}, {Number: 5, WidthMax: 88, WidthMaxEnforcer: text.WrapSoft}})
	for e, err := range s.client.Entries(ctx, &api.HistoryRequest{Execution: id}) {
		if err != nil {
			return err
		}
		at := time.UnixMilli(int64(e.At)).UTC()
		by := e.Owner
		if by == "" && e.Actor != nil {
			by = e.Actor.ID
		}
		t.AppendRow(table.Row{e.Version, fmt.Sprintf("day %d %s", int(at.Sub(first)/day), at.Format("15:04:05")), e.Kind, by, what(&e, keys)})
	}
	t.Render()
	return nil
}

// what says in words what an entry changed.
func what(e *api.HistoryEntry, keys map[execution.OperationID]string) string {
	var parts []string
	if e.Note != "" {
		parts = append(parts, e.Note)
	}
	for _, a := range e.Changes.Absorbed {
		parts = append(parts, "took in "+a.Name+" "+a.Key)
	}
	for _, o := range e.Changes.Operations {
		parts = append(parts, "will send "+keys[o.Operation])
	}
	for _, o := range e.Changes.Outcomes {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", keys[o.Operation], o.Outcome, o.ProviderRef))
	}
	for _, r := range e.Changes.Parked {
		parts = append(parts, "parked: "+r.Code)
	}
	if n := len(e.Changes.Artifacts); n > 0 {
		parts = append(parts, fmt.Sprintf("accepted %d artifacts", n))
	}
	return strings.Join(parts, "; ")
}

func newTable(s *story, title string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(s.out)
	t.SetStyle(table.StyleLight)
	t.SetTitle(title)
	fmt.Fprintln(s.out)
	return t
}
