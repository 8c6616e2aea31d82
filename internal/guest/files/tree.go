package files

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// maxDepth bounds folders within folders for everything that goes through them: each takes descriptors.
const maxDepth = 200

// deeper goes into a folder for something that goes through all of it, and nowhere else: neither through a link nor into the
// kernel's own file systems.
func (w *walk) deeper(name string, from int) error {
	if len(w.levels)-from >= maxDepth {
		return errDeep
	}
	return w.enter(name)
}

// child is a name in a folder, with whether it is a folder.
type child struct {
	name   string
	folder bool
}

// childrenAtOnce bounds the names of one folder that are held when it is emptied.
const childrenAtOnce = 4096

// some gives names of the folder where w is, not all of them when there are very many.
func (w *walk) some() (list []child, err error) {
	fd, err := openFolder(w.fd(), "")
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	err = w.actor.eachName(fd, func(d dirent) error {
		if len(w.levels) == 1 && string(d.name) == hiddenTop {
			return nil
		}
		list = append(list, child{string(d.name), d.kind == unix.DT_DIR || d.kind == unix.DT_UNKNOWN})
		if len(list) >= childrenAtOnce {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	return list, err
}

// removeTree removes name, in the folder where w is, with all that is in it. It follows nothing and leaves other file
// systems alone.
func (w *walk) removeTree(name string) error {
	err := unlink(w.fd(), name)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	from := len(w.levels)
	if entered := w.deeper(name, from); entered != nil {
		if entered == unix.ENOTDIR { // the error was about a file after all
			return err
		}
		return entered
	}
	defer w.cut(from)
	return w.removeHere(name, from)
}

// tidyLimit bounds a clean-up in the background.
const tidyLimit = 30 * time.Second

// tidy removes an unused file of ours, in the folder where w is, also when the request has ended.
func (w *walk) tidy(name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.actor.ctx), tidyLimit)
	defer cancel()
	own := w.fork()
	defer own.close()
	own.actor, own.force = &actor{tree: w.actor.tree, user: w.actor.user, ctx: ctx}, true
	own.removeTree(name)
}

// removeHere empties the folder that w has just gone into, and removes it.
func (w *walk) removeHere(name string, from int) error {
	depth := len(w.levels)
	if w.levels[depth-1].dev != w.levels[depth-2].dev {
		return errMount
	}
	if w.force {
		unix.Chmod(ownFD(w.fd()), 0o700) // what cannot be had so cannot be emptied, which is seen below
	}
	if err := w.drain(func(c child) error { return w.removeChild(c, from) }); err != nil {
		return err
	}
	return again(func() error { return unix.Unlinkat(w.levels[depth-2].fd, name, unix.AT_REMOVEDIR) })
}

// drain calls remove for the names of the folder where w is until there are none. A name that is gone already is no error.
func (w *walk) drain(remove func(child) error) error {
	for {
		list, err := w.some()
		if err != nil || len(list) == 0 {
			return err
		}
		for _, c := range list {
			if err := absent(remove(c)); err != nil {
				return err
			}
		}
	}
}

func (w *walk) removeChild(c child, from int) error {
	depth := len(w.levels)
	if !c.folder {
		if err := unlink(w.fd(), c.name); err != unix.EISDIR {
			return err
		}
	}
	err := w.deeper(c.name, from)
	if err == unix.ENOTDIR {
		return unlink(w.fd(), c.name)
	}
	if err != nil {
		return err
	}
	defer w.cut(depth)
	return w.removeHere(c.name, from)
}
