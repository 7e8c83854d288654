package process

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/wiring"
)

// A process starts with a whole configuration or not at all, and says which
// variable is wrong.
func TestBuild(t *testing.T) {
	for name, v := range map[string]string{config.VarTable: "main", config.VarKeyTable: "keys", config.VarBucket: "bucket", config.VarDataKey: "alias/data", "AWS_REGION": "eu-central-1"} {
		t.Setenv(name, v)
	}
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct {
		epoch string
		want  int64 // -1: refused
	}{{"", 0}, {"0", 0}, {"3", 3}, {"-1", -1}, {"x", -1}, {"1.5", -1}, {"4294967296", -1}} {
		t.Setenv(VarEpoch, tt.epoch)
		s, err := build(log, nil)
		switch {
		case tt.want < 0 && (err == nil || !strings.Contains(err.Error(), VarEpoch)):
			t.Errorf("%q: %v", tt.epoch, err)
		case tt.want >= 0 && (err != nil || s.Journal.Epoch != tt.want):
			t.Errorf("%q: %v", tt.epoch, err)
		}
	}
	t.Setenv(VarEpoch, "")
	opened := false
	if _, err := build(log, []func(*wiring.Outside, aws.Config) error{func(*wiring.Outside, aws.Config) error { opened = true; return nil }}); err != nil || !opened {
		t.Errorf("opened %v: %v", opened, err)
	}
	no := errors.New("no door")
	if _, err := build(log, []func(*wiring.Outside, aws.Config) error{func(*wiring.Outside, aws.Config) error { return no }}); !errors.Is(err, no) {
		t.Error(err)
	}
	t.Setenv(config.VarTable, "")
	if _, err := build(log, nil); err == nil || !strings.Contains(err.Error(), config.VarTable) {
		t.Errorf("without a table: %v", err)
	}
}
