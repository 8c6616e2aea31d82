package files

import (
	"bufio"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// refusal says why an entry of an archive is not made, in words that go on after its name.
type refusal string

func (r refusal) Error() string { return string(r) }

// unpack makes what a tar holds. It answers first that it will, and at the end what it has made.
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
	io.Copy(io.Discard, q.Body) // what pads the archive
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
	case errors.Is(err, errTar):
		return problem(wire.CodeInvalid, "That is no tar archive, or a damaged one.")
	}
	return about(p, err)
}

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

// all makes all entries. What has arrived is made together, so that nothing waits for an archive that comes slowly.
func (u *unpacking) all() error {
	in := bufio.NewReaderSize(u.body, pieceSize/4)
	archive := &tarReader{r: in}
	u.base = len(u.walk.levels)
	defer func() { u.walk.cut(u.base) }()
	u.room = pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(u.room)
	for {
		err := u.next(archive)
		if err != nil || in.Buffered() < tarBlock || len(u.batch) >= unpackBatch {
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

// next takes an entry. io.EOF says that there are no more.
func (u *unpacking) next(archive *tarReader) error {
	h, err := archive.next()
	if err != nil {
		return err
	}
	if u.entries++; u.entries > wire.MaxUnpacked {
		return problem(wire.CodeInvalid, "The archive is refused: it has more than %d entries.", wire.MaxUnpacked)
	}
	e, err := u.check(h)
	if err != nil || e.name == "" { // the folder itself is there already
		return entryProblem(h.name, err)
	}
	size := 0
	if e.kind == typeFile {
		size = int(min(e.size, pieceSize+1))
	}
	if u.used+size > pieceSize {
		if err := u.flush(); err != nil {
			return err
		}
	}
	if size > pieceSize {
		return entryProblem(h.name, u.largeFile(e, archive))
	}
	e.content = u.room[u.used : u.used+size]
	u.used += size
	if _, err := io.ReadFull(archive, e.content); err != nil {
		return cutShort(err)
	}
	u.batch = append(u.batch, e)
	return nil
}

// flush makes what has been read.
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
	var no refusal
	switch {
	case errors.As(err, &no):
		return problem(wire.CodeInvalid, "The archive is refused: the entry %q: %s.", wire.Clean(name, 200), no)
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
	target   string   // of a symbolic link
	from     []string // of a hard link: the way to the other name, which is the last
	mode     uint32
	modified time.Time
	size     int64
	content  []byte // of a file that is not large
}

func (u *unpacking) check(h *tarHeader) (*member, error) {
	names, err := inside(h.name)
	if err != nil {
		return nil, err
	}
	e := &member{as: h.name, kind: h.kind, mode: h.mode & 0o777, modified: h.modified, size: h.size}
	if len(names) > 0 {
		e.folders, e.name = names[:len(names)-1], names[len(names)-1]
	}
	switch h.kind {
	case typeFolder:
		return e, nil
	case typeFile:
		if h.sparse {
			return nil, refusal("it has holes, which are not supported")
		}
	case typeLink:
		e.target = h.target
		err = u.checkTarget(e)
	case typeHardLink:
		if e.from, err = inside(h.target); err == nil && len(e.from) == 0 {
			err = refusal("it is a link to a folder")
		}
	default:
		return nil, refusal("it is neither a file, a folder nor a link")
	}
	if err == nil && e.name == "" {
		err = refusal("it has no name")
	}
	return e, err
}

// inside gives the names of a relative path that goes nowhere but down.
func inside(p string) ([]string, error) {
	if strings.HasPrefix(p, "/") {
		return nil, refusal("its name or target is absolute")
	}
	if len(p) > wire.MaxPath {
		return nil, refusal("its name or target is too long")
	}
	var names []string
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case name == "" || name == ".":
		case name == "..":
			return nil, refusal("its name or target leads out of the folder")
		case wire.CheckFileName(name) != nil:
			return nil, refusal("its name or target cannot be one")
		default:
			names = append(names, name)
		}
	}
	if len(names) > maxDepth {
		return nil, refusal("it is nested too deeply")
	}
	return names, nil
}

// checkTarget lets a link lead to what is in the folder: up by no more than it is deep, and then only down. A ".." behind a
// name would begin where that leads, which may be another link.
func (u *unpacking) checkTarget(e *member) error {
	if e.target == "" || len(e.target) > wire.MaxPath || strings.IndexByte(e.target, 0) >= 0 {
		return refusal("its target cannot be one")
	}
	if u.keepLinks {
		return nil
	}
	if path.IsAbs(e.target) {
		return refusal("its target is absolute")
	}
	up, rest := 0, e.target
	for {
		rest = strings.TrimLeft(rest, "/")
		name, more, _ := strings.Cut(rest, "/")
		if name != ".." && name != "." {
			break
		}
		if name == ".." {
			up++
		}
		rest = more
	}
	if up > len(e.folders) {
		return refusal("its target is outside")
	}
	if _, err := inside(rest); err != nil {
		return refusal("its target leads out of the folder, or back up behind a name")
	}
	return nil
}
