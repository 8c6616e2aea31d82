// Package door is the one way into a sandbox: whoever wants to use one (a terminal, a command, a proxied request)
// opens its door, which wakes it, and gets a live link to its guest.
//
// It does not decide who may come in (delivery does, before), it does not decide what counts as use (the tracker does),
// and it changes no state itself: the Manager does.
//
// Invariant: a use is registered before the sandbox is asked to be awake and until Release, and a touch before its state
// is looked at. Whoever puts a sandbox to rest writes the state first and asks for uses afterwards; so one of the two
// always sees the other, and nothing that counts finds the sandbox asleep.
package door

import (
	"context"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
)

const (
	// answerLimit is how long the guest of a running sandbox may take to be connected: after a restart of sandboxd, or a
	// thaw after one, it dials in again within a fraction of this.
	answerLimit = 5 * time.Second
	// lookLimit is the same for those who only look, and show something else meanwhile.
	lookLimit = time.Second
)

// Waker finds sandboxes and wakes them. Implemented by sandbox.Manager.
type Waker interface {
	// Awake gives a sandbox that runs, waking it first when it is at rest, or says why not.
	Awake(ctx context.Context, name string) (sandbox.Sandbox, error)
	// Sandbox tells how it stands. Both cost one look into memory while nothing has to be done.
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
}

// Sessions gives the live link to a guest, waiting for it until ctx ends. Implemented by link.Hub.
type Sessions interface {
	Session(ctx context.Context, id string) (*link.Session, error)
}

// ErrAsleep says that a sandbox is at rest, and was not woken because nobody has asked for that. Its kind is Conflict.
var ErrAsleep = fault.New(fault.Conflict, "The sandbox is asleep. Use it, or start it, to wake it.")

// Doors opens sandboxes. Safe for concurrent use.
type Doors struct {
	waker    Waker
	sessions Sessions
	uses     *idle.Tracker
}

// New makes the doors; uses is told of everybody who comes in. It does no I/O.
func New(w Waker, s Sessions, uses *idle.Tracker) *Doors {
	return &Doors{waker: w, sessions: s, uses: uses}
}

// Open registers a use of the sandbox called name, wakes it if it is at rest, and gives its live link. It is in use
// until Release, whatever passes through. It blocks while the sandbox is on its way up, until ctx ends, which should
// have a deadline of its own. Kinds: NotFound, Gone (deleted lately), Conflict (stopped by its owner, or failed; the message
// says so), Unavailable (the host is full, or the guest does not answer), Timeout.
func (d *Doors) Open(ctx context.Context, name string, u idle.Use) (*Entry, error) {
	lease := d.uses.Begin(name, u)
	e, err := d.enter(ctx, name, d.waker.Awake)
	if err != nil {
		lease.End()
		return nil, err
	}
	return e.leased(lease), nil
}

// OpenStream is Open for what may be open for hours without being used: from when it is open, it counts only around its
// Touches.
func (d *Doors) OpenStream(ctx context.Context, name string, u idle.Use) (*Entry, error) {
	return d.stream(ctx, name, u, d.waker.Awake)
}

// JoinStream is OpenStream for a page that comes back by itself: it waits for a sandbox that is on its way up, but wakes
// none: ErrAsleep then. u should be unattended.
func (d *Doors) JoinStream(ctx context.Context, name string, u idle.Use) (*Entry, error) {
	return d.stream(ctx, name, u, d.unlessAtRest)
}

// Look gives the live link of a sandbox that runs at this moment. That is no use of it, and wakes nothing: for lists and
// dashboards. The entry need not be released, and its Touch does nothing. It waits a second at most. Kinds: NotFound,
// Conflict (it does not run: ErrAsleep, or the message says why), Unavailable.
func (d *Doors) Look(ctx context.Context, name string) (*Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return d.enter(ctx, name, d.running)
}

func (d *Doors) stream(ctx context.Context, name string, u idle.Use, awake awaken) (*Entry, error) {
	opening := d.uses.Begin(name, u)
	defer opening.End()
	e, err := d.enter(ctx, name, awake)
	if err != nil {
		return nil, err
	}
	return e.leased(d.uses.Watch(name, u)), nil
}

// awaken gives a sandbox that runs, by whatever means are allowed.
type awaken func(ctx context.Context, name string) (sandbox.Sandbox, error)

func (d *Doors) enter(ctx context.Context, name string, awake awaken) (*Entry, error) {
	if err := d.admits(ctx, name); err != nil {
		return nil, err
	}
	box, err := awake(ctx, name)
	if err == nil {
		err = sandbox.Admits(ctx, box)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	session, err := d.sessions.Session(ctx, box.ID)
	if err != nil && ctx.Err() != nil {
		err = fault.Wrap(err, fault.Unavailable, "%s runs, but the program inside it does not answer. Restart it if this lasts.", name)
	}
	if err != nil {
		return nil, err
	}
	return &Entry{Sandbox: box, Session: session, doors: d, release: func() {}}, nil
}

func (d *Doors) unlessAtRest(ctx context.Context, name string) (sandbox.Sandbox, error) {
	box, err := d.waker.Sandbox(ctx, name)
	switch {
	case err != nil || box.State == sandbox.Running:
		return box, err
	case box.State.Resting():
		return box, asleep(name)
	}
	return d.waker.Awake(ctx, name)
}

func (d *Doors) running(ctx context.Context, name string) (sandbox.Sandbox, error) {
	box, err := d.waker.Sandbox(ctx, name)
	switch {
	case err != nil || box.State == sandbox.Running:
		return box, err
	case box.State.Resting():
		return box, asleep(name)
	case box.State == sandbox.Stopped || box.State == sandbox.Failed:
		return box, fault.New(fault.Conflict, "%s is %s. Start it first.", name, box.State)
	}
	return box, fault.New(fault.Conflict, "%s is %s. Try again when it runs.", name, box.State)
}

func asleep(name string) error {
	return fault.Wrap(ErrAsleep, fault.Conflict, "%s is asleep. Use it, or start it, to wake it.", name)
}
