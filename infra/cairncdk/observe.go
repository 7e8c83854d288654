package cairncdk

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// alarm is a condition that a person should hear of. Each has a runbook under
// its name.
type alarm struct {
	name, description string
	metric            awscloudwatch.IMetric
	// The alarm rings when at least `of` of the last `periods` periods are at or
	// beyond threshold (below it, with below).
	threshold   float64
	below       bool
	of, periods int
	// missingIsBad: no data is itself the trouble. Else no data is fine.
	missingIsBad bool
}

// alarmList is all alarms. Thresholds are starting points for a stack of modest
// traffic; rates, not counts, where traffic matters.
func (c *Cairn) alarmList() []alarm {
	list := []alarm{
		// The rate itself is on the dashboard: an alarm on a calculated metric is one
		// that the local engine cannot deploy.
		{name: "RecoveryFailures", metric: c.sum(telemetry.RecoveryFailure), threshold: 1, of: 3, periods: 3,
			description: "Due executions could not be handed over or moved on for 15 minutes; they stay due and are tried again."},
		{name: "StateConflicts", metric: c.sum(telemetry.StateConflicts), threshold: 100, of: 3, periods: 3,
			description: "100 and more refused writes in 5 minutes: several workers believe they own the same executions."},
		{name: "CheckpointSize", metric: c.metric(telemetry.CheckpointBytes, "Maximum"), threshold: 0.8 * execution.MaxStateBytes, of: 1, periods: 1,
			description: "A state has reached 80 % of the size limit; beyond the limit its next step is refused. Move content into artifacts."},
		{name: "RepeatedRequests", metric: c.sum(telemetry.RepeatedRequests), threshold: 500, of: 3, periods: 3,
			description: "500 and more repeated requests in 5 minutes: callers time out or retry too eagerly. Nothing is done twice."},
		{name: "Parked", metric: c.sum(telemetry.Parked), threshold: 1, of: 1, periods: 1,
			description: "An execution parked: a person or new evidence must decide."},
		{name: "UncertainAge", metric: c.metric(telemetry.UncertainAge, "Maximum"), threshold: 3600, of: 1, periods: 1,
			description: "An operation has been uncertain for an hour: nobody knows yet whether it happened."},
		{name: "Contradictions", metric: c.sum(telemetry.Contradictions), threshold: 1, of: 1, periods: 1,
			description: "Two final outcomes of one operation contradict each other; the first one stands."},
		{name: "KeyErrors", metric: c.sum(telemetry.KeyErrors), threshold: 1, of: 1, periods: 1,
			description: "A key was disabled, denied or missing: the tenant's executions can neither be read nor written."},
		{name: "Throttles", metric: c.sum(telemetry.Throttles), threshold: 50, of: 3, periods: 3,
			description: "50 and more throttled calls in 5 minutes to DynamoDB, S3 or KMS."},
		{name: "DeadLetters", metric: c.DeadLetters.MetricApproximateNumberOfMessagesVisible(everyFive("Maximum")), threshold: 1, of: 1, periods: 1,
			description: "A stream record could not be handled and was given up; the queue says where it stands in the stream. Sweeps go on without it."},
		{name: "SweepsMissing", metric: c.Functions[Recover].MetricInvocations(everyFive("Sum")), threshold: 1, below: true, of: 2, periods: 2, missingIsBad: true,
			description: "The recover function has not run for 10 minutes although its schedule rings every minute: nothing is being recovered."},
	}
	for _, name := range Functions {
		list = append(list, alarm{name: title(name) + "Throttled", metric: c.Functions[name].MetricThrottles(everyFive("Sum")), threshold: 1, of: 3, periods: 3,
			description: "Lambda refuses invocations of " + name + ": its concurrency, or the account's, is used up."})
		if mapped(name) {
			list = append(list, alarm{name: title(name) + "StreamLag", metric: c.iteratorAge(c.Functions[name]), threshold: 15 * 60 * 1000, of: 2, periods: 3,
				description: "The function " + name + " handles stream records that are 15 minutes old: a batch is stuck or there is more than it can handle."})
		}
	}
	return list
}

