package api

import (
	"crypto/sha256"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

func digest(t *testing.T, function, body string) execution.ContentDigest {
	t.Helper()
	return CommonOf(decoded(t, function, body)).Digest
}

func TestDigest(t *testing.T) {
	base := `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"},"request_id":"R"}`
	same := map[string]string{
		"keys in another order, white space": `{ "state":{ "msg":"foo", "b":{"y":[1,2],"x":1}, "a":1 },"request_id":"R", "expected_version":1 ,"execution":"e","tenant":"t","action":"apply"}`,
		"request_id":                         `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"},"request_id":"S"}`,
		"no request_id":                      `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"expected_version, first_version":    `{"action":"apply","tenant":"t","execution":"e","expected_version":9,"first_version":1,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"fence, actor, max_inline_bytes":     `{` + apply + `,"fence":8,"actor":{"kind":"tool","id":"x"},"max_inline_bytes":9,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"spelling of a control field":        `{` + `"\u0061ction":"\u0061pply","tenant":"t","execution":"\u0065","expected_version":1` + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
	}
	want := digest(t, Checkpoint, base)
	for name, body := range same {
		if digest(t, Checkpoint, body) != want {
			t.Errorf("%s counted as content", name)
		}
	}
	for name, body := range map[string]string{
		"1.0 for 1":         `{` + apply + `,"state":{"a":1.0,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"array order":       `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[2,1]},"msg":"foo"}}`,
		"an escape":         `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"f\u006fo"}}`,
		"merge for state":   `{` + apply + `,"merge":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"a note":            `{` + apply + `,"note":"n","state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"another execution": `{"action":"apply","tenant":"t","execution":"f","expected_version":1,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"another action":    `{"action":"complete","outcome":"failed","tenant":"t","execution":"f","expected_version":1,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
		"a member more":     `{` + apply + `,"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo","z":null}}`,
		"an ending":         `{` + apply + `,"then":{"continue":{}},"state":{"a":1,"b":{"x":1,"y":[1,2]},"msg":"foo"}}`,
	} {
		if digest(t, Checkpoint, body) == want {
			t.Errorf("%s did not count as content", name)
		}
	}
}

func TestDigestLeavesOutWake(t *testing.T) {
	suspend := `{"action":"suspend","tenant":"t","execution":"e","expected_version":1,"wait":{"signals":["s"]`
	if digest(t, Checkpoint, suspend+`}}`) != digest(t, Checkpoint, suspend+`,"wake":{"task_token":"x"}}}`) {
		t.Error("wait.wake counted as content")
	}
	then := `{` + apply + `,"then":{"suspend":{"signals":["s"]`
	if digest(t, Checkpoint, then+`}}}`) != digest(t, Checkpoint, then+`,"wake":{"task_token":"x"}}}}`) {
		t.Error("then.suspend.wake counted as content")
	}
	if digest(t, Checkpoint, then+`}}}`) == digest(t, Checkpoint, `{`+apply+`,"then":{"suspend":{"signals":["r"]}}}`) {
		t.Error("the wait did not count as content")
	}
}

// The same words inside agent data are content.
func TestDigestKeepsAgentDataOfTheSameName(t *testing.T) {
	for _, name := range []string{"request_id", "expected_version", "fence", "actor", "wake", "max_inline_bytes"} {
		a := digest(t, Checkpoint, `{`+apply+`,"state":{"`+name+`":1}}`)
		b := digest(t, Checkpoint, `{`+apply+`,"state":{"`+name+`":2}}`)
		if a == b {
			t.Errorf("state.%s did not count as content", name)
		}
	}
}

// What the digest is made of is fixed: stored digests must be found again.
func TestDigestForm(t *testing.T) {
	got := digest(t, Checkpoint, `{`+apply+`,"request_id":"r","state":{"b":1.0,"a":"<"}}`)
	sum := sha256.Sum256([]byte(`{"action":"apply","execution":"e","state":{"a":"<","b":1.0},"tenant":"t"}`))
	if got != execution.ContentDigest(sum[:16]) {
		t.Errorf("digest %x, want %x", got, sum[:16])
	}
	sum = sha256.Sum256([]byte("cairn request 1\x00r"))
	if h := HashRequestID("r"); h != execution.RequestHash(sum[:16]) {
		t.Errorf("hash %x", h)
	}
	if HashRequestID("") != (execution.RequestHash{}) || HashNonce("") != (execution.RequestHash{}) || HashNonce("r") == HashRequestID("r") {
		t.Error("hash of nothing, or of a nonce")
	}
}

// A request built in Go has the identity of the same one from the wire.
func TestIdentify(t *testing.T) {
	until := Time(1767323045678)
	req := &ApplyRequest{
		Common: Common{Tenant: "t", RequestID: "r", Actor: &Actor{Kind: "human", ID: "x"}},
		Changes: Changes{Execution: "e", ExpectedVersion: 4, Fence: 3, Merge: jsonx.MustParse(`{"k":1.0,"a":"<&>\u2028\ud800"}`),
			Operations: []OperationDeclaration{{Name: "pay", Args: jsonx.MustParse(`null`), Key: "k"}},
			Artifacts:  []ArtifactRef{{Digest: "0000000000000000000000000000000000000000000000000000000000000000"}},
			Spend:      map[string]Decimal{"usd": "0.10"}, Note: "<note> \u2028 é"},
		Then: &Then{Suspend: &Wait{Until: &until, Wake: &Wake{TaskToken: "tok"}}},
	}
	Identify(req)
	text, err := EncodeRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	wire := decoded(t, Checkpoint, string(text)).(*ApplyRequest)
	if wire.Digest != req.Digest || wire.Hash != req.Hash || req.Hash != HashRequestID("r") {
		t.Errorf("identities differ: %s", text)
	}
	if wire.Merge.String() != req.Merge.String() || wire.Note != req.Note {
		t.Errorf("data changed on the wire: %s", text)
	}
	python := `{"action":"apply","tenant":"t","execution":"e","expected_version":7,"merge":{"a":"<&>\u2028\ud800","k":1.0},"operations":[{"key":"k","args":null,"name":"pay"}],
		"artifacts":["0000000000000000000000000000000000000000000000000000000000000000"],"spend":{"usd":0.10},"note":"<note> \u2028 \u00e9","then":{"suspend":{"until":"2026-01-02T03:04:05.678Z"}}}`
	if digest(t, Checkpoint, python) != req.Digest {
		t.Error("the same request from another writer has another digest")
	}
}

func TestActionOfPanicsOnOtherTypes(t *testing.T) {
	for _, v := range []any{nil, 5, CreateRequest{}, &CreateReply{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("ActionOf(%T) did not panic", v)
				}
			}()
			ActionOf(v)
		}()
	}
}
