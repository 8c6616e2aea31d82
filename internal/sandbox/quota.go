package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// What the limit of a home may be, in bytes.
const (
	minDisk = 64 << 20
	maxDisk = 1 << 50 // larger than any file system: a slip of the pen
)

// checkDisk checks the limit of a home; 0 is none.
func (g *settings) checkDisk(bytes int64) error {
	switch {
	case bytes == 0:
		return nil
	case g.quota == nil:
		return fault.Field("disk", "This server has no storage pool, so the size of a home cannot be limited. "+
			"Leave the limit out, or ask an admin to create a storage pool with “sandboxd pool create”, and to restart sandboxd.")
	case bytes < minDisk || bytes > maxDisk:
		return fault.Field("disk", "The limit of a home must be between %d MiB and 1 PiB.", minDisk>>20)
	}
	return nil
}

// SetDisk limits what the home of a sandbox may take, in bytes; 0 lifts the limit. Files that exceed it stay, but nothing can be added to
// them. It returns when the limit holds. While a long operation is under way it waits its turn. Kinds: Invalid of the field "disk" when
// the limit is out of bounds or there is no storage pool, Conflict when the home is not in it; those of Quota.
func (g *settings) SetDisk(ctx context.Context, ref Ref, bytes int64) (Sandbox, error) {
	if err := g.checkDisk(bytes); err != nil {
		return Sandbox{}, err
	}
	return g.attend(ctx, ref, g.on(ref, unlessDeleting(func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		return g.setDisk(ctx, s, bytes, accept)
	})))
}

// setDisk stores the limit before the engine has it: when this is cut off between the two, the next start sets it.
func (g *settings) setDisk(ctx context.Context, s Sandbox, bytes int64, accept func(Sandbox)) error {
	old := s
	if s.Spec.Limits.Disk = bytes; s.Spec.Limits == old.Spec.Limits {
		accept(s)
		return nil
	}
	if err := g.rows.Update(ctx, s); err != nil {
		return err
	}
	err := g.limitHome(ctx, s)
	if bytes == 0 && fault.Is(err, fault.Conflict) {
		err = nil // it has no limit
	}
	if err != nil {
		return errors.Join(err, g.rows.Update(context.WithoutCancel(ctx), old))
	}
	g.publish(Event{Sandbox: s})
	accept(s)
	return nil
}

// limitHome has the engine limit the home of s as its row says.
func (g *settings) limitHome(ctx context.Context, s Sandbox) error {
	if g.quota == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, quotaLimit)
	defer cancel()
	return g.quota.LimitHome(ctx, s.ID, s.Spec.Limits.Disk)
}

// keepLimit is limitHome before a start, which it does not hinder. A home that is not in the storage pool has no limit.
func (g *settings) keepLimit(ctx context.Context, s Sandbox) {
	err := g.limitHome(ctx, s)
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
		g.log.Warn("the size of a home is not limited", "sandbox", s.Name, "error", err)
	}
}
