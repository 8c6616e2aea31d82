package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// Start starts a stopped, sleeping or failed sandbox, and thaws a frozen one. Starting one that runs is no error.
// Unavailable when the host is full.
func (m *Manager) Start(ctx context.Context, ref Ref) (Sandbox, error) {
	return m.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		err := usable(s)
		if err != nil {
			return err
		}
		switch s.State {
		case Running:
		case Frozen:
			if s, err = m.thaw(ctx, s); err != nil {
				return err
			}
		default:
			_, err = m.startIfRoom(ctx, s, accept)
			return err
		}
		accept(s)
		return nil
	})
}

// Stop stops a sandbox by its owner's wish: it does not wake on use. Stopping one that is stopped is no error; a
// failed one has nothing to stop, and stays failed. Of one that is asleep only the wish is kept.
func (m *Manager) Stop(ctx context.Context, ref Ref) (Sandbox, error) {
	return m.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		err := usable(s)
		if err != nil {
			return err
		}
		switch s.State {
		case Stopped, Failed:
		case Asleep:
			if s, err = m.set(ctx, s, Stopped, ""); err != nil {
				return err
			}
		default:
			_, err = m.stop(ctx, s, accept)
			return err
		}
		accept(s)
		return nil
	})
}

// Restart stops a sandbox and starts it again; one that does not run is started. What it has stopped itself has room.
func (m *Manager) Restart(ctx context.Context, ref Ref) (Sandbox, error) {
	return m.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		err := usable(s)
		if err != nil {
			return err
		}
		if s.State == Running || s.State == Frozen {
			if s, err = m.stop(ctx, s, accept); err == nil {
				_, err = m.start(ctx, s, accept)
			}
			return err
		}
		_, err = m.startIfRoom(ctx, s, accept)
		return err
	})
}

// start brings s up in its turn, from whatever the engine still has of it.
func (m *Manager) start(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	was := s.State
	s, err := m.set(ctx, s, Starting, "")
	if err != nil {
		return s, err
	}
	accept(s)
	return m.finishStart(ctx, s, was)
}

// finishStart finishes a start whose intent is kept; was is the state before it. A sandbox that the engine does not have is
// made anew from its template; its volume is used again if it is still there. One that was at rest by our doing is on
// its way back there when the engine does not answer, so that the next use wakes it. Of any other the intent stays until
// the engine is back.
func (m *Manager) finishStart(ctx context.Context, s Sandbox, was State) (Sandbox, error) {
	err := m.startOrCreate(ctx, s)
	away := fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)
	if away && ctx.Err() == nil && (was.Resting() || m.engineAway(ctx)) {
		m.c.Log.Warn("sandbox does not start yet", "sandbox", s.Name, "was", was, "error", err)
		var setErr error
		if was.Resting() {
			s, setErr = m.set(ctx, s, Sleeping, "")
		}
		m.report(s, Progress{Detail: "The engine did not start it: " + clean(fault.Message(err))})
		return s, errors.Join(err, setErr)
	}
	if err == nil {
		m.report(s, Progress{Phase: PhaseReady})
		err = m.awaitGuest(ctx, s)
	}
	if err != nil {
		return s, m.failStart(ctx, s, err)
	}
	return m.set(ctx, s, Running, "")
}

// engineAway asks the engine itself: what it refuses for good, such as an address when there is none left, may be
// Unavailable as well.
func (m *Manager) engineAway(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	_, err := m.c.Runtime.List(ctx)
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)
}

// startOrCreate starts s's container, which it makes anew when the engine does not have it.
func (m *Manager) startOrCreate(ctx context.Context, s Sandbox) error {
	err := m.expect(s)
	if err == nil {
		err = m.startContainer(ctx, s)
	}
	if fault.Is(err, fault.NotFound) {
		if err = m.createContainer(ctx, s); err == nil {
			err = m.startContainer(ctx, s)
		}
	}
	return err
}

// expect lets s's guest dial in. A template that is gone or broken by now does not stop a sandbox that was made
// from it: it runs without the declared services.
func (m *Manager) expect(s Sandbox) error {
	t, err := m.template(s.Spec)
	if err != nil {
		m.c.Log.Warn("template of a sandbox cannot be read", "sandbox", s.Name, "error", err)
	}
	_, err = m.c.Guests.Expect(s.ID, setup(s, t))
	return err
}

// startAndAwait starts the container and waits for the guest's word.
func (m *Manager) startAndAwait(ctx context.Context, s Sandbox) error {
	if err := m.startContainer(ctx, s); err != nil {
		return err
	}
	m.report(s, Progress{Phase: PhaseReady})
	return m.awaitGuest(ctx, s)
}

// startContainer starts the container.
func (m *Manager) startContainer(ctx context.Context, s Sandbox) error {
	m.report(s, Progress{Phase: PhaseStart})
	starting, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	return m.c.Runtime.Start(starting, s.ID)
}

// awaitGuest waits for the guest's word.
func (m *Manager) awaitGuest(ctx context.Context, s Sandbox) error {
	waiting, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err := m.c.Guests.Ready(waiting, s.ID)
	if ctx.Err() == nil && waiting.Err() != nil {
		return fault.Wrap(err, fault.Timeout, "The program inside it did not report within %s. The image may lack what it needs, or the host is overloaded.", readyLimit)
	}
	return err
}

// failStart stops what a failed start has left running, keeps its volume, and keeps s as failed.
func (m *Manager) failStart(ctx context.Context, s Sandbox, err error) error {
	if m.life.Err() != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	err = errors.Join(err, m.c.Runtime.Stop(stopping, s.ID, stopGrace))
	return m.fail(ctx, s, err)
}

// stop ends s in its turn.
func (m *Manager) stop(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	s, err := m.set(ctx, s, Stopping, "")
	if err != nil {
		return s, err
	}
	accept(s)
	return m.finishStop(ctx, s)
}

// finishStop finishes a stop, the owner's or ours, whose intent is kept. When the engine does not answer the intent stays, and the next look at
// everything tries again.
func (m *Manager) finishStop(ctx context.Context, s Sandbox) (Sandbox, error) {
	stopping, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := m.c.Runtime.Stop(stopping, s.ID, stopGrace); err != nil {
		m.c.Log.Warn("sandbox does not stop yet", "sandbox", s.Name, "error", err)
		m.report(s, Progress{Detail: "The engine did not stop it: " + clean(fault.Message(err)) + " Trying again."})
		return s, err
	}
	end := Stopped
	if s.State == Sleeping {
		end = Asleep
	}
	return m.set(ctx, s, end, "")
}
