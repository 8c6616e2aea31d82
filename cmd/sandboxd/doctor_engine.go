package main

import (
	"context"
	"os/exec"
	"strconv"
	"strings"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// oldestAPI is the oldest engine interface that sandboxd works with: Docker 20.10.
const oldestAPI = "1.41"

// baseImage is what the built-in templates build on.
const baseImage = "debian:trixie-slim"

// checks is what doctor looks at, in this order.
var checks = []check{
	{"engine", withEngine(lookEngine)},
	{"storage", withEngine(lookStorage)},
	{"cgroups", withEngine(lookCgroups)},
	{"freezing", withEngine(lookFreezing)},
	{"isolation", withEngine(lookIsolation)},
	{"memory-snapshots", lookMemorySnapshots},
	{"base-image", withEngine(lookBaseImage)},
	{"figures", lookFigures},
	{"bridge", lookBridge},
	{"firewall", lookFirewall},
	{"swap", lookSwap},
	{"memory", lookMemory},
	{"dns", lookDNS},
	{"port", lookPort},
	{"data", lookData},
	{"database", lookDatabase},
	{"server-backup", lookServerBackup},
	{"orphans", lookOrphans},
	{"disk", lookDisk},
	{"storage-pool", lookPool},
	{"repositories", lookRepositories},
	{"git", lookGit},
}

// withEngine gives a check the engine, or makes its finding that there is none.
func withEngine(look func(ctx context.Context, e *docker.Engine) finding) func(context.Context, *Config) finding {
	return func(ctx context.Context, _ *Config) finding {
		e, err := docker.Open(ctx, docker.Config{})
		if fault.Is(err, fault.Invalid) { // it is there, and the message says what to do
			return problem("", "%s", fault.Message(err))
		}
		if err != nil {
			return problem("Start the engine (sudo systemctl start docker), or set DOCKER_HOST to one that runs.", "%s", fault.Message(err))
		}
		f := look(ctx, e)
		if err := e.Close(); err != nil {
			return warn("", "%s; closing the connection: %v", f.Saw, err)
		}
		return f
	}
}

func lookEngine(_ context.Context, e *docker.Engine) finding {
	i := e.Info()
	if olderAPI(i.API, oldestAPI) {
		return problem("Upgrade to Docker 20.10 or newer.", "engine %s speaks API %s, older than %s", i.Version, i.API, oldestAPI)
	}
	return ok("engine %s (API %s) at %s: %g cores, %s", i.Version, i.API, i.Host, i.CPUs, text.Size(i.Memory))
}

// olderAPI compares two versions such as "1.41".
func olderAPI(a, b string) bool {
	numbers := func(v string) (major, minor int) {
		x, y, _ := strings.Cut(v, ".")
		major, _ = strconv.Atoi(x)
		minor, _ = strconv.Atoi(y)
		return major, minor
	}
	a1, a2 := numbers(a)
	b1, b2 := numbers(b)
	return a1 < b1 || a1 == b1 && a2 < b2
}

func lookStorage(_ context.Context, e *docker.Engine) finding {
	i := e.Info()
	if i.Storage == "vfs" {
		return warn("Use a file system that overlay2 works on (ext4, XFS): vfs copies every layer.", "storage driver %s", i.Storage)
	}
	return ok("storage driver %s", i.Storage)
}

func lookCgroups(_ context.Context, e *docker.Engine) finding {
	i := e.Info()
	var missing []string
	for what, can := range map[string]bool{"CPU": i.Can.CPULimit, "memory": i.Can.MemoryLimit, "process": i.Can.PidsLimit} {
		if !can {
			missing = append(missing, what)
		}
	}
	if len(missing) > 0 {
		return problem("Boot with the missing cgroup controllers (cgroup_enable=memory).", "the engine cannot enforce limits on: %s", strings.Join(missing, ", "))
	}
	return ok("cgroup v%s: limits hold", i.Cgroup)
}

func lookIsolation(_ context.Context, e *docker.Engine) finding {
	i := e.Info()
	switch {
	case !i.Can.Seccomp:
		return problem("Use an engine and a kernel with seccomp.", "the engine has no seccomp: sandboxes may make any system call")
	case !i.Can.Init:
		return warn("Install tini (package tini), which the engine uses as process 1.", "the engine has no init; the guest takes its place")
	}
	extra := ""
	if i.Can.AppArmor {
		extra = ", AppArmor"
	}
	return ok("seccomp%s, an init as process 1", extra)
}

func lookBaseImage(ctx context.Context, e *docker.Engine) finding {
	has, err := e.HasImage(ctx, baseImage)
	if err != nil {
		return problem("Look at the engine.", "%s", fault.Message(err))
	}
	if has {
		return ok("%s is there", baseImage)
	}
	if e.Offered(ctx, baseImage) {
		return ok("a registry has %s; it is pulled at the first build", baseImage)
	}
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
		return ok("no registry gives %s; it is made from Debian's packages at the first build", baseImage)
	}
	return problem("Install mmdebstrap (and debian-archive-keyring): the image is then made from Debian's packages.", "no registry gives %s", baseImage)
}
