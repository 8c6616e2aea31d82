package files

import (
	"path"

	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// transfer moves or copies one thing to a place.
type transfer func(from, to dirEntry, overwrite bool) error

func (q *ask) move() error { return q.transfer(moveOne) }
func (q *ask) copy() error { return q.transfer(copyOne) }

func (q *ask) transfer(one transfer) error {
	from, err := q.paths("from")
	if err != nil {
		return err
	}
	to, err := q.path("to")
	if err != nil {
		return err
	}
	overwrite := q.flag("overwrite")
	return q.actLong(func(a *actor) error {
		into, err := a.isFolder(to)
		if err != nil {
			return about(to, err)
		}
		if !into && len(from) > 1 {
			return problem(wire.CodeInvalid, "%s is no folder to put several things into.", text.OneLine(to, 200))
		}
		for _, f := range from {
			if err := a.transfer(one, f, to, into, overwrite); err != nil {
				return about(f, err)
			}
		}
		return nil
	})
}

// isFolder says whether a path leads to a folder, also by a link.
func (a *actor) isFolder(p string) (bool, error) {
	s, err := a.find(p, true)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.walk.close()
	var st unix.Stat_t
	err = lstatAt(s.walk.fd(), s.name, &st)
	return err == nil && isFolder(&st), absent(err)
}

func (a *actor) transfer(one transfer, from, to string, into, overwrite bool) error {
	source, err := a.findNamed(from)
	if err != nil {
		return err
	}
	defer source.walk.close()
	target, err := a.find(to, into)
	if err != nil {
		return about(to, err)
	}
	defer target.walk.close()
	if into {
		if target.name != "" {
			if err := target.walk.enter(target.name); err != nil {
				return about(to, err)
			}
		}
		target.name, to = source.name, path.Join(to, source.name)
	}
	if err := target.walk.checkTop(target.name); err != nil {
		return about(to, err)
	}
	var st unix.Stat_t
	if err := lstatAt(source.walk.fd(), source.name, &st); err != nil {
		return err
	}
	if isFolder(&st) && target.walk.through(st.Dev, st.Ino) {
		return problem(wire.CodeInvalid, "%s cannot be put into itself.", text.OneLine(from, 200))
	}
	err = one(source, target, overwrite)
	if err == unix.EEXIST || err == unix.ENOTEMPTY || err == unix.EISDIR || err == unix.ENOTDIR {
		return problem(wire.CodeConflict, "There is something at %s already%s.", text.OneLine(to, 200), whyKept(overwrite))
	}
	return err
}

func whyKept(overwrite bool) string {
	if overwrite {
		return ", which cannot be replaced by this: only a file by a file, and an empty folder by a folder"
	}
	return ""
}

// through says whether the way leads through a folder.
func (w *walk) through(dev, ino uint64) bool {
	for _, l := range w.levels {
		if l.dev == dev && l.ino == ino {
			return true
		}
	}
	return false
}

// moveOne renames, or copies and then removes what cannot be renamed.
func moveOne(from, to dirEntry, overwrite bool) error {
	err := place(from.walk.fd(), from.name, to, overwrite)
	if err != unix.EXDEV {
		return err
	}
	if err := copyTo(from, to, overwrite, true); err != nil {
		return err
	}
	return removeCopied(from, to)
}

// place renames to an entry of a folder.
func place(dir int, name string, to dirEntry, overwrite bool) error {
	if overwrite {
		return rename(dir, name, to.walk.fd(), to.name)
	}
	return renameExclusively(dir, name, to.walk.fd(), to.name)
}
