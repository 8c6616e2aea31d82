package access

import (
	"context"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Session is one use of one sandbox, from Open to Release. Safe for concurrent use.
type Session struct {
	Guest Guest

	handle Handle
	lease  Lease // nil for one that only looks
}

// Sandbox is the row as it was when the session was opened.
func (s *Session) Sandbox() sandbox.Sandbox { return s.handle.sandbox }

// Release ends the use. It may be called more than once.
func (s *Session) Release() {
	if s.lease != nil {
		s.lease.End()
	}
}

// Touch counts a moment of use.
//
// An attended one is for what goes into the sandbox on purpose: a key, a message, a piece of a body. The sandbox is awake
// when it returns, so it comes before the bytes: a frozen one is thawed and the connection resumes where it was, which
// may take until ctx ends. When the sandbox has been stopped, asleep or away in the meantime, this link has ended with it,
// and nothing is woken for it: Unavailable, as for a link that broke. Other kinds are Open's.
//
// An unattended one is for everything else: what comes out, and what a page sends without its person. It counts as the
// tracker says, never wakes and never waits, and gives no error: bytes sent to a frozen sandbox wait in the
// link, within its bounds, until something else thaws it; nothing comes out of it.
func (s *Session) Touch(ctx context.Context, unattended bool) error {
	if s.lease == nil {
		return nil
	}
	if unattended {
		s.lease.Touch(true)
		return nil
	}
	if s.over() {
		return s.lost()
	}
	s.handle.control.used(s.handle.ID())
	s.lease.Touch(false) // before the look at the state
	_, err := s.handle.awake(ctx)
	if fault.Is(err, fault.Gone) || err == nil && s.over() {
		return s.lost()
	}
	return err
}

// Note has the sandbox count as used, as a command on a terminal does even if nobody types: see Control.Noting.
func (s *Session) Note() {
	if s.lease != nil {
		s.handle.control.used(s.handle.ID())
	}
}

// Attend counts a moment of attended use of a sandbox that runs: it is being looked at. It wakes nothing, and on one that
// does not run it does nothing.
func (s *Session) Attend(ctx context.Context) {
	if s.lease == nil {
		return
	}
	if now, err := s.handle.Current(ctx); err == nil && now.State == sandbox.Running {
		s.lease.Touch(false)
	}
}

func (s *Session) over() bool {
	select {
	case <-s.Guest.Done():
		return true
	default:
		return false
	}
}

func (s *Session) lost() error {
	return fault.New(fault.Unavailable, "The connection to %s has ended. Connect again.", s.handle.Name())
}
