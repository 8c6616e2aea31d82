package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

type onlyKey struct{}

// Only gives a context with which no other sandbox is used or changed than the one with that id, whatever has its name by then.
// Whoever has judged who may do something with a sandbox does it with this: a name can be given away between the two, also
// while a change waits for its turn.
func Only(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, onlyKey{}, id)
}

// Meant gives the id of the only sandbox that ctx is for, if it is for one.
func Meant(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(onlyKey{}).(string)
	return id, ok
}

// Admits says whether ctx is for s: Gone when it is meant for another one, which had the name before.
func Admits(ctx context.Context, s Sandbox) error {
	id, restricted := Meant(ctx)
	if !restricted || id == s.ID {
		return nil
	}
	return fault.New(fault.Gone, "%s was deleted meanwhile, and another one has its name.", s.Name)
}

// meant finds the sandbox called name, which must be the one that ctx is for.
func (m *Manager) meant(ctx context.Context, name string) (Sandbox, error) {
	s, err := m.Sandbox(ctx, name)
	if err == nil {
		err = Admits(ctx, s)
	}
	return s, err
}

// as lets op, in its turn, be for the sandbox that its caller means.
func (op operation) as(caller context.Context) operation {
	id, restricted := Meant(caller)
	if !restricted {
		return op
	}
	return func(ctx context.Context, accept func(Sandbox)) error { return op(Only(ctx, id), accept) }
}
