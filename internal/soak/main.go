package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store/enginetest"
)

// silent: a provider that breaks off is no news.
var silent = log.New(io.Discard, "", 0)

func main() {
	if name := os.Getenv(varWorker); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o := options{answer: 12 * time.Second, redeliver: 20 * time.Second}
	flag.DurationVar(&o.length, "for", 5*time.Minute, "length of the load")
	flag.Float64Var(&o.rate, "rate", 1, "executions a second")
	flag.IntVar(&o.most, "n", 100_000, "executions at most")
	flag.IntVar(&o.workers, "workers", 4, "worker processes, one of which is never harmed")
	flag.DurationVar(&o.killEvery, "kill-every", 4*time.Second, "mean time between kills or freezes of a worker")
	flag.DurationVar(&o.drain, "drain", 5*time.Minute, "at most, after the load, until everything is at its end")
	flag.Uint64Var(&o.seed, "seed", 0, "of the draws (0: a random one)")
	cairn := flag.String("cairn", "", "the cairn binary, for `cairn verify` (default: its verb)")
	flag.StringVar(&o.endpoint, "endpoint", os.Getenv(enginetest.Var), "of the local engine, on loopback")
	flag.Parse()
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000_000)
	}
	if *cairn != "" {
		o.verify = cairnVerify(*cairn)
	}
	if o.rate <= 0 || o.most < 1 || o.workers < 2 || o.endpoint == "" {
		fmt.Fprintln(os.Stderr, "soak: a rate, two workers and the endpoint of a local engine are needed")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Printf("soak: %v at %.3g executions a second, %d workers, seed %d\n", o.length, o.rate, o.workers, o.seed)
	report, err := soak(ctx, o)
	if report != nil {
		report.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || len(report.failures) > 0 {
		stop()
		os.Exit(1)
	}
}

// cairnVerify runs the operator's command; what it prints are findings.
func cairnVerify(binary string) func(ctx context.Context, url string) (string, error) {
	return func(ctx context.Context, url string) (string, error) {
		cmd := exec.CommandContext(ctx, binary, "verify", "--tenant", string(tenant), "--endpoint", url)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) > 0 {
			return strings.TrimSpace(string(out)), nil
		}
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
		}
		return "", nil
	}
}

// lambda answers Lambda's Invoke for functions in this process.
func lambda(functions client.Functions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		function := functions[r.PathValue("name")]
		if err != nil || function == nil {
			http.NotFound(w, r)
			return
		}
		reply, err := function(r.Context(), body)
		var failed messages.InvokeResponse_Error
		if errors.As(err, &failed) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			answer(w, failed)
			return
		}
		_, _ = w.Write(reply)
	})
	return mux
}

// hostOf is the address in an endpoint's URL.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Host
}

// pairs is an environment as a process takes it.
func pairs(env map[string]string) (out []string) {
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out
}

// jsonInto decodes agent data.
func jsonInto(v *jsonx.Value, into any) error {
	if v == nil {
		return errors.New("it does not come inline")
	}
	return json.Unmarshal(v.Bytes(), into)
}
