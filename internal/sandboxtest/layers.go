package sandboxtest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Layers is a sandbox.Layers of the fake engine. Make it with LayersOf.
type Layers struct{ r *Runtime }

// LayersOf reads and makes the layers of the sandboxes of a runtime.
func LayersOf(r *Runtime) Layers { return Layers{r} }

// ReadLayer implements sandbox.Layers. The layer tells the base, "" for that of the container, and the id of the sandbox.
func (c Layers) ReadLayer(ctx context.Context, id, base string, to io.Writer) (lost archive.Stats, _ error) {
	if err := c.r.engine.enter(ctx, OpReadLayer); err != nil {
		return lost, err
	}
	if c.r.engine.lacks(base) {
		return lost, fault.New(fault.NotFound, "The fake engine has no image %s.", base)
	}
	c.r.engine.mu.Lock()
	f := c.r.engine.boxes[c.r.key(id)]
	c.r.engine.mu.Unlock()
	switch {
	case f == nil || !f.container:
		return lost, fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case f.running && !f.frozen:
		return lost, fault.New(fault.Conflict, "The sandbox's processes run on the fake engine, and change its files.")
	}
	text := []byte(id + " over " + base)
	out := tar.NewWriter(to)
	err := out.WriteHeader(&tar.Header{Name: "etc/changed", Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = out.Write(text)
	}
	return lost, errors.Join(err, out.Close())
}

// MakeImage implements sandbox.Layers. The layer must be one of the fake engine's.
func (c Layers) MakeImage(ctx context.Context, snapshot, base string, layer sandbox.Layer) (string, error) {
	if err := c.r.engine.enter(ctx, OpMakeImage); err != nil {
		return "", err
	}
	if c.r.engine.lacks(base) {
		return "", fault.New(fault.NotFound, "The fake engine has no image %s.", base)
	}
	if _, err := layer.Content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	in := tar.NewReader(layer.Content)
	if h, err := in.Next(); err != nil || h.Name != "etc/changed" {
		return "", fault.New(fault.Invalid, "The fake engine did not make this layer.")
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return "", err
	}
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	c.r.engine.parts.images[c.r.key(snapshot)] = true
	c.r.engine.parts.layers = append(c.r.engine.parts.layers, base+" and "+string(text))
	delete(c.r.engine.troubles.noImage, FakeImage(snapshot))
	return FakeImage(snapshot), nil
}

// Made tells of which images and layers MakeImage has made images, in order.
func (c Layers) Made() []string {
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	return slices.Clone(c.r.engine.parts.layers)
}
