package cairncdk

import (
	"fmt"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/shared/store"
)

// What each function may do with the data of tenants. A transaction needs the
// actions of its parts. None may Scan.
var (
	tableActions = map[string][]string{
		Checkpoint: readWriteItems,
		Recover:    readWriteItems,
		Retention:  append([]string{"dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}, readWriteItems...),
	}
	readWriteItems = []string{
		"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query",
		"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem",
	}
	// Wrapped keys are one item a tenant; only retention may shred it.
	keyTableActions = map[string][]string{
		Checkpoint: {"dynamodb:GetItem", "dynamodb:PutItem"},
		Recover:    {"dynamodb:GetItem", "dynamodb:PutItem"},
		Retention:  {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Query"},
	}
	// Only retention wraps an existing key under another one (Encrypt).
	dataKeyActions = map[string][]string{
		Checkpoint: {"kms:GenerateDataKey", "kms:Decrypt"},
		Recover:    {"kms:GenerateDataKey", "kms:Decrypt"},
		Retention:  {"kms:GenerateDataKey", "kms:Decrypt", "kms:Encrypt"},
	}
	// A copy onto itself (refreshing a staged object) reads the tags too.
	objectActions = map[string][]string{
		Checkpoint: readWriteObjects,
		Recover:    readWriteObjects,
		Retention:  append([]string{"s3:DeleteObject", "s3:DeleteObjectVersion"}, readWriteObjects...),
	}
	readWriteObjects = []string{
		"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging",
		"s3:PutObject", "s3:PutObjectTagging", "s3:AbortMultipartUpload",
	}
	// Without ListBucket a missing object would look like a forbidden one.
	bucketActions = map[string][]string{
		Checkpoint: {"s3:ListBucket"},
		Recover:    {"s3:ListBucket"},
		Retention:  {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"},
	}
	// What DynamoDB and S3 do with a customer's key on behalf of who calls them.
	atRestActions = append([]string{"kms:DescribeKey"}, cryptoActions...)
)

// makeRole makes a function's role. Everything it may do is in its inline
// policy, so the role is complete before the function exists.
func (c *Cairn) makeRole(name string, logs awslogs.LogGroup) awsiam.Role {
	statements := []awsiam.PolicyStatement{
		allow("Logs", []string{"logs:CreateLogStream", "logs:PutLogEvents"}, []*string{logs.LogGroupArn()}, nil),
	}
	if c.props.TenantRole {
		statements = append(statements, c.acrossTenants(name)...)
	} else {
		statements = append(statements, c.dataStatements(name, nil)...)
	}
	if mapped(name) {
		statements = append(statements, c.streamStatements()...)
	}
	if name == Recover {
		statements = append(statements, c.targetStatements()...)
	}
	if c.props.Vpc != nil {
		statements = append(statements, networkStatements()...)
	}
	role := awsiam.NewRole(c.Construct, jsii.String(title(name)+"Role"), &awsiam.RoleProps{
		Description:    jsii.String("Cairn: what the function " + name + " may do"),
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"Cairn": document(statements)},
	})
	suppress(role, c.wildcards(name)...)
	return role
}

// wildcards are those in a function's own role, each by name and with why it
// does not matter.
func (c *Cairn) wildcards(name string) []suppression {
	var list []suppression
	if !c.props.TenantRole {
		list = append(list, wildcard(c.finding(c.Bucket, "/*"), "The bucket is Cairn's own and holds nothing but its objects; what a function may do with them is listed action by action."))
	}
	if mapped(name) {
		list = append(list, wildcard(c.finding(c.Table, "/stream/*"), "ListStreams is evaluated against the table's streams, whose labels are not known; it names streams and reads none."))
	}
	if c.props.Vpc != nil {
		list = append(list, wildcard("Resource::*", "Lambda makes network interfaces whose ids nobody knows beforehand; a Deny keeps the function's own code from using these actions."))
	}
	return list
}

func wildcard(finding, reason string) suppression {
	return suppression{Rule: "AwsSolutions-IAM5", Findings: []string{finding}, Reason: reason}
}

// finding is how cdk-nag names the resource that is below another's ARN.
func (c *Cairn) finding(resource constructs.Construct, below string) string {
	element := resource.Node().DefaultChild().(awscdk.CfnElement)
	return "Resource::<" + *c.stack().GetLogicalId(element) + ".Arn>" + below
}

// dataStatements let a function work on tenants' data: on all of it, or with a
// wall on what the wall leaves.
func (c *Cairn) dataStatements(name string, w *wall) []awsiam.PolicyStatement {
	table, keyTable, bucket := *c.Table.TableArn(), *c.KeyTable.TableArn(), *c.Bucket.BucketArn()
	objects := bucket + "/*"
	if w != nil {
		objects = bucket + "/" + tenantTag + "/*"
	}
	statements := []awsiam.PolicyStatement{
		allow("Items", tableActions[name], []*string{&table}, w.items(name == Retention)),
		allow("Indexes", []string{"dynamodb:Query"}, c.indexArns(w != nil), w.items(false)),
		allow("WrappedKeys", keyTableActions[name], []*string{&keyTable}, w.items(false)),
		allow("Objects", objectActions[name], []*string{&objects}, w.objects()),
		allow("ListObjects", bucketActions[name], []*string{&bucket}, w.listing()),
		allow("UnwrapTenantKeys", dataKeyActions[name], c.dataKeyArns(), w.dataKey()),
	}
	return append(statements, c.atRestStatements()...)
}

// atRestStatements let a function read and write what the storage keys encrypt,
// through the services that do the encrypting and in no other way. S3 names the
// bucket as context (Bucket Key), DynamoDB the table: neither can name a tenant.
func (c *Cairn) atRestStatements() []awsiam.PolicyStatement {
	statements := []awsiam.PolicyStatement{
		allow("StorageAtRest", atRestActions, []*string{c.StorageKey.KeyArn()}, c.via("dynamodb", "s3")),
		allow("KeyTableAtRest", atRestActions, []*string{c.KeyTableKey.KeyArn()}, c.via("dynamodb")),
	}
	if len(c.props.TenantKeys) > 0 {
		statements = append(statements,
			allow("ObjectsUnderTenantKeys", []string{"kms:GenerateDataKey", "kms:Decrypt"}, *strs(c.props.TenantKeys), c.via("s3")))
	}
	return statements
}

// streamStatements let Lambda poll the stream in the function's name and put
// what failed into the dead-letter queue. (The stream is read with the key under
// the table's, which the other statements give.)
func (c *Cairn) streamStatements() []awsiam.PolicyStatement {
	streams := *c.Table.TableArn() + "/stream/*"
	return []awsiam.PolicyStatement{
		allow("Stream", []string{"dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"}, []*string{c.Table.TableStreamArn()}, nil),
		allow("FindStream", []string{"dynamodb:ListStreams"}, []*string{&streams}, nil),
		allow("DeadLetters", []string{"sqs:SendMessage"}, []*string{c.DeadLetters.QueueArn()}, nil),
		allow("QueueAtRest", []string{"kms:Decrypt", "kms:GenerateDataKey"}, []*string{c.StorageKey.KeyArn()}, c.via("sqs")),
	}
}

// targetStatements let recovery start, ask and tell what Props.Targets names.
func (c *Cairn) targetStatements() []awsiam.PolicyStatement {
	buses := c.props.Targets.EventBuses
	if bus := c.props.Targets.OperatorBus; bus != "" && !slices.Contains(buses, bus) {
		buses = append(slices.Clone(buses), bus)
	}
	var statements []awsiam.PolicyStatement
	for _, target := range []struct {
		sid, action string
		arns        []string
	}{
		{"StartStateMachines", "states:StartExecution", c.props.Targets.StateMachines},
		{"AnswerTaskTokens", "states:SendTaskSuccess", c.props.Targets.StateMachines},
		{"InvokeFunctions", "lambda:InvokeFunction", c.props.Targets.Functions},
		{"PutEvents", "events:PutEvents", buses},
	} {
		if len(target.arns) > 0 {
			statements = append(statements, allow(target.sid, []string{target.action}, *strs(target.arns), nil))
		}
	}
	return statements
}

// networkStatements let Lambda, and not the function's own code, manage the
// network interfaces of a function in a VPC.
func networkStatements() []awsiam.PolicyStatement {
	actions := []string{
		"ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface",
		"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
	}
	all := []*string{jsii.String("*")}
	refuse := allow("NoNetworkFromCode", actions, all, map[string]any{"Null": map[string]any{"lambda:SourceFunctionArn": "false"}})
	refuse.SetEffect(awsiam.Effect_DENY)
	return []awsiam.PolicyStatement{allow("Network", actions, all, nil), refuse}
}

// indexArns are the indexes that tenants' requests read; all of them, or without
// those whose partitions hold heads of all tenants.
func (c *Cairn) indexArns(withoutShared bool) []*string {
	var arns []*string
	for _, index := range store.Indexes {
		if !index.Shared || !withoutShared {
			arns = append(arns, c.indexArn(index))
		}
	}
	return arns
}

func (c *Cairn) indexArn(index store.Index) *string {
	return jsii.String(*c.Table.TableArn() + "/index/" + index.Name)
}

// dataKeyArns are the keys that may wrap a tenant's data keys.
func (c *Cairn) dataKeyArns() []*string {
	return append([]*string{c.DataKey.KeyArn()}, *strs(c.props.TenantKeys)...)
}

// via is the condition that a key is used through one of the services.
func (c *Cairn) via(services ...string) map[string]any {
	hosts := make([]string, len(services))
	for i, service := range services {
		hosts[i] = fmt.Sprintf("%s.%s.%s", service, *c.stack().Region(), *awscdk.Aws_URL_SUFFIX())
	}
	return map[string]any{"StringEquals": map[string]any{"kms:ViaService": hosts}}
}

// mapped reports whether a stream mapping invokes the function.
func mapped(name string) bool {
	for _, m := range store.Mappings {
		if m.Function == name {
			return true
		}
	}
	return false
}

// allow makes a statement; sid "" gives it none, conditions nil none.
func allow(sid string, actions []string, resources []*string, conditions map[string]any) awsiam.PolicyStatement {
	props := &awsiam.PolicyStatementProps{
		Effect:    awsiam.Effect_ALLOW,
		Actions:   strs(actions),
		Resources: &resources,
	}
	if sid != "" {
		props.Sid = &sid
	}
	if conditions != nil {
		props.Conditions = &conditions
	}
	return awsiam.NewPolicyStatement(props)
}

func document(statements []awsiam.PolicyStatement) awsiam.PolicyDocument {
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}
