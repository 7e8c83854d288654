package cairncdk

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/shared/store"
)

// timeouts fit the work: a checkpoint is a few calls; recovery asks resolvers,
// which have timeouts of their own; retention walks executions page by page and
// returns a cursor well before its end.
var timeouts = map[string]int{Checkpoint: 30, Recover: 120, Retention: 300}

var descriptions = map[string]string{
	Checkpoint: "Cairn: create, apply, suspend, complete, read, evidence and signals",
	Recover:    "Cairn: claim, resume, reconcile, hand over; rings on timers",
	Retention:  "Cairn: policies, holds, archive, delete, purge, verify, keys",
}

// Stream mappings.
const (
	parallelization = 2           // batches of a shard at once; one key's changes stay in order
	maxRecordAge    = 6 * 60 * 60 // seconds; older records go to the queue, the sweep finds what they rang for
)

// batchingWindow in seconds: recovery must be prompt, retention may wait.
var batchingWindow = map[string]int{Recover: 0, Retention: 5}

// sweepMinutes is the period of each function's sweep.
var sweepMinutes = map[string]int{Recover: 1, Retention: 5}

// sweepEvent is what the schedules send.
var sweepEvent = map[string]any{"action": "sweep", "limit": 1000}

// makeFunction makes a function with its log group and its role. The log group
// and all permissions exist before the function does, so no first invocation
// goes unlogged or refused.
func (c *Cairn) makeFunction(name string) {
	id := title(name)
	logs := awslogs.NewLogGroup(c.Construct, jsii.String(id+"Logs"), &awslogs.LogGroupProps{
		Retention:     c.props.LogRetention,
		RemovalPolicy: c.props.RemovalPolicy,
	})
	role := c.makeRole(name, logs)
	c.Roles[name] = role
	if c.props.TenantRole {
		c.TenantRoles[name] = c.makeTenantRole(name, role)
	}

	props := &awslambda.FunctionProps{
		Description:   jsii.String(descriptions[name]),
		Runtime:       awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:  c.props.Architecture,
		Handler:       jsii.String("bootstrap"),
		Code:          awslambda.Code_FromAsset(jsii.String(filepath.Join(c.props.Dist, name)), &awss3assets.AssetOptions{}),
		MemorySize:    jsii.Number(c.props.MemoryMB),
		Timeout:       seconds(timeouts[name]),
		Tracing:       awslambda.Tracing_ACTIVE,
		LogGroup:      logs,
		Role:          role,
		Environment:   c.environment(name),
		Vpc:           c.props.Vpc,
		VpcSubnets:    c.props.VpcSubnets,
		RetryAttempts: jsii.Number(1),
		MaxEventAge:   seconds(sweepMinutes[Retention] * 60),
	}
	if c.props.FunctionPrefix != nil {
		props.FunctionName = jsii.String(*c.props.FunctionPrefix + name)
	}
	if c.props.SecurityGroups != nil {
		props.SecurityGroups = &c.props.SecurityGroups
	}
	if n, ok := c.props.ReservedConcurrency[name]; ok {
		props.ReservedConcurrentExecutions = jsii.Number(n)
	}
	if name == Checkpoint {
		// Callers may invoke it asynchronously (a provider's webhook behind a bus):
		// an event then deserves all the tries Lambda has. The other two are invoked
		// so by the schedules, which come again anyway.
		props.RetryAttempts, props.MaxEventAge = nil, nil
	}
	c.Functions[name] = awslambda.NewFunction(c.Construct, &id, props)
	// Tracing has the CDK add a policy of its own.
	suppress(role.Node().FindChild(jsii.String("DefaultPolicy")),
		wildcard("Resource::*", "X-Ray knows no resources: both of its actions can only be allowed on all."))
}

// environment is a function's whole configuration. The resolvers' key is its only
// secret: a reference that CloudFormation resolves, never in the template.
func (c *Cairn) environment(name string) *map[string]*string {
	env := map[string]*string{
		"CAIRN_TABLE":     c.Table.TableName(),
		"CAIRN_KEY_TABLE": c.KeyTable.TableName(),
		"CAIRN_BUCKET":    c.Bucket.BucketName(),
		"CAIRN_DATA_KEY":  c.DataKey.KeyArn(),
		"CAIRN_EPOCH":     jsii.String(strconv.Itoa(c.props.Epoch)),
	}
	if role := c.TenantRoles[name]; role != nil {
		env["CAIRN_TENANT_ROLE"] = role.RoleArn()
	}
	if name != Recover {
		return &env
	}
	if bus := c.props.Targets.OperatorBus; bus != "" {
		env["CAIRN_EVENT_BUS"] = &bus
	}
	if c.props.Targets.ResolverKey != nil {
		env["CAIRN_RESOLVER_HOSTS"] = jsii.String(strings.Join(c.props.Targets.ResolverHosts, ","))
		env["CAIRN_RESOLVER_KEY"] = c.props.Targets.ResolverKey.UnsafeUnwrap()
	}
	return &env
}

// makeMappings connects the main table's stream to the functions, as
// store.Mappings says. (The low-level resource: the high-level one adds grants
// of its own.)
func (c *Cairn) makeMappings() {
	for _, mapping := range store.Mappings {
		var filters []any
		for _, pattern := range mapping.Filters {
			filters = append(filters, &awslambda.CfnEventSourceMapping_FilterProperty{Pattern: &pattern})
		}
		awslambda.NewCfnEventSourceMapping(c.Construct, jsii.String(title(mapping.Function)+"Stream"), &awslambda.CfnEventSourceMappingProps{
			FunctionName:                   c.Functions[mapping.Function].FunctionName(),
			EventSourceArn:                 c.Table.TableStreamArn(),
			StartingPosition:               jsii.String("TRIM_HORIZON"),
			BatchSize:                      jsii.Number(mapping.BatchSize),
			MaximumBatchingWindowInSeconds: jsii.Number(batchingWindow[mapping.Function]),
			ParallelizationFactor:          jsii.Number(parallelization),
			MaximumRetryAttempts:           jsii.Number(mapping.Retries),
			MaximumRecordAgeInSeconds:      jsii.Number(maxRecordAge),
			BisectBatchOnFunctionError:     true,
			FunctionResponseTypes:          jsii.Strings("ReportBatchItemFailures"),
			FilterCriteria:                 &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{Filters: filters},
			DestinationConfig: &awslambda.CfnEventSourceMapping_DestinationConfigProperty{
				OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: c.DeadLetters.QueueArn()},
			},
		})
	}
}

// makeSchedules rings the sweeps. A sweep that is not delivered is not repeated
// beyond its period: the next one does its work.
func (c *Cairn) makeSchedules() {
	for _, name := range []string{Recover, Retention} {
		period := sweepMinutes[name] * 60
		awsevents.NewRule(c.Construct, jsii.String(title(name)+"Schedule"), &awsevents.RuleProps{
			Description: jsii.String("Cairn: sweeps of " + name),
			Schedule:    awsevents.Schedule_Rate(seconds(period)),
			Targets: &[]awsevents.IRuleTarget{
				awseventstargets.NewLambdaFunction(c.Functions[name], &awseventstargets.LambdaFunctionProps{
					Event:         awsevents.RuleTargetInput_FromObject(sweepEvent),
					RetryAttempts: jsii.Number(1),
					MaxEventAge:   seconds(max(period, 60)),
				}),
			},
		})
	}
}
