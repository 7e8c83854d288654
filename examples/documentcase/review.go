package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// sheet is the state of the review sheet: an execution that nobody owns and
// everybody may write who has read its newest version.
type sheet struct {
	Case      execution.ExecutionID `json:"case"`
	Customer  string                `json:"customer"`
	Documents map[string]string     `json:"documents"`
	Opinions  map[string]string     `json:"opinions"`
}

func sheetOf(caseID execution.ExecutionID) execution.ExecutionID { return caseID + "-review" }

// openSheet makes the sheet. A repeat, also by another worker, is the same
// request and makes no second one.
func openSheet(ctx context.Context, c *client.Client, caseID execution.ExecutionID, f *caseFile) error {
	id := sheetOf(caseID)
	_, err := c.Create(ctx, &api.CreateRequest{Common: api.Common{RequestID: "open " + string(id)}, Execution: id, Thread: execution.ThreadID(caseID), Workflow: reviewWorkflow,
		State: client.JSON(sheet{Case: caseID, Customer: f.Customer, Documents: f.Received, Opinions: map[string]string{}})})
	return err
}

// review is one reviewer: it reads the sheet and the documents and writes its
// opinion. A sheet that somebody else has written meanwhile is refused as
// VersionConflict and read again. Whoever gives the second opinion closes the
// sheet; whoever finds it closed tells the case, again if need be. It announces
// what it read on out and writes when it is told to on in; conflicts are what it
// met.
func review(ctx context.Context, c *client.Client, caseID execution.ExecutionID, name string, in io.Reader, out io.Writer) (conflicts int, err error) {
	for told := false; ; {
		got, err := c.Get(ctx, &api.GetRequest{Execution: sheetOf(caseID), Include: []string{"state"}})
		if err != nil {
			return conflicts, err
		}
		if !told {
			fmt.Fprintf(out, "read version %d\n", got.Version)
			if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
				return conflicts, err
			}
			told = true
		}
		var s sheet
		if err := json.Unmarshal(got.State.Bytes(), &s); err != nil {
			return conflicts, err
		}
		if got.Status == execution.StatusCompleted {
			// The same signal again is no second one.
			_, err := c.Signal(ctx, &api.SignalRequest{Execution: caseID, Name: "reviewed", Key: "sheet", Body: client.JSON(s.Opinions)})
			return conflicts, err
		}
		if s.Opinions[name], err = opinion(ctx, c, &s); err != nil {
			return conflicts, err
		}
		step := api.Changes{Execution: sheetOf(caseID), ExpectedVersion: got.Version, State: client.JSON(s), Note: "opinion of " + name}
		if len(s.Opinions) < 2 {
			_, err = c.Apply(ctx, &api.ApplyRequest{Changes: step})
			if err == nil {
				return conflicts, nil
			}
		} else {
			_, err = c.Complete(ctx, &api.CompleteRequest{Changes: step, Completion: api.Completion{Outcome: execution.StatusCompleted}})
		}
		switch {
		case errors.Is(err, execution.VersionConflict), errors.Is(err, execution.ExecutionClosed):
			conflicts++
		case err != nil:
			return conflicts, err
		}
	}
}

// opinion looks at the documents: the customer's surname must stand in each.
func opinion(ctx context.Context, c *client.Client, s *sheet) (string, error) {
	surname := s.Customer[strings.LastIndexByte(s.Customer, ' ')+1:]
	for name, digest := range s.Documents {
		content, _, err := c.ReadArtifact(ctx, &api.GetArtifactRequest{Execution: s.Case, Digest: digest})
		if err != nil {
			return "", err
		}
		if !bytes.Contains(bytes.ToLower(content), []byte(strings.ToLower(surname))) {
			return "doubtful: " + name, nil
		}
	}
	return "in order", nil
}
