package logs

import (
	"context"
	"time"
)

// Kept is the log of a sandbox that outlives it, because its owner said so. Its lines go when they are too old, as all do.
type Kept struct {
	Sandbox string // its id
	Name    string // the last it had
	Owner   string // user id
	Since   time.Time
}

// Keep says that the log of a sandbox is kept when the sandbox is deleted. It comes before the delete. Kind: Unavailable.
func (k *Keeper) Keep(ctx context.Context, kept Kept) error { return k.c.Store.Keep(ctx, kept) }

// Unkeep takes Keep back, for a sandbox that was not deleted after all. Kind: Unavailable.
func (k *Keeper) Unkeep(ctx context.Context, sandbox string) error {
	return k.c.Store.Unkeep(ctx, sandbox)
}

// Kept gives the logs that Keep was called for, of all owners, newest first. Some of their sandboxes may not be deleted yet. Kind:
// Unavailable.
func (k *Keeper) Kept(ctx context.Context) ([]Kept, error) { return k.c.Store.Kept(ctx) }

// DeleteUnlessKept is Delete, but for logs that Keep was called for. Kind: Unavailable.
func (k *Keeper) DeleteUnlessKept(ctx context.Context, sandbox string) error {
	all, err := k.Kept(ctx)
	if err != nil {
		return err
	}
	for _, kept := range all {
		if kept.Sandbox == sandbox {
			return nil
		}
	}
	return k.Delete(ctx, sandbox)
}
