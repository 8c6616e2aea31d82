package sandbox

import (
	"context"

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
