package docker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// minAPI is the oldest interface that this package is written for: that of Docker 19.03.
const minAPI = "1.40"

// Info is what a person, or a limit, wants to know of the engine and its host.
type Info struct {
	Version string // of the engine
	API     string // the interface spoken with it
	Host    string // the engine's address
	System  string // operating system of its host
	Kernel  string
	Root    string  // the folder of its images and volumes, on its host
	Storage string  // storage driver
	Cgroup  string  // "1" or "2"
	Driver  string  // who makes its cgroups: "systemd", "cgroupfs" or "none"
	CPUs    float64 // cores
	Memory  int64   // bytes
	NoFile  uint64  // the engine's own bound on open files per process; 0 when it cannot be told
	Can     Capabilities
}

// Capabilities is what the engine can enforce and do.
type Capabilities struct {
	MemoryLimit  bool
	SwapLimit    bool
	CPULimit     bool
	PidsLimit    bool
	Seccomp      bool
	AppArmor     bool
	Init         bool // an init as process 1
	Remapped     bool // root in a sandbox is another user outside
	Rootless     bool // the engine itself is no root
	Experimental bool // such as checkpoints
}

// facts is what the other parts of this package need to know of the engine.
type facts struct {
	info     Info
	localLog bool      // it has the log driver "local"
	layers   bool      // it keeps images as layers of its own, not in containerd
	asked    time.Time // the engine's clock when it was asked
}

// Info tells what the engine was when it was last connected to.
func (e *connection) Info() Info { return e.facts.Load().info }

// Ping asks whether the engine answers. Unavailable or Timeout when it does not.
func (e *connection) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := e.client.Load().Ping(ctx)
	return classify(err, "answer")
}

func learn(ctx context.Context, cli *client.Client) (*facts, error) {
	cli.NegotiateAPIVersion(ctx)
	i, err := cli.Info(ctx)
	if err != nil {
		return nil, classify(err, "say what it is")
	}
	if api := cli.ClientVersion(); versions.LessThan(api, minAPI) {
		return nil, tooOld(i.ServerVersion, api)
	}
	asked, err := time.Parse(time.RFC3339Nano, i.SystemTime)
	if err != nil {
		asked = time.Now()
	}
	f := &facts{info: newInfo(i, cli), localLog: slices.Contains(i.Plugins.Log, "local"), asked: asked, layers: !inContainerd(i)}
	return f, nil
}

func newInfo(i system.Info, cli *client.Client) Info {
	out := Info{
		Version: i.ServerVersion, API: cli.ClientVersion(), Host: cli.DaemonHost(), System: i.OperatingSystem,
		Kernel: i.KernelVersion, Root: i.DockerRootDir, Storage: i.Driver, Cgroup: i.CgroupVersion, Driver: i.CgroupDriver, CPUs: float64(i.NCPU), Memory: i.MemTotal,
		Can: Capabilities{
			MemoryLimit: i.MemoryLimit, SwapLimit: i.SwapLimit, CPULimit: i.CPUCfsQuota, PidsLimit: i.PidsLimit,
			Seccomp: hasOption(i, "seccomp"), AppArmor: hasOption(i, "apparmor"),
			Init:     i.InitBinary != "" && i.InitCommit.ID != "N/A",
			Remapped: hasOption(i, "userns"), Rootless: hasOption(i, "rootless"),
			Experimental: i.ExperimentalBuild,
		},
	}
	if strings.HasPrefix(out.Host, "unix://") {
		out.NoFile = openFilesLimit("/proc")
	}
	return out
}

// hasOption looks for one of the engine's security options, "name=seccomp,profile=default".
func hasOption(i system.Info, name string) bool {
	return slices.ContainsFunc(i.SecurityOptions, func(o string) bool {
		return slices.Contains(strings.Split(o, ","), "name="+name)
	})
}

// inContainerd says whether an engine keeps its images in containerd.
func inContainerd(i system.Info) bool {
	return slices.ContainsFunc(i.DriverStatus, func(s [2]string) bool {
		return s[0] == "driver-type" && strings.HasPrefix(s[1], "io.containerd.snapshotter.")
	})
}
