package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Extract makes in an empty folder what the entries of an archive whose names begin with o.Prefix say; others are passed over. The
// folder's own owner, permissions and attributes are those of the entry of that name, if there is one. What the file system cannot
// keep is listed. An archive that makes no sense gives an *EntryError or package tar's errors; nothing of it lies outside then. It
// blocks until all is made or ctx ends.
func Extract(ctx context.Context, r *tar.Reader, folder *os.File, o Options) (Stats, error) {
	x, err := newExtractor(ctx, folder, o)
	if err != nil {
		return Stats{}, err
	}
	x.in = r
	err = x.all()
	if finished := x.back(0); err == nil {
		err = finished
	}
	return x.stats, err
}

// newExtractor opens the folder that all is made in; back(0) closes it.
func newExtractor(ctx context.Context, folder *os.File, o Options) (*extractor, error) {
	fd, err := openAt(int(folder.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	for _, list := range []string{"system.posix_acl_default", "system.posix_acl_access"} { // all that is made would inherit them
		if err := unix.Fremovexattr(fd, list); err != nil && err != unix.ENODATA && err != unix.EOPNOTSUPP {
			unix.Close(fd)
			return nil, fmt.Errorf("remove the folder's access list: %w", err)
		}
	}
	return &extractor{Options: o, levels: []level{{fd: fd}}, buf: make([]byte, bufferSize), progress: progress{ctx: ctx, tell: o.Progress}}, nil
}

type extractor struct {
	Options
	progress
	in     *tar.Reader
	levels []level // open folders, the first is the one that all is made in
	stats  Stats
	buf    []byte

	from     int  // while a file is copied, which is open there; there is no in then
	unshared bool // files have to be copied block by block
}

// level is an open folder on the way to where the last entry was made.
type level struct {
	fd    int
	name  string
	entry *tar.Header // what it is to become once all in it is made; nil when it was finished before, or has no entry
	times []unix.Timespec
}

func (x *extractor) all() error {
	for {
		h, err := x.in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := x.take(h); err != nil {
			return err
		}
	}
}

// take makes what a header says, if that is ours.
func (x *extractor) take(h *tar.Header) error {
	e, mine, err := judge(h, x.Options)
	if err == nil && mine {
		err = x.one(e)
	}
	var entry *EntryError
	switch {
	case err == nil:
		return x.count(entryCost, &x.stats)
	case errors.As(err, new(wire.EntryError)) && !errors.As(err, &entry):
		return &EntryError{h.Name, err}
	}
	return fmt.Errorf("make %q: %w", h.Name, err)
}

// one makes an entry.
func (x *extractor) one(e *entry) error {
	if err := x.goTo(e.folders); err != nil {
		return err
	}
	x.stats.Files++
	switch e.kind {
	case tar.TypeDir:
		x.stats.Files--
		return x.folder(e)
	case tar.TypeReg:
		return x.regular(e)
	case tar.TypeSymlink:
		return x.put(e, func() error { return unix.Symlinkat(e.Linkname, x.dir(), e.name) })
	case tar.TypeFifo:
		return x.put(e, func() error { return unix.Mknodat(x.dir(), e.name, unix.S_IFIFO|0o600, 0) })
	case tar.TypeLink:
		return x.link(e)
	}
	x.stats.Files--
	x.stats.Lose(e.Name, "is a device")
	return nil
}

// dir is the folder where the extractor is.
func (x *extractor) dir() int { return x.levels[len(x.levels)-1].fd }

// goTo goes into folders from where the last entry was, and finishes those that it leaves.
func (x *extractor) goTo(folders []string) error {
	same := 0
	for same < min(len(folders), len(x.levels)-1) && folders[same] == x.levels[same+1].name {
		same++
	}
	if err := x.back(same + 1); err != nil {
		return err
	}
	for _, name := range folders[same:] {
		if err := x.enter(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// folder makes that of an entry, or takes the one that there is, and goes into it.
func (x *extractor) folder(e *entry) error {
	if e.name == "" {
		x.levels[0].entry = e.Header
		return nil
	}
	return x.enter(e.name, e.Header)
}

// enter goes into a folder, which is made if need be. What it is to become is for later; one that is there already keeps its times
// when it is to become nothing else.
func (x *extractor) enter(name string, becomes *tar.Header) error {
	err := again(func() error { return unix.Mkdirat(x.dir(), name, 0o755) })
	made := err == nil
	if err != nil && err != unix.EEXIST {
		return err
	}
	fd, err := openAt(x.dir(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return ErrBelow
	}
	if err != nil {
		return err
	}
	l := level{fd: fd, name: name, entry: becomes}
	if made {
		x.stats.Folders++
		if o := x.Owner; o != nil { // it may have no entry
			if err := unix.Fchown(fd, o.UID, o.GID); err != nil {
				unix.Close(fd)
				return err
			}
		}
	} else {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return err
		}
		l.times = times(st.Mtim)
	}
	x.levels = append(x.levels, l)
	return nil
}

// back goes back to n levels, and finishes the folders that it leaves.
func (x *extractor) back(n int) (err error) {
	for i := len(x.levels) - 1; i >= n; i-- {
		if finished := x.finish(&x.levels[i]); err == nil {
			err = finished
		}
		unix.Close(x.levels[i].fd)
		x.levels = x.levels[:i]
	}
	return err
}

// finish makes of a folder what its entry says.
func (x *extractor) finish(l *level) error {
	if l.entry != nil {
		return x.dress(l.fd, l.entry)
	}
	if l.times == nil {
		return nil
	}
	return futimens(l.fd, l.times)
}

// put makes an entry that has no content, in place of one of that name that is no folder, and makes of it what the entry says.
func (x *extractor) put(e *entry, make func() error) error {
	if err := x.anew(e, make); err != nil {
		return err
	}
	if e.kind == tar.TypeLink {
		return nil // what its file is, its first name has said
	}
	if err := again(func() error { return unix.Fchownat(x.dir(), e.name, e.Uid, e.Gid, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return err
	}
	path := pathAt(x.dir(), e.name)
	if err := x.attributes(e.Header, func(name string, value []byte) error { return unix.Lsetxattr(path, name, value, 0) }); err != nil {
		return err
	}
	if e.kind != tar.TypeSymlink {
		if err := again(func() error { return unix.Fchmodat(x.dir(), e.name, e.permissions(), 0) }); err != nil {
			return err
		}
	}
	return again(func() error {
		return unix.UtimesNanoAt(x.dir(), e.name, times(e.modified()), unix.AT_SYMLINK_NOFOLLOW)
	})
}

// anew calls make, and if the name is taken once more when that has gone.
func (x *extractor) anew(e *entry, make func() error) error {
	err := again(make)
	if err != unix.EEXIST {
		return err
	}
	err = again(func() error { return unix.Unlinkat(x.dir(), e.name, 0) })
	if err == unix.EISDIR || err == unix.EPERM {
		return ErrTwice
	}
	if err != nil {
		return err
	}
	return again(make)
}

// link gives a file another name.
func (x *extractor) link(e *entry) error {
	dir, err := x.walk(e.target[:len(e.target)-1])
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	last := e.target[len(e.target)-1]
	var st unix.Stat_t
	if err := lstatAt(dir, last, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return ErrTarget
	}
	return x.put(e, func() error { return unix.Linkat(dir, last, x.dir(), e.name, 0) })
}

// walk opens folders from the top one.
func (x *extractor) walk(folders []string) (int, error) {
	dir, err := openAt(x.levels[0].fd, ".", unix.O_PATH|unix.O_DIRECTORY, 0)
	for _, name := range folders {
		if err != nil {
			break
		}
		var next int
		next, err = openAt(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		unix.Close(dir)
		dir = next
	}
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		err = ErrTarget
	}
	return dir, err
}

func (x *extractor) regular(e *entry) error {
	data := []extent{{0, e.Size}}
	if text, ok := e.PAXRecords[recordData]; ok {
		var err error
		if data, err = parseExtents(text, e.Size); err != nil {
			return err
		}
	}
	fill := func(fd int) error { return x.content(fd, e.Size, data) }
	if x.in == nil {
		fill = func(fd int) error { return x.copied(fd, e) }
	}
	fd := -1
	err := x.anew(e, func() (err error) {
		fd, err = openAt(x.dir(), e.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := fill(fd); err != nil {
		return err
	}
	return x.dress(fd, e.Header)
}

// content writes the data of a file; what the archive has between is not looked at.
func (x *extractor) content(fd int, size int64, data []extent) error {
	at, sparse := int64(0), len(data) != 1 || data[0].length != size
	for _, e := range data {
		if err := x.pass(e.offset - at); err != nil {
			return err
		}
		for at = e.offset; at < e.offset+e.length; {
			n, err := io.ReadFull(x.in, x.buf[:min(int64(len(x.buf)), e.offset+e.length-at)])
			if err != nil {
				return err
			}
			if err := pwriteAt(fd, x.buf[:n], at); err != nil {
				return err
			}
			at += int64(n)
			x.stats.Bytes += int64(n)
			if err := x.count(int64(n), &x.stats); err != nil {
				return err
			}
		}
	}
	if err := x.pass(size - at); err != nil || !sparse {
		return err
	}
	return again(func() error { return unix.Ftruncate(fd, size) })
}

// pass reads n bytes that stand for a hole.
func (x *extractor) pass(n int64) error {
	for n > 0 {
		part, err := io.ReadFull(x.in, x.buf[:min(int64(len(x.buf)), n)])
		if err != nil {
			return err
		}
		n -= int64(part)
		if err := x.count(int64(part), &x.stats); err != nil {
			return err
		}
	}
	return nil
}

// dress makes of an open file or folder what its entry says. The owner comes first: to change it takes away permissions.
func (x *extractor) dress(fd int, h *tar.Header) error {
	if err := again(func() error { return unix.Fchown(fd, h.Uid, h.Gid) }); err != nil {
		return err
	}
	if err := x.attributes(h, func(name string, value []byte) error { return unix.Fsetxattr(fd, name, value, 0) }); err != nil {
		return err
	}
	if err := again(func() error { return unix.Fchmod(fd, uint32(h.Mode&0o7777)) }); err != nil {
		return err
	}
	return futimens(fd, times(modified(h)))
}

// attributes sets those of an entry. What the file system does not have, or is not for us to set, is lost.
func (x *extractor) attributes(h *tar.Header, set func(name string, value []byte) error) error {
	for _, a := range noted(h, func(reason string) { x.stats.Lose(h.Name, reason) }) {
		err := again(func() error { return set(a.name, []byte(a.value)) })
		switch {
		case err == nil:
		case err == unix.EOPNOTSUPP || err == unix.EPERM || err == unix.ERANGE || err == unix.E2BIG || err == unix.EINVAL:
			x.stats.Lose(h.Name, "has an attribute that cannot be kept here: "+strings.ToValidUTF8(a.name, "\uFFFD"))
		default:
			return fmt.Errorf("set the attribute %q: %w", a.name, err)
		}
	}
	return nil
}
