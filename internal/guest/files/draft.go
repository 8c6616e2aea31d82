package files

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// draft is a file that is being made, beside the place that it will have. Its folder stays open until it is closed.
type draft struct {
	dirEntry        // where it goes; the name is never ""
	own      string // its name until then
	fd       int
	key      busyKey
	mode     uint32
	created  bool // there was nothing in its place when it was begun
	kept     bool // it stays as it is when it is closed
}

// replaceable checks that s is absent or a file: nothing else is replaced.
func (s dirEntry) replaceable() (st unix.Stat_t, there bool, err error) {
	if s.name == "" {
		return st, true, errFolder
	}
	err = lstatAt(s.walk.fd(), s.name, &st)
	if err == unix.ENOENT {
		return st, false, nil
	}
	if err == nil {
		err = wantFile(&st)
	}
	return st, true, err
}

// begin makes a draft named own for s, empty unless it continues an upload.
func (s dirEntry) begin(own string, more bool, mode uint32) (*draft, error) {
	old, there, err := s.replaceable()
	if err != nil {
		return nil, err
	}
	d := &draft{dirEntry: s, own: own, fd: -1, key: s.walk.key(own), mode: mode, created: !there}
	if mode == 0 {
		d.mode = newFile
		if there {
			d.mode = old.Mode & wire.MaxFileMode
		}
	}
	if !s.walk.actor.tree.busy.take(d.key) {
		return nil, problem(wire.CodeConflict, "Another part of that upload is under way.")
	}
	if d.fd, err = d.make(more); err != nil {
		s.walk.actor.tree.busy.free(d.key)
		return nil, err
	}
	return d, nil
}

// make opens the draft's file. An existing one is only taken when it is surely ours: a file with one name, the
// user's own.
func (d *draft) make(more bool) (int, error) {
	dir := d.walk.fd()
	if more {
		fd, err := openAt(dir, d.own, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		var st unix.Stat_t
		if err == nil && unix.Fstat(fd, &st) == nil && isFile(&st) && st.Nlink == 1 && st.Uid == d.walk.actor.user.UID {
			return fd, nil
		}
		if err == nil {
			unix.Close(fd)
		}
		if err != unix.ENOENT {
			d.walk.discard(d.own)
		}
	}
	return openAt(dir, d.own, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

// close ends the draft, and removes its file unless that is kept or has come to its place. It may be on any thread.
func (d *draft) close(a *actor) {
	unix.Close(d.fd)
	if !d.kept {
		unlink(d.walk.fd(), d.own)
	}
	a.tree.busy.free(d.key)
}

// condition is what must be in place of a file for it to be replaced.
type condition struct {
	match string // ETag, "*" for any, "" when it does not matter
	none  bool
}

var errChanged = errors.New("changed")

// holds reports whether the condition is true of the existing file.
func (c condition) holds(st *unix.Stat_t, there bool) error {
	switch {
	case c.none && there:
		return errChanged
	case c.match == "" || c.match == "*" && there:
		return nil
	case !there || c.match != etagOf(st):
		return errChanged
	}
	return nil
}

// publish puts the draft in its place, as a whole, if the condition holds in that very moment.
func (d *draft) publish(c condition) (wire.Entry, error) {
	if err := unix.Fchmod(d.fd, d.mode); err != nil {
		return wire.Entry{}, err
	}
	// The kernel's clock for files stands still for milliseconds: two files of the same size would look the same.
	now := unix.NsecToTimespec(time.Now().UnixNano())
	if err := unix.UtimesNanoAt(d.walk.fd(), d.own, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wire.Entry{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return wire.Entry{}, err
	}
	if err := d.settle(c); err != nil {
		return wire.Entry{}, err
	}
	d.kept = true
	return d.walk.actor.viewer().of(d.name, &st), nil
}

// settle renames the draft. Another rename may come between the check and ours, so the replaced file is checked again
// afterwards, and put back when it does not meet the condition.
func (d *draft) settle(c condition) error {
	dir := d.walk.fd()
	mu := d.walk.actor.tree.places.of(d.walk.key(d.name))
	mu.Lock()
	defer mu.Unlock()
	st, there, err := d.replaceable()
	if err != nil {
		return err
	}
	if err := c.holds(&st, there); err != nil {
		return err
	}
	if !there {
		err := renameExclusively(dir, d.own, dir, d.name)
		if err != unix.EEXIST {
			return err
		}
		if c.match != "" || c.none {
			return errChanged
		}
		return rename(dir, d.own, dir, d.name)
	}
	if c.match == "" || c.match == "*" {
		return rename(dir, d.own, dir, d.name)
	}
	if err := exchange(dir, d.own, d.name); cannot(err) {
		return rename(dir, d.own, dir, d.name)
	} else if err == unix.ENOENT {
		return errChanged
	} else if err != nil {
		return err
	}
	if err := lstatAt(dir, d.own, &st); err != nil || c.holds(&st, true) != nil {
		if back := exchange(dir, d.own, d.name); back != nil {
			return back
		}
		return errChanged
	}
	return unlink(dir, d.own)
}
