package cairncdk

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// tenantTag stands for the tenant of a role session, in policies.
const tenantTag = "${aws:PrincipalTag/tenant}"

// wall narrows statements to the tenant of the role session. The nil wall leaves
// them as they are, but for the encryption context, which always names a tenant.
//
// ForAllValues is true of a request without the key, and a variable without a
// value matches nothing or everything depending on the operator; therefore each
// wall also demands that key and tag are there.
type wall struct{}

// items also lets a function that may purge write the receipt of a purge, which
// lies outside of the tenant, in one transaction with what it removes last.
func (w *wall) items(purges bool) map[string]any {
	if w == nil {
		return nil
	}
	keys := []string{tenantTag, tenantTag + "#*"}
	if purges {
		keys = append(keys, "~purged")
	}
	return map[string]any{
		"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": keys},
		"Null":                    map[string]any{"dynamodb:LeadingKeys": "false", "aws:PrincipalTag/tenant": "false"},
	}
}

func (w *wall) objects() map[string]any {
	if w == nil {
		return nil
	}
	return map[string]any{"Null": map[string]any{"aws:PrincipalTag/tenant": "false"}}
}

func (w *wall) listing() map[string]any {
	if w == nil {
		return nil
	}
	return map[string]any{
		"StringLike": map[string]any{"s3:prefix": tenantTag + "/*"},
		"Null":       map[string]any{"s3:prefix": "false", "aws:PrincipalTag/tenant": "false"},
	}
}

func (w *wall) dataKey() map[string]any {
	if w == nil {
		return map[string]any{"Null": map[string]any{"kms:EncryptionContext:tenant": "false"}}
	}
	return map[string]any{
		"StringEquals": map[string]any{"kms:EncryptionContext:tenant": tenantTag},
		"Null":         map[string]any{"kms:EncryptionContext:tenant": "false", "aws:PrincipalTag/tenant": "false"},
	}
}

// makeTenantRole makes the role under which a function works on one tenant's
// data. Each function has its own, so a session can do no more than its function.
func (c *Cairn) makeTenantRole(name string, function awsiam.Role) awsiam.Role {
	// A session without the tag, or with others, is refused at the door.
	tagged := awsiam.NewPrincipalWithConditions(function, &map[string]any{
		"StringLike":                map[string]any{"aws:RequestTag/tenant": "?*"},
		"ForAllValues:StringEquals": map[string]any{"aws:TagKeys": []string{"tenant"}},
	})
	role := awsiam.NewRole(c.Construct, jsii.String(title(name)+"TenantRole"), &awsiam.RoleProps{
		Description:        jsii.String("Cairn: what the function " + name + " may do for the tenant of a session"),
		AssumedBy:          awsiam.NewSessionTagsPrincipal(tagged),
		MaxSessionDuration: awscdk.Duration_Hours(jsii.Number(1)),
		InlinePolicies:     &map[string]awsiam.PolicyDocument{"Tenant": document(c.dataStatements(name, &wall{}))},
	})
	function.AddToPolicy(allow("BecomeTenant", []string{"sts:AssumeRole", "sts:TagSession"}, []*string{role.RoleArn()}, nil))
	suppress(role, wildcard(c.finding(c.Bucket, "/<aws:PrincipalTag/tenant>/*"), "Everything below the prefix of the session's tenant, and nothing else in the bucket."))
	return role
}

// acrossTenants is what a function does that belongs to no single tenant, when
// everything else needs a tenant's session: find what is due in the indexes that
// hold all tenants, and reach the items that are nobody's (package tenancy).
func (c *Cairn) acrossTenants(name string) []awsiam.PolicyStatement {
	if !mapped(name) {
		return nil
	}
	var shared []*string
	for _, index := range store.Indexes {
		if index.Shared {
			shared = append(shared, c.indexArn(index))
		}
	}
	statements := []awsiam.PolicyStatement{
		allow("DueOfAllTenants", []string{"dynamodb:Query"}, shared, nil),
		allow("MainTableAtRest", atRestActions, []*string{c.StorageKey.KeyArn()}, c.via("dynamodb")),
	}
	nobodys := []string{"dynamodb:GetItem"} // the store's clock
	if name == Retention {
		// Receipts of purged tenants, and how far the round over all objects came: it
		// sees their names (of all tenants), never their content.
		nobodys = append(nobodys, "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query")
		statements = append(statements, allow("NamesOfObjects", []string{"s3:ListBucketVersions"}, []*string{c.Bucket.BucketArn()}, nil))
	}
	return append(statements, allow("NobodysItems", nobodys, []*string{c.Table.TableArn()}, map[string]any{
		"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": []string{"~*"}},
		"Null":                    map[string]any{"dynamodb:LeadingKeys": "false"},
	}))
}

// AllowTrusted lets grantee invoke all functions by their plain names. It speaks
// for every tenant: grant it to code that may.
func (c *Cairn) AllowTrusted(grantee awsiam.IGrantable) {
	for _, name := range Functions {
		c.allowInvoke(grantee, *c.Functions[name].FunctionArn())
	}
}

// AllowTool lets a business tool commit evidence in transactions of its own
// (package shared/ledger/tool): fill slots and check heads, seal under tenants'
// keys, and nothing else. It speaks for every tenant.
func (c *Cairn) AllowTool(grantee awsiam.IGrantable) {
	for _, s := range []awsiam.PolicyStatement{
		allow("", []string{"dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"}, []*string{c.Table.TableArn()}, nil),
		allow("", []string{"dynamodb:GetItem"}, []*string{c.KeyTable.TableArn()}, nil),
		allow("", []string{"kms:Decrypt"}, c.dataKeyArns(), (*wall)(nil).dataKey()),
		allow("", atRestActions, []*string{c.StorageKey.KeyArn(), c.KeyTableKey.KeyArn()}, c.via("dynamodb")),
	} {
		grantee.GrantPrincipal().AddToPrincipalPolicy(s)
	}
}

// maxAlias is the most characters that Lambda takes in the name of an alias.
const maxAlias = 128

// AllowTenant lets grantee invoke the functions as one tenant: through the
// tenant's aliases, which `cairn tenant add` makes, and nothing else. The error
// says that tenant is no tenant id, or that its alias is longer than Lambda takes.
func (c *Cairn) AllowTenant(grantee awsiam.IGrantable, tenant string) error {
	if err := execution.CheckIdentifier("tenant", tenant, execution.MaxTenant); err != nil {
		return fmt.Errorf("cairncdk: %w", err)
	}
	alias := execution.TenantAlias(execution.TenantID(tenant))
	if len(alias) > maxAlias {
		return fmt.Errorf("cairncdk: the alias of tenant %q has %d characters, Lambda takes %d", tenant, len(alias), maxAlias)
	}
	for _, name := range Functions {
		c.allowInvoke(grantee, *c.Functions[name].FunctionArn()+":"+alias)
	}
	return nil
}

// allowInvoke grants exactly one ARN. (grantInvoke grants the function's name
// and every qualifier of it: each caller could use every tenant's alias.)
func (c *Cairn) allowInvoke(grantee awsiam.IGrantable, arn string) {
	grantee.GrantPrincipal().AddToPrincipalPolicy(
		allow("", []string{"lambda:InvokeFunction"}, []*string{&arn}, nil))
}
