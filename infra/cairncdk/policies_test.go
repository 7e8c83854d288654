package cairncdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

var everything = cairncdk.Props{
	TenantRole: true,
	TenantKeys: []string{"arn:aws:kms:eu-west-1:111122223333:key/b1946ac9-2f1e-4d3c-8b7a-5a4b3c2d1e0f"},
	Targets: cairncdk.Targets{
		StateMachines: []string{"arn:aws:states:eu-west-1:111122223333:stateMachine:case"},
		Functions:     []string{"arn:aws:lambda:eu-west-1:111122223333:function:resolver:live"},
		EventBuses:    []string{"arn:aws:events:eu-west-1:111122223333:event-bus/cases"},
		OperatorBus:   "arn:aws:events:eu-west-1:111122223333:event-bus/operators",
	},
}

// No role has an action with a wildcard, a scan, or a way to manage keys,
// permissions or its own tables; a resource with a wildcard is one of those
// listed here with what makes it harmless.
func TestNoWildcardsThatMatter(t *testing.T) {
	harmless := map[string]string{
		"*":                           "xray:PutTelemetryRecords xray:PutTraceSegments", // X-Ray knows no resources
		"${Table.Arn}/stream/*":       "dynamodb:ListStreams",                           // names the table's streams, reads none
		"${Bucket.Arn}/*":             "",                                               // the bucket is Cairn's own
		"${Bucket.Arn}/" + tag + "/*": "",                                               // one tenant's prefix
	}
	for _, result := range []synth.Result{standard(), template(t, everything, nil)} {
		for _, role := range result.OfType("AWS::IAM::Role") {
			for _, s := range result.RoleStatements(role) {
				for _, action := range s.Actions {
					service, verb, _ := strings.Cut(action, ":")
					manages := service == "iam" || strings.HasPrefix(action, "kms:Put") || strings.HasPrefix(action, "kms:CreateGrant") ||
						service == "dynamodb" && strings.Contains(verb, "Table") || service == "s3" && strings.HasPrefix(verb, "PutBucket")
					if strings.Contains(action, "*") || verb == "Scan" || strings.HasPrefix(verb, "PartiQL") || manages {
						t.Errorf("%s, %s: action %s", role, s.Sid, action)
					}
				}
				for _, resource := range s.Resources {
					if !strings.Contains(resource, "*") {
						continue
					}
					if actions, ok := harmless[resource]; !ok || actions != "" && actions != strings.Join(s.Actions, " ") {
						t.Errorf("%s, %s: %v on %s", role, s.Sid, s.Actions, resource)
					}
				}
			}
		}
		if managed := synth.Text(map[string]any(result.Resources["CairnCheckpointRole03EBD896"].Properties)); strings.Contains(managed, "ManagedPolicyArns") {
			t.Error("a managed policy grants more than is written here")
		}
	}
}

const tag = "${aws:PrincipalTag/tenant}"

// The actions of each function on data, exactly.
func TestDataActions(t *testing.T) {
	readWrite := "dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem"
	objects := "s3:AbortMultipartUpload s3:GetObject s3:GetObjectTagging s3:GetObjectVersion s3:PutObject s3:PutObjectTagging"
	few := map[string]string{
		"Items": readWrite, "Indexes": "dynamodb:Query", "WrappedKeys": "dynamodb:GetItem dynamodb:PutItem",
		"Objects": objects, "ListObjects": "s3:ListBucket", "UnwrapTenantKeys": "kms:Decrypt kms:GenerateDataKey",
	}
	for role, want := range map[string]map[string]string{
		"Checkpoint": few, "Recover": few,
		"Retention": {
			"Items":            strings.Replace(readWrite, " dynamodb:ConditionCheckItem", " dynamodb:BatchWriteItem dynamodb:ConditionCheckItem dynamodb:DeleteItem", 1),
			"Indexes":          "dynamodb:Query",
			"WrappedKeys":      "dynamodb:DeleteItem dynamodb:GetItem dynamodb:PutItem dynamodb:Query",
			"Objects":          strings.Replace(objects, " s3:GetObject ", " s3:DeleteObject s3:DeleteObjectVersion s3:GetObject ", 1),
			"ListObjects":      "s3:ListBucket s3:ListBucketMultipartUploads s3:ListBucketVersions",
			"UnwrapTenantKeys": "kms:Decrypt kms:Encrypt kms:GenerateDataKey",
		},
	} {
		statements := standard().RoleStatements(role + "Role")
		for sid, actions := range want {
			if got := strings.Join(statement(t, statements, sid).Actions, " "); got != actions {
				t.Errorf("%s, %s:\n got %s\nwant %s", role, sid, got, actions)
			}
		}
		unwrap := statement(t, statements, "UnwrapTenantKeys")
		if unwrap.Conditions != "{Null={kms:EncryptionContext:tenant=false}}" || !slices.Equal(unwrap.Resources, []string{"${DataKey.Arn}"}) {
			t.Errorf("%s: unwraps %v under %s", role, unwrap.Resources, unwrap.Conditions)
		}
		if at := statement(t, statements, "StorageAtRest"); at.Conditions != "{StringEquals={kms:ViaService=[dynamodb.${AWS::Region}.${AWS::URLSuffix}, s3.${AWS::Region}.${AWS::URLSuffix}]}}" {
			t.Errorf("%s: storage key under %s", role, at.Conditions)
		}
	}
}

