package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/telemetry"
)

func TestMeterWritesEmbeddedMetrics(t *testing.T) {
	var out bytes.Buffer
	m := telemetry.NewMeter(&out, "main", func() time.Time { return time.UnixMilli(1700000000123) })
	m.Count(telemetry.CheckpointBytes, 2048)
	m.Done(context.Background(), "apply", execution.Errorf(execution.KeyUnavailable, "x"))
	m.Done(context.Background(), "apply", nil)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2: %q", len(lines), lines)
	}
	var got struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
		Table           string
		CheckpointBytes float64
	}
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	d := got.AWS.CloudWatchMetrics
	if got.AWS.Timestamp != 1700000000123 || len(d) != 1 || d[0].Namespace != "Cairn" || len(d[0].Dimensions) != 1 || d[0].Dimensions[0][0] != "Table" || d[0].Metrics[0] != (struct{ Name, Unit string }{"CheckpointBytes", "Bytes"}) || got.Table != "main" || got.CheckpointBytes != 2048 {
		t.Errorf("line %s", lines[0])
	}
	if !strings.Contains(lines[1], `"KeyErrors":1`) {
		t.Errorf("line %s", lines[1])
	}
	(*telemetry.Meter)(nil).Count("x", 1)
}
