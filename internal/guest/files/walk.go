package files

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Bounds of a walk.
const (
	maxLinks  = 40          // as many as the kernel follows
	hiddenTop = ".sandboxd" // what the root has of ours
)

// level is one folder on the way from the root.
type level struct {
	fd  int
	dev uint64
	ino uint64
}

// walk is a way through folders, from the root, each opened in the one before by its name alone and never followed. The way
// back is the way that was come, so that no ".." is ever asked of the kernel.
type walk struct {
	actor  *actor
	levels []level // the first is the root's
	base   int     // levels that are not the walk's own to close
	links  int     // left to follow
	force  bool    // the removed entries are ours: also read-only folders are emptied
}

func (a *actor) walk() (*walk, error) {
	fd, err := a.tree.rootFD()
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	return &walk{actor: a, levels: append(make([]level, 0, 8), level{fd, st.Dev, st.Ino}), base: 1, links: maxLinks}, nil
}

func (w *walk) close() { w.cut(1) }

// cut goes back to n levels.
func (w *walk) cut(n int) {
	for i := max(n, w.base); i < len(w.levels); i++ {
		unix.Close(w.levels[i].fd)
	}
	w.levels, w.base = w.levels[:n], min(w.base, n)
}

// fd is of the folder where the walk is.
func (w *walk) fd() int { return w.levels[len(w.levels)-1].fd }

func (w *walk) back() {
	if len(w.levels) > 1 {
		w.cut(len(w.levels) - 1)
	}
}

// fork gives a walk of its own that begins where w is. Its end does not concern w, which must not be closed before.
func (w *walk) fork() *walk {
	return &walk{actor: w.actor, levels: append(make([]level, 0, len(w.levels)+8), w.levels...), base: len(w.levels),
		links: maxLinks}
}

// enter goes into the folder name. ENOTDIR says that it is none, and may be a link.
func (w *walk) enter(name string) error {
	if len(w.levels) == 1 && name == hiddenTop {
		return unix.EACCES
	}
	fd, err := openAt(w.fd(), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	l, err := levelOf(fd, w.levels[len(w.levels)-1].dev)
	if err != nil {
		unix.Close(fd)
		return err
	}
	w.levels = append(w.levels, l)
	return nil
}

func levelOf(fd int, above uint64) (level, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return level{}, err
	}
	if st.Dev != above {
		if err := checkFileSystem(fd); err != nil {
			return level{}, err
		}
	}
	return level{fd, st.Dev, st.Ino}, nil
}

// checkFileSystem refuses those that hold no files but the kernel's own things.
func checkFileSystem(fd int) error {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return err
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.NSFS_MAGIC, unix.EFIVARFS_MAGIC,
		unix.PSTOREFS_MAGIC, unix.BINFMTFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, configfsMagic:
		return unix.EACCES
	}
	return nil
}

const configfsMagic = 0x62656570

// dirEntry is a directory entry: a name in an open folder; the folder itself, of the walk, when the name is "".
type dirEntry struct {
	walk *walk
	name string
}

// find walks to path, following links on the way, and with follow also one at its end. The entry's folder is open until the
// walk is closed; what the name leads to is yet to be seen, but with follow it was no link.
func (a *actor) find(path string, follow bool) (dirEntry, error) {
	w, err := a.walk()
	if err != nil {
		return dirEntry{}, err
	}
	name, err := w.to(path, follow, false)
	if err != nil {
		w.close()
		return dirEntry{}, err
	}
	return dirEntry{w, name}, nil
}

// findNamed is find for an entry with a name in a folder: not the root.
func (a *actor) findNamed(path string) (dirEntry, error) {
	s, err := a.find(path, false)
	if err == nil && s.name == "" {
		s.walk.close()
		err = errRoot
	}
	return s, err
}

// to goes along path as far as its last name, which it gives; "" when it has gone into that, as a ".." in a link does. With
// make, folders that are not there are made.
func (w *walk) to(path string, follow, make bool) (name string, err error) {
	if path != "" && path[0] == '/' {
		w.cut(1)
	}
	rest := path
	for {
		name, rest = nextName(rest)
		switch {
		case name == "":
			return "", nil
		case name == "..":
			w.back()
			continue
		}
		if rest == "" && !follow {
			return name, w.checkTop(name)
		}
		if rest == "" {
			target, ok, err := w.readLink(name)
			if err != nil {
				return "", err
			}
			if !ok {
				return name, w.checkTop(name)
			}
			if rest, err = w.turn(target, rest); err != nil {
				return "", err
			}
			continue
		}
		err := w.enter(name)
		if err == unix.ENOENT && make {
			err = w.make(name)
		}
		if err == unix.ENOTDIR || err == unix.ELOOP {
			target, ok, linkErr := w.readLink(name)
			if linkErr != nil || !ok {
				return "", unix.ENOTDIR
			}
			rest, err = w.turn(target, rest)
		}
		if err != nil {
			return "", err
		}
	}
}

// checkTop keeps what the root has of ours from being used as a name.
func (w *walk) checkTop(name string) error {
	if len(w.levels) == 1 && name == hiddenTop {
		return unix.EACCES
	}
	return nil
}

// turn follows a link: the walk continues with its target and then rest.
func (w *walk) turn(target, rest string) (string, error) {
	if w.links--; w.links < 0 {
		return "", unix.ELOOP
	}
	if target == "" {
		return "", unix.ENOENT
	}
	if target[0] == '/' {
		w.cut(1)
	}
	if rest == "" {
		return target, nil
	}
	if len(target)+len(rest) > 4*wire.MaxPath {
		return "", unix.ENAMETOOLONG
	}
	return target + "/" + rest, nil
}

// make makes a folder and goes into it.
func (w *walk) make(name string) error {
	err := again(func() error { return unix.Mkdirat(w.fd(), name, newFolder) })
	if err != nil && err != unix.EEXIST {
		return err
	}
	return w.enter(name)
}

// nextName takes the first name off a path. Slashes behind it go with it; "." counts for nothing.
func nextName(path string) (name, rest string) {
	for {
		path = strings.TrimLeft(path, "/")
		name, rest, _ = strings.Cut(path, "/")
		rest = strings.TrimLeft(rest, "/")
		if name != "." {
			return name, rest
		}
		if rest == "" {
			return "", ""
		}
		path = rest
	}
}

// readLink gives where a link leads; not ok when the name is none, or nothing.
func (w *walk) readLink(name string) (target string, ok bool, err error) {
	target, err = readLinkAt(w.fd(), name)
	if err == unix.EINVAL || err == unix.ENOENT {
		return "", false, nil
	}
	return target, err == nil, err
}

func readLinkAt(fd int, name string) (string, error) {
	var buf [wire.MaxPath + 1]byte
	n, err := 0, error(nil)
	err = again(func() error { n, err = unix.Readlinkat(fd, name, buf[:]); return err })
	if err != nil {
		return "", err
	}
	if n > wire.MaxPath {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}
