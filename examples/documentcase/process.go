package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/cairnstate/cairn/client"
)

// fuse kills its own process, by SIGKILL, at a chosen moment: before or after
// each call that the worker makes of Cairn, and before and after each mail.
type fuse struct {
	mu      sync.Mutex
	at      int  // the moment; 0: never
	onSent  bool // when the gateway has answered the first mail
	moments int
}

func (f *fuse) moment() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moments++; f.moments == f.at {
		f.burn()
	}
}

func (f *fuse) sent() {
	f.mu.Lock()
	burn := f.onSent
	f.mu.Unlock()
	if burn {
		f.burn()
	}
	f.moment()
}

// burn never returns.
func (f *fuse) burn() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// door is a client's door whose every call is two moments.
type fusedDoor struct {
	client.Door
	fuse *fuse
}

func (d fusedDoor) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	d.fuse.moment()
	reply, err := d.Door.Invoke(ctx, function, payload)
	d.fuse.moment()
	return reply, err
}

// report is the last line that a child writes: no last line, no orderly end.
type report struct {
	Ending     client.Ending `json:"ending,omitempty"`
	Version    int64         `json:"version,omitempty"`
	Moments    int           `json:"moments,omitempty"`
	RetryAfter int64         `json:"retry_after_ms,omitempty"`
	Conflicts  int           `json:"conflicts,omitempty"`
}

func (r report) print(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// child is this binary again, with a verb.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	errs  bytes.Buffer
}

func start(ctx context.Context, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, args...)}
	c.cmd.Stderr = &c.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	return c, c.cmd.Start()
}

// line reads one line of the child's; an error when it ended instead.
func (c *child) line() (string, error) {
	if c.lines.Scan() {
		return c.lines.Text(), nil
	}
	return "", errors.Join(fmt.Errorf("%s ended early: %s", c.cmd.Args[1], strings.TrimSpace(c.errs.String())), c.lines.Err())
}

// wait reads the child's last line. killed: it was killed before it could write
// one.
func (c *child) wait() (r report, killed bool, err error) {
	last := ""
	for c.lines.Scan() {
		last = c.lines.Text()
	}
	err = c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return r, true, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("%s: %w: %s", c.cmd.Args[1], err, strings.TrimSpace(c.errs.String()))
	}
	if err := json.Unmarshal([]byte(last), &r); err != nil {
		return r, false, fmt.Errorf("%s: no report: %w", c.cmd.Args[1], err)
	}
	return r, false, nil
}
