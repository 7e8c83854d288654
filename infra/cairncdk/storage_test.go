package cairncdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
	"github.com/cairnstate/cairn/shared/store"
)

func TestMainTable(t *testing.T) {
	table := get(t, standard(), "AWS::DynamoDB::Table", "Table")
	wantAt(t, table, map[string]string{
		"BillingMode":               "PAY_PER_REQUEST",
		"DeletionProtectionEnabled": "true",
		"KeySchema":                 "[{AttributeName=pk, KeyType=HASH}, {AttributeName=sk, KeyType=RANGE}]",
		"TimeToLiveSpecification":   "{AttributeName=ttl, Enabled=true}",
		"StreamSpecification":       "{StreamViewType=NEW_AND_OLD_IMAGES}",
		"SSESpecification":          "{KMSMasterKeyId=${StorageKey.Arn}, SSEEnabled=true, SSEType=KMS}",
		"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "true",
		"PointInTimeRecoverySpecification.RecoveryPeriodInDays":       "35",
	})
	var indexes []string
	for _, i := range store.Indexes {
		indexes = append(indexes, fmt.Sprintf("{IndexName=%s, KeySchema=[{AttributeName=%s, KeyType=HASH}, {AttributeName=%s, KeyType=RANGE}], Projection={ProjectionType=ALL}}", i.Name, i.PK, i.SK))
		kind := "S"
		if i.NumberSK {
			kind = "N"
		}
		definitions := synth.Texts(table.Properties.At("AttributeDefinitions"))
		for _, want := range []string{"{AttributeName=" + i.PK + ", AttributeType=S}", "{AttributeName=" + i.SK + ", AttributeType=" + kind + "}"} {
			if !slices.Contains(definitions, want) {
				t.Errorf("index %s: no definition %s", i.Name, want)
			}
		}
	}
	if got := synth.Texts(table.Properties.At("GlobalSecondaryIndexes")); !slices.Equal(got, indexes) {
		t.Errorf("indexes:\n got %v\nwant %v", got, indexes)
	}
}

func TestKeyTable(t *testing.T) {
	wantAt(t, get(t, standard(), "AWS::DynamoDB::Table", "KeyTable"), map[string]string{
		"BillingMode":               "PAY_PER_REQUEST",
		"DeletionProtectionEnabled": "true",
		"KeySchema":                 "[{AttributeName=pk, KeyType=HASH}, {AttributeName=sk, KeyType=RANGE}]",
		"AttributeDefinitions":      "[{AttributeName=pk, AttributeType=S}, {AttributeName=sk, AttributeType=S}]",
		"SSESpecification":          "{KMSMasterKeyId=${KeyTableKey.Arn}, SSEEnabled=true, SSEType=KMS}",
		"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "true",
		"PointInTimeRecoverySpecification.RecoveryPeriodInDays":       "3",
		"StreamSpecification":     "",
		"TimeToLiveSpecification": "",
		"GlobalSecondaryIndexes":  "",
	})
}

