package files

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// unpack extracts a tar. It answers first that it will, and at the end how much it has made.
func (q *ask) unpack() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	w, err := q.unpackInto(p)
	if err != nil {
		return about(p, err)
	}
	defer w.close()
	if err := q.reply.begin(); err != nil {
		return err
	}
	u := unpacking{walk: w, tree: q.tree, keepLinks: q.flag("links"), body: q.Body}
	if err := u.all(); err != nil {
		return unpackProblem(p, err)
	}
	io.Copy(io.Discard, q.Body) // the padding of the archive
	q.reply.end(wire.AppendNumbers(nil, u.entries, u.bytes))
	return nil
}

// unpackInto goes into the folder, which it makes when needed.
func (q *ask) unpackInto(p string) (w *walk, err error) {
	err = q.tree.act(q.Context(), func(a *actor) error {
		w, err = a.walk()
		if err != nil {
			return err
		}
		name, err := w.to(p, true, true)
		if err == nil && name != "" {
			if err = w.enter(name); err == unix.ENOENT {
				err = w.make(name)
			}
		}
		if err != nil {
			w.close()
		}
		return err
	})
	return w, err
}

func unpackProblem(p string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problem(wire.CodeInvalid, "The archive is cut off.")
	case errors.Is(err, tar.ErrHeader):
		return problem(wire.CodeInvalid, "That is no tar archive, or a damaged one.")
	case errors.Is(err, tar.ErrFieldTooLong):
		return problem(wire.CodeInvalid, "The archive is refused: an entry's name, or another of its headers, is longer than %d MiB.", wire.MaxEntryHeader>>20)
	}
	return about(p, err)
}

// tarHeader is how many bytes a header has at least.
const tarHeader = 512

// unpackBatch is how many small entries are made in one go, which costs a thread's identity once.
const unpackBatch = 64

// unpacking is an archive on its way into a folder.
type unpacking struct {
	walk      *walk // in that folder, or further down
	tree      *Tree
	keepLinks bool
	body      io.Reader
	entries   int64
	bytes     int64
	base      int              // levels of the folder
	here      []string         // where the walk is below it
	batch     []*member        // read, and not made yet
	room      *[pieceSize]byte // for their contents
	used      int              // of room
}

// all makes all entries. Entries that have arrived are made together, so that none waits for a slow archive.
func (u *unpacking) all() error {
	in := bufio.NewReaderSize(endless{u.body}, pieceSize/4)
	archive := tar.NewReader(in)
	u.base = len(u.walk.levels)
	defer func() { u.walk.cut(u.base) }()
	u.room = pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(u.room)
	for {
		err := u.next(archive)
		if err != nil || in.Buffered() < tarHeader || len(u.batch) >= unpackBatch {
			if made := u.flush(); made != nil {
				return made // it comes before
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// endless makes an error of an end that comes before the archive's own, which an archive's reader takes for that in some
// places.
type endless struct{ r io.Reader }

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next takes an entry. io.EOF says that there are no more.
func (u *unpacking) next(archive *tar.Reader) error {
	h, err := archive.Next()
	if err != nil || h.Typeflag == tar.TypeXGlobalHeader { // it is about all later entries, and ignored
		return err
	}
	if u.entries++; u.entries > wire.MaxUnpacked {
		return problem(wire.CodeInvalid, "The archive is refused: it has more than %d entries.", wire.MaxUnpacked)
	}
	e, err := u.check(h)
	if err != nil || e.name == "" { // the folder itself is there already
		return entryProblem(h.Name, err)
	}
	size := 0
	if e.kind == tar.TypeReg {
		size = int(min(e.size, pieceSize+1))
	}
	if u.used+size > pieceSize {
		if err := u.flush(); err != nil {
			return err
		}
	}
	if size > pieceSize {
		return entryProblem(h.Name, u.largeFile(e, archive))
	}
	e.content = u.room[u.used : u.used+size]
	u.used += size
	if _, err := io.ReadFull(archive, e.content); err != nil {
		return err
	}
	u.batch = append(u.batch, e)
	return nil
}

// flush makes the entries read so far.
func (u *unpacking) flush() error {
	batch := u.batch
	u.batch, u.used = u.batch[:0], 0
	if len(batch) == 0 {
		return nil
	}
	return u.act(func() error {
		for _, e := range batch {
			if err := u.one(e); err != nil {
				return entryProblem(e.as, err)
			}
		}
		return nil
	})
}

// entryProblem is about an entry, unless the archive has ended in it.
func entryProblem(name string, err error) error {
	var no wire.EntryError
	switch {
	case errors.As(err, &no):
		return problem(wire.CodeInvalid, "The archive is refused: the entry %q %s.", text.OneLine(name, 200), no)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return about(name, err)
}

// member is an entry that is in order as far as its header goes.
type member struct {
	as       string // in the archive
	kind     byte
	folders  []string // on its way
	name     string   // "" for the folder itself
	target   string   // of a link
	from     []string // of a hard link: the way to its target
	mode     uint32
	modified time.Time
	size     int64
	content  []byte // of a file that is not large
}

func (u *unpacking) check(h *tar.Header) (*member, error) {
	names, err := entryNames(h.Name)
	if err != nil {
		return nil, err
	}
	e := &member{as: h.Name, kind: h.Typeflag, target: h.Linkname, mode: uint32(h.Mode) & 0o777, modified: h.ModTime, size: h.Size}
	if len(names) > 0 {
		e.folders, e.name = names[:len(names)-1], names[len(names)-1]
	}
	switch {
	case h.Typeflag == tar.TypeDir:
		return e, nil
	case e.name == "":
		return nil, wire.ErrEntryName
	case wire.HasHoles(h):
		return nil, wire.EntryError("has holes, which are not supported")
	case h.Typeflag == tar.TypeReg:
		return e, nil
	case h.Typeflag == tar.TypeSymlink:
		return e, wire.CheckEntryLink(len(e.folders), e.target, u.keepLinks)
	case h.Typeflag == tar.TypeLink:
		if e.from, err = entryNames(e.target); err == nil && len(e.from) == 0 {
			err = wire.EntryError("is a link to a folder")
		}
		return e, err
	}
	return nil, wire.EntryError("is neither a file, a folder nor a link")
}

// entryNames gives the names in that of an entry.
func entryNames(name string) (names []string, err error) {
	if name, err = wire.EntryName(name); name != "" {
		names = strings.Split(name, "/")
	}
	if len(names) > maxDepth {
		return nil, wire.EntryError("is nested too deeply")
	}
	return names, err
}
