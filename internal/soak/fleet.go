package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// fleet are the worker processes. The first one is the steady one.
type fleet struct {
	env    []string
	stderr io.Writer
	random *rand.Rand

	mu      sync.Mutex
	procs   []*process
	kills   int
	freezes int
}

type process struct {
	name  string
	cmd   *exec.Cmd
	input io.Closer
}

// launch starts n workers.
func launch(n int, env []string, seed uint64) (*fleet, error) {
	f := &fleet{env: env, stderr: os.Stderr, random: rand.New(rand.NewPCG(seed, 5)), procs: make([]*process, n)}
	for i := range f.procs {
		if err := f.start(i, 0); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// start puts a process in the i-th place; life tells those of one place apart.
func (f *fleet) start(i, life int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{name: fmt.Sprintf("worker-%d-%d", i, life), cmd: exec.Command(self)}
	if i == 0 {
		p.name = "steady"
	}
	p.cmd.Env = append(append(os.Environ(), f.env...), varWorker+"="+p.name, fmt.Sprintf("%s=%d", varSeed, f.random.Int64()))
	p.cmd.Stderr = f.stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	f.procs[i] = p
	return nil
}

// harass kills or freezes a worker every so often until ctx ends; then all are
// running again.
func (f *fleet) harass(ctx context.Context, every time.Duration) error {
	for life := 1; ; life++ {
		if !pause(ctx, time.Duration(f.random.ExpFloat64()*float64(every))) || len(f.procs) < 2 {
			return nil
		}
		i := 1 + f.random.IntN(len(f.procs)-1)
		if f.random.IntN(4) == 0 {
			f.freeze(ctx, f.procs[i], lease+time.Duration(f.random.IntN(4000))*time.Millisecond)
			continue
		}
		if err := f.kill(i, life); err != nil {
			return err
		}
	}
}

func (f *fleet) freeze(ctx context.Context, p *process, d time.Duration) {
	if p.cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	f.mu.Lock()
	f.freezes++
	f.mu.Unlock()
	pause(ctx, d)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

func (f *fleet) kill(i, life int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.procs[i]
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("%s ended by itself: %w", p.name, err)
	}
	f.kills++
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		return fmt.Errorf("%s ended by itself: %w", p.name, err)
	}
	_ = p.input.Close()
	return f.start(i, life)
}

// steady is the process id of the worker that lives throughout.
func (f *fleet) steady() int { return f.procs[0].cmd.Process.Pid }

// stop ends all of them; an error tells of one that had ended by itself.
func (f *fleet) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, p := range f.procs {
		if p == nil {
			continue
		}
		_ = p.input.Close()
		if err := p.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

// pause waits; false: ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
