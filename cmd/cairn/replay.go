package main

import (
	"encoding/json"
	"errors"
	"fmt"
)

type replayCmd struct {
	operator
	Since string `placeholder:"TIME" help:"Receipts since then (RFC 3339, UTC): the time of the backup (default: all)."`
}

// Help implements kong.HelpProvider.
func (*replayCmd) Help() string {
	return `After the table was restored from a backup: deletes again what the receipts in the bucket say was deleted since, each in exactly that generation. Run it before anybody reads. Repeat it as often as you like.

Example:

    cairn replay --tenant acme --since 2026-11-01T00:00:00Z

Exit codes: 0 all of it is gone; 1 refused, or holds that the backup brought back keep some of it.`
}

// Run implements the verb.
func (c *replayCmd) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	page := fields{"limit": 1000}
	if c.Since != "" {
		page["since"] = c.Since
	}
	seen, again, held := 0, 0, 0
	for {
		r, err := s.ask("retention", "receipts", page)
		if err != nil {
			return err
		}
		for _, x := range r.list("receipts") {
			seen++
			if c.DryRun {
				fmt.Fprintf(env.out, "%s\t%s\n", x.text("execution"), x.text("deleted_at"))
				continue
			}
			switch gone, err := s.replayOne(x); {
			case err == nil && gone:
				again++
				fmt.Fprintf(env.out, "%s\tdeleted again\n", x.text("execution"))
			case err == nil:
			case isCode(err, "Held"):
				held++
				fmt.Fprintf(env.out, "%s\theld\n", x.text("execution"))
			default:
				return err
			}
		}
		if r["cursor"] == nil {
			break
		}
		page["cursor"] = r["cursor"]
	}
	s.progress("%d receipts, %d deleted again, %d held", seen, again, held)
	if held > 0 {
		return incomplete(fmt.Sprintf("%d executions are held", held))
	}
	return nil
}

// replayOne deletes what one receipt names; gone false: it was not there.
func (s *session) replayOne(receipt fields) (gone bool, err error) {
	r, err := s.ask("retention", "delete", fields{"execution": receipt["execution"], "generation": receipt["generation"], "reason": "replayed receipt"})
	if isCode(err, "NotFound") {
		return false, nil
	}
	return err == nil && r["replayed"] == nil, err
}

func isCode(err error, code string) bool {
	var refused refusedError
	var e struct{ Code string }
	return errors.As(err, &refused) && json.Unmarshal([]byte(refused.json), &e) == nil && e.Code == code
}
