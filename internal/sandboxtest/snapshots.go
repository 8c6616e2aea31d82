package sandboxtest

import (
	"context"
	"maps"
	"slices"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// fakeParts is what the fake engine has of snapshots.
type fakeParts struct {
	copies   map[boxKey][]fakeEntry
	images   map[boxKey]bool
	memories map[boxKey]string
	layers   []string // as Made tells
}

// FakeImage is the reference of the image that Commit makes for a snapshot.
func FakeImage(snapshot string) string { return "snapshot:" + snapshot }

// Recreate implements sandbox.Runtime.
func (r *Runtime) Recreate(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := r.engine.enter(ctx, OpRecreate); err != nil {
		return err
	}
	if r.engine.lacks(b.Image) {
		return fault.New(fault.NotFound, "The fake engine could not make the container: No such image: %s.", b.Image)
	}
	r.engine.end(r.key(b.ID), sandbox.ExitKilled, false)
	r.engine.destroy(r.key(b.ID))
	if err := r.engine.cutAfter(AfterDestroy); err != nil {
		return err
	}
	return r.Create(ctx, b)
}

// Remount implements sandbox.Runtime.
func (r *Runtime) Remount(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := r.engine.enter(ctx, OpRemount); err != nil {
		return err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(b.ID)]
	switch {
	case f == nil || !f.container:
		return fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case slices.Equal(f.box.Volumes, b.Volumes) && !f.strayed:
		return nil
	case f.running:
		return fault.New(fault.Conflict, "The sandbox's processes run on the fake engine.")
	}
	f.box.Volumes, f.strayed = slices.Clone(b.Volumes), false
	return nil
}

func (e *fakeEngine) lacks(image string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.troubles.noImage[image]
}

// Commit implements sandbox.Snapshots. The image has nothing of the root file system, of which the fake engine has none. It refuses
// (Conflict) to look at a sandbox whose processes run.
func (r *Runtime) Commit(ctx context.Context, id, snapshot string) (image string, err error) {
	if err := r.engine.enter(ctx, OpCommit); err != nil {
		return "", err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	switch {
	case f == nil || !f.container:
		return "", fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case f.running && !f.frozen:
		return "", fault.New(fault.Conflict, "The sandbox's processes run on the fake engine, and change its files.")
	}
	r.engine.parts.images[r.key(snapshot)] = true
	delete(r.engine.troubles.noImage, FakeImage(snapshot))
	return FakeImage(snapshot), nil
}

// RemoveCopy implements sandbox.Snapshots.
func (r *Runtime) RemoveCopy(ctx context.Context, snapshot string) error {
	if err := r.engine.enter(ctx, OpRemoveCopy); err != nil {
		return err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	for _, f := range r.engine.boxes {
		if f.user != nil && f.user.snapshot == r.key(snapshot) {
			return fault.New(fault.Conflict, "The copy of the home is in use on the fake engine.")
		}
	}
	delete(r.engine.parts.copies, r.key(snapshot))
	return nil
}

// RemoveImage implements sandbox.Snapshots.
func (r *Runtime) RemoveImage(ctx context.Context, snapshot string) error {
	if err := r.engine.enter(ctx, OpRemoveImage); err != nil {
		return err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if r.engine.parts.images[r.key(snapshot)] {
		r.engine.troubles.noImage[FakeImage(snapshot)] = true
	}
	delete(r.engine.parts.images, r.key(snapshot))
	return nil
}

// Parts implements sandbox.Snapshots.
func (r *Runtime) Parts(ctx context.Context) (copies, images []string, err error) {
	if err := r.engine.enter(ctx, OpParts); err != nil {
		return nil, nil, err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	for key := range r.engine.parts.copies {
		if key.instance == r.instance {
			copies = append(copies, key.id)
		}
	}
	for key := range r.engine.parts.images {
		if key.instance == r.instance {
			images = append(images, key.id)
		}
	}
	slices.Sort(copies)
	slices.Sort(images)
	return copies, images, nil
}

// CopyOut implements sandbox.Home.
func (h *fakeHome) CopyOut(caller context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	_, done, err := h.begin(caller, OpCopyOut)
	if err != nil {
		return archive.Stats{}, err
	}
	defer done()
	entries, err := h.settled()
	if err != nil {
		return archive.Stats{}, err
	}
	stats := entryStats(entries)
	progress(stats)
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	h.engine.parts.copies[h.snapshot] = slices.Clone(entries)
	return stats, nil
}

// CopyIn implements sandbox.Home.
func (h *fakeHome) CopyIn(caller context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	_, done, err := h.begin(caller, OpCopyIn)
	if err != nil {
		return archive.Stats{}, err
	}
	defer done()
	if _, err := h.settled(); err != nil {
		return archive.Stats{}, err
	}
	h.engine.mu.Lock()
	entries, ok := h.engine.parts.copies[h.snapshot]
	h.engine.mu.Unlock()
	if !ok {
		return archive.Stats{}, fault.New(fault.NotFound, "The fake engine has no copy of a home for this snapshot.")
	}
	stats := entryStats(entries)
	progress(stats)
	return stats, h.swap(slices.Clone(entries))
}

func entryStats(entries []fakeEntry) (s archive.Stats) {
	for _, e := range entries {
		switch {
		case e.header.Name == "": // the home itself
		case e.header.FileInfo().IsDir():
			s.Folders++
		default:
			s.Files++
			s.Bytes += int64(len(e.content))
		}
	}
	return s
}

// Compare implements sandbox.Home. It compares what files contain.
func (h *fakeHome) Compare(caller context.Context, most int) (found []archive.Difference, more bool, err error) {
	before, after, done, err := h.both(caller)
	if err != nil {
		return nil, false, err
	}
	defer done()
	found, more = CompareFiles(before, after, most)
	return found, more, nil
}

// CompareFiles gives what differs between two sets of files, contents by path, as sandbox.Home does.
func CompareFiles(before, after map[string]string, most int) (found []archive.Difference, more bool) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := before[name]
		is, has := after[name]
		d := archive.Difference{Path: name, Change: archive.Changed, Kind: archive.KindFile, Size: int64(len(is))}
		switch {
		case had && has && was == is:
			continue
		case !had:
			d.Change = archive.Added
		case !has:
			d.Change, d.Size = archive.Deleted, int64(len(was))
		}
		found = append(found, d)
	}
	return found[:min(len(found), most)], len(found) > most
}

// Versions implements sandbox.Home.
func (h *fakeHome) Versions(caller context.Context, path string, most int) (before, after []byte, err error) {
	was, is, done, err := h.both(caller)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	return Beginning(was, path, most), Beginning(is, path, most), nil
}

// Beginning gives the first bytes of a file, nil when it is not among files.
func Beginning(files map[string]string, path string, most int) []byte {
	text, ok := files[path]
	if !ok {
		return nil
	}
	return []byte(text[:min(len(text), most)])
}

// both gives the files of the copy of the snapshot and of the home.
func (h *fakeHome) both(caller context.Context) (before, after map[string]string, done func(), err error) {
	_, done, err = h.begin(caller, OpCompareHome)
	if err != nil {
		return nil, nil, nil, err
	}
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	copied, ok := h.engine.parts.copies[h.snapshot]
	f := h.engine.boxes[h.key]
	switch {
	case f == nil || f.user != h:
		err = fault.New(fault.Unavailable, "What moved the home on the fake engine has ended.")
	case !ok:
		err = fault.New(fault.NotFound, "The fake engine has no copy of a home for this snapshot.")
	}
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return filesOf(copied), filesOf(f.now), done, nil
}
