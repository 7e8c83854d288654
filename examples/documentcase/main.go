package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// Names of the example.
const (
	tenant         = execution.TenantID("musterbank")
	caseWorkflow   = "document-collection"
	reviewWorkflow = "document-review"
)

type verbs struct {
	Demo     demoCmd     `cmd:"" default:"withargs" help:"Run the whole case (the default)."`
	Worker   workerCmd   `cmd:"" hidden:""`
	Reviewer reviewerCmd `cmd:"" hidden:""`
	Gateway  gatewayCmd  `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var v verbs
	k := kong.Parse(&v, kong.Name("documentcase"), kong.Description("A bank's document-collection case: a worker is killed, nothing is sent twice."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}

// cairn is where the functions are.
type cairn struct {
	Endpoint string `placeholder:"URL" help:"Where Cairn is: the URL of a sandbox or of anything else that speaks Lambda's Invoke, or \"aws\" (default: a sandbox in this process)."`
}

func (c cairn) door(ctx context.Context) (client.Door, error) {
	if c.Endpoint != "aws" {
		return client.HTTP{URL: c.Endpoint}, nil
	}
	lambda, err := invoke.New(ctx, invoke.Options{Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	return &awslambda.Door{Lambda: lambda}, nil
}

// workerCmd is a worker process: it takes the case over, does what can be done
// and gives it up.
type workerCmd struct {
	cairn
	Case        execution.ExecutionID `required:""`
	Name        string                `required:""`
	Gateway     string                `required:""`
	Version     int64                 `help:"Of the hand-over."`
	Lease       time.Duration         `default:"60s"`
	RemindAfter time.Duration         `default:"72h"`
	DieAt       int                   `help:"Kill this process at that moment."`
	DieOnSent   bool                  `help:"Kill this process when the first mail is out."`
}

func (c *workerCmd) Run(ctx context.Context) error {
	door, err := c.door(ctx)
	if err != nil {
		return err
	}
	f := &fuse{at: c.DieAt, onSent: c.DieOnSent}
	w := &worker{mail: &mailbox{url: c.Gateway, fuse: f}, remindAfter: c.RemindAfter,
		client: client.New(client.Options{Door: fusedDoor{door, f}, Tenant: tenant, Actor: &api.Actor{Kind: "worker", ID: c.Name}})}
	result, err := w.client.Drive(ctx, c.Case, client.DriveOptions{Owner: c.Name, Lease: c.Lease, ExpectedVersion: c.Version, Parallel: 1}, w.work)
	if err != nil {
		return err
	}
	return report{Ending: result.Ending, Version: result.Version, Moments: f.moments, RetryAfter: result.RetryAfter.Milliseconds()}.print(os.Stdout)
}

// reviewerCmd is a reviewer at a desk.
type reviewerCmd struct {
	cairn
	Case execution.ExecutionID `required:""`
	Name string                `required:""`
}

func (c *reviewerCmd) Run(ctx context.Context) error {
	door, err := c.door(ctx)
	if err != nil {
		return err
	}
	cl := client.New(client.Options{Door: door, Tenant: tenant, Actor: &api.Actor{Kind: "human", ID: c.Name}})
	conflicts, err := review(ctx, cl, c.Case, c.Name, os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	return report{Conflicts: conflicts}.print(os.Stdout)
}

// gatewayCmd is the mail gateway, until its standard input ends.
type gatewayCmd struct{}

func (*gatewayCmd) Run() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	g := &gateway{byKey: map[string]receipt{}, copies: map[mail]int{}}
	server := &http.Server{Handler: g.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // the demo has ended
		_ = server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
