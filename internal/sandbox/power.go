package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// Start starts a stopped, sleeping or failed sandbox. Starting one that runs is no error.
func (m *Manager) Start(ctx context.Context, name string) (Sandbox, error) {
	return m.do(ctx, name, func(ctx context.Context, accept func(Sandbox)) error {
		s, err := m.usable(ctx, name)
		if err != nil {
			return err
		}
		if s.State == Running {
			accept(s)
			return nil
		}
		return m.start(ctx, s, accept)
	})
}

// Stop stops a sandbox by its owner's wish: it does not wake on use. Stopping one that is stopped is no error; a
// failed one has nothing to stop, and stays failed.
func (m *Manager) Stop(ctx context.Context, name string) (Sandbox, error) {
	return m.do(ctx, name, func(ctx context.Context, accept func(Sandbox)) error {
		s, err := m.usable(ctx, name)
		if err != nil {
			return err
		}
		if s.State == Stopped || s.State == Failed {
			accept(s)
			return nil
		}
		_, err = m.stop(ctx, s, accept)
		return err
	})
}

// Restart stops a sandbox and starts it again; one that does not run is started.
func (m *Manager) Restart(ctx context.Context, name string) (Sandbox, error) {
	return m.do(ctx, name, func(ctx context.Context, accept func(Sandbox)) error {
		s, err := m.usable(ctx, name)
		if err != nil {
			return err
		}
		if s.State == Running {
			if s, err = m.stop(ctx, s, accept); err != nil {
				return err
			}
		}
		return m.start(ctx, s, accept)
	})
}

// usable finds a sandbox that is not on its way out.
func (m *Manager) usable(ctx context.Context, name string) (Sandbox, error) {
	s, err := m.Sandbox(ctx, name)
	if err == nil && s.State == Deleting {
		return s, fault.New(fault.Conflict, "%s is being deleted.", name)
	}
	return s, err
}

// start brings s up in its turn, from whatever the engine still has of it.
func (m *Manager) start(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
	s, err := m.set(ctx, s, Starting, "")
	if err != nil {
		return err
	}
	accept(s)
	return m.resume(ctx, s)
}

// resume finishes a start whose intent is kept. A sandbox that the engine does not have is made anew from its
// template; its volume is used again if it is still there.
func (m *Manager) resume(ctx context.Context, s Sandbox) error {
	err := m.expect(s)
	if err == nil {
		err = m.launch(ctx, s)
	}
	if fault.Is(err, fault.NotFound) {
		if err = m.assemble(ctx, s); err == nil {
			err = m.launch(ctx, s)
		}
	}
	if err != nil {
		return m.abandon(ctx, s, err)
	}
	_, err = m.set(ctx, s, Running, "")
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

// launch starts the container and waits for the guest's word.
func (m *Manager) launch(ctx context.Context, s Sandbox) error {
	m.report(s, Progress{Phase: PhaseStart})
	starting, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := m.c.Runtime.Start(starting, s.ID); err != nil {
		return err
	}
	m.report(s, Progress{Phase: PhaseReady})
	waiting, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err := m.c.Guests.Ready(waiting, s.ID)
	if ctx.Err() == nil && waiting.Err() != nil {
		return fault.Wrap(err, fault.Timeout, "The program inside it did not report within %s. The image may lack what it needs, or the host is overloaded.", readyLimit)
	}
	return err
}

// abandon stops what a failed start has left running, keeps its volume, and keeps s as failed.
func (m *Manager) abandon(ctx context.Context, s Sandbox, err error) error {
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
	return m.halt(ctx, s)
}

// halt finishes a stop whose intent is kept. When the engine does not answer the intent stays, and the next look at
// everything tries again.
func (m *Manager) halt(ctx context.Context, s Sandbox) (Sandbox, error) {
	stopping, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := m.c.Runtime.Stop(stopping, s.ID, stopGrace); err != nil {
		m.c.Log.Warn("sandbox does not stop yet", "sandbox", s.Name, "error", err)
		m.report(s, Progress{Detail: "The engine did not stop it: " + clean(fault.Message(err)) + " Trying again."})
		return s, err
	}
	return m.set(ctx, s, Stopped, "")
}
