package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
)

// prefix marks the context values that are settings of this app.
const prefix = "cairn:"

// settings is what the context says, before anything is made of it.
type settings struct {
	stackName                                                       string
	vpcID, storageKeyARN, dataKeyARN, alarmTopicARN, resolverKeyARN string
	examples                                                        bool // "fused" too
	fused                                                           bool
	cairncdk.Props
}

// known says how each setting is read. A list is separated by commas. What is
// left out has the default of cairncdk.Props.
var known = map[string]func(s *settings, value string) error{
	"stackName":      func(s *settings, v string) error { s.stackName = v; return nil },
	"dist":           func(s *settings, v string) error { s.Dist = v; return nil },
	"functionPrefix": func(s *settings, v string) error { s.FunctionPrefix = &v; return nil },
	"architecture": func(s *settings, v string) error {
		return oneOf(v, map[string]func(){
			"arm64": func() { s.Architecture = awslambda.Architecture_ARM_64() },
			"amd64": func() { s.Architecture = awslambda.Architecture_X86_64() },
		})
	},
	"removalPolicy": func(s *settings, v string) error {
		return oneOf(v, map[string]func(){
			"retain":  func() { s.RemovalPolicy = awscdk.RemovalPolicy_RETAIN },
			"destroy": func() { s.RemovalPolicy = awscdk.RemovalPolicy_DESTROY },
		})
	},
	"logRetention": func(s *settings, v string) error {
		return oneOf(v, map[string]func(){
			"week":    func() { s.LogRetention = awslogs.RetentionDays_ONE_WEEK },
			"month":   func() { s.LogRetention = awslogs.RetentionDays_ONE_MONTH },
			"quarter": func() { s.LogRetention = awslogs.RetentionDays_THREE_MONTHS },
			"year":    func() { s.LogRetention = awslogs.RetentionDays_ONE_YEAR },
			"forever": func() { s.LogRetention = awslogs.RetentionDays_INFINITE },
		})
	},
	"epoch":            func(s *settings, v string) error { return number(v, &s.Epoch) },
	"memoryMB":         func(s *settings, v string) error { return number(v, &s.MemoryMB) },
	"recoveryDays":     func(s *settings, v string) error { return number(v, &s.RecoveryDays) },
	"keyRecoveryDays":  func(s *settings, v string) error { return number(v, &s.KeyRecoveryDays) },
	"noncurrentDays":   func(s *settings, v string) error { return number(v, &s.NoncurrentDays) },
	"archiveClass":     func(s *settings, v string) error { s.ArchiveClass = v; return nil },
	"archiveAfterDays": func(s *settings, v string) error { return number(v, &s.ArchiveAfterDays) },
	"indexAttributes":  func(s *settings, v string) error { s.IndexAttributes = list(v); return nil },
	"tenantRole": func(s *settings, v string) error {
		on, err := strconv.ParseBool(v)
		s.TenantRole = on
		return err
	},
	// The deployed examples, for a look: "on", or "fused" to let demonstrations
	// kill their processes.
	"examples": func(s *settings, v string) error {
		return oneOf(v, map[string]func(){"on": func() { s.examples = true }, "fused": func() { s.examples, s.fused = true, true }, "off": func() {}})
	},
	"reservedConcurrency": func(s *settings, v string) error {
		s.ReservedConcurrency = map[string]int{}
		for _, pair := range list(v) {
			name, count, _ := strings.Cut(pair, "=")
			n, err := strconv.Atoi(count)
			if err != nil {
				return fmt.Errorf("%q is not <function>=<number>", pair)
			}
			s.ReservedConcurrency[name] = n
		}
		return nil
	},
	"vpcId":           func(s *settings, v string) error { s.vpcID = v; return nil },
	"storageKeyArn":   func(s *settings, v string) error { s.storageKeyARN = v; return nil },
	"dataKeyArn":      func(s *settings, v string) error { s.dataKeyARN = v; return nil },
	"alarmTopicArn":   func(s *settings, v string) error { s.alarmTopicARN = v; return nil },
	"tenantKeys":      func(s *settings, v string) error { s.TenantKeys = list(v); return nil },
	"stateMachines":   func(s *settings, v string) error { s.Targets.StateMachines = list(v); return nil },
	"targetFunctions": func(s *settings, v string) error { s.Targets.Functions = list(v); return nil },
	"operatorBus":     func(s *settings, v string) error { s.Targets.OperatorBus = v; return nil },
	"resolverHosts":   func(s *settings, v string) error { s.Targets.ResolverHosts = list(v); return nil },
	"resolverKeyArn":  func(s *settings, v string) error { s.resolverKeyARN = v; return nil },
	"eventBuses":      func(s *settings, v string) error { s.Targets.EventBuses = list(v); return nil },
}

// parseSettings reads the settings among the context's values. The error joins
// one for each that is unknown or wrong, by name.
func parseSettings(context map[string]any) (settings, error) {
	s := settings{stackName: "Cairn"}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(context)) {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours {
			continue
		}
		set, ok := known[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s is no setting; there are %s", key, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
			continue
		}
		if err := set(&s, fmt.Sprint(context[key])); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return s, errors.Join(errs...)
}

// props looks up, below stack, what the settings name by id or ARN.
func (s settings) props(stack awscdk.Stack) *cairncdk.Props {
	p := s.Props
	if s.vpcID != "" {
		p.Vpc = awsec2.Vpc_FromLookup(stack, jsii.String("Vpc"), &awsec2.VpcLookupOptions{VpcId: &s.vpcID})
	}
	if s.storageKeyARN != "" {
		p.StorageKey = awskms.Key_FromKeyArn(stack, jsii.String("StorageKey"), &s.storageKeyARN)
	}
	if s.dataKeyARN != "" {
		p.DataKey = awskms.Key_FromKeyArn(stack, jsii.String("DataKey"), &s.dataKeyARN)
	}
	if s.alarmTopicARN != "" {
		p.AlarmTopic = awssns.Topic_FromTopicArn(stack, jsii.String("AlarmTopic"), &s.alarmTopicARN)
	}
	if s.resolverKeyARN != "" { // of a secret
		p.Targets.ResolverKey = awscdk.SecretValue_SecretsManager(&s.resolverKeyARN, nil)
	}
	return &p
}

func oneOf(value string, choices map[string]func()) error {
	choose, ok := choices[value]
	if !ok {
		return fmt.Errorf("%q is none of %s", value, strings.Join(slices.Sorted(maps.Keys(choices)), ", "))
	}
	choose()
	return nil
}

func number(value string, into *int) error {
	n, err := strconv.Atoi(value)
	*into = n
	return err
}

// list takes a comma-separated list apart; "" is an empty one, not none.
func list(value string) []string {
	if value == "" {
		return []string{}
	}
	return strings.Split(value, ",")
}
