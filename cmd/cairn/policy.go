package main

import (
	"fmt"
	"text/tabwriter"
)

type policyCmd struct {
	Set  policySet  `cmd:"" help:"Store a policy. Executions that name it are planned anew."`
	Show policyShow `cmd:"" help:"Print a policy."`
}

type policySet struct {
	operator
	Name          string `arg:"" help:"The policy."`
	CompletedDays *int64 `placeholder:"N" help:"Remove completed executions after that many days (not given: keep)."`
	FailedDays    *int64 `placeholder:"N" help:"Remove failed executions after that many days (not given: keep)."`
	CancelledDays *int64 `placeholder:"N" help:"Remove cancelled executions after that many days (not given: keep)."`
	Keep          string `enum:"all,versions,days" default:"all" help:"Which versions of the history are kept."`
	N             int64  `placeholder:"N" help:"How many versions or days."`
	Archive       bool   `help:"Archive ended executions."`
	StorageClass  string `placeholder:"CLASS" help:"Storage class of the archive (default: GLACIER_IR)."`
	ReceiptDays   *int64 `placeholder:"N" help:"Keep receipts of deletions that long (default: 90, at least 7)."`
}

// Help implements kong.HelpProvider.
func (*policySet) Help() string {
	return `The whole policy is replaced. Examples:

    cairn policy set loans --tenant acme --completed-days 365 --failed-days 730
    cairn policy set chats --tenant acme --completed-days 30 --keep versions --n 50 --dry-run`
}

// Run implements the verb.
func (c *policySet) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	p := fields{"name": c.Name, "history": fields{"keep": c.Keep}}
	if c.Keep != "all" {
		p["history"] = fields{"keep": c.Keep, "n": c.N}
	}
	for name, days := range map[string]*int64{"completed_days": c.CompletedDays, "failed_days": c.FailedDays, "cancelled_days": c.CancelledDays, "receipt_days": c.ReceiptDays} {
		if days != nil {
			p[name] = *days
		}
	}
	if c.Archive {
		p["archive"] = fields{"enabled": true}
		if c.StorageClass != "" {
			p["archive"] = fields{"enabled": true, "storage_class": c.StorageClass}
		}
	}
	if c.DryRun {
		return s.print(fields{"plan": "set", "policy": p}, func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "would be stored:")
			showPolicy(w, p)
		})
	}
	r, err := s.ask("retention", "set_policy", fields{"policy": p})
	if err != nil {
		return err
	}
	return s.print(r, func(w *tabwriter.Writer) { showPolicy(w, r["policy"].(map[string]any)) })
}

type policyShow struct {
	operator
	Name string `arg:"" help:"The policy."`
}

// Run implements the verb.
func (c *policyShow) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	r, err := s.ask("retention", "get_policy", fields{"policy": c.Name})
	if err != nil {
		return err
	}
	return s.print(r, func(w *tabwriter.Writer) { showPolicy(w, r["policy"].(map[string]any)) })
}

func showPolicy(w *tabwriter.Writer, p fields) {
	for _, name := range []string{"name", "completed_days", "failed_days", "cancelled_days", "receipt_days", "history", "archive"} {
		if v, ok := p[name]; ok {
			fmt.Fprintf(w, "%s\t%v\n", name, v)
		}
	}
}
