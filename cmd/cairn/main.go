package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(os.Args[1:], &env{ctx: ctx, getenv: os.Getenv, build: functions, streams: streams{os.Stdin, os.Stdout, os.Stderr}})
	stop()
	os.Exit(code)
}
