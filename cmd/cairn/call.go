package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// endpoint are the flags of every verb that calls the functions.
type endpoint struct {
	Endpoint string `env:"CAIRN_ENDPOINT" placeholder:"URL" help:"Base URL of a sandbox or a local AWS engine (default: AWS, with region and credentials as the AWS SDK finds them)."`
}

// client makes the client for the functions there.
func (e endpoint) client(env *env) (*invoke.Client, error) {
	c, err := invoke.New(env.ctx, invoke.Options{Endpoint: e.Endpoint, Getenv: env.getenv})
	if errors.Is(err, invoke.ErrNoRegion) {
		return nil, usageError{fmt.Errorf("no AWS region: set AWS_REGION, or --endpoint for a sandbox")}
	}
	return c, err
}

type callCmd struct {
	endpoint
	Function    string `arg:"" help:"checkpoint, recover or retention; or a deployed function's name or ARN."`
	File        string `arg:"" optional:"" default:"-" help:"File with the request (default: standard input)."`
	TenantAlias string `placeholder:"TENANT" help:"Call through this tenant's alias instead of the plain name."`
	NDJSON      bool   `name:"ndjson" help:"One request a line, one reply a line."`
}

// Help implements kong.HelpProvider.
func (*callCmd) Help() string {
	return `The request is sent as it is and the reply printed as it came. Nothing is sent twice.

Examples:

    echo '{"action":"create","tenant":"acme","execution":"e1","workflow":"w"}' |
      cairn call checkpoint --endpoint http://127.0.0.1:4577
    cairn call recover claim.json --tenant-alias acme
    cairn call checkpoint requests.ndjson --ndjson > replies.ndjson

With --ndjson each line of input gives one line of output: the reply, or {"error": {...}} where the product refused; lines that are empty are passed over. It stops at the first request whose outcome is not known.

Exit codes: 0 done; 1 refused (with --ndjson: at least one was); 2 usage; 3 no answer: the outcome may be unknown.`
}

// Run implements the verb.
func (c *callCmd) Run(env *env) error {
	in, err := c.open(env.in)
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	client, err := c.client(env)
	if err != nil {
		return err
	}
	qualifier := ""
	if c.TenantAlias != "" {
		if err := execution.CheckIdentifier("--tenant-alias", c.TenantAlias, execution.MaxTenant); err != nil {
			return usageError{err}
		}
		qualifier = execution.TenantAlias(execution.TenantID(c.TenantAlias))
	}
	call := func(request []byte) ([]byte, error) {
		return client.Invoke(env.ctx, c.Function, qualifier, request)
	}
	if c.NDJSON {
		return callLines(in, env.out, call)
	}
	request, err := io.ReadAll(in)
	if err != nil {
		return usageError{err}
	}
	reply, err := call(request)
	if err != nil {
		return refusal(err)
	}
	_, err = fmt.Fprintf(env.out, "%s\n", reply)
	return err
}

func (c *callCmd) open(stdin io.Reader) (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(c.File)
}

// refusal tells the product's refusals from everything else.
func refusal(err error) error {
	var failed *invoke.FunctionError
	if errors.As(err, &failed) {
		if failed.Refused() {
			return refusedError{failed.Message}
		}
		return fmt.Errorf("the function failed, the outcome is unknown: %s: %s", failed.Type, failed.Message)
	}
	return err
}

// callLines makes one call a line, in order.
func callLines(in io.Reader, out io.Writer, call func([]byte) ([]byte, error)) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	refusals, last := 0, ""
	for more := true; more; {
		line, err := lines.ReadBytes('\n')
		if more = err == nil; !more && !errors.Is(err, io.EOF) {
			return usageError{err}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		reply, err := call(line)
		if err != nil {
			var refused refusedError
			if err = refusal(err); !errors.As(err, &refused) {
				return err
			}
			refusals, last = refusals+1, refused.json
			reply = []byte(`{"error":` + refused.json + `}`)
		}
		if err := writeLine(out, reply); err != nil {
			return err
		}
	}
	if refusals > 0 {
		return refusedError{last}
	}
	return nil
}

// writeLine writes a reply on one line, whatever white space it came with.
func writeLine(out io.Writer, reply []byte) error {
	if bytes.ContainsAny(reply, "\r\n") {
		var line bytes.Buffer
		if err := json.Compact(&line, reply); err != nil {
			return fmt.Errorf("the reply is no JSON")
		}
		reply = line.Bytes()
	}
	_, err := fmt.Fprintf(out, "%s\n", reply)
	return err
}
