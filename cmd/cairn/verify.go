package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

type verifyCmd struct {
	operator
	Execution string `arg:"" optional:"" help:"One execution (default: everything of the tenant)."`
}

// Help implements kong.HelpProvider.
func (*verifyCmd) Help() string {
	return `Reads everything and changes nothing: every entry, the chain of digests, every object, what is due, unfinished deletions. Findings are printed as they are found, the summary at the end on standard error.

Examples:

    cairn verify --tenant acme
    cairn verify e1 --tenant acme --json

Exit codes: 0 nothing found; 1 findings, or refused.`
}

// Run implements the verb.
func (c *verifyCmd) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	f := fields{}
	if c.Execution != "" {
		f["execution"] = c.Execution
	}
	kinds, checked := map[string]int{}, int64(0)
	for {
		r, err := s.ask("retention", "verify", f)
		if err != nil {
			return err
		}
		for _, x := range r.list("findings") {
			kinds[x.text("kind")]++
			if c.JSON {
				err = json.NewEncoder(env.out).Encode(x)
			} else {
				_, err = fmt.Fprintf(env.out, "%s  %s  %s: %s\n", x.text("kind"), x.text("execution"), x.text("key"), x.text("detail"))
			}
			if err != nil {
				return err
			}
		}
		if n, ok := r["checked"].(json.Number); ok {
			k, _ := n.Int64()
			checked += k
		}
		if r["cursor"] == nil {
			break
		}
		f["cursor"] = r["cursor"]
		s.progress("%d executions checked", checked)
	}
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		s.progress("%s: %d", kind, kinds[kind])
		total += kinds[kind]
	}
	s.progress("%d executions checked, %d findings", checked, total)
	if total > 0 {
		return incomplete(fmt.Sprintf("%d findings", total))
	}
	return nil
}
