package files

import (
	"io"

	"golang.org/x/sys/unix"
)

// newFolder and newFile are the permissions of new ones, less the umask.
const (
	newFolder = 0o755
	newFile   = 0o644
)

// again repeats a call that a signal has interrupted. It is in so many places that its copies would weigh something.
//
//go:noinline
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func openAt(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// lstatAt looks at a name, or at the folder itself when it is "", and follows nothing.
func lstatAt(dir int, name string, st *unix.Stat_t) error {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return again(func() error { return unix.Fstatat(dir, name, st, flags) })
}

func isFolder(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
func isFile(st *unix.Stat_t) bool   { return st.Mode&unix.S_IFMT == unix.S_IFREG }
func isLink(st *unix.Stat_t) bool   { return st.Mode&unix.S_IFMT == unix.S_IFLNK }

// openFolder opens a folder for reading its names; the folder dir itself when name is "".
func openFolder(dir int, name string) (int, error) {
	if name == "" {
		name = "."
	}
	return openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// openFile opens a regular file for reading, and nothing else: neither does a FIFO keep it waiting, nor is a link followed.
func openFile(dir int, name string, st *unix.Stat_t) (int, error) {
	if err := lstatAt(dir, name, st); err != nil {
		return -1, err
	}
	if err := wantFile(st); err != nil {
		return -1, err
	}
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Fstat(fd, st); err == nil {
		err = wantFile(st)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// wantFile is an error unless st is of a file.
func wantFile(st *unix.Stat_t) error {
	switch {
	case isFile(st):
		return nil
	case isFolder(st):
		return errFolder
	}
	return errNoFile
}

// renameExclusively renames, never over something. Where the file system cannot promise that, it looks first.
func renameExclusively(fromDir int, from string, toDir int, to string) error {
	err := again(func() error { return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE) })
	if !cannot(err) {
		return err
	}
	var st unix.Stat_t
	if err := lstatAt(toDir, to, &st); err == nil {
		return unix.EEXIST
	} else if err != unix.ENOENT {
		return err
	}
	return rename(fromDir, from, toDir, to)
}

func rename(fromDir int, from string, toDir int, to string) error {
	return again(func() error { return unix.Renameat(fromDir, from, toDir, to) })
}

// exchange swaps two names.
func exchange(dir int, one, other string) error {
	return again(func() error { return unix.Renameat2(dir, one, dir, other, unix.RENAME_EXCHANGE) })
}

// cannot reports whether a file system or a kernel lacks the operation.
func cannot(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

func unlink(dir int, name string) error {
	return again(func() error { return unix.Unlinkat(dir, name, 0) })
}

// reader and writer are open files, which they do not own.
type reader int
type writer int

func (r reader) Read(p []byte) (n int, err error) {
	err = again(func() (err error) { n, err = unix.Read(int(r), p); return err })
	if err != nil {
		return 0, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (w writer) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n := 0
		err = again(func() (err error) { n, err = unix.Write(int(w), p[written:]); return err })
		if err != nil {
			return written, err
		}
		if n == 0 {
			return written, io.ErrShortWrite
		}
		written += n
	}
	return written, nil
}

// atEnd makes it no error that there is no more.
func atEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
