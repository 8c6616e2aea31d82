package sandbox

import (
	"context"
	"errors"
	"slices"

	"sandboxd/internal/fault"
)

// startIfRoom starts s when the host has room for it; else s stays as it is.
func (c *containers) startIfRoom(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	if err := c.checkRoom(ctx); err != nil {
		return s, err
	}
	return c.start(ctx, s, accept)
}

// start starts s, from all that the engine still has of it.
func (c *containers) start(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	was := s.State
	s, err := c.set(ctx, s, Starting, "")
	if err != nil {
		return s, err
	}
	accept(s)
	return c.finishStart(ctx, s, was)
}

// finishStart finishes a start whose intent is stored; was is the state before it. A container that the engine does not have
// is created again; its volume is used again if it is still there. When the engine does not answer, a sandbox that was at
// rest goes back to sleep, so that the next use wakes it. Any other stays Starting until the engine is back.
func (c *containers) finishStart(ctx context.Context, s Sandbox, was State) (Sandbox, error) {
	var err error
	if was == Sleeping || was == Stopping { // it may still run, and end at any moment, for the stop that was cut off
		err = c.stopContainer(ctx, s)
	}
	if err == nil && s.Resizing {
		s, err = c.settings.applyLimits(ctx, s)
	}
	if err == nil {
		err = c.startOrCreate(ctx, s)
	}
	away := fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)
	if away && ctx.Err() == nil && (was.Resting() || c.engineAway(ctx)) {
		c.log.Warn("sandbox does not start yet", "sandbox", s.Name, "was", was, "error", err)
		var setErr error
		if was.Resting() {
			s, setErr = c.set(ctx, s, Sleeping, "")
		}
		c.report(s, Progress{Detail: "The engine did not start it: " + clean(fault.Message(err))})
		return s, errors.Join(err, setErr)
	}
	if err == nil {
		err = c.awaitReady(ctx, s)
	}
	if err != nil {
		return s, c.failStart(ctx, s, err)
	}
	return c.set(ctx, s, Running, "")
}

// engineAway asks the engine itself: a start that it refuses for good, such as for want of an address, may be Unavailable as
// well.
func (c *containers) engineAway(ctx context.Context) bool {
	_, _, err := c.find(ctx, "")
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)
}

// find asks the engine for the instance of a sandbox.
func (c *containers) find(ctx context.Context, id string) (i Instance, exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	all, err := c.runtime.List(ctx)
	if n := slices.IndexFunc(all, func(i Instance) bool { return i.ID == id }); n >= 0 {
		return all[n], true, err
	}
	return Instance{}, false, err
}

// startOrCreate starts s's container, and creates it first if the engine does not have it.
func (c *containers) startOrCreate(ctx context.Context, s Sandbox) error {
	err := c.settings.expect(s)
	if err == nil {
		err = c.remount(ctx, s)
	}
	if err == nil {
		err = c.startContainer(ctx, s)
	}
	if fault.Is(err, fault.NotFound) {
		if err = c.createContainer(ctx, s); err == nil {
			err = c.startContainer(ctx, s)
		}
	}
	return err
}

func (c *containers) startContainer(ctx context.Context, s Sandbox) error {
	c.report(s, Progress{Phase: PhaseStart})
	c.settings.keepLimit(ctx, s) // a restore may have made another home
	starting, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	return c.runtime.Start(starting, s.ID)
}

// awaitReady waits for the guest after a start.
func (c *containers) awaitReady(ctx context.Context, s Sandbox) error {
	c.report(s, Progress{Phase: PhaseReady})
	return c.awaitGuest(ctx, s)
}

// awaitGuest waits until the guest has reported.
func (c *containers) awaitGuest(ctx context.Context, s Sandbox) error {
	waiting, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err := c.guests.Ready(waiting, s.ID)
	if ctx.Err() == nil && waiting.Err() != nil {
		return fault.Wrap(err, fault.Timeout, "The program inside it did not report within %s. The image may lack what it needs, or the host is overloaded.", readyLimit)
	}
	return err
}

// failStart stops a container whose start has failed, and stores s as failed. The volume stays.
func (c *containers) failStart(ctx context.Context, s Sandbox, err error) error {
	if c.life.Err() != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	err = errors.Join(err, c.runtime.Stop(stopping, s.ID, stopGrace))
	return c.fail(ctx, s, err)
}

// stop stops s.
func (c *containers) stop(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	was := s.State
	s, err := c.set(ctx, s, Stopping, "")
	if err != nil {
		return s, err
	}
	accept(s)
	if was == Running {
		c.leaves(ctx, s)
	}
	return c.finishStop(ctx, s)
}

// leaves says that the processes of s are about to be frozen or ended.
func (c *containers) leaves(ctx context.Context, s Sandbox) {
	if c.leave != nil {
		c.leave(ctx, s)
	}
}

// finishStop finishes a stop or a sleep whose intent is stored. When the engine does not answer the intent stays, and the
// next reconcile tries again.
func (c *containers) finishStop(ctx context.Context, s Sandbox) (Sandbox, error) {
	if err := c.stopContainer(ctx, s); err != nil {
		c.log.Warn("sandbox does not stop yet", "sandbox", s.Name, "error", err)
		c.report(s, Progress{Detail: "The engine did not stop it: " + clean(fault.Message(err)) + " Trying again."})
		return s, err
	}
	end := Stopped
	if s.State == Sleeping {
		end = Asleep
	}
	return c.set(ctx, s, end, "")
}

func (c *containers) stopContainer(ctx context.Context, s Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	return c.runtime.Stop(ctx, s.ID, stopGrace)
}

// restart stops s and starts it again. The intent that is stored is the start, so that s runs afterwards also when this is
// cut off, or the engine does not stop it.
func (c *containers) restart(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
	s, err := c.set(ctx, s, Starting, "")
	if err != nil {
		return err
	}
	accept(s)
	return c.finishRestart(ctx, s)
}

// finishRestart finishes a start or restart whose intent is stored, from the beginning: a container that already runs may be
// one that the engine is about to end, for a stop that a crash of sandboxd has cut off.
func (c *containers) finishRestart(ctx context.Context, s Sandbox) error {
	if err := c.stopContainer(ctx, s); err != nil {
		c.log.Warn("sandbox does not restart", "sandbox", s.Name, "error", err)
		c.report(s, Progress{Detail: "The engine did not stop it: " + clean(fault.Message(err))})
		return err
	}
	_, err := c.finishStart(ctx, s, s.State)
	return err
}
