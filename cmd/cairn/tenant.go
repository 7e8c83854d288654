package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
	"github.com/cairnstate/cairn/shared/invoke/alias"
)

type tenantCmd struct {
	Add    tenantAdd    `cmd:"" help:"Make a tenant's door: an alias of each function that speaks for this tenant only."`
	List   tenantList   `cmd:"" help:"List the tenants' doors and who may use them."`
	Remove tenantRemove `cmd:"" help:"Close a tenant's door, or take one principal's right to it back. No data is touched."`
}

// doors are the flags of the verbs about doors.
type doors struct {
	endpoint
	Functions []string `default:"checkpoint,recover,retention" env:"CAIRN_FUNCTIONS" placeholder:"NAME,..." help:"The functions' deployed names or ARNs."`
}

func (d doors) open(env *env) (*alias.Doors, error) {
	cfg, err := invoke.AWS(env.ctx, invoke.Options{Endpoint: d.Endpoint, Getenv: env.getenv})
	if errors.Is(err, invoke.ErrNoRegion) {
		return nil, usageError{fmt.Errorf("no AWS region: set AWS_REGION")}
	}
	if err != nil {
		return nil, err
	}
	return alias.New(cfg, d.Functions), nil
}

// usage tells a tenant that cannot have a door from a door that cannot be made.
func usage(err error) error {
	if execution.CodeOf(err) == execution.InvalidRequest {
		return usageError{err}
	}
	return err
}

type tenantAdd struct {
	doors
	Tenant    string   `arg:"" help:"Whose door."`
	Principal []string `placeholder:"ARN" help:"Who may use it: a role, a user or an account; may be repeated."`
}

// Help implements kong.HelpProvider.
func (*tenantAdd) Help() string {
	return `Whoever may invoke a function's plain name speaks for every tenant. A tenant that the others do not trust gets an alias of each function, t-<tenant>, and its callers the right to invoke exactly that. May be repeated. Example:

    cairn tenant add acme --principal arn:aws:iam::123456789012:role/acme-agents`
}

// Run implements the verb.
func (c *tenantAdd) Run(env *env) error {
	for _, p := range c.Principal {
		if !strings.HasPrefix(p, "arn:") || strings.Contains(p, "*") {
			return usageError{fmt.Errorf("--principal %s: not the ARN of one principal", p)}
		}
	}
	d, err := c.open(env)
	if err != nil {
		return err
	}
	if err := d.Add(env.ctx, execution.TenantID(c.Tenant), c.Principal); err != nil {
		return usage(err)
	}
	fmt.Fprintf(env.out, "%s: %s of %s\n", c.Tenant, execution.TenantAlias(execution.TenantID(c.Tenant)), strings.Join(c.Functions, ", "))
	return nil
}

type tenantRemove struct {
	doors
	Tenant    string   `arg:"" help:"Whose door."`
	Principal []string `placeholder:"ARN" help:"Only take this principal's right back; may be repeated."`
}

// Run implements the verb.
func (c *tenantRemove) Run(env *env) error {
	d, err := c.open(env)
	if err != nil {
		return err
	}
	if len(c.Principal) > 0 {
		return usage(d.Revoke(env.ctx, execution.TenantID(c.Tenant), c.Principal))
	}
	return usage(d.Remove(env.ctx, execution.TenantID(c.Tenant)))
}

type tenantList struct {
	doors
	JSON bool `name:"json" help:"Print JSON, one object a line."`
}

// Run implements the verb.
func (c *tenantList) Run(env *env) error {
	d, err := c.open(env)
	if err != nil {
		return err
	}
	all, err := d.List(env.ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.out, 0, 4, 2, ' ', 0)
	for _, door := range all {
		if c.JSON {
			line, err := json.Marshal(map[string]any{"tenant": door.Tenant, "alias": door.Alias, "functions": door.Functions, "principals": door.Principals})
			if err != nil {
				return err
			}
			fmt.Fprintf(env.out, "%s\n", line)
			continue
		}
		note := ""
		if len(door.Functions) < len(c.Functions) {
			note = "incomplete: add it again"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", door.Tenant, door.Alias, strings.Join(door.Principals, " "), note)
	}
	return w.Flush()
}
