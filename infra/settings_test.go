package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
)

func TestSettings(t *testing.T) {
	s, err := parseSettings(map[string]any{
		"@aws-cdk/core:explicitStackTags": true, // a flag of the CDK's, not ours
		"cairn:stackName":                 "Durable", "cairn:dist": "/tmp/d", "cairn:functionPrefix": "",
		"cairn:removalPolicy": "destroy", "cairn:logRetention": "year", "cairn:memoryMB": float64(1024), "cairn:recoveryDays": "7",
		"cairn:epoch": "4", "cairn:tenantRole": true, "cairn:reservedConcurrency": "checkpoint=5,recover=2",
		"cairn:indexAttributes": "", "cairn:stateMachines": "a,b",
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.stackName != "Durable" || s.Dist != "/tmp/d" || s.FunctionPrefix == nil || *s.FunctionPrefix != "" || s.RemovalPolicy != awscdk.RemovalPolicy_DESTROY {
		t.Errorf("got %+v", s)
	}
	if s.MemoryMB != 1024 || s.RecoveryDays != 7 || s.Epoch != 4 || !s.TenantRole || s.ReservedConcurrency[cairncdk.Recover] != 2 {
		t.Errorf("got %+v", s)
	}
	if s.IndexAttributes == nil || len(s.IndexAttributes) != 0 || !slices.Equal(s.Targets.StateMachines, []string{"a", "b"}) {
		t.Errorf("lists: %v, %v", s.IndexAttributes, s.Targets.StateMachines)
	}
}

// A setting that is misspelt or makes no sense stops the app; all are named.
func TestWrongSettings(t *testing.T) {
	_, err := parseSettings(map[string]any{
		"cairn:memoryMb": 1024, "cairn:architecture": "x86", "cairn:removalPolicy": "RETAIN", "cairn:epoch": "one",
		"cairn:tenantRole": "yes please", "cairn:reservedConcurrency": "checkpoint", "cairn:noncurrentDays": "30d",
	})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"cairn:memoryMb is no setting", `"x86" is none of amd64, arm64`, "cairn:removalPolicy", "cairn:epoch", "cairn:tenantRole", "cairn:reservedConcurrency", "cairn:noncurrentDays"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %q: %v", want, err)
		}
	}
}

// What cdk.json sets must be settings.
func TestCDKJSON(t *testing.T) {
	context, err := synth.Context("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := parseSettings(context); err != nil || s.FunctionPrefix == nil {
		t.Fatalf("%+v, %v", s, err)
	}
}
