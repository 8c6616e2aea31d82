package files

import (
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func (q *ask) stat() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	var e wire.Entry
	err = q.tree.act(q.Context(), func(a *actor) error {
		s, err := a.find(p, false)
		if err != nil {
			return err
		}
		defer s.walk.close()
		e, err = a.viewer().entry(s.walk, s.name)
		return err
	})
	if err != nil {
		return about(p, err)
	}
	if e.Name == "" {
		e.Name = path.Base(p)
	}
	q.reply.record(wire.RecordEntry, wire.AppendEntry(nil, &e))
	q.reply.end(nil)
	return nil
}

// viewer makes entries.
type viewer struct{ users, groups map[uint32]string }

func (a *actor) viewer() viewer {
	users, groups := a.tree.names.both()
	return viewer{users, groups}
}

// entry is what name is, in the folder where w is; that folder when it is "".
func (v viewer) entry(w *walk, name string) (wire.Entry, error) {
	var st unix.Stat_t
	if err := lstatAt(w.fd(), name, &st); err != nil {
		return wire.Entry{}, err
	}
	e := v.of(name, &st)
	if e.Type == wire.TypeLink {
		e.Target, e.TargetType = w.peek(name)
	}
	return e, nil
}

// of is the entry for a stat, which for a link is incomplete.
func (v viewer) of(name string, st *unix.Stat_t) wire.Entry {
	e := wire.Entry{Name: name, Type: typeOf(st.Mode), Size: max(st.Size, 0), Modified: time.Unix(st.Mtim.Unix()),
		Mode: st.Mode & wire.MaxFileMode, UID: st.Uid, GID: st.Gid, Owner: nameOf(v.users, st.Uid), Group: nameOf(v.groups, st.Gid)}
	if e.Type == wire.TypeFile {
		e.ETag = etagOf(st)
	}
	return e
}

func etagOf(st *unix.Stat_t) string {
	return wire.ETagOf(st.Ino, st.Size, time.Unix(st.Mtim.Unix()))
}

func typeOf(mode uint32) wire.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wire.TypeFile
	case unix.S_IFDIR:
		return wire.TypeFolder
	case unix.S_IFLNK:
		return wire.TypeLink
	case unix.S_IFIFO:
		return wire.TypeFIFO
	case unix.S_IFSOCK:
		return wire.TypeSocket
	}
	return wire.TypeDevice
}

// peek tells where the link name leads, and to what, which is "" when that is nothing or hidden.
func (w *walk) peek(name string) (target string, kind wire.FileType) {
	target, err := readLinkAt(w.fd(), name)
	if err != nil {
		return "", ""
	}
	ahead := w.fork()
	defer ahead.close()
	last, err := ahead.to(target, true, false)
	if err != nil {
		return target, ""
	}
	var st unix.Stat_t
	if lstatAt(ahead.fd(), last, &st) != nil {
		return target, ""
	}
	return target, typeOf(st.Mode)
}
