package archive

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// again repeats a call that a signal has interrupted.
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

func lstatAt(dir int, name string, st *unix.Stat_t) error {
	return again(func() error { return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func preadAt(fd int, b []byte, at int64) (n int, err error) {
	err = again(func() (err error) { n, err = unix.Pread(fd, b, at); return err })
	return n, err
}

// pwriteAt writes all of b.
func pwriteAt(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n := 0
		if err := again(func() (err error) { n, err = unix.Pwrite(fd, b, at); return err }); err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

func readLinkAt(dir int, name string) (string, error) {
	var buf [wire.MaxPath + 1]byte
	n := 0
	err := again(func() (err error) { n, err = unix.Readlinkat(dir, name, buf[:]); return err })
	if err == nil && n > wire.MaxPath {
		err = unix.ENAMETOOLONG
	}
	return string(buf[:max(n, 0)]), err
}

// futimens gives an open file times.
func futimens(fd int, t []unix.Timespec) error {
	return again(func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), t, 0) })
}
