package cairncdk

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/shared/store"
)

// cryptoActions are all actions that turn a key into bytes or back.
var cryptoActions = []string{
	"kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo",
	"kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext",
}

// DataKeyPolicyStatement refuses, in the policy of a data key, every
// cryptographic action without a tenant in its encryption context. Being a Deny
// it outranks every grant and every identity policy, the account root's too.
func DataKeyPolicyStatement() awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("RefuseWithoutTenant"),
		Effect:     awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()},
		Actions:    strs(cryptoActions),
		Resources:  jsii.Strings("*"),
		Conditions: &map[string]any{"Null": map[string]any{"kms:EncryptionContext:tenant": "true"}},
	})
}

// makeKeys makes three keys, so that whoever may read a table is not thereby
// able to unwrap a tenant's key, and the other way round.
func (c *Cairn) makeKeys() {
	newKey := func(id, description string) awskms.Key {
		return awskms.NewKey(c.Construct, &id, &awskms.KeyProps{
			Description:       &description,
			EnableKeyRotation: jsii.Bool(true),
			PendingWindow:     days(30),
			RemovalPolicy:     c.props.RemovalPolicy,
		})
	}
	c.StorageKey = c.props.StorageKey
	if c.StorageKey == nil {
		c.StorageKey = newKey("StorageKey", "Cairn: main table, bucket and dead-letter queue at rest")
	}
	c.DataKey = c.props.DataKey
	if c.DataKey == nil {
		key := newKey("DataKey", "Cairn: wraps the tenants' data keys")
		key.AddToResourcePolicy(DataKeyPolicyStatement(), nil)
		c.DataKey = key
	}
	c.KeyTableKey = newKey("KeyTableKey", "Cairn: key table at rest")
}

func (c *Cairn) makeTables() {
	props := func(key awskms.IKey, recovery int) *awsdynamodb.TableProps {
		return &awsdynamodb.TableProps{
			PartitionKey:       attribute("pk", false),
			SortKey:            attribute("sk", false),
			BillingMode:        awsdynamodb.BillingMode_PAY_PER_REQUEST,
			Encryption:         awsdynamodb.TableEncryption_CUSTOMER_MANAGED,
			EncryptionKey:      key,
			RemovalPolicy:      c.props.RemovalPolicy,
			DeletionProtection: jsii.Bool(c.props.RemovalPolicy == awscdk.RemovalPolicy_RETAIN),
			PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: jsii.Bool(true),
				RecoveryPeriodInDays:       jsii.Number(recovery),
			},
		}
	}
	main := props(c.StorageKey, c.props.RecoveryDays)
	main.Stream = awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES
	main.TimeToLiveAttribute = jsii.String("ttl")
	c.Table = awsdynamodb.NewTable(c.Construct, jsii.String("Table"), main)
	for _, index := range store.Indexes {
		c.Table.AddGlobalSecondaryIndex(c.indexProps(index))
	}
	c.KeyTable = awsdynamodb.NewTable(c.Construct, jsii.String("KeyTable"), props(c.KeyTableKey, c.props.KeyRecoveryDays))
}

// IndexNeeds are the attributes of a head that sweeps and listings read from the
// indexes (journal.ParseHead).
var IndexNeeds = []string{
	"generation", "status", "owner", "fence", "holds", "due", "due_kind", "expires_at", "thread", "workflow", "schema_name", "schema_version", "policy", "created_at", "updated_at",
}

func (c *Cairn) indexProps(index store.Index) *awsdynamodb.GlobalSecondaryIndexProps {
	props := &awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      jsii.String(index.Name),
		PartitionKey:   attribute(index.PK, false),
		SortKey:        attribute(index.SK, index.NumberSK),
		ProjectionType: awsdynamodb.ProjectionType_ALL,
	}
	if c.props.IndexAttributes != nil {
		props.ProjectionType = awsdynamodb.ProjectionType_INCLUDE
		props.NonKeyAttributes = strs(c.props.IndexAttributes)
	}
	return props
}

func attribute(name string, number bool) *awsdynamodb.Attribute {
	kind := awsdynamodb.AttributeType_STRING
	if number {
		kind = awsdynamodb.AttributeType_NUMBER
	}
	return &awsdynamodb.Attribute{Name: &name, Type: kind}
}

