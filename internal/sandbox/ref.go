package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// Ref names one sandbox for good: it reaches that sandbox or none, even when another has its name by then. Only a row
// gives one, so the holder of a Ref has seen which sandbox it is.
type Ref struct{ id, name string }

// Ref gives what names s for good.
func (s Sandbox) Ref() Ref { return Ref{s.ID, s.Name} }

// ID is the sandbox's, never reused.
func (r Ref) ID() string { return r.id }

// Name is the sandbox's. After it has been deleted, another one may have it.
func (r Ref) Name() string { return r.name }

// Current gives the row of a sandbox, from memory when it was asked for before. Gone once it is deleted, also when another
// one has its name, and of a pooled one, which is nobody's.
func (m *Manager) Current(ctx context.Context, ref Ref) (Sandbox, error) {
	s, err := m.rows.ByName(ctx, ref.name)
	if fault.Is(err, fault.NotFound) || err == nil && (s.ID != ref.id || s.Pooled) {
		return Sandbox{}, m.gone(ctx, ref)
	}
	return s, err
}

// gone says that a sandbox was deleted, and when if that is known.
func (m *Manager) gone(ctx context.Context, ref Ref) error {
	if t, err := m.Tombstone(ctx, ref.name); err == nil && t.ID == ref.id {
		return t.Gone()
	}
	return fault.New(fault.Gone, "%s was deleted.", ref.name)
}

// Gone says that a sandbox was deleted.
func (t Tombstone) Gone() error {
	return fault.New(fault.Gone, "%s was deleted on %s, with everything in it. It does not come back.",
		t.Name, t.Deleted.UTC().Format("2 January 2006 at 15:04 MST"))
}

// change does its work on a sandbox in its turn; s is the row as it is then. See operation.
type change func(ctx context.Context, s Sandbox, accept func(Sandbox)) error

// on makes an operation of a change to the sandbox of ref: Gone when it is deleted by the time of its turn.
func (m *Manager) on(ref Ref, c change) operation {
	return func(ctx context.Context, accept func(Sandbox)) error {
		s, err := m.Current(ctx, ref)
		if err != nil {
			return err
		}
		return c(ctx, s, accept)
	}
}

// usable refuses a sandbox that is on its way out.
func usable(s Sandbox) error {
	if s.State == Deleting {
		return fault.New(fault.Conflict, "%s is being deleted.", s.Name)
	}
	return nil
}
