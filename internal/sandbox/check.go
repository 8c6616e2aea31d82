package sandbox

import (
	"maps"
	"math"
	"regexp"
	"strings"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/text"
)

// The least that a sandbox can work with.
const (
	minCPUs   = 0.1
	minMemory = 64 << 20
	minPids   = 32
	maxPids   = 32768
)

// The bounds on an environment.
const (
	maxEnvCount = 200
	maxEnvBytes = 64 << 10
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// check reports the first thing that is wrong with r, as an Invalid fault with the field it is about.
func (r Request) check() error {
	if r.Name != "" {
		if err := hostname.CheckName(r.Name); err != nil {
			return err
		}
	}
	if err := CheckLabel(r.Label); err != nil {
		return err
	}
	if (r.Template == "") == (r.Image == "") {
		return fault.Field("template", "Give either a template or an image, and only one of them.")
	}
	return CheckEnv(r.Env)
}

// plan gives the sandbox that a request asks for.
func (g *settings) plan(r Request) (Sandbox, error) {
	err := r.check()
	if err != nil {
		return Sandbox{}, err
	}
	if r.Rest, err = checkRest(r.Rest); err != nil {
		return Sandbox{}, err
	}
	spec := Spec{Template: r.Template, Image: r.Image, Env: maps.Clone(r.Env)}
	t, err := g.template(spec)
	if err != nil {
		return Sandbox{}, err
	}
	if spec.Limits, err = g.limits(r.Limits, t.Size); err != nil {
		return Sandbox{}, err
	}
	now := stamp()
	return Sandbox{
		ID: NewID(), Name: r.Name, Label: text.Trim(r.Label), Owner: r.Owner, Spec: spec, Rest: r.Rest,
		State: Creating, Created: now, Changed: now,
	}, nil
}

// CheckEnv reports the first thing that is wrong with environment variables of a sandbox or a command,
// as an Invalid fault of the field "env": a name that is none, a NUL byte, more than 200, or 64 KiB in all.
func CheckEnv(env map[string]string) error {
	if len(env) > maxEnvCount {
		return fault.Field("env", "There are more than %d environment variables.", maxEnvCount)
	}
	size := 0
	for k, v := range env {
		if !envName.MatchString(k) {
			return fault.Field("env", "%.40q is not a name for an environment variable: use letters, digits and _, and begin with no digit.", k)
		}
		if strings.ContainsRune(v, 0) {
			return fault.Field("env", "The value of %s has a NUL byte in it.", k)
		}
		size += len(k) + len(v)
	}
	if size > maxEnvBytes {
		return fault.Field("env", "The environment is larger than 64 KiB in all.")
	}
	return nil
}

// limits fills in what l leaves open from the template's size, cut to what the host has. The size of a home is limited only where there
// is a storage pool.
func (g *settings) limits(l Limits, d catalog.Size) (Limits, error) {
	host := g.host
	if l.CPUs == 0 {
		l.CPUs = min(d.CPUs, host.CPUs)
	}
	if l.Memory == 0 {
		l.Memory = min(d.Memory, host.Memory)
	}
	if l.Pids == 0 {
		l.Pids = d.Pids
	}
	if l.Disk == 0 && g.quota != nil {
		l.Disk = d.Disk
	}
	if err := l.check(host); err != nil {
		return l, err
	}
	return l, g.checkDisk(l.Disk)
}

// within gives limits that this host can keep; those of another host may be larger, and it may have a storage pool.
func (g *settings) within(l Limits) Limits {
	l = Limits{CPUs: min(l.CPUs, g.host.CPUs), Memory: min(l.Memory, g.host.Memory), Pids: min(l.Pids, maxPids), Disk: min(l.Disk, maxDisk)}
	if g.quota == nil {
		l.Disk = 0
	}
	return l
}

func (l Limits) check(host Limits) error {
	const mib = 1 << 20
	switch {
	case math.IsNaN(l.CPUs) || l.CPUs < minCPUs || l.CPUs > host.CPUs:
		return fault.Field("cpus", "CPUs must be between %g and %g, the cores of this host.", minCPUs, host.CPUs)
	case l.Memory < minMemory || l.Memory > host.Memory:
		return fault.Field("memory", "Memory must be between %d MiB and %d MiB, what this host has.", minMemory/mib, host.Memory/mib)
	case l.Pids < minPids || l.Pids > maxPids:
		return fault.Field("pids", "The number of processes must be between %d and %d.", minPids, maxPids)
	}
	return nil
}
