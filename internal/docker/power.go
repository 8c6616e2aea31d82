package docker

import (
	"context"
	"math"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
)

// Start starts or thaws a sandbox. See sandbox.Runtime. It is one call to the engine unless something is amiss.
func (e *Engine) Start(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	defer e.seen.drop(id)
	if err := e.movedIn(ctx, id); err != nil {
		return err
	}
	err := e.client.Load().ContainerStart(ctx, e.resource(id), container.StartOptions{})
	if err == nil || ctx.Err() != nil || lost(err) {
		return classify(err, "start the container")
	}
	return e.withPoolFault(id, e.revive(ctx, id, err))
}

// revive finds out why a start was refused, and mends what can be mended.
func (e *Engine) revive(ctx context.Context, id string, cause error) error {
	found, err := e.client.Load().ContainerInspect(ctx, e.resource(id))
	switch {
	case errdefs.IsNotFound(err):
		return fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's container.")
	case err != nil:
		return classify(err, "start the container")
	case broken(found.State.Status):
		return fault.Wrap(cause, fault.NotFound, "The container engine has only remains of this sandbox's container.")
	case found.State.Paused:
		return e.Thaw(ctx, id)
	}
	start := func() error {
		return e.client.Load().ContainerStart(ctx, e.resource(id), container.StartOptions{})
	}
	mended, err := e.reconnect(ctx, id, found)
	if err != nil {
		return err
	}
	remade, err := e.remakeVolumes(ctx, found)
	if err != nil {
		return err
	}
	if mended || remade {
		cause = start()
	}
	if cause != nil && !found.State.Running {
		cause = e.vacate(ctx, found.ID, cause, start)
	}
	if cause == nil {
		return nil
	}
	if errdefs.IsNotFound(cause) {
		// The container exists: something that it needs is missing, so making it again would not help.
		return fault.Wrap(cause, fault.Invalid, "The container engine could not start the container: %s", word(cause))
	}
	return refused(cause, "start the container")
}

// reconnect puts a container back on the sandboxes' network when that has been removed, or made anew, behind its
// back: the container remembers the one that is gone. mended is false when there was nothing to do.
func (e *Engine) reconnect(ctx context.Context, id string, found container.InspectResponse) (mended bool, err error) {
	if found.HostConfig == nil || string(found.HostConfig.NetworkMode) != e.network.name {
		return false, nil
	}
	cli := e.client.Load()
	now, err := e.network.present(ctx, cli)
	if err != nil {
		return false, err
	}
	if old := found.NetworkSettings.Networks[e.network.name]; old != nil && now.id != "" && old.NetworkID == now.id {
		return now.duplicates, nil
	}
	e.network.forget()
	addr, err := e.network.hold(ctx, cli, id)
	if err != nil {
		return false, err
	}
	e.c.Log.Info("sandbox is put back on its network", "container", e.resource(id), "address", addr)
	err = cli.NetworkDisconnect(ctx, e.network.name, e.resource(id), true)
	if err != nil && !errdefs.IsNotFound(err) {
		e.c.Log.Debug("disconnect of a lost network", "error", err) // the connect tells whether it matters
	}
	err = cli.NetworkConnect(ctx, e.network.name, e.resource(id), endpoint(addr))
	return err == nil, refused(err, "put the container on its network")
}

// offNetwork reports whether a container was taken off the network that it is made for.
func offNetwork(c container.Summary, network string) bool {
	return c.HostConfig.NetworkMode == network && c.NetworkSettings != nil && c.NetworkSettings.Networks[network] == nil && !broken(c.State)
}

// putBack puts a container on the sandboxes' network again, best effort: the next List tries again.
func (e *Engine) putBack(ctx context.Context, id, containerID string) {
	unlock, ok := e.ids.Try(id, 1)
	if !ok {
		return // it is being created or removed
	}
	defer unlock()
	found, err := e.client.Load().ContainerInspect(ctx, containerID)
	if err == nil {
		_, err = e.reconnect(ctx, id, found)
	}
	if err != nil {
		e.c.Log.Warn("sandbox was taken off its network, and cannot be put back yet", "container", e.resource(id), "error", err)
	}
}

// Stop ends a sandbox's processes. See sandbox.Runtime. A frozen one is thawed by the engine, once the signal waits for it.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	ctx, cancel := context.WithTimeout(ctx, grace+stopMargin)
	defer cancel()
	defer e.seen.drop(id)
	e.reclaims.end(id)
	seconds := int(math.Ceil(grace.Seconds()))
	err := e.client.Load().ContainerStop(ctx, e.resource(id), container.StopOptions{Timeout: &seconds})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return classify(err, "stop the container")
}

// Remove ends a sandbox and deletes its container and volume, and the network with the last sandbox. See
// sandbox.Runtime.
func (e *Engine) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	unlock, err := e.ids.Acquire(ctx, id, 1, -1)
	if err != nil {
		return classify(err, "remove the container")
	}
	defer unlock()
	defer e.seen.drop(id)
	e.reclaims.end(id)
	if err := e.removeContainer(ctx, id); err != nil {
		return err
	}
	if err := e.removeNamed(ctx, e.resource(id)+partAnew); err != nil {
		return err
	}
	if err := e.removeVolume(ctx, id); err != nil {
		return err
	}
	e.dropRetired(ctx)
	if !e.network.release(id) {
		return nil
	}
	if e.c.NetworkLinger == 0 {
		return e.network.removeUnused(ctx, e.client.Load())
	}
	e.removeNetworkLater()
	return nil
}

// removeVolume removes a sandbox's volume, and what is in the pool of its home after that.
func (e *Engine) removeVolume(ctx context.Context, id string) error {
	cli := e.client.Load()
	err := cli.VolumeRemove(ctx, e.resource(id), false)
	if errdefs.IsConflict(err) || e.c.Pool != nil { // a mover may have it, or its folder
		if err := e.leave(ctx, id); err != nil {
			return err
		}
	}
	if errdefs.IsConflict(err) {
		err = cli.VolumeRemove(ctx, e.resource(id), false)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "remove the volume")
	}
	return e.removePooled(ctx, e.resource(id), e.resource(id)+partNext)
}

// removeNetworkLater removes the network when it is still unused after a while, or when the engine is closed: making
// it anew costs the next create as much as a good part of a start.
func (e *Engine) removeNetworkLater() {
	if !e.lingering.CompareAndSwap(false, true) {
		return // the one that waits already will see
	}
	e.running.Go(func() {
		select {
		case <-time.After(e.c.NetworkLinger):
		case <-e.life.Done():
		}
		e.lingering.Store(false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), lingerLimit)
		defer cancel()
		if err := e.network.removeUnused(ctx, e.client.Load()); err != nil {
			e.c.Log.Warn("remove the unused network", "error", err)
		}
	})
}
