package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Write writes a folder and all below it on its file system to out, the folder itself first. The tree must not change meanwhile;
// what is lost when it does is listed. It holds some megabytes, and as much again per 50,000 files with several names. It blocks
// until all is written or ctx ends. An error to read something, or of out, ends it.
func Write(ctx context.Context, folder *os.File, out *tar.Writer, o Options) (Stats, error) {
	w := &writer{Options: o, out: out, links: map[inode]string{}, buf: make([]byte, bufferSize), progress: progress{ctx: ctx, tell: o.Progress}}
	err := w.top(folder)
	return w.stats, err
}

type inode struct{ dev, ino uint64 }

type writer struct {
	Options
	progress
	out   *tar.Writer
	dev   uint64
	links map[inode]string // the first name of files that have more
	stats Stats
	buf   []byte

	copier *extractor // makes the entries at once, and there is no out; nil for an archive
}

func (w *writer) top(folder *os.File) error {
	fd, err := openAt(int(folder.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return fmt.Errorf("look at the folder: %w", err)
	}
	w.dev = st.Dev
	w.stats.Folders = -1 // itself
	if err := w.folder(fd, w.Prefix, &st); err != nil || w.out == nil {
		return err
	}
	return w.out.Flush()
}

// folder writes an open folder, whose path ends with a slash or is "", and closes it.
func (w *writer) folder(fd int, path string, st *unix.Stat_t) error {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	h := header(path, st, tar.TypeDir)
	if path == "" {
		h.Name = "./"
	}
	list, err := attributesOf(fd)
	w.attributes(h, list, err)
	w.stats.Folders++
	if err := w.head(h); err != nil {
		return err
	}
	for top := path == w.Prefix; ; {
		names, err := f.Readdirnames(namesAtOnce)
		slices.Sort(names) // so that equal trees make equal archives
		for _, name := range names {
			if top && name == w.Skip && name != "" {
				continue
			}
			if err := w.entry(fd, name, path+name); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("list the folder %q: %w", path, err)
		}
	}
}

// entry writes what has that name in a folder.
func (w *writer) entry(dir int, name, path string) error {
	var st unix.Stat_t
	err := lstatAt(dir, name, &st)
	switch {
	case err == unix.ENOENT:
		w.stats.Lose(path, "was removed while it was read")
		return nil
	case err != nil:
		return fmt.Errorf("look at %q: %w", path, err)
	case len(path) > wire.MaxPath || len(path) == wire.MaxPath && folder(&st): // a slash follows the name of a folder
		w.stats.Lose(path[:wire.MaxFileName]+"…", fmt.Sprintf("has a path longer than %d bytes", wire.MaxPath))
		return nil
	case st.Dev != w.dev:
		w.stats.Lose(path, "is on another file system")
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return fmt.Errorf("open the folder %q: %w", path, err)
		}
		return w.folder(fd, path+"/", &st)
	case unix.S_IFREG:
		return w.regular(dir, name, path)
	case unix.S_IFLNK:
		target, err := readLinkAt(dir, name)
		if err != nil {
			return fmt.Errorf("read the link %q: %w", path, err)
		}
		h := header(path, &st, tar.TypeSymlink)
		h.Linkname = target
		return w.other(dir, name, h, &st)
	case unix.S_IFIFO:
		return w.other(dir, name, header(path, &st, tar.TypeFifo), &st)
	case unix.S_IFSOCK:
		w.stats.Lose(path, "is a socket")
	default:
		w.stats.Lose(path, "is a device")
	}
	return nil
}

// header makes that of an entry.
func header(path string, st *unix.Stat_t, kind byte) *tar.Header {
	return &tar.Header{
		Format: tar.FormatPAX, Typeflag: kind, Name: path, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Unix()),
	}
}

func (w *writer) head(h *tar.Header) error {
	if w.copier != nil {
		return w.copier.take(h)
	}
	charset(h)
	if err := w.out.WriteHeader(h); err != nil {
		return fmt.Errorf("write the entry %q: %w", h.Name, err)
	}
	return w.count(entryCost, &w.stats)
}

