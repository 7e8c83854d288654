package cairncdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

func TestFunctions(t *testing.T) {
	if got := standard().OfType("AWS::Lambda::Function"); !slices.Equal(got, []string{"Checkpoint", "Recover", "Retention"}) {
		t.Fatalf("functions: %v (one more would be a custom resource of the CDK's own)", got)
	}
	for name, timeout := range map[string]string{"Checkpoint": "30", "Recover": "120", "Retention": "300"} {
		wantAt(t, get(t, standard(), "AWS::Lambda::Function", name), map[string]string{
			"Runtime":       "provided.al2023",
			"Architectures": "[arm64]",
			"Handler":       "bootstrap",
			"MemorySize":    "512",
			"Timeout":       timeout,
			"TracingConfig": "{Mode=Active}",
			"LoggingConfig": "{LogGroup=${" + name + "Logs}}",
			"Role":          "${" + name + "Role.Arn}",
			"FunctionName":  "",
			"Environment.Variables": "{CAIRN_BUCKET=${Bucket}, CAIRN_DATA_KEY=${DataKey.Arn}, CAIRN_EPOCH=0, " +
				"CAIRN_KEY_TABLE=${KeyTable}, CAIRN_TABLE=${Table}}",
			"ReservedConcurrentExecutions": "",
			"VpcConfig":                    "",
		})
		wantAt(t, get(t, standard(), "AWS::Logs::LogGroup", name+"Logs"), map[string]string{"RetentionInDays": "30"})
	}
}

func TestFunctionProps(t *testing.T) {
	result := template(t, cairncdk.Props{
		Architecture: awslambda.Architecture_X86_64(), FunctionPrefix: jsii.String("x-"), MemoryMB: 1024, Epoch: 3,
		ReservedConcurrency: map[string]int{cairncdk.Recover: 7},
	}, nil)
	wantAt(t, get(t, result, "AWS::Lambda::Function", "Recover"), map[string]string{
		"Architectures": "[x86_64]", "FunctionName": "x-recover", "MemorySize": "1024",
		"ReservedConcurrentExecutions": "7", "Environment.Variables.CAIRN_EPOCH": "3",
	})
	wantAt(t, get(t, result, "AWS::Lambda::Function", "Retention"), map[string]string{"ReservedConcurrentExecutions": "", "FunctionName": "x-retention"})
}

// What recovery reaches is configured at recover alone, and the resolvers' key is
// a reference, never the secret.
func TestRecoverEnvironment(t *testing.T) {
	secret := "arn:aws:secretsmanager:eu-west-1:111122223333:secret:resolvers-a1b2c3"
	result := template(t, cairncdk.Props{Targets: cairncdk.Targets{
		OperatorBus:   "arn:aws:events:eu-west-1:111122223333:event-bus/operators",
		ResolverHosts: []string{"bank.example", "pay.example"}, ResolverKey: awscdk.SecretValue_SecretsManager(&secret, nil),
	}}, nil)
	for name, want := range map[string][3]string{
		"Recover":    {"arn:aws:events:eu-west-1:111122223333:event-bus/operators", "bank.example,pay.example", "{{resolve:secretsmanager:" + secret + ":SecretString:::}}"},
		"Checkpoint": {}, "Retention": {},
	} {
		wantAt(t, get(t, result, "AWS::Lambda::Function", name), map[string]string{
			"Environment.Variables.CAIRN_EVENT_BUS": want[0], "Environment.Variables.CAIRN_RESOLVER_HOSTS": want[1], "Environment.Variables.CAIRN_RESOLVER_KEY": want[2],
		})
	}
}

