package main

import (
	"encoding/json"
	"fmt"
	"time"
)

type purgeCmd struct {
	operator
	Confirm string `placeholder:"TENANT" help:"The tenant's name once more: everything of it goes."`
	Shred   bool   `help:"Destroy the tenant's keys at the end too."`
	NoWait  bool   `help:"Make one call and say where the purge stands."`
	Limit   int64  `default:"100" help:"Executions in one call."`
}

// Help implements kong.HelpProvider.
func (*purgeCmd) Help() string {
	return `Everything of the tenant goes: table, indexes, all versions in the bucket. It waits for late writers, presigned URLs and key caches to run out (at most two hours) and says done only after a pass that found nothing. Interrupted, the same command goes on.

Examples:

    cairn purge --tenant acme --dry-run
    cairn purge --tenant acme --confirm acme --shred

Exit codes: 0 done; 1 refused, held, or (with --no-wait) not done yet.`
}

// Run implements the verb.
func (c *purgeCmd) Run(env *env) error {
	s, err := c.session(env)
	if err != nil {
		return err
	}
	if c.DryRun {
		for _, status := range []string{"created", "running", "waiting", "parked", "halted", "completed", "failed", "cancelled", "archived", "moved"} {
			if err := s.plan("purge "+status, fields{"status": status}, true); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Confirm != c.Tenant {
		return usageError{fmt.Errorf("--confirm: give the tenant's name once more")}
	}
	f := fields{"limit": c.Limit}
	if c.Shred {
		f["shred"] = true
	}
	if !c.NoWait {
		return s.untilDone("purge_tenant", f)
	}
	r, err := s.ask("retention", "purge_tenant", f)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(env.out).Encode(r); err != nil || r["done"] == true {
		return err
	}
	return incomplete("the purge is not done")
}

// waitOf is how long a reply asks to wait.
func waitOf(r fields) time.Duration {
	n, ok := r["retry_after_ms"].(json.Number)
	if !ok {
		return 0
	}
	ms, err := n.Int64()
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