// Lambda polls in the function's name: stream, its key and the queue with its
// key are all needed, and easily forgotten.
func TestStreamPermissions(t *testing.T) {
	for _, role := range []string{"RecoverRole", "RetentionRole"} {
		for _, result := range []synth.Result{standard(), template(t, everything, nil)} {
			statements := result.RoleStatements(role)
			if s := statement(t, statements, "Stream"); !slices.Equal(s.Resources, []string{"${Table.StreamArn}"}) || len(s.Actions) != 3 {
				t.Errorf("%s: %+v", role, s)
			}
			if s := statement(t, statements, "DeadLetters"); !slices.Equal(s.Resources, []string{"${DeadLetters.Arn}"}) {
				t.Errorf("%s: %+v", role, s)
			}
			for _, service := range []string{"dynamodb", "sqs"} {
				if !slices.ContainsFunc(statements, func(s synth.Statement) bool {
					return slices.Contains(s.Actions, "kms:Decrypt") && slices.Contains(s.Resources, "${StorageKey.Arn}") && strings.Contains(s.Conditions, service+".${AWS::Region}")
				}) {
					t.Errorf("%s cannot use the storage key through %s", role, service)
				}
			}
		}
	}
	for _, s := range standard().RoleStatements("CheckpointRole") {
		if s.Sid == "Stream" || s.Sid == "DeadLetters" {
			t.Errorf("checkpoint, which has no mapping, may %v", s.Actions)
		}
	}
}

// With the tenant role a function reaches no tenant's data by itself, and a
// session reaches only its tenant's.
func TestTenantRole(t *testing.T) {
	result := template(t, everything, nil)
	for _, name := range []string{"Checkpoint", "Recover", "Retention"} {
		own := result.RoleStatements(name + "Role")
		for _, s := range own {
			if slices.Contains([]string{"Items", "Indexes", "WrappedKeys", "Objects", "ListObjects", "UnwrapTenantKeys", "KeyTableAtRest"}, s.Sid) {
				t.Errorf("%s reaches data without a session: %s", name, s.Sid)
			}
			if slices.Contains(s.Resources, "${Table.Arn}") && s.Sid != "NobodysItems" {
				t.Errorf("%s reaches the table without a session: %s", name, s.Sid)
			}
		}
		if name != "Checkpoint" {
			// "~" begins no tenant's keys.
			if got := statement(t, own, "NobodysItems").Conditions; got != "{ForAllValues:StringLike={dynamodb:LeadingKeys=[~*]}, Null={dynamodb:LeadingKeys=false}}" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if s := statement(t, own, "BecomeTenant"); !slices.Equal(s.Resources, []string{"${" + name + "TenantRole.Arn}"}) || !slices.Equal(s.Actions, []string{"sts:AssumeRole", "sts:TagSession"}) {
			t.Errorf("%s: %+v", name, s)
		}
		wantAt(t, get(t, result, "AWS::Lambda::Function", name), map[string]string{"Environment.Variables.CAIRN_TENANT_ROLE": "${" + name + "TenantRole.Arn}"})

		role := get(t, result, "AWS::IAM::Role", name+"TenantRole")
		wantAt(t, role, map[string]string{"MaxSessionDuration": "3600"})
		for _, trust := range synth.Statements(role.Properties["AssumeRolePolicyDocument"]) {
			if !slices.Equal(trust.Principals, []string{"AWS ${" + name + "Role.Arn}"}) ||
				trust.Conditions != "{ForAllValues:StringEquals={aws:TagKeys=[tenant]}, StringLike={aws:RequestTag/tenant=?*}}" {
				t.Errorf("%s trusts %+v", name, trust)
			}
		}
		sessions := result.RoleStatements(name + "TenantRole")
		items := "{ForAllValues:StringLike={dynamodb:LeadingKeys=[" + tag + ", " + tag + "#*]}, Null={aws:PrincipalTag/tenant=false, dynamodb:LeadingKeys=false}}"
		all := items
		if name == "Retention" { // the receipt of a purge lies outside
			all = strings.Replace(items, tag+"#*]", tag+"#*, ~purged]", 1)
		}
		for sid, want := range map[string]string{
			"Items": all, "Indexes": items, "WrappedKeys": items,
			"Objects":          "{Null={aws:PrincipalTag/tenant=false}}",
			"ListObjects":      "{Null={aws:PrincipalTag/tenant=false, s3:prefix=false}, StringLike={s3:prefix=" + tag + "/*}}",
			"UnwrapTenantKeys": "{Null={aws:PrincipalTag/tenant=false, kms:EncryptionContext:tenant=false}, StringEquals={kms:EncryptionContext:tenant=" + tag + "}}",
		} {
			if got := statement(t, sessions, sid).Conditions; got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, sid, got, want)
			}
		}
		if got := statement(t, sessions, "Objects").Resources; !slices.Equal(got, []string{"${Bucket.Arn}/" + tag + "/*"}) {
			t.Errorf("%s: objects %v", name, got)
		}
		if got := fmt.Sprint(statement(t, sessions, "Indexes").Resources); strings.Contains(got, "/due") || strings.Contains(got, "/retain") || !strings.Contains(got, "/status") {
			t.Errorf("%s: a session reads indexes %s", name, got)
		}
	}
}