func TestStreamMappings(t *testing.T) {
	if got, want := len(standard().OfType("AWS::Lambda::EventSourceMapping")), len(store.Mappings); got != want {
		t.Fatalf("%d mappings, want %d", got, want)
	}
	for _, m := range store.Mappings {
		name := strings.ToUpper(m.Function[:1]) + m.Function[1:]
		mapping := get(t, standard(), "AWS::Lambda::EventSourceMapping", name+"Stream")
		wantAt(t, mapping, map[string]string{
			"FunctionName":               "${" + name + "}",
			"EventSourceArn":             "${Table.StreamArn}",
			"StartingPosition":           "TRIM_HORIZON",
			"BatchSize":                  "100",
			"MaximumRetryAttempts":       "5",
			"MaximumRecordAgeInSeconds":  "21600",
			"ParallelizationFactor":      "2",
			"BisectBatchOnFunctionError": "true",
			"FunctionResponseTypes":      "[ReportBatchItemFailures]",
			"DestinationConfig":          "{OnFailure={Destination=${DeadLetters.Arn}}}",
		})
		var patterns []string
		filters, _ := mapping.Properties.At("FilterCriteria", "Filters").([]any)
		for _, f := range filters {
			patterns = append(patterns, f.(map[string]any)["Pattern"].(string))
		}
		if len(patterns) == 0 || !slices.Equal(patterns, m.Filters) {
			t.Errorf("%s: filters %v, want %v", name, patterns, m.Filters)
		}
	}
}

func TestSchedules(t *testing.T) {
	for name, rate := range map[string]string{"Recover": "rate(1 minute)", "Retention": "rate(5 minutes)"} {
		rule := get(t, standard(), "AWS::Events::Rule", name+"Schedule")
		wantAt(t, rule, map[string]string{"ScheduleExpression": rate, "State": "ENABLED"})
		if target := synth.Text(rule.Properties["Targets"]); !strings.Contains(target, `Arn=${`+name+`.Arn}`) || !strings.Contains(target, `Input={"action":"sweep","limit":1000}`) {
			t.Errorf("%s: target %s", name, target)
		}
	}
	for name, r := range standard().Resources {
		if r.Type == "AWS::Lambda::Permission" && synth.Text(r.Properties["SourceArn"]) == "" {
			t.Errorf("%s lets any rule of any account invoke the function", name)
		}
	}
}

func TestAlarms(t *testing.T) {
	result := template(t, cairncdk.Props{}, nil)
	dashboard := synth.Text(get(t, result, "AWS::CloudWatch::Dashboard", "Dashboard").Properties["DashboardBody"])
	metrics := []string{
		telemetry.RecoverySuccess, telemetry.RecoveryFailure, telemetry.StateConflicts, telemetry.CheckpointBytes, telemetry.RepeatedRequests,
		telemetry.Parked, telemetry.UncertainAge, telemetry.Throttles, telemetry.KeyErrors, telemetry.Contradictions,
	}
	shown := append(slices.Clone(metrics), telemetry.RecoveryDelay, telemetry.RetentionRemoved, telemetry.RetentionFailures, telemetry.RetentionHeld)
	alarmed := map[string]bool{}
	for _, r := range result.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		if synth.Text(r.Properties["AlarmDescription"]) == "" {
			t.Errorf("an alarm without description: %v", r.Properties)
		}
		text := synth.Text(map[string]any(r.Properties))
		for _, m := range metrics {
			if strings.Contains(text, "MetricName="+m+",") && strings.Contains(text, "Dimensions=[{Name=Table, Value=${Table}}]") && strings.Contains(text, "Namespace=Cairn") {
				alarmed[m] = true
			}
		}
	}
	for _, m := range metrics {
		// A success rings nothing; its rate is on the dashboard.
		if !alarmed[m] && m != telemetry.RecoverySuccess {
			t.Errorf("no alarm on %s", m)
		}
	}
	for _, m := range shown {
		if !strings.Contains(dashboard, `["Cairn","`+m+`","Table","${Table}"`) {
			t.Errorf("%s is not on the dashboard", m)
		}
	}
	wantAt(t, get(t, result, "AWS::CloudWatch::Alarm", "DeadLettersAlarm"), map[string]string{
		"MetricName": "ApproximateNumberOfMessagesVisible", "Threshold": "1", "TreatMissingData": "notBreaching",
	})
	// Silence of the sweeps is the alarm.
	wantAt(t, get(t, result, "AWS::CloudWatch::Alarm", "SweepsMissingAlarm"), map[string]string{
		"ComparisonOperator": "LessThanThreshold", "TreatMissingData": "breaching",
	})
}

