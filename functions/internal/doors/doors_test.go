package doors

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/wiring"
)

// A door is configured whole or not at all.
func TestOpen(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, tt := range []struct {
		hosts, key, bus string
		web, ok         bool
	}{
		{"", "", "", false, true}, {"", "", "bus", false, true}, {"bank.example", key, "", true, true},
		{"bank.example", "", "", false, false}, {"", key, "", false, false}, {"bank.example", "*", "", false, false},
		{"bank.example", base64.StdEncoding.EncodeToString(make([]byte, 15)), "", false, false},
	} {
		t.Setenv(VarResolverHosts, tt.hosts)
		t.Setenv(VarResolverKey, tt.key)
		t.Setenv(VarEventBus, tt.bus)
		var out wiring.Outside
		err := Open(&out, aws.Config{Region: "eu-central-1"})
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "CAIRN_RESOLVER_") {
			t.Errorf("%+v: %v", tt, err)
		}
		if err == nil && ((out.Resolvers["https"] != nil) != tt.web || (out.Emit != nil) != (tt.bus != "") || out.Resolvers["lambda"] == nil || out.Target == nil || out.Migrator == nil) {
			t.Errorf("%+v: %+v", tt, out)
		}
	}
}
