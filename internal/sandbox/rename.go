package sandbox

import (
	"context"

	"sandboxd/internal/text"
)

// Rename changes the free text beside a sandbox's name. While a long operation is under way the change waits its turn
// and shows when that is over.
func (m *Manager) Rename(ctx context.Context, ref Ref, label string) (Sandbox, error) {
	if err := CheckLabel(label); err != nil {
		return Sandbox{}, err
	}
	return m.amend(ctx, ref, func(s *Sandbox) { s.Label = text.Trim(label) })
}

// amend changes what is kept of a sandbox beside its state.
func (m *Manager) amend(ctx context.Context, ref Ref, change func(*Sandbox)) (Sandbox, error) {
	return m.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if err := usable(s); err != nil {
			return err
		}
		change(&s)
		if err := m.rows.Update(ctx, s); err != nil {
			return err
		}
		m.publish(Event{Sandbox: s})
		accept(s)
		return nil
	})
}
