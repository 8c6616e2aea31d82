package mover

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// namesAtOnce bounds the names in memory of a folder that is emptied.
const namesAtOnce = 4096

// remover removes a tree. A folder that is not empty is moved to the top before it is emptied, so that a tree of any depth takes few
// open files.
type remover struct {
	top   *os.File
	moved int // names that were tried for folders at the top
}

// removeTree removes what has that name in a folder. What is not there is no error. It may be repeated.
func removeTree(in *os.File, name string) error {
	err := removeOne(in, name)
	if err != unix.ENOTEMPTY {
		return wrap(name, err)
	}
	top, err := openFolder(in, name)
	if err != nil {
		return err
	}
	defer top.Close()
	r := &remover{top: top}
	err = each(top, func(sub string) error {
		err := removeOne(top, sub)
		if err == unix.ENOTEMPTY {
			return r.empty(sub)
		}
		return wrap(sub, err)
	})
	if err != nil {
		return err
	}
	return wrap(name, removeOne(in, name))
}

// empty removes a folder at the top once all in it is removed, or is at the top too.
func (r *remover) empty(name string) error {
	folder, err := openFolder(r.top, name)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = each(folder, func(sub string) error {
		err := removeOne(folder, sub)
		if err == unix.ENOTEMPTY {
			err = r.lift(folder, sub)
		}
		return wrap(sub, err)
	})
	if err != nil {
		return err
	}
	return wrap(name, removeOne(r.top, name))
}

// lift moves a folder to the top, with a name that is free there.
func (r *remover) lift(folder *os.File, name string) error {
	for {
		r.moved++
		err := unix.Renameat2(int(folder.Fd()), name, int(r.top.Fd()), fmt.Sprint("lifted-", r.moved), unix.RENAME_NOREPLACE)
		if err != unix.EEXIST {
			return err
		}
	}
}

// each calls do with the names in a folder until there are none: do takes them out of it.
func each(folder *os.File, do func(name string) error) error {
	for {
		list, err := openFolder(folder, ".")
		if err != nil {
			return err
		}
		names, err := list.Readdirnames(namesAtOnce)
		list.Close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
	}
}

// removeOne removes a file or an empty folder, if it is there. Of one that is not empty it gives ENOTEMPTY.
func removeOne(in *os.File, name string) error {
	err := unix.Unlinkat(int(in.Fd()), name, 0)
	if err == unix.EISDIR {
		err = unix.Unlinkat(int(in.Fd()), name, unix.AT_REMOVEDIR)
	}
	if err == unix.ENOENT {
		return nil
	}
	return err
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("remove %q: %w", name, err)
}
