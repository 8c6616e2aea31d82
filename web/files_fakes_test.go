package web

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// fakeGuest is a guest whose files are in memory.
type fakeGuest struct {
	lies
	found   []wire.Found // what Search tells
	packed  []byte       // what FilePack gives; nil for a tar of the files
	next    string       // of listings
	resting bool         // it is asleep
	changes chan string  // what Watch tells after its beginning

	mu      sync.Mutex
	files   map[string]string // by absolute path; a folder ends in "/"
	uploads map[string]string
	asked   []string
	watches int // that go on
}

// lies are what a test has a guest say instead of the truth.
type lies struct {
	lie   func(verb string) error               // instead of an answer
	half  error                                 // of a delete that has moved something before
	shape func(e *wire.Entry)                   // changes what is told of everything
	body  func(content io.Reader) io.ReadCloser // changes what is read and packed
}

// fakeTime is when everything in a fakeGuest was changed.
var fakeTime = time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC)

func newFakeGuest() *fakeGuest {
	return &fakeGuest{
		files:   map[string]string{"/home/agent/": "", "/home/agent/notes.txt": "hello", "/home/agent/src/": "", "/home/agent/src/main.go": "package main\n"},
		uploads: map[string]string{}, changes: make(chan string),
	}
}

func (g *fakeGuest) Hello() wire.Hello { return wire.Hello{Home: "/home/agent"} }

// ask notes what is asked and gives what the test wants said instead of an answer.
func (g *fakeGuest) ask(verb string, words ...string) error {
	g.mu.Lock()
	g.asked = append(g.asked, strings.Join(append([]string{verb}, words...), " "))
	lie := g.lie
	g.mu.Unlock()
	if lie != nil {
		return lie(verb)
	}
	return nil
}

func at(p string) string {
	if strings.HasPrefix(p, "/") {
		return path.Clean(p)
	}
	return path.Join("/home/agent", p)
}

func (g *fakeGuest) entry(p string) (wire.Entry, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := wire.Entry{Name: path.Base(p), Modified: fakeTime, Mode: 0o644, UID: 1000, GID: 1000, Owner: "agent", Group: "agent"}
	content, isFile := g.files[p]
	if _, isFolder := g.files[p+"/"]; isFolder {
		e.Type, e.Mode = wire.TypeFolder, 0o755
	} else if isFile {
		e.Type, e.Size, e.ETag = wire.TypeFile, int64(len(content)), `"`+encodeBytes(content[:min(len(content), 20)])+`"`
	} else {
		return e, fault.New(fault.NotFound, "There is no %s.", text.OneLine(p, 100))
	}
	if g.shape != nil {
		g.shape(&e)
	}
	return e, nil
}

func (g *fakeGuest) FileStat(_ context.Context, p string) (wire.Entry, error) {
	if err := g.ask("stat", p); err != nil {
		return wire.Entry{}, err
	}
	return g.entry(at(p))
}

func (g *fakeGuest) FileList(_ context.Context, p, after string, limit int) (wire.Listing, error) {
	if err := g.ask("list", p, after); err != nil {
		return wire.Listing{}, err
	}
	l := wire.Listing{Path: at(p), Next: g.next}
	g.mu.Lock()
	names := slices.Sorted(maps.Keys(g.files))
	g.mu.Unlock()
	for _, name := range names {
		if name = strings.TrimSuffix(name, "/"); path.Dir(name) == at(p) && len(l.Entries) < limit {
			e, err := g.entry(name)
			if err != nil {
				return l, err
			}
			l.Entries = append(l.Entries, e)
		}
	}
	return l, nil
}