func TestTargets(t *testing.T) {
	result := template(t, everything, nil)
	for sid, want := range map[string]string{
		"StartStateMachines": "[states:StartExecution] [arn:aws:states:eu-west-1:111122223333:stateMachine:case]",
		"AnswerTaskTokens":   "[states:SendTaskSuccess] [arn:aws:states:eu-west-1:111122223333:stateMachine:case]",
		"InvokeFunctions":    "[lambda:InvokeFunction] [arn:aws:lambda:eu-west-1:111122223333:function:resolver:live]",
		"PutEvents":          "[events:PutEvents] [arn:aws:events:eu-west-1:111122223333:event-bus/cases arn:aws:events:eu-west-1:111122223333:event-bus/operators]",
	} {
		s := statement(t, result.RoleStatements("RecoverRole"), sid)
		if got := fmt.Sprint(s.Actions, " ", s.Resources); got != want {
			t.Errorf("%s: got %s, want %s", sid, got, want)
		}
	}
	for _, role := range []string{"CheckpointRole", "RetentionRole"} {
		for _, s := range result.RoleStatements(role) {
			if strings.HasPrefix(s.Actions[0], "states:") || strings.HasPrefix(s.Actions[0], "lambda:") || strings.HasPrefix(s.Actions[0], "events:") {
				t.Errorf("%s may %v", role, s.Actions)
			}
		}
	}
}

// A grant is the one ARN: neither the plain name nor another qualifier.
func TestGrants(t *testing.T) {
	result := template(t, cairncdk.Props{}, func(_ awscdk.App, stack awscdk.Stack, cairn *cairncdk.Cairn) {
		role := func(id string) awsiam.Role {
			return awsiam.NewRole(stack, jsii.String(id), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil)})
		}
		cairn.AllowTrusted(role("Trusted"))
		two := role("Two")
		for _, tenant := range []string{"acme.eu_1", "globex"} {
			if err := cairn.AllowTenant(two, tenant); err != nil {
				t.Error(err)
			}
		}
		for _, tenant := range []string{"", "a#b", "a*", strings.Repeat("x", 65), "a" + strings.Repeat("_", 60)} {
			if cairn.AllowTenant(two, tenant) == nil {
				t.Errorf("tenant %q was granted something", tenant)
			}
		}
	})
	for id, want := range map[string][]string{
		"Trusted": {"${Checkpoint.Arn}", "${Recover.Arn}", "${Retention.Arn}"},
		"Two": {
			"${Checkpoint.Arn}:t-acme_2eeu_5f1", "${Checkpoint.Arn}:t-globex", "${Recover.Arn}:t-acme_2eeu_5f1", "${Recover.Arn}:t-globex",
			"${Retention.Arn}:t-acme_2eeu_5f1", "${Retention.Arn}:t-globex",
		},
	} {
		var got []string
		for _, r := range result.Resources {
			if r.Type != "AWS::IAM::Policy" || !strings.HasPrefix(synth.Text(r.Properties["PolicyName"]), id) {
				continue
			}
			for _, s := range synth.Statements(r.Properties["PolicyDocument"]) {
				if !slices.Equal(s.Actions, []string{"lambda:InvokeFunction"}) || s.Effect != "Allow" {
					t.Errorf("%s: %+v", id, s)
				}
				got = append(got, s.Resources...)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s may invoke\n got %v\nwant %v", id, got, want)
		}
	}
}

// cdk-nag finds nothing, and every finding that was suppressed says why.
func TestNag(t *testing.T) {
	for _, props := range []cairncdk.Props{{}, everything} {
		result := template(t, props, func(app awscdk.App, _ awscdk.Stack, _ *cairncdk.Cairn) {
			awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
		})
		for _, m := range result.Messages {
			t.Error(m)
		}
		suppressed := 0
		for name, r := range result.Resources {
			rules, _ := r.Metadata.At("cdk_nag", "rules_to_suppress").([]any)
			for _, rule := range rules {
				suppressed++
				if reason := synth.Text(rule.(map[string]any)["reason"]); len(reason) < 40 {
					t.Errorf("%s: suppressed for %q", name, reason)
				}
				if id := rule.(map[string]any)["id"]; id == "AwsSolutions-IAM5" && rule.(map[string]any)["applies_to"] == nil {
					t.Errorf("%s: all wildcards are suppressed at once", name)
				}
			}
		}
		t.Logf("%d suppressions", suppressed)
	}
}
