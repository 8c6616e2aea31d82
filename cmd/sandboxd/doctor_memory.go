package main

import (
	"context"
	"os"
	"slices"
	"strings"

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
	text, err := os.ReadFile(criuConfig)
	if err != nil || !slices.Contains(strings.Fields(string(text)), "tcp-close") {
		return warn("Put a line \"tcp-close\" into "+criuConfig+".",
			"snapshots can have the memory of programs, but not of those with open TCP connections: CRIU is not told to close them")
	}
	return ok("snapshots can have the memory of programs (experimental)")
}
