package proxy

import (
	"context"

	"sandboxd/internal/door"
	"sandboxd/internal/idle"
)

// FromDoors makes the proxy's Doors of the ones that everybody uses.
func FromDoors(d *door.Doors) Doors { return doors{d} }

type doors struct{ *door.Doors }

func (d doors) Open(ctx context.Context, name string, u idle.Use) (Entry, error) {
	return entryOf(d.Doors.Open(ctx, name, u))
}

func (d doors) OpenStream(ctx context.Context, name string, u idle.Use) (Entry, error) {
	return entryOf(d.Doors.OpenStream(ctx, name, u))
}

func (d doors) Look(ctx context.Context, name string) (Entry, error) {
	return entryOf(d.Doors.Look(ctx, name))
}

func entryOf(e *door.Entry, err error) (Entry, error) {
	if err != nil {
		return Entry{}, err
	}
	return Entry{Sandbox: e.Sandbox, Session: e.Session, TTYD: e.Session.Hello().HasTTYD, Touch: e.Touch, Release: e.Release}, nil
}
