package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/infra/synth"
)

// storage writes about what holds data.
func (p *page) storage() {
	p.section("Tables", "On demand, with string keys.", "AWS::DynamoDB::Table", func(r *reader) {
		r.line("- **%s**: keys %s; billing %s.", r.name, keys(r.value("KeySchema"), r.value("AttributeDefinitions")), r.text("BillingMode"))
		r.line("  Encrypted with %s (%s, on: %s). Point-in-time recovery %s, %s days back.",
			r.text("SSESpecification", "KMSMasterKeyId"), r.text("SSESpecification", "SSEType"), r.text("SSESpecification", "SSEEnabled"),
			r.text("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"), r.text("PointInTimeRecoverySpecification", "RecoveryPeriodInDays"))
		r.line("  Deletion protection %s. %s", r.text("DeletionProtectionEnabled"), r.stays())
		r.line("  Stream: %s. Time to live on: %s (on: %s).", r.text("StreamSpecification", "StreamViewType"),
			r.text("TimeToLiveSpecification", "AttributeName"), r.text("TimeToLiveSpecification", "Enabled"))
		indexes, _ := r.value("GlobalSecondaryIndexes").([]any)
		for _, element := range indexes {
			index := synth.Object(element.(map[string]any))
			r.line("  - index `%s`: keys %s; projection %s", synth.Text(index["IndexName"]),
				keys(index["KeySchema"], r.value("AttributeDefinitions")), synth.Text(index["Projection"]))
		}
	})
	p.section("Bucket", "Bodies too large for an item, artifacts, archives and views.", "AWS::S3::Bucket", func(r *reader) {
		r.line("- **%s**: encryption %s.", r.name, r.text("BucketEncryption", "ServerSideEncryptionConfiguration"))
		r.line("  Versioning %s. Public access: %s. Ownership %s. %s", r.text("VersioningConfiguration", "Status"),
			r.text("PublicAccessBlockConfiguration"), r.text("OwnershipControls", "Rules"), r.stays())
		rules, _ := r.value("LifecycleConfiguration", "Rules").([]any)
		for _, rule := range rules {
			r.line("  - lifecycle %s", plain(synth.Text(rule)))
		}
	})
	p.each("AWS::S3::BucketPolicy", func(r *reader) {
		r.line("\nPolicy of %s:", r.text("Bucket"))
		r.statements(synth.Statements(r.value("PolicyDocument")))
	})
	p.section("Keys", "Each purpose its own.", "AWS::KMS::Key", func(r *reader) {
		r.line("**%s** (%s): rotation %s, deleted at the earliest after %s days. %s", r.name, synth.Text(r.resource.Properties["Description"]),
			r.text("EnableKeyRotation"), r.text("PendingWindowInDays"), r.stays())
		r.statements(synth.Statements(r.value("KeyPolicy")))
	})
	p.section("Dead-letter queue", "Where a stream record stood that could not be handled, and why; never its content.", "AWS::SQS::Queue", func(r *reader) {
		r.line("- **%s**: encrypted with %s, keeps messages %s s. %s", r.name, r.text("KmsMasterKeyId"), r.text("MessageRetentionPeriod"), r.stays())
	})
	p.each("AWS::SQS::QueuePolicy", func(r *reader) {
		r.line("\nPolicy of %s:", r.text("Queues"))
		r.statements(synth.Statements(r.value("PolicyDocument")))
	})
}

