package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

var errDeleted = fault.New(fault.Gone, "It was deleted before it was ready.")

// Delete ends a sandbox and removes everything of it, its volume too. It interrupts a create, a start, a wake or a
// falling asleep under way. Gone when it is deleted already.
func (m *Manager) Delete(ctx context.Context, ref Ref) (Sandbox, error) {
	if s, err := m.Current(ctx, ref); err != nil {
		return Sandbox{}, err
	} else if s.State == Creating || s.State == Starting || s.State.Resting() {
		m.turns.interrupt(ref.name, errDeleted)
	}
	return m.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		s, err := m.set(ctx, s, Deleting, "")
		if err != nil {
			return err
		}
		accept(s)
		return m.remove(ctx, s)
	})
}

// remove finishes a delete whose intent is kept: first everything outside, the row last. When the engine does not
// answer the intent stays, and the next look at everything tries again.
func (m *Manager) remove(ctx context.Context, s Sandbox) error {
	removing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	err := m.c.Runtime.Remove(removing, s.ID)
	if err == nil {
		err = m.c.Guests.Forget(s.ID)
	}
	if err == nil {
		err = m.rows.Delete(removing, s.ID)
	}
	if err != nil {
		m.c.Log.Warn("sandbox is not deleted yet", "sandbox", s.Name, "error", err)
		m.report(s, Progress{Detail: "Not deleted yet: " + clean(fault.Message(err)) + " Trying again."})
		return err
	}
	m.clearProgress(s.ID)
	m.own.owe(s.ID, false)
	m.publish(Event{Sandbox: s, Deleted: true})
	return nil
}
