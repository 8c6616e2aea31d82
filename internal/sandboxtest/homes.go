package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// fakeVolume is a home on the fake engine.
type fakeVolume struct {
	now       []fakeEntry // in the order of their archive
	next      []fakeEntry // of a replace that was cut off when all of it was there
	unsettled bool
	user      *fakeHome // who has it open; nil for nobody
}

// fakeEntry is a file or folder. Its names are those in the home; the home itself has "".
type fakeEntry struct {
	header  tar.Header
	content []byte
}

// fakeHome is an open home.
type fakeHome struct {
	engine   *fakeEngine
	key      boxKey
	snapshot boxKey
	life     context.Context
	end      context.CancelFunc
}

// OpenHome implements sandbox.Homes. What the Home does counts, and fails or takes long, as the operations OpReadHome,
// OpReplaceHome, OpCopyOut, OpCopyIn and OpSettleHome. Unlike an engine, it refuses (Conflict) to touch the home of a sandbox whose processes run.
func (r *Runtime) OpenHome(ctx context.Context, id, snapshot string) (sandbox.Home, error) {
	if err := r.engine.enter(ctx, OpOpenHome); err != nil {
		return nil, err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	if f == nil || !f.container {
		return nil, fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	}
	f.leave()
	h := &fakeHome{engine: r.engine, key: r.key(id), snapshot: r.key(snapshot)}
	h.life, h.end = context.WithCancel(context.Background())
	f.user = h
	return h, nil
}

// leave ends what is done with a home. The caller holds the engine's mu.
func (v *fakeVolume) leave() {
	if v.user != nil {
		v.user.end()
		v.user = nil
	}
}

// begin is the beginning of every job: ctx is that of its caller and ends with the Home.
func (h *fakeHome) begin(caller context.Context, op Op) (ctx context.Context, done func(), err error) {
	ctx, cancel := context.WithCancel(caller)
	stop := context.AfterFunc(h.life, cancel)
	done = func() { stop(); cancel() }
	if err := h.engine.enter(ctx, op); err != nil {
		done()
		return nil, nil, h.cause(caller, err)
	}
	return ctx, done, nil
}

// cause says why a job has been cut off, if it has been.
func (h *fakeHome) cause(caller context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return err
	case caller.Err() != nil:
		return late(caller.Err())
	case h.life.Err() != nil:
		return fault.Wrap(err, fault.Unavailable, "What moved the home on the fake engine has ended.")
	}
	return err
}

// volume gives the home, if it may be used. The caller holds the engine's mu.
func (h *fakeHome) volume() (*fakeVolume, error) {
	f := h.engine.boxes[h.key]
	switch {
	case f == nil || f.user != h:
		return nil, fault.New(fault.Unavailable, "What moved the home on the fake engine has ended.")
	case f.running && !f.frozen:
		return nil, fault.New(fault.Conflict, "The sandbox's processes run on the fake engine, and change its home.")
	}
	return &f.fakeVolume, nil
}

// Read implements sandbox.Home.
func (h *fakeHome) Read(caller context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	ctx, done, err := h.begin(caller, OpReadHome)
	if err != nil {
		return archive.Stats{}, err
	}
	defer done()
	entries, err := h.settled()
	if err != nil {
		return archive.Stats{}, err
	}
	b, err := packEntries(entries, prefix)
	if err != nil {
		return archive.Stats{}, err
	}
	stats, err := archive.Check(ctx, tar.NewReader(bytes.NewReader(b)), archive.Options{Prefix: prefix}, nil)
	if err != nil {
		return stats, h.cause(caller, err)
	}
	progress(stats)
	if _, err := w.Write(b); err != nil {
		return stats, err
	}
	if err := ctx.Err(); err != nil {
		return stats, h.cause(caller, err)
	}
	return stats, nil
}

// Replace implements sandbox.Home.
func (h *fakeHome) Replace(caller context.Context, r io.Reader, c sandbox.Content, progress func(archive.Stats)) (archive.Stats, error) {
	ctx, done, err := h.begin(caller, OpReplaceHome)
	if err != nil {
		return archive.Stats{}, err
	}
	defer done()
	if _, err := h.settled(); err != nil {
		return archive.Stats{}, err
	}
	b, err := io.ReadAll(untilDone{ctx, r})
	if err != nil {
		return archive.Stats{}, h.cause(caller, err)
	}
	beside := func(*tar.Header, io.Reader) error { return nil }
	stats, err := archive.Check(ctx, tar.NewReader(bytes.NewReader(b)), archive.Options{Prefix: c.Prefix}, beside)
	if ctx.Err() != nil {
		return stats, h.cause(caller, ctx.Err())
	}
	var entries []fakeEntry
	if err == nil {
		entries, err = unpackEntries(b, c.Prefix)
	}
	if err != nil {
		return stats, fault.Wrap(err, fault.Invalid, "The archive cannot be unpacked: %v.", err)
	}
	progress(stats)
	return stats, h.swap(entries)
}

