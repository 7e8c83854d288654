package main

import (
	"fmt"
	"text/tabwriter"
)

type holdCmd struct {
	Add     holdAdd     `cmd:"" help:"Keep an execution, or everything of a thread or subject, from being removed."`
	Release holdRelease `cmd:"" help:"End a hold. What waited for it becomes due."`
	List    holdList    `cmd:"" help:"List the holds in force."`
}

type holdAdd struct {
	operator
	about
	Hold   string `arg:"" help:"Id of the hold."`
	Reason string `required:"" placeholder:"TEXT" help:"Why."`
}

// Help implements kong.HelpProvider.
func (*holdAdd) Help() string {
	return `A hold on a thread or subject binds executions that are created later too. Examples:

    cairn hold add case-17 --tenant acme --execution e1 --reason "litigation 17"
    cairn hold add case-17 --tenant acme --subject customer-9 --reason "litigation 17" --dry-run`
}

// Run implements the verb.
func (c *holdAdd) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	sel := c.about.fields()
	if c.DryRun {
		return s.plan("hold "+c.Hold, sel, false)
	}
	sel["hold"], sel["reason"] = c.Hold, c.Reason
	return s.holds("hold", sel)
}

type holdRelease struct {
	operator
	about
	Hold   string `arg:"" help:"Id of the hold."`
	Reason string `required:"" placeholder:"TEXT" help:"Why."`
}

// Run implements the verb.
func (c *holdRelease) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	sel := c.about.fields()
	if c.DryRun {
		return s.plan("release "+c.Hold, sel, false)
	}
	sel["hold"], sel["reason"] = c.Hold, c.Reason
	return s.holds("release_hold", sel)
}

type holdList struct {
	operator
	about
}

// Run implements the verb.
func (c *holdList) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	return s.holds("holds", c.about.fields())
}

// holds asks and prints the holds in force afterwards.
func (s *session) holds(action string, f fields) error {
	r, err := s.ask("retention", action, f)
	if err != nil {
		return err
	}
	return s.print(r, func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "HOLD\tSINCE\tON\tREASON")
		for _, h := range r.list("holds") {
			fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", h.text("hold"), h.text("since"), h["on"], h.text("reason"))
		}
	})
}
