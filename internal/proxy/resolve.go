package proxy

import (
	"context"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// resolve finds out which service a host belongs to that is no sandbox's own, and the port that the service declares. All
// other targets are given back as they are. Where several sandboxes have such a service, the one that had it first has the
// host (sandbox.HadFirst): none that is made or declared later takes an address away.
func resolve(ctx context.Context, in Finder, t hostname.Target) (hostname.Target, error) {
	ways := t.Divide()
	if len(ways) == 0 {
		return t, nil
	}
	if t.Kind == hostname.Terminal {
		if _, err := in.Sandbox(ctx, t.Name); !fault.Is(err, fault.NotFound) {
			return t, err
		}
	}
	var first sandbox.Sandbox
	for _, way := range ways {
		sb, err := in.Sandbox(ctx, way.Name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return t, err
		}
		if way.Port = portOf(in.Services(sb), way.Service); way.Port == 0 || first.ID != "" && !sandbox.HadFirst(sb, way.Service, first, t.Service) {
			continue
		}
		first, t = sb, way
	}
	return t, nil
}

// portOf gives the port of the service of that name; 0 when there is none, or it has none.
func portOf(services []catalog.Service, name string) int {
	for _, s := range services {
		if s.Name == name {
			return s.Port
		}
	}
	return 0
}

// moved reports whether the host leads elsewhere by now: a service may be given another port, or be removed.
func (v visit) moved(ctx context.Context) bool {
	if v.target.Kind != hostname.Service {
		return false
	}
	t, err := v.cfg.Hosts.Parse(v.r.Host)
	if err == nil {
		t, err = resolve(ctx, v.cfg.Sandboxes, t)
	}
	return err == nil && t != v.target
}
