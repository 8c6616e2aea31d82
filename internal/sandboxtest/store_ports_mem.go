package sandboxtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// MemPorts is a sandbox.PortStore in memory, which fails when its MemStore is told to.
type MemPorts struct{ m *MemStore }

// memPorts is what a MemPorts keeps.
type memPorts struct {
	rules  map[memPort]sandbox.PortRule
	shares map[string]sandbox.Share // by id
}

type memPort struct {
	sandbox string
	port    int
}

func newMemPorts() memPorts {
	return memPorts{rules: map[memPort]sandbox.PortRule{}, shares: map[string]sandbox.Share{}}
}

// deleteOf forgets what belongs to a sandbox.
func (p memPorts) deleteOf(id string) {
	maps.DeleteFunc(p.rules, func(at memPort, _ sandbox.PortRule) bool { return at.sandbox == id })
	maps.DeleteFunc(p.shares, func(_ string, s sandbox.Share) bool { return s.SandboxID == id })
}

// Ports gives the store of the rules and shares of the ports of m's sandboxes.
func (m *MemStore) Ports() *MemPorts { return &MemPorts{m} }

// enter locks the store, for a method that keeps something of a sandbox when id is not "". The caller unlocks it.
func (s *MemPorts) enter(ctx context.Context, method, id string) error {
	s.m.mu.Lock()
	if err := s.m.enter(ctx, method); err != nil {
		return err
	}
	if _, ok := s.m.rows[id]; !ok && id != "" {
		return fault.New(fault.NotFound, "The sandbox has been deleted.")
	}
	return nil
}

// PutRule implements sandbox.PortStore.
func (s *MemPorts) PutRule(ctx context.Context, r sandbox.PortRule) error {
	defer s.m.mu.Unlock()
	if err := s.enter(ctx, "PutRule", r.SandboxID); err != nil {
		return err
	}
	s.m.ports.rules[memPort{r.SandboxID, r.Port}] = r
	return nil
}

// DeleteRule implements sandbox.PortStore.
func (s *MemPorts) DeleteRule(ctx context.Context, sandboxID string, port int) error {
	defer s.m.mu.Unlock()
	if err := s.enter(ctx, "DeleteRule", ""); err != nil {
		return err
	}
	delete(s.m.ports.rules, memPort{sandboxID, port})
	maps.DeleteFunc(s.m.ports.shares, func(_ string, h sandbox.Share) bool { return h.SandboxID == sandboxID && h.Port == port })
	return nil
}

// PutShare implements sandbox.PortStore.
func (s *MemPorts) PutShare(ctx context.Context, h sandbox.Share) error {
	defer s.m.mu.Unlock()
	if err := s.enter(ctx, "PutShare", h.SandboxID); err != nil {
		return err
	}
	if err := keepable(h.Created, h.Expires); err != nil {
		return err
	}
	for _, other := range s.m.ports.shares {
		if other.ID == h.ID || other.Hash == h.Hash {
			return fault.New(fault.Conflict, "There is such a share already.")
		}
	}
	at := memPort{h.SandboxID, h.Port}
	if _, ok := s.m.ports.rules[at]; !ok {
		s.m.ports.rules[at] = sandbox.PortRule{SandboxID: h.SandboxID, Port: h.Port, Visibility: sandbox.Shared}
	}
	h.Created, h.Expires = kept(h.Created), kept(h.Expires)
	s.m.ports.shares[h.ID] = h
	return nil
}

// DeleteShare implements sandbox.PortStore.
func (s *MemPorts) DeleteShare(ctx context.Context, id string) error {
	defer s.m.mu.Unlock()
	if err := s.enter(ctx, "DeleteShare", ""); err != nil {
		return err
	}
	delete(s.m.ports.shares, id)
	return nil
}

// Rules implements sandbox.PortStore.
func (s *MemPorts) Rules(ctx context.Context) ([]sandbox.PortRule, []sandbox.Share, error) {
	defer s.m.mu.Unlock()
	if err := s.enter(ctx, "Rules", ""); err != nil {
		return nil, nil, err
	}
	rules := slices.SortedFunc(maps.Values(s.m.ports.rules), func(a, b sandbox.PortRule) int {
		return cmp.Or(cmp.Compare(a.SandboxID, b.SandboxID), cmp.Compare(a.Port, b.Port))
	})
	shares := slices.SortedFunc(maps.Values(s.m.ports.shares), func(a, b sandbox.Share) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return rules, shares, nil
}
