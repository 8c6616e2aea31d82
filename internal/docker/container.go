package docker

import (
	"math"
	"net/netip"
	"path"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/docker/api/types/versions"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// What every container gets.
const (
	maxOpenFiles = 65536            // ample for servers and file watchers; less where the engine has less
	sharedMemory = 64 << 20         // /dev/shm, within the memory limit
	oomScore     = 500              // when the host runs out of memory, sandboxes go before its own services
	shutdownTime = 10 * time.Second // between the engine's own end and a sandbox's
	logSize      = "2m"             // what the guest itself prints; twice that is kept
)

// caVariables name a CA bundle to the programs that do not read the system's.
var caVariables = []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"}

// spec is a container as the engine is asked for it.
type spec struct {
	config  *container.Config
	host    *container.HostConfig
	network *network.NetworkingConfig
}

// spec gives b's container. addr is its address; an invalid one means no network.
func (e *Engine) spec(b sandbox.ContainerSpec, addr netip.Addr) spec {
	labels := e.labels(b)
	labels[labelVolumes], labels[labelMade] = sandbox.MountText(b.Volumes), "" // also when there are none: the image may have such labels
	for k, v := range b.Labels {
		if _, own := labels[k]; !own {
			labels[k] = v
		}
	}
	timeout := int(shutdownTime / time.Second)
	s := spec{
		config: &container.Config{
			Hostname: b.Name, User: "0:0", WorkingDir: "/", Env: e.env(b), Image: b.Image, Labels: labels,
			Entrypoint: strslice.StrSlice{wire.GuestPath}, // the image's command falls with its entrypoint
			StopSignal: "SIGTERM", StopTimeout: &timeout,
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // the image's would run as root, unasked
		},
		host: e.host(b),
	}
	if addr.IsValid() {
		s.host.NetworkMode = container.NetworkMode(e.network.name)
		s.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{e.network.name: endpoint(addr)}}
	}
	return s
}

// endpoint is a container's end on the sandboxes' network.
func endpoint(addr netip.Addr) *network.EndpointSettings {
	return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr.String()}}
}

func (e *Engine) host(b sandbox.ContainerSpec) *container.HostConfig {
	f := e.facts.Load()
	init := f.info.Can.Init && !e.c.KeepMemory // its file is one that CRIU cannot mount again; the guest is its own then
	h := &container.HostConfig{
		NetworkMode:   network.NetworkNone,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:     logConfig(f.localLog),
		IpcMode:       container.IPCModePrivate,
		ShmSize:       sharedMemory,
		OomScoreAdj:   oomScore,
		Init:          &init,
		Mounts:        e.mountsFor(b),
		Resources:     resources(b.Limits, f.info),
	}
	if !versions.LessThan(f.info.API, "1.41") {
		h.CgroupnsMode = container.CgroupnsModePrivate
	}
	harden(h, b.Profile, b.Namespaces)
	return h
}

func logConfig(local bool) container.LogConfig {
	driver := "json-file"
	if local {
		driver = "local"
	}
	return container.LogConfig{Type: driver, Config: map[string]string{"max-size": logSize, "max-file": "2"}}
}

func (e *Engine) mountsFor(b sandbox.ContainerSpec) []mount.Mount {
	m := []mount.Mount{
		{Type: mount.TypeBind, Source: e.c.GuestBinary, Target: wire.GuestPath, ReadOnly: true},
		{Type: mount.TypeBind, Source: b.LinkPath, Target: path.Dir(wire.SocketPath), ReadOnly: true},
		{Type: mount.TypeVolume, Source: e.resource(b.ID), Target: wire.HomePath,
			VolumeOptions: &mount.VolumeOptions{Labels: e.labels(b)}},
	}
	if e.c.IDEFolder != "" {
		m = append(m, mount.Mount{Type: mount.TypeBind, Source: e.c.IDEFolder, Target: wire.IDEPath, ReadOnly: true})
	}
	if e.c.CAFile != "" {
		m = append(m, mount.Mount{Type: mount.TypeBind, Source: e.c.CAFile, Target: wire.CAPath, ReadOnly: true})
	}
	return append(m, e.volumeMounts(b)...)
}

// env is b's environment, sorted. What b itself says of certificates wins.
func (e *connection) env(b sandbox.ContainerSpec) []string {
	var out []string
	for k, v := range b.Env {
		out = append(out, k+"="+v)
	}
	if e.c.CAFile != "" {
		for _, k := range caVariables {
			if _, set := b.Env[k]; !set {
				out = append(out, k+"="+wire.CAPath)
			}
		}
	}
	slices.Sort(out)
	return out
}

// resources are the limits, as the engine applies them. Swap beyond memory is none, so that a limit on memory is one.
func resources(l sandbox.Limits, i Info) container.Resources {
	r := container.Resources{
		NanoCPUs: int64(math.Round(l.CPUs * 1e9)), Memory: l.Memory, PidsLimit: &l.Pids,
		Ulimits: []*container.Ulimit{{Name: "core"}},
	}
	if i.Can.SwapLimit {
		r.MemorySwap = l.Memory
	}
	if n := int64(min(i.NoFile, maxOpenFiles)); n > 0 {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nofile", Soft: n, Hard: n})
	}
	return r
}
