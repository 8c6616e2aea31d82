package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"sandboxd/internal/fault"
)

// Freeze makes a running sandbox's processes stand still. See sandbox.Freezer. It is one call to the engine unless
// something is amiss. The memory is given back to the host afterwards, in the background, until the sandbox is thawed.
func (e *freezer) Freeze(ctx context.Context, id string) error {
	err := e.pause(ctx, id)
	if err == nil {
		e.reclaimLater(id)
	}
	return err
}

// Pause freezes for a moment. See sandbox.Freezer.
func (e *freezer) Pause(ctx context.Context, id string) error {
	if err := e.watchdogs.begin(e.resource(id)); err != nil {
		return err
	}
	err := e.pause(ctx, id)
	if err != nil {
		e.watchdogs.end(e.resource(id))
	}
	return err
}

func (e *freezer) pause(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer e.seen.drop(id)
	return classify(e.turn(ctx, id, true, e.client.Load().ContainerPause), "freeze the container")
}

// Thaw resumes a frozen sandbox's processes. See sandbox.Freezer. It is one call to the engine unless something is
// amiss.
func (e *freezer) Thaw(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer e.seen.drop(id)
	e.reclaims.end(id)
	err := e.turn(ctx, id, false, e.client.Load().ContainerUnpause)
	if err == nil || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
		e.watchdogs.end(e.resource(id))
	}
	return classify(err, "thaw the container")
}

// An engine can tell of a freeze or a thaw that something else has followed: Docker notes each once when it is done, and once more when it
// hears of it from below. What it says is so already is asked of it again for as long as that may take. Some times in any case: on a busy
// host with cgroup v1 it gives up a freeze by itself after seconds.
const (
	lateFor   = time.Second
	lateTimes = 3
	lateEvery = 50 * time.Millisecond
)

// late asks until the answer need not be asked again, or an engine that is late would have answered otherwise by now.
func late(ctx context.Context, ask func() (again bool, err error)) error {
	began := time.Now()
	for times := 1; ; times++ {
		again, err := ask()
		if !again || times >= lateTimes && time.Since(began) > lateFor {
			return err
		}
		select {
		case <-time.After(lateEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turn freezes or thaws by change, and does it again when the engine is late, or, catching up after it hung, has done something else in
// between for a caller who is gone.
func (e *freezer) turn(ctx context.Context, id string, frozen bool, change func(context.Context, string) error) error {
	return late(ctx, func() (again bool, err error) {
		if err = change(ctx, e.resource(id)); err == nil || ctx.Err() != nil || lost(err) {
			return false, err
		}
		err = e.settle(ctx, id, frozen, err)
		return err == nil || errors.Is(err, errTurned), err
	})
}

var errTurned = errors.New("it is neither as it was nor as it should be")

// settle finds out why a freeze or a thaw was refused. That it is done already is no error; errTurned says that what the
// engine refused can be done now.
func (e *freezer) settle(ctx context.Context, id string, frozen bool, cause error) error {
	now, err := e.client.Load().ContainerInspect(ctx, e.resource(id))
	switch {
	case errdefs.IsNotFound(err):
		return fault.Wrap(cause, fault.NotFound, "The container engine does not have this sandbox's container.")
	case err != nil:
		return err
	case !now.State.Running:
		return fault.Wrap(cause, fault.Conflict, "The sandbox does not run.")
	case now.State.Paused == frozen:
		return nil
	}
	return errors.Join(errTurned, cause)
}

// FreezeSupport tells whether sandboxes can be frozen on this engine, and whether the memory of frozen ones is given
// back to the host. why gives the obstacle in a sentence, or "".
func (e *freezer) FreezeSupport() (can, reclaims bool, why string) {
	i := e.Info()
	switch {
	case i.Can.Rootless && (i.Cgroup == "1" || i.Driver == "none"):
		return false, false, "The engine runs without root and without cgroups of its own, so it cannot freeze containers."
	case i.Cgroup != "2":
		return true, false, "The host has cgroup v1, which cannot reclaim the memory of a frozen sandbox."
	case !strings.HasPrefix(i.Host, "unix://"):
		return true, false, "The engine is on another machine, where sandboxd cannot reclaim memory."
	}
	why = e.reclaims.kernel.obstacle()
	return true, why == "", why
}
