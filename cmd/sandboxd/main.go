package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sandboxd/internal/fault"
)

// version is set by the build.
var version = "dev"

func main() {
	tuneGC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs the command line and gives the exit code: 0 done, 1 it failed, 2 the command line is wrong; a command in a sandbox
// gives its own.
func run(ctx context.Context, args []string) int {
	root := newRootCmd()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var own exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return int(own)
	case errors.Is(err, errQuiet):
		return 1
	case fault.KindOf(err) == fault.Internal:
		fmt.Fprintln(os.Stderr, "sandboxd:", err)
	default:
		fmt.Fprintln(os.Stderr, "sandboxd:", fault.Message(err))
	}
	if fault.Is(err, fault.Invalid) {
		return 2
	}
	return 1
}
