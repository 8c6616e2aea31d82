package terminal

import (
	"context"

	"sandboxd/internal/door"
)

// Through makes Doors of the doors of sandboxes.
func Through(d *door.Doors) Doors { return doors{d} }

type doors struct{ doors *door.Doors }

// Open opens the sandbox called name.
func (d doors) Open(ctx context.Context, name, use string) (Guest, func(), error) {
	e, err := d.doors.Open(ctx, name, use)
	if err != nil {
		return nil, nil, err
	}
	return e.Session, e.Release, nil
}
