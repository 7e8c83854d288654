package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/cairnstate/cairn/shared/sandbox"
)

type sandboxCmd struct {
	Listen      string `default:"127.0.0.1:4577" help:"Address to listen on; port 0 picks a free one."`
	RealTime    bool   `help:"Let the clock run; else it moves only by POST /sandbox/clock."`
	Auto        bool   `help:"Deliver stream records and schedules without POST /sandbox/run."`
	AllowRemote bool   `help:"Also answer callers that are not on this machine. There is no access control."`
	Load        string `placeholder:"FILE" help:"Start with this dump (GET /sandbox/dump)."`
	Seed        string `placeholder:"TEXT" help:"Vary the keys that are derived, not drawn."`
}

// Help implements kong.HelpProvider.
func (*sandboxCmd) Help() string {
	return `A test kit: everything is in memory and gone at the end. The first line on standard output is "listening on http://127.0.0.1:<port>". SIGINT and SIGTERM end it.

Examples:

    cairn sandbox
    cairn sandbox --listen 127.0.0.1:0 --real-time --auto
    cairn sandbox --load dump.json

    export CAIRN_ENDPOINT=http://127.0.0.1:4577
    echo '{"action":"get","tenant":"acme","execution":"e1"}' | cairn call checkpoint
    curl -d '{"advance_seconds": 60}' $CAIRN_ENDPOINT/sandbox/clock
    curl -d '{}' $CAIRN_ENDPOINT/sandbox/run
    curl -d '[{"on": "put", "effect": "landed"}]' $CAIRN_ENDPOINT/sandbox/faults

Exit codes: 0 ended by a signal; 2 usage, also a dump that cannot be loaded; 3 the address cannot be had.`
}

// Run implements the verb.
func (c *sandboxCmd) Run(env *env) error {
	s, err := sandbox.New(sandbox.Options{Build: env.build, RealTime: c.RealTime, Auto: c.Auto, AllowRemote: c.AllowRemote, Seed: c.Seed})
	if err != nil {
		return err
	}
	if c.Load != "" {
		if err := load(s, c.Load); err != nil {
			return usageError{err}
		}
	}
	l, err := s.Listen(c.Listen)
	if errors.Is(err, sandbox.ErrRemote) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(env.out, "listening on "+sandbox.URL(l)); err != nil {
		return errors.Join(err, l.Close())
	}
	return s.Serve(env.ctx, l)
}

func load(s *sandbox.Server, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.Load(f)
}
