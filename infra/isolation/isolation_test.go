package isolation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
	"github.com/cairnstate/cairn/infra/cairncdk"
	"github.com/cairnstate/cairn/infra/synth"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// template has the tenant role on and a caller that may speak for acme.
func template(t *testing.T) synth.Result {
	t.Helper()
	context, err := synth.Context("../../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	if err := synth.Placeholders(dist, cairncdk.Functions...); err != nil {
		t.Fatal(err)
	}
	result, err := synth.Stack(context, t.TempDir(), false, func(_ awscdk.App, stack awscdk.Stack) {
		cairn := cairncdk.NewCairn(stack, "Cairn", &cairncdk.Props{Dist: dist, TenantRole: true})
		for id, allow := range map[string]func(awsiam.IGrantable) error{
			"Acme":    func(g awsiam.IGrantable) error { return cairn.AllowTenant(g, "acme") },
			"Trusted": func(g awsiam.IGrantable) error { cairn.AllowTrusted(g); return nil },
		} {
			caller := awsiam.NewUser(stack, jsii.String(id), nil)
			if err := allow(caller); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A tenant's session comes with exactly the tag tenant, for the function's role
// only, and reaches its own prefix of the bucket only.
func TestTenantSession(t *testing.T) {
	e := newEngine(t)
	result := template(t)
	bucket := "isolation-" + e.account
	if status, body := e.call(e.root, "s3", "PUT", "/"+bucket, ""); status != 200 {
		t.Fatalf("bucket: %d %s", status, body)
	}
	assume := map[string]any{"Effect": "Allow", "Action": []string{"sts:AssumeRole", "sts:TagSession"}, "Resource": "*"}
	function, stranger := e.user("function", assume), e.user("stranger", assume)
	for _, tenant := range []string{"acme", "globex"} {
		e.tenantRole(result, "Retention", bucket, "arn:aws:iam::"+e.account+":user/function", tenant)
	}

	for _, row := range []struct {
		what string
		who  credentials
		tags map[string]string
		want bool
	}{
		{"the function for a tenant", function, map[string]string{"tenant": "acme"}, true},
		{"without a tag", function, nil, false},
		{"with an empty tenant", function, map[string]string{"tenant": ""}, false},
		{"with another tag", function, map[string]string{"team": "acme"}, false},
		{"with one tag more", function, map[string]string{"tenant": "acme", "admin": "yes"}, false},
		{"somebody else", stranger, map[string]string{"tenant": "acme"}, false},
	} {
		if status, body := e.assume(row.who, "acme", row.tags); (status == 200) != row.want {
			t.Errorf("%s: %d %s", row.what, status, body)
		}
	}

	acme, globex := e.session(function, "acme"), e.session(function, "globex")
	for _, key := range []string{"acme/e/1", "globex/e/1", "acme-eu/e/1", "acme.x/e/1", "other"} {
		if status, _ := e.call(e.root, "s3", "PUT", "/"+bucket+"/"+key, "x"); status != 200 {
			t.Fatalf("%s: %d", key, status)
		}
	}
	for _, row := range []struct {
		who    string
		method string
		path   string
		want   bool
	}{
		{"acme", "PUT", "/acme/e/2", true},
		{"acme", "GET", "/acme/e/1", true},
		{"acme", "GET", "/globex/e/1", false},
		{"acme", "PUT", "/globex/e/2", false},
		{"acme", "DELETE", "/globex/e/1", false},
		{"acme", "GET", "/acme-eu/e/1", false},
		{"acme", "GET", "/acme.x/e/1", false},
		{"acme", "GET", "/other", false},
		{"acme", "GET", "?list-type=2&prefix=acme%2F", true},
		{"acme", "GET", "?list-type=2&prefix=globex%2F", false},
		{"acme", "GET", "?list-type=2&prefix=acme", false}, // would show acme-eu too
		{"acme", "GET", "?list-type=2", false},
		{"globex", "GET", "/globex/e/1", true},
		{"globex", "GET", "/acme/e/1", false},
		{"acme", "DELETE", "/acme/e/1", true},
	} {
		body := ""
		if row.method == "PUT" {
			body = "y"
		}
		who := map[string]credentials{"acme": acme, "globex": globex}[row.who]
		status, answer := e.call(who, "s3", row.method, "/"+bucket+row.path, body)
		allowed := status < 300
		if allowed != row.want || !allowed && status != 403 {
			t.Errorf("%s: %s %s: %d, want allowed %v: %s", row.who, row.method, row.path, status, row.want, answer)
		}
	}
}

// Only retention's session may delete an object.
func TestTenantSessionsDiffer(t *testing.T) {
	e := newEngine(t)
	result := template(t)
	bucket := "isolation-" + e.account
	e.call(e.root, "s3", "PUT", "/"+bucket, "")
	e.call(e.root, "s3", "PUT", "/"+bucket+"/acme/e/1", "x")
	function := e.user("function", map[string]any{"Effect": "Allow", "Action": []string{"sts:AssumeRole", "sts:TagSession"}, "Resource": "*"})
	e.tenantRole(result, "Checkpoint", bucket, "arn:aws:iam::"+e.account+":user/function", "acme")
	acme := e.session(function, "acme")
	if status, body := e.call(acme, "s3", "GET", "/"+bucket+"/acme/e/1", ""); status != 200 {
		t.Errorf("read: %d %s", status, body)
	}
	if status, body := e.call(acme, "s3", "DELETE", "/"+bucket+"/acme/e/1", ""); status != 403 {
		t.Errorf("checkpoint deleted an object: %d %s", status, body)
	}
}

// A caller of one tenant may use that tenant's aliases and nothing else; who may
// use the plain names may not use an alias for it.
func TestAliasGrants(t *testing.T) {
	e := newEngine(t)
	result := template(t)
	values := map[string]string{}
	for _, name := range []string{"Checkpoint", "Recover", "Retention"} {
		values[name+".Arn"] = "arn:aws:lambda:us-east-1:" + e.account + ":function:" + strings.ToLower(name)
	}
	for user, allowed := range map[string]map[string]bool{
		"Acme": {
			"checkpoint:t-acme": true, "retention:t-acme": true, "recover:t-acme": true,
			"checkpoint": false, "checkpoint:t-globex": false, "checkpoint:t-acme-eu": false, "checkpoint:$LATEST": false,
		},
		"Trusted": {"checkpoint": true, "recover": true, "checkpoint:t-acme": false},
	} {
		var statements []map[string]any
		for _, r := range result.Resources {
			if r.Type != "AWS::IAM::Policy" || !strings.HasPrefix(synth.Text(r.Properties["PolicyName"]), user) {
				continue
			}
			for _, s := range r.Properties.At("PolicyDocument", "Statement").([]any) {
				statements = append(statements, concrete(s, values).(map[string]any))
			}
		}
		who := e.user(user, statements...)
		for name, want := range allowed {
			// No function is there: who may invoke it is told so, who may not is refused.
			// (The engine looks at a qualifier only in this spelling of Invoke.)
			status, body := e.call(who, "lambda", "POST", "/2015-03-31/functions/"+escape(name)+"/invocations", "{}")
			if want != (status == 404) || !want != (status == 403) {
				t.Errorf("%s invokes %s: %d, want allowed %v: %s", user, name, status, want, body)
			}
		}
	}
}

// tenantRole makes the function's tenant role in the engine as the template has
// it, trusting the user instead of the function's role. The engine puts no value
// in place of ${aws:PrincipalTag/tenant}, so each tenant has a role where that is
// done already; everything else about the session's tag it does evaluate.
func (e *engine) tenantRole(result synth.Result, function, bucket, user, tenant string) {
	e.t.Helper()
	role, ok := result.Get("AWS::IAM::Role", function+"TenantRole")
	if !ok {
		e.t.Fatal("no tenant role")
	}
	values := map[string]string{function + "Role.Arn": user, "Bucket.Arn": "arn:aws:s3:::" + bucket, "AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com"}
	document := func(value any) string {
		text, err := json.Marshal(concrete(value, values))
		if err != nil {
			e.t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), "${aws:PrincipalTag/tenant}", tenant)
	}
	name := "tenant-" + tenant
	e.query(e.root, "iam", url.Values{"Action": {"CreateRole"}, "RoleName": {name}, "AssumeRolePolicyDocument": {document(role.Properties["AssumeRolePolicyDocument"])}})
	for _, p := range role.Properties["Policies"].([]any) {
		e.query(e.root, "iam", url.Values{"Action": {"PutRolePolicy"}, "RoleName": {name}, "PolicyName": {"p"}, "PolicyDocument": {document(p.(map[string]any)["PolicyDocument"])}})
	}
}

func (e *engine) assume(who credentials, tenant string, tags map[string]string) (int, string) {
	e.t.Helper()
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {"arn:aws:iam::" + e.account + ":role/tenant-" + tenant}, "RoleSessionName": {"s"}}
	i := 0
	for key, value := range tags {
		i++
		member := fmt.Sprintf("Tags.member.%d", i)
		form.Set(member+".Key", key)
		form.Set(member+".Value", value)
	}
	return e.tryQuery(who, "sts", form)
}

func (e *engine) session(who credentials, tenant string) credentials {
	e.t.Helper()
	status, body := e.assume(who, tenant, map[string]string{"tenant": tenant})
	if status != 200 {
		e.t.Fatalf("session of %s: %d %s", tenant, status, body)
	}
	return credentials{element(e.t, body, "AccessKeyId"), element(e.t, body, "SecretAccessKey"), element(e.t, body, "SessionToken")}
}
