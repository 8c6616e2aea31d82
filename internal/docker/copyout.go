package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"sandboxd/internal/fault"
)

// labelCopy is on the containers that are made to copy out of an image; its value is whose they are. They have none of the
// labels of sandboxes, and never run.
const labelCopy = "sandboxd.copy"

// labelStage is on what the builder leaves of a stage that a Dockerfile marks with it.
const labelStage = "sandboxd.stage"

// copyLimit bounds a copy out of an image.
const copyLimit = 10 * time.Minute

// CopyOut hands a folder of an image that is present to take, as a tar archive whose entries begin with the folder's own
// name, in the order that the engine likes. owner is a label's value: what an earlier copy of the same owner's has left
// behind, in a crash, is removed, so there may be one at a time. An error of take's is given back. Kinds: NotFound.
func (e imageStore) CopyOut(ctx context.Context, ref, folder, owner string, take func(io.Reader) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	if err := e.removeCopies(ctx, owner); err != nil {
		return err
	}
	made, closeImage, err := e.openImage(ctx, ref, owner)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeImage()) }()
	cli := e.client.Load()
	archive, _, err := cli.CopyFromContainer(ctx, made, folder)
	if errdefs.IsNotFound(err) {
		return fault.Wrap(err, fault.NotFound, "The image %s has no folder %s.", ref, folder)
	}
	if err != nil {
		return classify(err, "copy out of the image")
	}
	defer archive.Close()
	if err := take(archive); err != nil {
		return fmt.Errorf("copy out of %s: %w", ref, err)
	}
	return nil
}

// openImage makes a container of an image that is present, which never runs, for reading its files. closeImage removes it; owner is as for
// CopyOut.
func (e imageStore) openImage(ctx context.Context, ref, owner string) (containerID string, closeImage func() error, err error) {
	made, err := e.client.Load().ContainerCreate(ctx,
		&container.Config{Image: ref, Entrypoint: []string{"-"}, NetworkDisabled: true, Labels: map[string]string{labelCopy: owner}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "sandboxd-copy-"+rand.Text())
	if errdefs.IsNotFound(err) {
		return "", nil, fault.Wrap(err, fault.NotFound, "There is no image %s.", ref)
	}
	if err != nil {
		return "", nil, refused(err, "open the image")
	}
	return made.ID, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		return e.removeCopy(ctx, made.ID)
	}, nil
}

func (e imageStore) removeCopies(ctx context.Context, owner string) error {
	left, err := e.client.Load().ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelCopy+"="+owner))})
	if err != nil {
		return classify(err, "list its containers")
	}
	for _, c := range left {
		if err := e.removeCopy(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func (e imageStore) removeCopy(ctx context.Context, containerID string) error {
	err := e.client.Load().ContainerRemove(ctx, containerID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return classify(err, "remove a container")
}

// DropStages removes what builds have left of stages with that name (see labelStage): more than the image that came of
// them. Stages that an image builds on stay.
func (e imageStore) DropStages(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	_, err := e.client.Load().ImagesPrune(ctx, filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labelStage+"="+name)))
	return classify(err, "remove the remains of a build")
}
