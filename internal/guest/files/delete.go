package files

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// remove moves things to the trash, or deletes them for good.
func (q *ask) remove() error {
	paths, err := q.paths("path")
	if err != nil {
		return err
	}
	permanent := q.flag("permanent")
	err = q.tree.actLong(q.Context(), func(a *actor) error {
		if err := a.lookAtAll(paths, permanent); err != nil {
			return err
		}
		for _, p := range paths {
			if permanent {
				err = a.remove(p)
			} else {
				err = a.discard(p, q.reply)
			}
			if err != nil {
				return about(p, err)
			}
		}
		return nil
	})
	if err != nil {
		q.reply.begin() // so that the entries in the trash by now are reported; a failure of that is reported with the problem
		return about("the list of files to delete", err)
	}
	q.reply.end(nil)
	return nil
}

func (a *actor) remove(p string) error {
	s, err := a.findNamed(p)
	if err != nil {
		return err
	}
	defer s.walk.close()
	return s.walk.removeTree(s.name)
}

// discard moves something to the trash and tells of it.
func (a *actor) discard(p string, to *reply) error {
	s, err := a.findNamed(p)
	if err != nil {
		return err
	}
	defer s.walk.close()
	var st unix.Stat_t
	if err := lstatAt(s.walk.fd(), s.name, &st); err != nil {
		return err
	}
	b, err := a.openTrash(true)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.refuses(s, p, &st); err != nil {
		return err
	}
	t, err := b.take(s, p, &st)
	if err == unix.EXDEV {
		return elsewhere(p)
	}
	if err != nil {
		return err
	}
	return to.record(wire.RecordTrashed, wire.AppendTrashed(nil, &t))
}

// lookAtAll checks all paths, as far as that is possible, before the first is touched.
func (a *actor) lookAtAll(paths []string, permanent bool) error {
	var trash *bin
	if !permanent {
		var err error
		if trash, err = a.openTrash(true); err != nil {
			return about("the trash", err)
		}
		defer trash.close()
	}
	for _, p := range paths {
		if err := a.lookAt(p, trash); err != nil {
			return about(p, err)
		}
	}
	return nil
}

func (a *actor) lookAt(p string, trash *bin) error {
	s, err := a.findNamed(p)
	if err != nil {
		return err
	}
	defer s.walk.close()
	var st unix.Stat_t
	if err := lstatAt(s.walk.fd(), s.name, &st); err != nil || trash == nil {
		return err
	}
	return trash.refuses(s, p, &st)
}

// refuses gives the reason, if it can be seen, why the entry at s, known as p, cannot be put into the trash.
func (b *bin) refuses(s dirEntry, p string, st *unix.Stat_t) error {
	if s.walk.through(b.home()) || isFolder(st) && b.files.through(st.Dev, st.Ino) {
		return problem(wire.CodeConflict, "%s is the trash itself or in it: delete it for good.", text.OneLine(p, 200))
	}
	if s.walk.levels[len(s.walk.levels)-1].dev != b.files.levels[len(b.files.levels)-1].dev {
		return elsewhere(p)
	}
	return nil
}

func elsewhere(p string) error {
	return problem(wire.CodeConflict, "%s is on another file system than the trash: delete it for good.", text.OneLine(p, 200))
}
