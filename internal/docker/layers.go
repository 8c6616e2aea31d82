package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// rootLimit bounds reading a root file system, or making one.
const rootLimit = 30 * time.Minute

// enginesOwn is what the engine makes in each container besides what it mounts.
var enginesOwn = []string{"/.dockerenv", "/dev", "/proc", "/sys", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/etc/mtab"}

// ReadLayer writes what a sandbox has changed of an image, as a layer. See sandbox.Layers. It reads all files of both, 660 MB in some
// 15 seconds.
func (e *snapshots) ReadLayer(ctx context.Context, id, base string, to io.Writer) (lost archive.Stats, err error) {
	ctx, cancel := context.WithTimeout(ctx, rootLimit)
	defer cancel()
	box, err := e.still(ctx, id)
	if err != nil {
		return lost, err
	}
	if base == "" {
		base = box.Image
	}
	w := newLayerWriter(box, to)
	w.fetch = func(at string, take func(io.Reader) error) error {
		from, _, err := e.client.Load().CopyFromContainer(ctx, box.ID, at)
		if err != nil {
			return classify(err, "read a file of the container")
		}
		return errors.Join(take(from), from.Close())
	}
	store := imageStore{e.connection}
	owner := e.copyOwner() + id
	if err := store.removeCopies(ctx, owner); err != nil {
		return lost, err
	}
	made, closeImage, err := store.openImage(ctx, base, owner)
	if err != nil {
		return lost, err
	}
	err = e.exported(ctx, made, func(from io.Reader) error { return readTree(from, w) })
	if err = errors.Join(err, closeImage()); err != nil {
		return lost, err
	}
	err = e.exported(ctx, box.ID, w.writeLayer)
	return w.lost, err
}

// copyOwner begins the owners of containers for reading images (see openImage) of this instance.
func (e *connection) copyOwner() string { return e.c.Instance + " " }

// sweepCopies removes those that a crash has left.
func (e *connection) sweepCopies(ctx context.Context) error {
	left, err := e.client.Load().ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelCopy))})
	if err != nil {
		return classify(err, "list its containers")
	}
	for _, c := range left {
		if strings.HasPrefix(c.Labels[labelCopy], e.copyOwner()) {
			err = errors.Join(err, imageStore{e}.removeCopy(ctx, c.ID))
		}
	}
	return err
}

// exported has take take the files of a container.
func (e *snapshots) exported(ctx context.Context, containerID string, take func(io.Reader) error) error {
	files, err := e.client.Load().ContainerExport(ctx, containerID)
	if err != nil {
		return classify(err, "read the container's files")
	}
	return errors.Join(take(files), files.Close())
}

func newLayerWriter(box container.InspectResponse, to io.Writer) *layerWriter {
	points := slices.Concat(pointsOf(box), enginesOwn)
	return &layerWriter{out: tar.NewWriter(to), skip: isIn(points), above: isAbove(points)}
}

// isIn says of a path whether it is one of others, or below one.
func isIn(points []string) func(at string) bool {
	return func(at string) bool {
		return slices.ContainsFunc(points, func(one string) bool { return at == one || strings.HasPrefix(at, one+"/") })
	}
}

// isAbove says of a path whether one of others is below it.
func isAbove(points []string) func(at string) bool {
	return func(at string) bool {
		return slices.ContainsFunc(points, func(one string) bool { return strings.HasPrefix(one, at+"/") })
	}
}

// checkLayer is Invalid when a layer, which may come from anywhere, has what ReadLayer never writes: something in the place of a mount, or
// attributes that are the engine's own.
func checkLayer(layer io.ReadSeeker) error {
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	points := slices.Concat(mountPoints, enginesOwn)
	in, above := isIn(points), isAbove(points)
	return eachEntry(layer, func(at string, h *tar.Header, _ io.Reader) error {
		name, removes := strings.CutPrefix(path.Base(at), whiteout)
		if removes {
			at = path.Join(path.Dir(at), name)
		}
		if in(at) || above(at) && (removes || h.Typeflag != tar.TypeDir) {
			return fault.New(fault.Invalid, "The root file system of the backup has %.200q, where sandboxd has something of its own.", at)
		}
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "SCHILY.xattr.trusted.") {
				return fault.New(fault.Invalid, "The root file system of the backup has an attribute of %.200q that only the container engine sets.", at)
			}
		}
		return nil
	})
}

// refusedLayer has what the engine says of a layer that it cannot unpack in the log alone: that has paths of the host.
func refusedLayer(err error) error {
	if !errors.As(err, new(*jsonmessage.JSONError)) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The container engine cannot unpack the root file system of the backup: its disk is full, or the backup was changed since it was made. "+
		"The log of sandboxd says which.")
}

