package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
)

// The limits themselves are taken, one more is refused: lengths, counts and
// numbers at their edges.
func TestLimitsAtTheirEdges(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int, f func(i int) string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = f(i)
		}
		return strings.Join(out, ",")
	}
	subjects := func(n int) string { return list(n, func(i int) string { return fmt.Sprintf(`"s%d"`, i) }) }
	digest := func(s string) string { return strings.Repeat("0", 64-len(s)) + s }
	for name, tt := range map[string]struct{ function, ok, bad, field string }{
		"note":        {Checkpoint, `{` + apply + `,"note":"` + text(1024) + `"}`, `{` + apply + `,"note":"` + text(1025) + `"}`, "note"},
		"letters":     {Checkpoint, `{` + apply + `,"note":"` + strings.Repeat("é", 1024) + `"}`, `{` + apply + `,"note":"` + strings.Repeat("é", 1025) + `"}`, "note"},
		"key":         {Checkpoint, `{` + apply + op(`"name":"n","args":{},"key":"`+text(256)+`"`) + `}`, `{` + apply + op(`"name":"n","args":{},"key":"`+text(257)+`"`) + `}`, "operations[1].key"},
		"identifier":  {Checkpoint, `{"action":"get","tenant":"t","execution":"` + text(128) + `"}`, `{"action":"get","tenant":"t","execution":"` + text(129) + `"}`, "execution"},
		"tenant":      {Checkpoint, `{"action":"get","tenant":"` + text(64) + `","execution":"e"}`, `{"action":"get","tenant":"` + text(65) + `","execution":"e"}`, "tenant"},
		"limit":       {Checkpoint, `{"action":"history","tenant":"t","execution":"e","limit":1000}`, `{"action":"history","tenant":"t","execution":"e","limit":1001}`, "limit"},
		"limit below": {Checkpoint, `{"action":"history","tenant":"t","execution":"e","limit":1}`, `{"action":"history","tenant":"t","execution":"e","limit":0}`, "limit"},
		"version":     {Checkpoint, `{"action":"get","tenant":"t","execution":"e","version":1}`, `{"action":"get","tenant":"t","execution":"e","version":0}`, "version"},
		"digest":      {Checkpoint, `{` + apply + `,"artifacts":["` + digest("af09") + `"]}`, `{` + apply + `,"artifacts":["` + digest("g") + `"]}`, "artifacts[0]"},
		"digest, /":   {Checkpoint, `{` + apply + `,"artifacts":["` + digest("9") + `"]}`, `{` + apply + `,"artifacts":["` + digest("/") + `"]}`, "artifacts[0]"},
		"digest, `":   {Checkpoint, `{` + apply + `,"artifacts":["` + digest("a") + `"]}`, `{` + apply + `,"artifacts":["` + digest("`") + `"]}`, "artifacts[0]"},
		"digest, 65":  {Checkpoint, `{` + apply + `,"artifacts":["` + digest("1") + `"]}`, `{` + apply + `,"artifacts":["0` + digest("1") + `"]}`, "artifacts[0]"},
		"subjects":    {Checkpoint, `{` + apply + `,"subjects":[` + subjects(40) + `]}`, `{` + apply + `,"subjects":[` + subjects(41) + `]}`, "subjects"},
		"outcome":     {Checkpoint, `{` + apply + `,"outcomes":[{"operation":"o"}]}`, `{` + apply + `,"outcomes":[{"operation":"o","provider_ref":"p"}]}`, "outcomes[0].outcome"},
		"reason":      {Checkpoint, `{` + apply + `,"outcomes":[{"operation":"o","outcome":"failed","reason":"r"}]}`, `{` + apply + `,"outcomes":[{"operation":"o","reason":"r"}]}`, "outcomes[0].outcome"},
		"pointer": {Checkpoint, `{"action":"set_tenant","tenant":"t","settings":{"allowed":["/` + text(1023) + `"]}}`, `{"action":"set_tenant","tenant":"t","settings":{"allowed":["/` + text(1024) + `"]}}`,
			"settings.allowed[0]"},
		"rejected": {Recover, `{` + recon + evidence(`"finding":"found","outcome":"rejected"`) + `}`, `{` + recon + evidence(`"finding":"found","outcome":"in_progress"`) + `}`, "evidence[0].outcome"},
		"verdict":  {Recover, `{` + recon + evidence(`"finding":"decided","attempt":1,"outcome":"abandoned","reason":"r"`) + `}`, `{` + recon + evidence(`"finding":"decided","attempt":1,"outcome":"in_progress","reason":"r"`) + `}`, "evidence[0].outcome"},
		"lease":    {Recover, `{"action":"renew","tenant":"t","execution":"e","owner":"w","fence":1,"lease_seconds":5}`, `{"action":"renew","tenant":"t","execution":"e","owner":"w","fence":1,"lease_seconds":4}`, "lease_seconds"},
		"first":    {Checkpoint, `{` + apply + `,"first_version":1}`, `{` + apply + `,"first_version":2}`, "first_version"},
		"receipt":  {Retention, `{` + setpol + `,"policy":{"name":"p","receipt_days":7}}`, `{` + setpol + `,"policy":{"name":"p","receipt_days":6}}`, "policy.receipt_days"},
	} {
		if _, _, err := Decode(tt.function, []byte(tt.ok)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, _, err := Decode(tt.function, []byte(tt.bad))
		if execution.CodeOf(err) != execution.InvalidRequest || execution.AsError(err).Facts["field"] != tt.field {
			t.Errorf("%s: one more: %v %v", name, err, execution.AsError(err).Facts)
		}
	}
}
