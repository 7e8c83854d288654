package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/cairnstate/cairn/shared/sandbox"
)

// commands are the verbs.
type commands struct {
	Sandbox sandboxCmd `cmd:"" help:"Run Cairn in this process, without AWS: memory store, virtual clock, faults."`
	Call    callCmd    `cmd:"" help:"Send a request to a function and print its reply."`
	Policy  policyCmd  `cmd:"" help:"How long what is kept: set and show policies."`
	Hold    holdCmd    `cmd:"" help:"Keep data from being removed: add, release and list holds."`
	Archive archiveCmd `cmd:"" help:"Move an ended execution's history into the archive."`
	Restore restoreCmd `cmd:"" help:"Bring an archived execution back."`
	Delete  deleteCmd  `cmd:"" help:"Delete one execution, or everything of a thread, subject or label."`
	Purge   purgeCmd   `cmd:"" help:"Delete everything of a tenant."`
	Tenant  tenantCmd  `cmd:"" help:"Doors of tenants that do not trust each other: add, list, remove."`
	Verify  verifyCmd  `cmd:"" help:"Check one execution or everything of a tenant; changes nothing."`
	Replay  replayCmd  `cmd:"" help:"Delete again what receipts name, after a restore of the table."`
	Limits  limitsCmd  `cmd:"" help:"Print every limit of the product."`
	Version versionCmd `cmd:"" help:"Print what this binary was built from."`
}

const description = `Durable state for AI-agent executions on AWS.

Exit codes: 0 done; 1 the product refused (its error is on standard error, one JSON object); 2 usage; 3 the functions could not be reached or died.`

// The exit codes.
const (
	exitDone = iota
	exitRefused
	exitUsage
	exitTransport
)

// streams are the process's standard input and outputs.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// env is what a verb's Run gets.
type env struct {
	ctx    context.Context
	getenv func(string) string
	build  sandbox.Build // the functions that the sandbox runs
	streams
}

// usageError is a mistake in the command line or in what it names.
type usageError struct{ error }

// refusedError is the product's refusal: json is its error.
type refusedError struct{ json string }

func (e refusedError) Error() string { return e.json }

// exit ends kong's own printing of help.
type exit int

// run parses the command line, runs the verb and gives the exit code.
func run(args []string, e *env) (code int) {
	defer func() {
		if r := recover(); r != nil {
			ended, isExit := r.(exit)
			if !isExit {
				panic(r)
			}
			code = int(ended)
		}
	}()
	var verbs commands
	parser, err := kong.New(&verbs, kong.Name("cairn"), kong.Description(description), kong.Writers(e.out, e.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Exit(func(code int) { panic(exit(code)) }))
	if err != nil {
		panic(err) // the verbs' own definitions
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(e.err, "cairn: %v\nRun \"cairn --help\", or a verb with --help.\n", err)
		return exitUsage
	}
	return report(e.streams, parsed.Run(e))
}

// report prints an error of a verb and gives the exit code.
func report(s streams, err error) int {
	var refused refusedError
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &refused):
		fmt.Fprintln(s.err, refused.json)
		return exitRefused
	case errors.As(err, &usage):
		fmt.Fprintf(s.err, "cairn: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(s.err, "cairn: %v\n", err)
	return exitTransport
}
