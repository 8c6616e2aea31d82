package docker

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Create makes b's container and volume, in one call to the engine. See sandbox.Runtime.
//
// The engine does not stop making a container when its caller hangs up. So when ctx ends early, Create returns, the call
// continues, and a Remove of the same id waits for it: no container appears after its removal.
func (e *Engine) Create(ctx context.Context, b sandbox.ContainerSpec) error {
	return e.detached(ctx, b.ID, "make the container", createLimit, func(ctx context.Context) error { return e.create(ctx, b) })
}

// Recreate makes b's container anew, with the volume and the address that it has. See sandbox.Runtime. When the image is missing, the
// old container stays. It continues like Create when ctx ends.
func (e *Engine) Recreate(ctx context.Context, b sandbox.ContainerSpec) error {
	return e.detached(ctx, b.ID, "make the container", createLimit+removeLimit, func(ctx context.Context) error {
		_, err := e.client.Load().ImageInspect(ctx, b.Image)
		if err != nil {
			return classify(err, "look for the image")
		}
		defer e.seen.drop(b.ID)
		e.reclaims.end(b.ID)
		if err := e.removeNamed(ctx, e.resource(b.ID)+partAnew); err != nil { // of a Remount that was cut off
			return err
		}
		if err := e.removeContainer(ctx, b.ID); err != nil {
			return err
		}
		e.dropRetired(ctx)
		return e.create(ctx, b)
	})
}

// detached does something with what has a key, as the only one, and waits for it. When ctx ends early it returns, and what is done
// continues until limit. what is as for classify.
func (e *connection) detached(ctx context.Context, key, what string, limit time.Duration, do func(context.Context) error) error {
	if err := e.own(); err != nil {
		return err
	}
	if e.life.Err() != nil {
		return fault.New(fault.Unavailable, "The connection to the container engine is closed.")
	}
	unlock, err := e.ids.Acquire(ctx, key, 1, -1)
	if err != nil {
		return classify(err, what)
	}
	done := make(chan error, 1)
	e.running.Go(func() {
		ctx, cancel := context.WithTimeout(e.life, limit)
		defer cancel()
		err := do(ctx)
		unlock() // before the caller hears of it, who may go on with this sandbox
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return classify(ctx.Err(), what)
	}
}

func (e *Engine) create(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := e.makeHome(ctx, b); err != nil {
		return err
	}
	if _, err := e.makeVolumes(ctx, b.Volumes); err != nil {
		return err
	}
	addr, err := e.address(ctx, b)
	if err != nil {
		return err
	}
	err = e.make(ctx, e.resource(b.ID), e.spec(b, addr))
	switch {
	case errdefs.IsConflict(err):
		return e.adopt(ctx, b, err)
	case errdefs.IsNotFound(err) && addr.IsValid():
		// The image or the network may have been removed meanwhile. Look, and try once more.
		e.network.forget()
		if addr, err = e.address(ctx, b); err != nil {
			return err
		}
		err = e.make(ctx, e.resource(b.ID), e.spec(b, addr))
	}
	return refused(e.withPoolFault(b.ID, err), "make the container")
}

// address reserves b's address, if its profile has a network.
func (e *Engine) address(ctx context.Context, b sandbox.ContainerSpec) (netip.Addr, error) {
	if !hasNetwork(b.Profile) {
		return netip.Addr{}, nil
	}
	return e.network.hold(ctx, e.client.Load(), b.ID)
}

// make asks for a container of that name, and gives the engine's bare error.
func (e *Engine) make(ctx context.Context, name string, s spec) error {
	made, err := e.client.Load().ContainerCreate(ctx, s.config, s.host, s.network, nil, name)
	for _, w := range made.Warnings {
		e.c.Log.Debug("the engine warns", "container", name, "warning", text.Excerpt(w, longestWord))
	}
	return err
}

// adopt handles a name that is taken: by the container that an earlier create of b has made, which is then
// used; by the remains of one that the engine could not remove, which are removed; or by a container that is not ours.
func (e *Engine) adopt(ctx context.Context, b sandbox.ContainerSpec, conflict error) error {
	found, err := e.client.Load().ContainerInspect(ctx, e.resource(b.ID))
	if err != nil {
		return refused(conflict, "make the container")
	}
	if _, ours := e.idOf(found.Name, found.Config.Labels); !ours {
		return fault.New(fault.Invalid, "The engine has a container %s that is not sandboxd's. Remove or rename it.", e.resource(b.ID))
	}
	if !broken(found.State.Status) {
		return nil
	}
	if err := e.removeContainer(ctx, b.ID); err != nil {
		return err
	}
	addr, err := e.address(ctx, b)
	if err != nil {
		return err
	}
	return refused(e.make(ctx, e.resource(b.ID), e.spec(b, addr)), "make the container")
}

// broken reports whether a container in this state can never be started.
func broken(s container.ContainerState) bool {
	return s == container.StateDead || s == container.StateRemoving
}

// scan learns which addresses the instance's containers have.
func (e *Engine) scan(ctx context.Context) error {
	cli := e.client.Load()
	e.network.forget()
	if err := e.network.see(ctx, cli); err != nil {
		return err
	}
	list, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: e.ours()})
	if err != nil {
		return classify(err, "list its containers")
	}
	for _, c := range list {
		if id, ours := e.idOf(firstName(c), c.Labels); ours {
			e.network.adopt(id, fixedAddress(c.NetworkSettings, e.network.name))
		}
	}
	if e.c.NetworkLinger > 0 && e.network.unused() {
		e.removeNetworkLater() // a crash while it lingered has left it
	}
	return nil
}

func firstName(c container.Summary) string {
	if len(c.Names) == 0 {
		return ""
	}
	return c.Names[0]
}

func fixedAddress(s *container.NetworkSettingsSummary, name string) string {
	if s == nil || s.Networks[name] == nil || s.Networks[name].IPAMConfig == nil {
		return ""
	}
	return s.Networks[name].IPAMConfig.IPv4Address
}

// removeContainer removes the container of id and waits until it is gone. One that is not there is no error.
func (e *Engine) removeContainer(ctx context.Context, id string) error {
	const between = 50 * time.Millisecond
	for {
		err := e.client.Load().ContainerRemove(ctx, e.resource(id), container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case !errdefs.IsConflict(err):
			return classify(err, "remove the container")
		} // a removal is under way already: ask again until it is gone
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return classify(fmt.Errorf("%w, %w", ctx.Err(), err), "remove the container")
		}
	}
}