func (g *fakeGuest) FileRead(_ context.Context, p string, offset, length int64) (wire.Entry, io.ReadCloser, error) {
	if err := g.ask("read", p); err != nil {
		return wire.Entry{}, nil, err
	}
	e, err := g.entry(at(p))
	if err == nil && e.Type == wire.TypeFolder {
		err = files.ErrIsFolder
	}
	if err != nil {
		return e, nil, err
	}
	content := g.content(at(p))
	content = content[min(offset, int64(len(content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	if g.body != nil {
		return e, g.body(strings.NewReader(content)), nil
	}
	return e, io.NopCloser(strings.NewReader(content)), nil
}

func (g *fakeGuest) content(p string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.files[p]
}

func (g *fakeGuest) FileWrite(_ context.Context, put wire.FilePut, body io.Reader) (wire.Written, error) {
	if err := g.ask("write", put.Path); err != nil {
		return wire.Written{}, err
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return wire.Written{}, err
	}
	p := at(put.Path)
	old, err := g.entry(p)
	switch there := err == nil; {
	case put.IfNone && there, put.IfMatch != "" && !there, put.IfMatch != "" && put.IfMatch != "*" && put.IfMatch != old.ETag:
		return wire.Written{}, files.ErrChanged
	}
	g.mu.Lock()
	whole := g.uploads[put.Upload] + string(b)
	if put.Upload != "" {
		g.uploads[put.Upload] = whole
		if !put.Last {
			g.mu.Unlock()
			return wire.Written{Offset: int64(len(whole))}, nil
		}
		delete(g.uploads, put.Upload)
	}
	g.files[p] = whole
	g.mu.Unlock()
	e, _ := g.entry(p)
	return wire.Written{Entry: e, Created: err != nil, Offset: int64(len(whole))}, nil
}

func (g *fakeGuest) FileUpload(_ context.Context, p, upload string) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(len(g.uploads[upload])), nil
}

func (g *fakeGuest) FileAbandon(_ context.Context, p, upload string) error {
	return g.ask("abandon", p, upload)
}

func (g *fakeGuest) FileMkdir(_ context.Context, p string, _ bool) error {
	if err := g.ask("mkdir", p); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files[at(p)+"/"] = ""
	return nil
}

func (g *fakeGuest) FileMove(_ context.Context, from []string, to string, _ bool) error {
	return g.ask("move", append(from, to)...)
}

func (g *fakeGuest) FileCopy(_ context.Context, from []string, to string, _ bool) error {
	return g.ask("copy", append(from, to)...)
}

func (g *fakeGuest) FileChmod(_ context.Context, p string, mode uint32) error {
	return g.ask("chmod", p, string(appendMode(nil, mode)))
}

func (g *fakeGuest) FileDelete(_ context.Context, paths []string, permanent bool) ([]wire.Trashed, error) {
	if err := g.ask("delete", paths...); err != nil || permanent {
		return nil, err
	}
	gone, err := g.FileTrash(context.Background())
	return gone, cmp.Or(g.half, err)
}

func (g *fakeGuest) FileTrash(context.Context) ([]wire.Trashed, error) {
	return []wire.Trashed{
		{ID: "notes.txt", Path: "/home/agent/notes.txt", Deleted: fakeTime, Type: wire.TypeFile, Size: 5},
		{ID: "odd\xff", Path: "/home/agent/odd\xff", Deleted: fakeTime, Type: wire.TypeFolder},
	}, g.ask("trash")
}

func (g *fakeGuest) FileRestore(_ context.Context, ids []string) error {
	return g.ask("restore", ids...)
}
func (g *fakeGuest) FileEmptyTrash(_ context.Context, ids []string) error {
	return g.ask("empty", ids...)
}

func (g *fakeGuest) FilePack(_ context.Context, base string, names []string) (io.ReadCloser, error) {
	if err := g.ask("pack", append([]string{base}, names...)...); err != nil {
		return nil, err
	}
	content := g.packed
	if content == nil {
		content = g.pack()
	}
	if g.body != nil {
		return g.body(bytes.NewReader(content)), nil
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// pack makes a tar of all files.
func (g *fakeGuest) pack() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		h := &tar.Header{Name: strings.TrimPrefix(name, "/home/agent/"), Mode: 0o644, Size: int64(len(g.files[name])), ModTime: fakeTime, Typeflag: tar.TypeReg}
		if h.Name == "" {
			continue
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if w.WriteHeader(h) == nil {
			_, _ = io.WriteString(w, g.files[name]) // to memory
		}
	}
	w.Close()
	return b.Bytes()
}

func (g *fakeGuest) FileUnpack(_ context.Context, p string, _ bool, body io.Reader) (u wire.Unpacked, err error) {
	if err := g.ask("unpack", p); err != nil {
		return u, err
	}
	r := tar.NewReader(body)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return u, nil
		}
		if err != nil {
			return u, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return u, err
		}
		u.Entries++
		u.Bytes += int64(len(b))
		g.mu.Lock()
		g.files[path.Join(at(p), h.Name)] = string(b)
		g.mu.Unlock()
	}
}

func (g *fakeGuest) FileSearch(_ context.Context, q wire.Search, emit func(wire.Found) error) (bool, error) {
	if err := g.ask("search", q.Path, q.Query, string(q.In)); err != nil {
		return false, err
	}
	for _, f := range g.found {
		if err := emit(f); err != nil {
			return true, err
		}
	}
	return false, nil
}

func (g *fakeGuest) FileWatch(ctx context.Context, paths []string, emit func(string) error) error {
	if err := g.ask("watch", paths...); err != nil {
		return err
	}
	g.count(1)
	defer g.count(-1)
	for _, p := range paths {
		if err := emit(p); err != nil {
			return err
		}
	}
	for {
		select {
		case p, open := <-g.changes:
			if !open {
				return fault.New(fault.Unavailable, "The connection to the sandbox was lost. Try again in a moment.")
			}
			if err := emit(p); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *fakeGuest) count(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches += more
}

func (g *fakeGuest) watched() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watches
}
