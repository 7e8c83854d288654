package alias_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke/alias"
)

// service is as much of Lambda as aliases need.
type service struct {
	mu      sync.Mutex
	aliases map[string]map[string]map[string]string // function, alias, statement: principal
	refuse  string                                  // a call that is not allowed: method and last part of the path
	calls   []string
}

func (s *service) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := strings.Split(strings.TrimPrefix(r.URL.Path, "/2015-03-31/functions/"), "/")
	call := r.Method + " " + p[1]
	s.calls = append(s.calls, call)
	fail := func(status int, code string) {
		rw.Header().Set("X-Amzn-Errortype", code)
		rw.WriteHeader(status)
		fmt.Fprint(rw, `{}`)
	}
	var in map[string]string
	_ = json.NewDecoder(r.Body).Decode(&in)
	of, q := s.aliases[p[0]], r.URL.Query().Get("Qualifier")
	switch {
	case call == s.refuse:
		fail(http.StatusForbidden, "AccessDeniedException")
	case call == "POST aliases" && of[in["Name"]] != nil, call == "POST policy" && of[q][in["StatementId"]] != "":
		fail(http.StatusConflict, "ResourceConflictException")
	case call == "POST aliases":
		of[in["Name"]] = map[string]string{}
		fmt.Fprint(rw, `{}`)
	case call == "GET aliases":
		var list []map[string]string
		for name := range of {
			list = append(list, map[string]string{"Name": name})
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"Aliases": list})
	case call == "DELETE aliases" && of[p[2]] == nil, call == "DELETE policy" && of[q][p[2]] == "", call == "GET policy" && len(of[q]) == 0:
		fail(http.StatusNotFound, "ResourceNotFoundException")
	case call == "DELETE aliases":
		delete(of, p[2])
	case call == "POST policy":
		if in["Action"] != "lambda:InvokeFunction" {
			fail(http.StatusBadRequest, "InvalidParameterValueException")
			return
		}
		of[q][in["StatementId"]] = in["Principal"]
		fmt.Fprint(rw, `{}`)
	case call == "DELETE policy":
		delete(of[q], p[2])
	case call == "GET policy":
		var st []map[string]any
		for sid, who := range of[q] {
			principal := any(map[string]string{"AWS": who})
			if who == "service" {
				principal = map[string]string{"Service": "events.amazonaws.com"}
			}
			st = append(st, map[string]any{"Sid": sid, "Principal": principal})
		}
		policy, _ := json.Marshal(map[string]any{"Statement": st})
		_ = json.NewEncoder(rw).Encode(map[string]string{"Policy": string(policy)})
	default:
		fail(http.StatusBadRequest, "InvalidParameterValueException")
	}
}

func fake(t *testing.T) (*service, *alias.Doors) {
	s := &service{aliases: map[string]map[string]map[string]string{"one": {}, "two": {}}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, alias.New(aws.Config{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, []string{"one", "two"})
}

// A tenant's doors: made, listed, narrowed and closed; each step again is no
// error.
func TestDoorsOfATenant(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, d := fake(t)
	s.aliases["one"]["live"] = map[string]string{} // somebody else's
	for range 2 {
		if err := d.Add(ctx, "acme", []string{"arn:a", "arn:b"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Add(ctx, "other", []string{"arn:c"}); err != nil {
		t.Fatal(err)
	}
	name := execution.TenantAlias("acme")
	list := func() map[execution.TenantID]alias.Door {
		t.Helper()
		all, err := d.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[execution.TenantID]alias.Door{}
		for _, x := range all {
			out[x.Tenant] = x
		}
		return out
	}
	if l := list(); len(l) != 2 || l["acme"].Alias != name || !slices.Equal(l["acme"].Functions, []string{"one", "two"}) || !slices.Equal(l["acme"].Principals, []string{"arn:a", "arn:b"}) {
		t.Errorf("%+v", l)
	}
	// Only who may invoke every function has the door.
	for sid, who := range s.aliases["two"][name] {
		if who == "arn:b" {
			delete(s.aliases["two"][name], sid)
		}
	}
	s.aliases["one"][name]["theirs"], s.aliases["two"][name]["theirs"] = "service", "service"
	if l := list(); len(l["acme"].Principals) != 2 || !slices.Contains(l["acme"].Principals, "arn:a") || slices.Contains(l["acme"].Principals, "arn:b") || !strings.Contains(strings.Join(l["acme"].Principals, " "), "events.amazonaws.com") {
		t.Errorf("%+v", l["acme"])
	}
	delete(s.aliases["two"], execution.TenantAlias("other"))
	if l := list(); !slices.Equal(l["other"].Functions, []string{"one"}) {
		t.Errorf("%+v", l["other"])
	}
	for range 2 {
		if err := d.Revoke(ctx, "acme", []string{"arn:a"}); err != nil {
			t.Fatal(err)
		}
	}
	if l := list(); slices.Contains(l["acme"].Principals, "arn:a") || len(l["acme"].Functions) != 2 {
		t.Errorf("%+v", l["acme"])
	}
	s.calls = nil
	for range 2 {
		if err := d.Remove(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
	}
	if rights, door := slices.Index(s.calls, "DELETE policy"), slices.Index(s.calls, "DELETE aliases"); rights < 0 || rights > door {
		t.Errorf("the alias goes before its rights: %v", s.calls)
	}
	if l := list(); len(l) != 1 || s.aliases["one"]["live"] == nil {
		t.Errorf("%+v", l)
	}
}

// What Lambda does not allow is an error, and a tenant that is none reaches it
// never.
func TestDoorsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for refuse, call := range map[string]func(d *alias.Doors) error{
		"POST aliases":   func(d *alias.Doors) error { return d.Add(ctx, "acme", nil) },
		"POST policy":    func(d *alias.Doors) error { return d.Add(ctx, "acme", []string{"arn:a"}) },
		"DELETE policy":  func(d *alias.Doors) error { return d.Revoke(ctx, "acme", []string{"arn:a"}) },
		"GET policy":     func(d *alias.Doors) error { return d.Remove(ctx, "acme") },
		"DELETE aliases": func(d *alias.Doors) error { return d.Remove(ctx, "acme") },
		"GET aliases":    func(d *alias.Doors) error { _, err := d.List(ctx); return err },
	} {
		s, d := fake(t)
		if err := d.Add(ctx, "acme", []string{"arn:a"}); err != nil {
			t.Fatal(err)
		}
		s.refuse = refuse
		if err := call(d); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%s: %v", refuse, err)
		}
	}
	s, d := fake(t)
	long := execution.TenantID(strings.Repeat(".", execution.MaxTenant-1))
	for _, tenant := range []execution.TenantID{"", "a#b", "a" + long} {
		for what, err := range map[string]error{"add": d.Add(ctx, tenant, nil), "revoke": d.Revoke(ctx, tenant, nil), "remove": d.Remove(ctx, tenant)} {
			if execution.CodeOf(err) != execution.InvalidRequest {
				t.Errorf("%s %q: %v", what, tenant, err)
			}
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("%v", s.calls)
	}
}
