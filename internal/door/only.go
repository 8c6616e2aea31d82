package door

import (
	"context"

	"sandboxd/internal/sandbox"
)

// Only is sandbox.Only: whoever has judged who may use a sandbox opens it with this.
func Only(ctx context.Context, id string) context.Context { return sandbox.Only(ctx, id) }

// Admits says whether box may be opened with ctx: Gone when that is meant for another one, which had the name before.
func Admits(ctx context.Context, box sandbox.Sandbox) error { return sandbox.Admits(ctx, box) }

// admits looks before anything is woken: what stands there may be somebody else's. What cannot be looked at is judged when it
// is opened.
func (d *Doors) admits(ctx context.Context, name string) error {
	if _, restricted := sandbox.Meant(ctx); !restricted {
		return nil
	}
	if box, err := d.waker.Sandbox(ctx, name); err == nil {
		return Admits(ctx, box)
	}
	return nil // waking it says why
}
