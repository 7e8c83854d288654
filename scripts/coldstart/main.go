// Command coldstart measures how long a function's process takes from its start
// to its first poll of Lambda's runtime interface: what a cold start costs
// besides Lambda's own part.
//
//	go run ./scripts/coldstart [--runs 31] <bootstrap>...
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"
)

func main() {
	runs := flag.Int("runs", 31, "processes for each function")
	limit := flag.Duration("limit", 0, "fail when a median is longer; 0: never")
	flag.Parse()
	failed := false
	for _, binary := range flag.Args() {
		times, err := measure(binary, *runs)
		if err != nil {
			fmt.Fprintln(os.Stderr, "coldstart:", err)
			os.Exit(1)
		}
		slices.Sort(times)
		median := times[len(times)/2]
		fmt.Printf("%s: median %.1f ms, fastest %.1f ms, slowest %.1f ms of %d\n", binary, ms(median), ms(times[0]), ms(times[len(times)-1]), len(times))
		failed = failed || *limit > 0 && median > *limit
	}
	if failed {
		os.Exit(1)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measure starts the binary again and again; each process is ended as soon as it
// has polled.
func measure(binary string, runs int) ([]time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	polled := make(chan time.Time, 16)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case polled <- time.Now():
		default: // a second poll of the same process
		}
		<-r.Context().Done()
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	var times []time.Duration
	for range runs {
		cmd := exec.Command(binary)
		cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x",
			"CAIRN_TABLE=main", "CAIRN_KEY_TABLE=keys", "CAIRN_BUCKET=objects", "CAIRN_DATA_KEY=alias/cairn"}
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		start := time.Now()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		var err error
		select {
		case at := <-polled:
			times = append(times, at.Sub(start))
		case <-time.After(10 * time.Second):
			err = errors.New(binary + " does not poll")
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}
