package sandbox

import "sandboxd/internal/fault"

// Ref names one sandbox for good: it reaches that sandbox or none, even when another has its name by then. Only a row
// gives one, so the holder of a Ref has seen which sandbox it is.
type Ref struct{ id, name string }

// Ref gives what names s for good.
func (s Sandbox) Ref() Ref { return Ref{s.ID, s.Name} }

// ID is the sandbox's, never reused.
func (r Ref) ID() string { return r.id }

// Name is the sandbox's. After it has been deleted, another one may have it.
func (r Ref) Name() string { return r.name }

// Gone says that a sandbox was deleted.
func (t Tombstone) Gone() error {
	return fault.New(fault.Gone, "%s was deleted on %s, with everything in it. It cannot be restored.",
		t.Name, t.Deleted.UTC().Format("2 January 2006 at 15:04 MST"))
}
