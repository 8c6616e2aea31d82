package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// LimitsChange changes limits of a sandbox; nil leaves one as it is.
type LimitsChange struct {
	CPUs   *float64
	Memory *int64
	Disk   *int64 // 0 lifts the limit
}

// Over gives l with the limits of c in place of its own.
func (c LimitsChange) Over(l Limits) Limits {
	if c.CPUs != nil {
		l.CPUs = *c.CPUs
	}
	if c.Memory != nil {
		l.Memory = *c.Memory
	}
	if c.Disk != nil {
		l.Disk = *c.Disk
	}
	return l
}

// check checks the limits that are to change; those that stay may be from a larger host.
func (c LimitsChange) check(g *settings) error {
	within := c.Over(Limits{CPUs: minCPUs, Memory: minMemory, Pids: minPids})
	return errors.Join(within.check(g.host), g.checkDisk(within.Disk))
}

// Resize changes limits of a sandbox at once, also while its programs run, and returns when they hold. Files that exceed a new limit of
// its home stay, but nothing can be added to them. While a long operation is under way it waits its turn. Kinds: Invalid of the field
// "cpus", "memory" or "disk" when a limit is out of bounds, or there is no storage pool for the last; Conflict when its programs hold more
// memory now than they may, or its home is not in the storage pool; those of Runtime and Quota.
func (g *settings) Resize(ctx context.Context, ref Ref, c LimitsChange) (Sandbox, error) {
	if err := c.check(g); err != nil {
		return Sandbox{}, err
	}
	return g.attend(ctx, ref, g.on(ref, unlessDeleting(func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		return g.resize(ctx, s, c.Over(s.Spec.Limits), accept)
	})))
}

// resize stores the limits before the engine has them, with a mark: when this is cut off between the two, applyLimits follows.
func (g *settings) resize(ctx context.Context, s Sandbox, l Limits, accept func(Sandbox)) error {
	old := s
	if l == s.Spec.Limits && !s.Resizing {
		accept(s)
		return nil
	}
	s.Spec.Limits, s.Resizing = l, true
	if err := g.rows.Update(ctx, s); err != nil {
		return err
	}
	s, err := g.applyLimits(ctx, s)
	if err != nil {
		old.Resizing = !fault.Is(err, fault.Conflict) // the engine has refused that, and has changed nothing; any other error may have come after it
		return errors.Join(err, g.rows.Update(context.WithoutCancel(ctx), old))
	}
	g.publish(Event{Sandbox: s})
	accept(s)
	return nil
}

// applyLimits has the engine limit s as its row says, and takes its mark away. A container that is not there gets its limits when it is
// made.
func (g *settings) applyLimits(ctx context.Context, s Sandbox) (Sandbox, error) {
	limiting, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := g.runtime.Resize(limiting, s.ID, s.Spec.Limits); err != nil && !fault.Is(err, fault.NotFound) {
		return s, err
	}
	err := g.limitHome(ctx, s)
	if err != nil && !fault.Is(err, fault.NotFound) && !(s.Spec.Limits.Disk == 0 && fault.Is(err, fault.Conflict)) {
		return s, err
	}
	s.Resizing = false
	return s, g.rows.Update(ctx, s)
}
