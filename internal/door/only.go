package door

import (
	"context"

	"sandboxd/internal/sandbox"
)

// admits looks before anything is woken: what stands there may be somebody else's. What cannot be looked at is judged when it
// is opened.
func (d *Doors) admits(ctx context.Context, name string) error {
	if _, restricted := sandbox.Meant(ctx); !restricted {
		return nil
	}
	if box, err := d.waker.Sandbox(ctx, name); err == nil {
		return sandbox.Admits(ctx, box)
	}
	return nil // waking it says why
}
