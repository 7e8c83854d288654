package alias

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/cairnstate/cairn/shared/execution"
)

// maxName is the most characters that Lambda takes in the name of an alias.
const maxName = 128

// Doors makes and removes doors. Safe for concurrent use.
type Doors struct {
	lambda    *lambda.Client
	functions []string
}

// New is for the functions of these deployed names or ARNs.
func New(cfg aws.Config, functions []string) *Doors {
	return &Doors{lambda.NewFromConfig(cfg), functions}
}

// Door is what a tenant has.
type Door struct {
	Tenant execution.TenantID
	Alias  string
	// Functions that have the alias; fewer than all: make it again.
	Functions []string
	// Principals that may invoke the alias of every function that has it.
	Principals []string
}

// check refuses tenants whose alias Lambda would not take.
func check(t execution.TenantID) (string, error) {
	if err := execution.CheckIdentifier("tenant", string(t), execution.MaxTenant); err != nil {
		return "", err
	}
	name := execution.TenantAlias(t)
	if len(name) > maxName {
		return "", execution.Invalid("tenant", "its alias is longer than Lambda takes")
	}
	return name, nil
}

// Add makes the tenant's aliases and lets each principal (an ARN) invoke them,
// and nothing else. Errors: InvalidRequest, and Lambda's.
func (d *Doors) Add(ctx context.Context, t execution.TenantID, principals []string) error {
	name, err := check(t)
	if err != nil {
		return err
	}
	for _, f := range d.functions {
		_, err := d.lambda.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: &f, Name: &name, FunctionVersion: aws.String("$LATEST"), Description: aws.String("Cairn: one tenant's door")})
		if err != nil && !isThere(err) {
			return fmt.Errorf("alias: %s: %w", f, err)
		}
		for _, p := range principals {
			_, err := d.lambda.AddPermission(ctx, &lambda.AddPermissionInput{FunctionName: &f, Qualifier: &name, StatementId: aws.String(statementOf(p)),
				Action: aws.String("lambda:InvokeFunction"), Principal: &p})
			if err != nil && !isThere(err) {
				return fmt.Errorf("alias: %s: %w", f, err)
			}
		}
	}
	return nil
}

// Revoke takes the principals' right back; the aliases stay.
func (d *Doors) Revoke(ctx context.Context, t execution.TenantID, principals []string) error {
	name, err := check(t)
	if err != nil {
		return err
	}
	for _, f := range d.functions {
		for _, p := range principals {
			_, err := d.lambda.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: &f, Qualifier: &name, StatementId: aws.String(statementOf(p))})
			if err != nil && !isGone(err) {
				return fmt.Errorf("alias: %s: %w", f, err)
			}
		}
	}
	return nil
}

// Remove closes the tenant's doors: the rights first, so that an alias of the
// same name made later admits nobody. No data is touched.
func (d *Doors) Remove(ctx context.Context, t execution.TenantID) error {
	name, err := check(t)
	if err != nil {
		return err
	}
	for _, f := range d.functions {
		granted, err := d.granted(ctx, f, name)
		if err != nil {
			return err
		}
		for statement := range granted {
			if _, err := d.lambda.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: &f, Qualifier: &name, StatementId: &statement}); err != nil && !isGone(err) {
				return fmt.Errorf("alias: %s: %w", f, err)
			}
		}
		if _, err := d.lambda.DeleteAlias(ctx, &lambda.DeleteAliasInput{FunctionName: &f, Name: &name}); err != nil && !isGone(err) {
			return fmt.Errorf("alias: %s: %w", f, err)
		}
	}
	return nil
}

// List gives all doors by tenant.
func (d *Doors) List(ctx context.Context) ([]Door, error) {
	doors := map[execution.TenantID]*Door{}
	for _, f := range d.functions {
		pages := lambda.NewListAliasesPaginator(d.lambda, &lambda.ListAliasesInput{FunctionName: &f})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("alias: %s: %w", f, err)
			}
			for _, a := range page.Aliases {
				if err := d.note(ctx, doors, f, aws.ToString(a.Name)); err != nil {
					return nil, err
				}
			}
		}
	}
	var list []Door
	for _, t := range slices.Sorted(maps.Keys(doors)) {
		list = append(list, *doors[t])
	}
	return list, nil
}

// note adds one alias of one function to the doors.
func (d *Doors) note(ctx context.Context, doors map[execution.TenantID]*Door, function, name string) error {
	t, ok := execution.TenantOfAlias(name)
	if !ok {
		return nil // somebody else's
	}
	granted, err := d.granted(ctx, function, name)
	if err != nil {
		return err
	}
	principals := slices.Sorted(maps.Values(granted))
	if doors[t] == nil {
		doors[t] = &Door{Tenant: t, Alias: name, Principals: principals}
	}
	door := doors[t]
	door.Functions = append(door.Functions, function)
	door.Principals = slices.DeleteFunc(door.Principals, func(p string) bool { return !slices.Contains(principals, p) })
	return nil
}

// granted are the statements of an alias's policy and whom they let in.
func (d *Doors) granted(ctx context.Context, function, name string) (map[string]string, error) {
	out, err := d.lambda.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &function, Qualifier: &name})
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("alias: %s: %w", function, err)
	}
	var policy struct {
		Statement []struct {
			Sid       string
			Principal json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.Policy)), &policy); err != nil {
		return nil, fmt.Errorf("alias: %s: its policy is no JSON", function)
	}
	granted := map[string]string{}
	for _, s := range policy.Statement {
		var who struct{ AWS string }
		if json.Unmarshal(s.Principal, &who) != nil || who.AWS == "" {
			who.AWS = string(s.Principal) // a service, or a list: shown as it stands
		}
		granted[s.Sid] = who.AWS
	}
	return granted, nil
}

// statementOf is the id of a principal's statement: always the same, so that a
// repeat is recognised.
func statementOf(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return "cairn-" + hex.EncodeToString(sum[:16])
}

func isThere(err error) bool {
	var conflict *types.ResourceConflictException
	return errors.As(err, &conflict)
}

func isGone(err error) bool {
	var missing *types.ResourceNotFoundException
	return errors.As(err, &missing)
}
