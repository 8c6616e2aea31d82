package door

import (
	"context"
	"sync"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
)

// Entry is one use of one sandbox, from Open to Release. Safe for concurrent use.
type Entry struct {
	Sandbox sandbox.Sandbox
	Session *link.Session

	doors   *Doors
	lease   *idle.Lease // nil for one who only looks
	release func()
}

func (e *Entry) leased(l *idle.Lease) *Entry {
	e.lease, e.release = l, sync.OnceFunc(l.End)
	return e
}

// Release ends the use. It may be called more than once.
func (e *Entry) Release() { e.release() }

// Touch counts a moment of use.
//
// An attended one is for what goes into the sandbox on purpose: a key, a message, a piece of a body. The sandbox is awake
// when it returns, so it comes before the bytes: a frozen one is thawed and the connection goes on where it stood, which
// may take until ctx ends. When the sandbox has been stopped, asleep or away in the meantime, this link has ended with it,
// and nothing is woken for it: Unavailable, as for a link that broke. Other kinds are Awake's.
//
// An unattended one is for everything else: what comes out, and what a page sends without its person. It counts as the
// tracker says, never wakes and never waits, and gives no error: what a sandbox that stands still is sent waits in the
// link, within its bounds, until something else thaws it; and nothing comes out of it.
func (e *Entry) Touch(ctx context.Context, unattended bool) error {
	if e.lease == nil {
		return nil
	}
	if unattended {
		e.lease.Touch(true)
		return nil
	}
	if e.over() {
		return e.lost()
	}
	e.lease.Touch(false) // before the look at the state
	box, err := e.doors.waker.Awake(ctx, e.Sandbox.Name)
	if err != nil {
		return err
	}
	if box.ID != e.Sandbox.ID || e.over() {
		return e.lost()
	}
	return nil
}

// Attend counts a moment of attended use of a sandbox that runs: somebody looks at it. It wakes nothing, and on one that
// does not run it does nothing.
func (e *Entry) Attend(ctx context.Context) {
	if e.lease == nil {
		return
	}
	box, err := e.doors.waker.Sandbox(ctx, e.Sandbox.Name)
	if err == nil && box.ID == e.Sandbox.ID && box.State == sandbox.Running {
		e.lease.Touch(false)
	}
}

func (e *Entry) over() bool {
	select {
	case <-e.Session.Done():
		return true
	default:
		return false
	}
}

func (e *Entry) lost() error {
	return fault.New(fault.Unavailable, "The connection to %s has ended. Connect again.", e.Sandbox.Name)
}
