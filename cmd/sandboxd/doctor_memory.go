package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
)

// criuConfig is what runc has CRIU read.
const criuConfig = "/etc/criu/runc.conf"

// lookMemorySnapshots tells whether the memory of sandboxes can be kept, if it is to be.
func lookMemorySnapshots(ctx context.Context, c *Config) finding {
	if !c.MemorySnapshots {
		return ok("memory snapshots are switched off (--memory-snapshots)")
	}
	e, err := docker.Open(ctx, docker.Config{KeepMemory: true})
	if err != nil {
		return problem("", "%s", fault.Message(err))
	}
	why := e.CheckpointSupport(ctx)
	if err := e.Close(); err != nil {
		return warn("", "closing the connection to the engine: %v", err)
	}
	if why != "" {
		return warn("See the section Memory snapshots in docs/server.md.", "snapshots cannot have the memory of programs: %s", clause(why))
	}
	if !mayRaiseLimits() {
		return warn("Run the engine where it has CAP_SYS_RESOURCE.", "snapshots can have the memory of root's programs alone: CRIU needs CAP_SYS_RESOURCE for others, which is missing here")
	}
	text, err := os.ReadFile(criuConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return warn("", "%s cannot be read: %v", criuConfig, err)
	}
	has := strings.Fields(string(text))
	for _, o := range []struct{ option, of string }{{"tcp-close", "open TCP connections: CRIU is not told to close them"}, {"file-locks", "locks on files: CRIU is not told to keep them"}} {
		if !slices.Contains(has, o.option) {
			return warn("Put a line \""+o.option+"\" into "+criuConfig+".", "snapshots can have the memory of programs, but not of those with %s", o.of)
		}
	}
	return ok("snapshots can have the memory of programs (experimental)")
}

// mayRaiseLimits reports whether this process has CAP_SYS_RESOURCE, as an engine on the same host has then.
func mayRaiseLimits() bool {
	has := unix.CapUserData{}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_1}
	return unix.Capget(&head, &has) == nil && has.Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
