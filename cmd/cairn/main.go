package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(os.Args[1:], &env{ctx: ctx, getenv: os.Getenv, build: sandboxed.Functions, streams: streams{os.Stdin, os.Stdout, os.Stderr}})
	stop()
	os.Exit(code)
}
