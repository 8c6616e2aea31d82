package sandbox

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

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

// taken reports whether a label is announced in m, by more than so many.
func (a *addresses) taken(m *map[string]int, label string, but int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return (*m)[label] > but
}

// divisions gives the ways to read a label as <service>-<sandbox>.
func divisions(label string) iter.Seq2[string, string] {
	return func(yield func(service, sandbox string) bool) {
		for at := range label {
			if label[at] == '-' && !yield(label[:at], label[at+1:]) {
				return
			}
		}
	}
}

// serves reports whether list has a service of that name with a port.
func serves(list []catalog.Service, name string) bool {
	return slices.ContainsFunc(list, func(s catalog.Service) bool { return s.Port != 0 && s.Name == name })
}

// isService reports whether a label is the address of a service of a sandbox other than the one called but.
func (m *Manager) isService(ctx context.Context, label, but string) (bool, error) {
	for service, name := range divisions(label) {
		if name == but {
			continue
		}
		s, err := m.rows.ByName(ctx, name)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return false, err
		}
		if err == nil && serves(m.Services(s), service) {
			return true, nil
		}
	}
	return false, nil
}

// takeName reserves a sandbox's name until release. Conflict when it is the address of a service of a sandbox that
// there is; the message does not say whose.
func (m *Manager) takeName(ctx context.Context, name string) (release func(), err error) {
	release = m.own.addresses.take(&m.own.addresses.names, name)
	taken := fault.Error{Kind: fault.Conflict, Field: "name",
		Message: "The name " + name + " is the address of another sandbox's service. Choose another name."}
	if m.own.addresses.taken(&m.own.addresses.services, name, 0) {
		release()
		return nil, &taken
	}
	held, err := m.isService(ctx, name, "")
	if err == nil && held {
		err = &taken
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// takeHosts reserves the addresses of the services that list has and now does not until release. Conflict when one is a
// sandbox's name or the address of another sandbox's service; of that one nothing more is told.
//
// Only what somebody declares is refused. What a template brings is not, because no create may fail by what others have
// declared: such a service has no address of its own then, see HadFirst.
func (m *Manager) takeHosts(ctx context.Context, name string, now, list []catalog.Service) (release func(), err error) {
	var services, hosts []string
	for _, s := range list {
		if s.Port != 0 && !serves(now, s.Name) {
			services, hosts = append(services, s.Name), append(hosts, ServiceHost(s.Name, name))
		}
	}
	release = m.own.addresses.take(&m.own.addresses.services, hosts...)
	for i, host := range hosts {
		use, err := m.useOf(ctx, host, name)
		if err == nil && use != "" {
			err = &fault.Error{Kind: fault.Conflict, Field: "name",
				Message: "The service " + services[i] + " would be reached at " + host + ", which is " + use + ". Give the service another name."}
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// useOf says what a host that a service of the sandbox called name is to have is already, "" for nothing.
func (m *Manager) useOf(ctx context.Context, host, name string) (string, error) {
	_, err := m.rows.ByName(ctx, host)
	if err == nil || m.own.addresses.taken(&m.own.addresses.names, host, 0) {
		return "a sandbox's name", nil
	}
	if !fault.Is(err, fault.NotFound) {
		return "", err
	}
	held, err := m.isService(ctx, host, name)
	if held || m.own.addresses.taken(&m.own.addresses.services, host, 1) { // announced by ourselves, and once more
		return "in use already", nil
	}
	return "", err
}

// HasHost reports whether the host of a sandbox's service leads to it: no sandbox has that very name, and no other had a
// service at the same host first. It is answered from memory, as the proxy answers it for every request.
func (m *Manager) HasHost(ctx context.Context, name, service string) (bool, error) {
	s, err := m.Sandbox(ctx, name)
	if err != nil || !serves(m.Services(s), service) {
		return false, err
	}
	host := ServiceHost(service, name)
	if _, err := m.Sandbox(ctx, host); !fault.Is(err, fault.NotFound) {
		return false, err
	}
	for other, otherName := range divisions(host) {
		o, err := m.Sandbox(ctx, otherName)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return false, err
		}
		if err == nil && o.ID != s.ID && serves(m.Services(o), other) && HadFirst(o, other, s, service) {
			return false, nil
		}
	}
	return true, nil
}

// HadFirst reports whether a had its service before b had the other, where both would be reached at the same host: the
// earlier one has it. A service counts from when it was declared, and one that came with the sandbox, or that an admin has
// added to its template since, from when the sandbox was made. So nobody takes an address away by declaring something now,
// however old their sandbox is.
func HadFirst(a Sandbox, service string, b Sandbox, other string) bool {
	if d := a.since(service).Compare(b.since(other)); d != 0 {
		return d < 0
	}
	if d := a.Created.Compare(b.Created); d != 0 {
		return d < 0
	}
	return a.ID < b.ID
}

// since is when a service began to count.
func (s Sandbox) since(service string) time.Time {
	if at, ok := s.Own.Since[service]; ok {
		return at
	}
	return s.Created
}

// sinceWhen gives the Own.Since of s when the services that count change from now to next at a time.
func (s Sandbox) sinceWhen(now, next []catalog.Service, at time.Time) map[string]time.Time {
	var out map[string]time.Time
	for _, one := range next {
		began, known := s.Own.Since[one.Name]
		if !serves(now, one.Name) {
			began, known = at, true
		}
		if one.Port == 0 || !known {
			continue
		}
		if out == nil {
			out = map[string]time.Time{}
		}
		out[one.Name] = began
	}
	return out
}

// checkName reports a name that VS Code's addresses are kept for.
func checkName(name string) error {
	if strings.HasPrefix(name, idePrefix) {
		return fault.Field("name", "Names that begin with %s are kept for VS Code's addresses. Choose another name.", idePrefix)
	}
	return nil
}
