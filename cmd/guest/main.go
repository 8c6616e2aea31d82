// Command guest is the program that sandboxd puts into every sandbox and runs there as its main process; see
// internal/guest.
//
// It is not meant to be run by hand: everything it needs to know sandboxd tells it. Of its arguments, sftp makes it an SFTP
// server on stdin and stdout, which it starts itself as the sandbox's user (see internal/guest/sftp); mover, in a container beside a
// sandbox, makes it what reads and replaces that one's home (see internal/guest/mover).
//
// Invariant: it needs nothing from the image and starts with nothing but the link's folder, so that a sandbox of any
// image can be reached.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"sandboxd/internal/guest"
	"sandboxd/internal/guest/mover"
	"sandboxd/internal/guest/sftp"
	"sandboxd/internal/wire"
)

// version is set by the linker.
var version = "dev"

// Memory. The guest lives in every sandbox, so it collects early and uses few threads: it moves bytes and waits.
const (
	gcPercent   = 50
	memoryLimit = 32 << 20
	threads     = 2
	moverLimit  = 192 << 20
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == guest.SFTPArgument {
		limitMemory()
		os.Exit(sftp.Main())
	}
	if len(os.Args) == 2 && os.Args[1] == wire.MoverArgument {
		debug.SetMemoryLimit(moverLimit)
		os.Exit(mover.Main())
	}
	if os.Getpid() == 1 {
		os.Exit(guest.Init())
	}
	limitMemory()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // caught and dropped; ignoring it would be inherited
	guest.LinkWorkspace()
	g := guest.New(guest.Config{Version: version, Terminals: openTerminals(log), InSandbox: inSandbox(), Log: log})
	if err := g.Run(ctx); err != nil {
		log.Error("guest has failed", "err", err)
		os.Exit(1)
	}
}

func limitMemory() {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	runtime.GOMAXPROCS(min(threads, runtime.GOMAXPROCS(0)))
}

// inSandbox reports whether this process may end all the others here. It must never be true on a developer's machine.
func inSandbox() bool {
	exe, err := os.Executable()
	return err == nil && exe == wire.GuestPath && os.Getppid() == 1
}
