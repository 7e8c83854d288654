package cairncdk

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Cairn is the deployed thing: what NewCairn made, for those who build on it.
type Cairn struct {
	// Construct is where all of it hangs in the tree.
	Construct constructs.Construct

	Table    awsdynamodb.Table
	KeyTable awsdynamodb.Table
	Bucket   awss3.Bucket
	// StorageKey encrypts the main table, the bucket and the queue; DataKey wraps
	// the tenants' data keys; KeyTableKey encrypts the key table.
	StorageKey, DataKey, KeyTableKey awskms.IKey
	// Functions and Roles by function name; TenantRoles likewise, empty unless
	// Props.TenantRole.
	Functions   map[string]awslambda.Function
	Roles       map[string]awsiam.Role
	TenantRoles map[string]awsiam.Role
	// DeadLetters receives what is known about stream records that could not be
	// handled: position and error, never their content.
	DeadLetters awssqs.Queue
	Alarms      []awscloudwatch.Alarm
	Dashboard   awscloudwatch.Dashboard

	props Props
}

// NewCairn makes everything below scope. props nil is the zero Props. Wrong
// props become error annotations: the CDK says them all and refuses to deploy.
func NewCairn(scope constructs.Construct, id string, props *Props) *Cairn {
	if props == nil {
		props = &Props{}
	}
	c := &Cairn{
		Construct:   constructs.NewConstruct(scope, &id),
		Functions:   map[string]awslambda.Function{},
		Roles:       map[string]awsiam.Role{},
		TenantRoles: map[string]awsiam.Role{},
		props:       props.filled(),
	}
	if problems := c.props.problems(); len(problems) > 0 {
		for _, problem := range problems {
			awscdk.Annotations_Of(c.Construct).AddError(&problem)
		}
		return c
	}
	c.makeKeys()
	c.makeTables()
	c.makeBucket()
	c.makeQueue()
	for _, name := range Functions {
		c.makeFunction(name)
	}
	c.makeMappings()
	c.makeSchedules()
	c.makeAlarms()
	c.makeDashboard()
	c.makeOutputs()
	return c
}

// makeOutputs names what operators and the command line need to find.
func (c *Cairn) makeOutputs() {
	outputs := map[string]*string{
		"TableName":      c.Table.TableName(),
		"KeyTableName":   c.KeyTable.TableName(),
		"BucketName":     c.Bucket.BucketName(),
		"DataKeyArn":     c.DataKey.KeyArn(),
		"DeadLettersUrl": c.DeadLetters.QueueUrl(),
	}
	for name, fn := range c.Functions {
		outputs[title(name)+"Function"] = fn.FunctionName()
	}
	for name, role := range c.TenantRoles {
		outputs[title(name)+"TenantRoleArn"] = role.RoleArn()
	}
	for _, name := range sortedKeys(outputs) {
		awscdk.NewCfnOutput(c.Construct, jsii.String(name), &awscdk.CfnOutputProps{Value: outputs[name]})
	}
}

// stack is the one that the construct is in.
func (c *Cairn) stack() awscdk.Stack { return awscdk.Stack_Of(c.Construct) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// title turns a function's name into a part of a construct id.
func title(name string) string { return string(name[0]-'a'+'A') + name[1:] }

// strs is a list in the form that the CDK takes.
func strs(list []string) *[]*string { return jsii.Strings(list...) }

func days(n int) awscdk.Duration { return awscdk.Duration_Days(jsii.Number(n)) }

func seconds(n int) awscdk.Duration { return awscdk.Duration_Seconds(jsii.Number(n)) }
