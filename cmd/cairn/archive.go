package main

import (
	"fmt"
	"text/tabwriter"
)

type archiveCmd struct {
	operator
	Execution string `arg:"" help:"An ended execution."`
}

// Help implements kong.HelpProvider.
func (*archiveCmd) Help() string {
	return `The history moves into the bucket's archive; the newest state stays readable as before. Example:

    cairn archive e1 --tenant acme --dry-run`
}

// Run implements the verb.
func (c *archiveCmd) Run(env *env) error { return c.move(env, "archive", c.Execution) }

type restoreCmd struct {
	operator
	Execution string `arg:"" help:"An archived execution."`
}

// Run implements the verb.
func (c *restoreCmd) Run(env *env) error { return c.move(env, "restore", c.Execution) }

// move archives or restores and prints what the archive holds.
func (o *operator) move(env *env, action, e string) error {
	s, err := o.session(env)
	if err != nil {
		return err
	}
	if o.DryRun {
		return s.plan(action, fields{"execution": e}, action == "archive")
	}
	r, err := s.ask("retention", action, fields{"execution": e})
	if err != nil {
		return err
	}
	return s.print(r, func(w *tabwriter.Writer) {
		m, _ := r["manifest"].(map[string]any)
		fmt.Fprintf(w, "%s\t%s at version %s\n", r.text("execution"), r.text("status"), r.text("version"))
		fmt.Fprintf(w, "archive\t%s entries, %s bytes\n%s\t%s\n", fields(m).text("entries"), fields(m).text("bytes"), fields(m).text("digest"), fields(m).text("key"))
	})
}
