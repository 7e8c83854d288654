package secrets_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/secrets"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

var canary = "AKIA" + "IOSFODNN7EXAMPLE"

func newGuard(t *testing.T, s api.Settings) *secrets.Guard {
	e := memory.New(memory.Options{})
	c := &catalog.Catalog{Table: store.Metered(e.Table(memory.Main)), Elapsed: func() time.Duration { return 0 }}
	if err := c.SetSettings(t.Context(), "bank", s); err != nil {
		t.Fatal(err)
	}
	return &secrets.Guard{Catalog: c}
}

// decoded is a request as the door hands it on.
func decoded(t *testing.T, function, text string) any {
	t.Helper()
	_, req, err := api.Decode(function, []byte(strings.ReplaceAll(text, "%", canary)))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return req
}

// Every place of every verb that may hold agent data: refused with its path, and
// in mode redact stored without it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	refuse, redact, allow := newGuard(t, api.Settings{}), newGuard(t, api.Settings{Secrets: secrets.ModeRedact}), newGuard(t, api.Settings{Secrets: secrets.ModeAllow})
	for _, c := range []struct{ function, text, path string }{
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","state":{"a":["%"]}}`, "/state/a/0"},
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","input":"x % y"}`, "/input"},
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","labels":{"k":"%"}}`, "/labels/k"},
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","permissions":{"principal":"p","scopes":["%"]}}`, "/permissions/scopes/0"},
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","permissions":{"principal":"p","scopes":["s"],"ref":"%"}}`, "/permissions/ref"},
		{api.Checkpoint, `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","subjects":["%"]}`, "/subjects/0"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"state":{"%":1}}`, "/state/[redacted]"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"patch":[{"op":"add","path":"/x","value":"%"}]}`, "/patch/0/value"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"patch":[{"op":"add","path":"/api_key","value":"canary7"}]}`, "/patch/0/value"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"merge":{"api_key":"canary7"}}`, "/merge/api_key"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"operations":[{"name":"n","args":{"k":"%"}}]}`, "/operations/0/args/k"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"note":"see %"}`, "/note"},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"then":{"suspend":{"waiting_for":{"x":"%"}}}}`, "/then/suspend/waiting_for/x"},
		{api.Checkpoint, `{"action":"suspend","tenant":"bank","execution":"e","expected_version":1,"wait":{"waiting_for":"%"}}`, "/wait/waiting_for"},
		{api.Checkpoint, `{"action":"complete","tenant":"bank","execution":"e","expected_version":1,"outcome":"completed","result":"%"}`, "/result"},
		{api.Checkpoint, `{"action":"complete","tenant":"bank","execution":"e","expected_version":1,"outcome":"failed","error":{"message":"%"}}`, "/error/message"},
		{api.Recover, `{"action":"claim","tenant":"bank","execution":"e","owner":"w","lease_seconds":60,"resume":{"x":"%"}}`, "/resume/x"},
		{api.Recover, `{"action":"halt","tenant":"bank","execution":"e","reason":"because %"}`, "/reason"},
	} {
		req := decoded(t, c.function, c.text)
		_, err := refuse.Check(t.Context(), req)
		e := execution.AsError(err)
		if e.Code != execution.SecretRefused || e.Facts["path"] != c.path {
			t.Errorf("%s: %v %v, want %s", c.text, err, e.Facts, c.path)
		}
		if strings.Contains(e.Error(), canary) || strings.Contains(strings.Join(factTexts(e), " "), canary) {
			t.Errorf("%s: the refusal holds it", c.text)
		}
		paths, err := redact.Check(t.Context(), req)
		if err != nil || len(paths) != 1 || paths[0] != c.path {
			t.Errorf("%s: redacted %v, %v", c.text, paths, err)
		}
		b, err := api.EncodeRequest(req)
		if err != nil || strings.Contains(string(b), canary) || strings.Contains(string(b), "canary7") || !strings.Contains(string(b), secrets.Mask) {
			t.Errorf("redacted to %s, %v", b, err)
		}
		req = decoded(t, c.function, c.text)
		if paths, err := allow.Check(t.Context(), req); err != nil || len(paths) != 0 {
			t.Errorf("%s: allowed, %v, %v", c.text, paths, err)
		}
	}
}

func factTexts(e *execution.Error) (out []string) {
	for _, v := range e.Facts {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Evidence is redacted, never refused: no outcome is lost.
func TestEvidence(t *testing.T) {
	t.Parallel()
	refuse, allow := newGuard(t, api.Settings{}), newGuard(t, api.Settings{Secrets: secrets.ModeAllow})
	for _, c := range []struct{ function, text string }{
		{api.Checkpoint, `{"action":"record_outcome","tenant":"bank","execution":"e","operation":"o","outcome":"succeeded","result":{"k":"%"},"reason":"r %","provider_ref":"p-%"}`},
		{api.Checkpoint, `{"action":"signal","tenant":"bank","execution":"e","name":"n","key":"k","body":{"k":"%"}}`},
		{api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"outcomes":[{"operation":"o","outcome":"failed","reason":"%","result":"%"}]}`},
		{api.Recover, `{"action":"reconcile","tenant":"bank","execution":"e","evidence":[{"operation":"o","finding":"found","result":["%"],"reason":"%"}]}`},
	} {
		req := decoded(t, c.function, c.text)
		paths, err := refuse.Check(t.Context(), req)
		b, encErr := api.EncodeRequest(req)
		if err != nil || encErr != nil || len(paths) == 0 || strings.Contains(string(b), canary) {
			t.Errorf("%s: %v %v %v", b, paths, err, encErr)
		}
		req = decoded(t, c.function, c.text)
		if paths, err := allow.Check(t.Context(), req); err != nil || len(paths) > 0 {
			t.Errorf("allow: %v, %v", paths, err)
		}
	}
	v := jsonx.NewString("x " + canary)
	if got, err := refuse.Evidence(t.Context(), "bank", v, "/result"); err != nil || string(got.Bytes()) != `"x [redacted]"` {
		t.Errorf("%s, %v", got.Bytes(), err)
	}
	if got, err := allow.Evidence(t.Context(), "bank", v, "/result"); err != nil || got != v {
		t.Errorf("%s, %v", got.Bytes(), err)
	}
	// A step with a secret elsewhere is still refused.
	_, err := refuse.Check(t.Context(), decoded(t, api.Checkpoint, `{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"outcomes":[{"operation":"o","outcome":"failed","reason":"%"}],"note":"see %"}`))
	if execution.CodeOf(err) != execution.SecretRefused || execution.AsError(err).Facts["path"] != "/note" {
		t.Errorf("%v", err)
	}
}

