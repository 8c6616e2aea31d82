package web

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"sync"

	"sandboxd/internal/archive"
	"sandboxd/internal/sandbox"
)

// stageHomes stands for the Manager where homes are concerned. They are texts by path.
type stageHomes struct {
	boxes *fakeBoxes
	gate  // of reading and writing

	mu    sync.Mutex
	homes map[string]map[string]string // by sandbox id
	loses []archive.Loss               // by reading
	fails error                        // instead of writing
	roots int                          // that were restored
}

func newStageHomes(boxes *fakeBoxes) *stageHomes {
	return &stageHomes{boxes: boxes, homes: map[string]map[string]string{}}
}

// put gives a sandbox a home.
func (f *stageHomes) put(id string, files map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.homes[id] = files
}

func (f *stageHomes) home(id string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.homes[id])
}

// during has a sandbox be in a state while something is done.
func (f *stageHomes) during(ctx context.Context, ref sandbox.Ref, state sandbox.State, do func(was sandbox.Sandbox) error) error {
	was, err := f.boxes.Current(ctx, ref)
	if err != nil {
		return err
	}
	if _, err := f.boxes.change(ctx, ref, func(b *sandbox.Sandbox) { b.State, b.CutOff = state, was.State }); err != nil {
		return err
	}
	done := do(was)
	_, err = f.boxes.change(context.WithoutCancel(ctx), ref, func(b *sandbox.Sandbox) { b.State, b.CutOff = was.State, "" })
	return errors.Join(done, err)
}

func (f *stageHomes) Capture(ctx context.Context, ref sandbox.Ref, live bool, read func(context.Context, sandbox.Capture) error) error {
	return f.during(ctx, ref, sandbox.Capturing, func(was sandbox.Sandbox) error {
		return read(ctx, sandbox.Capture{Sandbox: was, Home: stageHome{f, ref.ID(), ""}, Still: !live, ReadLayer: stageRoot})
	})
}

func (f *stageHomes) Restore(ctx context.Context, ref sandbox.Ref, fill func(context.Context, sandbox.Home) error) error {
	return f.during(ctx, ref, sandbox.Restoring, func(sandbox.Sandbox) error { return fill(ctx, stageHome{f, ref.ID(), ""}) })
}

func (f *stageHomes) RestoreWithRoot(ctx context.Context, ref sandbox.Ref, _ sandbox.Rootfs, fill func(context.Context, sandbox.Home) error) error {
	f.mu.Lock()
	f.roots++
	f.mu.Unlock()
	return f.Restore(ctx, ref, fill)
}

// stageRoot is a root file system in which nothing has changed.
func stageRoot(_ context.Context, to io.Writer) (string, archive.Stats, error) {
	return "base:1", archive.Stats{}, tar.NewWriter(to).Close()
}

func (f *stageHomes) CreateFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin) (sandbox.Sandbox, error) {
	box, _, err := f.boxes.Create(ctx, r)
	if err != nil {
		return box, err
	}
	if box, err = f.boxes.change(ctx, box.Ref(), func(b *sandbox.Sandbox) {
		b.State, b.CutOff, b.Root, b.ClonedFrom = sandbox.Restoring, sandbox.Deleting, from.Root, from.ClonedFrom
	}); err != nil {
		return box, err
	}
	if err := from.Fill(ctx, stageHome{f, box.ID, from.Snapshot}); err != nil {
		f.boxes.drop(box)
		return box, err
	}
	return f.boxes.change(ctx, box.Ref(), func(b *sandbox.Sandbox) { b.State, b.CutOff = sandbox.Running, "" })
}

func (f *stageHomes) Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	box, err := f.boxes.Current(ctx, ref)
	if err == nil {
		f.boxes.drop(box)
	}
	return box, err
}

// stageHome is the home of one sandbox.
type stageHome struct {
	all      *stageHomes
	id       string
	snapshot string // that is copied to it
}

func (h stageHome) Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	stats, err := packTexts(w, prefix, h.all.home(h.id))
	progress(stats)
	h.all.mu.Lock()
	stats.Lost = h.all.loses
	h.all.mu.Unlock()
	return stats, errors.Join(err, h.all.pass(ctx))
}

func (h stageHome) Replace(ctx context.Context, r io.Reader, c sandbox.Content, progress func(archive.Stats)) (archive.Stats, error) {
	if err := h.all.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	files, err := unpackTexts(r, c.Prefix)
	if err != nil {
		return archive.Stats{}, err
	}
	h.all.mu.Lock()
	err = h.all.fails
	h.all.mu.Unlock()
	if err == nil {
		h.all.put(h.id, files)
	}
	progress(archive.Stats{})
	return archive.Stats{}, err
}

func (stageHome) Settle(context.Context) (bool, error) { return false, nil }
func (stageHome) Close() error                         { return nil }

// CopyOut is not asked for: stageHomes.Snapshot does it.
func (stageHome) CopyOut(context.Context, func(archive.Stats)) (archive.Stats, error) {
	return archive.Stats{}, errors.ErrUnsupported
}

// CopyIn copies the home of the snapshot that the new sandbox is made from.
func (h stageHome) CopyIn(ctx context.Context, _ func(archive.Stats)) (archive.Stats, error) {
	if err := h.all.pass(ctx); err != nil {
		return archive.Stats{}, err
	}
	h.all.put(h.id, h.all.home(h.snapshot))
	return archive.Stats{}, nil
}
