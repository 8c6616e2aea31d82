package terminal

import (
	"context"

	"sandboxd/internal/door"
	"sandboxd/internal/idle"
)

// Doors opens sandboxes. Through makes one of door.Doors, whose methods say what each gives.
type Doors interface {
	// OpenStream opens a sandbox for a viewer of tab, waking it when it is at rest.
	OpenStream(ctx context.Context, name, tab string) (Entry, error)
	// JoinStream does the same for a viewer that comes back by itself: it wakes nothing, and gives a Conflict instead.
	JoinStream(ctx context.Context, name, tab string) (Entry, error)
	// Look gives the guest of a sandbox that runs now, which is no use of it; a Conflict when it does not run.
	Look(ctx context.Context, name string) (Guest, error)
}

// Entry is an open sandbox. The caller must Release its Use.
type Entry struct {
	Guest Guest
	Use   Use
}

// Use is one viewer's use of a sandbox. Safe for concurrent use. Implemented by door.Entry.
type Use interface {
	// Touch counts a moment of it. An attended one comes before what a person sends: the sandbox is awake when it returns.
	Touch(ctx context.Context, unattended bool) error
	// Attend counts a moment of being looked at, if the sandbox runs.
	Attend(ctx context.Context)
	// Release ends it, and may be called more than once.
	Release()
}

// Through makes Doors of the doors of sandboxes.
func Through(d *door.Doors) Doors { return doors{d} }

type doors struct{ doors *door.Doors }

func (d doors) OpenStream(ctx context.Context, name, tab string) (Entry, error) {
	return entry(d.doors.OpenStream(ctx, name, use(tab, false)))
}

func (d doors) JoinStream(ctx context.Context, name, tab string) (Entry, error) {
	return entry(d.doors.JoinStream(ctx, name, use(tab, true)))
}

func (d doors) Look(ctx context.Context, name string) (Guest, error) {
	e, err := d.doors.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.Session, nil
}

func use(tab string, unattended bool) idle.Use {
	return idle.Use{Kind: idle.Terminal, Detail: tab, Unattended: unattended}
}

func entry(e *door.Entry, err error) (Entry, error) {
	if err != nil {
		return Entry{}, err
	}
	return Entry{Guest: e.Session, Use: e}, nil
}
