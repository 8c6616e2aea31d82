package sandboxtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// MemHolds is a sandbox.HoldStore in memory, which fails when its MemStore is told to.
type MemHolds struct{ m *MemStore }

// Holds gives the store of holds on m's sandboxes.
func (m *MemStore) Holds() *MemHolds { return &MemHolds{m} }

// PutHold implements sandbox.HoldStore.
func (s *MemHolds) PutHold(ctx context.Context, h sandbox.Hold) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.m.enter(ctx, "PutHold"); err != nil {
		return err
	}
	if _, ok := s.m.rows[h.SandboxID]; !ok {
		return fault.New(fault.NotFound, "The sandbox has been deleted.")
	}
	if err := keepable(h.Created, h.Expires); err != nil {
		return err
	}
	h.Created, h.Expires = kept(h.Created), kept(h.Expires)
	s.m.holds[h.ID] = h
	return nil
}

// DeleteHold implements sandbox.HoldStore.
func (s *MemHolds) DeleteHold(ctx context.Context, id string) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.m.enter(ctx, "DeleteHold"); err != nil {
		return err
	}
	delete(s.m.holds, id)
	return nil
}

// DeleteExpiredHolds implements sandbox.HoldStore.
func (s *MemHolds) DeleteExpiredHolds(ctx context.Context, at time.Time) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.m.enter(ctx, "DeleteExpiredHolds"); err != nil {
		return err
	}
	maps.DeleteFunc(s.m.holds, func(_ string, h sandbox.Hold) bool { return !h.Expires.After(at) })
	return nil
}

// Holds implements sandbox.HoldStore.
func (s *MemHolds) Holds(ctx context.Context) ([]sandbox.Hold, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.m.enter(ctx, "Holds"); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(s.m.holds), func(a, b sandbox.Hold) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}
