package https_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/recovery/https"
)

var key = []byte("0123456789abcdef")

func now() time.Time { return time.Unix(1_767_225_600, 0) }

// system is a business system that answers by path.
func system(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var q recovery.Question
		if json.Unmarshal(body, &q) != nil || q.Tenant != "bank" || q.Execution != "e1" || q.Operation != "op" || q.Fence != 7 || q.ProviderKey != "pk" {
			t.Errorf("asked %s", body)
		}
		if r.Header.Get("Cairn-Timestamp") != "1767225600" || r.Header.Get("Cairn-Signature") != https.Sign(key, "1767225600", body) {
			t.Errorf("signature %v", r.Header)
		}
		_, _ = io.WriteString(w, `{"finding":"found"}`)
	})
	mux.HandleFunc("/html", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 10<<20))
	})
	mux.HandleFunc("/error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret-value", http.StatusTeapot) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://169.254.169.254/latest", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the asker is gone
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
		panic(http.ErrAbortHandler) // no answer, which could still reach an asker that is just giving up
	})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestAsk(t *testing.T) {
	t.Parallel()
	s := system(t)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	host := strings.TrimPrefix(s.URL, "https://")
	none := func(netip.Addr) bool { return false }
	open := https.Options{Hosts: []string{strings.ToUpper(host)}, Key: key, Now: now, Roots: roots, Refuse: none}
	unverified, guarded, other := open, open, open
	unverified.Roots, guarded.Refuse, other.Hosts = x509.NewCertPool(), nil, []string{"example.com"}
	for _, c := range []struct {
		name   string
		o      https.Options
		target string
		answer string
		size   int
		err    string
	}{
		{"an answer", open, s.URL + "/good", `{"finding":"found"}`, 0, ""},
		{"HTML is handed on, to be refused as no answer", open, s.URL + "/html", "<html>", 0, ""},
		{"too large is cut", open, s.URL + "/large", "", https.MaxAnswer + 1, ""},
		{"a status", open, s.URL + "/error", "", 0, "status 418"},
		{"a redirect", open, s.URL + "/elsewhere", "", 0, "status 307"},
		{"no time", open, s.URL + "/slow", "", 0, "deadline"},
		{"plain http", open, "http://" + host + "/good", "", 0, "no allowed"},
		{"credentials in the URL", open, "https://u:p@" + host + "/good", "", 0, "no allowed"},
		{"no URL", open, "https://%zz", "", 0, "no allowed"},
		{"another host", other, s.URL + "/good", "", 0, "no allowed"},
		{"an unknown certificate", unverified, s.URL + "/good", "", 0, "no answer"},
		{"an address inside", guarded, s.URL + "/good", "", 0, "no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := https.New(c.o)
			if err != nil {
				t.Fatal(err)
			}
			limit := time.Minute
			if c.err == "deadline" {
				limit = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			a, err := r.Ask(ctx, recovery.Question{Tenant: "bank", Execution: "e1", Operation: "op", Fence: 7, ProviderKey: "pk", Config: recovery.ResolverConfig{Target: c.target}})
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret-value") {
					t.Errorf("%v", err)
				}
			case err != nil, c.size > 0 && len(a.JSON) != c.size, c.size == 0 && string(a.JSON) != c.answer:
				t.Errorf("%d bytes, %v", len(a.JSON), err)
			}
		})
	}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{"169.254.169.254": true, "127.0.0.1": true, "::1": true, "fe80::1": true, "fd00:ec2::254": true, "0.0.0.0": true, "::": true,
		"224.0.0.1": true, "255.255.255.255": true, "10.1.2.3": false, "203.0.113.7": false, "2001:db8::1": false} {
		if got := https.Forbidden(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if !https.Forbidden(netip.Addr{}) {
		t.Error("no address")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []https.Options{{Key: key, Now: now}, {Hosts: []string{"h"}, Key: key[:8], Now: now}, {Hosts: []string{"h"}, Key: key}} {
		if _, err := https.New(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	// A host that no question's address could name would refuse all of them in silence.
	for host, ok := range map[string]bool{"bank.example": true, "Bank.example:8443": true, "10.0.0.1": true, "[2001:db8::1]:443": true, "https://bank.example": false, "bank.example/": false, "bank.example/x": false,
		"me@bank.example": false, " bank.example": false, "": false, ":443": false, "bank.example:https:x": false, "bank.example?x": false, "bank.example#x": false} {
		if _, err := https.New(https.Options{Hosts: []string{"h", host}, Key: key, Now: now}); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}
