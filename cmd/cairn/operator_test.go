package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

// product is a sandbox with the real functions.
func product(t *testing.T) string {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return sandbox.URL(l)
}

func TestOperatorVerbs(t *testing.T) {
	t.Parallel()
	url := product(t)
	vars := map[string]string{"CAIRN_ENDPOINT": url, "CAIRN_TENANT": "acme", "CAIRN_ACTOR": "ann", "AWS_REGION": "us-east-1"}
	post := func(path, body string) {
		t.Helper()
		r, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != 200 {
			t.Fatalf("%s: %s", path, r.Status)
		}
	}
	call := func(function, text string) {
		t.Helper()
		if code, _, errs := cairn(t, `{"tenant":"acme",`+text[1:], vars, "call", function, "--endpoint", url); code != 0 {
			t.Fatalf("%s: %s", text, errs)
		}
	}
	for i := range 3 {
		e := fmt.Sprintf("e%d", i)
		call("checkpoint", `{"action":"create","execution":"`+e+`","workflow":"wf","policy":"p","thread":"T","labels":{"kind":"loan"},"claim":{"owner":"w","lease_seconds":60}}`)
		call("checkpoint", `{"action":"complete","execution":"`+e+`","expected_version":1,"fence":1,"outcome":"completed"}`)
	}
	for _, c := range []struct {
		args string
		code int
		want string // in the output of both
	}{
		{"policy set p --completed-days 30 --keep versions --n 5 --dry-run", 0, "would be stored"},
		{"policy show p", 1, "NotFound"},
		{"policy set p --completed-days 30 --keep versions --n 5", 0, "completed_days"},
		{"policy set p --completed-days 30 --receipt-days 1", 1, "InvalidRequest"},
		{"policy show p --json", 0, `"completed_days":30`},
		{"hold add h1 --thread T --reason legal --dry-run", 0, "3 would be: hold h1"},
		{"hold add h1 --execution e0 --reason legal", 0, "legal"},
		{"hold add h1 --reason legal", 2, "missing flags"},
		{"hold list --execution e0 --json", 0, `"id":"ann"`},
		{"archive e1 --dry-run", 0, "archive"},
		{"archive e0", 1, "Held"},
		{"archive e1", 0, "archived at version 3"},
		{"restore e1", 0, "completed at version 4"},
		{"restore e1", 1, "InvalidRequest"},
		{"verify", 0, "3 executions checked, 0 findings"},
		{"verify e0 --json", 0, ""},
		{"verify never", 1, "NotFound"},
		{"delete --label kind=loan --reason gdpr --dry-run", 0, "2 would be: delete; 1 held"},
		{"delete --execution e0 --reason gdpr", 1, "Held"},
		{"delete --label kind --reason gdpr", 2, "NAME=VALUE"},
		{"delete --label kind=loan --reason gdpr --limit 1", 1, "1 executions are held"},
		{"hold release h1 --execution e0 --reason over", 0, ""},
		{"delete --execution e0 --reason gdpr", 0, "deleted"},
		{"replay --dry-run", 0, "e0"},
		{"replay", 0, "0 deleted again"},
		{"purge", 2, "--confirm"},
		{"purge --dry-run", 0, "dry run"},
		{"purge --confirm acme --no-wait", 1, "not done"},
	} {
		code, out, errs := cairn(t, "", vars, append(strings.Fields(c.args), "--endpoint", url, "--tenant", "acme", "--actor", "ann")...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	post("/sandbox/clock", `{"advance_seconds":7200}`)
	if code, out, errs := cairn(t, "", vars, "purge", "--tenant", "acme", "--endpoint", url, "--confirm", "acme", "--shred", "--no-wait"); code != 1 || !strings.Contains(out+errs, "not done") {
		t.Errorf("a purge with keys that others may still have: exit %d\n%s%s", code, out, errs)
	}
	post("/sandbox/clock", `{"advance_seconds":7200}`)
	if code, out, errs := cairn(t, "", vars, "purge", "--tenant", "acme", "--endpoint", url, "--confirm", "acme", "--shred", "--json"); code != 0 || !strings.Contains(out, `"done":true`) {
		t.Errorf("purge: exit %d\n%s%s", code, out, errs)
	}
	r, err := http.Get(url + "/sandbox/dump")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var dump struct{ Items, Objects []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&dump); err != nil {
		t.Fatal(err)
	}
	for _, raw := range append(dump.Items, dump.Objects...) {
		if bytes.Contains(raw, []byte(`acme`)) && !bytes.Contains(raw, []byte("~purged")) {
			t.Errorf("left after the purge: %.200s", raw)
		}
	}
}
