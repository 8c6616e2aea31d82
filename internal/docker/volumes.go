package docker

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Volumes that several sandboxes have. They have none of the labels of sandboxes: the value of labelVolume is the instance. labelVolumes is on
// the containers of sandboxes, and says which of them those have.
const (
	labelVolume  = "sandboxd.volume"
	labelVolumes = "sandboxd.volumes"
)

// partVolume is as the other parts of names. partView is that of the same volume as sandboxes see it that cannot write to it.
const (
	partVolume = "-volume"
	partView   = partVolume + "-ro"
)

// volumes keeps the content of volumes.
type volumes struct {
	*connection

	mu      sync.Mutex
	folders map[string]string // of those that are there, by id
}

func (e *connection) volumeName(id string) string { return e.resource(id) + partVolume }

func (e *connection) volumeLabels() map[string]string {
	return map[string]string{labelVolume: e.c.Instance}
}

// MakeVolume makes a volume, in the pool if there is one, or leaves the one that is there, and gives its folder on the engine's host. See
// volume.Engine. It continues like Create when ctx ends.
func (v *volumes) MakeVolume(ctx context.Context, id string) (folder string, err error) {
	if folder = v.folder(id); folder != "" {
		if present, err := v.present(ctx); err != nil || v.whole(present, id) {
			return folder, err
		}
	}
	err = v.detached(ctx, v.volumeName(id), "make the volume", createLimit, func(ctx context.Context) error {
		made, err := v.makeVolume(ctx, id)
		if err != nil {
			return err
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.folders[id] = made
		return nil
	})
	return v.folder(id), err
}

// present gives the names of the volumes that the engine has, views among them.
func (v *volumes) present(ctx context.Context) (names map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	list, err := v.client.Load().VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelVolume+"="+v.c.Instance))})
	if err != nil {
		return nil, classify(err, "list its volumes")
	}
	names = map[string]bool{}
	for _, one := range list.Volumes {
		names[one.Name] = true
	}
	return names, nil
}

// whole says whether a volume is among those that are present, and its view. Either may have been removed by hand.
func (v *volumes) whole(present map[string]bool, id string) bool {
	return present[v.volumeName(id)] && present[v.resource(id)+partView]
}

func (v *volumes) folder(id string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.folders[id]
}

// makeVolume makes the volume, and gives it to the user of sandboxes while it is empty, also when an earlier process did not come to that.
func (v *volumes) makeVolume(ctx context.Context, id string) (folder string, err error) {
	name, cli := v.volumeName(id), v.client.Load()
	options := volume.CreateOptions{Name: name, Driver: "local", Labels: v.volumeLabels()}
	if v.c.Pool != nil {
		if err := v.onPool(ctx, "make the volume", func() error { return v.c.Pool.Create(name) }); err != nil && !fault.Is(err, fault.Conflict) {
			return "", err
		}
		options.DriverOpts = map[string]string{"type": "none", "o": "bind", "device": v.c.Pool.Path(name)}
	}
	made, err := cli.VolumeInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		made, err = cli.VolumeCreate(ctx, options)
	}
	if err != nil {
		return "", refused(err, "make the volume")
	}
	if err := v.giveVolume(ctx, id); err != nil {
		return "", err
	}
	if folder = made.Options["device"]; folder == "" {
		folder = made.Mountpoint
	}
	return folder, v.makeView(ctx, id, folder)
}

// viewOptions are those of a volume that is the same folder, but cannot be written to.
func viewOptions(folder string) map[string]string {
	return map[string]string{"type": "none", "o": "bind,ro,nosuid,nodev", "device": folder}
}

// makeView makes the view of a volume. One that is of another folder, as after a move of the engine's, is made anew.
func (v *volumes) makeView(ctx context.Context, id, folder string) error {
	name, cli := v.resource(id)+partView, v.client.Load()
	for range 2 {
		made, err := cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: v.volumeLabels(), DriverOpts: viewOptions(folder)})
		if err != nil {
			return refused(err, "make the volume")
		}
		if maps.Equal(made.Options, viewOptions(folder)) {
			return nil
		}
		if err := cli.VolumeRemove(ctx, name, false); err != nil {
			return classify(err, "make the volume anew")
		}
	}
	return fault.New(fault.Unavailable, "The container engine has made another volume than it was told to.")
}