// What already exists is used, not made again.
func TestExisting(t *testing.T) {
	result := template(t, cairncdk.Props{}, func(_ awscdk.App, stack awscdk.Stack, _ *cairncdk.Cairn) {
		network := awsec2.NewVpc(stack, jsii.String("Net"), nil)
		cairncdk.NewCairn(stack, "Second", &cairncdk.Props{
			Dist: placeholders, Vpc: network,
			StorageKey: awskms.Key_FromKeyArn(stack, jsii.String("SK"), jsii.String("arn:aws:kms:eu-west-1:111122223333:key/0f3c1c52-8a0e-4b6f-9f0e-1d2c3b4a5968")),
			DataKey:    awskms.Key_FromKeyArn(stack, jsii.String("DK"), jsii.String("arn:aws:kms:eu-west-1:111122223333:key/7d1f6a3e-52b4-4c57-8f0a-6b5c4d3e2f10")),
			AlarmTopic: awssns.Topic_FromTopicArn(stack, jsii.String("Topic"), jsii.String("arn:aws:sns:eu-west-1:111122223333:alarms")),
		})
	})
	if keys := result.OfType("AWS::KMS::Key"); len(keys) != 4 {
		t.Errorf("keys %v: the second needs only its key table's", keys)
	}
	alarms, inNetwork := 0, 0
	for name, r := range result.Resources {
		if !strings.HasPrefix(name, "Second") {
			continue
		}
		switch r.Type {
		case "AWS::CloudWatch::Alarm":
			alarms++
			if got := synth.Text(r.Properties["AlarmActions"]); got != "[arn:aws:sns:eu-west-1:111122223333:alarms]" {
				t.Errorf("%s: actions %s", name, got)
			}
		case "AWS::Lambda::Function":
			inNetwork++
			if r.Properties.At("VpcConfig", "SubnetIds") == nil {
				t.Errorf("%s is in no network", name)
			}
			if got := synth.Text(r.Properties.At("Environment", "Variables", "CAIRN_DATA_KEY")); got != "arn:aws:kms:eu-west-1:111122223333:key/7d1f6a3e-52b4-4c57-8f0a-6b5c4d3e2f10" {
				t.Errorf("%s: data key %s", name, got)
			}
		case "AWS::IAM::Role":
			text := synth.Text(map[string]any(r.Properties))
			if strings.Contains(text, "Sid=Network") != strings.Contains(text, "Sid=NoNetworkFromCode") {
				t.Errorf("%s may manage networks from its code", name)
			}
		}
	}
	if alarms == 0 || inNetwork != 3 {
		t.Errorf("%d alarms, %d functions in the network", alarms, inNetwork)
	}
}

// Wrong props are all reported, and nothing is made of them.
func TestWrongProps(t *testing.T) {
	result := template(t, cairncdk.Props{
		MemoryMB: 64, RecoveryDays: 36, KeyRecoveryDays: -1, NoncurrentDays: -1, Epoch: -1,
		ReservedConcurrency: map[string]int{"purge": 0},
		ArchiveClass:        "DEEP_ARCHIVE", ArchiveAfterDays: 1,
		SecurityGroups:  []awsec2.ISecurityGroup{},
		TenantKeys:      []string{"arn:aws:kms:*:*:key/*"},
		Targets:         cairncdk.Targets{Functions: []string{"my-function"}, ResolverHosts: []string{"bank.example"}},
		IndexAttributes: []string{"owner"},
	}, nil)
	for _, want := range []string{
		"MemoryMB is 64", "RecoveryDays is 36", "KeyRecoveryDays is -1", "NoncurrentDays is -1", "Epoch is -1", `ReservedConcurrency names "purge"`,
		"ReservedConcurrency of purge is 0", `IndexAttributes lacks "status"`, `ArchiveClass "DEEP_ARCHIVE"`, "ArchiveAfterDays is 1", "need a Vpc", "belong together", `"arn:aws:kms:*:*:key/*"`, `"my-function"`,
	} {
		if !slices.ContainsFunc(result.Messages, func(m string) bool { return strings.HasPrefix(m, "ERROR") && strings.Contains(m, want) }) {
			t.Errorf("no error says %q: %v", want, result.Messages)
		}
	}
	for name, r := range result.Resources {
		t.Errorf("made %s (%s)", name, r.Type)
	}
}
