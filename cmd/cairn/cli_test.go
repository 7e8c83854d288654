package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/sandbox"
)

// cairn runs a command line in this process.
func cairn(t *testing.T, stdin string, vars map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, &env{ctx: context.Background(), getenv: func(name string) string { return vars[name] }, build: answers,
		streams: streams{strings.NewReader(stdin), &stdout, &stderr}})
	return code, stdout.String(), stderr.String()
}

// echo is a sandbox whose functions answer with what they got.
func echo(t *testing.T) string {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{Build: answers})
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

func answers(sandbox.World) (map[string]sandbox.Function, error) {
	return map[string]sandbox.Function{"checkpoint": answer}, nil
}

func answer(ctx context.Context, payload []byte) ([]byte, error) {
	switch text := string(payload); {
	case strings.Contains(text, "refuse"):
		return nil, execution.Invalid("action", "unknown")
	case strings.Contains(text, "die"):
		panic("dies")
	case strings.Contains(text, "arn"):
		lc, _ := lambdacontext.FromContext(ctx)
		return json.Marshal(lc.InvokedFunctionArn)
	}
	return payload, nil
}

func TestCall(t *testing.T) {
	t.Parallel()
	url := echo(t)
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, []byte(`{"from":"file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, stdin string
		env         map[string]string
		args        []string
		code        int
		out, errs   string // errs: a part of it
	}{
		{name: "standard input", stdin: `{"n": 1.0}`, args: []string{"call", "checkpoint", "--endpoint", url}, out: "{\"n\": 1.0}\n"},
		{name: "dash", stdin: `{"n":1}`, args: []string{"call", "checkpoint", "-", "--endpoint", url}, out: "{\"n\":1}\n"},
		{name: "file", args: []string{"call", "checkpoint", file, "--endpoint", url}, out: "{\"from\":\"file\"}\n"},
		{name: "alias", stdin: `"arn"`, args: []string{"call", "checkpoint", "--endpoint", url, "--tenant-alias", "a.c_me"}, out: "\"arn:aws:lambda:us-east-1:000000000000:function:checkpoint:t-a_2ec_5fme\"\n"},
		{name: "refused", stdin: `"refuse"`, args: []string{"call", "checkpoint", "--endpoint", url}, code: 1, errs: `{"code":"InvalidRequest","message":"unknown","retryable":false,"field":"action"}` + "\n"},
		{name: "too large", stdin: `"` + strings.Repeat("x", 6<<20) + `"`, args: []string{"call", "checkpoint", "--endpoint", url}, code: 1, errs: `{"code":"TooLarge"`},
		{name: "died", stdin: `"die"`, args: []string{"call", "checkpoint", "--endpoint", url}, code: 3, errs: "Runtime.ExitError"},
		{name: "no such function", stdin: `{}`, args: []string{"call", "nothing", "--endpoint", url}, code: 3, errs: "ResourceNotFoundException"},
		{name: "nobody there", stdin: `{}`, args: []string{"call", "checkpoint", "--endpoint", "http://127.0.0.1:1"}, code: 3, errs: "refused"},
		{name: "no file", args: []string{"call", "checkpoint", file + "x", "--endpoint", url}, code: 2, errs: "no such file"},
		{name: "no tenant", stdin: `{}`, args: []string{"call", "checkpoint", "--endpoint", url, "--tenant-alias", "a#b"}, code: 2, errs: "--tenant-alias"},
		{name: "no function", args: []string{"call"}, code: 2, errs: "<function>"},
		{name: "unknown flag", args: []string{"call", "checkpoint", "--nothing"}, code: 2, errs: "--nothing"},
		{name: "unknown verb", args: []string{"nothing"}, code: 2, errs: "nothing"},
		{name: "no verb", code: 2, errs: "--help"},
		{name: "lines", stdin: "{\"n\":1}\n\n \"refuse\"\n{\"n\":\r3}", args: []string{"call", "checkpoint", "--ndjson", "--endpoint", url}, code: 1,
			out: "{\"n\":1}\n{\"error\":{\"code\":\"InvalidRequest\",\"message\":\"unknown\",\"retryable\":false,\"field\":\"action\"}}\n{\"n\":3}\n", errs: "InvalidRequest"},
		{name: "lines to the end", stdin: "1\n2", args: []string{"call", "checkpoint", "--ndjson", "--endpoint", url}, out: "1\n2\n"},
		{name: "lines stop", stdin: "1\n\"die\"\n2\n", args: []string{"call", "checkpoint", "--ndjson", "--endpoint", url}, code: 3, out: "1\n", errs: "Runtime.ExitError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := cairn(t, tc.stdin, tc.env, tc.args...)
			if code != tc.code || out != tc.out || !strings.Contains(errs, tc.errs) || (errs == "") != (tc.errs == "") {
				t.Errorf("code %d, out %q, err %q; want %d, %q, %q", code, out, errs, tc.code, tc.out, tc.errs)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"", "sandbox", "call", "limits", "version"} {
		args := []string{"--help"}
		if verb != "" {
			args = []string{verb, "--help"}
		}
		code, out, _ := cairn(t, "", nil, args...)
		if code != 0 || !strings.Contains(out, "cairn") || verb != "" && !strings.Contains(out, "Example") {
			t.Errorf("%s: code %d: %s", verb, code, out)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	code, out, _ := cairn(t, "", nil, "limits", "--json")
	var list []limit
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	names := map[string]int64{}
	for _, l := range list {
		if names[l.Name] != 0 || l.Value <= 0 || l.Unit == "" || l.Meaning == "" {
			t.Errorf("twice or incomplete: %+v", l)
		}
		names[l.Name] = l.Value
	}
	if names["state_bytes"] != execution.MaxStateBytes {
		t.Errorf("state_bytes: %d", names["state_bytes"])
	}
	code, out, _ = cairn(t, "", nil, "limits")
	for name := range names {
		if !strings.Contains(out, name) || code != 0 {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, out, _ := cairn(t, "", nil, "version")
	if code != 0 || !strings.Contains(out, "go       go1.") {
		t.Error(code, out)
	}
}

// The sandbox says where it listens, answers, and ends quietly.
func TestSandbox(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	done := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		done <- run([]string{"sandbox", "--listen", "127.0.0.1:0"}, &env{ctx: ctx, getenv: os.Getenv, build: answers, streams: streams{strings.NewReader(""), w, &stderr}})
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-done, stderr.String())
	}
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	resp, err := http.Get(url + "/sandbox/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Error(url, resp.Status)
	}
	cancel()
	select {
	case code := <-done:
		if code != 0 {
			t.Error(code, stderr.String())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the sandbox does not end")
	}
}

func TestSandboxRefuses(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(bad, []byte(`{"items":[{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		errs string
	}{
		{[]string{"sandbox", "--listen", "0.0.0.0:0"}, 2, "--allow-remote"},
		{[]string{"sandbox", "--listen", "nonsense"}, 3, "nonsense"},
		{[]string{"sandbox", "--load", bad}, 2, "dump"},
		{[]string{"sandbox", "--load", bad + "x"}, 2, "no such file"},
	} {
		code, out, errs := cairn(t, "", nil, tc.args...)
		if code != tc.code || out != "" || !strings.Contains(errs, tc.errs) {
			t.Errorf("%v: %d %q %q", tc.args, code, out, errs)
		}
	}
}
