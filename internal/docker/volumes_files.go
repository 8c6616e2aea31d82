package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"

	"sandboxd/internal/catalog"
	"sandboxd/internal/volume"
	"sandboxd/internal/wire"
)

var _ volume.Engine = (*Engine)(nil)

// labelFiles is on the containers that serve the files of volumes; its value is the instance. They have none of the labels of sandboxes.
const labelFiles = "sandboxd.files"

// filesRepository is the image of those containers. It has no program: all that runs in them is the guest. No template has such a name, and
// all instances share it.
const filesRepository = "sandboxd/volume/files:1"

// What such a container gets.
const (
	filesMemory = 512 << 20
	filesPids   = 128
)

// ownedFolder is in the image, and belongs to the user of sandboxes.
const (
	ownedFolder = "/volume"
	agentID     = 1000
	passwdName  = "passwd" // in the folder of the link
)

func (e *connection) filesName(id string) string { return e.resource(id) + "-files" }

func (e *connection) filesLabels() map[string]string {
	return map[string]string{labelFiles: e.c.Instance}
}

// filesImage gives the image of the containers that serve files, which it makes when it is not there.
func (v *volumes) filesImage(ctx context.Context) (string, error) {
	cli := v.client.Load()
	_, err := cli.ImageInspect(ctx, filesRepository)
	if err == nil || !errdefs.IsNotFound(err) {
		return filesRepository, classify(err, "look for an image")
	}
	root, err := filesRoot()
	if err != nil {
		return "", err
	}
	answer, err := cli.ImageImport(ctx, image.ImportSource{Source: root, SourceName: "-"}, filesRepository, image.ImportOptions{})
	if err != nil {
		return "", classify(err, "make an image")
	}
	defer answer.Close()
	return filesRepository, heard(answer, "make an image")
}

// filesRoot is the root file system of the image. The link's folder says who the user is, and where their home is.
func filesRoot() (io.Reader, error) {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "etc/passwd", Linkname: path.Join(path.Dir(wire.SocketPath), passwdName), Mode: 0o777},
		{Typeflag: tar.TypeDir, Name: ownedFolder[1:] + "/", Mode: 0o755, Uid: agentID, Gid: agentID},
	} {
		h.ModTime, h.Format = time.Unix(0, 0), tar.FormatPAX
		if err := out.WriteHeader(&h); err != nil {
			return nil, fmt.Errorf("make an image: %w", err)
		}
	}
	return &b, out.Close()
}

// ServeVolume starts a guest in a container of its own that has the volume at target. See volume.Engine. It is held as a strict sandbox is,
// has no network, and nothing in it but the guest. It ends with the guest.
func (v *volumes) ServeVolume(ctx context.Context, id, target, link string) error {
	if _, err := v.MakeVolume(ctx, id); err != nil {
		return err
	}
	user := fmt.Sprintf("agent:x:%d:%d::%s:/\n", agentID, agentID, target)
	if err := os.WriteFile(filepath.Join(link, passwdName), []byte(user), 0o644); err != nil {
		return fmt.Errorf("name the user of a volume: %w", err)
	}
	return v.detached(ctx, v.volumeName(id), "open the volume", createLimit+startLimit, func(ctx context.Context) error {
		if err := v.removeNamed(ctx, v.filesName(id)); err != nil {
			return err
		}
		image, err := v.filesImage(ctx)
		if err != nil {
			return err
		}
		cli := v.client.Load()
		made, err := cli.ContainerCreate(ctx,
			&container.Config{
				User: "0:0", WorkingDir: "/", Image: image, Labels: v.filesLabels(), Entrypoint: strslice.StrSlice{wire.GuestPath},
				NetworkDisabled: true, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			}, v.filesHost(id, target, link), nil, nil, v.filesName(id))
		if err != nil {
			return refused(err, "open the volume")
		}
		return refused(cli.ContainerStart(ctx, made.ID, container.StartOptions{}), "open the volume")
	})
}

func (v *volumes) filesHost(id, target, link string) *container.HostConfig {
	f, pids := v.facts.Load(), int64(filesPids)
	h := &container.HostConfig{
		NetworkMode: network.NetworkNone, AutoRemove: true, IpcMode: container.IPCModePrivate, OomScoreAdj: oomScore, Init: &f.info.Can.Init,
		LogConfig: logConfig(f.localLog),
		Resources: container.Resources{Memory: filesMemory, PidsLimit: &pids, Ulimits: []*container.Ulimit{{Name: "core"}}},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: v.c.GuestBinary, Target: wire.GuestPath, ReadOnly: true},
			{Type: mount.TypeBind, Source: link, Target: path.Dir(wire.SocketPath), ReadOnly: true},
			{Type: mount.TypeVolume, Source: v.volumeName(id), Target: target, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
		},
	}
	harden(h, catalog.Strict, false)
	return h
}

// EndVolume ends the guest that serves a volume's files. See volume.Engine.
func (v *volumes) EndVolume(ctx context.Context, id string) error {
	return v.detached(ctx, v.volumeName(id), "close the volume", removeLimit, func(ctx context.Context) error {
		return v.removeNamed(ctx, v.filesName(id))
	})
}

// SweepVolumes ends all such guests, which an earlier process has left. See volume.Engine.
func (v *volumes) SweepVolumes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	left, err := v.client.Load().ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelFiles+"="+v.c.Instance))})
	if err != nil {
		return classify(err, "list its containers")
	}
	for _, c := range left {
		if err := v.removeNamed(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}
