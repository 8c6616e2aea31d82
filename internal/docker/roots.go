package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/go-units"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/template"
	"sandboxd/internal/wire"
)

const rootImages = "sandboxd/root/"

// The images that templates are made of from snapshots, and what one is being made of. A template has no "/" in its name.
func (e *connection) rootImages() string        { return rootImages + e.c.Instance }
func (e *connection) partialRoots() string      { return e.rootImages() + "/part" }
func (e *connection) rootPart(id string) string { return e.partialRoots() + ":" + id }

// RootImage names the image of a root of an instance. It asks nobody.
func RootImage(instance, id string) string { return rootImages + instance + ":" + id }

// RootImage names the image of a root. See catalog.ImageOptions.
func (e *connection) RootImage(id string) string { return RootImage(e.c.Instance, id) }

// KeepRoot makes a root of a snapshot. See template.Roots. When ctx ends early it returns, and what it has begun continues: a RemoveRoot of
// the same id waits for that.
func (e *snapshots) KeepRoot(ctx context.Context, snapshot, id string, home bool) error {
	return e.detached(ctx, e.rootPart(id), "make the image of the template", keepLimit, func(ctx context.Context) error {
		from := e.snapshotImages() + ":" + snapshot
		if home {
			return e.addHome(ctx, from, snapshot, id)
		}
		return classify(e.client.Load().ImageTag(ctx, from, e.RootImage(id)), "name the image")
	})
}

// addHome makes a root with the home of a snapshot in its place in the image. A mover of that image copies it there, with owners, links and
// times, and the engine keeps the mover's changes as a layer.
func (e *snapshots) addHome(ctx context.Context, from, snapshot, id string) (err error) {
	base, err := e.client.Load().ImageInspect(ctx, from)
	if err != nil {
		return classify(err, "look at the image")
	}
	if base.Config != nil {
		if _, is := base.Config.Volumes[wire.HomePath]; is {
			return fault.Field("home", "The image of this sandbox declares its home as a VOLUME, so the engine keeps no files there. Leave the home out.")
		}
	}
	h := &home{s: e.opened, box: id, snapshot: snapshot, image: from, rooted: true}
	h.life, h.end = context.WithCancel(e.life)
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := h.connect(ctx, ""); err != nil {
		return err
	}
	if _, err := h.job(ctx, wire.MoverJob{Do: wire.MoverCopyIn}, nil, nil, func(archive.Stats) {}); err != nil {
		return err
	}
	if !h.ended(ctx) {
		return fault.New(fault.Unavailable, "The program that copies the home did not end.")
	}
	box, _, err := e.client.Load().ContainerInspectWithRaw(ctx, h.id, true)
	if err != nil {
		return classify(err, "look at the container")
	}
	if box.SizeRw != nil && *box.SizeRw > template.MaxHome {
		return fault.Field("home", "The files of the home have %s, and a template takes at most %s. Holes in sparse files count. Leave the home out, or take a snapshot without the large files.",
			units.BytesSize(float64(*box.SizeRw)), units.BytesSize(template.MaxHome))
	}
	return e.addLayer(ctx, box, base, e.RootImage(id), e.rootPart(id))
}

// emptyHome gives a container that was not started yet an empty folder in the place of whatever its image has for a home. A file comes
// first: the engine merges a folder into one that is there, but replaces it by a file.
func (h *home) emptyHome(ctx context.Context) error {
	var b bytes.Buffer
	out, name := tar.NewWriter(&b), strings.TrimPrefix(wire.HomePath, "/")
	err := errors.Join(out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600}),
		out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700}), out.Close())
	if err != nil {
		return err
	}
	err = h.s.client.Load().CopyToContainer(ctx, h.id, "/", &b, container.CopyToContainerOptions{AllowOverwriteDirWithFile: true})
	return classify(err, "make room for the home")
}

// RemoveRoot removes a root, and before it the images that were built on it. See template.Roots.
func (e *snapshots) RemoveRoot(ctx context.Context, id string) error {
	return e.detached(ctx, e.rootPart(id), "remove the image", snapshotCalls*callLimit, func(ctx context.Context) error {
		list, err := e.client.Load().ImageList(ctx, image.ListOptions{
			Filters: filters.NewArgs(filters.Arg("label", catalog.LabelRoot+"="+id), filters.Arg("reference", "sandboxd/*:*")),
		})
		if err != nil {
			return classify(err, "list images")
		}
		var refs []string
		for _, one := range list {
			for _, ref := range one.RepoTags {
				if name, ours := strings.CutPrefix(ref, "sandboxd/"); ours && !strings.Contains(name, "/") { // else of a snapshot of one of its sandboxes
					refs = append(refs, ref)
				}
			}
		}
		for _, ref := range append(refs, e.RootImage(id), e.rootPart(id)) {
			if err := e.removeRef(ctx, ref); errdefs.IsConflict(err) {
				return fault.Wrap(err, fault.Conflict, "The image is in use.")
			} else if err != nil {
				return classify(err, "remove the image")
			}
		}
		return nil
	})
}

// Roots lists the roots of this sandboxd, parts of interrupted ones included. See template.Roots.
func (e *snapshots) Roots(ctx context.Context) (ids []string, err error) {
	for _, repository := range []string{e.rootImages(), e.partialRoots()} {
		refs, err := imageStore{e.connection}.ImageTags(ctx, repository)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if id, ours := strings.CutPrefix(ref, repository+":"); ours {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
