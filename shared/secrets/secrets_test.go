package secrets_test

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/secrets"
)

// hex and alnum are bodies of made-up credentials.
const (
	hex32   = "0123456789abcdef0123456789abcdef"
	alnum36 = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
)

// credentials are made up, each of a known form.
var credentials = map[string]string{
	"aws access key":      "AKIA" + "IOSFODNN7EXAMPLE",
	"aws temporary key":   "ASIA" + "Y34FZKBOKMUTVV7A",
	"aws secret in text":  "aws_secret_access_key = " + "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEY1",
	"google key":          "AIza" + alnum36[:35],
	"google token":        "ya29." + alnum36,
	"azure storage":       "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + alnum36 + alnum36 + "==;EndpointSuffix=core.windows.net",
	"azure sas":           "https://x.blob.core.windows.net/c?sv=2020&sig=" + alnum36 + "aB3d%3D",
	"github":              "ghp_" + alnum36,
	"github fine":         "github_pat_" + alnum36,
	"gitlab":              "glpat-" + alnum36[:20],
	"slack":               "xoxb-" + "123456789012-abcdefGHIJ",
	"slack hook":          "https://hooks.slack.com/services/T0000000/B0000000/" + alnum36[:24],
	"stripe":              "sk_live_" + alnum36[:24],
	"model key":           "sk-" + alnum36,
	"model key, project":  "sk-proj-" + alnum36,
	"model key, other":    "sk-ant-api03-" + alnum36 + "-x_y",
	"hugging face":        "hf_" + alnum36[:34],
	"npm":                 "npm_" + alnum36,
	"sendgrid":            "SG." + alnum36[:22] + "." + alnum36 + "abcdefg",
	"twilio":              "SK" + hex32,
	"databricks":          "dapi" + hex32,
	"jwt":                 "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"bearer":              "Authorization: Bearer " + alnum36,
	"bearer, small":       "bearer abc123def456ghi789",
	"basic":               "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:s3cret")),
	"pem":                 "-----BEGIN RSA PRIVATE KEY-----\nMIIE" + alnum36 + "\n-----END RSA PRIVATE KEY-----",
	"openssh":             "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl" + alnum36,
	"pgp":                 "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx",
	"postgres":            "postgres://app:" + "s3cr3t!@db.internal:5432/x",
	"redis, no user":      "redis://:" + "s3cr3t@cache:6379",
	"ado":                 "Server=tcp:db,1433;Database=x;User ID=app;Password=" + "Sup3r!pass;Encrypt=yes",
	"ado, password first": "Password=" + "Sup3r!pass;Server=db",
}

func TestForms(t *testing.T) {
	t.Parallel()
	rules := secrets.NewRules(nil, nil)
	for name, c := range credentials {
		for _, around := range []string{"%", "see % there", `{"headers":["%"]}`, "x\n%\ny"} {
			text := strings.ReplaceAll(around, "%", c)
			if name == "pgp" || name == "openssh" {
				text = c // to the end of the text
			}
			v := jsonx.NewObject(jsonx.Member{Key: jsonx.Key("note"), Value: jsonx.NewArray(jsonx.NewInt(1), jsonx.NewString(text))})
			f, ok := rules.Scan(v, "/state")
			if !ok || f.Path != "/state/note/1" || strings.Contains(f.Kind, c) {
				t.Errorf("%s in %q: %v %+v", name, around, ok, f)
				continue
			}
			out, found := rules.Redact(v, "/state")
			if len(found) == 0 || strings.Contains(string(out.Bytes()), string(jsonx.NewString(c).Raw()[1:len(jsonx.NewString(c).Raw())-1])) || !strings.Contains(string(out.Bytes()), secrets.Mask) {
				t.Errorf("%s in %q: redacted to %s", name, around, out.Bytes())
			}
			if f, ok := rules.Scan(out, ""); ok {
				t.Errorf("%s in %q: %+v is left in %s", name, around, f, out.Bytes())
			}
		}
	}
	both := credentials["github"] + " and " + credentials["aws access key"] + "."
	if got, ok := secrets.RedactText(both); !ok || got != secrets.Mask+" and "+secrets.Mask+"." {
		t.Errorf("two in one text: %q", got)
	}
}

