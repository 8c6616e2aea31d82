package main

import (
	"context"
	"strings"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// lookFreezing tells what becomes of a sandbox that is not used for a while.
func lookFreezing(_ context.Context, e *docker.Engine) finding {
	can, reclaims, why := e.FreezeSupport()
	switch {
	case !can:
		return warn("Run an engine with root, or one without on a host with cgroup v2 and systemd.",
			"unused sandboxes cannot be frozen, and are only put to sleep: %s", clause(why))
	case !reclaims:
		return warn(mendReclaim(e.Info()), "unused sandboxes are frozen, and keep their memory until they are put to sleep: %s", clause(why))
	}
	return ok("unused sandboxes are frozen, and their memory is moved to swap")
}

// clause makes a sentence the end of another line.
func clause(sentence string) string { return strings.TrimSuffix(sentence, ".") }

// mendReclaim says how the memory of frozen sandboxes could be had back.
func mendReclaim(i docker.Info) string {
	swap, err := memFigure("SwapTotal")
	none := err == nil && swap == 0
	switch {
	case i.Cgroup == "1" && none:
		return "Boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1 on the kernel's command line) and add a swap file or zram."
	case i.Cgroup == "1":
		return "Boot with cgroup v2: systemd.unified_cgroup_hierarchy=1 on the kernel's command line."
	case none:
		return "Add a swap file or zram: frozen sandboxes then cost little memory."
	}
	return "Use Linux 5.19 or newer, and run sandboxd as root on the engine's host, or in a container that has the host's /sys/fs/cgroup, writable."
}

// lookMemory tells how much memory there is, and from where on unused sandboxes are put to rest early.
func lookMemory(_ context.Context, c *Config) finding {
	now, err := memInfo("MemTotal", "MemAvailable")
	if err != nil {
		return warn("", "memory cannot be told: %v", err)
	}
	total, left := now[0], now[1]
	reserve, err := c.reserve(total)
	if err != nil {
		return problem("Mend --memory-reserve.", "%s", fault.Message(err))
	}
	size := text.Size
	switch {
	case reserve == 0:
		return warn("Leave --memory-reserve at 5%, so that a full host puts unused sandboxes to rest before it runs out.",
			"%s of %s are available; nothing is kept in reserve", size(left), size(total))
	case left < reserve:
		return warn("Stop sandboxes that are not needed, give the host more memory, or lower --memory-reserve.",
			"%s of %s are available, less than the %s in reserve: unused sandboxes are put to rest early", size(left), size(total), size(reserve))
	}
	return ok("%s of %s are available; below %s unused sandboxes are put to rest early (--memory-reserve)", size(left), size(total), size(reserve))
}
