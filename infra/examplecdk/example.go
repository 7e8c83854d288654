package examplecdk

import (
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/cairnstate/cairn/examples/stepfunctions"
	"github.com/cairnstate/cairn/infra/cairncdk"
)

// Functions are the examples' functions: directories below Props.Dist.
var Functions = []string{desk, agent}

const (
	desk    = "desk"
	agent   = "agent"
	machine = "document-case"
)

// Props configures New.
type Props struct {
	// Dist and Architecture are those of the functions (make dist-examples).
	Dist         string
	Architecture awslambda.Architecture // nil: arm64
	// Prefix comes before the names, which are fixed. It must be the one that
	// Targets was given.
	Prefix string
	// LeaseSeconds of the machine's; 0: its default.
	LeaseSeconds int
	// Fuse lets demonstrations kill the functions' processes.
	Fuse bool
	// RemovalPolicy of the tables; "" is RETAIN.
	RemovalPolicy awscdk.RemovalPolicy
}

// Targets are what Cairn must be allowed to start for the examples. They are
// names, not references: the targets call Cairn's functions, so a reference would
// be a circle.
func Targets(stack awscdk.Stack, prefix string) cairncdk.Targets {
	arn := func(service, kind, name string) string {
		return *stack.FormatArn(&awscdk.ArnComponents{Service: &service, Resource: &kind, ResourceName: jsii.String(prefix + name), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME})
	}
	return cairncdk.Targets{StateMachines: []string{arn("states", "stateMachine", machine)}, Functions: []string{arn("lambda", "function", agent)}}
}

// example is what New is making.
type example struct {
	scope constructs.Construct
	cairn *cairncdk.Cairn
	props Props
}

// New makes the examples below scope, for a Cairn that has Targets.
func New(scope constructs.Construct, id string, cairn *cairncdk.Cairn, props Props) {
	if props.Architecture == nil {
		props.Architecture = awslambda.Architecture_ARM_64()
	}
	if props.RemovalPolicy == "" {
		props.RemovalPolicy = awscdk.RemovalPolicy_RETAIN
	}
	e := &example{constructs.NewConstruct(scope, &id), cairn, props}
	letters, accounts := e.table("letters-table"), e.table("accounts-table")
	office := e.function(desk, map[string]*string{stepfunctions.VarLetters: letters.TableName()})
	e.allow(office.Role(), []string{"dynamodb:PutItem", "dynamodb:DeleteItem"}, letters.TableArn())
	cairn.AllowTrusted(office)

	complaints := e.function(agent, map[string]*string{
		"CAIRN_EXAMPLE_ACCOUNTS": accounts.TableName(), "CAIRN_TABLE": cairn.Table.TableName(), "CAIRN_KEY_TABLE": cairn.KeyTable.TableName(),
		"CAIRN_BUCKET": cairn.Bucket.BucketName(), "CAIRN_DATA_KEY": cairn.DataKey.KeyArn(),
	})
	e.allow(complaints.Role(), []string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, accounts.TableArn())
	cairn.AllowTrusted(complaints)
	cairn.AllowTool(complaints)

	arn := e.machine(office)
	for name, value := range map[string]*string{"Machine": arn, "Letters": letters.TableName(), "Agent": complaints.FunctionName(), "Accounts": accounts.TableName()} {
		awscdk.NewCfnOutput(e.scope, jsii.String(name), &awscdk.CfnOutputProps{Value: value})
	}
}

// table is a business table: its keys are texts and nobody else's concern.
func (e *example) table(id string) awsdynamodb.Table {
	text := func(name string) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: &name, Type: awsdynamodb.AttributeType_STRING}
	}
	return awsdynamodb.NewTable(e.scope, &id, &awsdynamodb.TableProps{
		PartitionKey: text("pk"), SortKey: text("sk"), BillingMode: awsdynamodb.BillingMode_PAY_PER_REQUEST, RemovalPolicy: e.props.RemovalPolicy,
	})
}

func (e *example) function(name string, env map[string]*string) awslambda.Function {
	env["CAIRN_CHECKPOINT"] = e.cairn.Functions[cairncdk.Checkpoint].FunctionName()
	env["CAIRN_RECOVER"] = e.cairn.Functions[cairncdk.Recover].FunctionName()
	if e.props.Fuse {
		env[stepfunctions.VarFuse] = jsii.String("on")
	}
	logs := awslogs.NewLogGroup(e.scope, jsii.String(name+"-logs"), &awslogs.LogGroupProps{Retention: awslogs.RetentionDays_ONE_WEEK, RemovalPolicy: e.props.RemovalPolicy})
	role := awsiam.NewRole(e.scope, jsii.String(name+"-role"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil)})
	e.allow(role, []string{"logs:CreateLogStream", "logs:PutLogEvents"}, logs.LogGroupArn())
	return awslambda.NewFunction(e.scope, &name, &awslambda.FunctionProps{
		FunctionName: jsii.String(e.props.Prefix + name),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: e.props.Architecture,
		Handler:      jsii.String("bootstrap"),
		Code:         awslambda.Code_FromAsset(jsii.String(filepath.Join(e.props.Dist, name)), nil),
		MemorySize:   jsii.Number(512),
		Timeout:      awscdk.Duration_Seconds(jsii.Number(60)),
		LogGroup:     logs,
		Role:         role,
		Environment:  &env,
	})
}

// machine makes the state machine and gives its ARN.
func (e *example) machine(office awslambda.Function) *string {
	role := awsiam.NewRole(e.scope, jsii.String("machine-role"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("states.amazonaws.com"), nil)})
	checkpoint, recover := e.cairn.Functions[cairncdk.Checkpoint], e.cairn.Functions[cairncdk.Recover]
	e.allow(role, []string{"lambda:InvokeFunction"}, checkpoint.FunctionArn(), recover.FunctionArn(), office.FunctionArn())
	m := awsstepfunctions.NewCfnStateMachine(e.scope, jsii.String("machine"), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName: jsii.String(e.props.Prefix + machine),
		StateMachineType: jsii.String("STANDARD"),
		RoleArn:          role.RoleArn(),
		DefinitionString: jsii.String(stepfunctions.Definition(stepfunctions.Names{
			Checkpoint: *checkpoint.FunctionArn(), Recover: *recover.FunctionArn(), Desk: *office.FunctionArn(),
		}, e.props.LeaseSeconds)),
	})
	m.Node().AddDependency(role) // with its policy: the first machine may start at once
	return m.AttrArn()
}

func (e *example) allow(role awsiam.IRole, actions []string, resources ...*string) {
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings(actions...), Resources: &resources}))
}