func TestBucket(t *testing.T) {
	wantAt(t, get(t, standard(), "AWS::S3::Bucket", "Bucket"), map[string]string{
		"BucketEncryption.ServerSideEncryptionConfiguration": "[{BucketKeyEnabled=true, ServerSideEncryptionByDefault={KMSMasterKeyID=${StorageKey.Arn}, SSEAlgorithm=aws:kms}}]",
		"VersioningConfiguration":                            "{Status=Enabled}",
		"PublicAccessBlockConfiguration":                     "{BlockPublicAcls=true, BlockPublicPolicy=true, IgnorePublicAcls=true, RestrictPublicBuckets=true}",
		"OwnershipControls":                                  "{Rules=[{ObjectOwnership=BucketOwnerEnforced}]}",
		"LifecycleConfiguration.Rules": "[{AbortIncompleteMultipartUpload={DaysAfterInitiation=2}, Id=unfinished-uploads, Status=Enabled}, " +
			"{ExpirationInDays=1, Id=views, NoncurrentVersionExpiration={NoncurrentDays=1}, Status=Enabled, TagFilters=[{Key=cairn-expires, Value=day}]}, " +
			"{ExpiredObjectDeleteMarker=true, Id=old-versions, NoncurrentVersionExpiration={NoncurrentDays=30}, Status=Enabled}]",
	})
	policy := synth.Statements(get(t, standard(), "AWS::S3::BucketPolicy", "BucketPolicy").Properties["PolicyDocument"])
	for _, want := range []synth.Statement{
		{Effect: "Deny", Actions: []string{"s3:*"}, Conditions: "{Bool={aws:SecureTransport=false}}", Resources: []string{"${Bucket.Arn}", "${Bucket.Arn}/*"}},
		{Effect: "Deny", Actions: []string{"s3:*"}, Conditions: "{NumericLessThan={s3:TlsVersion=1.2}}", Resources: []string{"${Bucket.Arn}", "${Bucket.Arn}/*"}},
		{Sid: "RefuseOtherEncryption", Effect: "Deny", Actions: []string{"s3:PutObject"}, Resources: []string{"${Bucket.Arn}/*"},
			Conditions: "{Null={s3:x-amz-server-side-encryption=false}, StringNotEquals={s3:x-amz-server-side-encryption=aws:kms}}"},
		// The validation window, 5 minutes, for objects.
		{Sid: "RefuseLatePuts", Effect: "Deny", Actions: []string{"s3:PutObject"}, Resources: []string{"${Bucket.Arn}/*"},
			Conditions: "{NumericGreaterThan={s3:signatureAge=300000}, StringEquals={s3:authType=REST-HEADER}}"},
	} {
		want.Principals = []string{"AWS *"}
		if !slices.ContainsFunc(policy, func(s synth.Statement) bool { return fmt.Sprint(s) == fmt.Sprint(want) }) {
			t.Errorf("no statement %v in %v", want, policy)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	wantAt(t, get(t, standard(), "AWS::SQS::Queue", "DeadLetters"), map[string]string{
		"KmsMasterKeyId":         "${StorageKey.Arn}",
		"MessageRetentionPeriod": "1209600",
	})
	policy := synth.Statements(get(t, standard(), "AWS::SQS::QueuePolicy", "DeadLettersPolicy").Properties["PolicyDocument"])
	if len(policy) != 1 || policy[0].Effect != "Deny" || policy[0].Conditions != "{Bool={aws:SecureTransport=false}}" {
		t.Errorf("queue policy: %v", policy)
	}
}

// The key that wraps tenants' keys refuses whoever names no tenant; the other
// two have no such statement (S3 and DynamoDB could not meet it).
func TestKeys(t *testing.T) {
	for _, name := range []string{"DataKey", "StorageKey", "KeyTableKey"} {
		key := get(t, standard(), "AWS::KMS::Key", name)
		wantAt(t, key, map[string]string{"EnableKeyRotation": "true", "PendingWindowInDays": "30"})
		policy := synth.Statements(key.Properties["KeyPolicy"])
		if name != "DataKey" {
			if len(policy) != 1 || policy[0].Effect != "Allow" {
				t.Errorf("%s: policy %v", name, policy)
			}
			continue
		}
		deny := statement(t, policy, "RefuseWithoutTenant")
		if deny.Effect != "Deny" || deny.Conditions != "{Null={kms:EncryptionContext:tenant=true}}" || !slices.Equal(deny.Principals, []string{"AWS *"}) {
			t.Errorf("refusal: %+v", deny)
		}
		for _, action := range []string{"kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"} {
			if !slices.Contains(deny.Actions, action) {
				t.Errorf("the data key does not refuse %s without a tenant", action)
			}
		}
	}
}

// Everything that holds data stays when the stack goes, and when a change of the
// template replaces it.
func TestDataIsRetained(t *testing.T) {
	holding := []string{"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SQS::Queue", "AWS::Logs::LogGroup"}
	for _, policy := range []awscdk.RemovalPolicy{"", awscdk.RemovalPolicy_DESTROY} {
		result, want := standard(), "Retain"
		if policy != "" {
			result, want = template(t, cairncdk.Props{RemovalPolicy: policy}, nil), "Delete"
		}
		seen := 0
		for name, r := range result.Resources {
			if !slices.Contains(holding, r.Type) {
				continue
			}
			seen++
			if r.DeletionPolicy != want || r.UpdateReplacePolicy != want {
				t.Errorf("%s: deletion %s, replacement %s, want %s", name, r.DeletionPolicy, r.UpdateReplacePolicy, want)
			}
			if protected := synth.Text(r.Properties["DeletionProtectionEnabled"]); r.Type == holding[0] && (protected == "true") != (want == "Retain") {
				t.Errorf("%s: deletion protection %q with %s", name, protected, want)
			}
		}
		if seen != 10 {
			t.Errorf("%d resources that hold data, want 10", seen)
		}
	}
}

func TestStorageProps(t *testing.T) {
	result := template(t, cairncdk.Props{
		RecoveryDays: 7, KeyRecoveryDays: 1, NoncurrentDays: 5,
		ArchiveClass: "GLACIER_IR", ArchiveAfterDays: 90, IndexAttributes: cairncdk.IndexNeeds,
	}, nil)
	wantAt(t, get(t, result, "AWS::DynamoDB::Table", "Table"), map[string]string{"PointInTimeRecoverySpecification.RecoveryPeriodInDays": "7"})
	wantAt(t, get(t, result, "AWS::DynamoDB::Table", "KeyTable"), map[string]string{"PointInTimeRecoverySpecification.RecoveryPeriodInDays": "1"})
	rules := synth.Text(get(t, result, "AWS::S3::Bucket", "Bucket").Properties.At("LifecycleConfiguration", "Rules"))
	for _, want := range []string{"NoncurrentDays=5", "Id=archive-class, ObjectSizeGreaterThan=131071, Status=Enabled, Transitions=[{StorageClass=GLACIER_IR, TransitionInDays=90}]"} {
		if !strings.Contains(rules, want) {
			t.Errorf("no %q in %s", want, rules)
		}
	}
	indexes := synth.Text(get(t, result, "AWS::DynamoDB::Table", "Table").Properties["GlobalSecondaryIndexes"])
	if n := strings.Count(indexes, "Projection={NonKeyAttributes=["+strings.Join(cairncdk.IndexNeeds, ", ")+"], ProjectionType=INCLUDE}"); n != len(store.Indexes) {
		t.Errorf("%d indexes with the attributes, want all: %s", n, indexes)
	}
}
