package files

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func (q *ask) mkdir() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	parents := q.flag("parents")
	return q.brief(p, func(a *actor) error {
		w, err := a.walk()
		if err != nil {
			return err
		}
		defer w.close()
		name, err := w.to(p, false, parents)
		if err != nil {
			return err
		}
		if name == "" {
			return absentUnless(parents, unix.EEXIST)
		}
		err = again(func() error { return unix.Mkdirat(w.fd(), name, newFolder) })
		if err == unix.EEXIST && parents {
			return w.into(name)
		}
		return err
	})
}

// absentUnless is err unless that is fine.
func absentUnless(fine bool, err error) error {
	if fine {
		return nil
	}
	return err
}

// into goes into a folder, also by a link.
func (w *walk) into(name string) error {
	last, err := w.to(name, true, false)
	if err != nil || last == "" {
		return err
	}
	return w.enter(last)
}

// chmod sets the permissions of a file or a folder: the one that was looked at, even when its name is another's by then.
func (q *ask) chmod() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	mode, err := strconv.ParseUint(q.v.Get("mode"), 8, 32)
	if err != nil || mode > wire.MaxFileMode {
		return problem(wire.CodeInvalid, "Permissions are octal and %o at most.", wire.MaxFileMode)
	}
	return q.brief(p, func(a *actor) error {
		s, err := a.find(p, false)
		if err != nil {
			return err
		}
		defer s.walk.close()
		name := s.name
		if name == "" {
			name = "."
		}
		fd, err := openAt(s.walk.fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if !isFile(&st) && !isFolder(&st) {
			return errNoFile
		}
		return again(func() error { return unix.Chmod(ownFD(fd), uint32(mode)) })
	})
}

// ownFD is a path to the open file fd, whatever has become of its name.
func ownFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
