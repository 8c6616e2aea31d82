package docker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"

	"sandboxd/internal/fault"
)

// labelSnapshot is on the volumes that have copies of homes; its value is the instance. They have none of the labels of sandboxes.
// Images of snapshots have no labels of ours, since the containers that are made from them would have them too: they are known by
// their names.
const labelSnapshot = "sandboxd.snapshot"

// What keeping and removing parts of snapshots may take.
const (
	keepLimit     = 10 * time.Minute // a root file system that has changed much
	fullImage     = 100              // of the image that a container is made from: engines refuse more than some 125
	snapshotCalls = 4                // callLimits that removing an image may take
)

// snapshots keeps the parts of snapshots.
type snapshots struct {
	*connection
	opened  *homes
	retired atomic.Bool // there may be images that only wait for their containers to go
}

// snapshotVolume is the name of the volume with a snapshot's copy of a home.
func (e *connection) snapshotVolume(snapshot string) string {
	return e.resource(snapshot) + partSnapshot
}

// snapshotLabels are those of that volume.
func (e *connection) snapshotLabels() map[string]string {
	return map[string]string{labelSnapshot: e.c.Instance}
}

// The images of snapshots by their state. A template has no "/" in its name, so none of its images is named so.
func (e *connection) snapshotImages() string { return "sandboxd/snapshot/" + e.c.Instance }
func (e *connection) partialImages() string  { return e.snapshotImages() + "/part" } // what an image is being made of
func (e *connection) retiredImages() string  { return e.snapshotImages() + "/used" } // removed, but for containers that use them

// Commit keeps the root file system of a sandbox as an image. See sandbox.Snapshots. Conflict when it runs and is not frozen.
//
// The engine does not stop when its caller hangs up. So when ctx ends early, Commit returns, what it has begun continues, and a
// RemoveImage of the same snapshot waits for it.
func (e *snapshots) Commit(ctx context.Context, id, snapshot string) (string, error) {
	ref := e.snapshotImages() + ":" + snapshot
	err := e.detached(ctx, e.partialImages()+":"+snapshot, "keep the root file system", keepLimit, func(ctx context.Context) error {
		return e.commit(ctx, id, ref, e.partialImages()+":"+snapshot)
	})
	if err != nil {
		return "", err
	}
	return ref, nil
}

func (e *snapshots) commit(ctx context.Context, id, ref, part string) error {
	cli := e.client.Load()
	box, err := e.still(ctx, id)
	if err != nil {
		return err
	}
	if is, err := e.rootChanged(ctx, box); err != nil {
		return err
	} else if !is {
		return classify(cli.ImageTag(ctx, box.Image, ref), "name the image")
	}
	base, err := cli.ImageInspect(ctx, box.Image)
	if err != nil {
		return classify(err, "look at the image")
	}
	if len(base.RootFS.Layers) >= fullImage {
		return e.flatten(ctx, box.ID, base, ref)
	}
	return e.addLayer(ctx, box, base, ref, part)
}

// still looks at a container in which nothing runs. Conflict when it runs and is not frozen, unless the engine says so for a moment only.
func (e *snapshots) still(ctx context.Context, id string) (box container.InspectResponse, err error) {
	err = late(ctx, func() (again bool, err error) {
		box, err = e.client.Load().ContainerInspect(ctx, e.resource(id))
		switch {
		case errdefs.IsNotFound(err):
			return false, fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's container.")
		case err != nil:
			return false, classify(err, "look at the container")
		case box.State.Running && !box.State.Paused:
			return true, fault.New(fault.Conflict, "The sandbox runs, and changes its files.")
		}
		return false, nil
	})
	return box, err
}

// addLayer makes an image of a container's changes. The container's own labels and variables would be the image's, and those of every
// container made from it; so one is made of the same layers that has what the image before has.
func (e *snapshots) addLayer(ctx context.Context, box container.InspectResponse, base image.InspectResponse, ref, part string) error {
	to := ref
	if e.facts.Load().layers {
		to = part
	}
	blank := map[string]string{}
	for label := range maps.Keys(box.Config.Labels) {
		blank[label] = ""
	}
	if base.Config != nil {
		maps.Copy(blank, base.Config.Labels)
	}
	cli := e.client.Load()
	_, err := cli.ContainerCommit(ctx, box.ID, container.CommitOptions{Reference: to, Config: &container.Config{Labels: blank}})
	if err != nil || to == ref {
		return classify(err, "keep the container's files")
	}
	made, err := cli.ImageInspect(ctx, part)
	if err != nil {
		return classify(err, "look at the image")
	}
	if err = e.register(ctx, base, made.RootFS.Layers, ref, nil); err != nil {
		e.c.Log.Warn("the engine takes no image of layers that it has; the image of a snapshot has the variables of its sandbox", "error", err)
		err = classify(cli.ImageTag(ctx, part, ref), "name the image")
	}
	return errors.Join(err, classify(e.removeRef(ctx, part), "remove the image"))
}