// other writes what has no content.
func (w *writer) other(dir int, name string, h *tar.Header, st *unix.Stat_t) error {
	if done, err := w.again(h, st); done || err != nil {
		return err
	}
	if h.Typeflag != tar.TypeSymlink { // whose attributes no user can set
		list, err := attributesAt(dir, name)
		w.attributes(h, list, err)
	}
	w.stats.Files++
	return w.head(h)
}

// again writes a further name of a file as such.
func (w *writer) again(h *tar.Header, st *unix.Stat_t) (done bool, err error) {
	if st.Nlink < 2 {
		return false, nil
	}
	id := inode{st.Dev, st.Ino}
	first, known := w.links[id]
	switch {
	case known:
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		w.stats.Files++
		return true, w.head(h)
	case len(w.links) < maxLinks:
		w.links[id] = h.Name
	default:
		w.stats.Lose(h.Name, "is not kept as another name of the same file: there are too many")
	}
	return false, nil
}

func (w *writer) regular(dir int, name, path string) error {
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		w.stats.Lose(path, "changed while it was read")
		return nil
	}
	holes := max(st.Size-512*st.Blocks, 0)
	if w.copier == nil && holes > maxHoles-w.holes {
		w.stats.Lose(path, fmt.Sprintf("has holes, and those of all files would be more than %d GiB", int64(maxHoles)>>30))
		return nil
	}
	h := header(path, &st, tar.TypeReg)
	h.Size = st.Size
	if done, err := w.again(h, &st); done || err != nil {
		return err
	}
	w.holes += holes
	list, err := attributesOf(fd)
	w.attributes(h, list, err)
	if w.copier != nil {
		w.copier.from = fd
		return w.head(h)
	}
	data, sparse := dataOf(fd, &st)
	if sparse {
		note(h, recordData, formatExtents(data))
	}
	w.stats.Files++
	if err := w.head(h); err != nil {
		return err
	}
	return w.content(fd, path, h.Size, data)
}

// content writes size bytes of a file: its data, and zeros between.
func (w *writer) content(fd int, path string, size int64, data []extent) error {
	at := int64(0)
	for _, e := range data {
		if err := w.zeros(e.offset - at); err != nil {
			return err
		}
		for at = e.offset; at < e.offset+e.length; {
			n, err := preadAt(fd, w.buf[:min(int64(len(w.buf)), e.offset+e.length-at)], at)
			switch {
			case err != nil:
				return fmt.Errorf("read %q: %w", path, err)
			case n == 0:
				w.stats.Lose(path, "was cut while it was read; zeros follow")
				w.stats.Bytes += lengthFrom(at, data)
				return w.zeros(size - at)
			}
			if err := w.put(w.buf[:n]); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	return w.zeros(size - at)
}

func (w *writer) put(b []byte) error {
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	w.stats.Bytes += int64(len(b))
	return w.count(int64(len(b)), &w.stats)
}

var zeros [64 << 10]byte

// zeros writes a hole.
func (w *writer) zeros(n int64) error {
	for n > 0 {
		part := min(n, int64(len(zeros)))
		if _, err := w.out.Write(zeros[:part]); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		n -= part
		if err := w.count(part, &w.stats); err != nil {
			return err
		}
	}
	return nil
}

// attributes notes the extended attributes of a file, as many as a header may have.
func (w *writer) attributes(h *tar.Header, list []attribute, err error) {
	if err != nil {
		w.stats.Lose(h.Name, "has attributes that cannot be read")
		return
	}
	for left := maxAttributes; len(list) > 0; list = list[1:] {
		a := list[0]
		if left -= len(a.name) + len(a.value); left < 0 {
			w.stats.Lose(h.Name, fmt.Sprintf("has attributes of more than %d KiB", maxAttributes>>10))
			return
		}
		a.note(h)
	}
}