// MakeImage makes the image of a snapshot of an image and a layer above it. See sandbox.Layers. It continues as Commit does when ctx
// ends; a layer that cannot be read then makes it fail.
func (e *snapshots) MakeImage(ctx context.Context, snapshot, base string, layer sandbox.Layer) (string, error) {
	ref, part := e.snapshotImages()+":"+snapshot, e.partialImages()+":"+snapshot
	err := e.detached(ctx, part, "make the image", rootLimit, func(ctx context.Context) error {
		below, err := e.client.Load().ImageInspect(ctx, base)
		if errdefs.IsNotFound(err) {
			return fault.Wrap(err, fault.NotFound, "There is no image %s.", base)
		}
		if err != nil {
			return classify(err, "look at the image")
		}
		if err := checkLayer(layer.Content); err != nil {
			return err
		}
		if e.facts.Load().layers && len(below.RootFS.Layers) < fullImage {
			return refusedLayer(e.stack(ctx, below, layer, ref))
		}
		return refusedLayer(e.merge(ctx, below, layer, ref))
	})
	if err != nil {
		return "", err
	}
	return ref, nil
}

// stack makes an image of the layers of another one and a further one.
func (e *snapshots) stack(ctx context.Context, below image.InspectResponse, layer sandbox.Layer, ref string) error {
	sum := sha256.New()
	if _, err := layer.Content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(sum, layer.Content); err != nil {
		return err
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return e.register(ctx, below, append(below.RootFS.Layers[:len(below.RootFS.Layers):len(below.RootFS.Layers)], digest), ref, &layer)
}

// merge makes an image of one layer, for engines that do not give their layers by name. Of extended attributes of the image below it has
// the capabilities of files only.
func (e *snapshots) merge(ctx context.Context, below image.InspectResponse, layer sandbox.Layer, ref string) error {
	store, owner := imageStore{e.connection}, e.copyOwner()+ref
	if err := store.removeCopies(ctx, owner); err != nil {
		return err
	}
	made, closeImage, err := store.openImage(ctx, below.ID, owner)
	if err != nil {
		return err
	}
	from, to := io.Pipe()
	e.running.Go(func() {
		to.CloseWithError(e.exported(ctx, made, func(files io.Reader) error { return mergeLayer(files, layer.Content, to) }))
	})
	err = e.importFiles(ctx, from, below, ref)
	return errors.Join(err, from.CloseWithError(io.ErrClosedPipe), closeImage())
}

// mergeLayer writes the files of an image and of a layer above it as one tar archive.
func mergeLayer(files io.Reader, layer io.ReadSeeker, to io.Writer) error {
	out := tar.NewWriter(to)
	own, err := layerNames(layer)
	if err != nil {
		return err
	}
	gone := map[string]bool{} // of the files below
	err = eachEntry(files, func(at string, h *tar.Header, content io.Reader) error {
		kind, has := own[at]
		if has && kind == tar.TypeDir && h.Typeflag == tar.TypeDir {
			return nil // the layer says the same folder once more
		}
		if has || gone[path.Dir(at)] || h.Typeflag == tar.TypeLink && gone[path.Clean("/"+h.Linkname)] {
			gone[at] = true
			return nil
		}
		return copyEntry(out, h, content)
	})
	if err == nil {
		_, err = layer.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	err = eachEntry(layer, func(at string, h *tar.Header, content io.Reader) error {
		if strings.HasPrefix(path.Base(at), whiteout) {
			return nil
		}
		return copyEntry(out, h, content)
	})
	return errors.Join(err, out.Close())
}

// layerNames gives the kinds of what a layer has or removes, by path; 0 for what it removes.
func layerNames(layer io.ReadSeeker) (map[string]byte, error) {
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	own := map[string]byte{}
	return own, eachEntry(layer, func(at string, h *tar.Header, _ io.Reader) error {
		if len(own) >= maxRootSize {
			return fault.New(fault.Invalid, "The root file system of the backup has too many files.")
		}
		if name, removed := strings.CutPrefix(path.Base(at), whiteout); removed {
			own[path.Join(path.Dir(at), name)] = 0
		} else {
			own[at] = h.Typeflag
		}
		return nil
	})
}

func eachEntry(from io.Reader, do func(at string, h *tar.Header, content io.Reader) error) error {
	in := tar.NewReader(from)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(path.Clean("/"+h.Name), h, in)
		}
		if err != nil {
			return err
		}
	}
}

func copyEntry(out *tar.Writer, h *tar.Header, content io.Reader) error {
	h.Format = tar.FormatPAX
	if err := out.WriteHeader(h); err != nil {
		return fmt.Errorf("write %.200q: %w", h.Name, err)
	}
	_, err := io.Copy(out, content)
	return err
}

// imageArchive writes an archive of images as "docker save" does.
type imageArchive struct{ *tar.Writer }

func (a imageArchive) add(name string, size int64, content io.Reader) error {
	err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size})
	if err == nil {
		_, err = io.Copy(a, content)
	}
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	return nil
}

func (a imageArchive) addText(name string, text []byte) error {
	return a.add(name, int64(len(text)), bytes.NewReader(text))
}
