package config_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// aws is a stub of the services: it makes sessions and notes who signs what.
type awsStub struct {
	mu       sync.Mutex
	sessions []url.Values // as asked for
	signers  []string     // access keys of requests for data
	life     time.Duration
	refuse   bool
}

var signer = regexp.MustCompile(`Credential=([^/]+)/`)

func (a *awsStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Header.Get("X-Amz-Target") != "" { // DynamoDB
		a.signers = append(a.signers, signer.FindStringSubmatch(r.Header.Get("Authorization"))[1])
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte(`{}`))
		return
	}
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	a.sessions = append(a.sessions, form)
	if a.refuse {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`))
		return
	}
	fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>KEY-%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		form.Get("Tags.member.1.Value"), time.Now().Add(a.life).UTC().Format(time.RFC3339))
}

func walled(t *testing.T, a *awsStub) config.Stores {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	env := complete()
	env["AWS_ENDPOINT_URL"], env["CAIRN_TENANT_ROLE"] = server.URL, "arn:aws:iam::123456789012:role/tenant"
	env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = "OWN", "secret"
	c, err := load(env)
	if err != nil {
		t.Fatal(err)
	}
	return c.Stores(c.Lambda(func(name string) string { return env[name] }))
}

func read(ctx context.Context, s config.Stores, pk string) error {
	_, _, err := s.Main.Get(ctx, store.Get{Key: store.Key{PK: pk, SK: "head"}, Consistent: true})
	return err
}

// Each tenant's data is reached in a session of its own, asked for once; what is
// nobody's with the function's own rights.
func TestSessions(t *testing.T) {
	t.Parallel()
	a := &awsStub{life: time.Hour}
	s := walled(t, a)
	acme := tenancy.With(t.Context(), "acme")
	for _, c := range []struct {
		ctx context.Context
		pk  string
	}{{acme, "acme#1"}, {acme, "acme#2"}, {t.Context(), "globex#1"}, {t.Context(), "~due#0"}, {acme, "~purged"}, {acme, "acme"}} {
		if err := read(c.ctx, s, c.pk); err != nil {
			t.Fatalf("%s: %v", c.pk, err)
		}
	}
	if err := read(acme, s, "globex#1"); store.KindOf(err) != store.Denied {
		t.Errorf("another tenant's: %v", err)
	}
	if want := []string{"KEY-acme", "KEY-acme", "KEY-globex", "OWN", "OWN", "KEY-acme"}; !slices.Equal(a.signers, want) {
		t.Errorf("signed by %v, want %v", a.signers, want)
	}
	if len(a.sessions) != 2 {
		t.Fatalf("%d sessions", len(a.sessions))
	}
	for name, want := range map[string]string{"Action": "AssumeRole", "RoleArn": "arn:aws:iam::123456789012:role/tenant", "RoleSessionName": "t-acme",
		"DurationSeconds": "3600", "Tags.member.1.Key": "tenant", "Tags.member.1.Value": "acme", "Tags.member.2.Key": ""} {
		if got := a.sessions[0].Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// A session that nears its end is replaced; one that is refused reaches nothing,
// and in particular not with the function's own rights.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	a := &awsStub{life: time.Minute} // within the margin
	s := walled(t, a)
	acme := tenancy.With(t.Context(), "acme")
	for range 2 {
		if err := read(acme, s, "acme#1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.sessions) != 2 {
		t.Errorf("%d sessions", len(a.sessions))
	}
	a.refuse = true
	if err := read(acme, s, "acme#1"); err == nil || len(a.signers) != 2 {
		t.Errorf("without a session: %v, signed by %v", err, a.signers)
	}
}

func TestTenantRoleIsARole(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"tenant", "arn:aws:iam::123456789012:user/x", "arn:aws:iam::12:role/x", "arn:aws:iam::123456789012:role/"} {
		env := complete()
		env["CAIRN_TENANT_ROLE"] = role
		var v *config.VarError
		if _, err := load(env); !errors.As(err, &v) || v.Var != "CAIRN_TENANT_ROLE" || !strings.Contains(err.Error(), "role") {
			t.Errorf("%s: %v", role, err)
		}
	}
}
