package files

import (
	"golang.org/x/sys/unix"
)

// removeCopied removes the original of a copy, entry by entry, each only while it and its copy are the same: an entry that
// is new or has changed since stays, and is an error.
func removeCopied(from, to dirEntry) error {
	m := mover{from: from.walk.fork(), to: to.walk.fork(), depth: len(from.walk.levels)}
	defer m.from.close()
	defer m.to.close()
	err := m.remove(from.name, to.name)
	if err == unix.ENOTDIR || err == unix.ELOOP || err == unix.EISDIR { // one of them is no folder any more
		return errKept
	}
	return err
}

// mover removes the entries below one folder that are below another too, each where its walk is.
type mover struct {
	from, to *walk
	depth    int // of from at the beginning
}

func (m *mover) remove(name, as string) error {
	if err := m.from.actor.ctx.Err(); err != nil {
		return err
	}
	var st, copied unix.Stat_t
	if err := lstatAt(m.from.fd(), name, &st); err != nil {
		return absent(err)
	}
	if err := lstatAt(m.to.fd(), as, &copied); err == unix.ENOENT {
		return errKept
	} else if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != copied.Mode&unix.S_IFMT {
		return errKept
	}
	if isFolder(&st) {
		return m.folder(name, as)
	}
	same, err := m.same(name, as, &st, &copied)
	if err != nil {
		return err
	}
	if !same {
		return errKept
	}
	return absent(unlink(m.from.fd(), name))
}

// same says whether a file or link is as its copy is.
func (m *mover) same(name, as string, st, copied *unix.Stat_t) (bool, error) {
	if isFile(st) {
		return st.Size == copied.Size && sameTime(st.Mtim, copied.Mtim), nil
	}
	if !isLink(st) {
		return false, nil
	}
	target, err := readLinkAt(m.from.fd(), name)
	if err != nil {
		return false, err
	}
	other, err := readLinkAt(m.to.fd(), as)
	return target == other, err
}

// sameTime says whether a file system may have made copied of t: some keep whole seconds, or not every nanosecond.
func sameTime(t, copied unix.Timespec) bool {
	if t.Sec != copied.Sec {
		return false
	}
	for _, step := range []int64{1, 100, 1000, 1e6, 1e9} {
		if int64(copied.Nsec) == int64(t.Nsec)/step*step {
			return true
		}
	}
	return false
}

func (m *mover) folder(name, as string) error {
	from, to := len(m.from.levels), len(m.to.levels)
	defer func() { m.from.cut(from); m.to.cut(to) }()
	if err := m.from.deeper(name, m.depth); err != nil {
		return err
	}
	if m.from.levels[from].dev != m.from.levels[from-1].dev {
		return errMount
	}
	if err := m.to.enter(as); err != nil {
		return err
	}
	for {
		list, err := m.from.some()
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			if err := m.remove(c.name, c.name); err != nil {
				return err
			}
		}
	}
	err := again(func() error { return unix.Unlinkat(m.from.levels[from-1].fd, name, unix.AT_REMOVEDIR) })
	if err == unix.ENOTEMPTY || err == unix.EEXIST {
		return errKept
	}
	return absent(err)
}
