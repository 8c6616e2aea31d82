package proxy

import (
	"context"

	"sandboxd/internal/door"
)

// FromDoors makes the proxy's Doors of the ones that everybody uses.
func FromDoors(d *door.Doors) Doors { return doors{d} }

type doors struct{ *door.Doors }

func (d doors) Open(ctx context.Context, name, use string) (Entry, error) {
	e, err := d.Doors.Open(ctx, name, use)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Sandbox: e.Sandbox, Session: e.Session, TTYD: e.Session.Hello().HasTTYD, Release: e.Release}, nil
}
