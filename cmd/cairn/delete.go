package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

type deleteCmd struct {
	operator
	Execution    string `xor:"about" required:"" placeholder:"ID" help:"One execution."`
	Thread       string `xor:"about" required:"" placeholder:"ID" help:"Everything of a thread, forks and children included."`
	Subject      string `xor:"about" required:"" placeholder:"ID" help:"Everything of a subject, forks and children included."`
	Label        string `xor:"about" required:"" placeholder:"NAME=VALUE" help:"Everything with a label, forks and children included."`
	Reason       string `required:"" placeholder:"TEXT" help:"Why; it stands on the receipt."`
	WhenReleased bool   `help:"Remember held executions and delete them when their holds are released."`
	Limit        int64  `default:"100" help:"Executions in one call."`
}

// Help implements kong.HelpProvider.
func (*deleteCmd) Help() string {
	return `It goes on until everything is deleted; progress is on standard error, receipts on standard output. Interrupted, the same command goes on.

Examples:

    cairn delete --tenant acme --execution e1 --reason "customer asked"
    cairn delete --tenant acme --subject customer-9 --reason "GDPR 17" --dry-run

Exit codes: 0 all deleted; 1 refused, or holds keep some of them.`
}

// Run implements the verb.
func (c *deleteCmd) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	sel := about{c.Execution, c.Thread, c.Subject}.fields()
	if c.Label != "" {
		name, value, ok := strings.Cut(c.Label, "=")
		if !ok {
			return usageError{fmt.Errorf("--label: want NAME=VALUE")}
		}
		sel["label"] = fields{name: value}
	}
	if c.DryRun {
		return s.plan("delete", sel, true)
	}
	f := fields{"reason": c.Reason}
	if c.WhenReleased {
		f["when_released"] = true
	}
	if c.Execution == "" {
		f["limit"] = c.Limit
	}
	for k, v := range sel {
		f[k] = v
	}
	return s.untilDone("delete", f)
}

// untilDone calls a verb until it says done, following its cursor and waiting as
// long as it asks.
func (s *session) untilDone(action string, f fields) error {
	deferred, gone := 0, 0
	for {
		r, err := s.ask("retention", action, f)
		if err != nil {
			return err
		}
		receipts := r.list("receipts")
		if one, ok := r["receipt"].(map[string]any); ok {
			receipts = append(receipts, one)
		}
		gone += len(receipts)
		err = s.print(r, func(w *tabwriter.Writer) {
			for _, x := range receipts {
				fmt.Fprintf(w, "%s\t%s\t%v\n", x.text("execution"), x.text("state"), x["counts"])
			}
			for _, x := range r.list("deferred") {
				fmt.Fprintf(w, "%s\theld\t%v\n", x.text("execution"), x["holds"])
			}
		})
		if err != nil {
			return err
		}
		deferred += len(r.list("deferred"))
		wait := waitOf(r)
		switch over := r["cursor"] == nil && wait == 0; {
		case (over || r["done"] == true) && deferred > 0:
			return incomplete(fmt.Sprintf("%d executions are held", deferred))
		case r["done"] == true:
			s.progress("done: %s", r.text("counts"))
			return nil
		case over:
			return incomplete("not done yet: the same command goes on")
		}
		if r["cursor"] != nil {
			f["cursor"] = r["cursor"]
		}
		s.progress("%d deleted, %d held", gone, deferred)
		if wait > 0 {
			s.progress("late writers and caches run out in %v; interrupted, the same command goes on", wait)
			if !s.sleep(wait) {
				return incomplete("interrupted: the same command goes on")
			}
		}
	}
}
