package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

// binary is the example; its workers are processes of their own.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "documentcase")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "documentcase.exe")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
			return 1
		}
		return m.Run()
	}())
}

// demo runs the example; it must end well.
func demo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// The worst moment: the mail is out and nothing says so.
func TestKilledAfterSending(t *testing.T) {
	t.Parallel()
	out := demo(t)
	for _, want := range []string{
		"KILLED by SIGKILL; the gateway has sent 1 mails", "1 of 1 killed workers replaced", "conflicts: 1",
		"0, counted by the gateway: 6 mails sent, 1 repeats recognised and not sent", "All as it should be",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
}

// Killed at random moments, fifty times.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	seeds, killed := 50, 0
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		out := demo(t, "--kill-at", "random", "--seed", fmt.Sprint(seed))
		killed += strings.Count(out, "KILLED")
	}
	if killed < seeds*6/10 {
		t.Errorf("only %d of %d were killed", killed, seeds)
	}
}

// Any endpoint that speaks Lambda's Invoke, without the sandbox's kit: time
// passes by itself.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a lease of real time")
	}
	s, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions, RealTime: true, Auto: true})
	if err != nil {
		t.Fatal(err)
	}
	inner := httptest.NewServer(s.Handler())
	defer inner.Close()
	target, _ := url.Parse(inner.URL)
	proxy := httputil.NewSingleHostReverseProxy(target)
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sandbox/") {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer outer.Close()
	if out := demo(t, "--endpoint", outer.URL); !strings.Contains(out, "All as it should be") {
		t.Error(out)
	}
}

// A demo that goes wrong says so: a check that cannot fail would be none.
func TestWrongFiguresFail(t *testing.T) {
	t.Parallel()
	if same("mails", 7, 6) == nil || same("mails", 6, 6) != nil {
		t.Error("figures are not compared")
	}
	out, err := exec.CommandContext(t.Context(), binary, "--endpoint", "http://127.0.0.1:1").CombinedOutput()
	if err == nil {
		t.Errorf("no endpoint, and yet: %s", out)
	}
	out, err = exec.CommandContext(t.Context(), binary, "--kill-at", "noon").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--kill-at") {
		t.Errorf("%v %s", err, out)
	}
}