// giveVolume has the engine give an empty volume the owner of the folder that an image has in its place.
func (v *volumes) giveVolume(ctx context.Context, id string) error {
	image, err := v.filesImage(ctx)
	if err != nil {
		return err
	}
	if err := v.removeNamed(ctx, v.filesName(id)); err != nil {
		return err
	}
	cli := v.client.Load()
	made, err := cli.ContainerCreate(ctx,
		&container.Config{Image: image, Entrypoint: []string{"-"}, NetworkDisabled: true, Labels: v.filesLabels()},
		&container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: v.volumeName(id), Target: ownedFolder}}}, nil, nil, v.filesName(id))
	if err != nil {
		return refused(err, "make the volume")
	}
	return v.removeNamed(ctx, made.ID)
}

// removeNamed removes a container, and waits until it is gone. A missing one is no error.
func (v *volumes) removeNamed(ctx context.Context, ref string) error {
	return (&homes{connection: v.connection}).removeMover(ctx, ref)
}

// RemoveVolume removes a volume with its content. See volume.Engine.
func (v *volumes) RemoveVolume(ctx context.Context, id string) error {
	return v.detached(ctx, v.volumeName(id), "remove the volume", removeLimit, func(ctx context.Context) error {
		if err := v.removeNamed(ctx, v.filesName(id)); err != nil {
			return err
		}
		v.mu.Lock()
		delete(v.folders, id)
		v.mu.Unlock()
		for _, name := range []string{v.resource(id) + partView, v.volumeName(id)} {
			err := v.client.Load().VolumeRemove(ctx, name, false)
			if errdefs.IsConflict(err) {
				return fault.Wrap(err, fault.Conflict, "A sandbox has the volume.")
			}
			if err != nil && !errdefs.IsNotFound(err) {
				return classify(err, "remove the volume")
			}
		}
		return v.removePooled(ctx, v.volumeName(id))
	})
}

// VolumeIDs lists the volumes of this instance that the engine or the pool has, also those that no record is of.
func (v *volumes) VolumeIDs(ctx context.Context) ([]string, error) {
	present, err := v.present(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := v.pooled(ctx, partVolume)
	for name := range present {
		if id, is, ours := v.parseVolume(name); ours && is == partVolume {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// makeVolumes makes those of list that the engine does not have, and says whether there were any.
func (v *volumes) makeVolumes(ctx context.Context, list []sandbox.Mount) (made bool, err error) {
	if len(list) == 0 {
		return false, nil
	}
	present, err := v.present(ctx)
	for _, m := range list {
		if err != nil {
			return made, err
		}
		if v.folder(m.Volume) == "" || !v.whole(present, m.Volume) {
			made = true
			_, err = v.MakeVolume(ctx, m.Volume)
		}
	}
	return made, err
}

// remakeVolumes makes those of a container that were removed by hand: the engine lets go of a volume of which only the view is used.
func (v *volumes) remakeVolumes(ctx context.Context, found container.InspectResponse) (mended bool, err error) {
	if found.Config == nil {
		return false, nil
	}
	return v.makeVolumes(ctx, sandbox.ParseMounts(found.Config.Labels[labelVolumes]))
}

// volumeMounts are those of b. The engine has no options for a mount, and takes away those that there are when it makes one read-only: so what
// cannot be written to is its view, which is read-only, nosuid and nodev. What can be is as the file system of the volume: nosuid and nodev
// in the pool.
func (v *volumes) volumeMounts(b sandbox.ContainerSpec) (list []mount.Mount) {
	for _, m := range b.Volumes {
		folder := v.folder(m.Volume)
		one := mount.Mount{Type: mount.TypeVolume, Source: v.volumeName(m.Volume), Target: m.Target, ReadOnly: m.ReadOnly && folder == "",
			VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: v.volumeLabels()}}
		if m.ReadOnly && folder != "" {
			one.Source = v.resource(m.Volume) + partView
			one.VolumeOptions.DriverConfig = &mount.Driver{Name: "local", Options: viewOptions(folder)}
		}
		list = append(list, one)
	}
	return list
}
