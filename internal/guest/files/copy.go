package files

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// copyPiece is how much of a file is copied between two checks of the context.
const copyPiece = 8 << 20

// copyOne makes a copy beside the place that it will have, and puts it there when it is complete. Special files are
// left out.
func copyOne(from, to dirEntry, overwrite bool) error { return copyTo(from, to, overwrite, false) }

// copyTo is copyOne; with whole, what cannot be copied as it is, or changes meanwhile, is an error.
func copyTo(from, to dirEntry, overwrite, whole bool) error {
	var st unix.Stat_t
	if err := lstatAt(to.walk.fd(), to.name, &st); err == nil && !overwrite {
		return unix.EEXIST
	}
	own := temporaryName(to.name)
	key := to.walk.key(own)
	to.walk.actor.tree.busy.take(key)
	defer to.walk.actor.tree.busy.free(key)
	c := copier{from: from.walk.fork(), to: to.walk.fork(), depth: len(to.walk.levels), whole: whole}
	defer c.from.close()
	defer c.to.close()
	err := c.copy(from.name, own)
	if err == nil {
		err = place(to.walk.fd(), own, to, overwrite)
	}
	if err != nil {
		to.walk.tidy(own)
	}
	return err
}

// copier copies below two folders, each where its walk is.
type copier struct {
	from, to *walk
	depth    int  // of to at the beginning
	whole    bool // nothing is passed over
}

// copy copies the entry name to as.
func (c *copier) copy(name, as string) error {
	if err := c.from.actor.ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := lstatAt(c.from.fd(), name, &st); err != nil {
		return err
	}
	switch {
	case isFolder(&st):
		return c.folder(name, as, &st)
	case isLink(&st):
		target, err := readLinkAt(c.from.fd(), name)
		if err != nil {
			return err
		}
		return again(func() error { return unix.Symlinkat(target, c.to.fd(), as) })
	case isFile(&st):
		return c.file(name, as)
	}
	if c.whole {
		return problem(wire.CodeConflict, "%s is neither file, folder nor link, and cannot be moved to another file system: nothing was moved.", text.OneLine(name, 200))
	}
	if len(c.to.levels) == c.depth {
		return errNoFile // it was asked for by name
	}
	return nil
}

func (c *copier) folder(name, as string, st *unix.Stat_t) error {
	if err := again(func() error { return unix.Mkdirat(c.to.fd(), as, 0o700) }); err != nil {
		return err
	}
	from, to := len(c.from.levels), len(c.to.levels)
	defer func() { c.from.cut(from); c.to.cut(to) }()
	if err := c.from.deeper(name, from-(to-c.depth)); err != nil {
		return err
	}
	if c.whole && c.from.levels[from].dev != c.from.levels[from-1].dev {
		return errMount
	}
	if err := c.to.enter(as); err != nil {
		return err
	}
	fd, err := openFolder(c.from.fd(), "")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = c.from.actor.eachName(fd, func(d dirent) error {
		if len(c.from.levels) == 1 && string(d.name) == hiddenTop {
			return nil
		}
		return absent(c.copy(string(d.name), string(d.name)))
	})
	if err != nil {
		return err
	}
	return copyAttributes(c.to.levels[to-1].fd, as, c.to.fd(), st)
}

// copyAttributes gives a copy the permissions and the time of its original. dir and name are where it is, fd is of it, or of a path
// to it.
func copyAttributes(dir int, name string, fd int, st *unix.Stat_t) error {
	if err := again(func() error { return unix.Chmod(ownFD(fd), st.Mode&0o777) }); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, st.Mtim}
	return again(func() error { return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW) })
}

func (c *copier) file(name, as string) error {
	var st unix.Stat_t
	in, err := openFile(c.from.fd(), name, &st)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := openAt(c.to.fd(), as, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if err := c.content(out, in, st.Size); err != nil {
		return err
	}
	if c.whole {
		if err := sameStill(in, out, &st); err != nil {
			return err
		}
	}
	return copyAttributes(c.to.fd(), as, out, &st)
}

// sameStill is an error unless the file in is as it was, and out is all of it.
func sameStill(in, out int, was *unix.Stat_t) error {
	var now, copied unix.Stat_t
	if err := unix.Fstat(in, &now); err != nil {
		return err
	}
	if err := unix.Fstat(out, &copied); err != nil {
		return err
	}
	if now.Size != was.Size || now.Mtim != was.Mtim || copied.Size != was.Size {
		return errChanging
	}
	return nil
}

// content copies size bytes at most: a file that grows while it is copied has no end.
func (c *copier) content(out, in int, size int64) error {
	for left := size; left > 0; {
		if err := c.from.actor.ctx.Err(); err != nil {
			return err
		}
		n := 0
		err := again(func() (err error) {
			n, err = unix.CopyFileRange(in, nil, out, nil, int(min(left, copyPiece)), 0)
			return err
		})
		if cannot(err) || err == unix.EXDEV || err == unix.EBADF || err == nil && n == 0 {
			return c.byHand(out, in, left)
		}
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

func (c *copier) byHand(out, in int, left int64) error {
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	for left > 0 {
		if err := c.from.actor.ctx.Err(); err != nil {
			return err
		}
		n, err := reader(in).Read(buf[:min(left, pieceSize)])
		if n == 0 {
			return atEnd(err)
		}
		if _, err := writer(out).Write(buf[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}
