package docker

import (
	"cmp"
	"context"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// partAnew comes after the name of a sandbox's container: that of one that is to take its place.
const partAnew = "-anew"

// retiring is the key of what uses images that only wait for their containers to go.
const retiring = "images of removed snapshots"

// Remount gives a sandbox a container with other volumes. See sandbox.Runtime. The new one is made beside the old one, from the image of
// that, or from one of all that has changed in its root file system since; then it takes its name. So a crash leaves one of both, and what
// was installed in the sandbox with it. It continues like Create when ctx ends.
func (e *Engine) Remount(ctx context.Context, b sandbox.ContainerSpec) error {
	return e.detached(ctx, b.ID, "make the container", keepLimit+createLimit+removeLimit, func(ctx context.Context) error {
		if err := e.movedIn(ctx, b.ID); err != nil {
			return err
		}
		box, err := e.anew(ctx, b.ID)
		if err != nil {
			return err
		}
		if box.Config.Labels[labelVolumes] == sandbox.MountText(b.Volumes) && !strayed(box.Mounts, b.LinkPath) {
			return nil
		}
		if box.State.Running {
			return fault.New(fault.Conflict, "The sandbox runs. Its volumes change when it is started again.")
		}
		defer e.seen.drop(b.ID)
		e.reclaims.end(b.ID)
		unlock, err := e.ids.Acquire(ctx, retiring, 1, -1)
		if err != nil {
			return classify(err, "make the container")
		}
		err = e.remount(ctx, b, box)
		unlock()
		e.dropRetired(ctx)
		return err
	})
}

// anew gives the container of a sandbox, after it has finished or undone what was cut off while that was to get another one.
func (e *volumes) anew(ctx context.Context, id string) (container.InspectResponse, error) {
	cli, name, next := e.client.Load(), e.resource(id), e.resource(id)+partAnew
	box, err := cli.ContainerInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		if err = cli.ContainerRename(ctx, next, name); err == nil {
			box, err = cli.ContainerInspect(ctx, name)
		}
	} else if err == nil {
		err = e.removeNamed(ctx, next)
	}
	switch {
	case errdefs.IsNotFound(err), err == nil && broken(box.State.Status):
		return box, fault.New(fault.NotFound, "The container engine does not have this sandbox's container.")
	case err != nil:
		return box, classify(err, "look at the container")
	}
	return box, nil
}

func (e *Engine) remount(ctx context.Context, b sandbox.ContainerSpec, box container.InspectResponse) error {
	image := box.Image
	changed, err := e.rootChanged(ctx, box)
	if err != nil {
		return err
	}
	if changed {
		image = e.retiredImages() + ":" + sandbox.NewID()
		e.retired.Store(true)
		if err := e.commit(ctx, b.ID, image, image+"-part"); err != nil {
			return err
		}
	}
	if _, err := e.makeVolumes(ctx, b.Volumes); err != nil {
		return err
	}
	addr, err := e.address(ctx, b)
	if err != nil {
		return err
	}
	b.Image = box.Config.Labels[labelImage]
	s, next := e.spec(b, addr), e.resource(b.ID)+partAnew
	s.config.Image, s.config.Labels[labelMade] = image, cmp.Or(box.Config.Labels[labelMade], box.Image)
	if err := e.make(ctx, next, s); err != nil {
		return refused(err, "make the container")
	}
	if err := e.removeContainer(ctx, b.ID); err != nil {
		return err
	}
	return classify(e.client.Load().ContainerRename(ctx, next, e.resource(b.ID)), "name the container")
}
