package files

import (
	"path"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// trash lists its entries, the newest first.
func (q *ask) trash() error {
	var list []wire.Trashed
	err := q.tree.act(q.Context(), func(a *actor) error {
		b, err := a.openTrash(false)
		if err == unix.ENOENT {
			return nil
		}
		if err != nil {
			return err
		}
		defer b.close()
		list, err = b.list()
		return err
	})
	if err != nil {
		return about("the trash", err)
	}
	told := 0
	for i := 0; i < len(list) && told < pageBytes; i++ { // paths may have four thousand bytes each
		record := wire.AppendTrashed(nil, &list[i])
		told += len(record)
		if err := q.reply.record(wire.RecordTrashed, record); err != nil {
			return err
		}
	}
	q.reply.end(nil)
	return nil
}

// list gives the newest entries of the trash, and holds no more than twice as many.
func (b *bin) list() ([]wire.Trashed, error) {
	var list []wire.Trashed
	newest := func() {
		sort.Slice(list, func(i, j int) bool {
			if !list[i].Deleted.Equal(list[j].Deleted) {
				return list[i].Deleted.After(list[j].Deleted)
			}
			return list[i].ID < list[j].ID
		})
		list = list[:min(len(list), wire.MaxTrash)]
	}
	err := b.eachID(func(id string) error {
		t, err := b.look(id)
		if err != nil {
			return nil // not a thing that can be restored
		}
		if list = append(list, t); len(list) >= 2*wire.MaxTrash {
			newest()
		}
		return nil
	})
	newest()
	return list, err
}

// eachID calls f for everything that has a text.
func (b *bin) eachID(f func(id string) error) error {
	fd, err := openFolder(b.info.fd(), "")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.info.actor.eachName(fd, func(d dirent) error {
		id, ok := strings.CutSuffix(string(d.name), trashSuffix)
		if !ok || wire.CheckFileName(id) != nil {
			return nil
		}
		return f(id)
	})
}

// ids gives those that a request names.
func (q *ask) ids() ([]string, error) {
	list := q.v["id"]
	if len(list) > wire.MaxFilePaths {
		return nil, problem(wire.CodeInvalid, "That is too much at once: %d at most.", wire.MaxFilePaths)
	}
	for _, id := range list {
		if wire.CheckFileName(id) != nil {
			return nil, problem(wire.CodeInvalid, "That cannot be the name of something in the trash.")
		}
	}
	return list, nil
}

// inTrash does f, which is short or long, with the trash. A missing one is an error only when something in it was asked for.
func (q *ask) inTrash(ids []string, do func(func(*actor) error) error, f func(*bin) error) error {
	return do(func(a *actor) error {
		b, err := a.openTrash(false)
		if err == unix.ENOENT && len(ids) == 0 {
			return nil
		}
		if err != nil {
			return about("such thing in the trash", err)
		}
		defer b.close()
		return f(b)
	})
}

// restore puts things back to where they were.
func (q *ask) restore() error {
	ids, err := q.ids()
	if err != nil {
		return err
	}
	soon := func(f func(*actor) error) error { return q.brief("the trash", f) } // also while both seats for long work are taken
	return q.inTrash(ids, soon, func(b *bin) error {
		for _, id := range ids {
			if err := b.restore(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bin) restore(id string) error {
	t, err := b.look(id)
	if err != nil {
		return about(id+" in the trash", err)
	}
	w, err := b.files.actor.walk()
	if err != nil {
		return err
	}
	defer w.close()
	name, err := w.to(t.Path, false, true)
	if err == nil && name == "" {
		err = errRoot
	}
	if err == nil {
		err = renameExclusively(b.files.fd(), id, w.fd(), name)
	}
	if err != nil {
		return about(t.Path, err)
	}
	unlink(b.info.fd(), id+trashSuffix)
	return nil
}

// empty deletes things in the trash for good: some, or all, also those without a text.
func (q *ask) empty() error {
	ids, err := q.ids()
	if err != nil {
		return err
	}
	return q.inTrash(ids, q.actLong, func(b *bin) error {
		if len(ids) == 0 {
			return about(path.Base(trashFolder), b.emptyAll())
		}
		for _, id := range ids {
			if err := b.forget(id); err != nil {
				return about(id+" in the trash", err)
			}
		}
		return nil
	})
}

// forget removes a thing and then its text, so that what cannot be removed stays known.
func (b *bin) forget(id string) error {
	err := absent(b.files.removeTree(id))
	if err != nil {
		return err
	}
	return absent(unlink(b.info.fd(), id+trashSuffix))
}

func (b *bin) emptyAll() error {
	for _, w := range []*walk{b.files, b.info} {
		if err := w.drain(func(c child) error { return w.removeTree(c.name) }); err != nil {
			return err
		}
	}
	return nil
}
