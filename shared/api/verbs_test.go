package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// interfaceTable is api.md's.
var interfaceTable = map[string]string{
	Checkpoint: "create apply suspend complete get history list put_artifact get_artifact record_outcome start_operation signal get_operation fork set_workflow get_workflow set_tenant get_tenant",
	Recover:    "claim renew release reconcile resume halt unhalt migrate sweep",
	Retention:  "set_policy get_policy hold release_hold holds archive restore delete purge_tenant get_receipt receipts verify rotate_key keys sweep",
}

func TestVerbs(t *testing.T) {
	n := 0
	for function, actions := range interfaceTable {
		for _, a := range strings.Fields(actions) {
			n++
			v, ok := Lookup(function, a)
			if !ok || v.Action != a || v.Function != function {
				t.Errorf("%s %s is not registered", function, a)
				continue
			}
			if got := ActionOf(v.New()); got != a {
				t.Errorf("a request of %s is one of %s", a, got)
			}
			if _, err := EncodeReply(v.NewReply()); err != nil {
				t.Errorf("%s: %v", a, err)
			}
			if _, ok := v.NewReply().(interface{ Where() *Standing }); !ok {
				t.Errorf("the reply of %s does not say where it stands", a)
			}
		}
	}
	if n != len(Verbs) {
		t.Errorf("%d verbs registered, %d in the table", len(Verbs), n)
	}
	if _, ok := Lookup("checkpoint", "claim"); ok {
		t.Error("claim is no action of checkpoint")
	}
}

// The tables of the contract, where it lies beside the checkout.
func TestVerbsOfContract(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "design", "api.md"))
	if err != nil {
		t.Skip("SKIP 1: no contract beside the checkout")
	}
	section := ""
	row, name := regexp.MustCompile("^\\| ((?:`[a-z_]+`(?: / )?)+) \\|"), regexp.MustCompile("`([a-z_]+)`")
	n := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if interfaceTable[section] == "" {
			continue
		}
		if m := row.FindStringSubmatch(line); m != nil {
			for _, a := range name.FindAllStringSubmatch(m[1], -1) {
				if strings.Contains(" on_uncertain ask close same_key always ", " "+a[1]+" ") { // another table
					continue
				}
				n++
				if _, ok := Lookup(section, a[1]); !ok {
					t.Errorf("%s %s is in the contract and not registered", section, a[1])
				}
			}
		}
	}
	if n < len(Verbs)-2 { // set_tenant and get_tenant stand in the text
		t.Errorf("only %d of %d verbs found in the contract", n, len(Verbs))
	}
}