// makeBucket makes the bucket for bodies too large for an item, artifacts,
// archives and views.
func (c *Cairn) makeBucket() {
	c.Bucket = awss3.NewBucket(c.Construct, jsii.String("Bucket"), &awss3.BucketProps{
		Encryption:             awss3.BucketEncryption_KMS,
		EncryptionKey:          c.StorageKey,
		BucketKeyEnabled:       jsii.Bool(true),
		Versioned:              jsii.Bool(true),
		EnforceSSL:             jsii.Bool(true),
		MinimumTLSVersion:      jsii.Number(1.2),
		BlockPublicAccess:      awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:        awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:          c.props.RemovalPolicy,
		ServerAccessLogsBucket: c.props.AccessLogs,
		LifecycleRules:         c.lifecycle(),
	})
	// Without the header the bucket's own encryption applies, so only a header that
	// says something else is refused.
	c.refusePut("RefuseOtherEncryption", map[string]any{
		"Null":            map[string]any{"s3:x-amz-server-side-encryption": "false"},
		"StringNotEquals": map[string]any{"s3:x-amz-server-side-encryption": "aws:kms"},
	})
	// A put is signed with the time of the read that validated it: one that wakes
	// up later than the validation window must not land (S3 alone would take it
	// for 15 minutes). Upload URLs live longer and are create-only by digest.
	c.refusePut("RefuseLatePuts", map[string]any{
		"StringEquals":       map[string]any{"s3:authType": "REST-HEADER"},
		"NumericGreaterThan": map[string]any{"s3:signatureAge": strconv.FormatInt(store.Window.Milliseconds(), 10)},
	})
	if c.props.AccessLogs == nil {
		suppress(c.Bucket, suppression{
			Rule:   "AwsSolutions-S1",
			Reason: "Server access logs are the account's choice (Props.AccessLogs): they hold every object key, and CloudTrail data events cover the same.",
		})
	}
}

// refusePut refuses, whoever asks, to write an object under the conditions.
func (c *Cairn) refusePut(sid string, conditions map[string]any) {
	c.Bucket.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        &sid,
		Effect:     awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()},
		Actions:    jsii.Strings("s3:PutObject"),
		Resources:  &[]*string{c.Bucket.ArnForObjects(jsii.String("*"))},
		Conditions: &conditions,
	}))
}

func (c *Cairn) lifecycle() *[]*awss3.LifecycleRule {
	rules := []*awss3.LifecycleRule{
		{
			Id:                                  jsii.String("unfinished-uploads"),
			AbortIncompleteMultipartUploadAfter: days(2),
		},
		{
			Id:                          jsii.String("views"),
			TagFilters:                  &map[string]any{"cairn-expires": "day"},
			Expiration:                  days(1),
			NoncurrentVersionExpiration: days(1),
		},
		{
			Id:                          jsii.String("old-versions"),
			NoncurrentVersionExpiration: days(c.props.NoncurrentDays),
			ExpiredObjectDeleteMarker:   jsii.Bool(true),
		},
	}
	if c.props.ArchiveClass != "" {
		rules = append(rules, &awss3.LifecycleRule{
			Id:                    jsii.String("archive-class"),
			ObjectSizeGreaterThan: jsii.Number(128*1024 - 1),
			Transitions: &[]*awss3.Transition{{
				StorageClass:    awss3.NewStorageClass(&c.props.ArchiveClass),
				TransitionAfter: days(c.props.ArchiveAfterDays),
			}},
		})
	}
	return &rules
}

// makeQueue makes the dead-letter queue of the stream mappings. Lambda sends it
// where a record stood and why it failed; the record itself never.
func (c *Cairn) makeQueue() {
	c.DeadLetters = awssqs.NewQueue(c.Construct, jsii.String("DeadLetters"), &awssqs.QueueProps{
		Encryption:          awssqs.QueueEncryption_KMS,
		EncryptionMasterKey: c.StorageKey,
		EnforceSSL:          jsii.Bool(true),
		RetentionPeriod:     days(14),
		RemovalPolicy:       c.props.RemovalPolicy,
	})
	suppress(c.DeadLetters, suppression{
		Rule:   "AwsSolutions-SQS3",
		Reason: "This queue is itself the dead-letter queue of the stream mappings; people read it, no consumer can fail on it.",
	})
}