// functions writes about what runs and what makes it run.
func (p *page) functions() {
	p.section("Functions", "", "AWS::Lambda::Function", func(r *reader) {
		r.value("Code") // differs with every build
		r.line("- **%s**: %s, %s, %s on %s, %s MB, %s s, tracing %s.", r.name, synth.Text(r.resource.Properties["Description"]),
			r.text("Runtime"), r.text("Handler"), r.text("Architectures"), r.text("MemorySize"), r.text("Timeout"), r.text("TracingConfig", "Mode"))
		r.line("  Role %s, log group %s.", r.text("Role"), r.text("LoggingConfig", "LogGroup"))
		r.line("  Environment: %s", r.text("Environment", "Variables"))
	})
	p.line("")
	p.each("AWS::Logs::LogGroup", func(r *reader) {
		r.line("- log group **%s**: kept %s days. %s", r.name, r.text("RetentionInDays"), r.stays())
	})
	p.line("")
	p.each("AWS::Lambda::EventInvokeConfig", func(r *reader) {
		r.line("- asynchronous invocations of %s (%s): at most %s retries, dropped after %s s.", r.text("FunctionName"), r.text("Qualifier"),
			r.text("MaximumRetryAttempts"), r.text("MaximumEventAgeInSeconds"))
	})
	p.section("Stream mappings", "Two readers, the most that a table's stream serves without throttling.", "AWS::Lambda::EventSourceMapping", func(r *reader) {
		r.line("- **%s**: %s to %s from %s; batches of %s within %s s, %s a shard at once.", r.name, r.text("EventSourceArn"), r.text("FunctionName"),
			r.text("StartingPosition"), r.text("BatchSize"), r.text("MaximumBatchingWindowInSeconds"), r.text("ParallelizationFactor"))
		r.line("  Answers %s; bisected on error: %s; %s retries; records older than %s s and those given up: %s.", r.text("FunctionResponseTypes"),
			r.text("BisectBatchOnFunctionError"), r.text("MaximumRetryAttempts"), r.text("MaximumRecordAgeInSeconds"), r.text("DestinationConfig", "OnFailure", "Destination"))
		filters, _ := r.value("FilterCriteria", "Filters").([]any)
		for _, f := range filters {
			r.line("  - filter `%s`", synth.Text(f.(map[string]any)["Pattern"]))
		}
	})
	p.section("Schedules", "", "AWS::Events::Rule", func(r *reader) {
		targets, _ := r.value("Targets").([]any)
		r.line("- **%s**: %s, %s.", r.name, r.text("ScheduleExpression"), r.text("State"))
		for _, element := range targets {
			target := synth.Object(element.(map[string]any))
			r.line("  - to %s: `%s`, %s retries, dropped after %s s", synth.Text(target["Arn"]), synth.Text(target["Input"]),
				synth.Text(target.At("RetryPolicy", "MaximumRetryAttempts")), synth.Text(target.At("RetryPolicy", "MaximumEventAgeInSeconds")))
		}
	})
	p.line("")
	p.each("AWS::Lambda::Permission", func(r *reader) {
		r.line("- %s may %s on %s for %s.", r.text("Principal"), r.text("Action"), r.text("FunctionName"), r.text("SourceArn"))
	})
}

// observation writes about alarms and the dashboard.
func (p *page) observation() {
	p.line("\n## Alarms\n\n| alarm | rings when | no data | meaning |\n|---|---|---|---|")
	p.each("AWS::CloudWatch::Alarm", func(r *reader) {
		metric := r.text("Statistic") + r.extended() + " of " + r.text("Namespace") + " " + r.text("MetricName") + " " + r.text("Dimensions")
		if list := r.value("Metrics"); list != nil {
			metric = r.text("Metrics")
		} else {
			metric = strings.Replace(metric, "-", "", 1)
		}
		r.line("| %s | %s %s %s, %s of %s periods of %s s | %s | %s |", strings.TrimSuffix(r.name, "Alarm"), metric, comparison(r.text("ComparisonOperator")),
			r.text("Threshold"), r.text("DatapointsToAlarm"), r.text("EvaluationPeriods"), r.text("Period"), r.text("TreatMissingData"), r.text("AlarmDescription"))
	})
	p.section("Dashboard", "", "AWS::CloudWatch::Dashboard", func(r *reader) {
		for _, widget := range widgets(synth.Text(r.value("DashboardBody"))) {
			r.line("- %s", widget)
		}
	})
}

func (r *reader) extended() string {
	if s := r.text("ExtendedStatistic"); s != "-" {
		return s
	}
	return ""
}

func comparison(operator string) string {
	switch operator {
	case "GreaterThanOrEqualToThreshold":
		return ">="
	case "LessThanThreshold":
		return "<"
	}
	return operator
}

// keys writes a key schema with the types of its attributes.
func keys(schema, definitions any) string {
	types := map[string]string{}
	list, _ := definitions.([]any)
	for _, d := range list {
		attribute := d.(map[string]any)
		types[synth.Text(attribute["AttributeName"])] = synth.Text(attribute["AttributeType"])
	}
	parts, _ := schema.([]any)
	var words []string
	for _, part := range parts {
		name := synth.Text(part.(map[string]any)["AttributeName"])
		words = append(words, fmt.Sprintf("`%s` (%s)", name, types[name]))
	}
	return strings.Join(words, ", ")
}

// widgets are the titles of a dashboard with the number of lines in each.
func widgets(body string) []string {
	var dashboard struct {
		Widgets []struct {
			Properties struct {
				Title   string
				Metrics []json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &dashboard); err != nil {
		return []string{"unreadable: " + err.Error()}
	}
	var titles []string
	for _, w := range dashboard.Widgets {
		titles = append(titles, w.Properties.Title+" ("+strconv.Itoa(len(w.Properties.Metrics))+")")
	}
	return titles
}