// untilDone is a reader that ends with a context, between two reads.
type untilDone struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (u untilDone) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if ended := u.ctx.Err(); ended != nil && (err == nil || err == io.EOF) {
		err = ended
	}
	return n, err
}

// swap puts a new home in the place of the old one.
func (h *fakeHome) swap(entries []fakeEntry) error {
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	v, err := h.volume()
	if err != nil {
		return err
	}
	v.next, v.unsettled = entries, true
	if h.engine.troubles.cut(AfterUnpack) {
		return ErrCut
	}
	v.settle()
	return nil
}

// settle finishes a replace that was cut off. The caller holds the engine's mu.
func (v *fakeVolume) settle() {
	if v.unsettled {
		v.now, v.next, v.unsettled = v.next, nil, false
	}
}

// settled settles the home and gives what is in it, which nothing changes.
func (h *fakeHome) settled() ([]fakeEntry, error) {
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	v, err := h.volume()
	if err != nil {
		return nil, err
	}
	v.settle()
	return v.now, nil
}

// Settle implements sandbox.Home.
func (h *fakeHome) Settle(caller context.Context) (finished bool, err error) {
	_, done, err := h.begin(caller, OpSettleHome)
	if err != nil {
		return false, err
	}
	defer done()
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	v, err := h.volume()
	if err != nil {
		return false, err
	}
	finished = v.unsettled
	v.settle()
	return finished, nil
}

// Close implements sandbox.Home.
func (h *fakeHome) Close() error {
	h.end()
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	if f := h.engine.boxes[h.key]; f != nil && f.user == h {
		f.user = nil
	}
	return nil
}

// packEntries writes entries as the part of an archive.
func packEntries(entries []fakeEntry, prefix string) ([]byte, error) {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	if len(entries) == 0 || entries[0].header.Name != "" {
		entries = slices.Insert(slices.Clone(entries), 0, fakeEntry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}})
	}
	for _, e := range entries {
		h := e.header
		if h.Name = prefix + h.Name; h.Name == "" {
			h.Name = "./"
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname = prefix + h.Linkname
		}
		h.Format = tar.FormatPAX
		if err := out.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := out.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := out.Flush()
	return b.Bytes(), err
}

// unpackEntries reads those that have a prefix. Of two with one name the later one counts.
func unpackEntries(b []byte, prefix string) ([]fakeEntry, error) {
	var entries []fakeEntry
	for in := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		name, mine := strings.CutPrefix(h.Name, prefix)
		if !mine {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		e := fakeEntry{*h, content}
		e.header.Name = strings.TrimPrefix(name, "./")
		if h.Typeflag == tar.TypeLink {
			e.header.Linkname = strings.TrimPrefix(h.Linkname, prefix)
		}
		entries = slices.DeleteFunc(entries, func(old fakeEntry) bool { return old.header.Name == e.header.Name })
		entries = append(entries, e)
	}
}

// PutHome makes the home of a sandbox of files alone, by their paths in it.
func (r *Runtime) PutHome(id string, files map[string]string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	if f == nil {
		return
	}
	f.now, f.next, f.unsettled = entriesOf(files), nil, false
}

// PutCopy makes the copy of a home that a snapshot has of files alone, by their paths in it, and its image.
func (r *Runtime) PutCopy(snapshot string, files map[string]string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.parts.copies[r.key(snapshot)], r.engine.parts.images[r.key(snapshot)] = entriesOf(files), true
}

func entriesOf(files map[string]string) (all []fakeEntry) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, fakeEntry{
			tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}, []byte(files[name])})
	}
	return all
}

// HomeFiles gives the contents of the files in a sandbox's home, by their paths. settled is false after a replace that was cut off
// (see AfterUnpack) and not settled since: the sandbox must not run then.
func (r *Runtime) HomeFiles(id string) (files map[string]string, settled bool) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	if f == nil {
		return nil, true
	}
	return filesOf(f.now), !f.unsettled
}

// filesOf gives the contents of the files among entries, by their paths.
func filesOf(entries []fakeEntry) map[string]string {
	files := map[string]string{}
	for _, e := range entries {
		if e.header.Typeflag == tar.TypeReg {
			files[e.header.Name] = string(e.content)
		}
	}
	return files
}

// HomeOpen tells whether a Home of the sandbox is open: its user has forgotten to close it, or has still to.
func (r *Runtime) HomeOpen(id string) bool {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	return f != nil && f.user != nil
}
