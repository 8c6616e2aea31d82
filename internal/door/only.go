package door

import (
	"context"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

type onlyKey struct{}

// Only gives a context with which no other sandbox is opened than the one with that id, whatever has its name by then. Whoever
// has judged who may use a sandbox opens it with this: a name can be given away between the two.
func Only(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, onlyKey{}, id)
}

// Admits says whether box may be opened with ctx: Gone when that is meant for another one, which had the name before.
func Admits(ctx context.Context, box sandbox.Sandbox) error {
	id, restricted := ctx.Value(onlyKey{}).(string)
	if !restricted || id == box.ID {
		return nil
	}
	return fault.New(fault.Gone, "%s was deleted meanwhile, and another one has its name.", box.Name)
}

// admits looks before anything is woken: what stands there may be somebody else's. What cannot be looked at is judged when it
// is opened.
func (d *Doors) admits(ctx context.Context, name string) error {
	if ctx.Value(onlyKey{}) == nil {
		return nil
	}
	if box, err := d.waker.Sandbox(ctx, name); err == nil {
		return Admits(ctx, box)
	}
	return nil // waking it says why
}