func (c *Cairn) makeAlarms() {
	for _, a := range c.alarmList() {
		props := &awscloudwatch.AlarmProps{
			AlarmDescription:   jsii.String(a.description),
			Metric:             a.metric,
			Threshold:          jsii.Number(a.threshold),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
			DatapointsToAlarm:  jsii.Number(a.of),
			EvaluationPeriods:  jsii.Number(a.periods),
			TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		}
		if a.below {
			props.ComparisonOperator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		}
		if a.missingIsBad {
			props.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
		}
		made := awscloudwatch.NewAlarm(c.Construct, jsii.String(a.name+"Alarm"), props)
		if c.props.AlarmTopic != nil {
			made.AddAlarmAction(awscloudwatchactions.NewSnsAction(c.props.AlarmTopic))
		}
		c.Alarms = append(c.Alarms, made)
	}
}

// makeDashboard shows the four figures of the whole first, then what operators
// need when one of them is wrong.
func (c *Cairn) makeDashboard() {
	c.Dashboard = awscloudwatch.NewDashboard(c.Construct, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: days(1),
		Widgets: &[]*[]awscloudwatch.IWidget{
			{
				graph("Recovery success, % of due executions", c.recoveryRate()),
				graph("State conflicts", c.sum(telemetry.StateConflicts)),
				graph("Checkpoint size, bytes", c.metric(telemetry.CheckpointBytes, "p50"), c.metric(telemetry.CheckpointBytes, "p99"), c.metric(telemetry.CheckpointBytes, "Maximum")),
				graph("Repeated requests", c.sum(telemetry.RepeatedRequests)),
			},
			{
				graph("Recovered and failed", c.sum(telemetry.RecoverySuccess), c.sum(telemetry.RecoveryFailure)),
				graph("Parked, contradictions", c.sum(telemetry.Parked), c.sum(telemetry.Contradictions)),
				graph("Oldest uncertain operation, seconds", c.metric(telemetry.UncertainAge, "Maximum")),
				graph("Dead letters", c.DeadLetters.MetricApproximateNumberOfMessagesVisible(everyFive("Maximum"))),
			},
			{
				graph("Throttled calls, key errors", c.sum(telemetry.Throttles), c.sum(telemetry.KeyErrors)),
				graph("Invocations", c.ofEach(awslambda.Function.MetricInvocations, "Sum")...),
				graph("Duration p99, ms", c.ofEach(awslambda.Function.MetricDuration, "p99")...),
				graph("Stream lag, ms", c.iteratorAge(c.Functions[Recover]), c.iteratorAge(c.Functions[Retention])),
			},
			{
				graph("From a lapsed lease to the next claim, seconds", c.metric(telemetry.RecoveryDelay, "p50"), c.metric(telemetry.RecoveryDelay, "Maximum")),
				graph("Retention: removed, failed, held", c.sum(telemetry.RetentionRemoved), c.sum(telemetry.RetentionFailures), c.sum(telemetry.RetentionHeld)),
			},
		},
	})
}

func graph(heading string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: &heading,
		Left:  &metrics,
		Width: jsii.Number(6),
	})
}

// metric is one of ours, with the dimension under which the functions emit it.
func (c *Cairn) metric(name, statistic string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:     jsii.String(telemetry.Namespace),
		MetricName:    &name,
		DimensionsMap: &map[string]*string{telemetry.Dimension: c.Table.TableName()},
		Statistic:     &statistic,
		Period:        seconds(300),
	})
}

func (c *Cairn) sum(name string) awscloudwatch.Metric { return c.metric(name, "Sum") }

// recoveryRate is the part of due executions that recovery could move, in per
// cent; no data when none was due.
func (c *Cairn) recoveryRate() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("100 * FILL(ok, 0) / (FILL(ok, 0) + FILL(failed, 0))"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			"ok":     c.sum(telemetry.RecoverySuccess),
			"failed": c.sum(telemetry.RecoveryFailure),
		},
		Label:  jsii.String("recovered, %"),
		Period: seconds(300),
	})
}

func (c *Cairn) iteratorAge(fn awslambda.Function) awscloudwatch.Metric {
	return fn.Metric(jsii.String("IteratorAge"), everyFive("Maximum"))
}

// ofEach is a metric of every function, labelled with its name.
func (c *Cairn) ofEach(metric func(awslambda.Function, *awscloudwatch.MetricOptions) awscloudwatch.Metric, statistic string) []awscloudwatch.IMetric {
	list := make([]awscloudwatch.IMetric, len(Functions))
	for i, name := range Functions {
		options := everyFive(statistic)
		options.Label = jsii.String(fmt.Sprintf("%s (%s)", name, statistic))
		list[i] = metric(c.Functions[name], options)
	}
	return list
}

func everyFive(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &statistic, Period: seconds(300)}
}
