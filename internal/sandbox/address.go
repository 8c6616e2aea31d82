package sandbox

import (
	"context"
	"slices"
	"strings"
	"sync"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// idePrefix begins the addresses of VS Code.
const idePrefix = "code-"

// addresses are the labels that operations under way are about to use, so that a sandbox cannot be given a name while
// a service is given the same address: each says first what it is going to take, and looks second.
type addresses struct {
	mu       sync.Mutex
	names    map[string]int // of sandboxes that are being made
	services map[string]int // of services that are being declared
}

// ServiceHost is the label under which a service of a sandbox is reached beside its port, when no sandbox has that name.
func ServiceHost(service, sandbox string) string { return service + "-" + sandbox }

// take announces labels in one of the two maps, and gives what withdraws them.
func (a *addresses) take(to *map[string]int, labels ...string) (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *to == nil {
		*to = map[string]int{}
	}
	for _, l := range labels {
		(*to)[l]++
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, l := range labels {
			if (*to)[l]--; (*to)[l] == 0 {
				delete(*to, l)
			}
		}
	})
}

// taken reports whether one of labels is announced in m.
func (a *addresses) taken(m *map[string]int, labels ...string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range labels {
		if (*m)[l] > 0 {
			return l, true
		}
	}
	return "", false
}

// takeName reserves a sandbox's name until release. Conflict when it is the address of a service of a sandbox that
// there is; the message does not say whose.
func (m *Manager) takeName(ctx context.Context, name string) (release func(), err error) {
	release = m.own.addresses.take(&m.own.addresses.names, name)
	taken := fault.Error{Kind: fault.Conflict, Field: "name",
		Message: "The name " + name + " is the address of another sandbox's service. Choose another name."}
	if _, ok := m.own.addresses.taken(&m.own.addresses.services, name); ok {
		release()
		return nil, &taken
	}
	for at := range name {
		if name[at] != '-' {
			continue
		}
		owner, err := m.rows.ByName(ctx, name[at+1:])
		if err != nil && !fault.Is(err, fault.NotFound) {
			release()
			return nil, err
		}
		if err == nil && slices.ContainsFunc(m.Services(owner), func(s catalog.Service) bool { return s.Port != 0 && s.Name == name[:at] }) {
			release()
			return nil, &taken
		}
	}
	return release, nil
}

// takeHosts reserves the addresses of the services that list has and now does not until release. Conflict when one is a
// sandbox's name.
func (m *Manager) takeHosts(ctx context.Context, name string, now, list []catalog.Service) (release func(), err error) {
	var services, hosts []string
	for _, s := range list {
		known := slices.ContainsFunc(now, func(o catalog.Service) bool { return o.Name == s.Name && o.Port != 0 })
		if s.Port != 0 && !known {
			services, hosts = append(services, s.Name), append(hosts, ServiceHost(s.Name, name))
		}
	}
	release = m.own.addresses.take(&m.own.addresses.services, hosts...)
	for i, host := range hosts {
		_, err := m.rows.ByName(ctx, host)
		if _, coming := m.own.addresses.taken(&m.own.addresses.names, host); coming {
			err = nil
		}
		if fault.Is(err, fault.NotFound) {
			continue
		}
		release()
		if err != nil {
			return nil, err
		}
		return nil, &fault.Error{Kind: fault.Conflict, Field: "name",
			Message: "The service " + services[i] + " would be reached at " + host + ", which is a sandbox's name. Give the service another name."}
	}
	return release, nil
}

// checkName reports a name that VS Code's addresses are kept for.
func checkName(name string) error {
	if strings.HasPrefix(name, idePrefix) {
		return fault.Field("name", "Names that begin with %s are kept for VS Code's addresses. Choose another name.", idePrefix)
	}
	return nil
}