// RemoveCopy removes the copy of a home. See sandbox.Snapshots.
func (e *snapshots) RemoveCopy(ctx context.Context, snapshot string) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if e.opened.uses(snapshot) {
		return fault.New(fault.Conflict, "The copy of the home is in use. Try again in a moment.")
	}
	err := e.client.Load().VolumeRemove(ctx, e.snapshotVolume(snapshot), false)
	switch {
	case err == nil || errdefs.IsNotFound(err):
		return e.removePooled(ctx, e.snapshotVolume(snapshot))
	case errdefs.IsConflict(err):
		return fault.Wrap(err, fault.Conflict, "The copy of the home is in use. Try again in a moment.")
	}
	return classify(err, "remove the volume")
}

// RemoveImage removes the image of a snapshot, or has it go with the last container that is made from it. See sandbox.Snapshots.
func (e *snapshots) RemoveImage(ctx context.Context, snapshot string) error {
	part := e.partialImages() + ":" + snapshot
	return e.detached(ctx, part, "remove the image", snapshotCalls*callLimit, func(ctx context.Context) error {
		ref := e.snapshotImages() + ":" + snapshot
		err := e.removeRef(ctx, ref)
		if errdefs.IsConflict(err) {
			e.retired.Store(true)
			err = e.client.Load().ImageTag(ctx, ref, e.retiredImages()+":"+snapshot)
			if err == nil {
				err = e.removeRef(ctx, ref)
			}
		}
		return classify(errors.Join(err, e.removeRef(ctx, part)), "remove the image")
	})
}

// removeRef takes a name from an image, and removes that with its last name, and gives the engine's bare error. A missing one is none.
func (e *snapshots) removeRef(ctx context.Context, ref string) error {
	_, err := e.client.Load().ImageRemove(ctx, ref, image.RemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// dropRetired removes the images of snapshots that no container is made from any more, best effort: the next one tries again.
func (e *snapshots) dropRetired(ctx context.Context) {
	unlock, ok := e.ids.Try(retiring, 1)
	if !ok {
		return // one is being made that no container uses yet; what makes it looks again
	}
	defer unlock()
	if !e.retired.Swap(false) {
		return
	}
	refs, err := imageStore{e.connection}.ImageTags(ctx, e.retiredImages())
	for _, ref := range refs {
		if one := e.removeRef(ctx, ref); one != nil {
			e.retired.Store(true)
			if !errdefs.IsConflict(one) {
				err = one
			}
		}
	}
	if err != nil {
		e.retired.Store(true)
		e.c.Log.Warn("images of removed snapshots cannot be removed yet", "error", err)
	}
}

// Parts lists what there is of snapshots. See sandbox.Snapshots. It has copies that are not whole, too.
func (e *snapshots) Parts(ctx context.Context) (copies, images []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	volumes, err := e.client.Load().VolumeList(ctx, volume.ListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelSnapshot+"="+e.c.Instance)),
	})
	if err != nil {
		return nil, nil, classify(err, "list its volumes")
	}
	for _, v := range volumes.Volumes {
		if id, is, ours := e.parseVolume(v.Name); ours && is == partSnapshot {
			copies = append(copies, id)
		}
	}
	pooled, err := e.pooled(ctx, partSnapshot)
	if err != nil {
		return nil, nil, err
	}
	copies = slices.Concat(copies, pooled)
	for _, repository := range []string{e.snapshotImages(), e.partialImages()} {
		refs, err := imageStore{e.connection}.ImageTags(ctx, repository)
		if err != nil {
			return nil, nil, err
		}
		for _, ref := range refs {
			if id, ours := strings.CutPrefix(ref, repository+":"); ours {
				images = append(images, id)
			}
		}
	}
	slices.Sort(copies)
	slices.Sort(images)
	return slices.Compact(copies), slices.Compact(images), nil
}
