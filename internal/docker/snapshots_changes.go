package docker

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// mountPoints are those that a container is given, by us and by the engine: its init is there, or where images have /sbin as a link.
var mountPoints = []string{wire.HomePath, wire.GuestPath, path.Dir(wire.SocketPath), wire.IDEPath, wire.CAPath,
	"/sbin/docker-init", "/usr/sbin/docker-init"}

// changed says whether a change of a root file system is the sandbox's own. The engine makes places for what it mounts.
func changed(c container.FilesystemChange, points []string) bool {
	return c.Kind == container.ChangeDelete || !slices.ContainsFunc(points, func(at string) bool {
		return c.Path == at || strings.HasPrefix(at, c.Path+"/")
	})
}

// pointsOf gives those of a container, with those of its volumes.
func pointsOf(box container.InspectResponse) []string {
	points := slices.Clone(mountPoints)
	for _, m := range sandbox.ParseMounts(box.Config.Labels[labelVolumes]) {
		points = append(points, m.Target)
	}
	return points
}

// rootChanged says whether a sandbox that does not run, or is frozen, has changed its root file system. The engine compares all files of
// the image, a second for 600 MB; where this process can read the folder that has the changes, it looks there instead.
func (e *snapshots) rootChanged(ctx context.Context, box container.InspectResponse) (bool, error) {
	points := pointsOf(box)
	if upper := box.GraphDriver.Data["UpperDir"]; box.GraphDriver.Name == "overlay2" && upper != "" {
		if is, err := upperChanged(upper, points); err == nil {
			return is, nil
		}
	}
	changes, err := e.client.Load().ContainerDiff(ctx, box.ID)
	if err != nil {
		return false, classify(err, "say what has changed in the container")
	}
	return slices.ContainsFunc(changes, func(c container.FilesystemChange) bool { return changed(c, points) }), nil
}

// upperChanged is changed for the upper folder of an overlay. It follows no links, and ends at the first change.
func upperChanged(upper string, points []string) (is bool, err error) {
	err = filepath.WalkDir(upper, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == upper {
			return err
		}
		kind := container.ChangeModify
		if d.Type()&fs.ModeCharDevice != 0 { // what was deleted is a device 0:0 there
			kind = container.ChangeDelete
		}
		if is = changed(container.FilesystemChange{Kind: kind, Path: strings.TrimPrefix(at, upper)}, points); is {
			return fs.SkipAll
		}
		return nil
	})
	return is, err
}