// What only looks like one.
func TestNoAlarm(t *testing.T) {
	t.Parallel()
	rules := secrets.NewRules(nil, nil)
	for _, text := range []string{
		"", "the password is required", "Bearer of good news, and bearer authentication", "risk-adjusted-return-on-capital-2024-something", "sk-learn-extension-package-for-2024",
		"task-1234567890", "https://example.com/a:b@c", "https://user@example.com/", "postgres://app:***@db/x", "postgres://app:${DB_PASSWORD}@db/x", "postgres://app:<password>@db/x",
		"mailto:alice@example.com", "s3://bucket/key:1@2", "arn:aws:iam::123456789012:role/x", "AKIA is a prefix", "BASIC aGVsbG8=", "basic economy", "basic understanding",
		"eyJ.eyJ.x", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----", "sha256:" + hex32 + hex32, "f47ac10b-58cc-4372-a567-0e02b2c3d479",
		"password=", "Password: ********", "pwd=/home/x; host=1", "hf_dataset", "npm_config_cache", "SKU0123456789", "xoxo-and-hugs-to-all", "sig=abc", "12:30@noon", "data:image/png;base64,iVBORw0KGgo" + alnum36,
		"http://[::1]:8080/x@y", "git@github.com:org/repo.git", "user:pass@host without a scheme",
	} {
		v := jsonx.NewString(text)
		if f, ok := rules.Scan(v, ""); ok {
			t.Errorf("%q: %+v", text, f)
		}
	}
	for _, doc := range []string{`{"password":""}`, `{"password":null}`, `{"password":{"type":"string","minLength":8}}`, `{"api_key":"<your key>"}`, `{"api_key":"YOUR_API_KEY"}`, `{"password":"********"}`,
		`{"api_key":"${API_KEY}"}`, `{"password":"arn:aws:secretsmanager:eu-central-1:1:secret:x"}`, `{"password":{"secret_ref":"prod/db/password"}}`, `{"client_secret":{"secret_ref":"op://v/i/f"}}`,
		`{"password":"is too short"}`, `{"passwords":"abcdefgh1"}`, `{"token":"abcdefgh1"}`, `{"secret_ref":"vault:prod/db#password"}`, `{"access_token":true}`, `{"password":12345678}`, `{"password":"[redacted]"}`} {
		if f, ok := rules.Scan(jsonx.MustParse(doc), ""); ok {
			t.Errorf("%s: %+v", doc, f)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"api_key":"sk-canary-7f3a"}`:                                "/state/api_key",
		`{"ctx":{"apiKey":"canary-7f3a"}}`:                            "/state/ctx/apiKey",
		`{"a/b":{"x~y":{"X-API-Key":"canary7"}}}`:                     "/state/a~1b/x~0y/X-API-Key",
		`[{"op":"add","path":"/db/password","value":"hunter22"}]`:     "/state/0/value",
		`[{"op":"add","path":"/db","value":{"password":"hunter22"}}]`: "/state/0/value/password",
		`{"password":["hunter22"]}`:                                   "",
		`{"\u0061pi_key":"canary-7f3a"}`:                              "/state/api_key",
		`{"AKIA` + `IOSFODNN7EXAMPLE":1}`:                             "/state/[redacted]",
		`{"secret_ref":"AKIA` + `IOSFODNN7EXAMPLE"}`:                  "/state/secret_ref",
		`{"a":"AKIA` + `IOSFODNN7EXAMPL\u0045"}`:                      "/state/a",
		`{"a":"\ud83d AKIA` + `IOSFODNN7EXAMPLE "}`:                   "/state/a",
	} {
		f, ok := secrets.NewRules(nil, nil).Scan(jsonx.MustParse(doc), "/state")
		if ok != (want != "") || f.Path != want {
			t.Errorf("%s: %v %+v, want %s", doc, ok, f, want)
		}
	}
}

func TestTenantRules(t *testing.T) {
	t.Parallel()
	rules := secrets.NewRules([]string{"IBAN", "card_number"}, []string{"/state/known", "/state/list/0"})
	doc := jsonx.MustParse(`{"iban":"DE0","Card-Number":4111,"card_number":{"a":["x",1,"",null,true],"b":{"secret_ref":"x/y"}},"known":{"iban":"DE0","api_key":"canary7"},"knownx":"y","list":[{"iban":"1"},{"iban":"2"}],"n":1.0}`)
	out, found := rules.Redact(doc, "/state")
	var paths []string
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "/state/iban /state/Card-Number /state/card_number/a/0 /state/card_number/a/1 /state/list/1/iban" {
		t.Errorf("found %s", got)
	}
	want := `{"iban":"[redacted]","Card-Number":"[redacted]","card_number":{"a":["[redacted]","[redacted]","",null,true],"b":{"secret_ref":"x/y"}},"known":{"iban":"DE0","api_key":"canary7"},"knownx":"y","list":[{"iban":"1"},{"iban":"[redacted]"}],"n":1.0}`
	if string(out.Bytes()) != want {
		t.Errorf("%s", out.Bytes())
	}
	if again, found := rules.Redact(out, "/state"); again != out || len(found) != 0 {
		t.Errorf("redacted twice: %s", again.Bytes())
	}
	clean := jsonx.MustParse(`{"n":1.0,"k":[]}`)
	if out, _ := rules.Redact(clean, ""); out != clean {
		t.Error("a clean value was copied")
	}
	two := jsonx.MustParse(`{"AKIA` + `IOSFODNN7EXAMPLE":1,"AKIA` + `IOSFODNN7EXAMPLF":2}`)
	if out, _ := rules.Redact(two, ""); string(out.Bytes()) != `{"[redacted]":1,"[redacted] 2":2}` {
		t.Errorf("keys: %s", out.Bytes())
	}
}

// data is the repository of recorded runs and corpora beside the checkout.
func data(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			if at := filepath.Join(dir, "..", "shared", "data"); exists(at) {
				return at
			}
		}
	}
	t.Skip("SKIP 1: no corpora beside the checkout")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Real agent runs and JSON corpora hold no credentials: no alarm, none at all.
func TestNoAlarmOnCorpora(t *testing.T) {
	t.Parallel()
	at := data(t)
	rules := secrets.NewRules(nil, nil)
	check := func(name string, b []byte) int {
		v, err := jsonx.Parse(b)
		if err != nil {
			return 0
		}
		if f, ok := rules.Scan(v, ""); ok {
			t.Errorf("%s: %+v", name, f)
		}
		// Strings that hold JSON themselves, as tool calls do.
		n := 1
		var inside func(v *jsonx.Value)
		inside = func(v *jsonx.Value) {
			if s, ok := v.Text(); ok && len(s) > 1 && (s[0] == '{' || s[0] == '[') {
				if w, err := jsonx.ParseString(s); err == nil {
					n++
					if f, ok := rules.Scan(w, ""); ok {
						t.Errorf("%s, inside: %+v", name, f)
					}
				}
			}
			for _, e := range v.Elems() {
				inside(e)
			}
			for _, m := range v.Members() {
				inside(m.Value)
			}
		}
		inside(v)
		return n
	}
	f, err := os.Open(filepath.Join(at, "agent-runs", "airline-runs.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	n := check("agent-runs", runs)
	if n < 1000 {
		t.Fatalf("only %d documents in the recorded runs", n)
	}
	for _, pattern := range []string{"jsontestsuite/*/*.json", "json-patch-tests/*.json"} {
		files, err := filepath.Glob(filepath.Join(at, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			n += check(filepath.Base(name), b)
		}
	}
	t.Logf("%d documents, no alarm", n)
}

// FuzzRedact: what was redacted once is clean, and nothing panics.
func FuzzRedact(f *testing.F) {
	for _, c := range credentials {
		f.Add(string(jsonx.NewString(c).Bytes()))
		f.Add(`{"api_key":` + string(jsonx.NewString(c).Bytes()) + `}`)
	}
	rules := secrets.NewRules([]string{"iban"}, []string{"/known"})
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := jsonx.ParseString(doc)
		if err != nil {
			return
		}
		_, alarm := rules.Scan(v, "")
		out, found := rules.Redact(v, "")
		if alarm != (len(found) > 0) || alarm == (out == v) {
			t.Fatalf("scan %v, %d found, changed %v", alarm, len(found), out != v)
		}
		if f, ok := rules.Scan(out, ""); ok {
			t.Fatalf("%+v is left in %s", f, out.Bytes())
		}
		if _, err := jsonx.Parse(out.Bytes()); err != nil {
			t.Fatalf("%s: %v", out.Bytes(), err)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	text := strings.Repeat("An ordinary sentence of an agent's state, with numbers 12345 and words. ", 10)
	elems := make([]*jsonx.Value, 5<<20/len(text))
	for i := range elems {
		elems[i] = jsonx.NewObject(jsonx.Member{Key: jsonx.Key("content"), Value: jsonx.NewString(text)}, jsonx.Member{Key: jsonx.Key("role"), Value: jsonx.NewString("user")})
	}
	v := jsonx.NewArray(elems...)
	rules := secrets.NewRules(nil, nil)
	b.SetBytes(int64(v.Size()))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := rules.Scan(v, "/state"); ok {
			b.Fatal("alarm")
		}
	}
}
