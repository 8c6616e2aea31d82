package main

import (
	"context"
	"path/filepath"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/metrics/cadvisor"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

// lookFigures tells where the figures of sandboxes come from, and why from there.
func lookFigures(ctx context.Context, c *Config) finding {
	if c.CAdvisor != "" {
		return lookCAdvisor(ctx, c)
	}
	return withEngine(func(_ context.Context, e *docker.Engine) finding {
		groups, why := docker.NewGroups(e)
		if groups == nil {
			return warn("Run cAdvisor on the engine's host and name it as --cadvisor, if that is too seldom or costs the engine too much.",
				"figures of sandboxes come from the engine's statistics, every %s: %s", statsEvery, clause(why))
		}
		return ok("figures of sandboxes come from the cgroup files, every %s: sandboxd is on the engine's host", metrics.FineStep)
	})(ctx, c)
}

// lookCAdvisor asks the cAdvisor that is configured.
func lookCAdvisor(ctx context.Context, c *Config) finding {
	instance, err := sqlite.ReadInstance(filepath.Join(c.Data, sqlite.InstanceFile))
	if err != nil {
		return problem("Start sandboxd: it recovers what can be read.", "the records cannot be read: %v", err)
	}
	source, err := c.cadvisor(instance)
	if err != nil {
		return problem("Mend --cadvisor.", "%s", fault.Message(err))
	}
	const mend = "Start it, or leave --cadvisor out: figures then come from the cgroup files or the engine."
	version, err := source.Version(ctx)
	if err != nil {
		return warn(mend, "figures of sandboxes are missing: %s", fault.Message(err))
	}
	told, running, err := toldOf(ctx, source, instance)
	switch {
	case err != nil:
		return warn(mend, "figures of sandboxes may be missing: %s", fault.Message(err))
	case told == 0 && running > 0:
		return warn("Run it on the engine's host, and let it reach the engine's socket (its flag --docker).",
			"figures of sandboxes are missing: cAdvisor %s at %s knows none of the %d that run", version, source.Address(), running)
	}
	return ok("figures of sandboxes come from cAdvisor %s at %s, every %s: --cadvisor names it", version, source.Address(), cadvisorEvery)
}

// toldOf gives how many of an instance's running sandboxes a cAdvisor knows.
func toldOf(ctx context.Context, source *cadvisor.Source, instance string) (told, running int, err error) {
	if instance == "" { // there are no sandboxes yet
		return 0, 0, nil
	}
	e, err := docker.Open(ctx, docker.Config{Instance: instance})
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	all, err := e.List(ctx)
	if err != nil {
		return 0, 0, err
	}
	ids := runningOnes(all)
	found, err := source.Read(ctx, ids)
	return len(found), len(ids), err
}

func runningOnes(all []sandbox.Instance) (ids []string) {
	for _, i := range all {
		if i.Running {
			ids = append(ids, i.ID)
		}
	}
	return ids
}
