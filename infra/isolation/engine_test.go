package isolation

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/infra/synth"
)

// credentials are a caller's.
type credentials struct{ key, secret, token string }

// engine is the local engine with an account of this test's own: a 12-digit key
// is the root of the account with that number.
type engine struct {
	t        *testing.T
	endpoint string
	account  string
	root     credentials
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	endpoint := os.Getenv("CAIRN_AUTH_ENDPOINT")
	if endpoint == "" {
		t.Skip("SKIP: no CAIRN_AUTH_ENDPOINT (make isolation-test)")
	}
	if u, err := url.Parse(endpoint); err != nil || u.Hostname() != "127.0.0.1" {
		t.Fatalf("CAIRN_AUTH_ENDPOINT %q is not on loopback", endpoint)
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1e11))
	if err != nil {
		t.Fatal(err)
	}
	account := fmt.Sprintf("9%011d", n)
	return &engine{t: t, endpoint: endpoint, account: account, root: credentials{key: account, secret: "test"}}
}

// call makes one signed request and gives status and body.
func (e *engine) call(who credentials, service, method, path, body string) (int, string) {
	e.t.Helper()
	r, err := http.NewRequest(method, e.endpoint+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if service == "iam" || service == "sts" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	sign(r, body, who, service, time.Now())
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}} // no proxy
	answer, err := client.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	if strings.Contains(string(text), "Signature") {
		e.t.Fatalf("%s %s: %s", method, path, text)
	}
	return answer.StatusCode, string(text)
}

// query makes a call of IAM or STS, which must succeed.
func (e *engine) query(who credentials, service string, form url.Values) string {
	e.t.Helper()
	status, body := e.tryQuery(who, service, form)
	if status != 200 {
		e.t.Fatalf("%s: %d %s", form.Get("Action"), status, body)
	}
	return body
}

func (e *engine) tryQuery(who credentials, service string, form url.Values) (int, string) {
	e.t.Helper()
	form.Set("Version", map[string]string{"iam": "2010-05-08", "sts": "2011-06-15"}[service])
	return e.call(who, service, "POST", "/", form.Encode())
}

// user makes a user who may do what the statements say.
func (e *engine) user(name string, statements ...map[string]any) credentials {
	e.t.Helper()
	e.query(e.root, "iam", url.Values{"Action": {"CreateUser"}, "UserName": {name}})
	e.query(e.root, "iam", url.Values{"Action": {"PutUserPolicy"}, "UserName": {name}, "PolicyName": {"p"}, "PolicyDocument": {policy(e.t, statements)}})
	answer := e.query(e.root, "iam", url.Values{"Action": {"CreateAccessKey"}, "UserName": {name}})
	return credentials{key: element(e.t, answer, "AccessKeyId"), secret: element(e.t, answer, "SecretAccessKey")}
}

func policy(t *testing.T, statements []map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// element is the text of an XML element of an answer.
func element(t *testing.T, answer, name string) string {
	t.Helper()
	m := regexp.MustCompile("<" + name + ">([^<]*)</" + name + ">").FindStringSubmatch(answer)
	if m == nil {
		t.Fatalf("no %s in %s", name, answer)
	}
	return m[1]
}

// concrete replaces a template's references by values, as CloudFormation does
// when it deploys; one that has no value here gets an ARN that exists nowhere.
func concrete(value any, values map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 1 && (v["Ref"] != nil || v["Fn::GetAtt"] != nil || v["Fn::Join"] != nil) {
			text := regexp.MustCompile(`\$\{[A-Za-z0-9:.]+\}`).ReplaceAllStringFunc(synth.Text(v), func(reference string) string {
				name := strings.Trim(reference, "${}")
				if known, ok := values[name]; ok {
					return known
				}
				return "arn:aws:nowhere:::" + name
			})
			return text
		}
		made := map[string]any{}
		for key, element := range v {
			made[key] = concrete(element, values)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, element := range v {
			made[i] = concrete(element, values)
		}
		return made
	}
	return value
}