// What names something new cannot be redacted: it is refused in both modes. What
// names something that is there passes.
func TestNamesAreRefused(t *testing.T) {
	t.Parallel()
	refuse, redact, allow := newGuard(t, api.Settings{}), newGuard(t, api.Settings{Secrets: secrets.ModeRedact}), newGuard(t, api.Settings{Secrets: secrets.ModeAllow})
	for _, c := range []struct{ text, path string }{
		{`{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"operations":[{"name":"n","args":{},"key":"k1"},{"name":"n","args":{},"key":"%"}]}`, "/operations/1/key"},
		{`{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"artifacts":[{"digest":"` + strings.Repeat("0", 64) + `","name":"a-%"}]}`, "/artifacts/0/name"},
		{`{"action":"put_artifact","tenant":"bank","execution":"e","name":"%.txt","media_type":"a/b","body":"AAAA"}`, "/name"},
	} {
		for _, g := range []*secrets.Guard{refuse, redact} {
			_, err := g.Check(t.Context(), decoded(t, api.Checkpoint, c.text))
			if e := execution.AsError(err); e.Code != execution.SecretRefused || e.Facts["path"] != c.path {
				t.Errorf("%s: %v", c.text, err)
			}
		}
		if _, err := allow.Check(t.Context(), decoded(t, api.Checkpoint, c.text)); err != nil {
			t.Errorf("allowed: %v", err)
		}
	}
	for _, text := range []string{
		`{"action":"get_artifact","tenant":"bank","execution":"e","name":"%"}`,
		`{"action":"apply","tenant":"bank","execution":"e","expected_version":1,"absorb":[{"name":"n","key":"%"}]}`,
		`{"action":"signal","tenant":"bank","execution":"e","name":"n","key":"%"}`,
	} {
		if _, err := refuse.Check(t.Context(), decoded(t, api.Checkpoint, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Handles that are credentials by design pass: they are kept as a hash, sealed,
// or not at all.
func TestHandlesPass(t *testing.T) {
	t.Parallel()
	g := newGuard(t, api.Settings{})
	for _, c := range []struct{ function, text string }{
		{api.Checkpoint, `{"action":"suspend","tenant":"bank","execution":"e","expected_version":1,"wait":{"wake":{"task_token":"%"}}}`},
		{api.Checkpoint, `{"action":"start_operation","tenant":"bank","execution":"e","operation":"o","attempt":1,"fence":1,"nonce":"%"}`},
		{api.Checkpoint, `{"action":"put_artifact","tenant":"bank","execution":"e","name":"n","media_type":"a/b","body":"AAAA"}`},
		{api.Recover, `{"action":"claim","tenant":"bank","execution":"e","owner":"w","lease_seconds":60,"nonce":"%"}`},
	} {
		if _, err := g.Check(t.Context(), decoded(t, c.function, c.text)); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// A request without data costs nothing, the others one read a minute, which no
// request is charged for.
func TestGuardCost(t *testing.T) {
	t.Parallel()
	e := memory.New(memory.Options{})
	elapsed := time.Duration(0)
	g := &secrets.Guard{Catalog: &catalog.Catalog{Table: store.Metered(e.Table(memory.Main)), Elapsed: func() time.Duration { return elapsed }}}
	calls := func(text string) int {
		e.Mark()
		meter := &store.Meter{}
		if _, err := g.Check(store.WithMeter(context.Background(), meter), decoded(t, api.Recover, text)); err != nil {
			t.Fatal(err)
		}
		if c := meter.Cost(); c != (store.Cost{}) {
			t.Errorf("charged %+v", c)
		}
		return len(e.Log())
	}
	if n := calls(`{"action":"renew","tenant":"bank","execution":"e","owner":"w","fence":1,"lease_seconds":60}`); n != 0 {
		t.Errorf("renew: %d calls", n)
	}
	with := `{"action":"claim","tenant":"bank","execution":"e","owner":"w","lease_seconds":60,"resume":{}}`
	for i, want := range []int{1, 0, 1} {
		if n := calls(with); n != want {
			t.Errorf("claim %d: %d calls, want %d", i, n, want)
		}
		if i == 1 {
			elapsed = time.Minute
		}
	}
}

func TestSettingsTakeEffect(t *testing.T) {
	t.Parallel()
	g := newGuard(t, api.Settings{})
	text := `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","state":{"iban":"DE0","note":"%"}}`
	for _, c := range []struct {
		s     api.Settings
		paths string
	}{{api.Settings{Secrets: secrets.ModeRedact, SecretFields: []string{"iban"}}, "/state/iban /state/note"}, {api.Settings{Secrets: secrets.ModeRedact, Allowed: []string{"/state"}}, ""},
		{api.Settings{Secrets: secrets.ModeRedact}, "/state/note"}} {
		if err := g.Catalog.SetSettings(t.Context(), "bank", c.s); err != nil {
			t.Fatal(err)
		}
		paths, err := g.Check(t.Context(), decoded(t, api.Checkpoint, text))
		if err != nil || strings.Join(paths, " ") != c.paths {
			t.Errorf("%+v: %v, %v", c.s, paths, err)
		}
	}
	// A label that the tenant excepted, and one that it did not.
	labels := `{"action":"create","tenant":"bank","execution":"e","workflow":"wf","labels":{"ticket":"%","other":"%"}}`
	if err := g.Catalog.SetSettings(t.Context(), "bank", api.Settings{Secrets: secrets.ModeRedact, Allowed: []string{"/labels/ticket"}}); err != nil {
		t.Fatal(err)
	}
	req := decoded(t, api.Checkpoint, labels)
	paths, err := g.Check(t.Context(), req)
	if got := req.(*api.CreateRequest).Labels; err != nil || strings.Join(paths, " ") != "/labels/other" || got["ticket"] != canary || got["other"] == canary {
		t.Errorf("labels: %v, %v, %v", paths, err, got)
	}
}
