package archive

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Copy makes in an empty folder what is in another one, as Extract would of what Write writes; holes have no bound. The blocks of
// files are shared where the file system can. Of the options Skip and Progress count. What cannot be kept is listed. It blocks until
// all is made, though not yet on the disk, or ctx ends.
func Copy(ctx context.Context, from, to *os.File, o Options) (Stats, error) {
	x, err := newExtractor(ctx, to, Options{Progress: o.Progress})
	if err != nil {
		return Stats{}, err
	}
	w := &writer{Options: Options{Skip: o.Skip}, copier: x, links: map[inode]string{}, progress: progress{ctx: ctx}}
	err = w.top(from)
	if finished := x.back(0); err == nil {
		err = finished
	}
	for _, l := range w.stats.Lost {
		x.stats.Lose(l.Path, l.Reason)
	}
	x.stats.MoreLost += w.stats.MoreLost
	return x.stats, err
}

// copied gives a new file the content of the one that is copied. A file system that cannot share blocks is not asked again.
func (x *extractor) copied(fd int, e *entry) error {
	var st unix.Stat_t
	if err := unix.Fstat(x.from, &st); err != nil {
		return err
	}
	if !x.unshared && st.Size > 0 {
		err := again(func() error { return unix.IoctlFileClone(fd, x.from) })
		switch {
		case err == nil:
			return x.parts(&st, func(part extent) error { return x.counted(part.length) })
		case full(err):
			return err
		}
		x.unshared = err == unix.EOPNOTSUPP || err == unix.ENOTTY || err == unix.EXDEV || err == unix.EPERM || err == unix.ENOSYS
	}
	if err := x.parts(&st, func(part extent) error { return x.copyPart(fd, e.Name, part) }); err != nil {
		return err
	}
	return again(func() error { return unix.Ftruncate(fd, st.Size) })
}

// parts calls do with the parts of the file that is copied that are no holes, as far as its file system tells.
func (x *extractor) parts(st *unix.Stat_t, do func(extent) error) error {
	sparse := st.Blocks*512 < st.Size
	for at, to := int64(0), st.Size; at < st.Size; at = to {
		if sparse {
			from, err := unix.Seek(x.from, at, unix.SEEK_DATA)
			if err == unix.ENXIO {
				return nil // a hole to the end
			}
			if err == nil {
				at = from
				to, err = unix.Seek(x.from, at, unix.SEEK_HOLE)
			}
			if err != nil || to <= at || to > st.Size {
				to = st.Size
			}
		}
		if err := do(extent{at, to - at}); err != nil {
			return err
		}
	}
	return nil
}

// copyPart has the kernel copy a part of a file, or copies it where that cannot.
func (x *extractor) copyPart(fd int, name string, part extent) error {
	for at, end := part.offset, part.offset+part.length; at < end; {
		n, in, out := 0, at, at
		err := again(func() (err error) {
			n, err = unix.CopyFileRange(x.from, &in, fd, &out, int(min(end-at, progressStep)), 0)
			return err
		})
		if full(err) {
			return err
		}
		if err != nil || n == 0 {
			if n, err = preadAt(x.from, x.buf[:min(int64(len(x.buf)), end-at)], at); err != nil {
				return fmt.Errorf("read: %w", err)
			}
			if n == 0 {
				x.stats.Lose(name, "was cut while it was read; zeros follow")
				return x.counted(end - at)
			}
			if err := pwriteAt(fd, x.buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err := x.counted(int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// counted counts n bytes of content.
func (x *extractor) counted(n int64) error {
	x.stats.Bytes += n
	return x.count(n, &x.stats)
}

// full says of an error that another way to write would not help.
func full(err error) bool { return err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EIO }
