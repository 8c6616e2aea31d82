package files

import (
	"archive/tar"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

const errThroughLink = wire.EntryError("has a link on its way, or something else that is no folder")

// one makes what an entry says.
func (u *unpacking) one(e *member) error {
	if err := u.goTo(e.folders); err != nil {
		return err
	}
	switch e.kind {
	case tar.TypeDir:
		return u.folder(e)
	case tar.TypeSymlink:
		return u.symlink(e)
	case tar.TypeLink:
		return u.hardLink(e)
	}
	return u.smallFile(e)
}

// goTo goes into folders below the one that is unpacked into, from where the last entry was.
func (u *unpacking) goTo(folders []string) error {
	same := 0
	for same < min(len(folders), len(u.here)) && folders[same] == u.here[same] {
		same++
	}
	u.walk.cut(u.base + same)
	u.here = u.here[:same]
	return u.descend(folders[same:])
}

// act does something as the user, also when the request has ended: an entry is made as a whole.
func (u *unpacking) act(f func() error) error {
	return u.tree.act(u.walk.actor.ctx, func(*actor) error { return f() })
}

// descend goes into folders, which it makes when they are not there, and through nothing else.
func (u *unpacking) descend(folders []string) error {
	for _, name := range folders {
		if len(u.walk.levels) > maxDepth {
			return errDeep
		}
		err := u.walk.enter(name)
		if err == unix.ENOENT {
			err = u.walk.make(name)
		}
		if err == unix.ENOTDIR || err == unix.ELOOP {
			return errThroughLink
		}
		if err != nil {
			return err
		}
		u.here = append(u.here, name)
	}
	return nil
}

// folder makes a folder, or takes the one that there is.
func (u *unpacking) folder(e *member) error {
	if err := u.descend([]string{e.name}); err != nil {
		return err
	}
	err := again(func() error { return unix.Chmod(ownFD(u.walk.fd()), e.mode|0o700) })
	if err == unix.EPERM { // another user's
		return nil
	}
	return err
}

func (u *unpacking) symlink(e *member) error {
	return u.put(e, func(name string) error {
		return again(func() error { return unix.Symlinkat(e.target, u.walk.fd(), name) })
	})
}

// hardLink gives a file that is there another name. Links are no files.
func (u *unpacking) hardLink(e *member) error {
	from := u.walk.fork()
	defer from.close()
	from.cut(u.base)
	last := len(e.from) - 1
	for _, name := range e.from[:last] {
		if err := from.enter(name); err != nil {
			return wire.EntryError("has a target that cannot be used: " + err.Error())
		}
	}
	var st unix.Stat_t
	if err := lstatAt(from.fd(), e.from[last], &st); err != nil {
		return wire.EntryError("has a target that cannot be used: " + err.Error())
	}
	if !isFile(&st) {
		return wire.EntryError("has a target that is no file")
	}
	return u.put(e, func(name string) error {
		err := again(func() error { return unix.Linkat(from.fd(), e.from[last], u.walk.fd(), name, 0) })
		if err != nil || !u.stillFile(name) {
			return err
		}
		return nil
	})
}

// stillFile removes a target that has become no file between the look and the link.
func (u *unpacking) stillFile(name string) bool {
	var st unix.Stat_t
	if lstatAt(u.walk.fd(), name, &st) == nil && isFile(&st) {
		return true
	}
	unlink(u.walk.fd(), name)
	return false
}

// put makes an entry by its name, or, if that is taken, by another and then in place of the old entry. A folder is not
// replaced.
func (u *unpacking) put(e *member, make func(name string) error) error {
	err := u.walk.checkTop(e.name)
	if err == nil {
		err = make(e.name)
	}
	if err != unix.EEXIST {
		return err
	}
	var st unix.Stat_t
	if err := lstatAt(u.walk.fd(), e.name, &st); err == nil && isFolder(&st) {
		return errFolder
	}
	own := temporaryName(e.name)
	key := u.walk.key(own)
	u.tree.busy.take(key) // it may look as old as the archive says
	defer u.tree.busy.free(key)
	if err := make(own); err != nil {
		return err
	}
	err = rename(u.walk.fd(), own, u.walk.fd(), e.name)
	unlink(u.walk.fd(), own) // still there after an error, or when both are names of one file
	return err
}

// smallFile makes a file whose content is there.
func (u *unpacking) smallFile(e *member) error {
	err := u.put(e, func(name string) error {
		fd, err := openAt(u.walk.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		_, err = writer(fd).Write(e.content)
		if err == nil {
			err = u.finish(fd, name, e)
		}
		unix.Close(fd)
		if err != nil {
			unlink(u.walk.fd(), name)
		}
		return err
	})
	if err == nil {
		u.bytes += int64(len(e.content))
	}
	return err
}

// finish gives a file its permissions and its time.
func (u *unpacking) finish(fd int, name string, e *member) error {
	if err := unix.Fchmod(fd, e.mode); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(e.modified.UnixNano())}
	if e.modified.Before(time.Unix(0, 0)) || e.modified.Year() > 2200 {
		return nil // keeps the present
	}
	return again(func() error { return unix.UtimesNanoAt(u.walk.fd(), name, times, unix.AT_SYMLINK_NOFOLLOW) })
}

// largeFile makes a file piece by piece, beside its place until it is complete.
func (u *unpacking) largeFile(e *member, content io.Reader) (err error) {
	own, fd := temporaryName(e.name), -1
	defer func() {
		u.tree.brief <- struct{}{}
		defer func() { <-u.tree.brief }()
		u.walk.actor.user.become(func() error {
			if fd >= 0 {
				unix.Close(fd)
			}
			if err != nil && fd >= 0 {
				unlink(u.walk.fd(), own)
			}
			return nil
		})
	}()
	err = u.act(func() error {
		if err := u.goTo(e.folders); err != nil {
			return err
		}
		if err := u.walk.checkTop(e.name); err != nil {
			return err
		}
		fd, err = openAt(u.walk.fd(), own, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	key := u.walk.key(own)
	u.tree.busy.take(key)
	defer u.tree.busy.free(key)
	if err := u.stream(fd, content, e.size); err != nil {
		return err
	}
	return u.act(func() error {
		if err := u.finish(fd, own, e); err != nil {
			return err
		}
		return rename(u.walk.fd(), own, u.walk.fd(), e.name)
	})
}

func (u *unpacking) stream(fd int, content io.Reader, left int64) error {
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	for left > 0 {
		n, err := io.ReadFull(content, buf[:min(left, pieceSize)])
		if err != nil {
			return err
		}
		if err := u.act(func() error { _, err := writer(fd).Write(buf[:n]); return err }); err != nil {
			return err
		}
		left -= int64(n)
		u.bytes += int64(n)
	}
	return nil
}
